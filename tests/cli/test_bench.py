"""The benchmark: its baseline computes the right network, and its report says what was counted."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from reference import ar, bench, models, wfd
from reference.bench import speed
from reference.bench.baseline import Baseline
from reference.bench.speed import Settings, measure
from reference.engine import Output

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name,full_depth", [("ouro-tiny", "t4"), ("huginn-tiny", "t8")])
@pytest.mark.parametrize("prompt", [0, 2])
def test_the_baseline_decodes_what_the_official_code_decodes(name: str, full_depth: str, prompt: int) -> None:
    recorded = load_file(GOLDEN / name / "golden.safetensors")
    num_calls = 0

    def count() -> None:
        nonlocal num_calls
        num_calls += 1

    tokens = Baseline(GOLDEN / name).generate(
        recorded[f"p{prompt}.input_ids"][0].tolist(), max_new_tokens=12, on_token=count
    )
    assert tokens == recorded[f"p{prompt}.greedy.{full_depth}"].tolist()[:12]
    assert num_calls == 12


def test_a_report_has_a_row_for_each_decoder_and_ratios_to_ar() -> None:
    settings = Settings(draft_depth=1, draft_length=2, max_new_tokens=5, repeats=2, threads=1)
    told: list[str] = []
    report = measure(str(GOLDEN / "ouro-tiny"), settings, on_progress=told.append)
    rows = {row.decoder: row for row in report.rows}
    assert list(rows) == ["baseline", "ar", "dtv", "wfd"]
    assert len(told) == settings.repeats + 1
    assert rows["ar"].ticks_per_token == 4.0
    assert rows["ar"].speedup_in_time == rows["ar"].speedup_in_ticks == rows["ar"].kept == 1.0
    assert rows["ar"].acceptance_rate is None
    assert rows["baseline"].ticks_per_token is rows["baseline"].kept is None
    wave = rows["wfd"]
    assert wave.acceptance_rate is not None
    assert wave.ticks_per_token is not None
    assert wave.speedup_in_ticks is not None
    assert wave.speedup_in_ticks == pytest.approx(4.0 / wave.ticks_per_token)
    assert wave.kept == pytest.approx(wave.speedup_in_time / wave.speedup_in_ticks)


@pytest.mark.parametrize("model,draft_depth", [("tiny-ouro", 1), ("tiny-huginn", 2)])
def test_the_command_prints_a_table_and_writes_its_figures(
    model: str, draft_depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    words = ["--model", model, "--threads", "1", "--repeats", "1", "--max-new-tokens", "3", "--json", str(file)]
    assert bench.main(words) == 0
    printed = capsys.readouterr().out
    assert all(decoder in printed for decoder in ("baseline", "ar", "dtv", "wfd"))
    (figures,) = json.loads(file.read_text(encoding="utf-8"))
    assert figures["settings"]["draft_depth"] == draft_depth
    assert figures["num_prompts"] == 6


def test_times_are_compared_within_a_turn() -> None:
    """A machine that is three times slower in one repeat changes no speedup."""
    seconds = {"baseline": [[2.0, 6.0], [2.0, 6.0]], "ar": [[1.0, 3.0], [1.0, 3.0]], "wfd": [[0.5, 1.5], [0.25, 0.75]]}
    settings = Settings(draft_depth=1, draft_length=2, max_new_tokens=4, repeats=2, threads=1)
    model = models.load("tiny-ouro")
    ran = {name: [run(model) for _ in range(2)] for name, run in (("ar", four_of_ar), ("wfd", four_of_wfd))}
    rows = {row.decoder: row for row in speed._report("made up", settings, seconds, ran).rows}  # noqa: SLF001 - no clock
    assert rows["ar"].speedup_in_time == 1.0
    assert rows["baseline"].speedup_in_time == 0.5
    assert rows["wfd"].speedup_in_time == pytest.approx(1 / ((0.5 + 0.25) / 2))
    assert rows["wfd"].tokens_per_second == pytest.approx(6 / (1.0 + 0.5))


def four_of_ar(model: models.LoopedModel) -> Output:
    return ar.generate(model, [1, 2], max_new_tokens=4, eos_token_id=None)


def four_of_wfd(model: models.LoopedModel) -> Output:
    return wfd.generate(model, [1, 2], max_new_tokens=4, eos_token_id=None, draft_depth=1)

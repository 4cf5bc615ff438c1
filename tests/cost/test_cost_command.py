"""`wfd cost` prints what the model says, and refuses what makes no sense in one line."""

import json
import sys
from pathlib import Path

import pytest
import torch

from reference.cli.cost_arguments import SWEEPS
from reference.cost import paper
from tests.commands import Run
from tests.cost.settings import setting


def test_a_prediction_is_a_table_of_the_three(wfd: Run) -> None:
    code, out, _ = wfd("cost", "--alpha", "0.92", "--context", "500")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line[:2] in ("AR", "Dt", "WF") and "ms" not in line][
        :3
    ] == [
        "AR",
        "DtV",
        "WFD",
    ]
    assert "2.52" in out
    assert "faster than AR above alpha = 0.20" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_json_holds_the_same_in_numbers(wfd: Run) -> None:
    code, out, _ = wfd("cost", "--alpha", "0.92", "--json")
    said = json.loads(out)["decoders"]
    row = next(row for row in paper.rows() if row.decoder == "WFD")
    assert code == 0
    assert said["wfd"]["speedup"] == pytest.approx(row.predicted)
    assert said["ar"]["ticks"] == setting().shape.recurrence_depth


def test_sweeps_are_tables_and_plots(wfd: Run, tmp_path: Path) -> None:
    code, out, err = wfd("cost", "--sweep", ",".join(SWEEPS), "--plots", str(tmp_path))
    assert code == 0
    assert str(tmp_path) in err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.svg" for name in (*SWEEPS, "breakdown"))
    assert all(f"Speedup over AR by {name}" in out for name in SWEEPS)
    assert "waiting for launches" in (tmp_path / "breakdown.svg").read_text(encoding="utf-8")


def test_json_holds_sweeps_as_well(wfd: Run) -> None:
    code, out, _ = wfd("cost", "--average-depth", "2.5", "--sweep", "average-depth", "--json")
    assert code == 0
    said = json.loads(out)
    assert "T = 4 (2.5 on average), d = 1" in said["setting"]
    at = {row["value"]: row["wfd"] for row in said["speedups"]["average-depth"]}
    assert list(at) == sorted(at)
    assert at[1.0] == 1.0  # nothing is drafted
    assert at[2.5] == pytest.approx(said["decoders"]["wfd"]["speedup"])
    assert at[4.0] > at[2.5]
    assert said["decoders"]["ar"]["ticks"] == 2.5


def test_a_sweep_marks_what_does_not_fit_into_memory(wfd: Run) -> None:
    _, out, _ = wfd("cost", "--sweep", "batch", "--json")
    fits = {row["value"]: row["fits"] for row in json.loads(out)["speedups"]["batch"]}
    assert fits == {batch: setting(batch=int(batch)).longest_context >= 500 for batch in fits}
    assert set(fits.values()) == {True, False}
    _, out, _ = wfd("cost", "--sweep", "batch")
    marked = [float(line.split()[0]) for line in out.splitlines() if line.endswith("does not fit into memory")]
    assert marked == [batch for batch, has_room in fits.items() if not has_room]


def test_without_matplotlib_plots_are_refused_with_the_remedy(
    wfd: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "reference.cost.plots", None)
    monkeypatch.delattr("reference.cost.plots", raising=False)
    code, _, err = wfd("cost", "--plots", str(tmp_path))
    assert code == 2
    assert "looped-reference[plots]" in err


def test_the_paper_is_printed_with_its_misses(wfd: Run) -> None:
    predicted = [row.predicted for row in paper.rows()]
    code, out, _ = wfd("cost", "paper")
    _, data, _ = wfd("cost", "paper", "--json")
    assert code == 0
    assert all(f"{speedup:.2f}" in out for speedup in predicted)
    assert "29,375" in out
    assert [row["predicted"] for row in json.loads(data)] == predicted


def test_a_fleet_is_labelled_as_on_paper(wfd: Run) -> None:
    words = ("cost", "fleet", "--hardware", "h100", "--software", "fused", "--batch", "4")
    code, out, _ = wfd(*words)
    assert code == 0
    assert "On paper only" in out
    assert [line.split()[0] for line in out.splitlines() if line[:3].upper() in ("AR ", "DTV", "WFD")] == [
        "AR",
        "DtV",
        "WFD",
    ]
    code, out, _ = wfd(*words, "--json")
    assert json.loads(out)["on_paper_only"] is True


def test_a_shipped_model_on_a_measured_machine(wfd: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    assert wfd("cost", "measure", "--seconds", "0", "--matrix-mb", "1", "--output", str(mine))[0] == 0
    words = ("--model", "tiny-huginn", "--hardware", str(mine), "--dtype", "fp32", "--software", "reference")
    code, out, _ = wfd("cost", *words, "--recurrence-depth", "8", "--slots", "2", "--captured")
    assert code == 0
    assert "T = 8, d = 1" in out
    assert "2 shared slots" in out
    code, out, _ = wfd("cost", "measure", "--seconds", "0", "--matrix-mb", "1")
    assert json.loads(out)["power_watts"] is None


@pytest.mark.parametrize(
    "words,complaint",
    [
        (("--alpha", "1.2"), "not a rate"),
        (("--alpha", "much"), "not a rate"),
        (("--context", "0"), "at least 1"),
        (("--sweep", "weather"), "cannot vary weather"),
        (("--hardware", "abacus"), "is none of"),
        (("--hardware", "m1-max"), "only the peak for fp32"),
        (("--model", "gpt-2"), "gpt-2"),
        (("--draft-depth", "5"), "draft_depth=5 exceeds recurrence_depth=4 (WFD-01)"),
        (("--slots", "5"), "slots=5 exceeds recurrence_depth=4"),
        (("fleet", "--batch", "99"), "a request needs 1000"),
        (("fleet", "--requests-per-second", "-1"), "not a finite number above 0: '-1'"),
        (("--average-depth", "4.5"), "average_depth=4.5 is not from 1 to recurrence_depth=4"),
        (("measure", "--device", "cuda"), "no CUDA device is available"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    wfd: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = wfd("cost", *words)
    assert code == 2
    assert complaint in err
    assert len(err.splitlines()) == 1

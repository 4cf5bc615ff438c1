"""`wfd check`: its exit codes, what it prints, and how it says no."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from reference import models
from reference.cli import check
from reference.models.protocol import LoopedModel
from reference.models.scripted import ScriptedModel
from reference.trace import to_jsonl
from tests.cases.decoders import lap_model
from tests.commands import Run
from tests.driving import Case, Lap, make_ar, make_wfd, play

LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, max_new_tokens=9)
WAVE = to_jsonl(play(make_wfd, LAP).events)


@pytest.fixture
def judge(wfd: Run) -> Run:
    """Runs `wfd check` in this process."""
    return partial(wfd, "check")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the scripted model behind every name but `close`, whose first two logits are a near tie in bfloat16."""

    def load(name: str) -> LoopedModel:
        if name != "close":
            return lap_model()
        return ScriptedModel(table=lambda _prefix, _depth: [1.0, 0.99, 0.0], vocab_size=3, recurrence_depth=2)

    monkeypatch.setattr(models, "load", load)


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def case(prompt_ids: object, token_ids: object, **more: object) -> str:
    return json.dumps({"prompt_ids": prompt_ids, "token_ids": token_ids, **more}) + "\n"


def test_a_right_trace_ends_with_code_0(judge: Run, tmp_path: Path) -> None:
    file = written(tmp_path / "trace.jsonl", WAVE)
    code, out, err = judge("trace", file, "--decoder", "wfd", "--recurrence-depth", "4", "--draft-depth", "1")
    assert (code, out, err) == (0, f"exact: {len(WAVE.splitlines())} events\n", "")
    assert judge("trace", "-", stdin=WAVE)[0] == 0


def test_a_wrong_trace_ends_with_code_1_and_names_event_clause_and_wave(judge: Run) -> None:
    lines = WAVE.splitlines()
    place = next(k for k, line in enumerate(lines) if '"flush"' in line)
    lines[place + 1] = lines[place + 1].replace('"position": 4', '"position": 5')
    text = "\n".join(lines)
    code, out, err = judge("trace", "-", stdin=text)
    assert (code, err) == (1, "")
    assert out.splitlines()[0] == f"wrong: {len(lines)} events"
    assert out.splitlines()[1].startswith(f"event {place + 1}: lane at position 5 ")
    assert "(SMP-13)" in out
    assert "tick 6: 3 flushed" in out
    code, out, _ = judge("trace", "-", "--json", stdin=text)
    assert code == 1
    said = json.loads(out)
    assert said["verdict"] == "wrong"
    assert (said["objection"]["index"], said["objection"]["clause"]) == (place + 1, "SMP-13")
    assert judge("trace", "-", "--draft-depth", "2", stdin=WAVE)[0] == 1
    assert judge("trace", "-", "--draft-length", "2", stdin=WAVE)[0] == 1


def test_freedoms_are_told(judge: Run) -> None:
    text = to_jsonl(play(make_ar, LAP).events).replace('"ar"', '"wfd"').replace('"draft_depth": 4', '"draft_depth": 1')
    code, out, _ = judge("trace", "-", "--json", stdin=text)
    assert code == 0
    said = json.loads(out)
    assert said["objection"] is None
    assert [freedom["name"] for freedom in said["freedoms"]] == ["withheld"]


@pytest.mark.usefixtures("model")
def test_right_tokens_end_with_code_0(judge: Run, tmp_path: Path) -> None:
    file = written(tmp_path / "answers.jsonl", case([0], [1, 2, 3], finish_reason="length") + "\n" + case([3], [4]))
    code, out, err = judge("tokens", file)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "case 1: exact: 3 tokens judged, 0 near ties",
        "case 2: exact: 1 tokens judged, 0 near ties",
    ]
    code, out, _ = judge("tokens", "-", stdin=case([0], [1]))
    assert out == "exact: 1 tokens judged, 0 near ties\n"


@pytest.mark.usefixtures("model")
def test_wrong_tokens_end_with_code_1_whatever_else_there_is(judge: Run) -> None:
    text = case([0], [1, 2]) + case([0], [1, 7, 0], eos_token_id=0, max_new_tokens=5)
    code, out, _ = judge("tokens", "-", stdin=text)
    assert code == 1
    assert "case 2: wrong" in out
    assert "new token 1: token 7 where the full depth says 2, 1 ahead (AR-03)" in out
    code, out, _ = judge("tokens", "-", "--json", stdin=text)
    said = json.loads(out)
    assert (code, said["verdict"]) == (1, "wrong")
    assert [one["verdict"] for one in said["cases"]] == ["exact", "wrong"]
    assert said["cases"][1]["tokens"] == ["exact", "wrong", "exact"]
    assert said["cases"][1]["first_difference"]["index"] == 1
    assert said["cases"][1]["faults"][0]["clause"] == "AR-03"


@pytest.mark.usefixtures("model")
def test_what_json_has_no_number_for_is_null(judge: Run) -> None:
    _, out, _ = judge("tokens", "-", "--json", stdin=case([0], [99]))
    first = json.loads(out)["cases"][0]["first_difference"]
    assert (first["candidate_logit"], first["gap"]) == (None, None)


@pytest.mark.spec("CONF-05")
@pytest.mark.usefixtures("model")
def test_near_ties_alone_end_with_code_3(judge: Run) -> None:
    text = case([0], [0]) + case([0], [1])
    code, out, _ = judge("tokens", "-", "--model", "close", "--dtype", "bfloat16", stdin=text)
    assert code == 3
    assert "case 2: near_tie: 1 tokens judged, 1 near ties" in out
    assert "gap 0.01" in out
    assert judge("tokens", "-", "--model", "close", stdin=text)[0] == 1
    assert judge("tokens", "-", "--model", "close", "--tolerance", "0.02", stdin=text)[0] == 3


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    "words,stdin,complaint",
    [
        (("trace", "-"), "{}", "-: line 1 is not an event of trace format 1"),
        (("trace", "no-such-file"), "", "no-such-file"),
        (("trace", "-", "--decoder", "beam"), "", "invalid choice: 'beam'"),
        (("tokens", "-"), "", "-: nothing to judge"),
        (("tokens", "-"), "{", "line 1 is not JSON"),
        (("tokens", "-"), "[]", "line 1 is not an object of prompt_ids, token_ids and any of"),
        (("tokens", "-"), '{"prompt_ids": [1]}', "line 1 is not an object of"),
        (("tokens", "-"), case([0], [1], more=1), "line 1 is not an object of"),
        (("tokens", "-"), case("0", [1]), "line 1: prompt_ids is not a list"),
        (("tokens", "-"), case([0], [1], logprobs=["x"]), "line 1: logprobs is not a list of numbers"),
        (("tokens", "-"), case([0], [1], finish_reason=[]), "line 1: finish_reason is not a text"),
        (("tokens", "-"), case([99], [1]), "SMP-07"),
        (("tokens", "-", "--dtype", "int8"), case([0], [1]), "dtype='int8' is none of"),
        (("tokens", "-", "--tolerance", "-1"), case([0], [1]), "tolerance=-1.0 is not a finite number"),
        (("riddles", "-"), "", "invalid choice: 'riddles'"),
        (("vectors", "-"), "", "nothing to judge"),
        ((), "", "the following arguments are required: WHAT (try: wfd check --help)"),
    ],
)
def test_a_mistake_ends_with_code_2_and_one_line(
    judge: Run, words: tuple[str, ...], stdin: str, complaint: str
) -> None:
    code, out, err = judge(*words, stdin=stdin)
    assert (code, out) == (2, "")
    assert err.startswith("wfd: error: ")
    assert complaint in err
    assert err.count("\n") == 1


def test_a_file_that_is_no_text_is_a_mistake(judge: Run, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    code, _, err = judge("trace", str(tmp_path / "binary"))
    assert code == 2
    assert "is not text" in err


@pytest.mark.parametrize("words", [(), ("tokens",), ("trace",), ("vectors",)])
def test_help_explains_itself_in_80_columns(judge: Run, words: tuple[str, ...]) -> None:
    code, out, err = judge(*words, "--help")
    assert (code, err) == (0, "")
    assert "exit codes:" in out
    assert "3  near ties only" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_the_help_of_the_whole_names_every_option(judge: Run) -> None:
    _, out, _ = judge("--help")
    for option in (
        "--json",
        "--model",
        "--dtype",
        "--tolerance",
        "--decoder",
        "--recurrence-depth",
        "--draft-length",
        "--kind",
    ):
        assert option in out


def test_a_shipped_model_is_judged_by_its_name(judge: Run) -> None:
    output = models.load("tiny-ouro")
    assert output.dtype is torch.float32
    code, out, _ = judge("tokens", "-", stdin=case([1, 17, 5], [output.vocab_size]))
    assert code == 1
    assert "it is not in the vocabulary (MOD-04)" in out
    assert check.parse(["tokens", "-"]).model == "tiny-ouro"

"""`wfd check`: its exit codes, what it prints, and how it says no."""

import json
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import torch

from reference import models
from reference.cli import check
from reference.models.protocol import LoopedModel
from reference.models.scripted import ScriptedModel
from reference.oracle import vectors
from reference.trace import to_jsonl
from tests.cases.decoders import lap_model
from tests.commands import Run
from tests.driving import Case, Lap, make_ar, make_wfd, play

pytest_plugins = ["pytester"]

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
        "2 cases: 2 exact, 0 near_tie, 0 wrong",
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
        (("tokens", "-"), "[]", "-: line 1 is not an object of prompt_ids, token_ids and any of"),
        (("tokens", "-"), '{"prompt_ids": [1]}', "line 1 is not an object of"),
        (("tokens", "-"), case([0], [1], more=1), "line 1 is not an object of"),
        (("tokens", "-"), case("0", [1]), "line 1: prompt_ids is not a list"),
        (("tokens", "-"), case([0], [1], logprobs=["x"]), "line 1: logprobs is not a list of numbers"),
        (("tokens", "-"), case([0], [1], finish_reason=[]), "line 1: finish_reason is not a text"),
        (("tokens", "-"), case([99], [1]), "SMP-07"),
        (("tokens", "-"), case([0], [1], id=[]), "line 1: id is neither a text nor a whole number"),
        (("tokens", "-"), "\n" + case([0], [1]) + case([0], [1, 2], logprobs=[0.0]), "-: line 3: 1 logprobs for 2"),
        (("tokens",), "", "check tokens needs a FILE, a --url, or both"),
        (("tokens", "--url", "ftp://x"), "", "is not an address of the form http://host:port"),
        (("tokens", "-", "--url", "http://127.0.0.1:1"), case([0], [1]), "line 1 is not an object of prompt_ids and"),
        (("tokens", "--url", "http://127.0.0.1:1", "--timeout", "0"), "", "timeout=0 is not a positive number"),
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


@pytest.mark.usefixtures("model")
def test_many_cases_are_judged_one_by_one_under_their_names(judge: Run) -> None:
    text = case([0], [1, 2], id="first") + case([3], [4], id=7) + case([0], [2]) + case([0], [0])
    code, out, _ = judge("tokens", "-", stdin=text)
    assert code == 1
    assert [line.partition(": ")[0] for line in out.splitlines() if line.startswith("case ")] == [
        "case first",
        "case 7",
        "case 3",
        "case 4",
    ]
    assert out.splitlines()[-1] == "4 cases: 2 exact, 0 near_tie, 2 wrong"
    said = json.loads(judge("tokens", "-", "--json", stdin=text)[1])
    assert said["numbers"] == {"exact": 2, "near_tie": 0, "wrong": 2}
    assert [(one["id"], one["verdict"]) for one in said["cases"]] == [
        ("first", "exact"),
        ("7", "exact"),
        ("3", "wrong"),
        ("4", "wrong"),
    ]


@pytest.mark.usefixtures("model")
def test_tokens_are_reported_as_junit(judge: Run, tmp_path: Path) -> None:
    text = case([0], [0], id="a tie") + case([0], [2], id='wrong & "odd" \x00') + case([0], [0])
    file = tmp_path / "report.xml"
    code, _, _ = judge("tokens", "-", "--model", "close", "--tolerance", "0.02", "--junit", str(file), stdin=text)
    assert code == 1
    suite = junit_suite(file)
    assert suite.attrib.items() >= {"name": "wfd check tokens", "tests": "3", "failures": "1"}.items()
    tie, wrong, exact = suite
    assert (tie.get("name"), [child.tag for child in tie]) == ("a tie", [])
    assert wrong.get("name") == 'wrong & "odd" ?'
    (failure,) = wrong
    assert (failure.tag, failure.get("type")) == ("failure", "AR-03")
    assert (failure.get("message") or "").startswith("AR-03: new token 0: token 2 where the full depth says 0")
    assert "first difference at new token 0" in (failure.text or "")
    assert (exact.get("name"), len(exact)) == ("3", 0)


@pytest.mark.usefixtures("model")
def test_a_near_tie_is_told_in_junit_and_is_no_failure(judge: Run, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    words = ("tokens", "-", "--model", "close", "--tolerance", "0.02", "--junit", str(file))
    assert judge(*words, stdin=case([0], [1]))[0] == 3
    suite = junit_suite(file)
    assert suite.get("failures") == "0"
    assert [(child.tag, (child.text or "").partition(":")[0]) for child in suite[0]] == [("system-out", "near_tie")]


def test_a_trace_is_reported_as_junit(judge: Run, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    assert judge("trace", "-", "--junit", str(file), stdin=WAVE)[0] == 0
    assert junit_suite(file).attrib.items() >= {"name": "wfd check trace", "tests": "1", "failures": "0"}.items()
    lines = WAVE.splitlines()
    del lines[-1]
    assert judge("trace", "-", "--junit", str(file), stdin="\n".join(lines))[0] == 1
    (failure,) = junit_suite(file)[0]
    assert failure.get("type") == "SMP-14"
    assert judge("trace", "-", "--junit", str(tmp_path / "no" / "folder"), stdin=WAVE)[0] == 2


def test_answers_to_vectors_are_reported_as_junit(judge: Run, tmp_path: Path) -> None:
    first, second, *others = [vector for vector in vectors.load("sampling") if "token_ids" not in vector.expected]
    answers: list[dict[str, object]] = [{"id": first.id, **first.expected}, {"id": second.id, "skipped": "no seeds"}]
    file = tmp_path / "out.xml"
    text = "\n".join(map(json.dumps, answers))
    assert judge("vectors", "-", "--junit", str(file), stdin=text)[0] == 1
    suite = junit_suite(file)
    assert suite.attrib["skipped"] == "1"
    assert int(suite.attrib["failures"]) >= len(others), "vectors without an answer"
    outcomes = {case.attrib["name"]: [part.tag for part in case] for case in suite}
    assert outcomes[first.id] == []
    assert outcomes[second.id] == ["skipped"]
    assert outcomes[others[0].id] == ["failure"]


def test_the_check_of_junit_takes_what_pytest_writes_and_refuses_what_it_would_not(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    pytester.makepyfile("def test_a(): pass\ndef test_b(): assert False")
    pytester.runpytest_inprocess("--junit-xml=report.xml", "-p", "no:cacheprovider", "-p", "no:randomly")
    file = pytester.path / "report.xml"
    assert len(junit_suite(file)) == 2
    text = file.read_text(encoding="utf-8")
    for good, bad in (('tests="2"', 'tests="3"'), ('failures="1"', 'failures="0"'), ("<failure", "<fault")):
        broken = text.replace(good, bad).replace("</failure", "</fault" if "fault" in bad else "</failure")
        (tmp_path / "broken.xml").write_text(broken, encoding="utf-8")
        with pytest.raises(AssertionError):
            junit_suite(tmp_path / "broken.xml")


def junit_suite(file: Path) -> ET.Element:
    """Reads a report, holds it against the common schema of JUnit XML, and gives its one suite."""
    root = ET.parse(file).getroot()  # noqa: S314 - our own file
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    assert suite.get("name")
    cases = [case for case in suite if case.tag == "testcase"]
    assert len(cases) == len(suite)
    children = {"failure", "error", "skipped", "system-out", "system-err", "properties"}
    for case in cases:
        assert case.get("name")
        assert case.get("classname")
        assert float(case.get("time", "0")) >= 0
        assert {child.tag for child in case} <= children
    for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(counted, "0")) == sum(case.find(tag) is not None for case in cases)
    assert int(suite.get("tests", "-1")) == len(cases)
    assert float(suite.get("time", "-1")) >= 0
    return suite


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
        "--junit",
        "--url",
        "--timeout",
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

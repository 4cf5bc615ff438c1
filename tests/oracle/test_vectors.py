"""Answers to the vectors: right ones, wrong ones of every kind, near ties, missing and skipped ones."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from reference import ar
from reference.errors import ParameterError
from reference.oracle import vectors
from reference.oracle.vectors import FLAGS, Outcome, Vector, VectorVerdict, weights
from reference.oracle.verdicts import Verdict
from tests.commands import Run

Values = dict[str, Any]


def vector(name: str) -> Vector:
    return next(one for one in vectors.load(name.partition("/")[0]) if one.id == name)


def solution(one: Vector) -> Values:
    """Gives the solution as an answer."""
    answer = vectors.KINDS[one.kind].answer
    return {"id": one.id} | {name: value for name, value in one.expected.items() if name in answer}


def judged(name: str, **values: object) -> VectorVerdict:
    """Gives the verdict on one answer, made of the solution and what differs."""
    found = vectors.check([{"id": name, **values}])
    return next(one for one in found.vectors if one.id == name)


def lines_of(*answers: Values) -> str:
    return "".join(json.dumps(answer) + "\n" for answer in answers)


@pytest.mark.parametrize("kind", vectors.KINDS)
def test_every_solution_is_a_right_answer(kind: str) -> None:
    verdict = vectors.check([solution(one) for one in vectors.load(kind)], kind=kind)
    assert verdict.verdict is Verdict.EXACT
    assert [one.id for one in verdict.vectors] == [one.id for one in vectors.load(kind)]
    assert str(verdict).splitlines()[-1] == f"exact: {len(verdict.vectors)} exact"


MIXED = "schedule/wfd-mixed"
EVENTS = vector(MIXED).expected["events"]
FLUSH = next(k for k, event in enumerate(EVENTS) if event["event"] == "flush")
LAST_DRAFT = max(k for k, event in enumerate(EVENTS) if event["event"] == "draft")


def events_with(place: int, **change: object) -> list[Values]:
    return [event | change if k == place else event for k, event in enumerate(EVENTS)]


@pytest.mark.parametrize(
    "values,clause",
    [
        ({"events": events_with(FLUSH + 1, position=7)}, "SMP-13"),
        ({"events": EVENTS[:-1]}, "SMP-14"),
        ({"events": EVENTS[1:]}, "NOT-03"),
        ({"events": []}, "NOT-03"),
        ({"events": events_with(0, draft_depth=2)}, "NOT-03"),
        ({"token_ids": [100, 101]}, "SMP-14"),
        ({"token_ids": [100, 101, 102, 503]}, "AR-03"),
        ({"finish_reason": "eos"}, "SMP-14"),
        ({"counts": {"flushed": 3}}, "COST-04"),
        ({"counts": {"acceptance_rate": 0.5}}, "COST-03"),
        ({"events": EVENTS, "counts": {"ticks": 19}}, "COST-01"),
        ({"events": EVENTS, "token_ids": [100]}, "SMP-14"),
    ],
)
def test_a_wrong_schedule_is_named_with_its_clause(values: Values, clause: str) -> None:
    found = judged(MIXED, **values)
    assert (found.outcome, found.clause) == (Outcome.WRONG, clause)
    assert FLAGS["flush"] in str(found)


def renamed(events: list[Values], old: int, new: int) -> list[Values]:
    """Gives a trace with another token in place of one."""
    return json.loads(json.dumps(events).replace(f" {old}", f" {new}"))  # type: ignore[no-any-return]


@pytest.mark.spec("NOT-02")
@pytest.mark.parametrize("token", [103, 503])
def test_a_trace_that_says_what_the_script_does_not_is_wrong(token: int) -> None:
    found = judged(MIXED, events=renamed(EVENTS, token, 555))
    assert (found.outcome, found.clause) == (Outcome.WRONG, "NOT-02")
    assert f"says {token}" in found.reason


def test_a_schedule_may_use_the_freedoms_of_the_specification() -> None:
    turned = [event | {"lanes": event["lanes"][::-1]} if event["event"] == "advance" else event for event in EVENTS]
    found = judged(MIXED, events=turned)
    assert found.outcome is Outcome.EXACT
    assert found.reason == "the rows of a call stand in another order"


def test_counts_of_a_trace_are_those_of_the_trace() -> None:
    one = vector("schedule/wfd-d2")
    events, counts = [*one.expected["events"]], one.expected["counts"]
    # A readout in a tick that has no other; its result is ignored.
    after = next(k for k, event in enumerate(events) if event["event"] == "advance")
    events.insert(after + 1, {"event": "draft", "tick": 1, "position": 2, "token": 7})
    more = counts | {"readout_calls": counts["readout_calls"] + 1}
    found = judged(one.id, events=events, counts=more)
    assert found.outcome is Outcome.EXACT
    assert found.reason == "a lane is read out that need not be, and the result is ignored"
    assert judged(one.id, events=events, counts=counts).clause == "COST-02"
    assert judged(one.id, counts=more).clause == "COST-02"


OURO = vector("tokens/ouro-tiny-stop")
IDS = OURO.expected["token_ids"]
CLOSEST = min(range(len(IDS)), key=OURO.expected["margins"].__getitem__)


def ids_with(ids: list[int], place: int, token: int = 0) -> list[int]:
    return [*ids[:place], token, *ids[place + 1 :]]


@pytest.mark.spec("CONF-05")
def test_another_token_is_a_near_tie_where_the_margin_is_within_rounding() -> None:
    ids = ids_with(IDS, CLOSEST)
    assert judged(OURO.id, token_ids=ids, dtype="bfloat16").outcome is Outcome.NEAR_TIE
    narrow = judged(OURO.id, token_ids=ids)
    assert (narrow.outcome, narrow.clause) == (Outcome.WRONG, "AR-03")
    wide = 2 * 2.0**-4 * max(OURO.expected["largest_logits"])
    far = next(k for k, margin in enumerate(OURO.expected["margins"]) if margin > wide)
    assert judged(OURO.id, token_ids=ids_with(IDS, far), dtype="bfloat16").outcome is Outcome.WRONG


@pytest.mark.spec("SMP-14")
@pytest.mark.parametrize(
    "values",
    [{"token_ids": IDS[:-1]}, {"token_ids": [*IDS, 1]}, {"token_ids": IDS, "finish_reason": "length"}],
    ids=["short", "long", "reason"],
)
def test_a_text_that_ends_elsewhere_is_wrong(values: Values) -> None:
    found = judged(OURO.id, **values)
    assert (found.outcome, found.clause) == (Outcome.WRONG, "SMP-14")


@pytest.mark.spec("AR-03")
def test_where_the_weights_ship_the_oracle_reads_a_wrong_answer_along() -> None:
    shipped = vector("tokens/tiny-ouro-qa")
    ids = shipped.expected["token_ids"]
    found = judged(shipped.id, token_ids=ids_with(ids, 2))
    assert (found.outcome, found.clause) == (Outcome.WRONG, "AR-03")
    assert found.reason.startswith(f"new token 2: token 0 where the full depth says {ids[2]}, ")
    ended = judged(shipped.id, token_ids=ids[:-1])
    assert (ended.outcome, ended.clause) == (Outcome.WRONG, "SMP-14")


@pytest.mark.spec("CONF-05")
def test_where_the_weights_ship_what_follows_a_near_tie_is_judged_too() -> None:
    about = [one for one in vectors.load("tokens") if one.input["model"]["name"] == "tiny-ouro"]
    shipped = min(about, key=lambda one: min(one.expected["margins"][:-1]))
    ids, margins = shipped.expected["token_ids"], shipped.expected["margins"][:-1]
    place = min(range(len(margins)), key=margins.__getitem__)
    model, prefix = weights.loaded("tiny-ouro"), [*shipped.input["prompt_ids"], *ids[:place]]
    logits = ar.generate(model, prefix, max_new_tokens=1, keep_logits=True).logits
    assert logits is not None
    second = int(logits[0].topk(2).indices[1])
    rest = ar.generate(model, [*prefix, second], max_new_tokens=shipped.input["max_new_tokens"] - place - 1).token_ids
    mine = [*ids[:place], second, *rest]
    found = judged(shipped.id, token_ids=mine, dtype="bfloat16")
    assert found.outcome is Outcome.NEAR_TIE
    assert found.reason.startswith(f"new token {place}: {second} for {ids[place]}, gap ")
    assert mine[-1] != 0
    worse = judged(shipped.id, token_ids=[*mine[:-1], 0], dtype="bfloat16")
    assert (worse.outcome, worse.clause) == (Outcome.WRONG, "AR-03")


HUGINN = vector("numerics/huginn-tiny-zero-state")


@pytest.mark.spec("MOD-12", "MOD-04", "KV-01", "CONF-04")
@pytest.mark.parametrize(
    "names,indices,clause,place",
    [
        (("states",), (3, 1, 5), "MOD-12", "states[3][1][5]"),
        (("logits",), (2, 17), "MOD-04", "logits[2][17]"),
        (("keys", "recurrent"), (4, 2, 0, 3, 9), "KV-01", "keys.recurrent[4][2][0][3][9]"),
        (("values", "coda"), (0, 1, 1, 0, 0), "KV-01", "values.coda[0][1][1][0][0]"),
    ],
)
def test_a_number_that_is_off_is_named_with_its_place(
    names: tuple[str, ...], indices: tuple[int, ...], clause: str, place: str
) -> None:
    whole: Any = HUGINN.expected
    for name in names:
        whole = whole[name]
    tolerance = 1e-4 * max(1.0, float(torch.tensor(whole[indices[0]]).abs().max()))
    for change, outcome in (
        (1.01 * tolerance, Outcome.WRONG),
        (0.99 * tolerance, Outcome.EXACT),
        (float("nan"), Outcome.WRONG),
    ):
        answer = json.loads(json.dumps(solution(HUGINN)))
        array: Any = answer
        for name in names:
            array = array[name]
        for index in indices[:-1]:
            array = array[index]
        array[indices[-1]] += change
        found = judged(HUGINN.id, **{key: value for key, value in answer.items() if key != "id"})
        assert found.outcome is outcome
        if outcome is Outcome.WRONG:
            assert found.clause == clause
            assert found.reason.startswith(f"{place} is ")


def test_numbers_of_a_coarser_type_may_be_further_off() -> None:
    logits = [[number + 0.25 for number in row] for row in HUGINN.expected["logits"]]
    assert judged(HUGINN.id, logits=logits).outcome is Outcome.WRONG
    assert judged(HUGINN.id, logits=logits, dtype="bfloat16").outcome is Outcome.EXACT


@pytest.mark.spec("MOD-06", "SMP-01", "SMP-03")
@pytest.mark.parametrize(
    "name,values,clause",
    [
        ("draw-small", {"key": "0xc05e4abc9c41f1a2"}, "MOD-06"),
        ("draw-small", {"bits": ["0x22c59022392c8592"]}, "MOD-06"),
        ("draw-small", {"uniform": [0.1, 0.2, 0.3, 0.4]}, "MOD-06"),
        ("draw-small", {"normal": [0.1]}, "MOD-06"),
        ("draw-small", {"normal": ["a", "b", "c", "d"]}, "MOD-06"),
        ("choice-tie", {"token": 2}, "SMP-01"),
        ("choice-tie", {"token": 1, "margin": 1.0}, "SMP-03"),
        ("choice-single", {"margin": 0.25}, "SMP-03"),
    ],
)
def test_a_wrong_draw_or_choice_is_named_with_its_clause(name: str, values: Values, clause: str) -> None:
    found = judged(f"sampling/{name}", **values)
    assert (found.outcome, found.clause) == (Outcome.WRONG, clause)


@pytest.mark.spec("MOD-06")
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_a_draw_may_be_off_by_its_last_digits_and_no_more(name: str) -> None:
    draws = vector("sampling/draw-small").expected[name]
    for error, outcome in ((0.9e-12, Outcome.EXACT), (1.1e-12, Outcome.WRONG)):
        assert judged("sampling/draw-small", **{name: [*draws[:-1], draws[-1] + error]}).outcome is outcome


def test_words_may_be_numbers_where_a_language_has_such_numbers() -> None:
    small = vector("sampling/draw-small").expected
    values = {"key": int(small["key"], 0), "bits": [int(word, 0) for word in small["bits"]]}
    assert judged("sampling/draw-small", **values).outcome is Outcome.EXACT


MAP = "sharing/map-2-in-turn-of-4x3"
CLAIMED, UNCLAIMED = "sharing/tiny-ouro-1-in-turn-wfd-d3", "sharing/tiny-ouro-1-in-turn-wfd-d1"


@pytest.mark.spec("SHR-02", "SHR-03", "SHR-07", "SHR-08", "SHR-09", "SHR-11")
@pytest.mark.parametrize(
    "name,values,clause",
    [
        (MAP, {"slots": [0, 1, 2] * 4}, "SHR-02"),
        (MAP, {"slots": vector(MAP).expected["slots"][:-1]}, "SHR-02"),
        (MAP, {"least_draft_depth": 3}, "SHR-08"),
        (MAP, {"least_settled_depth": 2}, "SHR-09"),  # the bound of SHR-08, which does not hold for DtV
        (CLAIMED, {"kv_bytes": 4 * vector(CLAIMED).expected["kv_bytes"]}, "SHR-03"),  # without sharing
        (CLAIMED, {"exactness": "exact"}, "SHR-11"),
        (UNCLAIMED, {"equals_ar": True}, "SHR-11"),
        (CLAIMED, {"token_ids": vector(UNCLAIMED).expected["token_ids"]}, "SHR-07"),
        (CLAIMED, {"token_ids": vector(CLAIMED).expected["token_ids"], "finish_reason": "eos"}, "SMP-14"),
    ],
)
def test_wrong_sharing_is_named_with_its_clause(name: str, values: Values, clause: str) -> None:
    found = judged(name, **values)
    assert (found.outcome, found.clause) == (Outcome.WRONG, clause)


@pytest.mark.spec("SHR-02")
def test_slots_may_have_other_numbers() -> None:
    assert judged(MAP, slots=[7 - slot for slot in vector(MAP).expected["slots"]]).outcome is Outcome.EXACT


@pytest.mark.spec("SHR-05", "SHR-08")
def test_where_identity_is_not_claimed_rounding_may_decide_a_draft_but_not_in_float64() -> None:
    ids = vector(CLAIMED).expected["token_ids"]  # those of AR under the same sharing
    assert judged(UNCLAIMED, token_ids=ids).outcome is Outcome.NEAR_TIE
    found = judged(UNCLAIMED, token_ids=ids, dtype="float64")
    assert (found.outcome, found.clause) == (Outcome.WRONG, "SHR-05")
    assert judged(UNCLAIMED, token_ids=ids[:-3]).outcome is not Outcome.EXACT


@pytest.mark.spec("NOT-04")
def test_to_accept_what_must_be_refused_is_wrong_and_the_other_way_round() -> None:
    found = judged("invalid/wfd-draft-depth-beyond", refused=False)
    assert (found.outcome, found.clause) == (Outcome.WRONG, "WFD-01")
    assert found.reason == "accepted, although draft_depth=5 exceeds recurrence_depth=4 (WFD-01)"
    found = judged("invalid/budget-0", refused=True)
    assert (found.outcome, found.clause) == (Outcome.WRONG, "SMP-10")


def test_what_is_not_answered_is_missing_unless_the_answer_says_why() -> None:
    answers = [solution(one) for one in vectors.load("sampling")]
    assert vectors.check(answers[1:]).verdict is Verdict.WRONG
    missing = vectors.check(answers[1:]).vectors[-1]
    assert (missing.id, missing.outcome) == (answers[0]["id"], Outcome.MISSING)
    excuse = {"id": answers[0]["id"], "skipped": "no seeds here"}
    found = vectors.check([excuse, *answers[1:]])
    assert found.verdict is Verdict.EXACT
    assert found.vectors[0].outcome is Outcome.SKIPPED
    assert str(found).splitlines()[0] == f"skipped  {answers[0]['id']}: no seeds here"
    with pytest.raises(ParameterError, match="nothing to judge"):
        vectors.check([excuse])


def test_kinds_without_an_answer_are_left_out_unless_asked_for() -> None:
    answers = [solution(one) for kind in ("sampling", "invalid") for one in vectors.load(kind)]
    assert {one.id.partition("/")[0] for one in vectors.check(answers).vectors} == {"sampling", "invalid"}
    only = vectors.check(answers, kind="invalid")
    assert {one.id.partition("/")[0] for one in only.vectors} == {"invalid"}
    with pytest.raises(ParameterError, match="nothing to judge"):
        vectors.check(answers, kind="tokens")


def test_a_vector_may_be_answered_by_several_decoders() -> None:
    answers = [solution(one) for one in vectors.load("sampling")]
    found = vectors.check([*answers, answers[0] | {"key": "0x1"}])
    assert found.verdict is Verdict.WRONG
    assert [one.outcome for one in found.vectors if one.id == answers[0]["id"]] == [Outcome.EXACT, Outcome.WRONG]


@pytest.mark.parametrize(
    "line,complaint",
    [
        ("{", "line 1 is not JSON"),
        ("[]", "line 1 is not an object"),
        ("{}", "line 1: id is not given"),
        ('{"id": 3}', "line 1: id is not a text"),
        ('{"id": "riddle/a"}', "line 1: id is not that of a vector"),
        ('{"id": "schedule/none", "token_ids": []}', "line 1: id is not that of a vector"),
        ('{"id": "schedule/wfd-mixed"}', "line 1: it is not an object of id and any of events, token_ids"),
        ('{"id": "schedule/wfd-mixed", "tokens": []}', "line 1: tokens is not an object of id and any of events"),
        ('{"id": "schedule/wfd-mixed", "token_ids": [true]}', "token_ids is not a list of whole numbers"),
        ('{"id": "schedule/wfd-mixed", "finish_reason": 1}', "finish_reason is not a text"),
        ('{"id": "schedule/wfd-mixed", "events": [1]}', "events is not a list of objects"),
        ('{"id": "schedule/wfd-mixed", "events": [{}]}', "events is not a trace: line 1 is not an event"),
        ('{"id": "schedule/wfd-mixed", "counts": []}', "counts is not an object"),
        ('{"id": "schedule/wfd-mixed", "counts": {"ticks": "3"}}', "counts is not an object of numbers"),
        ('{"id": "schedule/wfd-mixed", "counts": {"tocks": 3}}', "tocks"),
        ('{"id": "schedule/wfd-mixed", "skipped": 1}', "skipped is not a text"),
        ('{"id": "tokens/ouro-tiny-1", "finish_reason": "eos"}', "token_ids is not given"),
        ('{"id": "tokens/ouro-tiny-1", "token_ids": [], "dtype": "int4"}', "dtype is not any of float64, float32"),
        ('{"id": "numerics/ouro-tiny", "dtype": "float32"}', "states, logits, keys or values is not given"),
        ('{"id": "numerics/ouro-tiny", "states": [], "dtype": "int4"}', "dtype is not any of float64"),
        ('{"id": "numerics/ouro-tiny", "states": []}', "states is not a list of 5 entries"),
        ('{"id": "numerics/ouro-tiny", "logits": [[1], [1], [1], [1]]}', "logits[0] is not of shape (256,)"),
        ('{"id": "numerics/ouro-tiny", "logits": ["a", [1], [1], [1]]}', "logits[0] is not an array of numbers"),
        ('{"id": "numerics/ouro-tiny", "keys": {"coda": []}}', "keys.coda is not part of this vector"),
        ('{"id": "sampling/draw-small", "token": 1}', "token is not part of this vector"),
        ('{"id": "sampling/draw-small", "key": "c05e"}', "key is not a whole number in hexadecimal"),
        ('{"id": "sampling/draw-small", "bits": "0x1"}', "bits is not a list"),
        ('{"id": "sampling/choice-tie", "margin": true}', "margin is not a number"),
        (f'{{"id": "{MAP}", "token_ids": []}}', "token_ids is not part of this vector"),
        (f'{{"id": "{CLAIMED}", "slots": []}}', "slots is not part of this vector"),
        (f'{{"id": "{CLAIMED}", "finish_reason": "length"}}', "token_ids is not given"),
        (f'{{"id": "{CLAIMED}", "dtype": "float32"}}', "exactness, equals_ar is not given"),
        ('{"id": "invalid/budget-0", "refused": "no"}', "refused is not true or false"),
        ('{"id": "invalid/budget-0", "refused": null}', "refused is not true or false"),
    ],
)
def test_a_line_that_is_no_answer_is_the_fault_of_the_file(line: str, complaint: str) -> None:
    with pytest.raises(ParameterError) as caught:
        vectors.check(line)
    assert complaint in str(caught.value)


@pytest.fixture
def judge(wfd: Run) -> Run:
    """Runs `wfd check vectors` in this process."""
    return partial(wfd, "check", "vectors")


def test_the_command_says_a_line_for_every_vector_and_ends_with_the_code_of_the_worst(
    judge: Run, tmp_path: Path
) -> None:
    right = [solution(one) for one in vectors.load("tokens")]
    file = tmp_path / "answers.jsonl"
    file.write_text(lines_of(*right) + "\n \n", encoding="utf-8")  # blank lines are passed over
    code, out, err = judge(str(file))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        *(f"exact    {one['id']}" for one in right),
        f"exact: {len(right)} exact",
    ]
    near = {"id": OURO.id, "token_ids": ids_with(IDS, CLOSEST), "dtype": "bfloat16"}
    others = [one for one in right if one["id"] != OURO.id]
    code, out, _ = judge("-", stdin=lines_of(*others, near))
    assert code == 3
    assert out.splitlines()[-1] == f"near_tie: {len(others)} exact, 1 near_tie"
    code, out, _ = judge("-", "--json", stdin=lines_of(*others))
    assert code == 1
    said = json.loads(out)
    assert said["verdict"] == "wrong"
    assert said["vectors"][-1] == {
        "id": OURO.id,
        "outcome": "missing",
        "reason": "no answer",
        "clause": "",
        "flag": "stop",
    }


def test_the_command_judges_one_kind_alone(judge: Run) -> None:
    text = lines_of(*(solution(one) for one in vectors.load("invalid")), {"id": "sampling/choice-tie", "token": 0})
    assert judge("-", stdin=text)[0] == 1
    assert judge("-", "--kind", "invalid", stdin=text)[0] == 0
    code, out, err = judge("-", "--kind", "riddle", stdin=text)
    assert (code, out) == (2, "")
    assert (
        err == "wfd: error: kind='riddle' is none of schedule, tokens, numerics, sampling, invalid, sharing (CONF-07)\n"
    )

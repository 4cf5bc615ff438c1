"""Counts: ours pass, and every common way of counting otherwise is found and named."""

import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import oracle
from reference.counts import Counts, count
from reference.errors import ParameterError
from reference.oracle.counts import CountsVerdict
from reference.oracle.verdicts import Verdict
from reference.schedule import Advance, Start
from reference.trace import to_jsonl
from tests.driving import Case, Lap, Play, Verdicts, make_dtv, make_wfd, play, plays
from tests.strategies import cases

LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, draft_length=3, max_new_tokens=9)
WAVE = play(make_wfd, LAP)
ROUNDS = play(make_dtv, LAP)
NAMES = (*asdict(count([])), "acceptance_rate")


def totals(one: Play) -> dict[str, float]:
    counts = count(one.events)
    return {**asdict(counts), "acceptance_rate": counts.acceptance_rate}


def start_of(one: Play) -> Start:
    start = one.events[0]
    assert isinstance(start, Start)
    return start


def named(verdict: CountsVerdict) -> list[tuple[str, str]]:
    return [(one.name, one.clause) for one in verdict.discrepancies]


@pytest.mark.spec("COST-01", "COST-02", "COST-03", "COST-04", "COST-05", "AR-02", "WFD-12")
@given(case=cases())
def test_the_counts_of_every_run_pass_with_its_trace_and_without(case: Case) -> None:
    for one in plays(case):
        claimed = totals(one)
        assert oracle.check_counts(claimed, to_jsonl(one.events)).verdict is Verdict.EXACT
        assert one.finish_reason is not None
        verdict = oracle.check_totals(claimed, start_of(one), one.finish_reason)
        assert verdict.verdict is Verdict.EXACT, str(verdict)


@given(case=cases(), name=st.sampled_from(NAMES), by=st.sampled_from([-1, 1, 5]))
def test_a_count_that_is_off_is_the_one_that_is_named(case: Case, name: str, by: int) -> None:
    for one in plays(case):
        claimed = totals(one)
        claimed[name] = 7.0 if math.isnan(claimed[name]) else claimed[name] + by
        verdict = oracle.check_counts(claimed, one.events)
        assert [discrepancy.name for discrepancy in verdict.discrepancies] == [name]
        assert verdict.verdict is Verdict.WRONG


COUNTS = count(WAVE.events)


@pytest.mark.spec("COST-03")
@pytest.mark.parametrize(
    "name,value,reason",
    [
        ("ticks", COUNTS.ticks + 4, "recurrences of the prefill"),
        ("ticks", COUNTS.ticks + 1, "counts the prefill"),
        ("ticks", COUNTS.lane_ticks, "counts the rows"),
        ("lane_ticks", COUNTS.ticks, "counts the calls"),
        ("prelude_calls", COUNTS.committed, "counts the new tokens"),
        ("accepted", COUNTS.committed, "counts all new tokens"),
        ("rejected", COUNTS.flushed, "behind a rejection"),
        ("flushed", COUNTS.rejected, "counts flushes"),
        ("flushed", COUNTS.flushed - COUNTS.rejected, "leaves out the rejected"),
        ("committed", COUNTS.committed - 1, "leaves out the token of the prefill"),
        ("acceptance_rate", COUNTS.accepted / 9, "divides by all drafts"),
        ("ticks", 999.0, ""),
    ],
)
def test_a_misreading_is_told(name: str, value: float, reason: str) -> None:
    (discrepancy,) = oracle.check_counts({name: value}, WAVE.events).discrepancies
    assert discrepancy.claimed == value
    assert reason in discrepancy.reason
    assert bool(discrepancy.reason) == bool(reason)
    assert discrepancy.reason in str(oracle.check_counts({name: value}, WAVE.events))


@pytest.mark.spec("COST-03")
def test_case_30_right_wrong_right_is_one_accepted_one_rejected_and_one_that_nobody_judged() -> None:
    case = Case(
        table=Verdicts(1, (False, True, False, True, True)),
        recurrence_depth=8,
        draft_depth=1,
        draft_length=3,
        max_new_tokens=5,
    )
    events = play(make_dtv, case).events
    first_round = [event for event in events if not isinstance(event, Start) and event.tick <= 11]
    assert oracle.check_counts({"accepted": 1, "rejected": 1, "acceptance_rate": 0.5}, first_round).verdict == "exact"
    verdict = oracle.check_counts({"accepted": 2, "rejected": 2, "acceptance_rate": 1 / 3}, first_round)
    assert [one.reason.partition(" ")[0] for one in verdict.discrepancies] == ["", "this", "this"]
    assert verdict.discrepancies[1].reason == "this counts the drafts behind a rejection, which nobody judged"
    assert "divides by all drafts" in verdict.discrepancies[2].reason


@pytest.mark.spec("COST-03")
def test_case_30_of_five_right_drafts_the_second_of_which_ends_the_text_two_count() -> None:
    case = Case(
        table=Verdicts(1, (True,) * 9, stop_after=2),
        recurrence_depth=4,
        draft_depth=1,
        draft_length=5,
        max_new_tokens=9,
        stop_ids=frozenset({2}),
    )
    events = play(make_dtv, case).events
    assert oracle.check_counts({"accepted": 2, "rejected": 0, "committed": 3}, events).verdict == "exact"
    (wrong,) = oracle.check_counts({"accepted": 1}, events).discrepancies
    assert wrong.reason == "this leaves out a correctly drafted token that ended the run"


def test_a_bonus_token_counted_as_a_draft_is_told() -> None:
    case = replace(LAP, table=Verdicts(1, (True,) * 12))
    counts = count(play(make_dtv, case).events)
    bonus = counts.committed - 1 - counts.accepted
    assert bonus > 0
    (wrong,) = oracle.check_counts({"accepted": counts.accepted + bonus}, play(make_dtv, case).events).discrepancies
    assert "never drafted" in wrong.reason


@pytest.mark.spec("COST-01")
def test_a_tick_in_several_calls_is_one_tick() -> None:
    events = [
        part
        for event in WAVE.events
        for part in ([Advance(event.tick, (lane,)) for lane in event.lanes] if isinstance(event, Advance) else [event])
    ]
    assert len(events) > len(WAVE.events)
    assert oracle.check_counts(totals(WAVE), events).verdict is Verdict.EXACT


def test_a_count_of_another_name_is_an_error() -> None:
    with pytest.raises(ParameterError, match=r"claimed=\['tocks'\] is none of .*\(COST-05\)"):
        oracle.check_counts({"tocks": 3}, WAVE.events)
    with pytest.raises(ParameterError, match="tocks"):
        oracle.check_totals({"tocks": 3}, start_of(WAVE), "length")


@pytest.mark.spec("WFD-12", "WFD-09", "SMP-14", "COST-03", "COST-04", "COST-05")
@pytest.mark.parametrize(
    "changes,expected",
    [
        ({"committed": 8}, [("committed", "SMP-14"), ("ticks", "WFD-12")]),
        ({"acceptance_rate": 0.5}, [("acceptance_rate", "COST-03")]),
        ({"flushed": 0}, [("flushed", "COST-04")]),
        ({"flushed": 4, "prelude_calls": 12}, [("flushed", "WFD-09")]),
        ({"prelude_calls": 3}, [("prelude_calls", "COST-05")]),
        ({"lane_ticks": 5}, [("lane_ticks", "COST-01")]),
        ({"lane_ticks": 500}, [("lane_ticks", "COST-01")]),
        ({"accepted": 7, "acceptance_rate": 7 / 8}, [("accepted", "WFD-12")]),
        ({"ticks": COUNTS.ticks + 1}, [("ticks", "WFD-12")]),
    ],
    ids=str,
)
def test_totals_that_contradict_each_other_are_found(
    changes: dict[str, float], expected: list[tuple[str, str]]
) -> None:
    assert COUNTS.rejected == 1
    assert named(oracle.check_totals(totals(WAVE) | changes, start_of(WAVE), "length")) == expected


def test_totals_are_judged_as_far_as_they_are_there() -> None:
    start = start_of(WAVE)
    assert oracle.check_totals({}, start, "length").verdict is Verdict.EXACT
    assert named(oracle.check_totals({"committed": 10}, start, "eos")) == [("committed", "SMP-14")]
    assert oracle.check_totals({"committed": 3}, start, "eos").verdict is Verdict.EXACT
    assert oracle.check_totals({"ticks": 3}, start, "length").verdict is Verdict.EXACT


@pytest.mark.spec("AR-02", "WFD-06")
def test_at_full_draft_depth_totals_are_those_of_ar() -> None:
    one = play(make_wfd, LAP.drafting_at_full_depth())
    right = totals(one)
    assert oracle.check_totals(right, start_of(one), "length").verdict is Verdict.EXACT
    wrong = right | {"accepted": 1, "ticks": 5, "lane_ticks": 5, "readout_calls": 9}
    assert named(oracle.check_totals(wrong, start_of(one), "length")) == [
        ("acceptance_rate", "COST-03"),
        ("accepted", "WFD-06"),
        ("ticks", "AR-02"),
        ("lane_ticks", "AR-02"),
        ("readout_calls", "AR-02"),
    ]


@pytest.mark.spec("COST-03", "COST-04")
def test_of_rounds_only_what_their_totals_decide_is_judged() -> None:
    right, start = totals(ROUNDS), start_of(ROUNDS)
    assert oracle.check_totals(right | {"ticks": right["ticks"] + 1}, start, "length").verdict is Verdict.EXACT
    too_many = {"accepted": 9.0, "acceptance_rate": 9 / (9 + right["rejected"])}
    assert named(oracle.check_totals(right | too_many, start, "length")) == [("accepted", "COST-03")]
    assert named(oracle.check_totals(right | {"flushed": 99.0}, start, "length")) == [
        ("flushed", "COST-04"),
        ("prelude_calls", "COST-05"),
    ]


@pytest.mark.spec("WFD-12")
def test_where_a_stop_id_ends_the_run_either_verdict_may_be_the_last() -> None:
    start = replace(start_of(WAVE), max_new_tokens=99)
    base = {"committed": 4.0, "accepted": 2.0, "rejected": 1.0}
    # The last of three verdicts decides nothing: 4 + 1 + 1 if it is the rejection, 4 + 1 + 4 if not.
    for ticks, expected in ((6, []), (9, []), (7, [("ticks", "WFD-12")])):
        assert named(oracle.check_totals(base | {"ticks": ticks}, start, "eos")) == expected


def test_a_verdict_on_counts_explains_itself() -> None:
    assert str(oracle.check_counts({"ticks": COUNTS.ticks}, WAVE.events)) == "exact"
    wrong = oracle.check_counts({"ticks": COUNTS.ticks + 1}, WAVE.events)
    assert str(wrong).splitlines()[1] == (
        f"ticks is {COUNTS.ticks + 1}, should be {COUNTS.ticks}; this counts the prefill (COST-01)"
    )
    assert isinstance(COUNTS, Counts)

"""Traces: what the schedules do passes, what the specification leaves free passes, one change more is named."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import oracle
from reference.figures import terminal
from reference.oracle.freedoms import Freedom
from reference.oracle.traces import TraceVerdict
from reference.oracle.verdicts import Verdict
from reference.oracle.words import describe
from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Lane, Reject, Start
from reference.stopping import FinishReason
from reference.trace import TraceFormatError, to_jsonl
from tests.driving import Case, Lap, make_ar, make_dtv, make_wfd, play, plays
from tests.strategies import cases

LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, draft_length=3, max_new_tokens=9)
"""Accepts, and rejects once with three lanes in flight behind."""
WIDE = replace(LAP, recurrence_depth=5, draft_depth=2)
"""d does not divide T."""
STOPPED = replace(LAP, max_new_tokens=20, stop_ids=frozenset({0}))
"""The wrong draft of the lap is the stop id; later the right one ends the run in a wave."""

WAVE = list(play(make_wfd, LAP).events)
ROUNDS = list(play(make_dtv, LAP).events)
ALONE = list(play(make_ar, LAP).events)


def clause(events: Sequence[Event]) -> str | None:
    """Gives the clause that a trace breaks."""
    objection = oracle.check_trace(events).objection
    return objection.clause if objection else None


def place(events: Sequence[Event], kind: type[Event], number: int = 0) -> int:
    """Gives the index of an event of a kind."""
    return [index for index, event in enumerate(events) if isinstance(event, kind)][number]


def without(events: Sequence[Event], index: int) -> list[Event]:
    return [*events[:index], *events[index + 1 :]]


def changed(events: Sequence[Event], index: int, **values: object) -> list[Event]:
    return [*events[:index], replace(events[index], **values), *events[index + 1 :]]  # type: ignore[arg-type]


def with_new(events: Sequence[Event], index: int, *new: Event) -> list[Event]:
    return [*events[:index], *new, *events[index:]]


def taken(verdict: TraceVerdict) -> set[Freedom]:
    return {one.freedom for one in verdict.freedoms}


@pytest.mark.spec("NOT-03", "CONF-07")
@given(case=cases())
def test_every_run_of_every_schedule_passes_without_a_freedom(case: Case) -> None:
    for one in plays(case):
        verdict = oracle.check_trace(to_jsonl(one.events))
        assert verdict.verdict is Verdict.EXACT, str(verdict)
        assert verdict.freedoms == ()
        assert verdict.picture() == ""


@pytest.mark.spec("NOT-03")
@given(case=cases(), data=st.data())
def test_no_event_can_be_left_out_or_doubled_but_a_draft_that_starts_nothing(case: Case, data: st.DataObject) -> None:
    for one in plays(case):
        index = data.draw(st.integers(0, len(one.events) - 1))
        event = one.events[index]
        assert oracle.check_trace(with_new(one.events, index, event)).verdict is (
            Verdict.EXACT if isinstance(event, Draft) else Verdict.WRONG
        )
        missing = oracle.check_trace(without(one.events, index))
        assert missing.verdict is Verdict.WRONG
        assert missing.objection is not None
        assert missing.objection.index >= index


@pytest.mark.spec("NOT-03")
@given(case=cases(smallest_budget=2), data=st.data())
def test_no_number_of_an_event_can_be_changed(case: Case, data: st.DataObject) -> None:
    for one in plays(case):
        index = data.draw(st.integers(1, len(one.events) - 1))
        event = one.events[index]
        name = data.draw(st.sampled_from([name for name in ("tick", "position") if hasattr(event, name)]))
        value = getattr(event, name) + data.draw(st.sampled_from([-1, 1]))
        assert oracle.check_trace(changed(one.events, index, **{name: value})).verdict is Verdict.WRONG


@given(case=cases(smallest_budget=2), data=st.data())
def test_rows_may_stand_in_any_order(case: Case, data: st.DataObject) -> None:
    for one in plays(case):
        events = [
            Advance(event.tick, tuple(data.draw(st.permutations(event.lanes)))) if isinstance(event, Advance) else event
            for event in one.events
        ]
        verdict = oracle.check_trace(events)
        assert verdict.verdict is Verdict.EXACT
        assert (Freedom.ROW_ORDER in taken(verdict)) == (events != list(one.events))


def test_a_call_may_be_split_oldest_row_first() -> None:
    index = place(WAVE, Advance, 2)
    event = WAVE[index]
    assert isinstance(event, Advance)
    parts = [Advance(event.tick, (lane,)) for lane in event.lanes]
    verdict = oracle.check_trace([*WAVE[:index], *parts, *WAVE[index + 1 :]])
    assert verdict.verdict is Verdict.EXACT
    assert taken(verdict) == {Freedom.SPLIT_CALL}
    assert clause([*WAVE[:index], *parts[:-1], *WAVE[index + 1 :]]) == "WFD-03"
    assert clause([*WAVE[:index], *parts, parts[-1], *WAVE[index + 1 :]]) == "KV-04"


@pytest.mark.spec("KV-03")
def test_a_row_that_reads_what_a_later_call_of_its_tick_writes_is_found() -> None:
    # In a wave younger rows run lower recurrences, which the older ones have written long ago.
    wave = place(WAVE, Advance, 2)
    # In a round all rows run the same one.
    rounds = next(k for k, event in enumerate(ROUNDS) if isinstance(event, Advance) and len(event.lanes) > 1)
    for events, index, expected in ((WAVE, wave, None), (ROUNDS, rounds, "KV-03")):
        event = events[index]
        assert isinstance(event, Advance)
        parts = [Advance(event.tick, (lane,)) for lane in reversed(event.lanes)]
        assert clause([*events[:index], *parts, *events[index + 1 :]]) == expected


def test_a_draft_may_be_read_out_before_the_verification_of_its_tick() -> None:
    index = next(k for k, event in enumerate(WAVE) if isinstance(event, Draft) and isinstance(WAVE[k - 1], Accept))
    commit, accept, draft, inject = WAVE[index - 2 : index + 2]
    verdict = oracle.check_trace([*WAVE[: index - 2], draft, commit, accept, inject, *WAVE[index + 2 :]])
    assert verdict.verdict is Verdict.EXACT
    assert taken(verdict) == {Freedom.READOUT_ORDER}
    assert clause([*WAVE[: index - 2], draft, inject, commit, accept, *WAVE[index + 2 :]]) == "WFD-05"


def test_a_flush_may_be_written_before_its_rejection_and_its_commit() -> None:
    index = place(WAVE, Reject) - 1
    commit, reject, flush = WAVE[index : index + 3]
    for order in ((flush, commit, reject), (commit, flush, reject)):
        assert clause([*WAVE[:index], *order, *WAVE[index + 3 :]]) is None


@pytest.mark.spec("SMP-13")
def test_the_positions_of_a_flush_may_stand_in_any_order() -> None:
    index = place(WAVE, Flush)
    event = WAVE[index]
    assert isinstance(event, Flush)
    assert clause(changed(WAVE, index, positions=event.positions[::-1])) is None
    assert clause(changed(WAVE, index, positions=event.positions[:-1])) == "SMP-13"
    assert clause(changed(WAVE, index, positions=event.positions[1:])) == "SMP-13"


def relabelled(events: Sequence[Event], **values: object) -> list[Event]:
    """Gives a trace under other parameters."""
    return changed(events, 0, **values)


@pytest.mark.parametrize("case", [LAP, WIDE, STOPPED])
def test_deeper_drafts_are_late_ones_and_none_at_all_are_withheld(case: Case) -> None:
    deeper = play(make_wfd, replace(case, draft_depth=case.draft_depth + 1)).events
    verdict = oracle.check_trace(relabelled(deeper, draft_depth=case.draft_depth))
    assert verdict.verdict is Verdict.EXACT, str(verdict)
    assert taken(verdict) == {Freedom.WITHHELD, Freedom.DELAYED}
    verdict = oracle.check_trace(relabelled(play(make_ar, case).events, decoder="wfd", draft_depth=case.draft_depth))
    assert verdict.verdict is Verdict.EXACT, str(verdict)
    assert taken(verdict) == {Freedom.WITHHELD}
    assert not any(freedom.keeps_ticks for freedom in taken(verdict))


@pytest.mark.spec("WFD-04")
def test_shallower_drafts_are_not_allowed() -> None:
    events = relabelled(WAVE, draft_depth=2)
    assert clause(events) == "WFD-04"
    verdict = oracle.check_trace(events)
    assert verdict.objection is not None
    assert verdict.objection.reason.endswith("drafted at depth 1, not d = 2")


@pytest.mark.spec("DTV-03", "DTV-04")
def test_a_round_may_draft_less_and_not_more() -> None:
    short = play(make_dtv, LAP.with_draft_length(1)).events
    verdict = oracle.check_trace(relabelled(short, draft_length=3))
    assert verdict.verdict is Verdict.EXACT, str(verdict)
    assert taken(verdict) == {Freedom.WITHHELD}
    assert clause(relabelled(ROUNDS, draft_length=2)) == "DTV-03"


@pytest.mark.spec("DTV-04", "WFD-04", "AR-01")
def test_a_readout_whose_result_is_ignored_is_free_but_not_in_ar() -> None:
    index = next(k for k, event in enumerate(WAVE) if isinstance(event, Advance) and event.lanes[0].depth == 3)
    verdict = oracle.check_trace(with_new(WAVE, index + 1, Draft(3, 1, 7)))
    assert verdict.verdict is Verdict.EXACT
    assert taken(verdict) == {Freedom.EXTRA_READOUT}
    assert clause(with_new(WAVE, index + 1, Draft(3, 9, 7))) == "WFD-05"
    assert clause(with_new(ALONE, 4, Draft(1, 1, 7))) == "AR-01"
    last_source = next(
        k for k, event in enumerate(ROUNDS) if isinstance(event, Advance) and event.lanes[0].position == 4
    )
    verdict = oracle.check_trace(with_new(ROUNDS, last_source + 1, Draft(4, 4, 7)))
    assert taken(verdict) == {Freedom.EXTRA_READOUT}
    assert clause(with_new(ROUNDS, last_source + 1, Draft(4, 2, 7))) == "DTV-04"
    assert clause(with_new(ROUNDS, last_source + 2, Draft(5, 4, 7))) == "DTV-04"


@pytest.mark.spec("DTV-04")
def test_a_round_does_not_start_a_lane_once_it_verifies() -> None:
    index = place(ROUNDS, Inject, 3)
    inject = ROUNDS[index]
    assert isinstance(inject, Inject)
    held = without(ROUNDS, index)
    upto = held[:index]
    lanes = tuple(Lane(position, position, 2) for position in (1, 2, 3))
    assert clause([*upto, Advance(4, lanes), replace(inject, tick=4)]) == "DTV-04"


@pytest.mark.spec("SMP-13")
def test_lanes_may_be_dropped_early_from_the_youngest_on() -> None:
    index = place(WAVE, Reject) - 2
    event = WAVE[index]
    assert isinstance(event, Advance)
    for positions, expected in (((7,), "SMP-13"), ((4,), "SMP-13"), ((3,), "SMP-13"), ((), "SMP-13")):
        assert clause([*WAVE[: index + 1], Flush(event.tick, positions)]) == expected
    tail = tuple(lane.position for lane in event.lanes[2:])
    commit, reject, flush, *rest = WAVE[index + 1 :]
    assert flush == Flush(event.tick, (event.lanes[1].position, *tail))
    last = Flush(event.tick, flush.positions[:1])
    verdict = oracle.check_trace([*WAVE[: index + 1], Flush(event.tick, tail), commit, reject, last, *rest])
    assert verdict.verdict is Verdict.EXACT, str(verdict)
    assert taken(verdict) == {Freedom.EARLY_FLUSH}


@pytest.mark.parametrize(
    "events,expected",
    [
        ([], "NOT-03"),
        (WAVE[1:], "NOT-03"),
        (WAVE[:1], "SMP-11"),
        (WAVE[:-1], "SMP-14"),
        (WAVE[: place(WAVE, Advance, 2)], "NOT-03"),
        ([*WAVE, WAVE[0]], "NOT-03"),
        ([*WAVE, Commit(21, 10, 0)], "SMP-14"),
        ([*WAVE, Advance(99, ())], "SMP-14"),
        (without(WAVE, 1), "SMP-11"),
        (without(WAVE, 2), "SMP-11"),
        (changed(WAVE, 1, position=2), "SMP-11"),
        (changed(WAVE, 2, token=7), "SMP-11"),
        (changed(WAVE, place(WAVE, Advance, 1), tick=3), "COST-01"),
        (without(WAVE, place(WAVE, Advance, 1)), "NOT-03"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=(Lane(1, 1, 3), Lane(2, 2, 1))), "WFD-03"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=(Lane(1, 1, 2), Lane(2, 7, 1))), "WFD-05"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=(Lane(1, 7, 2), Lane(2, 2, 1))), "SMP-13"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=(Lane(1, 1, 2), Lane(2, 2, 1), Lane(3, 3, 0))), "KV-04"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=(Lane(0, 0, 4), Lane(1, 1, 2))), "SMP-12"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=(Lane(2, 2, 1),)), "WFD-03"),
        (changed(WAVE, place(WAVE, Advance, 1), lanes=()), "WFD-03"),
        (changed(ROUNDS, place(ROUNDS, Advance, 1), lanes=(Lane(1, 1, 2), Lane(2, 2, 1))), "DTV-04"),
        (changed(ROUNDS, place(ROUNDS, Advance, 4), lanes=(Lane(1, 1, 2),)), "DTV-05"),
        (changed(ROUNDS, place(ROUNDS, Advance, 4), lanes=(Lane(4, 0, 2),)), "KV-03"),
        (changed(ALONE, place(ALONE, Advance, 1), lanes=(Lane(1, 1, 3),)), "AR-01"),
        (with_new(WAVE, 3, Advance(0, (Lane(1, 1, 1),))), "COST-01"),
        (with_new(WAVE, place(WAVE, Advance, 1), Advance(1, ())), "WFD-03"),
        (with_new(WAVE, place(WAVE, Advance, 1), Advance(1, (Lane(2, 2, 1),))), "WFD-03"),
        (with_new(WAVE, place(WAVE, Advance, 1), Commit(1, 2, 2)), "WFD-04"),
        (with_new(ROUNDS, place(ROUNDS, Advance, 5), Commit(5, 2, 2)), "DTV-05"),
        (with_new(ALONE, place(ALONE, Advance, 1), Commit(1, 2, 2)), "AR-01"),
        (changed(WAVE, place(WAVE, Commit, 1), position=3), "NOT-01"),
        (without(WAVE, place(WAVE, Commit, 1)), "SMP-12"),
        (without(without(WAVE, place(WAVE, Commit, 1)), place(WAVE, Commit, 1)), "WFD-05"),
        (without(ALONE, place(ALONE, Commit, 1)), "AR-01"),
        (without(WAVE, place(WAVE, Accept)), "SMP-12"),
        (without(WAVE, place(WAVE, Reject)), "SMP-12"),
        (changed(WAVE, place(WAVE, Reject), draft_token=5), "SMP-12"),
        (with_new(WAVE, place(WAVE, Advance, 1), Accept(1, 2)), "SMP-12"),
        (with_new(WAVE, place(WAVE, Advance, 1), Finish(1, FinishReason.EOS, (1, 2))), "SMP-14"),
        (without(WAVE, place(WAVE, Flush)), "SMP-13"),
        (changed(WAVE, place(WAVE, Inject, 1), token=7), "WFD-05"),
        (changed(WAVE, place(WAVE, Inject, 1), position=3), "WFD-05"),
        (changed(ROUNDS, place(ROUNDS, Inject, 1), token=7), "DTV-04"),
        (with_new(ALONE, place(ALONE, Advance, 1), Inject(1, 2, 2)), "AR-01"),
        (changed(WAVE, len(WAVE) - 1, reason=FinishReason.EOS), "SMP-14"),
        (changed(WAVE, len(WAVE) - 1, abandoned=(3,)), "SMP-14"),
        (relabelled(WAVE, max_new_tokens=8), "SMP-15"),
        (relabelled(WAVE, max_new_tokens=10), "SMP-14"),
        (relabelled(WAVE, stop_ids=(7,)), "SMP-14"),
        (relabelled(WAVE, context_length=9), None),
        (relabelled(WAVE, context_length=8), "SMP-15"),
        (relabelled(WAVE, decoder="ar"), "NOT-03"),
        (relabelled(WAVE, decoder="ar", draft_depth=4), "AR-01"),
        (relabelled(WAVE, decoder="beam"), "NOT-03"),
        (relabelled(WAVE, draft_length=3), "NOT-03"),
        (relabelled(WAVE, draft_depth=5), "WFD-01"),
        (relabelled(WAVE, prompt_length=0), "SMP-05"),
        (relabelled(ROUNDS, draft_length=None), "DTV-02"),
        (relabelled(ROUNDS, draft_length=0), "DTV-02"),
    ],
)
def test_what_is_wrong_is_named_by_its_clause(events: list[Event], expected: str | None) -> None:
    assert clause(events) == expected


@pytest.mark.spec("SMP-10")
def test_a_run_without_a_budget_is_its_start_and_its_finish() -> None:
    events = play(make_wfd, replace(LAP, max_new_tokens=0)).events
    assert clause(events) is None
    assert clause(events[:1]) == "SMP-14"
    assert clause([*events[:1], Commit(0, 1, 1)]) == "SMP-14"


@pytest.mark.spec("SMP-13")
def test_a_flushed_lane_that_goes_on_is_found() -> None:
    index = next(k for k in range(place(WAVE, Flush), len(WAVE)) if isinstance(WAVE[k], Advance))
    event = WAVE[index]
    assert isinstance(event, Advance)
    verdict = oracle.check_trace(changed(WAVE, index, lanes=(*event.lanes, Lane(5, 2, 2))))
    assert verdict.objection is not None
    assert verdict.objection.clause == "SMP-13"
    assert verdict.objection.reason == "position 5 advances to depth 2, but it was flushed in tick 6"


@pytest.mark.spec("SMP-12")
def test_a_finish_before_the_verdict_on_the_last_draft_is_found() -> None:
    events = list(play(make_wfd, STOPPED).events)
    accept, finish = events[-2:]
    assert isinstance(accept, Accept)
    assert clause(events) is None
    assert clause([*events[:-2], finish, accept]) == "SMP-12"


@pytest.mark.parametrize(
    "asked", [{"decoder": "dtv"}, {"recurrence_depth": 5}, {"draft_depth": 2}, {"draft_length": 3}], ids=str
)
def test_a_trace_must_be_one_of_what_was_asked_for(asked: dict[str, object]) -> None:
    verdict = oracle.check_trace(WAVE, **asked)  # type: ignore[arg-type]
    assert verdict.objection is not None
    assert (verdict.objection.index, verdict.objection.clause) == (0, "NOT-03")
    assert oracle.check_trace(WAVE, decoder="wfd", recurrence_depth=4, draft_depth=1).verdict is Verdict.EXACT


def test_a_line_that_cannot_be_read_cannot_be_judged() -> None:
    with pytest.raises(TraceFormatError, match="line 2"):
        oracle.check_trace(to_jsonl(WAVE[:1]) + json.dumps({"event": "comit"}))


def test_a_verdict_explains_itself_with_a_picture() -> None:
    index = place(WAVE, Reject) + 2
    inject = WAVE[index]
    assert isinstance(inject, Inject)
    verdict = oracle.check_trace(changed(WAVE, index, position=inject.position + 1))
    assert str(verdict).splitlines() == [
        f"wrong: {len(WAVE)} events",
        (
            f"event {index}: lane at position 5 with token 4 where lane at position 4 with token 4 "
            "follows from the commit (SMP-13)"
        ),
        "",
        "tick 6: 3 flushed",
        "  3  4  5  6  7  8  9",
        "1 ▪  ✕  ✕  ✕  ·  ·  ·",
        "2 ▪  ✕  ✕  ·  ·  ·  ·",
        "3 ▪  ✕  ·  ·  ·  ·  ·",
        "4 ■  ·  ·  ·  ·  ·  ·",
    ]
    assert "x" in verdict.explanation(terminal.ASCII)
    assert verdict.explanation(terminal.ASCII).isascii()
    assert oracle.check_trace(WAVE[1:]).picture() == ""


def test_a_verdict_names_the_freedoms_taken() -> None:
    verdict = oracle.check_trace(relabelled(play(make_ar, LAP).events, decoder="wfd", draft_depth=1))
    assert str(verdict).splitlines()[1] == f"from event 4 on: {Freedom.WITHHELD.value}"


def test_every_event_has_words() -> None:
    assert {describe(event).split()[0] for event in (*WAVE, *ROUNDS)} == {
        "start",
        "advance",
        "draft",
        "commit",
        "acceptance",
        "rejection",
        "flush",
        "lane",
        "finish,",
    }
    assert isinstance(WAVE[0], Start)

"""What a verification and a draft do, case by case."""

from dataclasses import FrozenInstanceError

import pytest

from reference.ar import AR
from reference.errors import ParameterError
from reference.schedule import (
    Accept,
    Advance,
    Commit,
    Draft,
    Finish,
    Flush,
    Inject,
    Lane,
    Purpose,
    Readout,
    Reject,
    Start,
    State,
    Tick,
    begin,
    check_draft_depth,
    default_draft_depth,
    inject_draft,
    interpret,
    verify_oldest,
)
from reference.stopping import FinishReason, Stopping

LIMITS = Stopping(prompt_length=1, max_new_tokens=9, context_length=64, stop_ids=frozenset({7}))
OLDEST, NEXT, LAST = Lane(4, 1, 4), Lane(5, 2, 3), Lane(6, 3, 2)
FLYING = State(5, (OLDEST, NEXT, LAST), ticks=20)


@pytest.mark.spec("SMP-12")
def test_a_right_draft_is_accepted_and_keeps_its_depth() -> None:
    after, events = verify_oldest(FLYING, 2, LIMITS)
    assert after == State(6, (NEXT, LAST), 20)
    assert events == (Commit(20, 5, 2), Accept(20, 5))


@pytest.mark.spec("SMP-13")
def test_a_wrong_draft_is_flushed_with_all_behind_it_and_the_right_token_starts_anew() -> None:
    after, events = verify_oldest(FLYING, 6, LIMITS)
    assert after == State(6, (Lane(5, 6, 0),), 20)
    assert events == (
        Commit(20, 5, 6),
        Reject(20, 5, draft_token=2, verified_token=6),
        Flush(20, (5, 6)),
        Inject(20, 5, 6),
    )


@pytest.mark.spec("SMP-13")
def test_without_a_next_lane_the_token_starts_a_lane_and_nothing_is_judged() -> None:
    after, events = verify_oldest(State(5, (OLDEST,), 20), 2, LIMITS)
    assert after == State(6, (Lane(5, 2, 0),), 20)
    assert events == (Commit(20, 5, 2), Inject(20, 5, 2))


@pytest.mark.spec("SMP-12", "SMP-14")
def test_a_right_draft_of_a_stop_id_counts_and_the_lanes_left_are_abandoned() -> None:
    state = State(5, (OLDEST, Lane(5, 7, 3), LAST), 20)
    after, events = verify_oldest(state, 7, LIMITS)
    assert after == State(6, (), 20, FinishReason.EOS)
    assert events == (Commit(20, 5, 7), Accept(20, 5), Finish(20, FinishReason.EOS, (5, 6)))


@pytest.mark.spec("SMP-13", "SMP-14")
def test_a_rejection_that_finishes_flushes_and_abandons_nothing() -> None:
    after, events = verify_oldest(FLYING, 7, LIMITS)
    assert after == State(6, (), 20, FinishReason.EOS)
    assert [type(event) for event in events] == [Commit, Reject, Flush, Finish]
    assert events[-1] == Finish(20, FinishReason.EOS, ())


@pytest.mark.spec("SMP-14")
def test_a_stop_id_that_is_only_drafted_ends_nothing() -> None:
    after, _ = verify_oldest(State(5, (OLDEST, Lane(5, 7, 3)), 20), 2, LIMITS)
    assert after.finish_reason is None
    after, events = inject_draft(State(5, (OLDEST,), 20), OLDEST, 7)
    assert after.finish_reason is None
    assert events == (Draft(20, 4, 7), Inject(20, 5, 7))


@pytest.mark.spec("WFD-05")
def test_a_draft_starts_a_lane_behind_its_source_at_depth_0() -> None:
    after, events = inject_draft(FLYING, LAST, 5)
    assert after == State(5, (OLDEST, NEXT, LAST, Lane(7, 5, 0)), 20)
    assert events == (Draft(20, 6, 5), Inject(20, 7, 5))


@pytest.mark.spec("WFD-05", "NOT-03")
def test_a_readout_whose_lane_is_gone_leaves_no_event() -> None:
    state = State(5, (Lane(4, 1, 3), Lane(5, 2, 1)), 20)
    tick = Tick(state.lanes, (Readout(Lane(4, 1, 4), Purpose.VERIFY), Readout(Lane(5, 2, 2), Purpose.DRAFT)))
    after, events = interpret(state, tick, (6, 6), LIMITS)
    assert after == State(6, (Lane(5, 6, 0),), 21)
    assert [type(event) for event in events] == [Advance, Commit, Reject, Flush, Inject]


@pytest.mark.spec("NOT-02")
def test_as_many_tokens_as_readouts_are_expected() -> None:
    state = State(5, (Lane(4, 1, 3),), 20)
    with pytest.raises(ValueError, match="zip"):
        interpret(state, Tick(state.lanes, (Readout(OLDEST, Purpose.VERIFY),)), (), LIMITS)


@pytest.mark.spec("NOT-02")
def test_states_lanes_and_ticks_are_frozen() -> None:
    for value, field in ((FLYING, "frontier"), (OLDEST, "depth"), (Tick((), ()), "lanes"), (Commit(1, 1, 1), "token")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field, 0)


@pytest.mark.spec("SMP-10", "SMP-11", "NOT-03")
def test_a_sequence_begins_with_its_parameters_and_its_first_token() -> None:
    schedule = AR(recurrence_depth=4, stopping=LIMITS)
    state, events = begin(schedule, 3)
    assert state == State(2, (Lane(1, 3, 0),))
    assert events[1:] == (Commit(0, 1, 3), Inject(0, 1, 3))
    assert events[0] == Start(
        decoder="ar",
        recurrence_depth=4,
        draft_depth=4,
        draft_length=None,
        prompt_length=1,
        max_new_tokens=9,
        context_length=64,
        stop_ids=(7,),
    )


@pytest.mark.spec("SMP-14")
def test_a_stop_id_as_the_first_token_ends_the_run_at_tick_0() -> None:
    state, events = begin(AR(recurrence_depth=4, stopping=LIMITS), 7)
    assert state == State(2, (), 0, FinishReason.EOS)
    assert events[1:] == (Commit(0, 1, 7), Finish(0, FinishReason.EOS, ()))


@pytest.mark.spec("SMP-10")
def test_a_budget_of_0_needs_no_first_token_and_any_other_does() -> None:
    empty = Stopping(prompt_length=1, max_new_tokens=0, context_length=64)
    state, events = begin(AR(recurrence_depth=4, stopping=empty), None)
    assert state == State(1, (), 0, FinishReason.LENGTH)
    assert events[1:] == (Finish(0, FinishReason.LENGTH, ()),)
    with pytest.raises(AssertionError, match="needs no first token"):
        begin(AR(recurrence_depth=4, stopping=LIMITS), None)


@pytest.mark.spec("MOD-01", "WFD-01", "NOT-04")
@pytest.mark.parametrize(
    "draft_depth,recurrence_depth,message",
    [
        (5, 4, "draft_depth=5 exceeds recurrence_depth=4 (WFD-01)"),
        (0, 4, "draft_depth=0 is below 1 (WFD-01)"),
        (True, 4, "draft_depth=True is not a whole number (WFD-01)"),
        (1, 0, "recurrence_depth=0 is below 1 (MOD-01)"),
    ],
)
def test_a_draft_depth_outside_1_to_t_is_refused(draft_depth: int, recurrence_depth: int, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check_draft_depth(draft_depth, recurrence_depth, clause="WFD-01")
    assert str(caught.value) == message


@pytest.mark.spec("WFD-01")
def test_every_draft_depth_from_1_to_t_is_allowed() -> None:
    for draft_depth in range(1, 5):
        check_draft_depth(draft_depth, 4, clause="WFD-01")


@pytest.mark.parametrize("recurrence_depth,draft_depth", [(1, 1), (4, 1), (8, 1), (15, 1), (16, 2), (32, 4)])
def test_by_default_an_eighth_of_the_depth_drafts_and_at_least_1(recurrence_depth: int, draft_depth: int) -> None:
    assert default_draft_depth(recurrence_depth) == draft_depth

"""Laws of every decoder: right tokens, one order of events, verdicts that follow from the tokens."""

from dataclasses import FrozenInstanceError, replace

import pytest

from reference.counts import count
from reference.schedule import (
    Accept,
    Advance,
    Commit,
    Draft,
    Event,
    Finish,
    Flush,
    Inject,
    Lane,
    Purpose,
    Reject,
    Start,
    State,
    begin,
)
from reference.stopping import FinishReason
from reference.wfd import WFD
from tests import naive
from tests.driving import Case, Play, finish_of, lanes_left, make_ar, play


def commits_the_right_tokens(run: Play) -> None:
    """Tokens and finish reason are those of one full-depth token after the other (DTV-07, WFD-11)."""
    tokens, reason = naive.answer(run.case)
    assert run.token_ids == tokens
    assert run.finish_reason == reason


def frontier_grows_by_one_per_commit(run: Play) -> None:
    """The frontier counts final tokens, never falls and never passes the end (NOT-01)."""
    frontier, end = len(run.case.prompt), run.case.end
    assert run.schedule.stopping.end == end
    for event in run.events:
        if isinstance(event, Commit):
            assert event.position == frontier < end
            frontier += 1
    assert run.states[-1].frontier == frontier <= end
    committed = len([event for event in run.opening if isinstance(event, Commit)])
    for step in run.steps:
        assert step.before.frontier == len(run.case.prompt) + committed
        committed += len([event for event in step.events if isinstance(event, Commit)])
        assert step.after.frontier == len(run.case.prompt) + committed


def oldest_lane_carries_the_last_final_token(run: Play) -> None:
    """Lanes sit at consecutive positions from F - 1 on; the oldest carries a final token (NOT-01)."""
    for state in run.states:
        positions = [lane.position for lane in state.lanes]
        assert positions == list(range(state.frontier - 1, state.frontier - 1 + len(positions)))
        if state.finish_reason is None:
            oldest = state.lanes[0]
            assert oldest.token == run.sequence[oldest.position]
            assert 0 <= oldest.depth < run.schedule.recurrence_depth
        else:
            assert state.lanes == ()


def planning_and_observing_are_pure(run: Play) -> None:
    """Equal arguments give equal results, and a state cannot be changed (NOT-02)."""
    for step in run.steps:
        copy = replace(step.before)
        assert run.schedule.plan(copy) == step.tick
        assert run.schedule.observe(copy, step.tokens) == (step.after, step.events)
        assert step.before == copy
    with pytest.raises(FrozenInstanceError):
        run.first.frontier = 0  # type: ignore[misc]


def events_come_in_order(run: Play) -> None:
    """A run is `Start`, tick after tick, `Finish`; within a tick `Advance`, then verdicts, oldest first (NOT-03)."""
    assert isinstance(run.events[0], Start)
    assert [event for event in run.events if isinstance(event, Start)] == [run.events[0]]
    assert finish_of(run.events) is run.events[-1]
    for number, step in enumerate(run.steps, start=1):
        advance, *news = step.events
        assert advance == Advance(number, tuple(lane.advanced() for lane in step.tick.lanes))
        assert step.after.ticks == number
        assert all(event.tick == number for event in step.events if not isinstance(event, Start))
        _check_order(news)
    assert all(event.tick == 0 for event in run.opening if not isinstance(event, Start))
    _check_order(list(run.opening[1:]))


def _check_order(news: list[Event]) -> None:
    """Holds that the events behind `Advance` are verifications, then at most one draft."""
    names = " ".join(type(event).__name__ for event in news)
    waiting = news
    positions = []
    while waiting and isinstance(waiting[0], Commit):
        positions.append(waiting[0].position)
        size = 1
        if waiting[size : size + 1] and isinstance(waiting[size], Accept | Reject):
            assert not isinstance(waiting[size], Reject) or isinstance(waiting[size + 1], Flush), names
            size += 2 if isinstance(waiting[size], Reject) else 1
        if waiting[size : size + 1] and isinstance(waiting[size], Finish | Inject):
            size += 1
        waiting = waiting[size:]
    assert positions == sorted(positions), names
    if waiting and isinstance(waiting[0], Draft):
        assert isinstance(waiting[1], Inject), names
        waiting = waiting[2:]
    if waiting and not positions:  # a budget of 0 finishes without a commit
        assert isinstance(waiting.pop(0), Finish), names
    assert waiting == [], names


def start_tells_the_parameters(run: Play) -> None:
    """The first event holds what determines the schedule (NOT-03)."""
    case, schedule = run.case, run.schedule
    assert run.events[0] == Start(
        decoder=schedule.name,
        recurrence_depth=case.recurrence_depth,
        draft_depth=case.recurrence_depth if schedule.name == "ar" else case.draft_depth,
        draft_length=case.draft_length if schedule.name == "dtv" else None,
        prompt_length=len(case.prompt),
        max_new_tokens=case.max_new_tokens,
        context_length=case.context_length,
        stop_ids=tuple(sorted(case.stop_ids)),
    )


def nothing_follows_the_stop(run: Play) -> None:
    """A stop id is only ever the last token; without one there are exactly `end - P` tokens (SMP-14)."""
    *others, last = run.token_ids or (-1,)
    assert not run.case.stop_ids.intersection(others)
    if last not in run.case.stop_ids:
        assert len(run.token_ids) == run.case.end - len(run.case.prompt)
    finish = finish_of(run.events)
    assert finish.reason == run.finish_reason
    assert (finish.reason == "eos") == (last in run.case.stop_ids)


def every_verdict_follows_from_the_tokens(run: Play) -> None:
    """Commit, judge, flush, finish, restart: a second reading of SMP-12 to SMP-14, from states and tokens alone."""
    for step in run.steps:
        lanes, frontier, reason = lanes_left(step), step.before.frontier, None
        expected: list[Event] = []
        for readout, token in zip(step.tick.readouts, step.tokens, strict=True):
            if reason is not None or readout.lane not in lanes:
                continue
            if readout.purpose is Purpose.DRAFT:
                lanes, news = _as_drafted(lanes, readout.lane, token, step.after.ticks)
            else:
                assert readout.lane == lanes[0]
                frontier += 1
                reason = _reason(run.case, token, frontier)
                lanes, news = _as_verified(lanes[1:], token, reason, Commit(step.after.ticks, frontier - 1, token))
            expected += news
        assert list(step.events[1:]) == expected
        assert step.after == State(frontier, lanes, step.before.ticks + 1, reason)


def _as_drafted(lanes: tuple[Lane, ...], source: Lane, token: int, tick: int) -> tuple[tuple[Lane, ...], list[Event]]:
    """Gives lanes and events after a draft: the source is the youngest, a lane starts behind it (WFD-05, DTV-04)."""
    assert source == lanes[-1]
    position = source.position + 1
    return (*lanes, Lane(position, token, 0)), [Draft(tick, source.position, token), Inject(tick, position, token)]


def _reason(case: Case, token: int, frontier: int) -> FinishReason | None:
    """Gives the reason to finish once `token` is committed below `frontier` (SMP-14)."""
    if token in case.stop_ids:
        return FinishReason.EOS
    if frontier - len(case.prompt) == case.max_new_tokens:
        return FinishReason.LENGTH
    return FinishReason.CONTEXT if frontier == case.context_length + 1 else None


def _as_verified(
    behind: tuple[Lane, ...], token: int, reason: FinishReason | None, commit: Commit
) -> tuple[tuple[Lane, ...], list[Event]]:
    """Gives lanes and events after a verification: judge, flush, then finish or restart (SMP-12 to SMP-14)."""
    tick, position = commit.tick, commit.position
    news: list[Event] = [commit]
    if behind and behind[0].token == token:
        news.append(Accept(tick, position))
    elif behind:
        news.append(Reject(tick, position, draft_token=behind[0].token, verified_token=token))
        news.append(Flush(tick, tuple(lane.position for lane in behind)))
        behind = ()
    if reason is not None:
        return (), [*news, Finish(tick, reason, tuple(lane.position for lane in behind))]
    if not behind:
        return (Lane(position, token, 0),), [*news, Inject(tick, position, token)]
    return behind, news


def prefill_commits_the_first_token(run: Play) -> None:
    """Tick 0 commits the token after the prompt and starts its lane, unless it ends the run (SMP-10, SMP-11)."""
    start = len(run.case.prompt)
    if run.case.max_new_tokens == 0:
        assert run.first == State(start, (), 0, run.first.finish_reason)
        assert run.first.finish_reason == "length"
        assert [type(event) for event in run.events] == [Start, Finish]
        return
    token = run.case.table.verified(run.case.prompt)
    assert run.opening[1] == Commit(0, start, token)
    if run.finish_reason is not None and not run.steps:
        assert [type(event) for event in run.events] == [Start, Commit, Finish]
    else:
        assert run.opening[2:] == (Inject(0, start, token),)
        assert run.first == State(start + 1, (Lane(start, token, 0),))


def no_lane_is_futile(run: Play) -> None:
    """A lane starts, and a draft is read out, only if what the lane predicts can still be committed (SMP-15)."""
    end = run.case.end
    assert all(event.position + 1 < end for event in run.of(Inject))
    for step in run.steps:
        for readout in step.tick.readouts:
            assert readout.purpose is not Purpose.DRAFT or readout.lane.position + 2 < end


def drafts_are_read_out_for_drafts(run: Play) -> None:
    """A readout's purpose follows from its depth: T verifies, d drafts, and nothing else is read out."""
    for step in run.steps:
        for readout in step.tick.readouts:
            assert readout.lane in {lane.advanced() for lane in step.tick.lanes}
            is_full = readout.lane.depth == run.case.recurrence_depth
            assert readout.purpose is (Purpose.VERIFY if is_full else Purpose.DRAFT)
            assert is_full or readout.lane.depth == run.case.draft_depth


def every_advanced_lane_gains_exactly_one(run: Play) -> None:
    """A lane that advances gains 1, one that waits gains nothing, a new one starts at 0 (WFD-03)."""
    for step in run.steps:
        expected = {(lane.position, lane.token): lane.depth for lane in lanes_left(step)}
        for lane in step.after.lanes:
            if Inject(step.after.ticks, lane.position, lane.token) in step.events:
                assert lane.depth == 0
            else:
                assert lane.depth == expected[lane.position, lane.token]
        assert set(step.tick.lanes) <= set(step.before.lanes)
        assert step.tick.lanes
        if isinstance(run.schedule, WFD):
            assert step.tick.lanes == step.before.lanes


def ticks_are_those_of_a_plain_loop(run: Play) -> None:
    """Every token is final at the tick that an independent loop computes (AR-02, DTV-08, WFD-12). Steady drafts."""
    expected = getattr(naive, run.schedule.name)(run.case)
    assert run.token_ids == expected.token_ids
    assert run.commit_ticks == expected.commit_ticks
    assert run.ticks == expected.ticks


def full_draft_depth_is_ar(run: Play) -> None:
    """With d = T the decoder is AR, event for event but for the parameters in `Start` (DTV-03, WFD-06)."""
    if run.case.draft_depth == run.case.recurrence_depth:
        reference = play(make_ar, run.case)
        assert run.events[1:] == reference.events[1:]
        assert [step.tick for step in run.steps] == [step.tick for step in reference.steps]
        assert run.states == reference.states
        assert count(run.events) == count(reference.events)


def replay_gives_the_same_events(run: Play) -> None:
    """The tokens of the readouts determine everything that happens (CONF-07)."""
    state, events = begin(run.schedule, run.token_ids[0] if run.token_ids else None)
    for step in run.steps:
        state, news = run.schedule.observe(state, step.tokens)
        events += news
    assert events == run.events
    assert state == run.states[-1]

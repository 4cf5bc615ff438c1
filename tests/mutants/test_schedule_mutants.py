"""Schedules with one fault each. For every one hypothesis finds a case in which the law named beside it breaks.

Cases and laws are those of the property tests, so a mutant that no longer breaks its law is a law gone blind.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest
from hypothesis import find

from reference import schedule
from reference.dtv import DtV
from reference.schedule import (
    Accept,
    Commit,
    Event,
    Events,
    Finish,
    Flush,
    Inject,
    Lane,
    Purpose,
    Readout,
    Reject,
    State,
    Tick,
)
from reference.stopping import FinishReason, Stopping
from reference.wfd import WFD
from tests.driving import MAKERS, Case, play
from tests.laws import Law, common, counting, rounds, wavefront
from tests.strategies import SEARCH, cases

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]

verify_oldest = schedule.verify_oldest
interpret = schedule.interpret


def flushes_one_lane_too_few(patch: pytest.MonkeyPatch) -> None:
    """The youngest lane survives a rejection."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        after, events = verify_oldest(state, token, stopping)
        if any(isinstance(event, Flush) for event in events) and after.lanes and len(state.lanes) > 2:
            after = replace(after, lanes=(*after.lanes, state.lanes[-1]))
            events = tuple(
                Flush(event.tick, event.positions[:-1]) if isinstance(event, Flush) else event for event in events
            )
        return after, events

    patch.setattr(schedule, "verify_oldest", wrong)


def keeps_the_depth_of_the_rejected_lane(patch: pytest.MonkeyPatch) -> None:
    """The verified token goes on where the rejected one was, with stale states and cells."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        after, events = verify_oldest(state, token, stopping)
        if any(isinstance(event, Reject) for event in events) and after.lanes:
            after = replace(after, lanes=(replace(after.lanes[0], depth=state.lanes[1].depth),))
        return after, events

    patch.setattr(schedule, "verify_oldest", wrong)


def does_not_check_the_first_draft(patch: pytest.MonkeyPatch) -> None:
    """The lane behind the prompt's own is accepted whatever it carries."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        if state.frontier == stopping.prompt_length + 1 and len(state.lanes) > 1:
            token = state.lanes[1].token
        return verify_oldest(state, token, stopping)

    patch.setattr(schedule, "verify_oldest", wrong)


def accepts_a_wrong_draft_but_commits_the_right_token(patch: pytest.MonkeyPatch) -> None:
    """The text is right at this position and wrong from the next one on."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        after, events = verify_oldest(state, token, stopping)
        if after.finish_reason is None and len(state.lanes) > 1:
            after = replace(after, lanes=state.lanes[1:])
            events = (events[0], Accept(state.ticks, state.frontier))
        return after, events

    patch.setattr(schedule, "verify_oldest", wrong)


def misses_a_stop_id_inside_the_wave(patch: pytest.MonkeyPatch) -> None:
    """A stop id ends the text only where no lane is left behind it."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        if len(state.lanes) > 2:
            stopping = replace(stopping, stop_ids=frozenset())
        return verify_oldest(state, token, stopping)

    patch.setattr(schedule, "verify_oldest", wrong)


def stops_at_a_drafted_stop_id(patch: pytest.MonkeyPatch) -> None:
    """A stop id that was only drafted ends the text when it is rejected."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        if len(state.lanes) > 1 and state.lanes[1].token in stopping.stop_ids:
            token = state.lanes[1].token
        return verify_oldest(state, token, stopping)

    patch.setattr(schedule, "verify_oldest", wrong)


def judges_after_the_stop_rule(patch: pytest.MonkeyPatch) -> None:
    """A correctly drafted stop id is not counted."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        after, events = verify_oldest(state, token, stopping)
        if after.finish_reason is not None:
            events = tuple(event for event in events if not isinstance(event, Accept))
        return after, events

    patch.setattr(schedule, "verify_oldest", wrong)


def calls_the_end_of_the_context_the_budget(patch: pytest.MonkeyPatch) -> None:
    """The reason is `length` wherever the run ends."""
    patch.setattr(Stopping, "reason_of_end", lambda _: FinishReason.LENGTH)


def stops_one_token_early(patch: pytest.MonkeyPatch) -> None:
    """The budget is off by one."""
    patch.setattr(Stopping, "reason_at", _reason_at(one_less=True))


def checks_the_end_before_the_stop_ids(patch: pytest.MonkeyPatch) -> None:
    """A stop id at the last place gives `length`."""
    patch.setattr(Stopping, "reason_at", _reason_at(one_less=False))


def _reason_at(*, one_less: bool) -> Callable[[Stopping, int, int], FinishReason | None]:
    def wrong(limits: Stopping, frontier: int, last_token: int) -> FinishReason | None:
        if frontier >= limits.end - one_less:
            return limits.reason_of_end()
        return FinishReason.EOS if last_token in limits.stop_ids else None

    return wrong


def injects_past_the_end(patch: pytest.MonkeyPatch) -> None:
    """A lane starts although nothing it predicts can be committed."""
    patch.setattr(Stopping, "may_inject", lambda _limits, _position: True)


def starts_a_lane_behind_a_flushed_one(patch: pytest.MonkeyPatch) -> None:
    """The draft of a tick that also rejects is carried out all the same."""

    def wrong(state: State, tick: Tick, tokens: tuple[int, ...], stopping: Stopping) -> tuple[State, Events]:
        after, events = interpret(state, tick, tokens, stopping)
        purposes = [readout.purpose for readout in tick.readouts]
        if purposes == [Purpose.VERIFY, Purpose.DRAFT] and any(isinstance(event, Reject) for event in events):
            after, news = schedule.inject_draft(after, tick.readouts[1].lane, tokens[1])
            events += news
        return after, events

    patch.setattr("reference.wfd.interpret", wrong)


def loses_the_bonus_token(patch: pytest.MonkeyPatch) -> None:
    """After a fully accepted round the last source is not verified but starts again."""

    def wrong(state: State, tick: Tick, tokens: tuple[int, ...], stopping: Stopping) -> tuple[State, Events]:
        after, events = interpret(state, tick, tokens, stopping)
        is_whole = not any(isinstance(event, Reject | Finish) for event in events)
        if len(state.lanes) > 1 and is_whole and isinstance(events[-1], Inject):
            last = state.lanes[-1]
            after = State(after.frontier - 1, (Lane(last.position, last.token, 0),), after.ticks)
            events = (*events[:-2], Inject(after.ticks, last.position, last.token))
        return after, events

    patch.setattr("reference.dtv.interpret", wrong)


def emits_the_bonus_token_twice(patch: pytest.MonkeyPatch) -> None:
    """After a fully accepted round the bonus token is committed and committed again."""

    def wrong(state: State, tick: Tick, tokens: tuple[int, ...], stopping: Stopping) -> tuple[State, Events]:
        after, events = interpret(state, tick, tokens, stopping)
        is_whole = not any(isinstance(event, Reject | Finish) for event in events)
        if len(state.lanes) > 1 and is_whole and isinstance(events[-1], Inject):
            after, news = verify_oldest(State(after.frontier, (Lane(0, 0, 0),), after.ticks), tokens[-1], stopping)
            events = (*events[:-1], *news)
        return after, events

    patch.setattr("reference.dtv.interpret", wrong)


def drafts_one_recurrence_early(patch: pytest.MonkeyPatch) -> None:
    """The youngest lane is read out at d - 1."""
    plan = WFD.plan

    def wrong(self: WFD, state: State) -> Tick:
        return plan(replace(self, draft_depth=max(1, self.draft_depth - 1)), state)

    patch.setattr(WFD, "plan", wrong)


def verifies_one_recurrence_early(patch: pytest.MonkeyPatch) -> None:
    """The oldest lane is read out at T - 1, or at 1 at least."""

    def wrong(self: WFD, state: State) -> Tick:
        after = [lane.advanced() for lane in state.lanes]
        due = after[0].depth >= max(1, self.recurrence_depth - 1)
        return Tick(state.lanes, (Readout(after[0], Purpose.VERIFY),) if due else ())

    patch.setattr(WFD, "plan", wrong)


def holds_the_youngest_lane_back_while_verifying(patch: pytest.MonkeyPatch) -> None:
    """In a tick that verifies, the youngest lane does not advance."""
    plan = WFD.plan

    def wrong(self: WFD, state: State) -> Tick:
        tick = plan(self, state)
        if len(tick.lanes) > 1 and tick.readouts and tick.readouts[0].purpose is Purpose.VERIFY:
            return Tick(tick.lanes[:-1], tick.readouts[:1])
        return tick

    patch.setattr(WFD, "plan", wrong)


def waits_for_the_verdict_before_it_drafts_on(patch: pytest.MonkeyPatch) -> None:
    """At most two lanes are ever in flight."""
    plan = WFD.plan

    def wrong(self: WFD, state: State) -> Tick:
        tick = plan(self, state)
        kept = tuple(it for it in tick.readouts if it.purpose is Purpose.VERIFY or len(state.lanes) < 2)
        return Tick(tick.lanes, kept)

    patch.setattr(WFD, "plan", wrong)


def drafts_once_too_often_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """The last round drafts as many tokens as are wanted, instead of one fewer."""

    def wrong(self: DtV, state: State) -> int:
        return (
            min(self.draft_length, self.stopping.end - state.frontier)
            if self.draft_depth < self.recurrence_depth
            else 0
        )

    patch.setattr(DtV, "num_drafts", wrong)


def ignores_the_draft_length(patch: pytest.MonkeyPatch) -> None:
    """A round drafts all that is wanted."""

    def wrong(self: DtV, state: State) -> int:
        return self.stopping.end - state.frontier - 1 if self.draft_depth < self.recurrence_depth else 0

    patch.setattr(DtV, "num_drafts", wrong)


def repeats_the_draft_recurrences(patch: pytest.MonkeyPatch) -> None:
    """Verification starts from depth 0 instead of going on from d."""

    def wrong(state: State, tick: Tick, tokens: tuple[int, ...], stopping: Stopping) -> tuple[State, Events]:
        after, events = interpret(state, tick, tokens, stopping)
        if len(after.lanes) > 1 and len(tick.lanes) == 1 and len({lane.depth for lane in after.lanes}) == 1:
            after = replace(after, lanes=tuple(replace(lane, depth=lane.depth - 1) for lane in after.lanes))
        return after, events

    patch.setattr("reference.dtv.interpret", wrong)


def remembers_the_last_run(patch: pytest.MonkeyPatch) -> None:
    """Half of the verifications are answered with what was verified before."""
    memory: list[int] = []

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        memory.append(token)
        return verify_oldest(state, memory[-2] if len(memory) % 2 == 0 else token, stopping)

    patch.setattr(schedule, "verify_oldest", wrong)


def reports_a_flush_before_its_rejection(patch: pytest.MonkeyPatch) -> None:
    """The events of a rejection are swapped."""

    def wrong(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
        after, events = verify_oldest(state, token, stopping)
        order: dict[type[Event], int] = {Commit: 0, Flush: 1}
        return after, tuple(sorted(events, key=lambda event: order.get(type(event), 2)))

    patch.setattr(schedule, "verify_oldest", wrong)


MUTANTS = [
    (flushes_one_lane_too_few, "wfd", wavefront.wavefront_is_spaced),
    (flushes_one_lane_too_few, "wfd", common.commits_the_right_tokens),
    (keeps_the_depth_of_the_rejected_lane, "wfd", common.every_advanced_lane_gains_exactly_one),
    (keeps_the_depth_of_the_rejected_lane, "wfd", wavefront.wavefront_takes_exactly_its_ticks),
    (does_not_check_the_first_draft, "wfd", common.commits_the_right_tokens),
    (does_not_check_the_first_draft, "dtv", common.commits_the_right_tokens),
    (accepts_a_wrong_draft_but_commits_the_right_token, "wfd", common.oldest_lane_carries_the_last_final_token),
    (misses_a_stop_id_inside_the_wave, "wfd", common.nothing_follows_the_stop),
    (misses_a_stop_id_inside_the_wave, "dtv", common.nothing_follows_the_stop),
    (stops_at_a_drafted_stop_id, "wfd", common.commits_the_right_tokens),
    (judges_after_the_stop_rule, "wfd", wavefront.wavefront_takes_exactly_its_ticks),
    (judges_after_the_stop_rule, "dtv", common.every_verdict_follows_from_the_tokens),
    (calls_the_end_of_the_context_the_budget, "ar", common.commits_the_right_tokens),
    (stops_one_token_early, "ar", common.nothing_follows_the_stop),
    (checks_the_end_before_the_stop_ids, "ar", common.nothing_follows_the_stop),
    (injects_past_the_end, "wfd", common.no_lane_is_futile),
    (injects_past_the_end, "wfd", wavefront.wavefront_takes_exactly_its_ticks),
    (starts_a_lane_behind_a_flushed_one, "wfd", wavefront.wavefront_is_spaced),
    (starts_a_lane_behind_a_flushed_one, "wfd", counting.lanes_are_conserved),
    (loses_the_bonus_token, "dtv", rounds.rounds_have_their_shape),
    (loses_the_bonus_token, "dtv", common.ticks_are_those_of_a_plain_loop),
    (emits_the_bonus_token_twice, "dtv", common.commits_the_right_tokens),
    (drafts_one_recurrence_early, "wfd", wavefront.wavefront_reads_out_what_is_due),
    (drafts_one_recurrence_early, "wfd", wavefront.wavefront_is_bounded),
    (drafts_one_recurrence_early, "wfd", wavefront.flushes_are_bounded),
    (verifies_one_recurrence_early, "wfd", wavefront.wavefront_commits_every_few_ticks),
    (holds_the_youngest_lane_back_while_verifying, "wfd", common.every_advanced_lane_gains_exactly_one),
    (waits_for_the_verdict_before_it_drafts_on, "wfd", common.ticks_are_those_of_a_plain_loop),
    (drafts_once_too_often_at_the_end, "dtv", common.no_lane_is_futile),
    (ignores_the_draft_length, "dtv", rounds.every_round_commits),
    (repeats_the_draft_recurrences, "dtv", common.every_advanced_lane_gains_exactly_one),
    (repeats_the_draft_recurrences, "dtv", rounds.rounds_have_their_shape),
    (remembers_the_last_run, "wfd", common.replay_gives_the_same_events),
    (remembers_the_last_run, "ar", common.planning_and_observing_are_pure),
    (reports_a_flush_before_its_rejection, "wfd", common.events_come_in_order),
]
"""The fault, the decoder that has it, the law that catches it."""


def breaks(law: Law, decoder: str, case: Case) -> bool:
    """Tells whether a law fails in a case."""
    try:
        law(play(MAKERS[decoder], case))
    except (AssertionError, ValueError, KeyError, IndexError):
        return True
    return False


@pytest.mark.parametrize("plant,decoder,law", MUTANTS)
def test_the_law_catches_the_mutant(plant: Plant, decoder: str, law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        plant(patch)
        case = find(cases(), lambda case: breaks(law, decoder, case), settings=SEARCH)
    law(play(MAKERS[decoder], case))

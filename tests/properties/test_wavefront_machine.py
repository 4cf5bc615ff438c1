"""WFD as a state machine: hypothesis answers every draft when it is due, against the text that AR would write.

The other laws run a case whose answers are fixed beforehand. Here each tick is a step of its own, drafts are whatever
hypothesis says at that moment, and a failure shrinks to the few ticks that it takes.
"""

from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from reference.schedule import Accept, Purpose, Readout, Reject, begin
from tests import naive
from tests.driving import Case, Lap, Play, Step, committed, make_wfd, take_tick
from tests.laws import Law, common, counting, wavefront
from tests.mutants import test_schedule_mutants as mutants
from tests.strategies import SEARCH, cases

OF_EVERY_TICK: Final[tuple[Law, ...]] = (
    wavefront.wavefront_is_spaced,
    wavefront.wavefront_is_bounded,
    wavefront.flushes_are_bounded,
    wavefront.wavefront_reads_out_what_is_due,
    common.no_lane_is_futile,
    common.every_verdict_follows_from_the_tokens,
    common.every_advanced_lane_gains_exactly_one,
)
"""Laws that can be seen in a single tick."""

OF_A_WHOLE_RUN: Final[tuple[Law, ...]] = (
    common.commits_the_right_tokens,
    wavefront.wavefront_takes_exactly_its_ticks,
    counting.counts_add_up,
    counting.lanes_are_conserved,
    counting.judged_ticks_have_a_closed_form,
)
"""Laws of finished runs."""

NOTHING_WANTED: Final = Case(table=Lap(), recurrence_depth=1, draft_depth=1, max_new_tokens=0)
"""A run that is over before it begins."""


class Wavefront(RuleBasedStateMachine):
    """Runs of WFD, one after the other; a step is one tick.

    What the full depth says is the case's own function of the prefix. Whether a draft agrees with it, behind the same
    tokens, is up to the rule; where these tokens are wrong already, the draft may be anything.
    """

    def __init__(self) -> None:
        """Stands at the end of an empty run, so that the first step begins another."""
        super().__init__()
        self.open(NOTHING_WANTED)

    def open(self, case: Case) -> None:
        """Does what prefill does."""
        self.case = case
        self.schedule = make_wfd(case)
        self.answer, self.reason = naive.answer(case)
        self.first, self.opening = begin(self.schedule, case.table.verified(case.prompt) if self.answer else None)
        self.state, self.text = self.first, committed(self.opening)
        self.steps: list[Step] = []
        self.verdicts: list[bool] = []
        self.look_ahead()

    def look_ahead(self) -> None:
        """Sees whether decoding goes on, and whether the next tick reads out a draft."""
        self.is_running = self.state.finish_reason is None
        readouts = self.schedule.plan(self.state).readouts if self.is_running else ()
        self.is_draft_due = any(readout.purpose is Purpose.DRAFT for readout in readouts)

    def tick(self, error: int = 0) -> None:
        """Takes one tick. A draft in it misses what the full depth would say by `error`."""
        table = self.case.table

        def answer(readout: Readout, prefix: tuple[int, ...]) -> int:
            missed_by = error if readout.purpose is Purpose.DRAFT else 0
            return (table.verified(prefix) + missed_by) % table.vocab_size

        step = take_tick(self.schedule, self.state, self.case.prompt + self.text, answer)
        self.steps.append(step)
        self.state = step.after
        self.text += committed(step.events)
        self.verdicts += [isinstance(event, Accept) for event in step.events if isinstance(event, Accept | Reject)]
        self.look_ahead()

    @precondition(lambda self: not self.is_running)
    @rule(case=cases(most_recurrences=6, smallest_budget=3, largest_budget=12))
    def decode_another(self, case: Case) -> None:
        """Chooses T, d, prompt, budget, context and stop ids, and what the full depth says."""
        self.open(case)

    @precondition(lambda self: self.is_running and not self.is_draft_due)
    @rule()
    def climb(self) -> None:
        """Takes a tick that leaves nothing to choose."""
        self.tick()

    @precondition(lambda self: self.is_draft_due)
    @rule()
    def draft_as_the_full_depth_would(self) -> None:
        """Drafts right, if the lanes carry the right tokens."""
        self.tick()

    @precondition(lambda self: self.is_draft_due)
    @rule(number=st.integers(0, 6))
    def draft_otherwise(self, number: int) -> None:
        """Drafts any other token."""
        self.tick(1 + number % (self.case.table.vocab_size - 1))

    @invariant()
    def the_text_is_the_beginning_of_what_ar_says(self) -> None:
        """Committed tokens are a prefix of AR's (WFD-11)."""
        assert self.text == self.answer[: len(self.text)]

    @invariant()
    def it_ends_where_ar_ends_and_for_the_same_reason(self) -> None:
        """The run is over if and only if the text is whole, and then says why (SMP-14)."""
        assert self.state.finish_reason == (self.reason if len(self.text) == len(self.answer) else None)

    @invariant()
    def the_latest_tick_keeps_the_laws(self) -> None:
        """Spacing, width, flushes, readouts and verdicts are those of the spec (WFD-03 to WFD-09, SMP-15)."""
        before = self.steps[-1].before if self.steps else self.first
        opening = () if self.steps else self.opening
        for law in OF_EVERY_TICK:
            law(Play(self.case, self.schedule, before, opening, tuple(self.steps[-1:])))

    @invariant()
    def every_tick_is_accounted_for(self) -> None:
        """Every accepted draft was worth d ticks and every other commit T; the rest is the oldest lane's (WFD-12)."""
        full, draft, number = self.case.recurrence_depth, self.case.draft_depth, max(0, len(self.text) - 1)
        paces = [draft if is_right else full for is_right in self.verdicts] if draft < full else [full] * number
        if self.is_running:
            assert len(paces) == number
            assert self.state.ticks == sum(paces) + self.state.lanes[0].depth
        else:
            assert self.state.ticks == (full + sum(paces[: number - 1]) if number else 0)
        assert self.state.ticks <= max(0, self.case.end - len(self.case.prompt) - 1) * full

    @precondition(lambda self: not self.is_running)
    @invariant()
    def a_whole_run_keeps_the_laws(self) -> None:
        """Text, reason, ticks and counts of a finished run are those of the spec (WFD-11, WFD-12, COST-05)."""
        for law in OF_A_WHOLE_RUN:
            law(Play(self.case, self.schedule, self.first, self.opening, tuple(self.steps)))

    def teardown(self) -> None:
        """Runs on to the end."""
        while self.is_running:
            self.tick()
            self.every_tick_is_accounted_for()  # and so the loop ends, however wrong the schedule is
        self.a_whole_run_keeps_the_laws()


@pytest.mark.spec("NOT-01", "SMP-12", "SMP-13", "SMP-14", "SMP-15")
@pytest.mark.spec("WFD-03", "WFD-04", "WFD-05", "WFD-07", "WFD-08", "WFD-09", "WFD-10", "WFD-11", "WFD-12")
@pytest.mark.spec("COST-01", "COST-02", "COST-03", "COST-04", "COST-05", "COST-06")
def test_whatever_is_drafted_a_wavefront_says_what_ar_says_at_the_ticks_that_its_verdicts_cost() -> None:
    """Settings are those of the profile, without the checks of speed."""
    run_state_machine_as_test(Wavefront)


CAUGHT: Final = (
    mutants.does_not_check_the_first_draft,
    mutants.flushes_one_lane_too_few,
    mutants.stops_one_token_early,
    mutants.drafts_one_recurrence_early,
    mutants.verifies_one_recurrence_early,
    mutants.injects_past_the_end,
    mutants.keeps_the_depth_of_the_rejected_lane,
    mutants.starts_a_lane_behind_a_flushed_one,
    mutants.judges_after_the_stop_rule,
    mutants.waits_for_the_verdict_before_it_drafts_on,
    mutants.calls_the_end_of_the_context_the_budget,
)
"""Wrong schedules, each of which some step of the machine shows."""


@pytest.mark.parametrize("plant", CAUGHT)
def test_the_machine_catches_a_wrong_schedule(plant: mutants.Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    few = settings(SEARCH, max_examples=300, report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
    with monkeypatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError):
            run_state_machine_as_test(Wavefront, settings=few)

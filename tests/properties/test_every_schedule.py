"""What holds for AR, DtV and WFD alike, whatever the readouts answer."""

import pytest
from hypothesis import given

from tests.driving import Case, plays
from tests.laws import common, counting
from tests.strategies import cases


@pytest.mark.spec("DTV-07", "WFD-11", "SMP-14")
@given(case=cases(is_steady=False))
def test_tokens_and_finish_reason_are_those_of_ar_even_if_drafts_waver(case: Case) -> None:
    for run in plays(case):
        common.commits_the_right_tokens(run)
        common.nothing_follows_the_stop(run)


@pytest.mark.spec("NOT-01", "SMP-15")
@given(case=cases(is_steady=False))
def test_the_frontier_counts_final_tokens_and_no_lane_starts_that_can_commit_nothing(case: Case) -> None:
    for run in plays(case):
        common.frontier_grows_by_one_per_commit(run)
        common.oldest_lane_carries_the_last_final_token(run)
        common.no_lane_is_futile(run)


@pytest.mark.spec("NOT-02", "CONF-07")
@given(case=cases())
def test_schedules_are_pure_so_a_replay_of_the_readouts_gives_the_same_events(case: Case) -> None:
    for run in plays(case):
        common.planning_and_observing_are_pure(run)
        common.replay_gives_the_same_events(run)


@pytest.mark.spec("NOT-03", "SMP-10", "SMP-11", "WFD-02")
@given(case=cases(is_steady=False))
def test_events_come_in_the_order_of_the_spec_from_the_prefill_on(case: Case) -> None:
    for run in plays(case):
        common.events_come_in_order(run)
        common.start_tells_the_parameters(run)
        common.prefill_commits_the_first_token(run)


@pytest.mark.spec("SMP-12", "SMP-13", "SMP-14", "WFD-05", "DTV-06")
@given(case=cases(is_steady=False))
def test_every_verdict_follows_from_the_tokens_read_out(case: Case) -> None:
    for run in plays(case):
        common.every_verdict_follows_from_the_tokens(run)


@pytest.mark.spec("WFD-03", "DTV-04", "AR-01")
@given(case=cases(is_steady=False))
def test_every_lane_that_advances_gains_exactly_one_recurrence(case: Case) -> None:
    for run in plays(case):
        common.every_advanced_lane_gains_exactly_one(run)
        common.drafts_are_read_out_for_drafts(run)


@pytest.mark.spec("AR-02", "DTV-08", "WFD-12")
@given(case=cases())
def test_every_commit_comes_at_the_tick_that_a_plain_loop_says(case: Case) -> None:
    for run in plays(case):
        common.ticks_are_those_of_a_plain_loop(run)


@pytest.mark.spec("COST-01", "COST-02", "COST-03", "COST-04", "COST-05")
@given(case=cases(is_steady=False))
def test_counts_are_what_happened_and_no_lane_is_lost(case: Case) -> None:
    for run in plays(case):
        counting.counts_add_up(run)
        counting.lanes_are_conserved(run)


@pytest.mark.spec("DTV-03", "WFD-06")
@given(case=cases().map(lambda case: case.drafting_at_full_depth()))
def test_with_draft_depth_t_every_decoder_is_ar_event_for_event(case: Case) -> None:
    for run in plays(case):
        common.full_draft_depth_is_ar(run)

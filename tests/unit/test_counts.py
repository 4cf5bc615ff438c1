"""Counting events."""

import math

import pytest

from reference.counts import Counts, count
from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Lane, Reject
from reference.stopping import FinishReason

NOTHING = Counts(
    ticks=0, lane_ticks=0, prelude_calls=0, readout_calls=0, accepted=0, rejected=0, flushed=0, committed=0
)


@pytest.mark.spec("COST-01", "COST-02", "COST-03", "COST-04", "COST-05")
def test_every_kind_of_event_is_counted_where_it_belongs() -> None:
    events: list[Event] = [
        Commit(0, 1, 5),
        Inject(0, 1, 5),
        Advance(1, (Lane(1, 5, 1),)),
        Draft(1, 1, 6),
        Inject(1, 2, 6),
        Advance(2, (Lane(1, 5, 2), Lane(2, 6, 1))),
        Draft(2, 2, 7),
        Inject(2, 3, 7),
        Commit(2, 2, 6),
        Accept(2, 2),
        Advance(3, (Lane(2, 6, 2), Lane(3, 7, 1))),
        Commit(3, 3, 8),
        Reject(3, 3, draft_token=7, verified_token=8),
        Flush(3, (3, 4)),
        Finish(3, FinishReason.LENGTH, ()),
    ]
    assert count(events) == Counts(
        ticks=3,
        lane_ticks=5,
        prelude_calls=3,
        readout_calls=3,
        accepted=1,
        rejected=1,
        flushed=2,
        committed=3,
    )


@pytest.mark.spec("SMP-10")
def test_no_events_count_nothing() -> None:
    assert count([]) == NOTHING


@pytest.mark.spec("COST-03")
def test_acceptance_is_a_share_of_judged_drafts_and_nan_without_any() -> None:
    assert math.isnan(NOTHING.acceptance_rate)
    assert count([Accept(1, 1), Accept(2, 2), Accept(3, 3), Reject(4, 4, 0, 1)]).acceptance_rate == 0.75

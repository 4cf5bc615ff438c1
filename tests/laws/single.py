"""Laws of AR: one lane, T ticks a token."""

from reference.counts import count
from reference.schedule import Accept, Draft, Flush, Purpose, Readout, Reject
from tests.driving import Play


def ar_has_one_lane(run: Play) -> None:
    """AR advances one lane, reads it out at full depth only, and neither drafts nor judges nor flushes (AR-01)."""
    for step in run.steps:
        assert len(step.before.lanes) == 1
        (after,) = (lane.advanced() for lane in step.tick.lanes)
        is_full = after.depth == run.case.recurrence_depth
        assert step.tick.readouts == ((Readout(after, Purpose.VERIFY),) if is_full else ())
    assert not [event for event in run.events if isinstance(event, Accept | Reject | Flush | Draft)]


def ar_takes_exactly_its_ticks(run: Play) -> None:
    """N * T ticks, rows of one, and one call of everything else a token (AR-02)."""
    counts, number = count(run.events), run.num_after_first
    assert counts.ticks == counts.lane_ticks == number * run.case.recurrence_depth
    assert counts.prelude_calls == counts.readout_calls == number
    assert run.commit_ticks == tuple(
        range(0, len(run.token_ids) * run.case.recurrence_depth, run.case.recurrence_depth)
    )

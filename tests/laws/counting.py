"""Laws of counts: what is counted is what happened, and no lane is lost."""

from reference.counts import count
from reference.schedule import Flush, Inject
from tests.driving import Play, finish_of, lanes_left


def counts_add_up(run: Play) -> None:
    """Ticks, rows, calls, judgements and lanes, counted from the states and held to `count` (COST-01 to COST-05)."""
    counts = count(run.events)
    assert counts.ticks == run.ticks
    assert counts.lane_ticks == sum(len(step.tick.lanes) for step in run.steps) == sum(_depths_reached(run))
    assert counts.prelude_calls == len(run.of(Inject))
    assert counts.readout_calls == sum(1 for step in run.steps if step.tick.readouts)
    judged = list(run.judgements.values())
    assert (counts.accepted, counts.rejected) == (judged.count(True), judged.count(False))
    assert counts.flushed == sum(len(flush.positions) for flush in run.of(Flush))
    assert len(run.of(Flush)) == counts.rejected <= counts.flushed
    assert counts.committed == len(run.token_ids)


def lanes_are_conserved(run: Play) -> None:
    """Every injected lane is retired, flushed or abandoned (COST-05)."""
    counts = count(run.events)
    if counts.committed == 0:
        assert counts == count(())
    else:
        abandoned = len(finish_of(run.events).abandoned)
        assert counts.prelude_calls == counts.committed - 1 + counts.flushed + abandoned


def judged_ticks_have_a_closed_form(run: Play) -> None:
    """A WFD run that ended at its end took T ticks, d for each accepted and T for each rejected draft (COST-06)."""
    counts = count(run.events)
    full, draft = run.case.recurrence_depth, run.case.draft_depth
    if draft < full and run.num_after_first >= 1 and run.states[-1].frontier == run.case.end:
        assert counts.ticks == full + counts.accepted * draft + counts.rejected * full


def _depths_reached(run: Play) -> list[int]:
    """Gives the depth that each injected lane reached, from the states alone."""
    reached: list[int] = []
    for step in run.steps:
        gone = [lane for lane in lanes_left(step) if lane not in step.after.lanes]
        reached += [lane.depth for lane in gone]
    return reached

"""Laws of DtV: rounds of drafting and verification."""

from reference.dtv import DtV
from reference.schedule import Accept, Commit, Purpose, Reject
from tests.driving import Play, Step


def rounds_have_their_shape(run: Play) -> None:
    """DtV drafts with one row at a time, verifies with all rows, commits in the last tick (DTV-03 to DTV-06)."""
    assert isinstance(run.schedule, DtV)
    full, draft, end = run.case.recurrence_depth, run.case.draft_depth, run.case.end
    steps = list(run.steps)
    while steps:
        before = steps[0].before
        assert [lane.depth for lane in before.lanes] == [0]
        first, frontier = before.lanes[0].position, before.frontier
        drafts = min(run.case.draft_length, end - frontier - 1) if draft < full else 0
        size = drafts * draft + full
        this_round, steps = steps[:size], steps[size:]
        assert len(this_round) == size
        for number, step in enumerate(this_round, start=1):
            advanced = [lane.position for lane in step.tick.lanes]
            if number <= (drafts + 1) * draft:
                source = first + (number - 1) // draft
                assert advanced == [source]
                is_due = number % draft == 0 and source < first + drafts
                read_out = [(source, Purpose.DRAFT)] if is_due else []
            else:
                assert advanced == list(range(first, first + drafts + 1))
                read_out = []
            if number == size:
                read_out = [(first + place, Purpose.VERIFY) for place in range(drafts + 1)]
            assert [(readout.lane.position, readout.purpose) for readout in step.tick.readouts] == read_out
        _check_outcome(this_round[-1], drafts)
        committing = [step for step in this_round if step.after.frontier > step.before.frontier]
        assert committing == this_round[-1:]


def _check_outcome(last: Step, drafts: int) -> None:
    """Holds that a round commits one token more than it accepts, a bonus token if it accepts all (DTV-06)."""
    committed = sum(isinstance(event, Commit) for event in last.events)
    accepted = sum(isinstance(event, Accept) for event in last.events)
    rejected = sum(isinstance(event, Reject) for event in last.events)
    assert rejected <= 1
    if last.after.finish_reason is None:
        assert committed == accepted + 1
        assert (accepted == drafts) == (rejected == 0)
    else:
        assert accepted + rejected <= committed <= accepted + 1


def every_round_commits(run: Play) -> None:
    """A commit at least every `gamma * d + T` ticks, and no more rounds than tokens (DTV-09)."""
    most = run.case.draft_length * run.case.draft_depth + run.case.recurrence_depth
    rounds = sorted(set(run.commit_ticks) - {0})
    assert all(later - earlier <= most for earlier, later in zip([0, *rounds], rounds, strict=False))
    assert len(rounds) <= max(0, run.case.end - len(run.case.prompt) - 1)

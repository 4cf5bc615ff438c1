"""Laws of WFD: spacing, width, flushes, ticks."""

from reference.schedule import Flush, Purpose, Readout
from reference.wfd import WFD
from tests.driving import Play


def wavefront_is_spaced(run: Play) -> None:
    """Neighbours differ by d in depth, 1 in position; the youngest is below d unless it may draft nothing (WFD-07)."""
    end = run.case.end
    for state in run.states:
        for older, younger in zip(state.lanes, state.lanes[1:], strict=False):
            assert older.depth - younger.depth == run.case.draft_depth
            assert younger.position - older.position == 1
        if state.lanes:
            youngest = state.lanes[-1]
            assert youngest.depth < run.case.draft_depth or youngest.position + 2 >= end


def wavefront_is_bounded(run: Play) -> None:
    """There are never more than ceil(T / d) lanes (WFD-08)."""
    width = -(-run.case.recurrence_depth // run.case.draft_depth)
    assert max(len(state.lanes) for state in run.states) <= width


def flushes_are_bounded(run: Play) -> None:
    """A rejection drops at least 1 lane and at most W - 1 (WFD-09), or K (DTV-06)."""
    width = -(-run.case.recurrence_depth // run.case.draft_depth)
    bound = width - 1 if isinstance(run.schedule, WFD) else run.case.draft_length
    assert all(1 <= len(flush.positions) <= bound for flush in run.of(Flush))


def wavefront_reads_out_what_is_due(run: Play) -> None:
    """The oldest at T, the youngest at d where its successor may start, oldest first, and no other lane (WFD-04)."""
    full, draft = run.case.recurrence_depth, run.case.draft_depth
    for step in run.steps:
        after = [lane.advanced() for lane in step.before.lanes]
        due = [Readout(after[0], Purpose.VERIFY)] if after[0].depth == full else []
        if after[-1].depth == draft < full and after[-1].position + 2 < run.case.end:
            due.append(Readout(after[-1], Purpose.DRAFT))
        assert step.tick.readouts == tuple(due)


def wavefront_commits_every_few_ticks(run: Play) -> None:
    """The first commit is at tick T, the next d ticks after an accepting one and T after any other (WFD-10)."""
    full, draft = run.case.recurrence_depth, run.case.draft_depth
    for k in range(1, len(run.commit_ticks)):
        gap = run.commit_ticks[k] - run.commit_ticks[k - 1]
        assert gap == (draft if run.judgements.get(k - 1) else full) <= full
    assert run.ticks <= max(0, run.case.end - len(run.case.prompt) - 1) * full


def wavefront_takes_exactly_its_ticks(run: Play) -> None:
    """Ticks are T, plus d or T for each judged draft but the last token's; and as many are judged (WFD-12)."""
    full, draft, number = run.case.recurrence_depth, run.case.draft_depth, run.num_after_first
    judged = run.judgements
    if number == 0:
        assert run.ticks == 0
    elif draft == full:
        assert run.ticks == number * full
        assert judged == {}
    else:
        assert run.ticks == full + sum(draft if judged[k] else full for k in range(1, number))
        assert sorted(judged) == list(range(1, len(judged) + 1))
        assert len(judged) == min(number, run.case.end - len(run.case.prompt) - 2)
        is_cut = run.states[-1].frontier < run.case.end
        assert len(judged) == (number if is_cut else number - 1)


def wavefront_saves_what_it_accepts(run: Play) -> None:
    """Against AR's N * T ticks WFD saves T - d for each accepted draft that another token follows (WFD-13)."""
    full, draft, number = run.case.recurrence_depth, run.case.draft_depth, run.num_after_first
    accepted = sum(run.judgements.get(k, False) for k in range(1, number))
    assert number * full - run.ticks == (full - draft) * accepted
    assert all(tick <= k * full for k, tick in enumerate(run.commit_ticks))
    assert (run.ticks == number * full) == (draft == full or accepted == 0)

"""WFD never needs more ticks than DtV or AR: for drawn acceptance sequences, and for every one of some length."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given

from tests.driving import Case, Play, Verdicts, make_ar, make_dtv, make_wfd, play
from tests.strategies import cases_by_verdict


def wfd_commits_no_later(run: Play, other: Play) -> None:
    assert len(run.commit_ticks) == len(other.commit_ticks)
    assert all(tick <= later for tick, later in zip(run.commit_ticks, other.commit_ticks, strict=True))
    assert run.ticks <= other.ticks


def is_tight(run: Play) -> bool:
    """Says whether every DtV round is full, and none but the first starts behind a right draft (WFD-14)."""
    table, case = run.case.table, run.case
    assert isinstance(table, Verdicts)
    wanted = case.end - len(case.prompt)
    committed = 1
    for tick in sorted(set(run.commit_ticks) - {0}):
        drafts = min(case.draft_length, wanted - committed - 1)
        size = run.commit_ticks.count(tick)
        if size != drafts + 1 or (committed > 1 and table.right[committed - 1]):
            return False
        committed += size
    return True


@pytest.mark.spec("WFD-13")
@given(case=cases_by_verdict())
def test_wfd_commits_every_token_no_later_than_ar(case: Case) -> None:
    wfd_commits_no_later(play(make_wfd, case), play(make_ar, case))


@pytest.mark.spec("WFD-14")
@given(case=cases_by_verdict())
def test_wfd_commits_every_token_no_later_than_dtv(case: Case) -> None:
    wfd, dtv = play(make_wfd, case), play(make_dtv, case)
    wfd_commits_no_later(wfd, dtv)
    if case.draft_depth < case.recurrence_depth:
        assert (wfd.ticks == dtv.ticks) == is_tight(dtv)
    else:
        assert wfd.ticks == dtv.ticks


def every_small_case() -> Iterator[Case]:
    """Gives every T <= 4, d, budget <= 6 and acceptance sequence; at T = 3 with a stop id at every place."""
    for recurrence_depth, budget in product(range(1, 5), range(1, 7)):
        stops = (None, *range(1, budget)) if recurrence_depth == 3 else (None,)
        for draft_depth, stop_after, verdicts in product(
            range(1, recurrence_depth + 1), stops, product((True, False), repeat=max(0, budget - 2))
        ):
            yield Case(
                table=Verdicts(1, (False, *verdicts, False), stop_after),
                recurrence_depth=recurrence_depth,
                draft_depth=draft_depth,
                max_new_tokens=budget,
                stop_ids=frozenset({2}),
            )


@pytest.mark.spec("WFD-13", "WFD-14")
def test_dominance_holds_in_every_small_case() -> None:
    num_equal = num_better = 0
    for case in every_small_case():
        wfd = play(make_wfd, case)
        wfd_commits_no_later(wfd, play(make_ar, case))
        for draft_length in range(1, max(2, case.max_new_tokens - 1)):
            dtv = play(make_dtv, case.with_draft_length(draft_length))
            wfd_commits_no_later(wfd, dtv)
            if case.draft_depth < case.recurrence_depth:
                assert (wfd.ticks == dtv.ticks) == is_tight(dtv)
            num_equal += wfd.ticks == dtv.ticks
            num_better += wfd.ticks < dtv.ticks
    assert num_equal > 0
    assert num_better > 0


@pytest.mark.spec("WFD-14", "COST-06")
@pytest.mark.parametrize("draft_depth", [1, 2, 3])
def test_with_all_drafts_right_and_one_long_round_dtv_takes_the_ticks_of_wfd(draft_depth: int) -> None:
    case = Case(
        table=Verdicts(1, (True,) * 20),
        recurrence_depth=5,
        draft_depth=draft_depth,
        draft_length=18,
        max_new_tokens=20,
    )
    wfd, dtv = play(make_wfd, case), play(make_dtv, case)
    assert wfd.ticks == dtv.ticks == 5 + 18 * draft_depth
    assert max(len(state.lanes) for state in wfd.states) == -(-5 // draft_depth)
    assert max(len(state.lanes) for state in dtv.states) == 19

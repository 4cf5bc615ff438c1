"""Every acceptance sequence of small runs: WFD never commits later than DtV or AR, and as late where WFD-14 says so."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import pytest

from reference.dtv import DtV
from reference.schedule import Commit, Purpose, Schedule, begin
from reference.stopping import Stopping
from reference.wfd import WFD
from tests.formal.requirements import deep

RIGHT, WRONG, STOP = 0, 1, 2

Run: TypeAlias = tuple[int, int, int, int, int | None, tuple[bool, ...]]
"""(T, d, gamma, most tokens after the first, which of them is a stop id, whether each draft is right)."""


def commit_ticks(schedule: Schedule, right: Sequence[bool], stop_at: int | None) -> list[int]:
    """Gives the tick of every commit after the first if `right[k]` says whether the draft of token `k` is right.

    The text is RIGHT all along, with STOP as token `stop_at`; drafts behind a wrong one are wrong as well.
    """
    prompt = schedule.stopping.prompt_length

    def verified(position: int) -> int:
        return STOP if stop_at is not None and position == prompt + stop_at else RIGHT

    def answer(position: int, purpose: Purpose) -> int:
        is_right = purpose is Purpose.VERIFY or right[position - prompt]
        return verified(position) if is_right else WRONG

    state, _ = begin(schedule, verified(prompt))
    ticks = []
    while state.finish_reason is None:
        tokens = tuple(answer(readout.lane.position + 1, readout.purpose) for readout in schedule.plan(state).readouts)
        state, events = schedule.observe(state, tokens)
        ticks += [event.tick for event in events if isinstance(event, Commit)]
    return ticks


def runs(depths: Iterable[tuple[int, int]], longest: int) -> Iterator[Run]:
    """Gives every run with these (T, d), up to `longest` tokens after the first, with every acceptance sequence."""
    for (T, d), gamma, most in itertools.product(depths, (1, 2, 3, 6), range(1, longest + 1)):  # noqa: N806
        for stop_at in (None, *range(1, most)):
            for right in itertools.product((False, True), repeat=stop_at or most):
                yield T, d, gamma, most, stop_at, (True, *right, *[True] * 9)


SOME = ((1, 1), (3, 1), (3, 2), (4, 2), (3, 3))
ALL = tuple((T, d) for T in range(1, 6) for d in range(1, T + 1))


@pytest.mark.spec("WFD-12", "WFD-13", "WFD-14", "DTV-08", "COST-06")
@pytest.mark.parametrize(
    "depths, longest", [pytest.param(SOME, 4, id="small"), pytest.param(ALL, 5, id="deep", marks=deep)]
)
def test_wfd_commits_no_later_than_dtv_and_ar(depths: Sequence[tuple[int, int]], longest: int) -> None:
    compared = 0
    cache: dict[object, list[int]] = {}
    for T, d, gamma, most, stop_at, right in runs(depths, longest):  # noqa: N806
        stopping = Stopping(prompt_length=1, max_new_tokens=most + 1, context_length=64, stop_ids=frozenset({STOP}))
        key = (T, d, most, stop_at, right)
        if key not in cache:
            cache[key] = commit_ticks(WFD(recurrence_depth=T, draft_depth=d, stopping=stopping), right, stop_at)
        ours = cache[key]
        dtv = DtV(recurrence_depth=T, draft_depth=d, draft_length=gamma, stopping=stopping)
        theirs = commit_ticks(dtv, right, stop_at)
        n = stop_at or most
        assert len(ours) == len(theirs) == n
        assert all(one <= other for one, other in zip(ours, theirs, strict=True))
        paces = [d if d < T and right[k] else T for k in range(1, n)]
        assert ours == list(itertools.accumulate([T, *paces]))
        assert n * T - ours[-1] == (T - d) * sum(right[1:n])
        ticks, is_equal = dtv_closed_form(T, d, gamma, most, n, right)
        assert theirs[-1] == ticks
        assert (ours[-1] == theirs[-1]) == is_equal
        compared += 1
    assert compared > 1000


def dtv_closed_form(
    T: int,  # noqa: N803
    d: int,
    gamma: int,
    longest: int,
    n: int,
    right: Sequence[bool],
) -> tuple[int, bool]:
    """Gives DtV's ticks as DTV-08 counts them, and whether WFD-14 says that WFD needs as many."""
    ticks = c = 0
    is_equal = True
    while c < n:
        drafts = min(gamma, longest - c - 1) if d < T else 0
        j = 0
        while j < drafts and right[c + j + 1]:
            j += 1
        ticks += drafts * d + T
        committed = min(j + 1, n - c)
        if d < T:
            is_equal = is_equal and committed == drafts + 1 and (c == 0 or not right[c])
        c += committed
    return ticks, is_equal


@pytest.mark.spec("WFD-14", "DTV-08")
def test_dtv_reaches_wfd_only_with_a_lane_for_every_token() -> None:
    """All drafts right: DtV's ticks fall to those of WFD as the draft length, and so its width, grows."""
    T, d, n = 5, 2, 12  # noqa: N806
    right = [True] * (n + 1)
    stopping = Stopping(prompt_length=1, max_new_tokens=n + 1, context_length=64)
    wave = commit_ticks(WFD(recurrence_depth=T, draft_depth=d, stopping=stopping), right, None)[-1]
    rounds = [
        commit_ticks(DtV(recurrence_depth=T, draft_depth=d, draft_length=length, stopping=stopping), right, None)[-1]
        for length in (1, 2, 3, 5, 11)
    ]
    assert wave == T + (n - 1) * d
    assert rounds == [(length * d + T) * n // (length + 1) for length in (1, 2, 3, 5, 11)]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[-1] == wave

"""Ticks without running anything: exactly, from the verdicts on a run's drafts, and on average, from their rate.

Clauses AR-02, DTV-08, WFD-12 and COST-06. With adaptive depth, positions halt before T: see `mixed_depths` for runs of
which only the mean depth is known and `expected_ticks_with_exits` for the exact mean where every position halts by
itself.
"""

import math
from collections.abc import Iterable, Mapping

from reference.errors import ParameterError
from reference.schedule import Accept, Commit, Event, Reject, Start


def mixed_depths(recurrence_depth: int, average_depth: float | None) -> tuple[tuple[int, float], ...]:
    """Gives the depths that runs take in place of T, and the share of the tokens at each; the mean is as given.

    A run has one depth, the whole number below or above the mean. So a cost at an average depth is the line between
    the costs at two whole depths.

    Args:
        recurrence_depth: T.
        average_depth: D, from 1 to T; None is T.

    Raises:
        ParameterError: If the average is outside its range.
    """
    if average_depth is None:
        return ((recurrence_depth, 1.0),)
    if not 1 <= average_depth <= recurrence_depth:
        raise ParameterError(f"average_depth={average_depth} is not from 1 to recurrence_depth={recurrence_depth}")
    below = math.floor(average_depth)
    above = average_depth - below
    return ((below, 1.0 - above), (below + 1, above)) if above else ((below, 1.0),)


def expected_ticks_per_token(start: Start, acceptance_rate: float, average_depth: float | None = None) -> float:
    """Gives the ticks per token of a long run whose drafts are right independently of each other (COST-06).

    Args:
        start: The parameters of the run.
        acceptance_rate: alpha, from 0 to 1; NaN gives NaN where anything is drafted.
        average_depth: D: mean depth at which positions halt, as `mixed_depths` has it; None is T.

    Raises:
        ParameterError: If the average is not from 1 to T.
    """
    depths = mixed_depths(start.recurrence_depth, average_depth)
    return sum(share * _ticks_per_token(start, acceptance_rate, depth) for depth, share in depths)


def _ticks_per_token(start: Start, acceptance_rate: float, full: int) -> float:
    """Gives the mean ticks of a token if all positions halt at `full`; up to d nothing is drafted."""
    draft = start.draft_depth
    if full <= draft:
        return float(full)
    if start.draft_length is None:
        return acceptance_rate * draft + (1 - acceptance_rate) * full
    tokens_per_round = sum(acceptance_rate**power for power in range(start.draft_length + 1))
    return (start.draft_length * draft + full) / tokens_per_round


def expected_ticks_with_exits(start: Start, acceptance_rate: float, exit_shares: Mapping[int, float]) -> float:
    """Gives the mean ticks per token if every position halts by itself, independently of the others.

    Tokens are committed in order, so a position may have to wait for an older one that halts later. Its wait behind
    the draft of its successor obeys `R' = max(R, e) - d` if that draft is accepted, `max(R - e, 0)` if the position
    halts at `e <= d` and hands its final token on, and 0 after a rejection; the distribution of R follows from the
    largest wait downwards. A verification of DtV goes on until the last of its rows halts.

    If all positions halt behind d, this is at least `expected_ticks_per_token` at the mean depth, and equal to it for
    WFD if no two depths are further apart than d. For AR it is the mean depth.

    Args:
        start: The parameters of the run; with d = T it is AR's.
        acceptance_rate: alpha, of the drafts that are judged: of positions that halt at or before d there is none.
        exit_shares: The share of the positions that halt at each depth from 1 to T.

    Raises:
        ParameterError: If the shares are not shares of such depths.
    """
    full, draft = start.recurrence_depth, start.draft_depth
    if not all(1 <= depth <= full and share >= 0 for depth, share in exit_shares.items()):
        raise ParameterError(f"exit_shares: depths are from 1 to recurrence_depth={full}, shares at least 0")
    if not math.isclose(sum(exit_shares.values()), 1.0):
        raise ParameterError("exit_shares do not add up to 1")
    mean = sum(share * depth for depth, share in exit_shares.items())
    if draft == full:
        return mean
    early = sum(share * depth for depth, share in exit_shares.items() if depth <= draft)
    deep = sum(share for depth, share in exit_shares.items() if depth > draft)
    if start.draft_length is None:
        restart = _mean_restart(exit_shares, draft, acceptance_rate)
        return early + deep * acceptance_rate * draft + (1 - acceptance_rate) * restart
    sources = start.draft_length + 1
    within = {depth: sum(share for at, share in exit_shares.items() if at <= depth) for depth in range(full)}
    verifying = sum(1 - within[depth] ** sources for depth in range(draft, full))
    right = 1 - deep * (1 - acceptance_rate)
    return (sources * (early + deep * draft) + verifying) / sum(right**power for power in range(sources))


def _mean_restart(exit_shares: Mapping[int, float], draft: int, acceptance_rate: float) -> float:
    """Gives the mean ticks from a position's start to its commit; positions that halt at or before d count as 0.

    `waits[x]` is the chance that R, the wait behind older positions that remains when a position starts, is at most x.
    """
    top = max(exit_shares)
    waits = [1.0] * (2 * top + 1)
    for wait in range(top - 1, -1, -1):
        waits[wait] = sum(
            share
            * (
                waits[wait + depth]
                if depth <= draft
                else 1 - acceptance_rate + acceptance_rate * (depth <= wait + draft) * waits[wait + draft]
            )
            for depth, share in exit_shares.items()
        )
    late = {depth: share for depth, share in exit_shares.items() if depth > draft}
    # The sum of P(max(R, e) > x) over x, for those that halt behind d.
    return sum(share * (1 - (depth <= ticks) * waits[ticks]) for ticks in range(top) for depth, share in late.items())


def exact_ticks(events: Iterable[Event]) -> int:
    """Gives the ticks that a finished run must have taken, from its parameters and the verdicts on its drafts.

    Args:
        events: The events of one run. Its ticks are not looked at.

    Raises:
        ValueError: If the events do not begin with `Start`.

    Spec: AR-02, DTV-08, WFD-12.
    """
    remaining = iter(events)
    start = next(remaining, None)
    if not isinstance(start, Start):
        message = f"a run begins with a start event, not with {start!r}"
        raise ValueError(message)  # noqa: TRY004 - the list is at fault, not the type of an argument
    happened = tuple(remaining)
    committed = sum(isinstance(event, Commit) for event in happened)
    first = start.prompt_length
    judged = [event for event in happened if isinstance(event, Accept | Reject)]
    verdicts = {event.position - first: isinstance(event, Accept) for event in judged}
    return _ticks(start, max(committed - 1, 0), verdicts)


def _ticks(start: Start, num_tokens: int, verdicts: Mapping[int, bool]) -> int:
    """Counts the ticks to `num_tokens` tokens after the first; `verdicts[k]` is that on the draft of the k-th."""
    full, draft = start.recurrence_depth, start.draft_depth
    if draft == full or num_tokens == 0:
        return num_tokens * full
    if start.draft_length is None:
        return full + sum(draft if verdicts[k] else full for k in range(1, num_tokens))
    most = min(start.max_new_tokens, start.context_length + 1 - start.prompt_length) - 1
    ticks = done = 0
    while done < num_tokens:
        drafts = min(start.draft_length, most - done - 1)
        accepted = 0
        while accepted < drafts and verdicts.get(done + accepted + 1, False):
            accepted += 1
        ticks += drafts * draft + full
        done += accepted + 1
    return ticks

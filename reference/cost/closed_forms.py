"""Ticks without running anything: exactly, from the verdicts on a run's drafts, and on average, from their rate.

Clauses AR-02, DTV-08, WFD-12 and COST-06.
"""

from collections.abc import Iterable, Mapping

from reference.schedule import Accept, Commit, Event, Reject, Start


def expected_ticks_per_token(start: Start, acceptance_rate: float) -> float:
    """Gives the ticks per token of a long run whose drafts are right independently of each other (COST-06).

    Args:
        start: The parameters of the run.
        acceptance_rate: alpha, from 0 to 1; NaN gives NaN where anything is drafted.
    """
    full, draft = start.recurrence_depth, start.draft_depth
    if draft == full:
        return float(full)
    if start.draft_length is None:
        return acceptance_rate * draft + (1 - acceptance_rate) * full
    tokens_per_round = sum(acceptance_rate**power for power in range(start.draft_length + 1))
    return (start.draft_length * draft + full) / tokens_per_round


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

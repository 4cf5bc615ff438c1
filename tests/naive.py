"""The three decoders once more, as plain loops: slow, without lanes, states or events, for the schedules to be held to.

Each is written from the description of its algorithm and shares no line with `reference`. They say which tokens come
out, why decoding ends, and at which tick every token becomes final.
"""

from dataclasses import dataclass

from tests.driving import Case


@dataclass(frozen=True)
class Result:
    """What a decoder must deliver."""

    token_ids: tuple[int, ...]
    """The new tokens."""
    finish_reason: str
    """Why there are no more."""
    commit_ticks: tuple[int, ...]
    """The tick at which each of them is final; the first one's is 0."""
    ticks: int
    """Ticks in all."""


def answer(case: Case) -> tuple[tuple[int, ...], str]:
    """Gives the right tokens and the right reason: one full-depth token after the other."""
    sequence = list(case.prompt)
    while True:
        if len(sequence) > len(case.prompt) and sequence[-1] in case.stop_ids:
            reason = "eos"
        elif len(sequence) - len(case.prompt) == case.max_new_tokens:
            reason = "length"
        elif len(sequence) > case.context_length:
            reason = "context"
        else:
            sequence.append(case.table.verified(tuple(sequence)))
            continue
        return tuple(sequence[len(case.prompt) :]), reason


def right_drafts(case: Case) -> tuple[bool, ...]:
    """Says of every token of the right answer whether its draft is right. The first token is not drafted: False."""
    tokens, _ = answer(case)
    sequence, start = case.prompt + tokens, len(case.prompt)
    return tuple(
        place > start and case.table.drafted(sequence[:place], case.draft_depth, 0) == sequence[place]
        for place in range(start, len(sequence))
    )


def ar(case: Case) -> Result:
    """AR: every token after the first takes T ticks."""
    tokens, reason = answer(case)
    ticks = tuple(range(0, len(tokens) * case.recurrence_depth, case.recurrence_depth))
    return Result(tokens, reason, ticks, ticks[-1] if ticks else 0)


def dtv(case: Case) -> Result:
    """DtV: rounds. A round drafts with one position after the other, then verifies them all."""
    tokens, reason = answer(case)
    right = right_drafts(case)
    most = min(case.max_new_tokens, case.context_length + 1 - len(case.prompt))
    commit_ticks = [0] if tokens else []
    now = 0
    while len(commit_ticks) < len(tokens):
        drafts = 0
        if case.draft_depth < case.recurrence_depth:
            drafts = min(case.draft_length, most - len(commit_ticks) - 1)
        now += (drafts + 1) * case.draft_depth + (case.recurrence_depth - case.draft_depth)
        for _ in range(drafts + 1):
            commit_ticks.append(now)
            if len(commit_ticks) == len(tokens) or not right[len(commit_ticks) - 1]:
                break
    return Result(tokens, reason, tuple(commit_ticks), now)


def wfd(case: Case) -> Result:
    """WFD: the n-th position after the prompt starts at some tick and needs T ticks.

    Its successor starts d ticks later if the draft for it was right, and else when the right token is known.
    """
    tokens, reason = answer(case)
    right = right_drafts(case)
    commit_ticks = [0] if tokens else []
    start = 0
    for place in range(1, len(tokens)):
        commit_ticks.append(max(commit_ticks[-1], start + case.recurrence_depth))
        drafted_right = right[place] and case.draft_depth < case.recurrence_depth
        start = start + case.draft_depth if drafted_right else commit_ticks[-1]
    return Result(tokens, reason, tuple(commit_ticks), commit_ticks[-1] if commit_ticks else 0)

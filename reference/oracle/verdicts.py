"""The three things the oracle can say, and which of several weighs most."""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """A judgement; equal to its own text (CONF-05)."""

    EXACT = "exact"
    """What the reference says, or something that the specification leaves free."""
    NEAR_TIE = "near_tie"
    """Another token than the reference's, where rounding may decide between the two."""
    WRONG = "wrong"
    """Not allowed; the clause is named beside it."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Gives the verdict that weighs most: WRONG, then NEAR_TIE; EXACT where there is none."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.EXACT)

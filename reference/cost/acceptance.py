"""Which drafts are right: the processes that answer a schedule's readouts when there is no model.

A process answers for a token by its index, so every decoder that drafts the token gets the same answer.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from reference.errors import ParameterError
from reference.schedule import Accept, Event, Reject


@runtime_checkable  # for the tests, which check annotations at run time
class Acceptance(Protocol):
    """Says whether the draft of a token is right."""

    def accepts(self, index: int) -> bool:
        """Tells whether the draft of the `index`-th token after the first is the full-depth token; from 1."""


def check_rate(rate: float) -> None:
    """Holds that a rate is one.

    Raises:
        ParameterError: If not.
    """
    if not 0 <= rate <= 1:
        raise ParameterError(f"acceptance_rate={rate} is not from 0 to 1 (COST-06)")


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Drafts are right independently of each other."""

    rate: float
    """alpha."""
    seed: int = 0
    """Of the draws, each of which is a function of seed and index."""

    def __post_init__(self) -> None:
        """Refuses what is no rate."""
        check_rate(self.rate)

    def accepts(self, index: int) -> bool:
        """Tells whether the draft of a token is right."""
        return _uniform(self.seed, index) < self.rate


@dataclass(frozen=True, slots=True)
class PerPosition:
    """Drafts are right independently of each other, early tokens at other rates than late ones."""

    rates: tuple[float, ...]
    """alpha of the first token after the prefill's, of the second, ...; the last one holds from there on."""
    seed: int = 0
    """Of the draws."""

    def __post_init__(self) -> None:
        """Refuses what is no rate."""
        for rate in self.rates:
            check_rate(rate)

    def accepts(self, index: int) -> bool:
        """Tells whether the draft of a token is right."""
        return _uniform(self.seed, index) < self.rates[min(index, len(self.rates)) - 1]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Drafts are right where those of a real run were; the record repeats when it ends."""

    verdicts: tuple[bool, ...]
    """Whether the draft of the first token after the prefill's was right, of the second, ..."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Recorded":
        """Reads the verdicts of a run of WFD, which judges the draft of every token from the second on but the last.

        Raises:
            ParameterError: If nothing was judged.
        """
        verdicts = tuple(isinstance(event, Accept) for event in events if isinstance(event, Accept | Reject))
        if not verdicts:
            raise ParameterError("the trace holds no verdict on a draft (COST-03)")
        return cls(verdicts)

    def accepts(self, index: int) -> bool:
        """Tells whether the draft of a token was right."""
        return self.verdicts[(index - 1) % len(self.verdicts)]


def _uniform(seed: int, index: int) -> float:
    """Draws from 0 to 1."""
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=7).digest()
    return int.from_bytes(digest) / 2**56

"""When decoding ends: token budget, stop ids and end of context, once for all decoders.

A sequence ends at the frontier `end`, or earlier when a stop id is committed. Integers only; no tensors.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from reference.errors import ParameterError, check_whole_number


class FinishReason(StrEnum):
    """Why decoding ended; equal to its own text, so `out.finish_reason == "eos"` reads naturally (SMP-14)."""

    EOS = "eos"
    """A stop id was committed."""
    LENGTH = "length"
    """The token budget is used up."""
    CONTEXT = "context"
    """The model can compute no further position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The limits of one sequence.

    Raises:
        ParameterError: If the prompt is empty or does not fit, or the budget is negative (SMP-04, SMP-05, SMP-06).
    """

    prompt_length: int
    """Tokens in the prompt; at least 1."""
    max_new_tokens: int
    """Budget: how many tokens may be committed, the prefill's included; 0 is allowed (SMP-10)."""
    context_length: int
    """Number of positions that the model can compute."""
    stop_ids: AbstractSet[int] = frozenset()
    """Tokens that end the text when they are committed; a draft of one ends nothing (SMP-14)."""

    def __post_init__(self) -> None:
        """Refuses limits under which nothing could be decoded."""
        check_whole_number("max_new_tokens", self.max_new_tokens, minimum=0, clause="SMP-04")
        if self.prompt_length < 1:
            raise ParameterError(f"prompt_length={self.prompt_length}: the prompt is empty (SMP-05)")
        if self.prompt_length > self.context_length:
            raise ParameterError(
                f"prompt_length={self.prompt_length} exceeds context_length={self.context_length} (SMP-06)"
            )

    @property
    def end(self) -> int:
        """The frontier at which decoding ends: budget used up, or no position left to predict from (NOT-01).

        The last token needs no position of its own: it is never fed back, hence the `+ 1`.
        """
        return min(self.prompt_length + self.max_new_tokens, self.context_length + 1)

    def may_inject(self, position: int) -> bool:
        """Tells whether the prediction made at `position` could still be committed (SMP-15)."""
        return position + 1 < self.end

    def reason_at(self, frontier: int, last_token: int) -> FinishReason | None:
        """Says whether, and why, decoding ends once `last_token` was committed just below `frontier` (SMP-14)."""
        if last_token in self.stop_ids:
            return FinishReason.EOS
        if frontier < self.end:
            return None
        return self.reason_of_end()

    def reason_of_end(self) -> FinishReason:
        """Says which limit sets `end`; the budget's name wins where both do."""
        within_budget = self.prompt_length + self.max_new_tokens <= self.context_length + 1
        return FinishReason.LENGTH if within_budget else FinishReason.CONTEXT

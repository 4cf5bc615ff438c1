"""What the oracle says of tokens: of each one, of what is not allowed, and of all together."""

from dataclasses import asdict, dataclass

from reference.oracle.verdicts import Verdict
from reference.oracle.words import plain
from reference.stopping import FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenVerdict:
    """One new token beside what the reference says after the same prefix."""

    index: int
    """Which new token, from 0."""
    verdict: Verdict
    """EXACT if the ids are equal, NEAR_TIE if `gap` is at most `tolerance`, else WRONG."""
    candidate_id: int
    """The candidate's token."""
    reference_id: int
    """The reference's token."""
    candidate_logit: float
    """The reference's logit of the candidate's token; minus infinity for an id outside the vocabulary."""
    reference_logit: float
    """The largest logit."""
    margin: float
    """The largest logit minus the largest of any other id (SMP-03)."""
    tolerance: float
    """The distance within which two logits of this row are a near tie (CONF-05)."""
    logprob_error: float | None = None
    """The candidate's log-probability of its token minus the reference's; None if it gave none."""

    @property
    def gap(self) -> float:
        """How far the candidate's token is behind the reference's; 0 where they are equal."""
        return self.reference_logit - self.candidate_logit if self.candidate_id != self.reference_id else 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not allowed."""

    index: int
    """Which new token, from 0; the number of tokens if it is about what follows the last."""
    clause: str
    """The clause that is broken."""
    reason: str
    """What is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensVerdict:
    """What became of a candidate's tokens. Printed, it explains itself."""

    verdict: Verdict
    """WRONG if there is a fault; else NEAR_TIE if a token is one; else EXACT."""
    tokens: tuple[TokenVerdict, ...]
    """One for each new token up to where decoding ends; tokens behind that are one fault together."""
    faults: tuple[Fault, ...]
    """What is wrong, first things first: the first wrong token, log-probabilities, the end."""
    finish_reason: FinishReason | None
    """Why decoding ends where the candidate's tokens say so; None if it should have gone on."""

    @property
    def first_difference(self) -> TokenVerdict | None:
        """The first token that is not the reference's, near tie or wrong; None if there is none."""
        return next((token for token in self.tokens if token.verdict is not Verdict.EXACT), None)

    @property
    def near_ties(self) -> tuple[TokenVerdict, ...]:
        """The tokens that differ where rounding may decide."""
        return tuple(token for token in self.tokens if token.verdict is Verdict.NEAR_TIE)

    @property
    def is_consistent_after_near_tie(self) -> bool:
        """Whether every token behind the first near tie follows from the candidate's own prefix."""
        ties = self.near_ties
        return all(token.verdict is not Verdict.WRONG for token in self.tokens if ties and token.index > ties[0].index)

    def as_json(self) -> dict[str, object]:
        """Gives the verdict as an object for machines."""
        first = self.first_difference
        return {
            "verdict": self.verdict,
            "tokens": [token.verdict for token in self.tokens],
            "first_difference": None if first is None else plain(asdict(first) | {"gap": first.gap}),
            "is_consistent_after_near_tie": self.is_consistent_after_near_tie,
            "faults": [asdict(fault) for fault in self.faults],
            "finish_reason": self.finish_reason,
        }

    def __str__(self) -> str:
        """Gives the verdict, the first difference and every fault."""
        lines = [f"{self.verdict}: {len(self.tokens)} tokens judged, {len(self.near_ties)} near ties"]
        first = self.first_difference
        if first is not None:
            lines.append(
                f"first difference at new token {first.index}: candidate {first.candidate_id} "
                f"({first.candidate_logit:.6g}), reference {first.reference_id} ({first.reference_logit:.6g}), "
                f"gap {first.gap:.3g}, near tie up to {first.tolerance:.3g} (CONF-05)"
            )
        lines += [f"new token {fault.index}: {fault.reason} ({fault.clause})" for fault in self.faults]
        return "\n".join(lines)

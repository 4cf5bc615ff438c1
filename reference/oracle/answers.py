"""What an engine is asked, what it may answer, and everything that the oracle can say of an answer.

An engine answers with as much as it has. Its tokens are always judged; a finish reason, log-probabilities, a trace and
counts are judged if they are there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from reference.errors import check_whole_number
from reference.models.protocol import LoopedModel
from reference.oracle.counts import Claims, CountsVerdict, check_counts
from reference.oracle.token_verdicts import TokensVerdict
from reference.oracle.tokens import check_tokens
from reference.oracle.totals import check_totals
from reference.oracle.traces import Objection, TraceVerdict, check_trace
from reference.oracle.verdicts import Verdict
from reference.sampling import check_state_options
from reference.schedule import Commit, Start

_ANY_LENGTH: Final = 2**31
"""A draft length that bounds nothing: no request asks for one, and counts without a trace do not tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One greedy decoding that is asked for."""

    prompt_ids: list[int]
    """Token ids of the prompt; never empty."""
    max_new_tokens: int
    """The budget; it may be 0."""
    eos_token_ids: list[int]
    """Ids that end the text, ascending; none if the list is empty."""
    draft_depth: int
    """d; T asks for no drafts. It changes speed and nothing else, so an engine without drafts may ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine gave; None stands for what it does not tell."""

    token_ids: Sequence[int]
    """The new tokens, a stop id at the end included."""
    finish_reason: str | None = None
    """`eos`, `length` or `context` (SMP-14)."""
    logprobs: Sequence[float] | None = None
    """The log-probability of each new token."""
    trace: str | None = None
    """The schedule as JSON lines; see `trace.schema.json`."""
    counts: Claims | None = None
    """Any of the fields of `reference.counts.Counts` and `acceptance_rate`, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Judges the answers of one engine."""

    model: LoopedModel
    """The reference's model with the engine's weights."""
    recurrence_depth: int
    """T."""
    decoder: str | None = None
    """Which decoder a trace must be one of; None is what the trace says."""
    state_seed: int = 0
    """Seed of the initial state (MOD-08)."""
    state_scale: float = 1.0
    """Scale of the initial state (MOD-07)."""
    dtype: torch.dtype | None = None
    """Type in which the engine computes; None is the model's."""
    tolerance: float | None = None
    """Distance of two logits within which they are a near tie; None is that of CONF-05."""

    def __post_init__(self) -> None:
        """Holds that T and the initial state are possible.

        Raises:
            ParameterError: If not.
        """
        check_whole_number("recurrence_depth", self.recurrence_depth, minimum=1, clause="MOD-01")
        check_state_options(seed=self.state_seed, scale=self.state_scale)

    def tokens(self, request: Request, answer: Answer) -> TokensVerdict:
        """Judges tokens, and finish reason and log-probabilities if there are any; see `check_tokens`."""
        return check_tokens(
            self.model,
            request.prompt_ids,
            answer.token_ids,
            max_new_tokens=request.max_new_tokens,
            finish_reason=answer.finish_reason,
            logprobs=answer.logprobs,
            eos_token_id=request.eos_token_ids,
            recurrence_depth=self.recurrence_depth,
            state_seed=self.state_seed,
            state_scale=self.state_scale,
            dtype=self.dtype,
            tolerance=self.tolerance,
        )

    def trace(self, request: Request, answer: Answer) -> TraceVerdict:
        """Judges the trace of an answer that has one, and holds that it is the trace of this answer to this request.

        Raises:
            TraceFormatError: If a line is not an event of the format.
        """
        assert answer.trace is not None, "only what is told can be judged"
        verdict = check_trace(answer.trace, decoder=self.decoder, recurrence_depth=self.recurrence_depth)
        if verdict.verdict is Verdict.WRONG:
            return verdict
        foreign = self._foreign(request, answer, verdict)
        return replace(verdict, verdict=Verdict.WRONG, objection=foreign) if foreign else verdict

    def counts(self, request: Request, answer: Answer) -> CountsVerdict:
        """Judges the counts of an answer that has some: by its trace, or without one by the closed forms.

        Without a trace the decoder must be known; `ar` has no draft depth but T.

        Raises:
            ParameterError: If something counted has another name.
            TraceFormatError: If a line of the trace is not an event of the format.
        """
        assert answer.counts is not None, "only what is told can be judged"
        if answer.trace is not None:
            return check_counts(answer.counts, answer.trace)
        start = Start(
            decoder=self.decoder or "wfd",
            recurrence_depth=self.recurrence_depth,
            draft_depth=self.recurrence_depth if self.decoder == "ar" else request.draft_depth,
            draft_length=_ANY_LENGTH if self.decoder == "dtv" else None,
            prompt_length=len(request.prompt_ids),
            max_new_tokens=request.max_new_tokens,
            context_length=self.model.context_length,
            stop_ids=tuple(request.eos_token_ids),
        )
        stopped = bool(answer.token_ids) and answer.token_ids[-1] in request.eos_token_ids
        return check_totals(answer.counts, start, "eos" if stopped else "length")

    def _foreign(self, request: Request, answer: Answer, verdict: TraceVerdict) -> Objection | None:
        """Says where a trace, allowed in itself, is not that of the answer."""
        start = verdict.events[0]
        assert isinstance(start, Start), "a trace that is allowed opens with one"
        asked = {
            "prompt_length": len(request.prompt_ids),
            "max_new_tokens": request.max_new_tokens,
            "context_length": self.model.context_length,
            "stop_ids": tuple(request.eos_token_ids),
        }
        if start.decoder != "ar":
            asked["draft_depth"] = request.draft_depth
        for name, value in asked.items():
            if getattr(start, name) != value:
                what = f"the trace is one of {name}={getattr(start, name)}, but {value} was asked for"
                return Objection(0, start, "NOT-03", what)
        commits = [(index, event) for index, event in enumerate(verdict.events) if isinstance(event, Commit)]
        traced = [event.token for _, event in commits]
        told = list(answer.token_ids)
        if traced == told:
            return None
        place = next((k for k, (one, other) in enumerate(zip(traced, told, strict=False)) if one != other), None)
        if place is None:
            what = f"the trace commits {len(traced)} tokens, the answer has {len(told)}"
            return Objection(len(verdict.events), None, "NOT-03", what)
        index, commit = commits[place]
        return Objection(index, commit, "NOT-03", f"the answer's new token {place} is {told[place]}")


def complaint(verdict: TokensVerdict | TraceVerdict | CountsVerdict) -> str | None:
    """Gives the clause that is broken and why, in a line, then the whole verdict; None if nothing is wrong.

    Args:
        verdict: A verdict on tokens, a trace or counts.
    """
    if verdict.verdict is not Verdict.WRONG:
        return None
    match verdict:
        case TokensVerdict(faults=(fault, *_)):
            head = f"{fault.clause}: new token {fault.index}: {fault.reason}"
        case TraceVerdict(objection=Objection() as objection):
            head = f"{objection.clause}: event {objection.index}: {objection.reason}"
        case CountsVerdict(discrepancies=(found, *_)):
            head = f"{found.clause}: {found.name} is {found.claimed:g}, should be {found.expected}"
        case _:
            raise AssertionError("what is wrong has a reason")
    return f"{head}\n\n{verdict}"

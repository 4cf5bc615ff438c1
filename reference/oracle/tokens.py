"""Judges somebody else's tokens: the reference reads them along at full depth and says what it would have chosen.

Every position is judged on the candidate's own prefix. One near tie that fell the other way, as bfloat16 makes happen,
therefore condemns nothing behind it: what follows is right if it follows from what the candidate had before.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import torch
from torch import Tensor

from reference.axes import Logits
from reference.engine import DECLARED_BY_MODEL, EosTokenId, PromptIds, stop_ids_of, token_ids_of
from reference.errors import ParameterError, check_whole_number
from reference.models.protocol import LoopedModel
from reference.oracle.forward import Settings, full_depth_logits, tokens_by_depth
from reference.oracle.token_verdicts import Fault, TokensVerdict, TokenVerdict
from reference.oracle.tolerance import coarser, near_tie_tolerances
from reference.oracle.verdicts import Verdict, worst
from reference.sampling import check_state_options, greedy
from reference.stopping import FinishReason, Stopping


def check_tokens(  # noqa: PLR0913 - what decides about a run's tokens, each by name
    model: LoopedModel,
    prompt_ids: PromptIds,
    candidate_ids: Sequence[int] | Tensor,
    *,
    max_new_tokens: int | None = None,
    finish_reason: str | None = None,
    logprobs: Sequence[float] | None = None,
    eos_token_id: EosTokenId = DECLARED_BY_MODEL,
    recurrence_depth: int | None = None,
    state_seed: int = 0,
    state_scale: float = 1.0,
    dtype: torch.dtype | None = None,
    tolerance: float | None = None,
) -> TokensVerdict:
    """Judges the tokens that another implementation decoded greedily, whatever decoder it used.

    Args:
        model: The reference's model with the candidate's weights, at best in a type as wide as the candidate's.
        prompt_ids: Token ids of the prompt.
        candidate_ids: The new tokens, without the prompt.
        max_new_tokens: The budget; None takes the candidate's length for it, so that nothing is too short.
        finish_reason: The candidate's; None if it gave none.
        logprobs: The candidate's log-probability of each of its tokens; None if it gave none.
        eos_token_id: Stop ids, in any form that `generate` takes.
        recurrence_depth: T; None is the model's own.
        state_seed: Seed of the initial state.
        state_scale: Scale of the initial state.
        dtype: Type in which the candidate computed; None is the model's.
        tolerance: Distance of two logits within which they are a near tie; None is that of CONF-05.

    Returns:
        A verdict for every token, and every fault with its clause.

    Raises:
        ParameterError: If an argument breaks a rule; before any computation.
        NumericsError: If the reference's logits hold NaN.

    Spec: AR-03, WFD-11, DTV-07, SMP-01, SMP-14, CONF-05.
    """
    prompt = token_ids_of("prompt_ids", prompt_ids, model, clause="SMP-07")
    numbers = candidate_ids.tolist() if isinstance(candidate_ids, Tensor) else list(candidate_ids)
    _check(numbers, logprobs, tolerance)
    settings = _settings(model, recurrence_depth, state_seed, state_scale)
    coarsest = coarser(model.dtype, model.dtype if dtype is None else dtype)
    stopping = Stopping(
        prompt_length=len(prompt),
        max_new_tokens=_budget(len(numbers), finish_reason, model) if max_new_tokens is None else max_new_tokens,
        context_length=model.context_length,
        stop_ids=stop_ids_of(eos_token_id, model),
    )
    num_tokens, reason = _end(numbers, stopping)
    # What follows an id that the model does not know cannot be computed.
    num_known = next((k for k, token in enumerate(numbers) if not 0 <= token < model.vocab_size), len(numbers))
    num_judged = min(num_tokens, num_known + 1)
    # One more row where the candidate stopped too soon: it says how the text goes on.
    goes_on = reason is None and num_known == len(numbers)
    num_rows = num_judged + goes_on
    sequence = [*prompt, *numbers[: max(num_rows - 1, 0)]]
    judged: list[TokenVerdict] = []
    next_id = None
    if num_rows:
        logits = full_depth_logits(model, sequence, settings, first=len(prompt) - 1)
        tolerances = near_tie_tolerances(logits, coarsest) if tolerance is None else [tolerance] * num_rows
        judged = _judge(numbers[:num_judged], logits, tolerances, logprobs)
        next_id = greedy(logits[-1:])[0][0] if goes_on else None

    faults = []
    wrong = next((token for token in judged if token.verdict is Verdict.WRONG), None)
    if wrong is not None:
        shallow = tokens_by_depth(model, [*prompt, *numbers[: wrong.index]], settings)
        faults.append(_wrong_token(wrong, shallow, num_known=num_known))
    faults += _wrong_logprobs(judged)
    if num_known == len(numbers):
        faults += _wrong_end(numbers, num_tokens, reason, stopping.stop_ids, next_id)
        if None not in {reason, finish_reason} and reason != finish_reason:
            faults.append(Fault(num_tokens, "SMP-14", f"the finish reason is {reason}, not {finish_reason}"))
    return TokensVerdict(
        verdict=Verdict.WRONG if faults else worst(token.verdict for token in judged),
        tokens=tuple(judged),
        faults=tuple(faults),
        finish_reason=reason,
    )


def _check(candidate_ids: Sequence[object], logprobs: Sequence[float] | None, tolerance: float | None) -> None:
    """Holds that ids are whole numbers, that each has a log-probability if any has, and that a tolerance is one.

    Raises:
        ParameterError: If not.
    """
    for number in candidate_ids:
        if isinstance(number, bool) or not isinstance(number, int):
            raise ParameterError(f"candidate_ids={number!r} is not a whole number (SMP-07)")
    if logprobs is not None and len(logprobs) != len(candidate_ids):
        raise ParameterError(f"{len(logprobs)} logprobs for {len(candidate_ids)} candidate_ids (CONF-03)")
    if tolerance is not None and not (0 <= tolerance < math.inf):
        raise ParameterError(f"tolerance={tolerance!r} is not a finite number of at least 0 (CONF-05)")


def _settings(model: LoopedModel, recurrence_depth: int | None, seed: int, scale: float) -> Settings:
    depth = model.recurrence_depth if recurrence_depth is None else recurrence_depth
    check_whole_number("recurrence_depth", depth, minimum=1, clause="MOD-01")
    check_state_options(seed=seed, scale=scale)
    return Settings(recurrence_depth=depth, state_seed=seed, state_scale=scale)


def _budget(num_tokens: int, finish_reason: str | None, model: LoopedModel) -> int:
    """Gives the budget of a candidate that names none: what it used, unless it says that something else ended it."""
    return model.context_length + 1 if finish_reason in {FinishReason.EOS, FinishReason.CONTEXT} else num_tokens


def _end(numbers: Sequence[int], stopping: Stopping) -> tuple[int, FinishReason | None]:
    """Says after how many of the candidate's tokens decoding ends, and why; None if it goes on behind all of them."""
    first = stopping.prompt_length
    if first == stopping.end:
        return 0, stopping.reason_of_end()
    for index, token in enumerate(numbers):
        reason = stopping.reason_at(first + index + 1, token)
        if reason is not None:
            return index + 1, reason
    return len(numbers), None


def _judge(
    numbers: Sequence[int], logits: Logits, tolerances: Sequence[float], logprobs: Sequence[float] | None
) -> list[TokenVerdict]:
    best, margins = greedy(logits)
    vocab_size = logits.shape[-1]
    # One row per token; the index of an unknown id is moved into the vocabulary and its logit replaced below.
    rows = logits[: len(numbers)].double()
    ids = torch.tensor([token if 0 <= token < vocab_size else 0 for token in numbers], device=logits.device)
    own = rows.gather(-1, ids.long().unsqueeze(-1)).squeeze(-1).tolist()
    largest = rows.amax(dim=-1).tolist()
    own_logprobs = rows.log_softmax(-1).gather(-1, ids.long().unsqueeze(-1)).squeeze(-1).tolist()
    judged = []
    for index, token in enumerate(numbers):
        logit = own[index] if 0 <= token < vocab_size else -math.inf
        is_near = largest[index] - logit <= tolerances[index]
        verdict = Verdict.EXACT if token == best[index] else Verdict.NEAR_TIE if is_near else Verdict.WRONG
        judged.append(
            TokenVerdict(
                index=index,
                verdict=verdict,
                candidate_id=token,
                reference_id=best[index],
                candidate_logit=logit,
                reference_logit=largest[index],
                margin=margins[index],
                tolerance=tolerances[index],
                logprob_error=None if logprobs is None else logprobs[index] - own_logprobs[index],
            )
        )
    return judged


def _wrong_token(token: TokenVerdict, shallow: Sequence[int], *, num_known: int) -> Fault:
    """Explains the first wrong token, and says if it is what a shallower readout says: a draft that nobody verified."""
    if token.index == num_known:
        return Fault(token.index, "MOD-04", f"token {token.candidate_id} has no logit: it is not in the vocabulary")
    reason = f"token {token.candidate_id} where the full depth says {token.reference_id}, {token.gap:.3g} ahead"
    depths = [str(depth) for depth, said in enumerate(shallow, start=1) if said == token.candidate_id]
    if depths:
        reason += f"; depth {', '.join(depths)} says {token.candidate_id}"
    return Fault(token.index, "AR-03", reason)


def _wrong_logprobs(judged: Sequence[TokenVerdict]) -> list[Fault]:
    """Names the first log-probability that rounding cannot explain.

    A log-probability is a logit minus the logarithm of a sum over all: if no logit moves by more than a distance, both
    terms keep within it, so twice that distance, the near-tie tolerance, is the bound here too.
    """
    for token in judged:
        error = token.logprob_error
        # Written so that NaN is an error too.
        if error is not None and not abs(error) <= token.tolerance:
            what = f"the log-probability is off by {error:.3g}, more than {token.tolerance:.3g}"
            return [Fault(token.index, "CONF-03", what)]
    return []


def _wrong_end(
    numbers: Sequence[int],
    num_tokens: int,
    reason: FinishReason | None,
    stop_ids: AbstractSet[int],
    next_id: int | None,
) -> list[Fault]:
    """Says whether there are too many or too few tokens."""
    if reason is None:
        what = f"the text ends although nothing ends it: the reference goes on with {next_id}"
        if next_id in stop_ids:
            what = f"the stop id {next_id} is missing: it is part of the result, as its last token"
        return [Fault(num_tokens, "SMP-14", what)]
    surplus = len(numbers) - num_tokens
    if not surplus:
        return []
    what = f"{surplus} more tokens although decoding ends before them, with reason {reason}"
    return [Fault(num_tokens, "SMP-14" if num_tokens else "SMP-10", what)]

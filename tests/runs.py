"""Runs of real decoders on small models, one tick at a time, with everything open to inspection."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import torch
from torch import Tensor

from reference.engine import Arithmetic, Decoding
from reference.models.protocol import LoopedModel
from reference.models.scripted import ScriptedModel
from reference.provenance import Part
from reference.sampling import greedy
from tests.driving import MAKERS, Case
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro

TOLERANCE: Final = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 0.0625}
"""How far two computations of the same numbers may lie apart, relative to the largest (CONF-04)."""


@cache
def tiny_model(family: str, seed: int, dtype: torch.dtype) -> LoopedModel:
    """Gives a small random model; the Ouro's two query heads share a key head, the Huginn has a coda with cells."""
    if family == "ouro":
        return random_ouro(ouro_config(num_layers=1, vocab_size=7), seed=seed, dtype=dtype)
    return random_huginn(huginn_config(core_layers=1, vocab_size=7), seed=seed, dtype=dtype)


@dataclass(frozen=True)
class Tiny:
    """Names a small random model. Strategies draw names: what they call may not draw from Python's own generator."""

    family: str
    """`ouro` or `huginn`."""
    seed: int
    """Of its weights."""
    dtype: torch.dtype
    """Of its weights, states and cells."""


def scripted(case: Case, *, with_ties: bool = False) -> ScriptedModel:
    """Builds the scripted model whose readouts are those of a case's table.

    Args:
        case: The case.
        with_ties: Whether higher ids get the same logit as the right one, here and there.
    """
    table, vocab_size = case.table, case.table.vocab_size

    def logits(prefix: tuple[int, ...], depth: int) -> list[float]:
        is_full = depth == case.recurrence_depth
        chosen = table.verified(prefix) if is_full else table.drafted(prefix, depth, 0)
        tied = [with_ties and token > chosen and (token + len(prefix)) % 2 == 0 for token in range(vocab_size)]
        return [float(token == chosen or tied[token]) for token in range(vocab_size)]

    return ScriptedModel(
        table=logits,
        vocab_size=vocab_size,
        recurrence_depth=case.recurrence_depth,
        context_length=case.context_length,
    )


@dataclass(frozen=True, kw_only=True)
class Job:
    """One problem, posed to any decoder on a model."""

    network: Tiny | LoopedModel
    """The model, or its name."""
    prompt: tuple[int, ...]
    """Token ids of the prompt."""
    recurrence_depth: int
    """T."""
    draft_depth: int
    """d."""
    draft_length: int = 1
    """gamma; DtV only."""
    max_new_tokens: int
    """The budget."""
    context_length: int = 64
    """Positions that may be used."""
    stop_ids: frozenset[int] = frozenset()
    """Stop ids."""
    state_seed: int = 0
    """Seed of the initial state."""
    arithmetic: Arithmetic = Arithmetic.EXACT
    """How rows are computed."""

    @property
    def model(self) -> LoopedModel:
        """The model."""
        network = self.network
        return tiny_model(network.family, network.seed, network.dtype) if isinstance(network, Tiny) else network

    @classmethod
    def of(cls, case: Case, *, arithmetic: Arithmetic, with_ties: bool = False) -> "Job":
        """Poses a case, answered by its table, to the engine."""
        return cls(
            network=scripted(case, with_ties=with_ties),
            prompt=case.prompt,
            recurrence_depth=case.recurrence_depth,
            draft_depth=case.draft_depth,
            draft_length=case.draft_length,
            max_new_tokens=case.max_new_tokens,
            context_length=case.context_length,
            stop_ids=case.stop_ids,
            arithmetic=arithmetic,
        )

    def stopping_at(self, *stop_ids: int) -> "Job":
        """Gives the same problem with other stop ids."""
        return replace(self, stop_ids=frozenset(stop_ids))

    def in_arithmetic(self, arithmetic: Arithmetic) -> "Job":
        """Gives the same problem in another arithmetic."""
        return replace(self, arithmetic=arithmetic)


class _Unasked:
    """The table of a case whose schedule is answered by a model."""

    vocab_size = 0

    def verified(self, prefix: tuple[int, ...]) -> int:
        raise NotImplementedError

    def drafted(self, prefix: tuple[int, ...], depth: int, tick: int) -> int:
        raise NotImplementedError


def start(job: Job, decoder: str, *, provenance: bool = True) -> Decoding:
    """Prefills; the first token is committed."""
    case = Case(
        table=_Unasked(),
        prompt=job.prompt,
        recurrence_depth=job.recurrence_depth,
        draft_depth=job.draft_depth,
        draft_length=job.draft_length,
        max_new_tokens=job.max_new_tokens,
        context_length=job.context_length,
        stop_ids=job.stop_ids,
    )
    return Decoding(
        job.model,
        job.prompt,
        MAKERS[decoder](case),
        arithmetic=job.arithmetic,
        state_seed=job.state_seed,
        provenance=provenance,
        keep_logits=True,
    )


def decode(job: Job, decoder: str, *, provenance: bool = True) -> Decoding:
    """Runs to the finish."""
    decoding = start(job, decoder, provenance=provenance)
    while not decoding.is_finished:
        decoding.step()
    return decoding


def finished_cells(decoding: Decoding, number: int) -> Iterator[tuple[str, Tensor]]:
    """Gives all cells of the first `number` positions, named."""
    for part in Part:
        for recurrence in range(decoding.kv.recurrence_depth if part is Part.RECURRENT else 1):
            keys, values = decoding.kv.cells(part, slice(0, number), recurrence=recurrence)
            yield f"{part.value} keys, recurrence {recurrence}", keys
            yield f"{part.value} values, recurrence {recurrence}", values


def agree(one: Tensor, other: Tensor) -> bool:
    """Says whether two tensors of one type agree within the tolerance of the type (CONF-04)."""
    scale = max(1.0, float(other.abs().max()) if other.numel() else 0.0)
    return bool(((one - other).abs() <= TOLERANCE[other.dtype] * scale).all())


def is_near_tie(logits: Tensor) -> bool:
    """Says whether rounding may decide the choice among one row of logits (CONF-05)."""
    _, (margin,) = greedy(logits.reshape(1, -1))
    return margin <= 2 * TOLERANCE[logits.dtype] * max(1.0, float(logits.abs().max()))

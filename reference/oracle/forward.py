"""One pass of a model over a whole sequence, all positions at once: what the oracle compares a candidate with.

The cost is that of a prompt as long as the sequence, once, however the candidate decoded it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from reference import prefill
from reference.axes import Hidden, Logits
from reference.kv import KVCache
from reference.models.protocol import LoopedModel
from reference.provenance import Part
from reference.sampling import greedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is computed with, beside weights and tokens."""

    recurrence_depth: int
    """T."""
    state_seed: int
    """Seed of the initial state (MOD-08)."""
    state_scale: float
    """Scale of the initial state (MOD-07)."""


@torch.inference_mode()
def full_depth_logits(model: LoopedModel, token_ids: Sequence[int], settings: Settings, *, first: int) -> Logits:
    """Gives the full-depth logits that predict what follows each position from `first` on (MOD-03, AR-03).

    Args:
        model: Any looped model.
        token_ids: The sequence, from position 0.
        settings: T and the initial state.
        first: The first position to be read out; the head runs on no other.
    """
    *_, hidden = _readouts(model, token_ids, settings, depths=(settings.recurrence_depth,))
    return model.head(hidden[first:])


@torch.inference_mode()
def tokens_by_depth(model: LoopedModel, token_ids: Sequence[int], settings: Settings) -> list[int]:
    """Gives what the last position says at each depth below T, from depth 1 on (MOD-04)."""
    depths = range(1, settings.recurrence_depth)
    return [greedy(model.head(hidden[-1:]))[0][0] for hidden in _readouts(model, token_ids, settings, depths=depths)]


def _readouts(
    model: LoopedModel, token_ids: Sequence[int], settings: Settings, *, depths: Sequence[int]
) -> Iterator[Hidden]:
    """Gives the coda's output for all positions at each of `depths`, ascending."""
    positions = range(len(token_ids))
    cache = KVCache(
        model.kv_shapes,
        recurrence_depth=settings.recurrence_depth,
        num_positions=len(positions),
        dtype=model.dtype,
        device=model.device,
    )
    tokens = torch.tensor(list(token_ids), device=model.device)
    drawn = model.initial_states(positions, seed=settings.state_seed, scale=settings.state_scale)
    states, injected_inputs = prefill.start(model, cache, tokens, positions, drawn)
    climbing = prefill.climb(model, cache, positions, states, injected_inputs)
    for depth, climbed in enumerate(islice(climbing, max(depths, default=0)), start=1):
        if depth in depths:
            yield model.coda(climbed, cache.rows(Part.CODA, positions, [depth] * len(positions)))

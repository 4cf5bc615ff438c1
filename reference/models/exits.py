"""Ouro's exit gate: at which depth a position could stop, from the gate's values at all depths.

The official default call picks a depth by a threshold on the cumulative exit probability, after computing all T loops.
"""

from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from reference.axes import Logits

PerDepth: TypeAlias = Float[Tensor, "rows recurrence"]
"""One number for each row and depth; depths 1 to T."""


def exit_probabilities(gate_logits: PerDepth) -> PerDepth:
    """Gives the probability that a position exits at each depth.

    The gate decides at each depth whether a position that is still there exits. Who reaches the last depth exits there,
    whatever its gate says, so the probabilities of a row sum to 1 up to rounding.

    Args:
        gate_logits: `Ouro.gate_logits` of the states at depths 1 to T, side by side.
    """
    chances = torch.sigmoid(gate_logits)
    remaining = torch.ones_like(chances[:, 0])
    probabilities = []
    for chance in chances.unbind(dim=-1)[:-1]:
        probabilities.append(chance * remaining)
        remaining = remaining * (1 - chance)
    return torch.stack((*probabilities, remaining), dim=-1)


def cumulative(probabilities: PerDepth) -> PerDepth:
    """Gives the probability that a position has exited by each depth."""
    return probabilities.cumsum(dim=-1)


def exit_depths(cumulative_probabilities: PerDepth, threshold: float) -> Int[Tensor, " rows"]:
    """Gives the depth at which a position exits: the first whose cumulative probability reaches the threshold.

    If rounding keeps all of them below it, that is the last depth. Depths count from 1; the official exit step is one
    less. A threshold of 1.0 is not "full depth": a saturated gate reaches it earlier.

    Args:
        cumulative_probabilities: See `cumulative`.
        threshold: Probability to reach.
    """
    reached = cumulative_probabilities >= threshold
    last = torch.full_like(reached[:, 0], reached.shape[-1], dtype=torch.int64)
    return torch.where(reached.any(dim=-1), reached.int().argmax(dim=-1) + 1, last)


def weighted_logits(probabilities: PerDepth, logits: Float[Tensor, "rows recurrence vocab"]) -> Logits:
    """Gives the mean of the logits of all depths, each weighted with its exit probability."""
    return (probabilities.unsqueeze(-1) * logits).sum(dim=1)

"""Grows the core of a tiny Huginn model: a shallow one costs less, and learned to copy where a deep one did not."""

from typing import Final

import torch
from torch import Tensor

from reference.training.huginn_net import EMBEDDING, HEAD, block_weights
from reference.training.nets import Parameters

_CORE: Final = "transformer.core_block."
_BRANCH_ENDS: Final = ("attn.proj.weight", "mlp.proj.weight")
"""What brings attention and MLP back to the width of the state."""
_SUM_NORMS: Final = ("norm_2.weight", "norm_4.weight")
"""What scales a sum of state and branch."""
_LAST_NORM: Final = "norm_4.weight"


def grow_core(parameters: Parameters, num_core: int) -> dict[str, Tensor]:
    """Puts further blocks behind every block of the core, so that the network computes what it did before.

    A new block is a copy of the one that it stands behind, but adds nothing yet: the last matrix of attention and of
    the MLP is zero. What enters it was scaled by that block's last norm, so its own two norms of sums get one scale
    each, the root mean square of that norm's weights. Growing thus changes an activation only as far as the root mean
    square of a single vector differs from the mean one; the parts that are copied are what the zero matrices then
    learn from. Growing networks by blocks that start as the identity is known from Net2Net (Chen et al., 2016) and
    LLaMA Pro (Wu et al., 2024).

    Args:
        parameters: fp32 tensors under their official names.
        num_core: Blocks of the core afterwards, a multiple of what it has.

    Returns:
        Fresh tensors under their official names; the head is the very tensor of the embedding.

    Raises:
        ValueError: `num_core` is no multiple.
    """
    before = len({name.removeprefix(_CORE).split(".")[0] for name in parameters if name.startswith(_CORE)})
    copies, left = divmod(num_core, before)
    if left or copies == 0:
        raise ValueError(f"num_core must be a multiple of the {before} blocks there are, got {num_core}")
    grown = {name: tensor.detach().clone() for name, tensor in parameters.items() if not name.startswith(_CORE)}
    grown[HEAD] = grown[EMBEDDING]
    for block in range(num_core):
        source, copy = divmod(block, copies)
        weights = block_weights(parameters, f"core_block.{source}")
        scale = weights[_LAST_NORM].detach().square().mean().sqrt()
        for part, tensor in weights.items():
            value = tensor.detach().clone()
            if copy > 0 and part in _BRANCH_ENDS:
                value = torch.zeros_like(value)
            elif copy > 0 and part in _SUM_NORMS:
                value = torch.ones_like(value) * scale
            grown[f"{_CORE}{block}.{part}"] = value
    return grown

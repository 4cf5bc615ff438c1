"""Gives the parts that both model families share: parameters by name, RMS norm, attention."""

from collections.abc import Mapping
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

from reference.training.memory import Memory

Parameters: TypeAlias = Mapping[str, Tensor]
"""Tensors under the names of the official checkpoint files, so that saving them writes the official format."""


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Scales each vector to unit mean square, then by a learned weight.

    The statistics are fp32 and the product with the weight comes after the cast back, as in both official models.

    Args:
        x: [..., hidden].
        weight: [hidden].
        eps: Added to the mean square.

    Returns:
        A tensor like `x`.
    """
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def split_heads(x: Tensor, head_dim: int) -> Tensor:
    """Turns [batch, seq, head * head_dim] into [batch, head, seq, head_dim]."""
    return torch.unflatten(x, -1, (-1, head_dim)).transpose(1, 2)


def attend(queries: Tensor, keys: Tensor, values: Tensor, *, memory: Memory | None, slot: int) -> Tensor:
    """Gives causal attention, over the call alone or over a memory as well.

    Args:
        queries: Rotated queries, [batch, head, seq, head_dim].
        keys: Rotated keys, [batch, kv_head, seq, head_dim]; as many query heads share each as it takes.
        values: Values of the shape of `keys`.
        memory: Earlier keys and values; None when the call holds the whole sequence.
        slot: Where in the memory this layer and recurrence keep theirs.

    Returns:
        [batch, seq, head * head_dim].
    """
    if memory is not None:
        all_keys, all_values, mask = memory.extend(slot, keys, values)
        mixed = F.scaled_dot_product_attention(queries, all_keys, all_values, attn_mask=mask, enable_gqa=True)
    else:
        # Written out: on a CPU the fused attention spends more time in its backward pass than all else together.
        kv_heads, seq, width = keys.shape[1:]
        # The query heads that share a key head are further rows to it.
        scores = (
            torch.unflatten(queries, 1, (kv_heads, -1)).flatten(2, 3) @ keys.transpose(-1, -2)
        ).float() * width**-0.5
        hidden = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        weights = torch.unflatten(scores, 2, (-1, seq)).masked_fill(hidden, -torch.inf).softmax(-1).to(values.dtype)
        mixed = torch.unflatten(weights.flatten(2, 3) @ values, 2, (-1, seq)).flatten(1, 2)
    return mixed.transpose(1, 2).flatten(2)


def normal(shape: tuple[int, ...], std: float, generator: torch.Generator) -> Tensor:
    """Gives normal random numbers of a given standard deviation, drawn from a generator."""
    return torch.randn(shape, generator=generator) * std

"""Attention of a fixed number of rows over cells of which the device knows how many are occupied.

Two ways to the same numbers. *Masked*: `scaled_dot_product_attention` over all cells with a bias; runs everywhere and
in every type, but reads cells that are not occupied too. *Varlen*: the flash kernel inside PyTorch, with lengths as
data on the device; reads occupied cells alone; CUDA in 16-bit types.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from jaxtyping import Float, Int
from torch import Tensor

from reference.axes import Attended, KeysOrValues, Queries


@dataclass(frozen=True, slots=True)
class Plan:
    """Which rows read which slot; fixed when a step is built."""

    slots: tuple[int, ...]
    """The slot of every row, as a place in memory."""
    rows_of_slot: Mapping[int, tuple[int, ...]]
    """The rows that read each slot, ascending."""

    is_one_run: bool
    """Whether the rows are several, neighbours in position, and all read one slot: one causal attention."""

    @classmethod
    def of(cls, slots: tuple[int, ...], *, are_neighbours: bool) -> "Plan":
        """Groups rows by slot."""
        groups = {slot: tuple(k for k, s in enumerate(slots) if s == slot) for slot in sorted(set(slots))}
        return cls(slots, groups, is_one_run=are_neighbours and len(slots) > 1 == len(groups))

    @property
    def stride(self) -> int:
        """Distance between the slots of the first two rows; 1 for a single row."""
        return self.slots[1] - self.slots[0] if len(self.slots) > 1 else 1

    @property
    def is_one_each(self) -> bool:
        """Whether every row has a slot to itself and a slice selects them all: one batch, nothing copied."""
        step = self.stride
        return step > 0 and self.slots == tuple(range(self.slots[0], self.slots[-1] + 1, step))


def masked(
    query: Float[Tensor, "groups queries heads head_dim"],
    keys: Float[Tensor, "groups cells kv_heads head_dim"],
    values: Float[Tensor, "groups cells kv_heads head_dim"],
    bias: Float[Tensor, "groups queries cells"],
    scale: float,
) -> Attended:
    """Attends over all cells, with minus infinity added to the scores of those that a query must not see.

    The query heads that share a key head are taken as further queries of it, so no key is repeated.

    Args:
        query: The rows that read each slot.
        keys: The slots; views of the cells.
        values: Likewise.
        bias: Added to the scores.
        scale: Factor on the dot products.

    Returns:
        One row per query, group after group.
    """
    num_groups, num_queries, _, head_dim = query.shape
    kv_heads = keys.shape[2]
    grouped = query.reshape(num_groups, num_queries, kv_heads, -1, head_dim).transpose(1, 2)
    group = grouped.shape[3]
    bias = bias.unsqueeze(2).expand(-1, -1, group, -1).reshape(num_groups, 1, num_queries * group, -1)
    attended = F.scaled_dot_product_attention(
        grouped.reshape(num_groups, kv_heads, num_queries * group, head_dim),
        keys.transpose(1, 2),
        values.transpose(1, 2),
        attn_mask=bias,
        scale=scale,
    )
    split = attended.view(num_groups, kv_heads, num_queries, group * head_dim).transpose(1, 2)
    return split.reshape(num_groups * num_queries, -1)


def causal(query: Queries, key: KeysOrValues, value: KeysOrValues, scale: float) -> Attended:
    """Attends a prompt to itself."""
    queries, keys, values = (x.transpose(0, 1).unsqueeze(0) for x in (query, key, value))
    attended = F.scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=scale, enable_gqa=True)
    return attended.squeeze(0).transpose(0, 1).reshape(query.shape[0], -1)


def has_varlen(query: Queries) -> bool:
    """Says whether the flash kernel takes these rows."""
    return query.device.type == "cuda" and query.dtype in {torch.bfloat16, torch.float16} and query.shape[-1] % 8 == 0


def varlen(
    query: Queries,
    keys: Float[Tensor, "slots cells kv_heads head_dim"],
    values: Float[Tensor, "slots cells kv_heads head_dim"],
    scale: float,
    *,
    starts: tuple[Int[Tensor, " _sequences_and_end"], Int[Tensor, " _sequences_and_end"]],
    lengths: Int[Tensor, " _sequences"],
) -> Attended:
    """Attends over occupied cells only; where they are and how many is read by the kernel, on the device.

    Rows that read one slot and are neighbours are one sequence, in which the last row sees all cells and each row
    before it one less, so a byte of the slot is read once for all. Otherwise every row is a sequence of its own.

    Args:
        query: The rows.
        keys: All slots of a layer.
        values: Likewise.
        scale: Factor on the dot products.
        starts: Index of each sequence's first row, and of its first cell among those of all slots; both with one
            number more. 32 bits wide.
        lengths: Cells that the last row of each sequence sees.
    """
    sequences, num_rows = lengths.shape[0], query.shape[0]
    output = flash_forward()(
        query,
        keys.flatten(0, 1),
        values.flatten(0, 1),
        *starts,
        num_rows // sequences,
        keys.shape[1] - 1,
        0.0,  # no dropout
        sequences < num_rows,  # causal within a sequence
        False,  # noqa: FBT003 - no debug mask
        scale=scale,
        seqused_k=lengths,
    )[0]
    return output.reshape(num_rows, -1)


def flash_forward() -> Callable[..., tuple[Tensor, ...]]:
    """Gives the flash kernel; not a public function, since none took lengths in torch 2.6."""
    kernel: Callable[..., tuple[Tensor, ...]] = torch.ops.aten._flash_attention_forward  # noqa: SLF001 - see above
    return kernel

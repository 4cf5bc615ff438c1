"""What a captured step tells the host, a ring of committed tokens and a few totals, and the limits it was given.

Everything here is a number on the device, at a fixed address. The step adds to it; the host copies it out now and then.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, TypeAlias

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from reference.axes import Positions, TokenIds

EOS: Final = 1
"""What `Field.FINISH` says once a stop id was committed."""
END: Final = 2
"""What `Field.FINISH` says once the frontier reached the end."""


class Field(IntEnum):
    """The totals; most are those of `reference.counts.Counts`."""

    COMMITTED = 0
    """Tokens committed, the prefill's not included."""
    TICKS = 1
    """Recurrent calls in which a lane advanced."""
    LANE_TICKS = 2
    """Lanes in these calls."""
    PRELUDE_CALLS = 3
    """Lanes started, the first not included."""
    READOUT_CALLS = 4
    """Readouts of which somebody wanted the result."""
    ACCEPTED = 5
    """Judged drafts that were right."""
    REJECTED = 6
    """Judged drafts that were wrong."""
    FLUSHED = 7
    """Lanes dropped by rejections."""
    FINISH = 8
    """0 while decoding goes on, then `EOS` or `END`."""
    NANS = 9
    """Readouts with a NaN among their logits."""


Flags: TypeAlias = Bool[Tensor, " rows"]
"""A yes or no per row."""
Flag: TypeAlias = Bool[Tensor, "1"]
"""One yes or no; one axis, since indices want one."""
Number: TypeAlias = Int[Tensor, "1"]
"""One token id, position or count."""


class Ledger(nn.Module):
    """The ring, the totals and the limits of one sequence."""

    def __init__(self, *, vocab_size: int, ring_size: int, device: torch.device) -> None:
        """Allocates; nothing may be decoded before `open`.

        Args:
            vocab_size: Number of token ids.
            ring_size: Tokens that may be committed between two looks of the host.
            device: Where the numbers live.
        """
        super().__init__()
        self.ring_size = ring_size
        self.ring: Tensor
        self.totals: Tensor
        self.frontier: Tensor
        self.end: Tensor
        self.is_stop: Tensor
        self.zero: Tensor
        # One more entry than the ring has: what is not committed is written there.
        self.register_buffer("ring", torch.zeros(ring_size + 1, dtype=torch.int64, device=device))
        self.register_buffer("totals", torch.zeros(len(Field), dtype=torch.int64, device=device))
        self.register_buffer("frontier", torch.zeros(1, dtype=torch.int64, device=device))
        self.register_buffer("end", torch.zeros(1, dtype=torch.int64, device=device))
        self.register_buffer("is_stop", torch.zeros(vocab_size, dtype=torch.bool, device=device))
        self.register_buffer("zero", torch.zeros(1, dtype=torch.int64, device=device))

    def open(self, *, frontier: int, end: int, stop_ids: Int[Tensor, " ids"]) -> None:
        """Sets the limits of a new sequence; outside the captured step."""
        self.totals.zero_()
        self.frontier.fill_(frontier)
        self.end.fill_(end)
        self.is_stop.zero_()
        self.is_stop.index_fill_(0, stop_ids, 1)

    def may_inject(self, position: Number) -> Flag:
        """Tells whether a prediction made at `position` could still be committed (SMP-15)."""
        return position + 1 < self.end

    def finish_code(self, frontiers: Positions, tokens: TokenIds) -> Positions:
        """Gives `EOS`, `END` or 0 for tokens that raise the frontier to `frontiers` (SMP-14)."""
        at_end = torch.where(frontiers == self.end, END, 0)
        return torch.where(self.is_stop.index_select(0, tokens), EOS, at_end)

    def commit(self, tokens: TokenIds, committed: Flags) -> None:
        """Writes those tokens into the ring that are `committed`, which come first, and moves the frontier."""
        before = self.totals[Field.COMMITTED : Field.COMMITTED + 1]
        entries = (before + committed.long().cumsum(0) - 1) % self.ring_size
        self.ring.index_copy_(0, torch.where(committed, entries, self.ring_size), tokens)
        number = committed.sum(0, keepdim=True)
        self.frontier.add_(number)
        self.add({Field.COMMITTED: number})

    def add(self, amounts: Mapping[Field, Tensor]) -> None:
        """Adds to totals; an amount is one number, or a flag that counts as 1."""
        self.totals.add_(torch.cat([amounts.get(field, self.zero).long() for field in Field]))

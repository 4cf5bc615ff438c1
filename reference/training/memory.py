"""Keeps keys and values of earlier positions while the evaluation generates, for rows of unequal length."""

from typing import Final

import torch
from torch import Tensor

MOST_POSITIONS: Final = 496
"""Longest sequence a memory can hold, and the context length of both shipped models."""


class Memory:
    """Holds one buffer of keys and one of values for each slot, indexed by absolute position.

    Rows are padded on the right and every row has its own positions. What a padded place wrote is never seen: a query
    sees keys up to its own position, and every such position was written anew by the time a query reaches it.

    Attributes:
        positions: Absolute positions of the running call, [batch, seq]; the caller sets it before each call.
    """

    def __init__(self) -> None:
        """Makes an empty memory."""
        self.positions: Tensor = torch.zeros(0, 0, dtype=torch.long)
        self._slots: dict[int, tuple[Tensor, Tensor]] = {}

    def extend(self, slot: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Writes keys and values at the running positions, then gives everything the slot holds.

        Args:
            slot: Any number that tells one (layer, recurrence) from the others.
            keys: Rotated keys, [batch, head, seq, head_dim].
            values: Values of the same shape.

        Returns:
            Keys and values, [batch, head, key, head_dim], and the mask of what each query may see,
            [batch, 1, seq, key].
        """
        batch, heads, _, width = keys.shape
        if slot not in self._slots:
            empty = keys.new_zeros(batch, MOST_POSITIONS, heads, width)
            self._slots[slot] = (empty, empty.clone())
        stored_keys, stored_values = self._slots[slot]
        rows = torch.arange(batch)[:, None]
        stored_keys[rows, self.positions] = keys.transpose(1, 2)
        stored_values[rows, self.positions] = values.transpose(1, 2)
        used = int(self.positions.max()) + 1
        mask = torch.arange(used)[None, None, None, :] <= self.positions[:, None, :, None]
        return stored_keys[:, :used].transpose(1, 2), stored_values[:, :used].transpose(1, 2), mask

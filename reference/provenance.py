"""A debug record of who wrote every KV cell, so that a stale read is an error instead of a wrong token.

Each time a position is started it gets a new *incarnation*; a flush ends it. A cell remembers the incarnation and the
depth at which it was last written. The record costs a few small tensors and is off by default.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

import torch

from reference.errors import SlotConflictError, StaleReadError
from reference.models.protocol import KVShapes

_NOBODY = -1


class Part(Enum):
    """The three parts of a looped model that own KV cells."""

    PRELUDE = "prelude"
    """One slot per layer and position."""
    RECURRENT = "recurrent"
    """One slot per layer, recurrence and position."""
    CODA = "coda"
    """One slot per layer and position; provisional after a draft readout, final after a verification (KV-07)."""


class Provenance:
    """Checks every write and every read of KV cells against the rules of `spec/20-kv-slots.md`.

    Where nothing stale is ever read, the cells of finished positions are those of AR (KV-06).
    """

    def __init__(
        self,
        shapes: KVShapes,
        *,
        recurrence_depth: int,
        num_positions: int,
        slots: tuple[int, ...] | None = None,
    ) -> None:
        """Starts with cells that nobody has written and positions that nobody occupies.

        Args:
            shapes: The model's KV shapes.
            recurrence_depth: T, the depth of a verification.
            num_positions: Positions that can be held.
            slots: The slot of every depth of a recurrent layer (SHR-02); by default each has its own.
        """
        self._recurrence_depth = recurrence_depth
        self._slots = tuple(range(recurrence_depth)) if slots is None else slots
        self._num_incarnations = 0
        self._current = torch.full((num_positions,), _NOBODY)
        sizes = {
            Part.PRELUDE: (shapes.prelude_layers, 1),
            Part.RECURRENT: (shapes.recurrent_layers, len(set(self._slots))),
            Part.CODA: (shapes.coda_layers, 1),
        }
        self._writer = {part: torch.full((*size, num_positions), _NOBODY) for part, size in sizes.items()}
        self._depth = {part: torch.full((*size, num_positions), _NOBODY) for part, size in sizes.items()}

    def begin(self, positions: Iterable[int]) -> None:
        """Starts a new incarnation at each of `positions`."""
        for position in positions:
            self._current[position] = self._num_incarnations
            self._num_incarnations += 1

    def end(self, positions: Iterable[int]) -> None:
        """Ends the incarnations at `positions`: from now on their cells are stale."""
        for position in positions:
            self._current[position] = _NOBODY

    def write(self, part: Part, layer: int, *, positions: Sequence[int], depths: Sequence[int]) -> None:
        """Records that the rows wrote their cells.

        Args:
            part: Whose layers.
            layer: Index of the layer within the part.
            positions: Position of each row.
            depths: Recurrence of each row in the recurrent block, depth of its state in the coda, 0 in the prelude.

        Raises:
            SlotConflictError: If a cell is written for nobody, a second time or out of order (KV-04).
        """
        for position, depth in zip(positions, depths, strict=True):
            slot = self._slots[depth] if part is Part.RECURRENT else 0
            incarnation = int(self._current[position])
            where = f"{part.value} layer {layer}, position {position}, depth {depth}"
            if incarnation == _NOBODY:
                raise SlotConflictError(f"{where}: written for a position that is not in flight (KV-04)")
            earlier = self._depth[part][layer, :, position][self._writer[part][layer, :, position] == incarnation]
            latest = int(earlier.max()) if len(earlier) else _NOBODY
            in_order = latest == depth - 1 if part is Part.RECURRENT else latest < depth
            if not in_order:
                raise SlotConflictError(f"{where}: written twice or out of order in one incarnation (KV-04)")
            self._writer[part][layer, slot, position] = incarnation
            self._depth[part][layer, slot, position] = depth

    def read(self, part: Part, layer: int, *, positions: Sequence[int], depths: Sequence[int]) -> None:
        """Checks that each row may attend to the cells of its slot at all positions up to its own.

        In the coda a draft may see provisional entries as well as final ones (KV-08), a verification may not.

        Raises:
            StaleReadError: If one of them was not written by the current incarnation of its position (KV-03), or a
                verification would see a provisional coda entry (KV-07).
        """
        for position, depth in zip(positions, depths, strict=True):
            slot = self._slots[depth] if part is Part.RECURRENT else 0
            seen = slice(0, position + 1)
            current = self._current[seen]
            stale = (self._writer[part][layer, slot, seen] != current) | (current == _NOBODY)
            if part is Part.RECURRENT:  # a shared slot may hold a later recurrence, never an earlier one (SHR-05)
                stale |= self._depth[part][layer, slot, seen] < depth
            if bool(stale.any()):
                message = (
                    f"{part.value} layer {layer}: position {position} at depth {depth} reads stale cells "
                    f"of positions {stale.nonzero().flatten().tolist()} (KV-03)"
                )
                raise StaleReadError(message)
            provisional = self._depth[part][layer, slot, seen] < self._recurrence_depth
            if part is Part.CODA and depth == self._recurrence_depth and bool(provisional.any()):
                message = (
                    f"coda layer {layer}: the verification of position {position} reads provisional cells "
                    f"of positions {provisional.nonzero().flatten().tolist()} (KV-07)"
                )
                raise StaleReadError(message)

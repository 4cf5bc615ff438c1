"""The rows of lanes in flight: each position's state and injected input, allocated once and indexed by position.

Lanes are neighbours in position, so the rows of a call are nearly always a slice: nothing is gathered before a
recurrent call and nothing taken apart after it. A row that no lane owns holds leftovers that nobody reads.
"""

from collections.abc import Sequence
from typing import TypeAlias

import torch

from reference.axes import Hidden, Positions
from reference.spans import as_slice

RowIndex: TypeAlias = slice | Positions
"""Which rows, as `LaneRows.at` gives it: found once for a call, used for all that the call reads and writes."""


class LaneRows:
    """States and injected inputs of the positions of one sequence."""

    def __init__(self, num_positions: int, hidden_size: int, *, dtype: torch.dtype, device: torch.device) -> None:
        """Allocates zeroed rows."""
        self._device = device
        self._states = torch.zeros(num_positions, hidden_size, dtype=dtype, device=device)
        self._injected_inputs = torch.zeros_like(self._states)

    def start(self, position: int, *, state: Hidden, injected_input: Hidden) -> None:
        """Takes the row of a new lane at depth 0."""
        row = slice(position, position + 1)
        self._states[row] = state
        self._injected_inputs[row] = injected_input

    def at(self, positions: Sequence[int]) -> RowIndex:
        """Gives the index of rows at `positions`, ascending: a slice where they are evenly spaced, as any two are."""
        return as_slice(positions) or torch.tensor(positions, device=self._device)

    def states(self, rows: RowIndex) -> Hidden:
        """Gives the states of some lanes; a view where the index is a slice."""
        return self._states[rows]

    def injected_inputs(self, rows: RowIndex) -> Hidden:
        """Gives the injected inputs of some lanes; a view where the index is a slice."""
        return self._injected_inputs[rows]

    def advance(self, rows: RowIndex, states: Hidden) -> None:
        """Replaces the states of some lanes by those after a recurrent call."""
        self._states[rows] = states

"""The rows of lanes in flight: each position's state and injected input, allocated once and indexed by position.

Lanes are neighbours in position, so the rows of a call are nearly always a slice: nothing is gathered before a
recurrent call and nothing taken apart after it. A row that no lane owns holds leftovers that nobody reads.
"""

from collections.abc import Sequence

import torch

from reference.axes import Hidden, Positions
from reference.spans import as_slice


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

    def states(self, positions: Sequence[int]) -> Hidden:
        """Gives the states of lanes at `positions`, ascending; a view where they are evenly spaced."""
        return self._states[self._at(positions)]

    def injected_inputs(self, positions: Sequence[int]) -> Hidden:
        """Gives the injected inputs of lanes at `positions`, ascending; a view where they are evenly spaced."""
        return self._injected_inputs[self._at(positions)]

    def advance(self, positions: Sequence[int], states: Hidden) -> None:
        """Replaces the states of lanes at `positions`, ascending, by those after a recurrent call."""
        self._states[self._at(positions)] = states

    def _at(self, positions: Sequence[int]) -> slice | Positions:
        """Gives the index of rows at `positions`: a slice where they are evenly spaced, as any two are."""
        return as_slice(positions) or torch.tensor(positions, device=self._device)

"""Rows of lanes in flight: what is put in comes out, whether positions are a run or not."""

import pytest
import torch

from reference.states import LaneRows


def filled(num_positions: int) -> LaneRows:
    """Gives rows in which position p holds state p and injected input 10 p."""
    rows = LaneRows(num_positions, 2, dtype=torch.float64, device=torch.device("cpu"))
    for position in range(num_positions):
        row = torch.full((1, 2), float(position), dtype=torch.float64)
        rows.start(position, state=row, injected_input=10 * row)
    return rows


@pytest.mark.parametrize("positions", [[3], [1, 2, 3], [0, 2, 3], [1, 4]])
def test_rows_are_those_of_the_asked_positions(positions: list[int]) -> None:
    rows = filled(5)
    assert rows.states(rows.at(positions))[:, 0].tolist() == positions
    assert rows.injected_inputs(rows.at(positions))[:, 1].tolist() == [10 * position for position in positions]


@pytest.mark.parametrize("positions", [[3], [1, 2, 3], [0, 2, 3], [1, 4]])
def test_advancing_replaces_the_states_of_these_positions_alone(positions: list[int]) -> None:
    rows = filled(5)
    rows.advance(rows.at(positions), rows.states(rows.at(positions)) + 100)
    expected = [position + 100 * (position in positions) for position in range(5)]
    assert rows.states(rows.at(range(5)))[:, 0].tolist() == expected
    assert rows.injected_inputs(rows.at(range(5)))[:, 0].tolist() == [0, 10, 20, 30, 40]


def test_a_row_that_starts_again_forgets_what_it_was() -> None:
    rows = filled(3)
    rows.advance(rows.at([1]), rows.states(rows.at([1])) + 100)
    rows.start(1, state=torch.zeros(1, 2, dtype=torch.float64), injected_input=torch.ones(1, 2, dtype=torch.float64))
    assert rows.states(rows.at([0, 1, 2]))[:, 0].tolist() == [0, 0, 2]
    assert rows.injected_inputs(rows.at([1])).tolist() == [[1, 1]]

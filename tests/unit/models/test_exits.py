"""The exit gate's arithmetic on small numbers; the golden tests hold it against the official code."""

import torch

from reference.models.exits import cumulative, exit_depths, exit_probabilities, weighted_logits


def test_every_row_exits_somewhere() -> None:
    gates = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    total = cumulative(exit_probabilities(gates))[:, -1]
    torch.testing.assert_close(total, torch.ones(20, dtype=torch.float64))


def test_a_gate_at_one_half_halves_what_is_left_and_the_last_depth_takes_the_rest() -> None:
    gates = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 50.0]])
    assert exit_probabilities(gates).tolist() == [[0.5, 0.25, 0.25]] * 2


def test_the_first_depth_that_reaches_the_threshold_is_taken() -> None:
    so_far = torch.tensor([[0.5, 0.75, 1.0]])
    reached = {threshold: exit_depths(so_far, threshold).tolist() for threshold in (0.0, 0.5, 0.6, 0.75, 0.76, 1.0)}
    assert reached == {0.0: [1], 0.5: [1], 0.6: [2], 0.75: [2], 0.76: [3], 1.0: [3]}


def test_a_threshold_that_rounding_keeps_out_of_reach_gives_the_last_depth() -> None:
    assert exit_depths(torch.tensor([[0.5, 0.9, 1 - 1e-7]]), 1.0).tolist() == [3]


def test_a_model_of_one_recurrence_exits_there() -> None:
    probabilities = exit_probabilities(torch.tensor([[-3.0]]))
    assert probabilities.tolist() == [[1.0]]
    assert exit_depths(cumulative(probabilities), 1.0).tolist() == [1]


def test_weighted_logits_are_a_mean_over_depths() -> None:
    logits = torch.tensor([[[1.0, 2.0], [5.0, 4.0]]])
    assert weighted_logits(torch.tensor([[0.25, 0.75]]), logits).tolist() == [[4.0, 3.5]]

"""The scripted model knows its prefix from KV cells alone, and gives NaN if they contradict each other."""

import math

import pytest
import torch

from reference.errors import NumericsError
from reference.models.protocol import LoopedModel
from reference.models.scripted import ScriptedModel
from reference.provenance import Part
from tests.running import Running


def asked_model() -> tuple[ScriptedModel, list[tuple[tuple[int, ...], int]]]:
    """Gives a model and the list of what its table is asked."""
    asked: list[tuple[tuple[int, ...], int]] = []

    def table(prefix: tuple[int, ...], depth: int) -> list[float]:
        asked.append((prefix, depth))
        return [0.0, 1.0]

    return ScriptedModel(table=table, vocab_size=2, recurrence_depth=3, context_length=9), asked


@pytest.mark.spec("MOD-03", "MOD-04")
def test_a_readout_asks_the_table_about_prefix_and_depth() -> None:
    model, asked = asked_model()
    running = Running(model, num_positions=9)
    _, by_depth = running.extend([0, 1, 1])
    running.read_out(by_depth[1], depth=1)
    running.read_out(by_depth[3])
    assert asked == [((0,), 1), ((0, 1), 1), ((0, 1, 1), 1), ((0,), 3), ((0, 1), 3), ((0, 1, 1), 3)]
    asked.clear()
    running.logits([0])
    assert asked == [((0, 1, 1, 0), 3)]


@pytest.mark.spec("KV-03")
def test_a_cell_that_says_something_else_at_one_recurrence_gives_nan() -> None:
    model, _ = asked_model()
    running = Running(model, num_positions=9)
    running.extend([0, 1, 1])
    _, values = running.cache.cells(Part.RECURRENT, slice(0, 9), recurrence=1)
    assert values[0, 0, 1, 1] == 2  # token 1, at position 1
    running.cache.fill([1], 3.0)
    running.cache.provenance = None
    positions = [3]
    running.cache.begin(positions)
    injected_input = model.prelude(torch.tensor([1]), running.cache.rows(Part.PRELUDE, positions, [0]))
    states = model.recur(injected_input, injected_input, running.cache.rows(Part.RECURRENT, positions, [0]))
    running.cache.fill([1], 4.0)
    states = model.recur(states, injected_input, running.cache.rows(Part.RECURRENT, positions, [1]))
    logits = model.head(model.coda(states, running.cache.rows(Part.CODA, positions, [2])))
    assert all(math.isnan(number) for number in logits.flatten().tolist())


def test_it_is_a_looped_model_without_randomness() -> None:
    scripted, _ = asked_model()
    model: LoopedModel = scripted
    assert isinstance(model, LoopedModel)
    assert model.initial_states([4], seed=9, scale=0.0) is None
    assert issubclass(NumericsError, ArithmeticError)

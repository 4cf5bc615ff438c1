"""What is peculiar to Huginn: the random initial state, the injected input, the coda, the tied head."""

import math

import pytest
import torch

from reference import sampling
from reference.models import Huginn
from tests.models_for_tests import huginn_config, random_huginn, random_tensors
from tests.running import Running

TOKENS = (5, 2, 7, 7, 1)


def initial(model: Huginn, positions: list[int], *, seed: int = 3, scale: float = 1.0) -> torch.Tensor:
    """Gives the initial states of rows."""
    return model.initial_states(positions, seed=seed, scale=scale)


@pytest.mark.spec("MOD-05")
def test_the_initial_state_depends_on_seed_and_position_alone() -> None:
    model = random_huginn()
    together = initial(model, [0, 1, 2, 9])
    for row, position in enumerate([0, 1, 2, 9]):
        assert torch.equal(initial(model, [position])[0], together[row])
    assert torch.equal(initial(model, [9, 0]), together[[3, 0]])
    assert not torch.equal(together[0], together[1])
    assert not torch.equal(initial(model, [0], seed=4), together[:1])


@pytest.mark.spec("MOD-05", "MOD-06")
def test_the_initial_state_is_the_shared_noise_scaled_as_the_official_network_scales_it() -> None:
    model = random_huginn()
    noise = sampling.initial_noise(3, [4, 5], model.hidden_size)
    width = model.hidden_size
    expected = noise * math.sqrt(2 / (5 * width)) * 0.5 * math.sqrt(width)
    torch.testing.assert_close(initial(model, [4, 5], scale=0.5), expected)


@pytest.mark.spec("MOD-06")
def test_the_initial_state_has_the_official_spread_and_cut() -> None:
    states = initial(random_huginn(), list(range(3000)))
    assert float(states.abs().max()) <= 3 * math.sqrt(2 / 5)
    # A normal distribution cut at three standard deviations keeps 0.9867 of its own.
    assert float(states.std()) == pytest.approx(0.9867 * math.sqrt(2 / 5), rel=0.02)
    assert float(states.mean()) == pytest.approx(0, abs=0.02)


@pytest.mark.spec("MOD-07")
def test_scale_zero_gives_zeros() -> None:
    states = initial(random_huginn(), [0, 5], scale=0.0)
    assert torch.equal(states, torch.zeros_like(states))
    assert not bool(states.signbit().any())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_initial_state_has_the_model_s_type_and_rounds_the_same_draw(dtype: torch.dtype) -> None:
    states = initial(random_huginn(dtype=dtype), [0, 5])
    assert states.dtype == dtype
    assert torch.equal(states, initial(random_huginn(), [0, 5]).to(dtype))


def test_the_initial_state_matters_and_fades() -> None:
    model = random_huginn()
    plain = Running(model, num_positions=5).extend(TOKENS)[1]
    noisy = Running(model, num_positions=5, state_scale=1.0).extend(TOKENS)[1]
    assert not torch.allclose(plain[-1], noisy[-1])


def test_the_embedding_is_scaled_and_tied_to_the_head() -> None:
    model = random_huginn(huginn_config(prelude_layers=0), dtype=torch.float32)
    embedding = random_tensors(huginn_config(prelude_layers=0))["transformer.wte.weight"]
    injected, _ = Running(model, num_positions=5).extend(TOKENS)
    assert torch.equal(injected, embedding[list(TOKENS)] * math.sqrt(model.hidden_size))
    torch.testing.assert_close(model.head(injected), injected @ embedding.T)


def test_a_coda_without_blocks_is_the_final_norm_twice() -> None:
    model = random_huginn(huginn_config(coda_layers=0))
    steps = Running(model, num_positions=5)
    _, states = steps.extend(TOKENS)
    expected = model.head(model.latent(model.latent(states[-1])))
    assert torch.equal(steps.read_out(states[-1]), expected)


def test_every_recurrence_sees_the_injected_input() -> None:
    model = random_huginn(huginn_config(recurrence_depth=1))
    steps, others = Running(model, num_positions=1), Running(model, num_positions=1)
    _, states = steps.extend([3])
    _, changed = others.extend([4])
    assert torch.equal(states[0], changed[0])  # both start from zeros
    assert not torch.equal(states[1], changed[1])


def test_depth_zero_can_be_read_out() -> None:
    model = random_huginn()
    steps = Running(model, num_positions=5)
    _, states = steps.extend(TOKENS)
    assert steps.read_out(states[0], depth=0).shape == (5, 13)

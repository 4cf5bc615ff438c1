"""Greedy choice, margins, and the generator of initial states."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from reference.errors import NumericsError, ParameterError
from reference.models.protocol import LoopedModel
from reference.sampling import RandomPurpose, check_state_options, greedy, initial_noise
from tests.models_for_tests import huginn_config, random_huginn, random_ouro
from tests.strategies import logit_rows

INF = math.inf
EXAMPLES = [
    (0, 0, 0, 0x238275BC38FCBE91, 0x2130748AAAC80268, 0.12964561829974752, -0.7104657592306319),
    (3, 5, 1, 0xC05E4ABC9C41F1A1, 0x3E19893EE1982FD8, 0.24257715020357350, -0.4400724654649443),
    (2**64 - 1, 1000, 63, 0x2C32FE6E67187927, 0x5E77C6BA776EA5FE, 0.36901514103322575, -0.2109401289831785),
]
"""Seed, position, element, key, bits, u and h at scale 1: the table of MOD-06."""


def mix(word: int) -> int:
    """The finaliser of splitmix64, on Python's integers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def drawn(seed: int, position: int, element: int) -> tuple[int, int, float]:
    """Gives key, bits and u as MOD-06 words them."""
    gamma = 0x9E3779B97F4A7C15
    key = 0
    for value in (seed, 0, position):
        key = mix(((key ^ value) + gamma) % 2**64)
    bits = mix((key + (element + 1) * gamma) % 2**64)
    return key, bits, ((bits >> 12) + 0.5) * 2.0**-52


def cut_normal(uniform: float) -> float:
    """Inverts the distribution function of a normal variable cut at plus and minus 3, by bisection."""
    target, low, high = math.erf(3 / math.sqrt(2)) * (2 * uniform - 1), -3.0, 3.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < target else (low, middle)
    return low


@pytest.mark.spec("SMP-01", "SMP-03")
@pytest.mark.parametrize(
    "row,token,margin",
    [
        ([1.0, 3.0, 2.0], 1, 1.0),
        ([2.0, 2.0, 2.0], 0, 0.0),
        ([1.0, 2.0, 2.0], 1, 0.0),
        ([-1.0, -5.0], 0, 4.0),
        ([7.0], 0, INF),
        ([INF, 1.0], 0, INF),
        ([1.0, INF, INF], 1, 0.0),
        ([-INF, -INF], 0, 0.0),
        ([-INF, 3.0], 1, INF),
        ([0.0, -0.0], 0, 0.0),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_largest_logit_wins_and_the_lowest_id_among_equals(
    row: list[float], token: int, margin: float, dtype: torch.dtype
) -> None:
    assert greedy(torch.tensor([row], dtype=dtype)) == ((token,), (margin,))


@pytest.mark.spec("SMP-01", "SMP-03")
@given(rows=logit_rows())
def test_choice_and_margin_are_those_of_a_sorted_list(rows: list[list[float]]) -> None:
    tokens, margins = greedy(torch.tensor(rows, dtype=torch.float64))
    for row, token, margin in zip(rows, tokens, margins, strict=True):
        assert token == row.index(max(row))
        others = row[:token] + row[token + 1 :]
        assert margin == row[token] - max(others)


@pytest.mark.spec("SMP-01")
@pytest.mark.parametrize("size", [2, 17, 64, 1000, 50_000])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_tie_goes_to_the_lowest_id_in_vocabularies_of_any_size(size: int, dtype: torch.dtype) -> None:
    logits = torch.zeros(3, size, dtype=dtype)
    logits[1, size // 3 :] = 1
    logits[2, -2:] = 1
    assert greedy(logits)[0] == (0, size // 3, size - 2)


@pytest.mark.spec("SMP-02")
@pytest.mark.parametrize("row", [[math.nan], [math.nan, 1.0], [1.0, math.nan, 0.0], [INF, math.nan], [math.nan] * 4])
def test_logits_with_nan_are_refused(row: list[float]) -> None:
    with pytest.raises(NumericsError, match="SMP-02"):
        greedy(torch.tensor([[0.0] * len(row), row]))


@pytest.mark.spec("MOD-06")
@pytest.mark.parametrize("seed,position,element,key,bits,uniform,state", EXAMPLES)
def test_the_generator_gives_the_numbers_of_the_table(
    seed: int, position: int, element: int, key: int, bits: int, uniform: float, state: float
) -> None:
    assert drawn(seed, position, element) == (key, bits, uniform)
    noise = initial_noise(seed, [position], 64)
    assert noise.dtype == torch.float64
    assert float(noise[0, element]) * math.sqrt(2 / 5) == pytest.approx(state, abs=1e-12, rel=0)


@pytest.mark.spec("MOD-06")
@given(seed=st.integers(0, 2**64 - 1), position=st.integers(0, 2**40), width=st.integers(1, 5))
def test_the_generator_is_the_formula_of_the_spec(seed: int, position: int, width: int) -> None:
    (row,) = initial_noise(seed, [position], width).tolist()
    for element, number in enumerate(row):
        *_, uniform = drawn(seed, position, element)
        assert number == pytest.approx(cut_normal(uniform), abs=1e-9)
        assert abs(number) < 3


@pytest.mark.spec("MOD-05", "MOD-06")
@given(positions=st.lists(st.integers(0, 5000), min_size=1, max_size=4), width=st.integers(1, 6))
def test_a_row_of_noise_depends_on_seed_and_position_alone(positions: list[int], width: int) -> None:
    together = initial_noise(7, positions, width)
    for row, position in zip(together, positions, strict=True):
        assert torch.equal(row, initial_noise(7, [position], width)[0])
        assert torch.equal(row[:1], initial_noise(7, [position], 1)[0])


@pytest.mark.spec("MOD-06")
def test_seeds_and_positions_give_different_noise_of_the_right_spread() -> None:
    noise = initial_noise(1, range(2000), 16)
    assert not torch.equal(noise, initial_noise(2, range(2000), 16))
    assert len(set(noise.flatten().tolist())) == noise.numel()
    assert float(noise.mean()) == pytest.approx(0, abs=0.02)
    assert float(noise.std()) == pytest.approx(0.9866, abs=0.02)  # a normal variable cut at 3
    assert [purpose.value for purpose in RandomPurpose] == [0]


@pytest.mark.spec("MOD-05", "MOD-07")
def test_the_state_of_a_huginn_is_scaled_noise_and_that_of_an_ouro_its_embedding() -> None:
    huginn = random_huginn(huginn_config(core_layers=1))
    ouro: LoopedModel = random_ouro()
    state = huginn.initial_states([3, 4], seed=5, scale=1.0)
    expected = initial_noise(5, [3, 4], huginn.hidden_size) * math.sqrt(2 / 5)
    torch.testing.assert_close(state, expected, rtol=0, atol=1e-12)
    halved = huginn.initial_states([3, 4], seed=5, scale=0.5)
    torch.testing.assert_close(halved, expected / 2, rtol=0, atol=1e-12)
    assert torch.equal(huginn.initial_states([3, 4], seed=5, scale=0.0), torch.zeros_like(state))
    assert ouro.initial_states([3, 4], seed=5, scale=1.0) is None  # it starts from the embedding


@pytest.mark.spec("MOD-07", "MOD-08", "NOT-04")
@pytest.mark.parametrize(
    "seed,scale,message",
    [
        (-1, 1.0, "state_seed=-1 is below 0 (MOD-08)"),
        (2**64, 1.0, f"state_seed={2**64} is not below 2**64 (MOD-08)"),
        (True, 1.0, "state_seed=True is not a whole number (MOD-08)"),
        (0, -0.5, "state_scale=-0.5 is not a finite number of at least 0 (MOD-07)"),
        (0, INF, "state_scale=inf is not a finite number of at least 0 (MOD-07)"),
        (0, math.nan, "state_scale=nan is not a finite number of at least 0 (MOD-07)"),
        (0, "1", "state_scale='1' is not a finite number of at least 0 (MOD-07)"),
        (0, 10**400, f"state_scale={10**400} is not a finite number of at least 0 (MOD-07)"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_seeds_and_scales_outside_their_range_are_refused(seed: int, scale: object, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check_state_options(seed=seed, scale=scale)
    assert str(caught.value) == message


@pytest.mark.spec("MOD-07", "MOD-08")
@pytest.mark.parametrize("seed,scale", [(0, 0), (2**64 - 1, 2.5), (1, 1)])
def test_the_ends_of_the_ranges_are_allowed(seed: int, scale: float) -> None:
    check_state_options(seed=seed, scale=scale)


@pytest.mark.spec("CONF-06")
def test_drawing_noise_leaves_the_global_random_state_alone() -> None:
    before: Tensor = torch.get_rng_state()
    initial_noise(0, [0], 8)
    assert torch.equal(torch.get_rng_state(), before)

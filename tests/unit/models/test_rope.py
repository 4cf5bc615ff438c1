"""Rotary position embedding in both layouts."""

import math
from typing import Final

import pytest
import torch
from torch import Tensor

from reference.models.rope import HalfSplitRotary, InterleavedRotary, RotaryShape

CPU: Final = torch.device("cpu")
SHAPE: Final = RotaryShape(base=100.0, head_dim=6, num_positions=50)
LAYOUTS: Final = (HalfSplitRotary, InterleavedRotary)

any_layout = pytest.mark.parametrize("layout", LAYOUTS)


def turned(layout: type[HalfSplitRotary] | type[InterleavedRotary], x: Tensor, positions: list[int]) -> Tensor:
    """Turns rows by their positions."""
    rotary = layout.of(SHAPE, dtype=x.dtype, device=CPU)
    if isinstance(rotary, HalfSplitRotary):
        return rotary.rotate(x, rotary.at(torch.tensor(positions)))
    return rotary.rotate(x, rotary.at(torch.tensor(positions)))


def heads(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "layout,pairs", [(HalfSplitRotary, [(0, 3), (1, 4), (2, 5)]), (InterleavedRotary, [(0, 1), (2, 3), (4, 5)])]
)
@pytest.mark.parametrize("position", [0, 1, 7, 49])
def test_each_pair_turns_by_its_own_angle(
    layout: type[HalfSplitRotary] | type[InterleavedRotary], pairs: list[tuple[int, int]], position: int
) -> None:
    x = heads(1, 2, 6)
    y = turned(layout, x, [position])
    for head in range(2):
        for i, (first, second) in enumerate(pairs):
            angle = position * 100.0 ** (-2 * i / 6)
            a, b = float(x[0, head, first]), float(x[0, head, second])
            assert float(y[0, head, first]) == pytest.approx(a * math.cos(angle) - b * math.sin(angle), abs=1e-12)
            assert float(y[0, head, second]) == pytest.approx(b * math.cos(angle) + a * math.sin(angle), abs=1e-12)


@any_layout
def test_position_zero_is_not_turned(layout: type[HalfSplitRotary] | type[InterleavedRotary]) -> None:
    x = heads(1, 2, 6)
    assert torch.equal(turned(layout, x, [0]), x)


@any_layout
def test_a_product_of_query_and_key_depends_on_their_distance_alone(
    layout: type[HalfSplitRotary] | type[InterleavedRotary],
) -> None:
    query, key = heads(1, 1, 6).expand(3, 1, 6), heads(1, 1, 6, seed=1).expand(3, 1, 6)
    products = (turned(layout, query, [5, 20, 49]) * turned(layout, key, [2, 17, 46])).sum(-1)
    torch.testing.assert_close(products, products[:1].expand(3, 1))


@any_layout
def test_a_row_is_turned_alike_alone_and_among_others(
    layout: type[HalfSplitRotary] | type[InterleavedRotary],
) -> None:
    x = heads(4, 3, 6).float()
    together = turned(layout, x, [9, 3, 30, 4])
    for row, position in enumerate([9, 3, 30, 4]):
        assert torch.equal(turned(layout, x[row : row + 1], [position])[0], together[row])


def test_the_layouts_are_one_rotation_of_differently_ordered_heads() -> None:
    x = heads(2, 2, 6)
    order = [0, 3, 1, 4, 2, 5]  # brings the halves' elements next to each other
    half_split = turned(HalfSplitRotary, x, [11, 12])
    torch.testing.assert_close(half_split[..., order], turned(InterleavedRotary, x[..., order], [11, 12]))


@any_layout
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_type_of_queries_and_keys_is_kept(
    layout: type[HalfSplitRotary] | type[InterleavedRotary], dtype: torch.dtype
) -> None:
    assert turned(layout, heads(1, 1, 6).to(dtype), [3]).dtype == dtype


def test_angles_of_a_sixteen_bit_model_are_not_rounded_to_sixteen_bits() -> None:
    shape = RotaryShape(base=1e6, head_dim=128, num_positions=65536)
    table = HalfSplitRotary.of(shape, dtype=torch.bfloat16, device=CPU).table
    exact = shape.angles(dtype=torch.float64, device=CPU).cos()
    # The float32 angle is off by up to 4e-3 at position 65535, storing the cosine in 16 bits by up to 4e-3 more.
    assert float((table[:, 0, 0, :64].double() - exact).abs().max()) < 1e-2


def test_a_float64_table_is_computed_in_float64() -> None:
    table = HalfSplitRotary.of(SHAPE, dtype=torch.float64, device=CPU).table
    assert float(table[49, 0, 0, 1]) == pytest.approx(math.cos(49 * 100 ** (-1 / 3)), abs=1e-14)

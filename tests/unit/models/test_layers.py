"""The pieces of both families."""

import pytest
import torch

from reference.dtypes import converted, wide_dtype
from reference.models.layers import RMSNorm, gated_mlp, transposed


def draw(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype,tolerance", [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_rms_norm_is_the_usual_one(dtype: torch.dtype, tolerance: float) -> None:
    x, weight = draw(3, 10, dtype=dtype), draw(10, dtype=dtype, seed=1)
    torch.testing.assert_close(
        RMSNorm.of(weight, 1e-3)(x), torch.rms_norm(x, (10,), weight, 1e-3), rtol=0, atol=tolerance
    )


def test_rms_norm_rounds_to_sixteen_bits_before_the_weight_is_applied() -> None:
    x, weight = draw(50, 64, dtype=torch.bfloat16), draw(64, dtype=torch.bfloat16, seed=1)
    normed = RMSNorm.of(weight, 1e-6)(x)
    wide = x.float()
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    assert torch.equal(normed, scaled.bfloat16() * weight)
    assert not torch.equal(normed, (scaled * weight.float()).bfloat16())


def test_rms_norm_adds_eps_to_the_mean_square() -> None:
    assert RMSNorm.of(torch.ones(4), 0.25)(torch.zeros(1, 4)).tolist() == [[0, 0, 0, 0]]
    assert RMSNorm.of(torch.ones(4), 0.75)(torch.full((1, 4), 0.5)).tolist() == [[0.5, 0.5, 0.5, 0.5]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_norms_and_angles_are_computed_in_at_least_float32(dtype: torch.dtype) -> None:
    assert wide_dtype(dtype) == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_a_conversion_with_nothing_to_do_gives_the_tensor_itself() -> None:
    x = draw(2)
    assert converted(x, torch.float64) is x
    assert converted(x, torch.float32).dtype == torch.float32


def test_joined_weights_give_the_products_side_by_side() -> None:
    x, first, second = draw(3, 4), draw(5, 4, seed=1), draw(2, 4, seed=2)
    joined = transposed(first, second)
    assert joined.is_contiguous()
    torch.testing.assert_close(x @ joined, torch.cat((x @ first.T, x @ second.T), dim=-1))


def test_joined_weights_are_a_copy() -> None:
    weight = draw(1, 4)
    joined = transposed(weight)
    weight.zero_()
    assert bool(joined.any())


def test_the_first_half_of_the_mlp_weights_is_the_gate() -> None:
    x, gate, up = draw(3, 4), draw(5, 4, seed=1), draw(5, 4, seed=2)
    expected = torch.nn.functional.silu(x @ gate.T) * (x @ up.T)
    torch.testing.assert_close(gated_mlp(x, transposed(gate, up)), expected)

"""The tolerances of near ties, and how much of them rounding really uses."""

from collections.abc import Sequence

import pytest
import torch

from reference import models
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.oracle.forward import Settings, full_depth_logits
from reference.oracle.tolerance import TOLERANCES, coarser, near_tie_tolerances, unit_roundoff
from tests.runs import TOLERANCE


@pytest.mark.spec("CONF-04")
def test_the_tolerances_are_those_of_the_specification() -> None:
    assert TOLERANCE.items() <= TOLERANCES.items()


def test_they_are_the_multiples_of_the_unit_roundoff_that_the_docstring_names() -> None:
    assert unit_roundoff(torch.bfloat16) == 2.0**-8
    multiples = {dtype: within / unit_roundoff(dtype) for dtype, within in TOLERANCES.items()}
    assert multiples[torch.bfloat16] == multiples[torch.float16] == 16
    assert multiples[torch.float32] == pytest.approx(1678, rel=0.01)
    assert multiples[torch.float64] == pytest.approx(900_720, rel=0.01)


@pytest.mark.parametrize(
    "one,other", [(torch.float64, torch.float32), (torch.bfloat16, torch.float16), (torch.bfloat16, torch.float32)]
)
def test_the_coarser_type_has_the_wider_tolerance(one: torch.dtype, other: torch.dtype) -> None:
    assert coarser(one, other) == coarser(other, one)
    assert TOLERANCES[coarser(one, other)] == max(TOLERANCES[one], TOLERANCES[other])


@pytest.mark.spec("CONF-05")
def test_a_near_tie_is_twice_the_tolerance_times_the_largest_logit_but_at_least_one() -> None:
    logits = torch.tensor([[0.5, -0.25], [-3.0, 2.0], [float("-inf"), 4.0]], dtype=torch.float64)
    assert near_tie_tolerances(logits, torch.float32) == pytest.approx([2e-4, 6e-4, 8e-4])


@pytest.mark.spec("CONF-04")
@pytest.mark.parametrize("name", models.SHIPPED)
@pytest.mark.parametrize("dtype,most", [(torch.float32, 32), (torch.bfloat16, 8)])
def test_on_the_shipped_models_fewer_roundings_add_up_than_the_tolerance_allows(
    name: str, dtype: torch.dtype, most: float
) -> None:
    """The docstring's `c`, measured against float64; bfloat16 has 16 and float32 1,678."""
    tokenizer = load_tokenizer(name)
    assert tokenizer is not None
    ids = tokenizer.encode(default_prompts()["translation"]).ids
    exact, rounded = (models.load(name, dtype=kind) for kind in (torch.float64, dtype))
    for depth in (1, exact.recurrence_depth):
        assert 1 < roundings(exact, rounded, ids, depth) < most


def roundings(exact: LoopedModel, rounded: LoopedModel, ids: Sequence[int], depth: int) -> float:
    """Gives the largest error of any logit, in unit roundoffs of the largest logit of its row."""
    settings = Settings(recurrence_depth=depth, state_seed=0, state_scale=1.0)
    right = full_depth_logits(exact, ids, settings, first=0)
    error = (full_depth_logits(rounded, ids, settings, first=0).double() - right).abs()
    largest = right.abs().amax(dim=-1, keepdim=True).clamp(min=1.0)
    return float((error / largest).max()) / unit_roundoff(rounded.dtype)

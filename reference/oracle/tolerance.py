"""How far apart two logits may lie for rounding to decide between them (CONF-04, CONF-05).

In the standard model of rounding every operation is right up to a factor `1 + e`, `|e| <= u`, where the unit roundoff
`u` is half the gap between 1 and the next number of a type. To first order a logit then errs by `c * u * S`: `S` is the
largest logit of its row, which is measured, and `c` counts the roundings that add up on the way to it. No useful
formula gives `c`. The bound that assumes the worst of every rounding grows with all layers and recurrences and would
call anything a tie; errors that are independent grow with the root of their number, and a norm at the end of every
recurrence damps the earlier ones. So the tolerances of CONF-04 are choices, and `c` says what was chosen: 16 in
bfloat16, where the margins of real models are hardly larger, some 1,700 in float32 and 900,000 in float64, where room
costs nothing because ties that close are rare. The tests measure `c` on the shipped models, at one recurrence and at
all: it is below 8 in bfloat16 and below 32 in float32. Both of two logits may move, hence the factor 2.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from reference.errors import ParameterError

TOLERANCES: Final[Mapping[torch.dtype, float]] = MappingProxyType(
    {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 16 * 2.0**-8, torch.float16: 16 * 2.0**-11}
)
"""How far a logit may move, in units of the largest of its row (CONF-04).

float16, in which the reference does not compute but a candidate may, gets the `c` of bfloat16."""


def unit_roundoff(dtype: torch.dtype) -> float:
    """Gives `u`: the largest relative error of one rounding to `dtype`."""
    return torch.finfo(dtype).eps / 2


def coarser(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    """Gives that of two types in which logits move more.

    Raises:
        ParameterError: If there is no tolerance for one of them (CONF-04).
    """
    for dtype in (one, other):
        if dtype not in TOLERANCES:
            known = ", ".join(str(known).removeprefix("torch.") for known in TOLERANCES)
            raise ParameterError(f"dtype={dtype} is none of {known} (CONF-04)")
    return max(one, other, key=TOLERANCES.__getitem__)


def near_tie_tolerances(logits: Float[Tensor, "rows vocab"], dtype: torch.dtype) -> list[float]:
    """Gives, for each row, the distance of two logits within which they are a near tie (CONF-05).

    Args:
        logits: The reference's logits.
        dtype: The coarser of the types in which reference and candidate compute.

    Returns:
        Distances in units of the logits. Infinite logits do not count as the largest.
    """
    largest = torch.where(logits.isfinite(), logits.abs(), 0).amax(dim=-1).clamp(min=1.0).double()
    return [float(scale) for scale in 2 * TOLERANCES[dtype] * largest]

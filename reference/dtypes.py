"""Which type to compute in, and the cheapest way there."""

import torch
from torch import Tensor


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Gives the type in which norms and rotation angles are computed: `dtype` itself, but float32 at the least."""
    return torch.promote_types(dtype, torch.float32)


def converted(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Gives `x.to(dtype)`, free of charge where there is nothing to do: on few rows a call into torch costs as much."""
    return x if x.dtype == dtype else x.to(dtype)

"""Names of tensor axes, and the annotations made from them.

`rows` is the axis of a batched call: one row is one lane (or, in prefill, one prompt position). `hidden` is the
width of the recurrent state. To a static checker these are plain tensors; the test suite checks rank, dtype and sizes.
"""

from typing import TypeAlias

from jaxtyping import Bool, Float, Int
from torch import Tensor

TokenIds: TypeAlias = Int[Tensor, " rows"]
"""One token id per row."""

Positions: TypeAlias = Int[Tensor, " rows"]
"""Absolute position of each row, 0-based, prompt included."""

Hidden: TypeAlias = Float[Tensor, "rows hidden"]
"""A state, an injected input or a coda output per row."""

Logits: TypeAlias = Float[Tensor, "rows vocab"]
"""Unnormalised scores of the token that follows each row's position."""

Queries: TypeAlias = Float[Tensor, "rows heads head_dim"]
"""Rotated queries of one attention layer."""

KeysOrValues: TypeAlias = Float[Tensor, "rows kv_heads head_dim"]
"""Rotated keys, or values, of one attention layer: the content of one KV cell per row."""

Attended: TypeAlias = Float[Tensor, "rows width"]
"""Attention output per row, heads concatenated: `width = heads * head_dim`."""

Mask: TypeAlias = Bool[Tensor, "1 rows 1 cells"]
"""True where a row must not look, alike for all heads."""

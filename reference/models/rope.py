"""Rotary position embedding (RoPE), in the two layouts of the two families.

Pair i of a head is turned by `position * base**(-2i / head_dim)`. The layouts differ in what a pair is: element i of
the first half with element i of the second (Ouro), or two neighbours (Huginn). Angles are computed once per model, in
at least float32 whatever the model's type: rounding them to 16 bits shifts long contexts. A call looks its rows' angles
up once and uses them in all layers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from reference.axes import Positions
from reference.dtypes import converted, wide_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryShape:
    """What a rotary table depends on."""

    base: float
    """The first pair turns by 1 radian a position, the last one almost `base` times slower."""
    head_dim: int
    """Size of one head; even."""
    num_positions: int
    """Positions in the table."""

    def angles(self, *, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "positions pairs"]:
        """Gives the angle of every position and pair, in radians."""
        exponents = torch.arange(0, self.head_dim, 2, dtype=dtype, device=device) / self.head_dim
        return torch.outer(torch.arange(self.num_positions, dtype=dtype, device=device), 1.0 / self.base**exponents)


class HalfSplitTurn(NamedTuple):
    """How far each row of a call is turned."""

    cosines: Float[Tensor, "rows 1 head_dim"]
    """Factor of an element itself."""
    signed_sines: Float[Tensor, "rows 1 head_dim"]
    """Factor of its partner: minus the sine in the first half, the sine in the second."""


@dataclass(frozen=True, slots=True)
class HalfSplitRotary:
    """Turns element i of a head's first half against element i of its second half (Ouro)."""

    table: Float[Tensor, "positions 2 1 head_dim"]
    """Cosines and signed sines; rounded to the model's type, as in the official network."""

    @classmethod
    def of(cls, shape: RotaryShape, *, dtype: torch.dtype, device: torch.device) -> "HalfSplitRotary":
        """Computes the table."""
        angles = shape.angles(dtype=wide_dtype(dtype), device=device)
        cosines, sines = angles.cos(), angles.sin()
        table = torch.stack((torch.cat((cosines, cosines), dim=-1), torch.cat((-sines, sines), dim=-1)), dim=1)
        return cls(table.unsqueeze(2).to(dtype))

    def at(self, positions: Positions) -> HalfSplitTurn:
        """Looks up the rows of a call."""
        return HalfSplitTurn(*self.table.index_select(0, positions).unbind(1))

    @staticmethod
    def rotate(x: Float[Tensor, "rows heads head_dim"], turn: HalfSplitTurn) -> Float[Tensor, "rows heads head_dim"]:
        """Turns queries or keys; rolling a head by half its size brings every element to its partner's place."""
        return torch.addcmul(x * turn.cosines, x.roll(x.shape[-1] // 2, -1), turn.signed_sines)


@dataclass(frozen=True, slots=True)
class InterleavedRotary:
    """Turns neighbouring elements 2i and 2i + 1 of a head against each other (Huginn)."""

    table: Complex[Tensor, "positions 1 pairs"]
    """Cosine plus i times sine: a pair is a complex number and its turn a product."""
    wide: torch.dtype
    """Type to turn in: at least float32."""

    @classmethod
    def of(cls, shape: RotaryShape, *, dtype: torch.dtype, device: torch.device) -> "InterleavedRotary":
        """Computes the table."""
        wide = wide_dtype(dtype)
        angles = shape.angles(dtype=wide, device=device)
        return cls(torch.complex(angles.cos(), angles.sin()).unsqueeze(1), wide)

    def at(self, positions: Positions) -> Complex[Tensor, "rows 1 pairs"]:
        """Looks up the rows of a call."""
        return self.table.index_select(0, positions)

    def rotate(
        self, x: Float[Tensor, "rows heads head_dim"], turn: Complex[Tensor, "rows 1 pairs"]
    ) -> Float[Tensor, "rows heads head_dim"]:
        """Turns queries or keys, in at least float32, and rounds back to their type."""
        num_rows, num_heads, head_dim = x.shape
        wide = converted(x, self.wide)
        pairs = torch.view_as_complex(wide.view(num_rows, num_heads, head_dim // 2, 2))
        return converted(torch.view_as_real(pairs * turn).view(num_rows, num_heads, head_dim), x.dtype)

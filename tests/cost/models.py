"""Tiny real models, their shapes, and what their calls really compute and touch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from reference.bench.shapes import shape_of
from reference.cost.shapes import LoopedShape, Part
from reference.kv import KVCache
from reference.models import Huginn, Ouro
from reference.provenance import Part as CellPart
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro

DTYPE = torch.float64
"""In fp64 nothing is converted, so every tensor of a product is of the counted type."""

MODELS: Mapping[str, Ouro | Huginn] = {
    "ouro": random_ouro(ouro_config(num_heads=4, num_kv_heads=2), dtype=DTYPE),
    "huginn": random_huginn(huginn_config(prelude_layers=2, core_layers=3), dtype=DTYPE),
}
"""One of each family; Ouro with fewer key heads than query heads, so that the two cannot be mixed up."""


def shape(model: Ouro | Huginn) -> LoopedShape:
    """Gives the shape that the cost model sees."""
    return shape_of(model.config, name="tiny")


@dataclass
class Tally(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not say
    """Counts what products touch: those with weights (`mm`, `addmm`) and those of attention (`bmm`, `baddbmm`)."""

    linear_flops: int = 0
    attention_flops: int = 0
    matrix_bytes: int = 0
    activation_bytes: int = 0
    attended_bytes: int = 0
    kernels: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Starts at zero."""
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not say

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - the interface of torch
        types: Any,  # noqa: ANN401
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - the interface of torch
        """Runs an operation and counts it."""
        del types
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.kernels.append(func.overloadpacket.__name__)
        match func.overloadpacket:
            case torch.ops.aten.mm:
                self._linear(args[0], args[1], out)
            case torch.ops.aten.addmm:
                self._linear(args[1], args[2], out)
            case torch.ops.aten.bmm:
                self._attention(args[0], args[1])
            case torch.ops.aten.baddbmm:
                self._attention(args[1], args[2])
            case _:
                pass
        return out

    def _attention(self, rows: Tensor, cells: Tensor) -> None:
        batches, queries, inner = rows.shape
        self.attention_flops += 2 * batches * queries * inner * cells.shape[-1]
        self.attended_bytes += cells.nbytes

    def _linear(self, rows: Tensor, matrix: Tensor, out: Tensor) -> None:
        self.linear_flops += 2 * rows.shape[0] * matrix.shape[0] * matrix.shape[1]
        self.matrix_bytes += matrix.nbytes
        self.activation_bytes += rows.nbytes + out.nbytes


def cache(model: Ouro | Huginn, *, num_positions: int = 12) -> KVCache:
    """Gives empty cells."""
    return KVCache(
        model.kv_shapes,
        recurrence_depth=model.recurrence_depth,
        num_positions=num_positions,
        dtype=DTYPE,
        device=model.device,
    )


@torch.no_grad()  # in inference mode the products would show as `matmul`
def tally(model: Ouro | Huginn, part: Part, positions: Sequence[int], depths: Sequence[int]) -> Tally:
    """Runs one call on empty cells and counts what it does."""
    kv = cache(model)
    states = torch.ones(len(positions), model.hidden_size, dtype=DTYPE)
    ids = torch.zeros(len(positions), dtype=torch.int64)
    counted = Tally()
    with counted:
        match part:
            case Part.PRELUDE:
                model.prelude(ids, kv.rows(CellPart.PRELUDE, positions, depths))
            case Part.RECURRENT:
                model.recur(states, states, kv.rows(CellPart.RECURRENT, positions, depths))
            case Part.READOUT:
                model.head(model.coda(states, kv.rows(CellPart.CODA, positions, depths)))
    return counted

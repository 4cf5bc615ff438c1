"""Bytes and operations of a call: what any machine must move and multiply for it.

A *call* runs one part of the model on some rows. All rows share the weights, which are read once however many rows
there are: the whole case for batching lanes. Attention is different: it reads the cells of a slot, once for every
*group* of rows that attend to the same slot of the same sequence. Lanes of a wavefront with slots of their own are
groups of one row each; a verification of DtV, or lanes that share a slot (KV sharing), are one group of many.

Counts are exact for the networks of `reference.models`, whose products they list; small elementwise operations are in
no count of operations. All counts are floats, because averages over a run are counted with the same code.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from reference.cost.shapes import LoopedShape, Part
from reference.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Precision:
    """In how many bytes numbers are held."""

    name: str
    """What reports and tables of machines call it: the type of the products."""
    weight_bytes: float
    """Bytes of an element of weights, states and logits."""
    cell_bytes: float
    """Bytes of an element of KV cells."""


PRECISIONS: Final = MappingProxyType(
    {
        "bf16": Precision("bf16", 2.0, 2.0),
        "fp32": Precision("fp32", 4.0, 4.0),
        "fp64": Precision("fp64", 8.0, 8.0),
    }
)
"""The types that models compute in."""


def precision_of(name: str) -> Precision:
    """Gives a precision by its name.

    Raises:
        ParameterError: If there is none of this name.
    """
    if name not in PRECISIONS:
        raise ParameterError(f"dtype={name!r} is none of {', '.join(PRECISIONS)}")
    return PRECISIONS[name]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one sequence that attend to the same slot, hence read its cells together."""

    rows: float
    """How many rows."""
    cells: float
    """Cells of the slot that are read, the rows' own included."""
    count: float = 1.0
    """How many such groups there are in one sequence."""


@dataclass(frozen=True, slots=True)
class Call:
    """One batched call."""

    part: Part
    """What is run."""
    groups: tuple[Group, ...]
    """The rows of one sequence."""
    batch: float = 1.0
    """How many sequences take part, all with such rows."""
    head_rows: float | None = None
    """Rows of a readout, over all sequences, whose logits are wanted; None: all rows."""

    @property
    def rows(self) -> float:
        """Rows over all sequences."""
        return self.batch * sum(group.count * group.rows for group in self.groups)

    @property
    def num_groups(self) -> float:
        """Groups of one sequence."""
        return sum(group.count for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a call moves and multiplies; works add up."""

    linear_flops: float = 0.0
    """Operations of products with weights, a multiplication and an addition counted as two."""
    attention_flops: float = 0.0
    """Operations of the two products of attention."""
    weight_bytes: float = 0.0
    """Weights read."""
    kv_read_bytes: float = 0.0
    """KV cells read, the rows' own included."""
    kv_write_bytes: float = 0.0
    """KV cells written."""
    activation_bytes: float = 0.0
    """Rows read by and written from the products with weights."""

    @property
    def flops(self) -> float:
        """All operations."""
        return self.linear_flops + self.attention_flops

    @property
    def total_bytes(self) -> float:
        """All bytes."""
        return self.weight_bytes + self.kv_read_bytes + self.kv_write_bytes + self.activation_bytes

    @property
    def intensity_flops_per_byte(self) -> float:
        """Operations for each byte moved; a machine whose ridge point is higher waits for memory."""
        return self.flops / self.total_bytes

    def __add__(self, other: "Work") -> "Work":
        """Gives the work of both."""
        return Work(
            linear_flops=self.linear_flops + other.linear_flops,
            attention_flops=self.attention_flops + other.attention_flops,
            weight_bytes=self.weight_bytes + other.weight_bytes,
            kv_read_bytes=self.kv_read_bytes + other.kv_read_bytes,
            kv_write_bytes=self.kv_write_bytes + other.kv_write_bytes,
            activation_bytes=self.activation_bytes + other.activation_bytes,
        )

    def __mul__(self, times: float) -> "Work":
        """Gives the work of as many calls."""
        return Work(
            linear_flops=self.linear_flops * times,
            attention_flops=self.attention_flops * times,
            weight_bytes=self.weight_bytes * times,
            kv_read_bytes=self.kv_read_bytes * times,
            kv_write_bytes=self.kv_write_bytes * times,
            activation_bytes=self.activation_bytes * times,
        )


def work_of(call: Call, shape: LoopedShape, precision: Precision) -> Work:
    """Counts a call."""
    layers, rows = float(shape.num_layers(call.part)), call.rows
    products = _products(call, shape)
    matrix_elements = sum(times * fan_in * fan_out for times, _, fan_in, fan_out in products)
    vector_elements = layers * shape.layer_vector_elements + shape.outer_vector_elements(call.part)
    if call.part is Part.PRELUDE:
        vector_elements += rows * shape.hidden_size  # one line of the embedding for each row
    cells = call.batch * sum(group.count * group.cells for group in call.groups)
    scores = call.batch * sum(group.count * group.rows * group.cells for group in call.groups)
    return Work(
        linear_flops=sum(times * 2 * n * fan_in * fan_out for times, n, fan_in, fan_out in products),
        attention_flops=layers * 4 * scores * shape.num_heads * shape.head_dim,
        weight_bytes=(matrix_elements + vector_elements) * precision.weight_bytes,
        kv_read_bytes=layers * cells * shape.kv_size * precision.cell_bytes,
        kv_write_bytes=layers * rows * shape.kv_size * precision.cell_bytes,
        activation_bytes=sum(times * n * (fan_in + fan_out) for times, n, fan_in, fan_out in products)
        * precision.weight_bytes,
    )


def prefill_work(shape: LoopedShape, precision: Precision, *, num_tokens: int) -> Work:
    """Counts the pass over a prompt: every position at full depth, the last one read out.

    Scores are counted for all pairs of positions, forbidden ones included, as they are computed here.
    """
    rows = float(num_tokens)
    prompt = (Group(rows, rows),)
    return (
        work_of(Call(Part.PRELUDE, prompt), shape, precision)
        + work_of(Call(Part.RECURRENT, prompt), shape, precision) * float(shape.recurrence_depth)
        + work_of(Call(Part.READOUT, prompt, head_rows=1.0), shape, precision)
    )


def _products(call: Call, shape: LoopedShape) -> list[tuple[float, float, int, int]]:
    """Lists the products of a call with weights: how often, on how many rows, fan in, fan out."""
    layers = float(shape.num_layers(call.part))
    outer_rows = call.rows
    if call.part is Part.READOUT and call.head_rows is not None:
        outer_rows = call.head_rows
    return [
        *((layers, call.rows, *matrix) for matrix in shape.layer_matrices),
        *((1.0, outer_rows, *matrix) for matrix in shape.outer_matrices(call.part)),
    ]

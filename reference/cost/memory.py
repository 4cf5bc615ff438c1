"""What fits: weights and KV cells against a machine's memory, and the longest context that they leave room for."""

from reference.cost.shapes import LoopedShape
from reference.cost.work import Precision


def weight_bytes(shape: LoopedShape, precision: Precision) -> float:
    """Gives the bytes of all parameters, tied ones once."""
    return shape.num_parameters * precision.weight_bytes


def kv_bytes_per_position(shape: LoopedShape, precision: Precision, *, recurrence_slots: int | None = None) -> float:
    """Gives the bytes of one position's cells.

    Args:
        shape: The model.
        precision: The type of the cells.
        recurrence_slots: s: slots that all recurrences of a layer share (KV sharing); None is one for each recurrence.
    """
    return shape.num_slots(recurrence_slots) * shape.kv_size * precision.cell_bytes


def kv_bytes(
    shape: LoopedShape, precision: Precision, *, num_positions: int, recurrence_slots: int | None = None
) -> float:
    """Gives the bytes of the cells of a sequence."""
    return num_positions * kv_bytes_per_position(shape, precision, recurrence_slots=recurrence_slots)


def longest_context(
    shape: LoopedShape,
    precision: Precision,
    *,
    memory_bytes: float,
    batch: int = 1,
    recurrence_slots: int | None = None,
) -> int:
    """Gives the most positions for each of `batch` sequences that fit beside the weights; 0 if not even one does.

    Activations, the allocator's reserve and copies of cells are not counted, so this is an upper bound: what it
    excludes cannot run, what it allows may still fail.
    """
    room = memory_bytes - weight_bytes(shape, precision)
    each = batch * kv_bytes_per_position(shape, precision, recurrence_slots=recurrence_slots)
    return max(0, int(room // each))

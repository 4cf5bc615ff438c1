"""Recognises positions that a slice can stand for: a slice of a tensor is a view, an index makes a copy."""

from collections.abc import Sequence


def is_run(numbers: Sequence[int]) -> bool:
    """Tells whether each number is the one before it plus 1. `numbers` is not empty."""
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))


def as_slice(numbers: Sequence[int]) -> slice | None:
    """Gives the slice that selects these numbers in this order; None if there is none.

    Args:
        numbers: At least one. Any two of which the second is larger have a slice.
    """
    first, last = numbers[0], numbers[-1]
    step = max(1, (last - first) // max(1, len(numbers) - 1))
    return slice(first, last + 1, step) if list(numbers) == list(range(first, last + 1, step)) else None

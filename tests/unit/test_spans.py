"""A slice stands for positions exactly where it selects them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.spans import as_slice, is_run


@pytest.mark.parametrize("numbers,expected", [([4], True), ([4, 5, 6], True), ([4, 6], False), ([5, 4], False)])
def test_a_run_grows_by_one(numbers: list[int], expected: bool) -> None:  # noqa: FBT001 - a table of cases
    assert is_run(numbers) is expected


@given(
    numbers=st.lists(st.integers(0, 12), min_size=1, max_size=6) | st.sets(st.integers(0, 12), min_size=1).map(sorted)
)
def test_a_slice_selects_exactly_the_numbers_and_is_found_wherever_there_is_one(numbers: list[int]) -> None:
    found = as_slice(numbers)
    steps = {second - first for first, second in pairwise(numbers)}
    assert (found is None) == (len(steps) > 1 or min(steps, default=1) < 1)
    if found is not None:
        assert list(range(13))[found] == numbers

"""Errors are of the types that callers catch, and name value, rule and clause."""

import pytest

from reference.errors import (
    CheckpointError,
    NumericsError,
    ParameterError,
    SlotConflictError,
    StaleReadError,
    check_whole_number,
)


@pytest.mark.spec("NOT-04")
@pytest.mark.parametrize("value", [True, False, 2.0, 1.5, "2", None, [2]])
def test_what_is_not_an_integer_is_no_whole_number(value: object) -> None:
    with pytest.raises(ParameterError) as caught:
        check_whole_number("draft_length", value, minimum=1, clause="DTV-02")
    assert str(caught.value) == f"draft_length={value!r} is not a whole number (DTV-02)"


@pytest.mark.spec("NOT-04")
@pytest.mark.parametrize("value", [0, -3])
def test_a_number_below_the_minimum_is_refused_with_both(value: int) -> None:
    with pytest.raises(ParameterError) as caught:
        check_whole_number("draft_length", value, minimum=1, clause="DTV-02")
    assert str(caught.value) == f"draft_length={value} is below 1 (DTV-02)"


def test_the_minimum_itself_is_allowed() -> None:
    check_whole_number("draft_length", 1, minimum=1, clause="DTV-02")


@pytest.mark.spec("NOT-04")
def test_a_bad_argument_is_a_value_error() -> None:
    assert issubclass(ParameterError, ValueError)
    assert issubclass(CheckpointError, ValueError)


@pytest.mark.spec("KV-03", "KV-04", "SMP-02")
def test_broken_rules_of_a_run_are_no_value_errors() -> None:
    for kind in (NumericsError, SlotConflictError, StaleReadError):
        assert not issubclass(kind, ValueError)

"""Everything a caller can cause to go wrong, each with a type of its own.

What cannot happen is an `assert`; what a caller can cause is one of these. Messages name the value, the rule and the
clause of `spec/` that holds it (NOT-04).
"""


class ParameterError(ValueError):
    """An argument breaks a rule of the specification; raised before any computation."""


class CheckpointError(ValueError):
    """A model folder is incomplete, contradictory, mis-shaped or in a format that could execute code."""


class NumericsError(ArithmeticError):
    """A readout gave logits among which no largest one exists (SMP-02)."""


class StaleReadError(RuntimeError):
    """A KV cell was read that its position's current incarnation has not written at that recurrence (KV-03)."""


class SlotConflictError(RuntimeError):
    """A KV cell was written twice, or out of order, within one incarnation of its position (KV-04)."""


def check_whole_number(name: str, value: object, *, minimum: int, clause: str | None = None) -> None:
    """Holds that `value` is an `int` of at least `minimum`.

    Raises:
        ParameterError: If not; the message names `clause`, unless the specification has none on it.
    """
    named = "" if clause is None else f" ({clause})"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterError(f"{name}={value!r} is not a whole number{named}")
    if value < minimum:
        raise ParameterError(f"{name}={value} is below {minimum}{named}")

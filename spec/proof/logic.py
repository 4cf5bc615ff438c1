"""Terms that are Z3's or Python's, and a prover.

The steps and invariants of the proofs are written once, over `Term`. Given Z3's variables they are formulas about all
sizes; given whole numbers and functions they compute, so that the very same text can be compared with TLC's states.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import z3  # type: ignore[import-untyped]

Term: TypeAlias = Any  # z3 has no types, and its terms answer to Python's operators as numbers do
"""A number, token, text or truth value: a Z3 expression or a Python value."""

Function: TypeAlias = Callable[..., Term]
"""A function of indices."""

TIMEOUT_MS: Final = 20_000
"""How long Z3 may think about one obligation. Proofs take milliseconds; this bounds what cannot be proved."""


def all_of(*terms: Term) -> Term:
    """Gives the conjunction."""
    if all(isinstance(term, bool) for term in terms):
        return all(terms)
    return z3.And(*terms)


def any_of(*terms: Term) -> Term:
    """Gives the disjunction."""
    if all(isinstance(term, bool) for term in terms):
        return any(terms)
    return z3.Or(*terms)


def no(term: Term) -> Term:
    """Gives the negation."""
    return not term if isinstance(term, bool) else z3.Not(term)


def implies(condition: Term, conclusion: Term) -> Term:
    """Gives the implication."""
    return any_of(no(condition), conclusion)


def if_else(condition: Term, this: Term, that: Term) -> Term:
    """Gives `this` where `condition` holds, else `that`."""
    if isinstance(condition, bool):
        return this if condition else that
    return z3.If(condition, this, that)


def least(first: Term, second: Term) -> Term:
    """Gives the smaller number."""
    return if_else(first <= second, first, second)


def for_all(claim: Function, *, skip: Iterable[Term] = ()) -> Term:
    """Gives the claim for all whole numbers as its indices; `skip` are its leading arguments that are none."""
    given = tuple(skip)
    indices = [z3.Int(f"any_{number}") for number in range(_num_arguments(claim) - len(given))]
    body = claim(*given, *indices)
    return z3.ForAll(indices, body) if indices else body


def for_one(claim: Function, *, skip: Iterable[Term] = ()) -> Term:
    """Gives the claim for arbitrary but fixed indices: what has to be proved to have it for all."""
    given = tuple(skip)
    return claim(*given, *[z3.Int(f"fixed_{number}") for number in range(_num_arguments(claim) - len(given))])


def _num_arguments(claim: Function) -> int:
    return len(inspect.signature(claim).parameters)


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something to be proved: the conclusion follows from the hypotheses."""

    name: str
    """Which step, and which claim."""
    hypotheses: tuple[Term, ...]
    """What may be used."""
    conclusion: Term
    """What is to be shown."""

    def is_proved(self, timeout_ms: int = TIMEOUT_MS) -> bool:
        """Asks Z3 whether hypotheses and negated conclusion contradict each other."""
        solver = z3.Solver()
        solver.set("timeout", timeout_ms)
        solver.add(*self.hypotheses, z3.Not(self.conclusion))
        return bool(solver.check() == z3.unsat)


def unproved(obligations: Iterable[Obligation], timeout_ms: int = TIMEOUT_MS) -> Iterator[str]:
    """Names the obligations that Z3 cannot prove."""
    return (item.name for item in obligations if not item.is_proved(timeout_ms))

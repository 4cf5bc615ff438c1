"""When WFD and DtV with shared KV slots find in every cell what AR with the same slots finds there, for all sizes.

Everything is said in *steps*: layer `l` of the recurrent block in recurrence `r` is step `r * L + l` of its position.
So `S = T * L` steps make a position, and lanes of a wavefront are `D = d * L` steps apart. `slot(t)` is the slot of a
step, any function (SHR-02); `last(t)` the last of all steps with the slot of `t`, which is what AR finds there at every
earlier position; `held(n, t)` the last among the first `n` steps, which is what is found at a position that has made
`n` steps. That these two exist is plain: there are finitely many steps, and `t` is one of them.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import z3  # type: ignore[import-untyped]

from spec.proof.logic import Function, Obligation, Term, all_of, implies

_S, _D, _N, _STEP, _OTHER, _AHEAD = z3.Ints("S D n t q k")
_INT: Final = z3.IntSort()
_slot: Final[Function] = z3.Function("slot", _INT, _INT)
_last: Final[Function] = z3.Function("last", _INT, _INT)
_held: Final[Function] = z3.Function("held", _INT, _INT, _INT)

BUGS: Final[Mapping[str, str]] = {
    "rows read before others write": "SHR-08 suffices",
    "a draft depth one step less": "SHR-08 suffices",
    "DtV by the rule of WFD": "SHR-09 suffices, drafting",
    "sources of a round overtake each other": "SHR-09 suffices, verifying",
    "slots in turn ask for one less": "SHR-08 in turn: the first step asks for most",
}
"""Wrong assumptions, each with an obligation that it leaves unproved."""


def _is_step(t: Term) -> Term:
    return all_of(t >= 0, t < _S)


def _is_last_of(found: Term, t: Term, end: Term) -> Term:
    """Says that `found` is the last step before `end` with the slot of `t`, which is one of them."""
    q = z3.Int("any_step")
    later = implies(all_of(q >= 0, q < end, _slot(q) == _slot(t)), q <= found)
    return all_of(found >= t, found < end, _slot(found) == _slot(t), z3.ForAll([q], later, patterns=[_slot(q)]))


def _given() -> tuple[Term, ...]:
    t, n = z3.Ints("some_step some_end")
    return (
        all_of(_S >= 1, _D >= 1, _D <= _S),
        z3.ForAll([t], implies(_is_step(t), _is_last_of(_last(t), t, _S)), patterns=[_last(t)]),
        z3.ForAll(
            [n, t],
            implies(all_of(t >= 0, t < n, n <= _S), _is_last_of(_held(n, t), t, n)),
            patterns=[_held(n, t)],
        ),
    )


def obligations(bug: str | None = None) -> Iterator[Obligation]:
    """Gives everything that has to be proved.

    Args:
        bug: One of `BUGS`, to be built in.
    """
    given = (*_given(), _is_step(_STEP))
    yield from _cells(given)
    yield from _wavefront(given, bug)
    yield from _rounds(given, bug)
    yield from _in_turn(bug)


def _cells(given: tuple[Term, ...]) -> Iterator[Obligation]:
    """What a slot holds is kept by every write, and ends as what AR leaves."""
    # Invariant: a position that has made n steps holds held(n, t) in the slot of t. The next step is step n.
    grows = all_of(_STEP < _N, _N < _S)
    written = implies(_slot(_N) == _slot(_STEP), _held(_N + 1, _STEP) == _N)
    kept = implies(_slot(_N) != _slot(_STEP), _held(_N + 1, _STEP) == _held(_N, _STEP))
    yield Obligation("SHR-05 the last write wins: written", (*given, grows), written)
    yield Obligation("SHR-05 the last write wins: kept", (*given, grows), kept)
    yield Obligation("SHR-05 a row finds its own step", given, _held(_STEP + 1, _STEP) == _STEP)
    yield Obligation("SHR-07 finished positions hold what AR leaves", given, _held(_S, _STEP) == _last(_STEP))


def _wavefront(given: tuple[Term, ...], bug: str | None) -> Iterator[Obligation]:
    """WFD: the k-th older lane is k * D steps ahead (WFD-07) and writes first, unless it has finished."""
    ahead = z3.Int("steps_ahead")  # k * D for some k >= 1, so at least D
    lag = 0 if bug == "rows read before others write" else 1
    in_flight = all_of(ahead >= _D, _STEP + ahead < _S)
    found = _held(_STEP + ahead + lag, _STEP)
    enough = _D + (1 if bug == "a draft depth one step less" else 0)
    yield Obligation("SHR-05 fresh reads of a wavefront", (*given, in_flight), found >= _STEP)
    suffices = _last(_STEP) - _STEP <= enough
    yield Obligation("SHR-08 suffices", (*given, in_flight, suffices), found == _last(_STEP))
    # Where it does not suffice, the lane next ahead is still in flight and the cell is another.
    misses = _last(_STEP) - _STEP > _D
    other = all_of(_STEP + _D < _S, _held(_STEP + _D + 1, _STEP) != _last(_STEP))
    yield Obligation("SHR-08 is needed", (*given, misses), other)
    spaced = all_of(_AHEAD >= 1, _D >= 1)
    yield Obligation("SHR-08 lanes further ahead are further", (spaced,), _AHEAD * _D >= _D)


def _rounds(given: tuple[Term, ...], bug: str | None) -> Iterator[Obligation]:
    """DtV: older sources wait at depth d, then all rows of a verification make the same step (DTV-04, DTV-05)."""
    q = z3.Int("any_other")
    alone = z3.ForAll(
        [q],
        implies(all_of(q >= 0, q < _S, _OTHER >= _D, _OTHER < _S, _slot(q) == _slot(_OTHER)), q == _OTHER),
        patterns=[_slot(q)],
    )
    unshared = z3.ForAll([_OTHER], alone, patterns=[_slot(_OTHER)])
    if bug == "DtV by the rule of WFD":
        unshared = z3.ForAll([q], implies(_is_step(q), _last(q) - q <= _D), patterns=[_last(q)])
    drafting, verifying = _STEP < _D, _STEP >= _D
    seen = _held(_STEP + (2 if bug == "sources of a round overtake each other" else 1), _STEP)
    yield Obligation("SHR-05 fresh reads of a round", (*given, drafting), _held(_D, _STEP) >= _STEP)
    yield Obligation("SHR-09 suffices, drafting", (*given, drafting, unshared), _held(_D, _STEP) == _last(_STEP))
    yield Obligation("SHR-09 suffices, verifying", (*given, verifying, unshared), seen == _last(_STEP))
    # A step of the verification that shares its slot with another one: the earlier of the two, made by the second
    # source, finds another cell.
    shares = all_of(verifying, _is_step(_OTHER), _OTHER != _STEP, _slot(_OTHER) == _slot(_STEP))
    first = z3.If(_OTHER < _STEP, _OTHER, _STEP)
    met = z3.If(first < _D, _held(_D, first), _held(first + 1, first))
    yield Obligation("SHR-09 is needed", (*given, shares), met != _last(first))


def _in_turn(bug: str | None) -> Iterator[Obligation]:
    """`s` slots in turn: the last step of a slot is a multiple of `s` away, and the first step asks for most.

    `m` and `o` are the numbers of whole turns that fit behind step `t` and behind step 0.
    """
    s, m, o, other = z3.Ints("s m o other_turns")
    sizes = all_of(s >= 1, _S >= 1, _is_step(_STEP))
    turns = all_of(s * m <= _S - 1 - _STEP, s * (m + 1) > _S - 1 - _STEP)
    whole = all_of(s * o <= _S - 1, s * (o + 1) > _S - 1)
    least = s * o - (1 if bug == "slots in turn ask for one less" else 0)
    yield Obligation("SHR-08 in turn: the last of a slot", (sizes, turns), all_of(_STEP + s * m < _S, m >= 0))
    beyond = implies(other > m, _STEP + s * other >= _S)
    yield Obligation("SHR-08 in turn: none is later", (sizes, turns, s * (other - m - 1) >= 0), beyond)
    yield Obligation("SHR-08 in turn: a product of no negative factor", (s >= 1, other > m), s * (other - m - 1) >= 0)
    fewer = implies(s * (m - o - 1) >= 0, m <= o)
    yield Obligation("SHR-08 in turn: no step has more turns behind it", (sizes, turns, whole), fewer)
    both = (sizes, turns, whole, m <= o, s * (o - m) >= 0)
    yield Obligation("SHR-08 in turn: the first step asks for most", both, s * m <= least)
    # DtV: fewer slots than steps, and a verification. The last step shares its slot with the one a turn before.
    fewer_slots = all_of(s >= 1, s < _S, _D < _S)
    met = all_of(_S - 1 >= _D, _S - 1 - s >= 0, _S - 1 - s < _S - 1)
    yield Obligation("SHR-09 in turn: never with fewer slots", (fewer_slots,), met)
    yield Obligation("SHR-06 slots for all are not shared", (s >= _S, _is_step(_STEP), turns), m <= 0)

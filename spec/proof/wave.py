"""What the proofs of WFD and DtV share: parameters, the two heads, states, and the invariants about cells and texts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import z3  # type: ignore[import-untyped]

from spec.proof.logic import (
    Function,
    Obligation,
    Term,
    all_of,
    any_of,
    for_all,
    for_one,
    if_else,
    implies,
    no,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Parameters and heads: unknown ones in the proof, given ones where the step is computed."""

    recurrence_depth: Term
    """T."""
    draft_depth: Term
    """d."""
    draft_length: Term
    """gamma; WFD ignores it."""
    prompt_length: Term
    """P."""
    end: Term
    """The frontier at which decoding ends."""
    is_stop: Function
    """Whether a token is a stop id."""
    extend: Function
    """A text and one more token."""
    nothing: Term
    """The text of a cell that the present incarnation of its position has not written."""

    def may_inject(self, position: Term) -> Term:
        """Says whether a lane may start at a position (SMP-15)."""
        return position + 1 < self.end

    def ends(self, frontier: Term, token: Term) -> Term:
        """Says whether decoding ends once `token` was committed just below `frontier` (SMP-14)."""
        return any_of(self.is_stop(token), frontier >= self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state between ticks. Functions take a lane's index, oldest 0, or a position."""

    num_lanes: Term
    """Lanes in flight."""
    frontier: Term
    """F."""
    ticks: Term
    """Recurrent calls so far."""
    accepted: Term
    """Drafts judged right."""
    rejected: Term
    """Drafts judged wrong."""
    position: Function
    """Of a lane."""
    depth: Function
    """Of a lane."""
    token: Function
    """Of a lane."""
    text: Function
    """What a lane is computed from: all tokens up to its own."""
    final: Function
    """The final token at a position of the output."""
    cell: Function
    """(position, recurrence): the text from which the cell was computed."""
    entry: Function
    """Position: the text from which the coda entry was computed."""
    entry_depth: Function
    """Position: the depth of the readout that wrote the coda entry; 0 where there is none."""
    base: Term = 0
    """DtV: ticks before this round."""
    num_drafts: Term = 0
    """DtV: K of this round."""
    round_accepted: Term = 0
    """DtV: drafts accepted so far in this round's verdicts."""
    is_judging: Term = False
    """DtV: whether the lanes stand at depth T and are verified one after the other, within one tick."""

    @property
    def youngest(self) -> Term:
        """Index of the youngest lane."""
        return self.num_lanes - 1

    def has(self, index: Term) -> Term:
        """Says whether a lane has this index."""
        return all_of(index >= 0, index < self.num_lanes)


# ---- the unknown world ----------------------------------------------------------------------------------------------

_TOKEN: Final = z3.DeclareSort("Token")
_TEXT: Final = z3.DeclareSort("Text")
_INT: Final = z3.IntSort()

ANY: Final = World(
    recurrence_depth=z3.Int("T"),
    draft_depth=z3.Int("d"),
    draft_length=z3.Int("gamma"),
    prompt_length=z3.Int("P"),
    end=z3.Int("end"),
    is_stop=z3.Function("is_stop", _TOKEN, z3.BoolSort()),
    extend=z3.Function("extend", _TEXT, _TOKEN, _TEXT),
    nothing=z3.Const("nothing", _TEXT),
)
"""Any parameters, any stop ids."""

WIDTH: Final = z3.Int("W")
"""W, the wavefront width."""

full_depth: Final[Function] = z3.Function("full_depth", _TEXT, _TOKEN)
"""What the full-depth head says after a text: some function, no more is known of it."""
ar_token: Final[Function] = z3.Function("ar_token", _INT, _TOKEN)
"""The token of AR at a position of the output."""
ar_text: Final[Function] = z3.Function("ar_text", _INT, _TEXT)
"""AR's tokens up to and including a position, prompt included."""
drafted: Final = z3.Const("drafted", _TOKEN)
"""Whatever the draft head says: an arbitrary token."""

_T, _D, _P = ANY.recurrence_depth, ANY.draft_depth, ANY.prompt_length


def _assumptions() -> tuple[Term, ...]:
    p, text, token = z3.Int("p"), z3.Const("text", _TEXT), z3.Const("token", _TOKEN)
    return (
        # WFD-01, DTV-01, DTV-02, SMP-05; W = ceil(T / d), said without division; a run that gets beyond prefill.
        all_of(_D >= 1, _D <= _T, ANY.draft_length >= 1, _P >= 1, ANY.end >= _P + 1),
        all_of((WIDTH - 1) * _D < _T, WIDTH * _D >= _T),
        # AR commits what the full depth says after its own text.
        z3.ForAll(
            [p],
            implies(
                p >= _P,
                all_of(
                    ar_token(p) == full_depth(ar_text(p - 1)), ar_text(p) == ANY.extend(ar_text(p - 1), ar_token(p))
                ),
            ),
            patterns=[ar_text(p), ar_token(p)],
        ),
        # A text is never the mark of an unwritten cell.
        z3.ForAll([p], ar_text(p) != ANY.nothing, patterns=[ar_text(p)]),
        z3.ForAll([text, token], ANY.extend(text, token) != ANY.nothing, patterns=[ANY.extend(text, token)]),
    )


ASSUMPTIONS: Final = _assumptions()
"""What holds of parameters and heads, and nothing else is assumed."""


def any_state() -> State:
    """Gives a state of which nothing is known."""
    numbers = {name: z3.Int(name) for name in ("num_lanes", "frontier", "ticks", "accepted", "rejected", "base")}
    rounds = {name: z3.Int(name) for name in ("num_drafts", "round_accepted")}
    return State(
        **numbers,
        **rounds,
        is_judging=z3.Bool("is_judging"),
        position=z3.Function("position", _INT, _INT),
        depth=z3.Function("depth", _INT, _INT),
        token=z3.Function("token_of", _INT, _TOKEN),
        text=z3.Function("text_of", _INT, _TEXT),
        final=z3.Function("final", _INT, _TOKEN),
        cell=z3.Function("cell", _INT, _INT, _TEXT),
        entry=z3.Function("entry", _INT, _TEXT),
        entry_depth=z3.Function("entry_depth", _INT, _INT),
    )


def start(world: World, first_token: Term, prompt_text: Function, *, num_drafts: Term = 0) -> State:
    """Gives the state after prefill (SMP-11): one lane, and nothing but the prompt's cells."""

    def in_prompt(p: Term) -> Term:
        return all_of(p >= 0, p < world.prompt_length)

    def known(p: Term) -> Term:
        return if_else(in_prompt(p), prompt_text(p), world.nothing)

    return State(
        num_lanes=1,
        frontier=world.prompt_length + 1,
        ticks=0,
        accepted=0,
        rejected=0,
        position=lambda _: world.prompt_length,
        depth=lambda _: 0,
        token=lambda _: first_token,
        text=lambda _: world.extend(prompt_text(world.prompt_length - 1), first_token),
        final=lambda _: first_token,
        cell=lambda p, r: if_else(all_of(r >= 0, r < world.recurrence_depth), known(p), world.nothing),
        entry=known,
        entry_depth=lambda p: if_else(in_prompt(p), world.recurrence_depth, 0),
        num_drafts=num_drafts,
    )


# ---- invariants of both decoders ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """AR's tokens and texts, as the invariants refer to them."""

    token: Function
    """Of AR at a position."""
    upto: Function
    """AR's text up to a position."""


AR: Final = Text(ar_token, ar_text)
"""AR in the unknown world."""


def shared_invariants(world: World, ar: Text) -> Mapping[str, Function]:  # noqa: C901 - a dozen short formulas
    """Gives the invariants that both decoders have, by clause and name; their indices are arguments after the state."""
    full = world.recurrence_depth

    def frontier(s: State) -> Term:
        return all_of(s.frontier >= world.prompt_length + 1, s.frontier < world.end, s.num_lanes >= 1)

    def consecutive(s: State, i: Term) -> Term:
        return implies(s.has(i), s.position(i) == s.frontier - 1 + i)

    def injection(s: State) -> Term:
        return world.may_inject(s.position(s.youngest))

    def identity(s: State, p: Term) -> Term:
        return implies(all_of(p >= world.prompt_length, p < s.frontier), s.final(p) == ar.token(p))

    def goes_on(s: State, p: Term) -> Term:
        return implies(all_of(p >= world.prompt_length, p < s.frontier), no(world.is_stop(ar.token(p))))

    def oldest_is_final(s: State) -> Term:
        return all_of(s.text(0) == ar.upto(s.frontier - 1), s.token(0) == ar.token(s.frontier - 1))

    def chain(s: State, i: Term) -> Term:
        return implies(all_of(i >= 1, i < s.num_lanes), s.text(i) == world.extend(s.text(i - 1), s.token(i)))

    def finished_cells(s: State, p: Term, r: Term) -> Term:
        known = all_of(p >= 0, p < s.frontier - 1, r >= 0, r < full)
        return implies(known, s.cell(p, r) == ar.upto(p))

    def lane_cells(s: State, i: Term, r: Term) -> Term:
        written = if_else(r < s.depth(i), s.text(i), world.nothing)
        return implies(all_of(s.has(i), r >= 0, r < full), s.cell(s.position(i), r) == written)

    def other_cells(s: State, p: Term, r: Term) -> Term:
        empty = all_of(p >= s.frontier - 1 + s.num_lanes, r >= 0, r < full)
        return implies(empty, s.cell(p, r) == world.nothing)

    def finished_entries(s: State, p: Term) -> Term:
        known = all_of(p >= 0, p < s.frontier - 1)
        return implies(known, all_of(s.entry(p) == ar.upto(p), s.entry_depth(p) == full))

    def other_entries(s: State, p: Term) -> Term:
        return implies(p >= s.frontier - 1 + s.num_lanes, s.entry_depth(p) == 0)

    return MappingProxyType(
        {
            "NOT-01 frontier": frontier,
            "NOT-01 consecutive": consecutive,
            "SMP-15 injection": injection,
            "identity": identity,
            "SMP-14 goes on": goes_on,
            "oldest is final": oldest_is_final,
            "text chain": chain,
            "KV-06 finished cells": finished_cells,
            "KV-04 lane cells": lane_cells,
            "KV-04 other cells": other_cells,
            "KV-07 finished entries": finished_entries,
            "KV-04 other entries": other_entries,
        }
    )


def preserved(
    case: str, invariants: Mapping[str, Function], before: State, after: State, guard: Term
) -> Iterator[Obligation]:
    """Gives the obligations that a step keeps every invariant."""
    hypotheses = (*ASSUMPTIONS, *holds(invariants, before), guard)
    for name, claim in invariants.items():
        yield Obligation(f"{case}: {name}", hypotheses, for_one(claim, skip=[after]))


def holds(invariants: Mapping[str, Function], state: State) -> tuple[Term, ...]:
    """Gives all invariants of a state, as hypotheses."""
    return tuple(for_all(claim, skip=[state]) for claim in invariants.values())

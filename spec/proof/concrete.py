"""The steps of the proofs, computed: every state of a small world, reached by the very text that Z3 reasons about."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from spec.proof import dtv
from spec.proof.logic import Function, Term
from spec.proof.wave import State, Text, World, start
from spec.tlc import Case

NOTHING = (-1,)
"""The text of an unwritten cell."""

TextValue = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state by value."""

    out: TextValue
    """Committed tokens, from position P on."""
    lanes: tuple[tuple[int, int, int], ...]
    """(position, token, depth), oldest first."""
    texts: tuple[TextValue, ...]
    """What each lane is computed from."""
    ticks: int
    """Recurrent calls so far."""
    cells: tuple[tuple[TextValue, ...], ...]
    """By position and recurrence."""
    entries: tuple[tuple[int, TextValue], ...]
    """(depth, text) by position."""
    accepted: int
    """Drafts judged right."""
    rejected: int
    """Drafts judged wrong."""
    base: int
    """DtV: ticks before this round."""
    num_drafts: int
    """DtV: K of this round."""
    round_accepted: int
    """DtV: drafts accepted in this round's verdicts."""
    is_judging: bool
    """DtV: whether verdicts are still to come in this tick."""

    def state(self, world: World) -> State:
        """Gives the state that the step's text works on; outside its tables it says what cannot matter."""
        lanes: Mapping[int, tuple[int, int, int]] = dict(enumerate(self.lanes))
        beyond = (-9, None, -9)
        cells = {(p, r): text for p, row in enumerate(self.cells) for r, text in enumerate(row)}
        entries = dict(enumerate(self.entries))
        texts, final = dict(enumerate(self.texts)), dict(enumerate(self.out, start=world.prompt_length))
        return State(
            num_lanes=len(self.lanes),
            frontier=world.prompt_length + len(self.out),
            ticks=self.ticks,
            accepted=self.accepted,
            rejected=self.rejected,
            position=lambda i: lanes.get(i, beyond)[0],
            token=lambda i: lanes.get(i, beyond)[1],
            depth=lambda i: lanes.get(i, beyond)[2],
            text=lambda i: texts.get(i, NOTHING),
            final=final.get,
            cell=lambda p, r: cells.get((p, r), NOTHING),
            entry=lambda p: entries.get(p, (0, NOTHING))[1],
            entry_depth=lambda p: entries.get(p, (0, NOTHING))[0],
            base=self.base,
            num_drafts=self.num_drafts,
            round_accepted=self.round_accepted,
            is_judging=self.is_judging,
        )


def world_of(case: Case) -> World:
    """Gives a small world by value; a text is the tuple of its tokens from position P on."""
    return World(
        recurrence_depth=case.T,
        draft_depth=case.d,
        draft_length=case.gamma,
        prompt_length=case.P,
        end=min(case.P + case.M, case.X + 1),
        is_stop=lambda token: token in case.stops,
        extend=lambda text, token: (*text, token),
        nothing=NOTHING,
    )


def snapshot(world: World, s: State) -> Snapshot:
    """Reads a state out, for all positions that have cells."""
    positions, recurrences = range(world.end - 1), range(world.recurrence_depth)
    return Snapshot(
        out=tuple(s.final(p) for p in range(world.prompt_length, s.frontier)),
        lanes=tuple((s.position(i), s.token(i), s.depth(i)) for i in range(s.num_lanes)),
        texts=tuple(s.text(i) for i in range(s.num_lanes)),
        ticks=s.ticks,
        cells=tuple(tuple(s.cell(p, r) for r in recurrences) for p in positions),
        entries=tuple((s.entry_depth(p), s.entry(p)) for p in positions),
        accepted=s.accepted,
        rejected=s.rejected,
        base=s.base,
        num_drafts=s.num_drafts,
        round_accepted=s.round_accepted,
        is_judging=s.is_judging,
    )


def starts(decoder: ModuleType, world: World, tokens: tuple[int, ...]) -> Iterator[Snapshot]:
    """Gives the states after prefill, for every first token that does not end the run."""
    for token in tokens:
        if not world.ends(world.prompt_length + 1, token):
            drafts = dtv.num_drafts(world, world.prompt_length + 1) if decoder is dtv else 0
            yield snapshot(world, start(world, token, lambda _: (), num_drafts=drafts))


def successors(
    decoder: ModuleType, world: World, before: Snapshot, tokens: tuple[int, ...], bug: str | None = None
) -> Iterator[tuple[str, Snapshot]]:
    """Gives every step from a state, with its case, under every answer of both heads; with one of the `BUGS` in it."""
    s = before.state(world)
    for y, g in itertools.product(tokens, repeat=2):
        cases = [case for case in decoder.CASES if decoder.is_case(world, case, s, y, bug)]
        assert len(cases) == 1, cases
        yield cases[0], snapshot(world, decoder.step(world, cases[0], s, y, g, bug))


def reachable(decoder: ModuleType, case: Case) -> dict[Snapshot, set[tuple[str, Snapshot]]]:
    """Gives every reachable state of a small world with its steps."""
    world = world_of(case)
    found: dict[Snapshot, set[tuple[str, Snapshot]]] = {}
    waiting = list(starts(decoder, world, case.tokens))
    while waiting:
        state = waiting.pop()
        if state not in found:
            found[state] = set(successors(decoder, world, state, case.tokens)) if state.lanes else set()
            waiting += [after for _, after in found[state]]
    return found


def broken(decoder: ModuleType, case: Case, state: Snapshot) -> list[str]:
    """Names the invariants that a running state breaks, all indices up to a bound tried."""
    world = world_of(case)
    out = state.out
    final = dict(enumerate(out, start=case.P))
    ar = Text(
        token=final.get,
        upto=lambda p: out[: max(0, p - case.P + 1)],
    )
    invariants: Mapping[str, Function] = decoder.invariants(world, ar)
    s: Term = state.state(world)
    indices = range(max(world.end, case.T) + 1)
    return [
        name
        for name, claim in invariants.items()
        if not all(claim(s, *index) for index in itertools.product(indices, repeat=claim.__code__.co_argcount - 1))
    ]

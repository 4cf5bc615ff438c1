"""Runs a schedule without a model: a table answers its readouts, and everything that happens is kept.

A `Case` is what hypothesis draws, a `Play` is what became of it; the laws of `tests.laws` look at plays.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, TypeVar

from hypothesis import currently_in_test_context, note

from reference.ar import AR
from reference.dtv import DtV
from reference.schedule import (
    Accept,
    Commit,
    Event,
    Events,
    Finish,
    Lane,
    Purpose,
    Readout,
    Reject,
    Schedule,
    State,
    Tick,
    begin,
)
from reference.stopping import FinishReason, Stopping
from reference.wfd import WFD

Kind = TypeVar("Kind", bound=Event)


class Table(Protocol):
    """Answers readouts. Everything a decoder may ask of a model, with no arithmetic in between."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""

    def verified(self, prefix: tuple[int, ...]) -> int:
        """Gives the full-depth token after a prefix."""

    def drafted(self, prefix: tuple[int, ...], depth: int, tick: int) -> int:
        """Gives the token after a prefix at a shallower depth. A model whose drafts never waver ignores `tick`."""


@dataclass(frozen=True)
class Drawn:
    """A table that is a few short lists; which entry answers follows from the prefix. Shrinks to zeros."""

    vocab_size: int
    """Number of token ids."""
    tokens: tuple[int, ...] = (0,)
    """Full-depth answers."""
    errors: tuple[int, ...] = (0,)
    """How far a draft is from the full-depth answer, modulo the vocabulary; 0 is a right draft."""
    stop_after: int | None = None
    """Length of the prefix after which the full depth says the highest id, whatever `tokens` holds."""
    is_steady: bool = True
    """Whether the same prefix always gets the same draft; in a P/R/C model it need not (KV-08)."""

    def verified(self, prefix: tuple[int, ...]) -> int:
        """Picks an answer by a number made from the prefix."""
        if len(prefix) == self.stop_after:
            return self.vocab_size - 1
        return self.tokens[_digest(prefix) % len(self.tokens)]

    def drafted(self, prefix: tuple[int, ...], depth: int, tick: int) -> int:
        """Adds an error to the full-depth answer."""
        moment = 0 if self.is_steady else tick
        error = self.errors[_digest((*prefix, depth, moment)) % len(self.errors)]
        return (self.verified(prefix) + error) % self.vocab_size


def _digest(numbers: tuple[int, ...]) -> int:
    """Mixes small numbers into one; not Python's own hash, so that a failure reads the same everywhere."""
    digest = 0
    for number in numbers:
        digest = (digest * 31 + number + 1) % 1_000_003
    return digest


@dataclass(frozen=True)
class Lap:
    """The scripted model of `CASES`: after x comes x + 1 (mod 8), but the shallow answer after 3 is 0."""

    vocab_size: int = 8
    """Number of token ids."""

    def verified(self, prefix: tuple[int, ...]) -> int:
        """Counts on."""
        return (prefix[-1] + 1) % self.vocab_size

    def drafted(self, prefix: tuple[int, ...], depth: int, tick: int) -> int:
        """Counts on, wrong once a lap."""
        del depth, tick
        return 0 if prefix[-1] == 3 else self.verified(prefix)


@dataclass(frozen=True)
class Verdicts:
    """A table made from an acceptance sequence: the draft of the k-th token after the first is right if `right[k]`."""

    prompt_length: int
    """P."""
    right: tuple[bool, ...]
    """One entry per token, the first token (never drafted) included."""
    stop_after: int | None = None
    """Which token, counted from 0, is the stop id 2."""
    vocab_size: int = 3
    """0 is the token, 1 the wrong draft, 2 the stop id."""

    def verified(self, prefix: tuple[int, ...]) -> int:
        """Says 0, or the stop id at its place."""
        return 2 if len(prefix) - self.prompt_length == self.stop_after else 0

    def drafted(self, prefix: tuple[int, ...], depth: int, tick: int) -> int:
        """Says what the sequence says."""
        del depth, tick
        return self.verified(prefix) if self.right[len(prefix) - self.prompt_length] else 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """One problem, posed to any decoder."""

    table: Table
    """What the model says."""
    prompt: tuple[int, ...] = (0,)
    """Token ids of the prompt."""
    recurrence_depth: int
    """T."""
    draft_depth: int
    """d."""
    draft_length: int = 1
    """gamma; DtV only."""
    max_new_tokens: int
    """The budget."""
    context_length: int = 64
    """Positions that the model can compute."""
    stop_ids: frozenset[int] = frozenset()
    """Stop ids."""

    @property
    def stopping(self) -> Stopping:
        """The limits, as schedules take them."""
        return Stopping(
            prompt_length=len(self.prompt),
            max_new_tokens=self.max_new_tokens,
            context_length=self.context_length,
            stop_ids=self.stop_ids,
        )

    @property
    def end(self) -> int:
        """The frontier at which decoding ends at the latest, computed here anew (NOT-01)."""
        return min(len(self.prompt) + self.max_new_tokens, self.context_length + 1)

    def drafting_at_full_depth(self) -> "Case":
        """Gives the same problem with d = T."""
        return replace(self, draft_depth=self.recurrence_depth)

    def with_draft_length(self, draft_length: int) -> "Case":
        """Gives the same problem with another gamma."""
        return replace(self, draft_length=draft_length)


MakeSchedule: TypeAlias = Callable[[Case], Schedule]

Answer: TypeAlias = Callable[[Readout, tuple[int, ...]], int]
"""Says the token of a readout, given the tokens that it is based on."""


def make_ar(case: Case) -> AR:
    """Gives the AR schedule of a case."""
    return AR(recurrence_depth=case.recurrence_depth, stopping=case.stopping)


def make_dtv(case: Case) -> DtV:
    """Gives the DtV schedule of a case."""
    return DtV(
        recurrence_depth=case.recurrence_depth,
        draft_depth=case.draft_depth,
        draft_length=case.draft_length,
        stopping=case.stopping,
    )


def make_wfd(case: Case) -> WFD:
    """Gives the WFD schedule of a case."""
    return WFD(recurrence_depth=case.recurrence_depth, draft_depth=case.draft_depth, stopping=case.stopping)


MAKERS: Final[Mapping[str, MakeSchedule]] = MappingProxyType({"ar": make_ar, "dtv": make_dtv, "wfd": make_wfd})
"""The three decoders, by name."""


@dataclass(frozen=True)
class Step:
    """One tick."""

    before: State
    """The state in which it was planned."""
    tick: Tick
    """The plan."""
    tokens: tuple[int, ...]
    """The answers to its readouts."""
    after: State
    """The state after it."""
    events: Events
    """What happened."""


@dataclass(frozen=True)
class Play:
    """One run from the first event to the last."""

    case: Case
    """The problem."""
    schedule: Schedule
    """The decoder."""
    first: State
    """The state before the first tick."""
    opening: Events
    """The events of tick 0."""
    steps: tuple[Step, ...]
    """All ticks."""

    @cached_property
    def events(self) -> Events:
        """All events in order."""
        return self.opening + tuple(event for step in self.steps for event in step.events)

    @cached_property
    def states(self) -> tuple[State, ...]:
        """All states in order."""
        return (self.first, *(step.after for step in self.steps))

    @cached_property
    def token_ids(self) -> tuple[int, ...]:
        """The committed tokens."""
        return tuple(event.token for event in self.events if isinstance(event, Commit))

    @cached_property
    def sequence(self) -> tuple[int, ...]:
        """Prompt and committed tokens."""
        return self.case.prompt + self.token_ids

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Gives the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended."""
        return self.states[-1].finish_reason

    @property
    def ticks(self) -> int:
        """Batched recurrent calls."""
        return len(self.steps)

    @cached_property
    def commit_ticks(self) -> tuple[int, ...]:
        """The tick of every commit, 0 for the first token."""
        return tuple(event.tick for event in self.events if isinstance(event, Commit))

    @cached_property
    def judgements(self) -> Mapping[int, bool]:
        """For each judged draft, by k (the k-th token after the first): whether it was accepted."""
        start = len(self.case.prompt)
        return {
            event.position - start: isinstance(event, Accept)
            for event in self.events
            if isinstance(event, Accept | Reject)
        }

    @property
    def num_after_first(self) -> int:
        """N: tokens committed after the first."""
        return max(0, len(self.token_ids) - 1)


def play(make: MakeSchedule, case: Case) -> Play:
    """Runs a decoder on a case, from the first token to the finish.

    Raises:
        AssertionError: If the decoder does not finish in the ticks that even its slowest run needs.
    """
    schedule, table = make(case), case.table
    has_budget = case.end > len(case.prompt)
    first, opening = begin(schedule, table.verified(case.prompt) if has_budget else None)
    patience = (case.end - len(case.prompt)) * (case.draft_length * case.draft_depth + case.recurrence_depth)
    final = case.prompt + committed(opening)
    steps: list[Step] = []
    state = first

    def answer(readout: Readout, prefix: tuple[int, ...]) -> int:
        if readout.purpose is Purpose.VERIFY:
            return table.verified(prefix)
        return table.drafted(prefix, readout.lane.depth, state.ticks + 1)

    while state.finish_reason is None:
        assert len(steps) <= patience, f"no finish after {patience} ticks (WFD-10, DTV-09)"
        steps.append(take_tick(schedule, state, final, answer))
        final += committed(steps[-1].events)
        state = steps[-1].after
    return Play(case, schedule, first, opening, tuple(steps))


def take_tick(schedule: Schedule, state: State, final: tuple[int, ...], answer: Answer) -> Step:
    """Runs one tick.

    Args:
        schedule: The decoder.
        state: Where it is.
        final: The final tokens, prompt included.
        answer: Asked for the token of every readout.
    """
    tick = schedule.plan(state)
    tokens = tuple(answer(readout, prefix_of(readout.lane, final, state)) for readout in tick.readouts)
    after, events = schedule.observe(state, tokens)
    return Step(state, tick, tokens, after, events)


def remark(text: str) -> None:
    """Adds a line to the report of a failing example; says nothing where no example is tried."""
    if currently_in_test_context():
        note(text)


def plays(case: Case) -> Iterator[Play]:
    """Runs all three decoders on a case."""
    for name, make in MAKERS.items():
        remark(name)
        yield play(make, case)


def prefix_of(lane: Lane, final: tuple[int, ...], state: State) -> tuple[int, ...]:
    """Gives the tokens that a lane's readout is based on: the final ones, then those of the lanes up to it."""
    return final + tuple(other.token for other in state.lanes if len(final) <= other.position <= lane.position)


def lanes_left(step: Step) -> tuple[Lane, ...]:
    """Gives the lanes of the state before a step as they are after its recurrent call."""
    return tuple(lane.advanced() if lane in step.tick.lanes else lane for lane in step.before.lanes)


def committed(events: Events) -> tuple[int, ...]:
    """Gives the tokens that became final."""
    return tuple(event.token for event in events if isinstance(event, Commit))


def finish_of(events: Events | list[Event]) -> Finish:
    """Gives the one `Finish` event of a run."""
    (finish,) = (event for event in events if isinstance(event, Finish))
    return finish

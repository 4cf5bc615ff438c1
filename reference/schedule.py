"""What every decoder shares: lanes, ticks, events, and what the answer to a readout means.

A decoder is a schedule and a schedule is integers: `plan` says which lanes the next recurrent call advances and which
of them are read out, `observe` says what the tokens read out mean. AR, DtV and WFD differ in `plan` alone; `interpret`
below is the `observe` of all three. Nothing here computes with tensors (NOT-02).
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from reference.errors import ParameterError, check_whole_number
from reference.stopping import FinishReason, Stopping


@dataclass(frozen=True, slots=True)
class Lane:
    """An in-flight position: begun, not yet at full depth."""

    position: int
    """Index in the sequence, 0-based, prompt included."""
    token: int
    """The token at `position`: committed for the oldest lane, drafted for all others."""
    depth: int
    """How many recurrences the position has had."""

    def advanced(self) -> "Lane":
        """Gives the lane one recurrence later."""
        return Lane(self.position, self.token, self.depth + 1)


@dataclass(frozen=True, slots=True)
class CellsRead:
    """KV cells of neighbouring positions that one row read, and who wrote them last."""

    start: int
    """First position."""
    stop: int
    """First position behind them."""
    recurrence: int
    """The recurrence that wrote them, 0-based; below 0 if nobody did."""
    incarnation: int
    """Which lane of their position wrote them: how many were started there before it, 0 for the prompt's own."""


class Purpose(Enum):
    """What a readout is for; it follows from the lane's depth."""

    VERIFY = "verify"
    """At full depth: the token is the model's own and is committed."""
    DRAFT = "draft"
    """At draft depth: the token is a guess and starts a new lane."""


@dataclass(frozen=True, slots=True)
class Readout:
    """One lane to be read out after it was advanced."""

    lane: Lane
    """The lane as it is after the recurrent call."""
    purpose: Purpose
    """What the token will be used for."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One batched recurrent call and the readouts that follow it."""

    lanes: tuple[Lane, ...]
    """The lanes that the call advances, as they are before it, oldest first."""
    readouts: tuple[Readout, ...]
    """What is read out afterwards, in one batched call, oldest first; often nothing."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything a decoder knows between two ticks."""

    frontier: int
    """Number of final tokens of the sequence, prompt included; the position of the next token to be committed."""
    lanes: tuple[Lane, ...]
    """The lanes in flight, oldest first. The oldest carries the last final token, at `frontier - 1`."""
    ticks: int = 0
    """Batched recurrent calls so far, prefill not counted."""
    finish_reason: FinishReason | None = None
    """Why decoding ended; None while it goes on. A finished state has no lanes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Opens a trace: the parameters that determine what the schedule may do."""

    decoder: str
    """`ar`, `dtv` or `wfd`."""
    recurrence_depth: int
    """T."""
    draft_depth: int
    """d; equal to T where nothing is drafted."""
    draft_length: int | None
    """gamma of DtV, else None."""
    prompt_length: int
    """Tokens in the prompt."""
    max_new_tokens: int
    """The token budget."""
    context_length: int
    """Positions that the model can compute."""
    stop_ids: tuple[int, ...]
    """Stop ids in ascending order."""


@dataclass(frozen=True, slots=True)
class Advance:
    """A recurrent call was made."""

    tick: int
    """Number of this call, from 1."""
    lanes: tuple[Lane, ...]
    """Its rows, as they are after the call, oldest first."""
    reads: tuple[tuple[CellsRead, ...], ...] | None = None
    """The cells that each row read in the recurrent block, if an implementation tells; our schedules know no cells."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A lane was read out at draft depth."""

    tick: int
    """The tick after whose call this happened."""
    position: int
    """Position of the lane that was read out."""
    token: int
    """The token it proposes for `position + 1`."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A token became final."""

    tick: int
    """The tick after whose call this happened; 0 is the prefill."""
    position: int
    """The token's own position."""
    token: int
    """The token."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The draft at `position` equals the token just committed there: its lane is the new oldest."""

    tick: int
    """The tick after whose call this happened."""
    position: int
    """Position of the draft."""


@dataclass(frozen=True, slots=True)
class Reject:
    """The draft at `position` differs from the token just committed there."""

    tick: int
    """The tick after whose call this happened."""
    position: int
    """Position of the draft."""
    draft_token: int
    """What was drafted."""
    verified_token: int
    """What the full depth says, and what was committed."""


@dataclass(frozen=True, slots=True)
class Flush:
    """A rejection dropped every lane that was left."""

    tick: int
    """The tick after whose call this happened."""
    positions: tuple[int, ...]
    """Positions of the dropped lanes, the rejected one first."""


@dataclass(frozen=True, slots=True)
class Inject:
    """A lane was started: the prelude ran on its token."""

    tick: int
    """The tick after whose call this happened; 0 is the prefill."""
    position: int
    """Position of the new lane."""
    token: int
    """The token it carries."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Decoding ended."""

    tick: int
    """The tick after whose call this happened."""
    reason: FinishReason
    """Why."""
    abandoned: tuple[int, ...]
    """Positions of lanes still in flight; they were neither judged nor flushed, or were accepted just now."""


Event: TypeAlias = Start | Advance | Draft | Commit | Accept | Reject | Flush | Inject | Finish
Events: TypeAlias = tuple[Event, ...]


@runtime_checkable  # for the tests, which check annotations at run time
class Schedule(Protocol):
    """A decoder without a model: a pure state machine on integers (NOT-02)."""

    name: ClassVar[str]
    """`ar`, `dtv` or `wfd`."""

    @property
    def recurrence_depth(self) -> int:
        """T."""

    @property
    def draft_depth(self) -> int:
        """d; equal to T where nothing is drafted."""

    @property
    def draft_length(self) -> int | None:
        """The gamma of DtV, else None."""

    @property
    def stopping(self) -> Stopping:
        """When decoding ends."""

    def plan(self, state: State) -> Tick:
        """Says what the next tick computes. `state` must not be finished."""

    def observe(self, state: State, tokens: tuple[int, ...]) -> tuple[State, Events]:
        """Says what the tokens of the planned readouts mean.

        Args:
            state: The state before the tick; left untouched.
            tokens: One token per readout of `plan(state)`, in its order.

        Returns:
            The state after the tick and what happened in it, in order.
        """


def begin(schedule: Schedule, first_token: int | None) -> tuple[State, Events]:
    """Opens a sequence after its prefill, alike for every decoder (SMP-10, SMP-11, WFD-02).

    Args:
        schedule: The decoder.
        first_token: The full-depth token after the prompt; None if and only if nothing may be committed.
    """
    stopping = schedule.stopping
    start = Start(
        decoder=schedule.name,
        recurrence_depth=schedule.recurrence_depth,
        draft_depth=schedule.draft_depth,
        draft_length=schedule.draft_length,
        prompt_length=stopping.prompt_length,
        max_new_tokens=stopping.max_new_tokens,
        context_length=stopping.context_length,
        stop_ids=tuple(sorted(stopping.stop_ids)),
    )
    frontier = stopping.prompt_length
    if first_token is None:
        assert frontier == stopping.end, "only a budget of 0 needs no first token"
        reason = stopping.reason_of_end()
        return State(frontier, (), finish_reason=reason), (start, Finish(0, reason, ()))
    # The last prompt position is the oldest lane, already at full depth.
    prefilled = State(frontier, (Lane(frontier - 1, -1, schedule.recurrence_depth),))
    state, events = verify_oldest(prefilled, first_token, stopping)
    return state, (start, *events)


def interpret(state: State, tick: Tick, tokens: tuple[int, ...], stopping: Stopping) -> tuple[State, Events]:
    """Gives the state after `tick` and what happened in it, in order (NOT-03): the `observe` of every decoder.

    Args:
        state: The state in which `tick` was planned.
        tick: The planned tick.
        tokens: One token per readout, in order.
        stopping: When decoding ends.
    """
    moved = {lane.position: lane.advanced() for lane in tick.lanes}
    lanes = tuple(moved.get(lane.position, lane) for lane in state.lanes)
    state = State(state.frontier, lanes, state.ticks + 1)
    events: Events = (Advance(state.ticks, tuple(moved.values())),)
    for readout, token in zip(tick.readouts, tokens, strict=True):
        if readout.lane not in state.lanes:
            continue  # flushed or abandoned a moment ago: its token was computed from a wrong prefix, or is too late
        if readout.purpose is Purpose.VERIFY:
            state, news = verify_oldest(state, token, stopping)
        else:
            state, news = inject_draft(state, readout.lane, token)
        events += news
    return state, events


def verify_oldest(state: State, token: int, stopping: Stopping) -> tuple[State, Events]:
    """Commits the full-depth token of the oldest lane and judges the lane behind it (SMP-12, SMP-13, SMP-14).

    The judgement comes before the stop rule, so that a draft is counted whether or not the text ends with it.
    """
    position, tick = state.frontier, state.ticks
    behind = state.lanes[1:]
    events: list[Event] = [Commit(tick, position, token)]
    if behind and behind[0].token == token:
        events.append(Accept(tick, position))
    elif behind:
        events.append(Reject(tick, position, draft_token=behind[0].token, verified_token=token))
        events.append(Flush(tick, tuple(lane.position for lane in behind)))
        behind = ()

    reason = stopping.reason_at(position + 1, token)
    if reason is not None:
        events.append(Finish(tick, reason, tuple(lane.position for lane in behind)))
        behind = ()
    elif not behind:  # rejected, or no draft was in flight: the token itself is the next lane
        events.append(Inject(tick, position, token))
        behind = (Lane(position, token, 0),)
    return State(position + 1, behind, tick, reason), tuple(events)


def inject_draft(state: State, source: Lane, token: int) -> tuple[State, Events]:
    """Starts a lane with the token that `source`, the youngest lane, proposes for the next position (WFD-05)."""
    lane = Lane(source.position + 1, token, 0)
    events = (Draft(state.ticks, source.position, token), Inject(state.ticks, lane.position, token))
    return State(state.frontier, (*state.lanes, lane), state.ticks), events


def default_draft_depth(recurrence_depth: int) -> int:
    """Gives an eighth of the depth, at least 1: 1 of Ouro's 4 and 4 of Huginn's 32, as the authors of WFD chose."""
    return max(1, recurrence_depth // 8)


def check_draft_depth(draft_depth: int, recurrence_depth: int, *, clause: str) -> None:
    """Holds `1 <= draft_depth <= recurrence_depth`.

    Raises:
        ParameterError: If not; the message names `clause`.
    """
    check_whole_number("recurrence_depth", recurrence_depth, minimum=1, clause="MOD-01")
    check_whole_number("draft_depth", draft_depth, minimum=1, clause=clause)
    if draft_depth > recurrence_depth:
        raise ParameterError(f"draft_depth={draft_depth} exceeds recurrence_depth={recurrence_depth} ({clause})")

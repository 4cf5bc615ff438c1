"""Walks along a schedule, one event of somebody else's trace at a time, and objects to the first that is not allowed.

The rules are those of the schedules themselves: `plan` says which lanes may move and which are due for a readout,
`schedule.verify_oldest` and `schedule.inject_draft` say what a token means, with the tokens that the trace shows. What
is added here is only what the specification leaves free, and which clause to name.
"""

from dataclasses import dataclass, replace

from reference.oracle.cells import check_cells
from reference.oracle.freedoms import Freedom, FreedomTaken
from reference.oracle.rules import CLAUSES, NotAllowedError, check_reads
from reference.oracle.words import ascending, clause_of, describe, listed
from reference.schedule import (
    Accept,
    Advance,
    Commit,
    Draft,
    Event,
    Finish,
    Flush,
    Inject,
    Lane,
    Purpose,
    Readout,
    Reject,
    Schedule,
    Start,
    State,
    begin,
    inject_draft,
    verify_oldest,
)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A draft that was read out and has not started a lane."""

    token: int
    """The token."""
    depth: int
    """Depth of its source at the readout."""
    tick: int
    """When it was read out."""
    is_planned: bool
    """Whether the schedule asked for this readout."""


class Walk:
    """A trace followed so far. `take` raises `NotAllowedError`; after that the walk is over."""

    def __init__(self, schedule: Schedule) -> None:
        """Stands before the first event behind `Start`."""
        self._schedule = schedule
        self._stopping = schedule.stopping
        self._clauses = CLAUSES[schedule.name]
        self._taken: dict[Freedom, int] = {}
        self._index = 0
        self._state: State | None = None
        self._owed: list[Event] = []
        self._due: tuple[Readout, ...] = ()
        self._rows: dict[int, Lane] = {}
        self._planned: frozenset[int] = frozenset()
        self._proposals: dict[int, _Proposal] = {}
        self._dropped: dict[int, int] = {}
        self._started: dict[int, int] = {}
        if self._stopping.end == self._stopping.prompt_length:
            self._state, (_, *self._owed) = begin(schedule, None)

    @property
    def freedoms(self) -> tuple[FreedomTaken, ...]:
        """The freedoms that were made use of, in the order of their first use."""
        return tuple(FreedomTaken(freedom, index) for freedom, index in self._taken.items())

    def take(self, index: int, event: Event) -> None:
        """Takes the next event.

        Args:
            index: Its number in the trace, kept for what is reported.
            event: Any event.

        Raises:
            NotAllowedError: If the specification does not allow it here.
        """
        self._index = index
        if isinstance(event, Start):
            raise NotAllowedError("NOT-03", "a run is opened once")
        if self._state is None:
            self._first(event)
            return
        if self._state.finish_reason is not None and not self._owed:
            raise NotAllowedError("SMP-14", f"{describe(event)} although the run has finished")
        event = ascending(event)
        self._check_time(event, self._state)
        self._take_in_time(event, self._state)
        if isinstance(event, Inject):
            self._started[event.position] = self._started.get(event.position, 0) + 1

    def _take_in_time(self, event: Event, state: State) -> None:
        if event in self._owed:
            if isinstance(event, Finish) and len(self._owed) > 1:
                raise self._missing(self._owed[0])
            self._owed.remove(event)
            return
        if isinstance(event, Advance):
            self._advance(event, state)
        elif self._owed:
            raise self._instead(event)
        else:
            self._decide(event, self._moved())

    def close(self, index: int) -> None:
        """Ends the trace.

        Args:
            index: The number of events.

        Raises:
            NotAllowedError: If something is missing.
        """
        self._index = index
        if self._state is None:
            raise NotAllowedError("SMP-11", "the first token, at tick 0, is missing")
        self._close_tick(self._state)
        if self._state.finish_reason is None:
            raise NotAllowedError("NOT-03", "the trace ends before the run: no finish")

    def _first(self, event: Event) -> None:
        """Takes the token of the prefill; what follows from it is the schedules' common beginning."""
        first = self._stopping.prompt_length
        if not (isinstance(event, Commit) and (event.tick, event.position) == (0, first)):
            what = f"{describe(event)} where the prefill's token is committed, at position {first} and tick 0"
            raise NotAllowedError("SMP-11", what)
        self._state, (_, _, *self._owed) = begin(self._schedule, event.token)

    def _decide(self, event: Event, state: State) -> None:
        """Takes an event that no earlier one brought about, after the recurrent call of its tick."""
        match event:
            case Commit():
                self._commit(event, state)
            case Draft():
                self._draft(event, state)
            case Inject():
                self._inject(event, state)
            case Flush():
                self._flush(event, state)
            case Accept() | Reject():
                raise NotAllowedError("SMP-12", f"{describe(event)} although no draft was compared with a commit here")
            case _:
                raise NotAllowedError("SMP-14", f"{describe(event)} although the run goes on")

    def _check_time(self, event: Event, state: State) -> None:
        assert not isinstance(event, Start)
        if event.tick < state.ticks:
            raise NotAllowedError("NOT-03", f"{describe(event)} belongs to tick {event.tick}, after tick {state.ticks}")
        if event.tick == state.ticks:
            return
        if event.tick > state.ticks + 1:
            what = f"tick {event.tick} follows tick {state.ticks}: ticks are numbered without gaps"
            raise NotAllowedError("COST-01", what)
        if not isinstance(event, Advance):
            self._close_tick(state)
            raise NotAllowedError("NOT-03", f"{describe(event)} before tick {event.tick} has advanced anything")

    def _moved(self) -> State:
        """Gives the state after the tick's recurrent call, which must be whole before anything is read out."""
        assert self._state is not None
        if self._rows:
            raise self._left_behind()
        return self._state

    def _advance(self, event: Advance, state: State) -> None:
        """Moves lanes: all that the schedule plans and no others, in one call or in several."""
        if event.tick > state.ticks:
            state = self._open_tick(event, state)
        elif event.tick == 0:
            raise NotAllowedError("COST-01", f"{describe(event)} in tick 0: recurrent calls are numbered from 1")
        elif self._owed:
            raise self._instead(event)
        elif self._rows:
            self._note(Freedom.SPLIT_CALL)
        if not event.lanes:
            raise NotAllowedError(self._advance_clause(), "a recurrent call without rows")
        if list(event.lanes) != sorted(event.lanes, key=lambda lane: lane.position):
            self._note(Freedom.ROW_ORDER)
        for row in event.lanes:
            expected = self._rows.pop(row.position, None)
            if row != expected:
                raise self._wrong_row(row, expected, state)
        after = {row.position: row for row in event.lanes}
        lanes = tuple(after.get(lane.position, lane) for lane in state.lanes)
        check_reads(event.lanes, lanes)
        if event.reads is not None:
            check_cells(event.lanes, event.reads, self._incarnation_of)
        self._state = replace(state, lanes=lanes)

    def _incarnation_of(self, position: int) -> int:
        """Gives how many lanes were started at a position before the present one; the prompt's were not injected."""
        return max(self._started.get(position, 0) - 1, 0)

    def _open_tick(self, event: Advance, state: State) -> State:
        self._close_tick(state)  # what the last commit brings about must have come by now
        tick = self._schedule.plan(state)
        self._rows = {lane.position: lane.advanced() for lane in tick.lanes}
        self._planned = frozenset(self._rows)
        self._due = tick.readouts
        return replace(state, ticks=event.tick)

    def _wrong_row(self, row: Lane, expected: Lane | None, state: State) -> NotAllowedError:
        lane = next((lane for lane in state.lanes if lane.position == row.position), None)
        who = f"position {row.position} advances to depth {row.depth}"
        if lane is None:
            return self._no_lane(row, who, state)
        if expected is None:
            if row.position in self._planned:
                return NotAllowedError("KV-04", f"{who} twice in one tick")
            return NotAllowedError(self._advance_clause(), f"{who}, but is not one of the lanes that this tick moves")
        if row.depth != expected.depth:
            return NotAllowedError(self._advance_clause(), f"{who} from depth {lane.depth}: a tick adds 1 to each lane")
        what = f"{who} with token {row.token}, but token {lane.token} was started there"
        return NotAllowedError(self._clauses.inject if row.position >= state.frontier else "SMP-13", what)

    def _no_lane(self, row: Lane, who: str, state: State) -> NotAllowedError:
        if row.position < state.frontier - 1:
            return NotAllowedError("SMP-12", f"{who}, but it is finished: its lane retired when it was verified")
        if row.position in self._dropped:
            return NotAllowedError("SMP-13", f"{who}, but it was flushed in tick {self._dropped[row.position]}")
        return NotAllowedError("KV-04", f"{who}, but no lane was started there")

    def _left_behind(self) -> NotAllowedError:
        lane = next(iter(self._rows.values()))
        what = f"position {lane.position} does not advance to depth {lane.depth} with the others"
        return NotAllowedError(self._advance_clause(), what)

    def _advance_clause(self) -> str:
        """Gives the clause that says which lanes this tick advances; in DtV each phase has its own."""
        assert self._state is not None
        is_drafting = len(self._planned) < len(self._state.lanes)
        return "DTV-04" if self._schedule.name == "dtv" and is_drafting else self._clauses.advance

    def _commit(self, event: Commit, state: State) -> None:
        """Takes a verification: of the oldest lane, at depth T."""
        if event.position != state.frontier:
            what = f"{describe(event)} where the next token to commit is that of position {state.frontier}"
            raise NotAllowedError("NOT-01", what)
        oldest = state.lanes[0]
        if Readout(oldest, Purpose.VERIFY) not in self._due:
            what = (
                f"{describe(event)} from position {oldest.position} at depth {oldest.depth}, "
                f"which is not depth T = {self._schedule.recurrence_depth}"
            )
            raise NotAllowedError(self._clauses.verify, what)
        self._state, (_, *self._owed) = verify_oldest(state, event.token, self._stopping)
        for owed in self._owed:
            if isinstance(owed, Flush):
                self._drop(owed.positions, event.tick)
        self._proposals.pop(oldest.position, None)

    def _draft(self, event: Draft, state: State) -> None:
        """Takes a draft readout: one that is due, or one more, which may be ignored or used later."""
        lane = next((lane for lane in state.lanes if lane.position == event.position), None)
        if lane is None:
            raise NotAllowedError(self._clauses.inject, f"{describe(event)}, where no lane is in flight")
        full = self._schedule.recurrence_depth
        is_planned = Readout(lane, Purpose.DRAFT) in self._due
        may_be_ignored = {
            "ar": False,
            "dtv": lane == state.lanes[-1] and lane.depth == self._schedule.draft_depth < full,
            "wfd": 0 < lane.depth < full,
        }
        if not (is_planned or may_be_ignored[self._schedule.name]):
            raise NotAllowedError(self._clauses.read_draft, f"{describe(event)} at depth {lane.depth}")
        if is_planned and self._verification_is_due(state):
            self._note(Freedom.READOUT_ORDER)
        self._proposals[event.position] = _Proposal(event.token, lane.depth, event.tick, is_planned)

    def _inject(self, event: Inject, state: State) -> None:
        """Starts a lane behind the youngest one, with the token that was drafted there."""
        youngest = state.lanes[-1]
        clause = self._clauses.inject
        if not self._stopping.may_inject(event.position):
            raise NotAllowedError("SMP-15", f"{describe(event)}, whose own prediction can no longer be committed")
        if event.position != youngest.position + 1:
            raise NotAllowedError(clause, f"{describe(event)} although the youngest lane is at {youngest.position}")
        if self._verification_is_due(state):
            raise NotAllowedError(clause, f"{describe(event)} before the verification that is due in the same tick")
        proposal = self._proposals.pop(youngest.position, None)
        if proposal is None:
            raise NotAllowedError(clause, f"{describe(event)}, which nobody drafted or committed")
        if proposal.token != event.token:
            raise NotAllowedError(clause, f"{describe(event)} where token {proposal.token} was drafted")
        if proposal.depth < self._schedule.draft_depth:
            what = f"{describe(event)}, drafted at depth {proposal.depth}, not d = {self._schedule.draft_depth}"
            raise NotAllowedError(self._clauses.read_draft, what)
        is_late = proposal.tick < event.tick or not proposal.is_planned
        if is_late and self._schedule.name == "dtv":
            if proposal.tick < event.tick:
                raise NotAllowedError("DTV-04", f"{describe(event)}, drafted in tick {proposal.tick}")
            what = f"{describe(event)}, one draft more than this round has"
            raise NotAllowedError("DTV-03", what)
        if is_late:
            self._note(Freedom.DELAYED)
        self._state, _ = inject_draft(state, youngest, event.token)

    def _flush(self, event: Flush, state: State) -> None:
        """Drops drafted lanes before anything demands it; younger ones are built on older ones, so they go too."""
        drafted = tuple(lane.position for lane in state.lanes[1:])
        if not event.positions or event.positions != drafted[-len(event.positions) :]:
            what = f"{describe(event)} is not the tail of the drafted lanes, which are at {listed(drafted)}"
            raise NotAllowedError("SMP-13", what)
        self._note(Freedom.EARLY_FLUSH)
        self._drop(event.positions, event.tick)
        self._state = replace(state, lanes=state.lanes[: -len(event.positions)])

    def _close_tick(self, state: State) -> None:
        """Holds that nothing is missing in the tick that ends here; notes the drafts that were not made use of."""
        if self._owed:
            raise self._missing(self._owed[0])
        if self._rows:
            raise self._left_behind()
        if self._verification_is_due(state):
            oldest = state.lanes[0]
            what = f"position {oldest.position} has depth T and is not verified: commit at {state.frontier} is missing"
            raise NotAllowedError(self._clauses.verify, what)
        for readout in self._due:
            source = readout.lane
            is_used = any(lane.position == source.position + 1 for lane in state.lanes)
            if readout.purpose is Purpose.DRAFT and source in state.lanes and not is_used:
                proposal = self._proposals.get(source.position)
                stops = proposal is not None and proposal.token in self._stopping.stop_ids
                self._note(Freedom.HELD_BACK_STOP if stops else Freedom.WITHHELD)
        if any(not proposal.is_planned and proposal.tick == state.ticks for proposal in self._proposals.values()):
            self._note(Freedom.EXTRA_READOUT)
        self._due = ()

    def _verification_is_due(self, state: State) -> bool:
        return bool(state.lanes) and Readout(state.lanes[0], Purpose.VERIFY) in self._due

    def _drop(self, positions: tuple[int, ...], tick: int) -> None:
        for position in positions:
            self._proposals.pop(position, None)
            self._dropped[position] = tick

    def _missing(self, owed: Event) -> NotAllowedError:
        return NotAllowedError(clause_of(owed), f"{describe(owed)} is missing")

    def _instead(self, event: Event) -> NotAllowedError:
        """Says what should have come where another event did."""
        owed = next((owed for owed in self._owed if type(owed) is type(event)), self._owed[0])
        clause = "SMP-14" if isinstance(event, Finish) else clause_of(owed)
        return NotAllowedError(clause, f"{describe(event)} where {describe(owed)} follows from the commit")

    def _note(self, freedom: Freedom) -> None:
        self._taken.setdefault(freedom, self._index)

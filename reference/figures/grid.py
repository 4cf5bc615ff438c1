"""The one picture as data: position across, recurrence down, and what every cell is after a tick.

Drawn from a run's events and nothing else, so any trace in the published format can be drawn. `snapshots` replays the
events; the two views are two ways to lay snapshots out:

- *state*: one snapshot, a column for each position and a cell for each of its recurrences;
- *history*: one row for each tick, showing how deep each position that moved has come.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import TypeAlias

from reference.schedule import Accept, Advance, Commit, Event, Finish, Flush, Inject, Lane, Reject, Start
from reference.stopping import FinishReason

Labels: TypeAlias = Callable[[int], str]
"""Gives the text of a token id."""


class Mark(Enum):
    """What a cell, or the token of a column, is at one moment."""

    EMPTY = "empty"
    """Not computed, or not by the present incarnation of its position."""
    DRAFTING = "drafting"
    """Computed for a token that is a guess: nobody has judged it yet."""
    VERIFYING = "verifying"
    """Computed for a final token whose position is on its way to full depth."""
    COMMITTED = "committed"
    """Computed for a position that is finished."""
    FLUSHED = "flushed"
    """Computed for a guess that was dropped in this very tick."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One recurrence of one position."""

    mark: Mark
    """What it is."""
    is_new: bool
    """Whether it was computed in the tick shown."""


@dataclass(frozen=True, slots=True)
class Column:
    """One position after a tick."""

    position: int
    """Index in the sequence, 0-based, prompt included."""
    token: int | None
    """Its token, final or guessed; None if it has none yet, and for the prompt, whose tokens no event names."""
    mark: Mark
    """What the token is: EMPTY without one, else DRAFTING, VERIFYING or COMMITTED."""
    depth: int
    """How many recurrences its present incarnation has had."""
    moved: bool
    """Whether the tick advanced it."""
    dropped: Lane | None = None
    """The lane that this tick dropped here, as it was."""

    def cells(self, recurrence_depth: int) -> tuple[Cell, ...]:
        """Gives its cells from depth 1 to `recurrence_depth`; those of a dropped lane are FLUSHED."""
        depth, mark = (self.dropped.depth, Mark.FLUSHED) if self.dropped else (self.depth, self.mark)
        return tuple(
            Cell(mark, is_new=self.moved and level == depth) if level <= depth else Cell(Mark.EMPTY, is_new=False)
            for level in range(1, recurrence_depth + 1)
        )


class Verdict(Enum):
    """What became of the draft for a committed token."""

    ACCEPTED = "accepted"
    """It was equal."""
    REJECTED = "rejected"
    """It was not."""
    UNJUDGED = "unjudged"
    """There was none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One token committed in a tick."""

    position: int
    """The token's own position."""
    token: int
    """The token."""
    verdict: Verdict = Verdict.UNJUDGED
    """What became of the draft for it."""
    draft_token: int | None = None
    """The rejected draft."""
    num_flushed: int = 0
    """Lanes that the rejection dropped."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run after one tick."""

    tick: int
    """Number of the tick; 0 is the moment after the prefill."""
    start: Start
    """The parameters of the run."""
    columns: tuple[Column, ...]
    """Positions in order, from the last one of the prompt to the last one begun or dropped."""
    outcomes: tuple[Outcome, ...]
    """Tokens committed in this tick, in order."""
    finish_reason: FinishReason | None
    """Why the run ended in this tick, if it did."""

    @property
    def rejects(self) -> bool:
        """Whether a draft was rejected in this tick."""
        return any(outcome.verdict is Verdict.REJECTED for outcome in self.outcomes)

    @property
    def num_rows(self) -> int:
        """Rows of the tick's recurrent call."""
        return sum(column.moved for column in self.columns if self.tick)

    @property
    def first_unfinished(self) -> int:
        """Position of the first column that is not COMMITTED, or one behind the last."""
        return next(
            (column.position for column in self.columns if column.mark is not Mark.COMMITTED),
            self.columns[-1].position + 1,
        )

    def between(self, first: int, last: int) -> tuple[Column, ...]:
        """Gives the columns at positions from `first` to before `last`, with empty ones where there are none."""
        known = {column.position: column for column in self.columns}
        empty = (Column(position, None, Mark.EMPTY, 0, moved=False) for position in range(first, last))
        return tuple(known.get(column.position, column) for column in empty)


def snapshots(events: Iterable[Event]) -> Iterator[Snapshot]:
    """Replays a run.

    Args:
        events: The events of one run, from its `Start` on; they may end anywhere.

    Yields:
        One snapshot for tick 0 and one for every tick after it.

    Raises:
        ValueError: If the events do not begin with `Start`.
    """
    events = iter(events)
    start = next(events, None)
    if not isinstance(start, Start):
        message = f"a picture needs a whole trace, which begins with a start event, not with {start!r}"
        raise ValueError(message)  # noqa: TRY004 - the list is at fault, not the type of an argument
    tokens: dict[int, int] = {}
    lanes: dict[int, Lane] = {}
    for tick, happened in groupby(events, key=lambda event: 0 if isinstance(event, Start) else event.tick):
        news = tuple(happened)
        moved = _advanced(news) or ({start.prompt_length - 1} if tick == 0 else set())
        dropped = _replay(news, tokens, lanes)
        yield Snapshot(
            tick,
            start,
            tuple(_columns(start, tokens, lanes, moved, dropped)),
            _outcomes(news),
            next((event.reason for event in news if isinstance(event, Finish)), None),
        )


def _advanced(events: Iterable[Event]) -> set[int]:
    return {lane.position for event in events if isinstance(event, Advance) for lane in event.lanes}


def _replay(events: Iterable[Event], tokens: dict[int, int], lanes: dict[int, Lane]) -> dict[int, Lane]:
    """Applies the events of one tick to the final tokens and the lanes in flight; gives the lanes dropped."""
    dropped: dict[int, Lane] = {}
    for event in events:
        match event:
            case Advance():
                lanes.update((lane.position, lane) for lane in event.lanes)
            case Commit():
                tokens[event.position] = event.token
                lanes.pop(event.position - 1, None)
            case Flush():
                dropped.update((position, lanes.pop(position)) for position in event.positions)
            case Inject():
                lanes[event.position] = Lane(event.position, event.token, 0)
            case _:
                pass
    return dropped


def _columns(
    start: Start, tokens: dict[int, int], lanes: dict[int, Lane], moved: set[int], dropped: dict[int, Lane]
) -> Iterator[Column]:
    first = start.prompt_length
    yield Column(first - 1, None, Mark.COMMITTED, start.recurrence_depth, moved=first - 1 in moved)
    for position in range(first, max((first - 1, *tokens, *lanes, *dropped)) + 1):
        lane = lanes.get(position)
        if lane is not None:
            token: int | None = lane.token
            mark = Mark.VERIFYING if position in tokens else Mark.DRAFTING
            depth = lane.depth
        elif position in tokens:
            token, mark = tokens[position], Mark.COMMITTED
            # The last token of a run is final without having been computed: it has no successor to predict.
            depth = start.recurrence_depth if position + 1 in tokens else 0
        else:
            token, mark, depth = None, Mark.EMPTY, 0
        yield Column(position, token, mark, depth, moved=position in moved, dropped=dropped.get(position))


def _outcomes(events: Iterable[Event]) -> tuple[Outcome, ...]:
    outcomes: list[Outcome] = []
    rejected: Reject | None = None
    for event in events:
        match event:
            case Commit():
                outcomes.append(Outcome(event.position, event.token))
            case Accept():
                last = outcomes.pop()
                outcomes.append(Outcome(last.position, last.token, Verdict.ACCEPTED))
            case Reject():
                rejected = event
            case Flush() if rejected:
                last = outcomes.pop()
                outcomes.append(
                    Outcome(last.position, last.token, Verdict.REJECTED, rejected.draft_token, len(event.positions))
                )
            case _:
                pass
    return tuple(outcomes)


def heads(shown: Sequence[Snapshot]) -> tuple[Column, ...]:
    """Gives what to write above a history: every new position as it was when it last had a token.

    Args:
        shown: Snapshots in order; at least one.

    Returns:
        One column for each position behind the prompt. One whose lane was dropped for good shows the dropped lane.
    """
    known = {
        column.position: column
        for one in shown
        for column in one.columns[1:]
        if column.token is not None or column.dropped is not None
    }
    return tuple(known[position] for position in sorted(known))


def short(text: str, width: int) -> str:
    """Gives a token's text in at most `width` visible characters.

    Spaces around it are left out; a token of nothing but spaces or line ends shows what it is.
    """
    visible = text.strip(" ").replace("\n", "↵").replace("\t", "⇥") or "␣" * min(len(text), 1)
    visible = "".join(character if character.isprintable() else "�" for character in visible)
    return visible if len(visible) <= width else visible[: width - 1] + "…"

"""KV cells in the one picture: what a row reads, what the coda's entries come from, and what shared slots hold."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from reference.figures.boxes import (
    LEGEND_WIDTH,
    ROW,
    STYLE,
    Grid,
    Legend,
    box,
    frame,
    headline,
    legend,
    moment,
    moment_grid,
    step_of,
    ticks_grid,
    width_of_headline,
)
from reference.figures.canvas import EDGE, Words, document, note, text
from reference.figures.grid import Column, Labels, Mark, heads, snapshots
from reference.figures.scenes import Scene
from reference.schedule import Commit, Draft, Event, Flush, Start


def reads(scene: Scene, labels: Labels, words: Words, *, reader: int) -> str:
    """Draws a moment with what one lane's next recurrence reads, framed, and the cell that it writes, dashed (KV-03).

    Args:
        scene: The moment.
        labels: Gives the text of a token.
        words: What the picture says in words.
        reader: Position of a lane that is in flight.

    Returns:
        An SVG document.
    """
    grid = moment_grid(EDGE, step_of(scene.columns, labels))
    level = next(column.depth for column in scene.columns if column.position == reader)
    parts = [*moment(grid, scene, labels, "")]
    for index, column in enumerate(scene.columns):
        if column.position <= reader:
            parts.append(frame(grid, index, level, "written" if column.position == reader else "read"))
    bottom = grid.y(scene.snapshot.start.recurrence_depth) + 18
    parts += legend(EDGE, bottom)
    return document(parts, max(LEGEND_WIDTH, grid.x(len(scene.columns))) + EDGE, bottom + ROW + EDGE, words, STYLE)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the coda's slot of one position holds."""

    depth: int
    """Depth of the state that it was computed from."""
    mark: Mark
    """DRAFTING: provisional. VERIFYING: final, written in this tick. COMMITTED: final. FLUSHED: of a dropped lane."""
    is_new: bool
    """Whether it was written in this tick."""


def coda_entries(events: Iterable[Event]) -> Iterator[Mapping[int, Entry]]:
    """Gives the entries behind the prompt after every tick, in step with `snapshots` (KV-07, KV-08).

    Args:
        events: The events of one run, from its `Start` on.
    """
    events = iter(events)
    start = next(events)
    assert isinstance(start, Start)
    full, draft = start.recurrence_depth, start.draft_depth
    entries: dict[int, Entry] = {}
    for tick, happened in groupby(events, key=lambda event: 0 if isinstance(event, Start) else event.tick):
        for position, entry in entries.items():
            mark = Mark.COMMITTED if entry.mark is Mark.VERIFYING else entry.mark
            entries[position] = replace(entry, mark=mark, is_new=False)
        for event in happened:
            match event:
                case Draft():
                    entries[event.position] = Entry(draft, Mark.DRAFTING, is_new=True)
                case Commit() if tick:
                    entries[event.position - 1] = Entry(full, Mark.VERIFYING, is_new=True)
                case Flush():
                    left = {one: entries[one] for one in event.positions if one in entries}
                    entries |= {one: replace(entry, mark=Mark.FLUSHED) for one, entry in left.items()}
                case _:
                    pass
        yield dict(entries)


_CODA_LEGEND: Legend = (
    (Mark.DRAFTING, "provisional, of a draft", 160),
    (Mark.VERIFYING, "final, of this verification", 185),
    (Mark.COMMITTED, "final", 60),
    (Mark.FLUSHED, "left by a flush", 100),
)


def coda(events: Sequence[Event], labels: Labels, words: Words, *, last_tick: int, framed: int) -> str:
    """Draws the coda's slots after every tick that wrote one; the number is the depth of the state behind an entry.

    Args:
        events: The events of a run.
        labels: Gives the text of a token.
        words: What the picture says in words.
        last_tick: Where the picture ends.
        framed: A tick with a verification, whose reads are framed.

    Returns:
        An SVG document.
    """
    both = [pair for pair in zip(snapshots(events), coda_entries(events), strict=True) if pair[0].tick <= last_tick]
    columns = (both[0][0].columns[0], *heads([one for one, _ in both]))
    shown = [(one, entries) for one, entries in both if any(entry.is_new for entry in entries.values())]
    grid, parts = ticks_grid(columns, labels)
    final = Entry(both[0][0].start.recurrence_depth, Mark.COMMITTED, is_new=False)
    for row, (one, entries) in enumerate(shown):
        parts.append(text(EDGE + 30, grid.baseline(row), str(one.tick), "quiet end"))
        for index, column in enumerate(columns):
            entry = final if index == 0 else entries.get(column.position)
            parts += _entry(grid, index, row, entry)
            if one.tick == framed and entry is not None and entry.mark in {Mark.COMMITTED, Mark.VERIFYING}:
                parts.append(frame(grid, index, row, "written" if entry.is_new else "read"))
        parts.append(note(grid.x(len(columns)) + 12, grid.baseline(row), _who_was_read_out(entries)))
    bottom = grid.y(len(shown)) + 10
    parts += legend(EDGE, bottom, _CODA_LEGEND)
    width = max(grid.x(len(columns)) + 12 + 190, LEGEND_WIDTH)
    return document(parts, width + EDGE, bottom + ROW + EDGE, words, STYLE)


def _entry(grid: Grid, index: int, row: int, entry: Entry | None) -> Iterable[str]:
    if entry is None:
        return box(grid, index, row, Mark.EMPTY, is_new=False)
    kind = "" if not entry.is_new and entry.mark is Mark.DRAFTING else f" on-{entry.mark.value}"
    number = text(grid.middle(index), grid.baseline(row), str(entry.depth), f"middle{kind}")
    return (*box(grid, index, row, entry.mark, is_new=entry.is_new), number)


def _who_was_read_out(entries: Mapping[int, Entry]) -> str:
    new = {entry.mark: position for position, entry in entries.items() if entry.is_new}
    said = {Mark.VERIFYING: "verifies", Mark.DRAFTING: "drafts"}
    return ", ".join(f"{new[mark]} {what}" for mark, what in said.items() if mark in new)


def held(depth: int, slots: Sequence[int]) -> tuple[int | None, ...]:
    """Gives the recurrence that each slot of a position at `depth` holds: the last that wrote it, None before any has.

    Args:
        depth: Recurrences that the position has had.
        slots: The slot of every recurrence.
    """
    return tuple(
        max((recurrence for recurrence in range(depth) if slots[recurrence] == slot), default=None)
        for slot in range(max(slots) + 1)
    )


@dataclass(frozen=True, slots=True)
class Found:
    """What the youngest moving lane of a tick found at one older position."""

    position: int
    """The older position."""
    recurrence: int
    """Which recurrence the slot held there."""
    is_ars: bool
    """Whether it is the one that AR would find, the last of the slot."""


def found(scene: Scene, slots: Sequence[int]) -> tuple[Column, int, tuple[Found, ...]]:
    """Gives the youngest lane that moved in a tick, the slot it read, and what it found at the columns before it.

    Within a call all rows write before any reads (SHR-05), so what it found is what stands there after the tick.
    """
    reader = [column for column in scene.columns if column.moved][-1]
    slot = slots[reader.depth - 1]
    last = max(recurrence for recurrence, one in enumerate(slots) if one == slot)
    older = [column for column in scene.columns if column.position < reader.position]
    seen = [(column.position, held(column.depth, slots)[slot]) for column in older]
    return (
        reader,
        slot,
        tuple(Found(position, one, is_ars=one == last) for position, one in seen if one is not None),
    )


def shared(moments: Sequence[tuple[Scene, str]], labels: Labels, words: Words, *, slots: Sequence[int]) -> str:
    """Draws slots that recurrences share: position across, slot down; the number is the recurrence that a cell holds.

    Framed is what the youngest lane read in this tick: in the line colour what AR would find there too, in the colour
    of a flush what it would not (SHR-08).

    Args:
        moments: Moments without a flush, each with a sentence to stand above it.
        labels: Gives the text of a token.
        words: What the picture says in words.
        slots: The slot of every recurrence.

    Returns:
        An SVG document.
    """
    step = max(step_of(scene.columns, labels) for scene, _ in moments)
    parts: list[str] = []
    top, width = EDGE, LEGEND_WIDTH
    for scene, sentence in moments:
        grid = moment_grid(top, step)
        parts += headline(grid, scene, labels, sentence)
        reader, slot, seen = found(scene, slots)
        frames = {one.position: "read" if one.is_ars else "other" for one in seen} | {reader.position: "written"}
        for index, column in enumerate(scene.columns):
            parts += _slots(grid, index, column, slots)
            if column.position in frames:
                parts.append(frame(grid, index, slot, frames[column.position]))
        parts += [text(grid.left - 12, grid.baseline(one), f"slot {one}", "words quiet end") for one in set(slots)]
        width = max(width, grid.x(len(scene.columns)), width_of_headline(sentence))
        top = grid.y(max(slots) + 1) + 18
    parts += legend(EDGE, top)
    parts += _frames_explained(top + ROW)
    return document(parts, width + EDGE, top + 2 * ROW + EDGE, words, STYLE)


def _slots(grid: Grid, index: int, column: Column, slots: Sequence[int]) -> Iterable[str]:
    """Draws the cells of one position."""
    for slot, recurrence in enumerate(held(column.depth, slots)):
        if recurrence is None:
            yield from box(grid, index, slot, Mark.EMPTY, is_new=False)
            continue
        is_new = column.moved and recurrence == column.depth - 1
        yield from box(grid, index, slot, column.mark, is_new=is_new)
        kind = f" on-{column.mark.value}" if is_new or column.mark is Mark.COMMITTED else ""
        yield text(grid.middle(index), grid.baseline(slot), str(recurrence), f"middle{kind}")


def _frames_explained(top: float) -> Iterable[str]:
    x = EDGE
    for kind, meaning, width in (
        ("read", "read: as AR finds it", 150),
        ("other", "read: AR would find another", 210),
        ("written", "its own, just written", 150),
    ):
        yield frame(Grid(x, top, 24.0), 0, 0, kind)
        yield note(x + 28, top + 14.5, meaning)
        x += 28 + width

"""The picture in a terminal: a glyph says what a cell is, colour says it again, so both may be missing.

Colours are the terminal's own eight, chosen so that no meaning rests on red against green.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from reference.figures.grid import Cell, Column, Labels, Mark, Outcome, Snapshot, Verdict, heads, short
from reference.figures.scenes import Scene

STYLES: Final = MappingProxyType(
    {
        Mark.EMPTY: "dim",
        Mark.DRAFTING: "yellow",
        Mark.VERIFYING: "bright_blue",
        Mark.COMMITTED: "dim",
        Mark.FLUSHED: "magenta",
    }
)
"""The colour of every mark."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One character for every mark, and the words' punctuation."""

    new: MappingProxyType[Mark, str]
    """For a cell computed in the tick shown."""
    old: MappingProxyType[Mark, str]
    """For a cell computed before."""
    accepted: str
    """Before a token that had been drafted."""
    rejected: str
    """Before a token whose draft was wrong."""
    unjudged: str
    """Before a token that had no draft."""
    becomes: str
    """Between a rejected draft and what was committed."""


UNICODE: Final = Glyphs(
    new=MappingProxyType(
        {Mark.EMPTY: "·", Mark.DRAFTING: "●", Mark.VERIFYING: "◆", Mark.COMMITTED: "■", Mark.FLUSHED: "✕"}
    ),
    old=MappingProxyType(
        {Mark.EMPTY: "·", Mark.DRAFTING: "○", Mark.VERIFYING: "◇", Mark.COMMITTED: "▪", Mark.FLUSHED: "✕"}
    ),
    accepted="✓",
    rejected="✗",
    unjudged="=",
    becomes="→",
)
"""For terminals that show Unicode."""

ASCII: Final = Glyphs(
    new=MappingProxyType(
        {Mark.EMPTY: ".", Mark.DRAFTING: "D", Mark.VERIFYING: "V", Mark.COMMITTED: "#", Mark.FLUSHED: "x"}
    ),
    old=MappingProxyType(
        {Mark.EMPTY: ".", Mark.DRAFTING: "d", Mark.VERIFYING: "v", Mark.COMMITTED: "#", Mark.FLUSHED: "x"}
    ),
    accepted="+",
    rejected="!",
    unjudged="=",
    becomes=">",
)
"""For all others."""


OVERWRITTEN: Final = "~"
"""For a cell whose slot a later recurrence of the same position has taken, where recurrences share slots (SHR-05)."""

_GAP: Final = 3
"""Spaces between two moments."""
_STEP: Final = 3
"""Characters from one position of a moment to the next."""
_BAR: Final = "  "
"""Between the tick and the first position."""
_NOTE: Final = 18
"""Characters kept free for what a tick decided."""
_WIDTHS_OF_TOKENS: Final = (8, 6, 5, 4, 3)
"""Most characters shown of a token, from the best to the least that will do if room is short."""


def glyphs_for(encoding: str) -> Glyphs:
    """Gives the glyphs that an output encoding can carry."""
    try:
        "".join((*UNICODE.new.values(), *UNICODE.old.values(), UNICODE.accepted, UNICODE.becomes)).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def legend(glyphs: Glyphs, *, has_shared_slots: bool = False) -> Text:
    """Says what the glyphs mean, in one line, and in another what letters mean where recurrences share slots."""
    text = Text()
    for mark in (Mark.DRAFTING, Mark.VERIFYING, Mark.COMMITTED, Mark.FLUSHED):
        text.append(glyphs.new[mark], style=STYLES[mark]).append(f" {mark.value}   ")
    text.rstrip()
    if has_shared_slots:
        text.append(f"\n{OVERWRITTEN} overwritten: recurrences with the same letter share a KV slot")
    return text


def states(scenes: Sequence[Scene], *, width: int, glyphs: Glyphs, slots: Sequence[int] = ()) -> Text:
    """Draws moments side by side, depth down and position across.

    Args:
        scenes: The moments; as many as fit are drawn, at least one.
        width: Columns of the terminal.
        glyphs: What to draw with.
        slots: The KV slot of every recurrence, where recurrences share slots (SHR-02).

    Returns:
        The lines of the drawing.
    """
    lines: list[Text] = []
    for scene in scenes:
        drawn = _state(scene, glyphs, slots)
        if not lines:
            lines = drawn
        elif lines[0].cell_len + _GAP + drawn[0].cell_len <= width:
            lines = [Text(" " * _GAP).join(pair) for pair in zip(lines, drawn, strict=True)]
    return _joined(lines)


def _state(scene: Scene, glyphs: Glyphs, slots: Sequence[int]) -> list[Text]:
    """Draws one moment in lines of equal width."""
    depth = scene.snapshot.start.recurrence_depth
    names = [f"{level}{_letter(slots[level - 1]) if slots else ''}" for level in range(1, depth + 1)]
    margin = max(map(len, names)) + 1
    columns = [column.cells(depth) for column in scene.columns]
    lines = [
        Text(f"tick {scene.snapshot.tick}", style="bold").append(f": {_event(scene.snapshot)}", style="not bold"),
        Text(" " * margin + _positions(scene), style="dim"),
    ]
    for level in range(depth):
        line = Text(f"{names[level]:>{margin - 1}} ", style="dim")
        for cells in columns:
            drawn = (
                Text(OVERWRITTEN, style="dim") if _is_overwritten(cells, level, slots) else _cell(cells[level], glyphs)
            )
            line.append_text(drawn).append(" " * (_STEP - 1))
        lines.append(line)
    widest = max(line.cell_len for line in lines)
    for line in lines:
        line.pad_right(widest - line.cell_len)
    return lines


def _letter(slot: int) -> str:
    """Names a slot: a to z, and then aa, ab, ..."""
    rest, last = divmod(slot, 26)
    return (_letter(rest - 1) if rest else "") + chr(ord("a") + last)


def _is_overwritten(cells: Sequence[Cell], level: int, slots: Sequence[int]) -> bool:
    """Tells whether a deeper cell of the column, computed as well, has the same slot."""
    deeper = range(level + 1, len(cells))
    return any(slots[other] == slots[level] and cells[other].mark is not Mark.EMPTY for other in deeper if slots)


def _positions(scene: Scene) -> str:
    """Numbers the columns; only every other one where the numbers are long."""
    longest = len(str(scene.first + scene.width - 1))
    every = -(-(longest + 1) // _STEP)
    return "".join(f"{column.position:<{_STEP * every}}" for column in scene.columns[::every]).rstrip()


def _event(snapshot: Snapshot) -> str:
    flushed = sum(outcome.num_flushed for outcome in snapshot.outcomes)
    if flushed:
        return f"{flushed} flushed"
    return f"{snapshot.num_rows} row" if snapshot.num_rows == 1 else f"{snapshot.num_rows} rows"


def _cell(cell: Cell, glyphs: Glyphs) -> Text:
    if cell.is_new:
        return Text(glyphs.new[cell.mark], style=f"bold {STYLES[cell.mark]}")
    return Text(glyphs.old[cell.mark], style=STYLES[cell.mark])


def history(shown: Sequence[Snapshot], labels: Labels, *, width: int, glyphs: Glyphs) -> Text:
    """Draws ticks one below the other: in each row the depth that every position in flight has reached.

    Args:
        shown: Snapshots from tick 0 on; the first ones, as many as the width has room for, are drawn.
        labels: Gives the text of a token.
        width: Columns of the terminal.
        glyphs: What to draw with.

    Returns:
        The lines of the drawing.
    """
    first = shown[0].start.prompt_length
    margin = max(len("tick"), len(str(shown[-1].tick)))
    room = width - margin - len(_BAR) - _NOTE
    for widest in _WIDTHS_OF_TOKENS:
        step = _step(shown, labels, widest)
        fitting = _fitting(shown, room // step)
        if len(fitting) == len(shown):
            break
    columns = heads(fitting)
    lines = [
        _row("", [_fixed(str(column.position), step, "dim") for column in columns], margin),
        _row("tick", [_token(column, labels, step) for column in columns], margin),
    ]
    for one in fitting:
        cells = [_depth(column, step, glyphs) for column in one.between(first, first + len(columns))]
        line = _row(str(one.tick), cells, margin).append_text(_notes(one, labels, glyphs))
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return _joined(lines)


def _fitting(shown: Sequence[Snapshot], most_columns: int) -> Sequence[Snapshot]:
    """Gives the first snapshots, as long as there is room for their positions; at least one."""
    first = shown[0].start.prompt_length
    return tuple(takewhile(lambda one: one.columns[-1].position + 1 - first <= most_columns, shown)) or shown[:1]


def _row(name: str, cells: Iterable[Text], margin: int) -> Text:
    line = Text(f"{name:>{margin}}{_BAR}", style="dim")
    return Text("").join((line, *cells))


def _step(shown: Sequence[Snapshot], labels: Labels, widest: int) -> int:
    """Gives the characters for a position: its depth with a glyph, its number or its token, and a space."""
    columns = heads(shown)
    deepest = f"*{shown[0].start.recurrence_depth}"
    last = str(shown[0].start.prompt_length + len(columns))
    return 1 + max(cell_len(text) for text in (deepest, last, *(_label(column, labels, widest) for column in columns)))


def _token(column: Column, labels: Labels, width: int) -> Text:
    return _fixed(
        _label(column, labels, width - 1), width, STYLES[Mark.FLUSHED if column.token is None else column.mark]
    )


def _label(column: Column, labels: Labels, widest: int) -> str:
    token = column.dropped.token if column.token is None and column.dropped is not None else column.token
    return "" if token is None else short(labels(token), widest)


def _fixed(text: str, width: int, style: str) -> Text:
    return Text(set_cell_size(text, width), style=style)


def _depth(column: Column, width: int, glyphs: Glyphs) -> Text:
    """Draws how deep a position that moved has come, or a dot."""
    if column.dropped is not None:
        mark, depth = Mark.FLUSHED, column.dropped.depth
    else:
        mark, depth = column.mark, column.depth
    if not column.moved:
        return _fixed(glyphs.new[Mark.EMPTY], width, STYLES[Mark.EMPTY])
    return _fixed(f"{glyphs.new[mark]}{depth}", width, STYLES[mark])


def _notes(snapshot: Snapshot, labels: Labels, glyphs: Glyphs) -> Text:
    text = Text(" ")
    for outcome in snapshot.outcomes:
        text.append(" ").append_text(_outcome(outcome, labels, glyphs))
    if snapshot.finish_reason is not None:
        text.append(f" [{snapshot.finish_reason}]", style="bold")
    return text


def _outcome(outcome: Outcome, labels: Labels, glyphs: Glyphs) -> Text:
    token = short(labels(outcome.token), _WIDTHS_OF_TOKENS[0])
    match outcome.verdict:
        case Verdict.ACCEPTED:
            return Text(f"{glyphs.accepted} {token}")
        case Verdict.REJECTED:
            assert outcome.draft_token is not None
            draft = short(labels(outcome.draft_token), _WIDTHS_OF_TOKENS[0])
            text = Text(f"{glyphs.rejected} {draft}", style=STYLES[Mark.FLUSHED])
            return text.append(f" {glyphs.becomes} {token}", style="bold default")
        case Verdict.UNJUDGED:
            return Text(f"{glyphs.unjudged} {token}")


def _joined(lines: Iterable[Text]) -> Text:
    """Makes one text of lines, without spaces at their ends."""
    kept = list(lines)
    for line in kept:
        line.rstrip()
    return Text("\n").join(kept)

"""The picture as SVG: for pages in light and dark, for all eyes, and for readers who do not see it.

Nothing is fetched: fonts are the reader's own, colours follow `prefers-color-scheme`. Colours are close to those of
Okabe and Ito; shape repeats what they say (guesses are round, final tokens square, dropped ones crossed out). Equal
snapshots give equal bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from reference.figures.grid import Column, Labels, Mark, Outcome, Snapshot, Verdict, heads, short
from reference.figures.scenes import Scene

_STYLE: Final = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; }
.words, .head { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }
.head { font-weight: 600; }
.quiet { fill: #656d76; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.paper { fill: #ffffff; }
.empty { fill: none; stroke: #d8dee4; }
.dot { fill: #c4ccd4; }
.drafting { fill: #e69f00; stroke: #e69f00; }
.verifying { fill: #0072b2; stroke: #0072b2; }
.committed { fill: #d0d7de; stroke: #d0d7de; }
.flushed { fill: none; stroke: #b8477a; stroke-width: 1.5; }
.old { fill-opacity: 0.35; stroke-opacity: 0.35; }
.committed.old { fill-opacity: 1; }
.read, .written { fill: none; stroke: #1f2328; stroke-width: 2; }
.written { stroke-dasharray: 4 3; }
text.on-drafting { fill: #1f2328; }
text.on-verifying { fill: #ffffff; }
text.on-committed { fill: #424a53; }
text.on-flushed { fill: #a03468; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9198a1; }
  .paper { fill: #1a1d24; }
  .empty { stroke: #3a404a; }
  .dot { fill: #4a515c; }
  .verifying { fill: #3a9bdc; stroke: #3a9bdc; }
  .committed { fill: #4a515c; stroke: #4a515c; }
  .read, .written { stroke: #e6edf3; }
  .flushed { stroke: #e58bb6; }
  text.on-verifying { fill: #0b0e13; }
  text.on-committed { fill: #d5dbe3; }
  text.on-flushed { fill: #f0a8ca; }
}
""".strip()

_ROW: Final = 24.0
"""Height of a cell with its gap."""
_CELL: Final = 20.0
"""Height of a cell."""
_CHARACTER: Final = 7.3
"""Width of a character of the monospaced font, on the safe side."""
_WIDEST: Final = 9
"""Most characters shown of a token."""
_EDGE: Final = 16.0
"""Space around the picture."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a figure says to those who do not see it, and to everyone who hovers over it."""

    title: str
    """Its name."""
    description: str
    """What it shows, in a sentence or two."""


def history(shown: Sequence[Snapshot], labels: Labels, words: Words) -> str:
    """Draws ticks one below the other: in each row the depth that every position in flight has reached.

    Args:
        shown: Snapshots in order, from tick 0 on.
        labels: Gives the text of a token.
        words: What the picture says in words.

    Returns:
        An SVG document.
    """
    first = shown[0].start.prompt_length
    columns = heads(shown)
    grid = _Grid(left=_EDGE + 40, top=_EDGE + 2 * _ROW, step=_step(columns, labels))
    parts = [_text(_EDGE + 30, _EDGE + _ROW + 15, "tick", "words quiet end"), *_heads(grid, columns, labels, row=-1)]
    notes_at = grid.x(len(columns)) + 12
    for row, one in enumerate(shown):
        parts.append(_text(_EDGE + 30, grid.baseline(row), str(one.tick), "quiet end"))
        for index, column in enumerate(one.between(first, first + len(columns))):
            parts += _depth(grid, index, row, column)
        parts.append(_note(notes_at, grid.baseline(row), _brief(one, labels)))
    longest = max(len(_brief(one, labels)) for one in shown)
    bottom = grid.y(len(shown)) + 10
    parts += _legend(_EDGE, bottom)
    width = max(notes_at + longest * 6.6, _LEGEND_WIDTH) + _EDGE
    return _document(parts, width, bottom + _ROW + _EDGE, words)


def states(scenes: Sequence[Scene], labels: Labels, words: Words) -> str:
    """Draws moments one below the other, depth down and position across.

    Args:
        scenes: The moments in order.
        labels: Gives the text of a token.
        words: What the picture says in words.

    Returns:
        An SVG document.
    """
    step = max(_step(scene.columns, labels) for scene in scenes)
    parts: list[str] = []
    top, width = _EDGE, _LEGEND_WIDTH
    for scene in scenes:
        grid = _moment_grid(top, step)
        sentence = _sentence(scene.snapshot, labels)
        parts += _moment(grid, scene, labels, sentence)
        width = max(width, grid.x(len(scene.columns)), _EDGE + 106 + len(sentence) * 6.6)
        top = grid.y(scene.snapshot.start.recurrence_depth) + 18
    parts += _legend(_EDGE, top)
    return _document(parts, width + _EDGE, top + _ROW + _EDGE, words)


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
    grid = _moment_grid(_EDGE, _step(scene.columns, labels))
    level = next(column.depth for column in scene.columns if column.position == reader)
    parts = [*_moment(grid, scene, labels, "")]
    for index, column in enumerate(scene.columns):
        if column.position <= reader:
            kind = "written" if column.position == reader else "read"
            place = f'x="{grid.x(index) - 1.5:.1f}" y="{grid.y(level) - 1.5:.1f}"'
            size = f'width="{grid.step - 1:.1f}" height="{_CELL + 3:g}" rx="5"'
            parts.append(f'<rect class="{kind}" {place} {size}/>')
    bottom = grid.y(scene.snapshot.start.recurrence_depth) + 18
    parts += _legend(_EDGE, bottom)
    return _document(parts, max(_LEGEND_WIDTH, grid.x(len(scene.columns))) + _EDGE, bottom + _ROW + _EDGE, words)


def _moment_grid(top: float, step: float) -> "_Grid":
    return _Grid(left=_EDGE + 72, top=top + 3 * _ROW, step=step)


def _moment(grid: "_Grid", scene: Scene, labels: Labels, sentence: str) -> Iterable[str]:
    """Draws one moment below its headline."""
    depth = scene.snapshot.start.recurrence_depth
    tick, rows = scene.snapshot.tick, scene.snapshot.num_rows
    line = grid.top - 3 * _ROW + 15
    yield _text(_EDGE, line, f"Tick {tick}, {rows} row" + "s" * (rows != 1), "head")
    yield _note(_EDGE + 106, line, sentence)
    yield from _heads(grid, scene.columns, labels, row=-1)
    for level in range(depth):
        yield _text(grid.left - 12, grid.baseline(level), f"depth {level + 1}", "words quiet end")
        for index, column in enumerate(scene.columns):
            cell = column.cells(depth)[level]
            yield from _box(grid, index, level, cell.mark, is_new=cell.is_new)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where the cells of a picture are."""

    left: float
    top: float
    step: float

    def x(self, index: int) -> float:
        return self.left + index * self.step

    def y(self, row: int) -> float:
        return self.top + row * _ROW

    def middle(self, index: int) -> float:
        return self.x(index) + (self.step - 4) / 2

    def baseline(self, row: int) -> float:
        return self.y(row) + 14.5


def _step(columns: Iterable[Column], labels: Labels) -> float:
    """Gives the width of a column: its token and some room."""
    longest = max((len(_label(column, labels)) for column in columns), default=0)
    return max(34.0, longest * _CHARACTER + 12)


def _label(column: Column, labels: Labels) -> str:
    if column.token is not None:
        return short(labels(column.token), _WIDEST)
    if column.dropped is not None:
        return short(labels(column.dropped.token), _WIDEST)
    return "prompt" if column.mark is Mark.COMMITTED else ""


def _heads(grid: _Grid, columns: Sequence[Column], labels: Labels, *, row: int) -> Iterable[str]:
    """Draws every column's position and, below it, its token: what a position starts from, before any recurrence."""
    for index, column in enumerate(columns):
        yield _text(grid.middle(index), grid.baseline(row - 1) + 4, str(column.position), "quiet middle")
        mark = Mark.FLUSHED if column.token is None and column.dropped is not None else column.mark
        if mark is not Mark.EMPTY:
            yield from _box(grid, index, row, mark, is_new=True)
            yield _text(grid.middle(index), grid.baseline(row), _label(column, labels), f"middle on-{mark.value}")


def _depth(grid: _Grid, index: int, row: int, column: Column) -> Iterable[str]:
    """Draws how deep a position that moved has come, or a dot."""
    if not column.moved:
        return (f'<circle class="dot" cx="{grid.middle(index):.1f}" cy="{grid.y(row) + _CELL / 2:.1f}" r="1.5"/>',)
    mark, depth = (Mark.FLUSHED, column.dropped.depth) if column.dropped else (column.mark, column.depth)
    number = _text(grid.middle(index), grid.baseline(row), str(depth), f"middle on-{mark.value}")
    return (*_box(grid, index, row, mark, is_new=True), number)


def _box(grid: _Grid, index: int, row: int, mark: Mark, *, is_new: bool) -> tuple[str, ...]:
    x, y, width = grid.x(index), grid.y(row), grid.step - 4
    radius = _CELL / 2 if mark is Mark.DRAFTING else 3
    kind = mark.value if is_new or mark in {Mark.EMPTY, Mark.FLUSHED} else f"{mark.value} old"
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_CELL:g}" rx="{radius:g}"'
    box = f'<rect class="{kind}" {place}/>'
    if mark is not Mark.FLUSHED:
        return (box,)
    cross = f"M{x + 3:.1f} {y + _CELL - 3:.1f}L{x + width - 3:.1f} {y + 3:.1f}"
    return (box, f'<path class="flushed" d="{cross}"/>')


def _sentence(snapshot: Snapshot, labels: Labels) -> str:
    """Says what a tick decided."""
    said = [_outcome(outcome, labels) for outcome in snapshot.outcomes]
    if snapshot.finish_reason is not None:
        said.append(f"the run ends: {snapshot.finish_reason}")
    return "; ".join(said)


def _brief(snapshot: Snapshot, labels: Labels) -> str:
    """Says what a tick decided in few words; the cells beside it say the rest."""
    said = []
    for outcome in snapshot.outcomes:
        token = short(labels(outcome.token), _WIDEST)
        if outcome.draft_token is None:
            said.append(f"{'✓' if outcome.verdict is Verdict.ACCEPTED else '='} {token}")
        else:
            said.append(f"✗ {short(labels(outcome.draft_token), _WIDEST)} → {token}")
    if snapshot.finish_reason is not None:
        said.append(f"[{snapshot.finish_reason}]")
    return "  ".join(said)


def _outcome(outcome: Outcome, labels: Labels) -> str:
    token = short(labels(outcome.token), _WIDEST)
    match outcome.verdict:
        case Verdict.ACCEPTED:
            return f"“{token}” accepted"
        case Verdict.REJECTED:
            assert outcome.draft_token is not None
            draft = short(labels(outcome.draft_token), _WIDEST)
            return f"“{draft}” rejected, “{token}” committed, {_lanes(outcome.num_flushed)} flushed"
        case Verdict.UNJUDGED:
            return f"“{token}” committed"


def _lanes(number: int) -> str:
    return f"{number} lane" if number == 1 else f"{number} lanes"


_LEGEND: Final = (
    (Mark.DRAFTING, "drafting: a guess", 128),
    (Mark.VERIFYING, "verifying: a final token on its way", 224),
    (Mark.COMMITTED, "committed", 90),
    (Mark.FLUSHED, "flushed", 60),
)
"""Marks, their meaning and the width of these words."""
_LEGEND_WIDTH: Final = 620.0


def _legend(left: float, top: float) -> Iterable[str]:
    x = left
    for mark, text, width in _LEGEND:
        yield from _box(_Grid(x, top, 24.0), 0, 0, mark, is_new=True)
        yield _note(x + 28, top + 14.5, text)
        x += 28 + width


def _note(x: float, y: float, text: str) -> str:
    return _text(x, y, text, "words")


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' if text else ""


def _document(parts: Iterable[str], width: float, height: float, words: Words) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
        f'<title id="title">{escape(words.title)}</title>',
        f'<desc id="description">{escape(words.description)}</desc>',
        f"<style>\n{_STYLE}\n</style>",
        '<rect class="paper" width="100%" height="100%" rx="8"/>',
        *(part for part in parts if part),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"

"""The parts of the one picture in SVG: a grid, a box for each cell, positions and tokens above, the legend below."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from reference.figures.canvas import EDGE, note, text
from reference.figures.grid import Column, Labels, Mark, short
from reference.figures.scenes import Scene

STYLE: Final = """
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
.other { fill: none; stroke: #b8477a; stroke-width: 3; }
text.on-drafting { fill: #1f2328; }
text.on-verifying { fill: #ffffff; }
text.on-committed { fill: #424a53; }
text.on-flushed { fill: #a03468; }
@media (prefers-color-scheme: dark) {
  .empty { stroke: #3a404a; }
  .dot { fill: #4a515c; }
  .verifying { fill: #3a9bdc; stroke: #3a9bdc; }
  .committed { fill: #4a515c; stroke: #4a515c; }
  .read, .written { stroke: #e6edf3; }
  .flushed, .other { stroke: #e58bb6; }
  text.on-verifying { fill: #0b0e13; }
  text.on-committed { fill: #d5dbe3; }
  text.on-flushed { fill: #f0a8ca; }
}
""".strip()
"""Rules for the cells, beside those that all pictures share."""

ROW: Final = 24.0
"""Height of a cell with its gap."""
CELL: Final = 20.0
"""Height of a cell."""
CHARACTER: Final = 7.3
"""Width of a character of the monospaced font, on the safe side."""
WIDEST: Final = 9
"""Most characters shown of a token."""
_SENTENCE: Final = 106.0
"""Room for the tick in a headline, before its sentence."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the cells of a picture are, in pixels."""

    left: float
    """Edge of the first column."""
    top: float
    """Edge of the first row."""
    step: float
    """From one column to the next."""

    def x(self, index: int) -> float:
        """Gives the left edge of a column."""
        return self.left + index * self.step

    def y(self, row: int) -> float:
        """Gives the upper edge of a row."""
        return self.top + row * ROW

    def middle(self, index: int) -> float:
        """Gives the middle of a column."""
        return self.x(index) + (self.step - 4) / 2

    def baseline(self, row: int) -> float:
        """Gives where the text of a row stands."""
        return self.y(row) + 14.5


def step_of(columns: Iterable[Column], labels: Labels) -> float:
    """Gives the width of a column: its token and some room."""
    longest = max((len(label_of(column, labels)) for column in columns), default=0)
    return max(34.0, longest * CHARACTER + 12)


def label_of(column: Column, labels: Labels) -> str:
    """Gives what stands above a column: its token, or that of the lane dropped there."""
    if column.token is not None:
        return short(labels(column.token), WIDEST)
    if column.dropped is not None:
        return short(labels(column.dropped.token), WIDEST)
    return "prompt" if column.mark is Mark.COMMITTED else ""


def heading(grid: Grid, columns: Sequence[Column], labels: Labels, *, row: int) -> Iterable[str]:
    """Draws every column's position and, below it, its token: what a position starts from, before any recurrence."""
    for index, column in enumerate(columns):
        yield text(grid.middle(index), grid.baseline(row - 1) + 4, str(column.position), "quiet middle")
        mark = Mark.FLUSHED if column.token is None and column.dropped is not None else column.mark
        if mark is not Mark.EMPTY:
            yield from box(grid, index, row, mark, is_new=True)
            yield text(grid.middle(index), grid.baseline(row), label_of(column, labels), f"middle on-{mark.value}")


def box(grid: Grid, index: int, row: int, mark: Mark, *, is_new: bool) -> tuple[str, ...]:
    """Draws a cell; one that is not new is pale."""
    x, y, width = grid.x(index), grid.y(row), grid.step - 4
    radius = CELL / 2 if mark is Mark.DRAFTING else 3
    kind = mark.value if is_new or mark in {Mark.EMPTY, Mark.FLUSHED} else f"{mark.value} old"
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{CELL:g}" rx="{radius:g}"'
    shape = f'<rect class="{kind}" {place}/>'
    if mark is not Mark.FLUSHED:
        return (shape,)
    cross = f"M{x + 3:.1f} {y + CELL - 3:.1f}L{x + width - 3:.1f} {y + 3:.1f}"
    return (shape, f'<path class="flushed" d="{cross}"/>')


def frame(grid: Grid, index: int, row: int, kind: str) -> str:
    """Draws a frame of class `kind` around a cell."""
    place = f'x="{grid.x(index) - 1.5:.1f}" y="{grid.y(row) - 1.5:.1f}"'
    size = f'width="{grid.step - 1:.1f}" height="{CELL + 3:g}" rx="5"'
    return f'<rect class="{kind}" {place} {size}/>'


def moment_grid(top: float, step: float) -> Grid:
    """Gives the grid of a moment below a headline, positions and tokens."""
    return Grid(left=EDGE + 72, top=top + 3 * ROW, step=step)


def headline(grid: Grid, scene: Scene, labels: Labels, sentence: str) -> Iterable[str]:
    """Draws what stands above a moment: the tick, a sentence, positions and tokens."""
    tick, rows = scene.snapshot.tick, scene.snapshot.num_rows
    line = grid.top - 3 * ROW + 15
    yield text(EDGE, line, f"Tick {tick}, {rows} row" + "s" * (rows != 1), "head")
    yield note(EDGE + _SENTENCE, line, sentence)
    yield from heading(grid, scene.columns, labels, row=-1)


def width_of_headline(sentence: str) -> float:
    """Gives where the sentence of a headline ends."""
    return EDGE + _SENTENCE + len(sentence) * 6.6


def ticks_grid(columns: Sequence[Column], labels: Labels) -> tuple[Grid, list[str]]:
    """Gives the grid of a picture with a row for each tick, and what stands above it: positions and tokens."""
    grid = Grid(left=EDGE + 40, top=EDGE + 2 * ROW, step=step_of(columns, labels))
    return grid, [text(EDGE + 30, EDGE + ROW + 15, "tick", "words quiet end"), *heading(grid, columns, labels, row=-1)]


def moment(grid: Grid, scene: Scene, labels: Labels, sentence: str) -> Iterable[str]:
    """Draws one moment below its headline."""
    depth = scene.snapshot.start.recurrence_depth
    yield from headline(grid, scene, labels, sentence)
    for level in range(depth):
        yield text(grid.left - 12, grid.baseline(level), f"depth {level + 1}", "words quiet end")
        for index, column in enumerate(scene.columns):
            cell = column.cells(depth)[level]
            yield from box(grid, index, level, cell.mark, is_new=cell.is_new)


Legend: TypeAlias = Sequence[tuple[Mark, str, int]]
"""Marks, their meaning and the width of these words."""

LEGEND: Final[Legend] = (
    (Mark.DRAFTING, "drafting: a guess", 128),
    (Mark.VERIFYING, "verifying: a final token on its way", 224),
    (Mark.COMMITTED, "committed", 90),
    (Mark.FLUSHED, "flushed", 60),
)
"""What the marks mean in a picture of a run."""
LEGEND_WIDTH: Final = 620.0
"""The least width of a picture, so that a legend fits below it."""


def legend(left: float, top: float, entries: Legend = LEGEND) -> Iterable[str]:
    """Draws what the marks mean, in one line."""
    x = left
    for mark, meaning, width in entries:
        yield from box(Grid(x, top, 24.0), 0, 0, mark, is_new=True)
        yield note(x + 28, top + 14.5, meaning)
        x += 28 + width

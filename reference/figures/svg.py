"""The picture as SVG: for pages in light and dark, for all eyes, and for readers who do not see it.

Colours are close to those of Okabe and Ito; shape repeats what they say (guesses are round, final tokens square,
dropped ones crossed out). Equal snapshots give equal bytes.
"""

from collections.abc import Iterable, Sequence

from reference.figures.boxes import (
    CELL,
    LEGEND_WIDTH,
    ROW,
    STYLE,
    WIDEST,
    Grid,
    box,
    legend,
    moment,
    moment_grid,
    step_of,
    ticks_grid,
    width_of_headline,
)
from reference.figures.canvas import EDGE, Words, document, note, text
from reference.figures.grid import Column, Labels, Mark, Outcome, Snapshot, Verdict, heads, short
from reference.figures.scenes import Scene


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
    grid, parts = ticks_grid(columns, labels)
    notes_at = grid.x(len(columns)) + 12
    for row, one in enumerate(shown):
        parts.append(text(EDGE + 30, grid.baseline(row), str(one.tick), "quiet end"))
        for index, column in enumerate(one.between(first, first + len(columns))):
            parts += _depth(grid, index, row, column)
        parts.append(note(notes_at, grid.baseline(row), _brief(one, labels)))
    longest = max(len(_brief(one, labels)) for one in shown)
    bottom = grid.y(len(shown)) + 10
    parts += legend(EDGE, bottom)
    width = max(notes_at + longest * 6.6, LEGEND_WIDTH) + EDGE
    return document(parts, width, bottom + ROW + EDGE, words, STYLE)


def states(scenes: Sequence[Scene], labels: Labels, words: Words) -> str:
    """Draws moments one below the other, depth down and position across.

    Args:
        scenes: The moments in order.
        labels: Gives the text of a token.
        words: What the picture says in words.

    Returns:
        An SVG document.
    """
    step = max(step_of(scene.columns, labels) for scene in scenes)
    parts: list[str] = []
    top, width = EDGE, LEGEND_WIDTH
    for scene in scenes:
        grid = moment_grid(top, step)
        sentence = _sentence(scene.snapshot, labels)
        parts += moment(grid, scene, labels, sentence)
        width = max(width, grid.x(len(scene.columns)), width_of_headline(sentence))
        top = grid.y(scene.snapshot.start.recurrence_depth) + 18
    parts += legend(EDGE, top)
    return document(parts, width + EDGE, top + ROW + EDGE, words, STYLE)


def _depth(grid: Grid, index: int, row: int, column: Column) -> Iterable[str]:
    """Draws how deep a position that moved has come, or a dot."""
    if not column.moved:
        return (f'<circle class="dot" cx="{grid.middle(index):.1f}" cy="{grid.y(row) + CELL / 2:.1f}" r="1.5"/>',)
    mark, depth = (Mark.FLUSHED, column.dropped.depth) if column.dropped else (column.mark, column.depth)
    number = text(grid.middle(index), grid.baseline(row), str(depth), f"middle on-{mark.value}")
    return (*box(grid, index, row, mark, is_new=True), number)


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
        token = short(labels(outcome.token), WIDEST)
        if outcome.draft_token is None:
            said.append(f"{'✓' if outcome.verdict is Verdict.ACCEPTED else '='} {token}")
        else:
            said.append(f"✗ {short(labels(outcome.draft_token), WIDEST)} → {token}")
    if snapshot.finish_reason is not None:
        said.append(f"[{snapshot.finish_reason}]")
    return "  ".join(said)


def _outcome(outcome: Outcome, labels: Labels) -> str:
    token = short(labels(outcome.token), WIDEST)
    match outcome.verdict:
        case Verdict.ACCEPTED:
            return f"“{token}” accepted"
        case Verdict.REJECTED:
            assert outcome.draft_token is not None
            draft = short(labels(outcome.draft_token), WIDEST)
            return f"“{draft}” rejected, “{token}” committed, {_lanes(outcome.num_flushed)} flushed"
        case Verdict.UNJUDGED:
            return f"“{token}” committed"


def _lanes(number: int) -> str:
    return f"{number} lane" if number == 1 else f"{number} lanes"

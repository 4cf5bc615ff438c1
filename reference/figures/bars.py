"""Where time goes, as bars: one for each call, cut into what it is spent on.

Colours are close to those of Okabe and Ito; the order of the parts repeats what they say.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reference.figures.canvas import EDGE, Words, document, note, text

_COLOURS: Final = (("#0072b2", "#3a9bdc"), ("#e69f00", "#e69f00"), ("#cc79a7", "#e58bb6"), ("#bcd9ec", "#39566b"))
"""Of the kinds in their order, each in light and in dark."""
_INK: Final = (("#ffffff", "#0b0e13"), ("#1f2328", "#1f2328"), ("#1f2328", "#1f2328"), ("#1f2328", "#e6edf3"))
"""Of what is written on them."""

_HEIGHT: Final = 20.0
_ROW: Final = 26.0
_LABELS: Final = 64.0
_LENGTH: Final = 480.0
"""Of the longest bar."""
_CHARACTER: Final = 7.3


@dataclass(frozen=True, slots=True)
class Bar:
    """One call."""

    label: str
    """What stands before it."""
    parts: Mapping[str, float]
    """How much goes to each kind."""

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.parts.values())


def bars(groups: Mapping[str, Sequence[Bar]], words: Words, *, unit: str, every: float) -> str:
    """Draws groups of bars one below the other, all to one scale.

    Args:
        groups: A headline for each group; all bars have the same kinds in the same order, four at most.
        words: What the picture says in words.
        unit: What is counted.
        every: Distance of two lines of the scale.

    Returns:
        An SVG document.
    """
    kinds = list(next(iter(groups.values()))[0].parts)
    scale = _LENGTH / max(bar.total for group in groups.values() for bar in group)
    left = EDGE + _LABELS
    parts: list[str] = []
    top = EDGE
    for title, group in groups.items():
        parts.append(text(EDGE, top + 14, title, "head"))
        top += _ROW
        end = top + _ROW * len(group)
        parts += _scale(left, top, end, scale, every)
        for bar in group:
            parts.append(text(left - 10, top + 14.5, bar.label, "words quiet end"))
            parts += _pieces(left, top, scale, bar)
            top += _ROW
        top += 22
    parts += _legend(top, kinds)
    parts.append(note(left + _LENGTH + 8, top - 8, unit))
    return document(parts, left + _LENGTH + 70, top + _ROW + EDGE, words, _style())


def _scale(left: float, top: float, end: float, scale: float, every: float) -> Iterable[str]:
    number = 0
    while number * every * scale <= _LENGTH:
        x = left + number * every * scale
        yield f'<path class="line" d="M{x:.1f} {top - 2:.1f}V{end:.1f}"/>'
        yield text(x, end + 13, f"{number * every:g}", "quiet middle")
        number += 1


def _pieces(left: float, top: float, scale: float, bar: Bar) -> Iterable[str]:
    x = left
    for kind, amount in enumerate(bar.parts.values()):
        width, said = amount * scale, f"{amount:.1f}"
        if amount:
            size = f'width="{max(width - 1, 0.5):.1f}" height="{_HEIGHT:g}"'
            yield f'<rect class="kind{kind}" x="{x:.1f}" y="{top:.1f}" {size}/>'
        if width > len(said) * _CHARACTER + 4:
            yield text(x + width / 2, top + 14.5, said, f"middle ink{kind}")
        x += width
    yield text(x + 6, top + 14.5, f"{bar.total:.1f}", "")


def _legend(top: float, kinds: Sequence[str]) -> Iterable[str]:
    x = EDGE
    for kind, name in enumerate(kinds):
        yield f'<rect class="kind{kind}" x="{x:.1f}" y="{top:.1f}" width="20" height="{_HEIGHT:g}"/>'
        yield note(x + 26, top + 14.5, name)
        x += 48 + len(name) * 6.4


def _style() -> str:
    rules = [
        [
            f"{what}{kind} {{ fill: {pair[dark]}; }}"
            for what, pairs in ((".kind", _COLOURS), ("text.ink", _INK))
            for kind, pair in enumerate(pairs)
        ]
        for dark in (0, 1)
    ]
    return "\n".join(
        [
            ".line { stroke: #d8dee4; }",
            *rules[0],
            "@media (prefers-color-scheme: dark) {",
            "  .line { stroke: #3a404a; }",
            *(f"  {rule}" for rule in rules[1]),
            "}",
        ]
    )

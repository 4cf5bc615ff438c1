"""What all pictures in SVG share: words for those who do not see them, a style for light and dark, the document.

Nothing is fetched: fonts are the reader's own, colours follow `prefers-color-scheme`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

EDGE: Final = 16.0
"""Space around a picture."""

_STYLE: Final = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; }
.words, .head { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }
.head { font-weight: 600; }
.quiet { fill: #656d76; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.paper { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9198a1; }
  .paper { fill: #1a1d24; }
}
""".strip()


@dataclass(frozen=True, slots=True)
class Words:
    """What a figure says to those who do not see it, and to everyone who hovers over it."""

    title: str
    """Its name."""
    description: str
    """What it shows, in a sentence or two."""


def text(x: float, y: float, said: str, kind: str) -> str:
    """Writes something, or nothing if there is nothing to say.

    Args:
        x: Where it begins, or its middle or end, as its classes say.
        y: Its baseline.
        said: The text.
        kind: Classes of the style, between spaces.
    """
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(said)}</text>' if said else ""


def note(x: float, y: float, said: str) -> str:
    """Writes something in the font of sentences."""
    return text(x, y, said, "words")


def document(parts: Iterable[str], width: float, height: float, words: Words, style: str) -> str:
    """Puts a picture together.

    Args:
        parts: Its elements, from back to front; empty ones are left out.
        width: In pixels.
        height: In pixels.
        words: What it says in words.
        style: Rules beside those that all pictures share.

    Returns:
        An SVG document. Equal arguments give equal bytes.
    """
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
        f'<title id="title">{escape(words.title)}</title>',
        f'<desc id="description">{escape(words.description)}</desc>',
        f"<style>\n{_STYLE}\n{style}\n</style>",
        '<rect class="paper" width="100%" height="100%" rx="8"/>',
        *(part for part in parts if part),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"

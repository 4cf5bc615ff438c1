"""The import graph of `reference` as a picture: what may be used by what, read from the code itself."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

from docs.generate import DOCS

Graph: TypeAlias = Mapping[str, frozenset[str]]
"""For every part what it imports."""

_APART: Final = frozenset({"models.protocol"})
"""Modules that are parts of their own: all that an engine may know of a model."""
_BOX: Final = (106.0, 30.0)
_STEP: Final = (122.0, 74.0)
_EDGE: Final = 20.0
_STYLE: Final = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; text-anchor: middle; }
.paper { fill: #ffffff; }
rect.part { fill: #d0d7de; stroke: #656d76; }
rect.integers { fill: #f5d089; stroke: #e69f00; }
path { fill: none; stroke: #0072b2; stroke-opacity: 0.55; stroke-width: 1.3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .paper { fill: #1a1d24; }
  rect.part { fill: #3a404a; stroke: #9198a1; }
  rect.integers { fill: #6b4d0e; stroke: #e69f00; }
  path { stroke: #6cb6eb; }
}
""".strip()


def files(docs: Path) -> Mapping[Path, str]:
    """Gives the content of the picture."""
    return {docs / "figures" / "architecture.svg": drawn(graph(DOCS.parent / "reference"))}


def graph(package: Path) -> Graph:
    """Gives what the parts of a package import of each other; a part is a module or a package directly below it."""
    sources = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(package.rglob("*.py"))
        if path != package / "__init__.py"
    }
    found: dict[str, set[str]] = {_part(name): set() for name in sources}
    for name, path in sources.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found[_part(name)] |= {_part(target) for target in _targets(node, package.name, sources)}
    return {part: frozenset(targets - {part}) for part, targets in found.items()}


def _targets(node: ast.AST, package: str, sources: Iterable[str]) -> Iterator[str]:
    """Gives the modules of the package that a statement imports, each by its name within the package."""
    known = {f"{package}.{name}": name for name in sources}
    match node:
        case ast.Import(names=names):
            yield from (known[alias.name] for alias in names if alias.name in known)
        case ast.ImportFrom(module=str(module), names=names):
            for alias in names:
                target = known.get(f"{module}.{alias.name}", known.get(module))
                if target is not None:
                    yield target
        case _:
            pass


def _part(module: str) -> str:
    return module if module in _APART else module.partition(".")[0]


def reduced(edges: Graph) -> Graph:
    """Leaves out what a longer way says as well: a picture of every import would be a picture of none."""

    @cache
    def reach(part: str) -> frozenset[str]:
        return frozenset().union(*({target} | reach(target) for target in edges[part]))

    return {
        part: frozenset(target for target in targets if not any(target in reach(other) for other in targets - {target}))
        for part, targets in edges.items()
    }


def levels(edges: Graph) -> list[list[str]]:
    """Gives the parts by level: each lies one above the highest that it imports."""

    @cache
    def height(part: str) -> int:
        return 1 + max((height(target) for target in edges[part]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, edges)))]
    for part in sorted(edges):
        rows[height(part)].append(part)
    return rows


def drawn(edges: Graph) -> str:
    """Draws the parts, lowest level at the bottom, with a line from each to what it imports."""
    rows = levels(edges)
    columns = max(map(len, rows))
    width = 2 * _EDGE + (columns - 1) * _STEP[0] + _BOX[0]
    height = 2 * _EDGE + (len(rows) - 1) * _STEP[1] + _BOX[1]
    places: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        # Each part stands near what it imports, as far as its level has room.
        ordered = sorted(row, key=lambda part: (_mean([places[target][0] for target in edges[part]]), part))
        for index, part in enumerate(ordered):
            x = width / 2 + (index - (len(row) - 1) / 2) * _STEP[0]
            places[part] = (x, height - _EDGE - _BOX[1] / 2 - level * _STEP[1])
    lines = [
        f'<path d="M{places[part][0]:.0f} {places[part][1] + _BOX[1] / 2:.0f}'
        f"C{places[part][0]:.0f} {places[part][1] + 40:.0f} {places[target][0]:.0f} {places[target][1] - 40:.0f} "
        f'{places[target][0]:.0f} {places[target][1] - _BOX[1] / 2:.0f}"/>'
        for part, targets in sorted(reduced(edges).items())
        for target in sorted(targets)
    ]
    boxes = [
        f'<rect class="{"integers" if part in integers(edges) else "part"}" x="{x - _BOX[0] / 2:.0f}" '
        f'y="{y - _BOX[1] / 2:.0f}" width="{_BOX[0]:.0f}" height="{_BOX[1]:.0f}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 4.5:.0f}">{escape(_name(part))}</text>'
        for part, (x, y) in sorted(places.items())
    ]
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
            '<title id="title">The import graph</title>',
            f'<desc id="description">{escape(description(edges))}</desc>',
            f"<style>\n{_STYLE}\n</style>",
            '<rect class="paper" width="100%" height="100%" rx="8"/>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def integers(edges: Graph) -> frozenset[str]:
    """Gives the parts that stand on nothing but the shared ground of the schedules: they load no tensor library."""
    ground = {"errors", "schedule", "stopping"}
    return frozenset(part for part in edges if part in ground or (edges[part] and edges[part] <= ground))


def description(edges: Graph) -> str:
    """Says what the picture shows."""
    rows = ["; ".join(map(_name, row)) for row in levels(edges)]
    return f"{len(edges)} parts on {len(rows)} levels, the lowest first: {'. '.join(rows)}."


def _name(part: str) -> str:
    return "protocol" if part in _APART else part


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0

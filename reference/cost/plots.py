"""Plots of the cost model. The only module that needs matplotlib, which the extra `plots` installs.

Equal figures give equal SVG files. Colours are those of Okabe and Ito; lines differ in their marks as well.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reference.cost.latency import Seconds

_COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_MARKS: Final = ("o", "s", "^", "D", "v", "P")
_PARTS: Final = (
    ("weights", "weights"),
    ("cells", "KV cells"),
    ("compute", "arithmetic beyond bytes"),
    ("kernels", "kernels"),
    ("waiting", "waiting for launches"),
)


def lines(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    at: Sequence[float],
    *,
    across: str,
    up: str,
    is_logarithmic: bool = False,
) -> Figure:
    """Draws lines over a common axis, a panel for each entry.

    Args:
        panels: Title of each panel, and in it the values of each line by its name.
        at: Where the values are.
        across: What the horizontal axis says.
        up: What the vertical axis says.
        is_logarithmic: Whether the horizontal axis doubles from mark to mark.
    """
    with _style():
        figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
        for axes, (title, named) in zip(_axes(figure, len(panels)), panels.items(), strict=True):
            for index, (name, values) in enumerate(named.items()):
                colour, mark = _COLOURS[index % len(_COLOURS)], _MARKS[index % len(_MARKS)]
                axes.plot(at, values, label=name, markersize=4, color=colour, marker=mark)
            axes.set_title(title)
            axes.set_xlabel(across)
            axes.set_ylabel(up)
            axes.set_ylim(bottom=0)
            if is_logarithmic:
                axes.set_xscale("log", base=2)
            axes.legend(frameon=False, fontsize=8)
    return figure


def breakdown(bars: Mapping[str, Seconds], *, title: str) -> Figure:
    """Draws where the time of a token goes: a stacked bar for each name."""
    with _style():
        figure = Figure(figsize=(1.6 + 1.1 * len(bars), 3.6), layout="constrained")
        (axes,) = _axes(figure, 1)
        bottom = [0.0] * len(bars)
        for index, (field, name) in enumerate(_PARTS):
            heights = [1000 * float(getattr(seconds, field)) for seconds in bars.values()]
            axes.bar(list(bars), heights, bottom=bottom, label=name, color=_COLOURS[index], width=0.6)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axes.set_title(title)
        axes.set_ylabel("milliseconds per token")
        axes.tick_params(axis="x", labelrotation=20)
        axes.legend(frameon=False, fontsize=8)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Writes a figure in the format that the name's ending says, without a date in it."""
    metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else None
    with _style():
        figure.savefig(path, metadata=metadata)


def _style() -> AbstractContextManager[None]:
    """Sets how figures look, for as long as one is drawn."""
    return rc_context(
        {
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "font.size": 9.0,
            "grid.alpha": 0.3,
            "svg.fonttype": "none",
            "svg.hashsalt": "reference.cost",
        }
    )


def _axes(figure: Figure, number: int) -> list[Axes]:
    return list(figure.subplots(1, number, squeeze=False)[0])

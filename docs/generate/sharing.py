"""Writes docs/sharing.md from the figures in docs/sharing.json, which `wfd bench sharing` measures.

The page's text is docs/sharing.md.in.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Final

from docs.generate import DOCS

_NAMES: Final = {"ar": "AR", "dtv": "DtV", "wfd": "WFD"}

Row = Mapping[str, Any]  # a row of the JSON file: numbers, texts and lists by name


def files() -> dict[Path, str]:
    """Gives the content of the page."""
    return {DOCS / "sharing.md": page()}


def page() -> str:
    """Gives the page."""
    figures = json.loads((DOCS / "sharing.json").read_text(encoding="utf-8"))
    counted, timed = figures["agreement"], figures["ticks"]
    values = {
        "num_items": str(counted[0]["num_items"]),
        "depths": " and ".join(_setting(counted, name) for name in _names(counted)),
        "finding": " ".join(_finding(counted, name) for name in _names(counted)),
        "tables": "\n".join(line for name in _names(counted) for line in (*_agreement(counted, name), "")),
        "ticks_intro": _introduction(timed),
        "ticks": "\n".join((*_ticks(timed), "")),
    }
    note = "<!-- Written by docs/generate/sharing.py from sharing.md.in and sharing.json; change it there. -->\n\n"
    return note + Template((DOCS / "sharing.md.in").read_text(encoding="utf-8")).substitute(values)


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["model"] for row in rows))


def _setting(rows: Sequence[Row], name: str) -> str:
    depth = max(row["kv_slots"] for row in rows if row["model"] == name)
    return f"{name} with T = {depth} and d = {max(1, depth // 8)}"


def _finding(rows: Sequence[Row], name: str) -> str:
    """Says how many answers of AR are right with own slots and with fewer."""
    mine = [row for row in rows if (row["model"], row["decoder"]) == (name, "ar")]
    right = dict.fromkeys(dict.fromkeys(row["kv_slots"] for row in mine), 0)
    for row in mine:
        right[row["kv_slots"]] += row["num_right"]
    *fewer, own = right
    of = sum(row["num_items"] for row in mine if row["kv_slots"] == own)
    with_fewer = " and ".join(f"{right[slots]} with {slots}" for slots in reversed(fewer))
    return f"AR on {name} answers {right[own]} of {of} items right with its own slots, {with_fewer}."


def _agreement(rows: Sequence[Row], name: str) -> Iterator[str]:
    """Gives the table of one model."""
    yield f"### {name}"
    yield ""
    yield "| flavour | slots | right: AR | DtV | WFD | DtV, same | WFD, same | AR, own | DtV, own | WFD, own |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    mine = [row for row in rows if row["model"] == name]
    for flavour in dict.fromkeys(row["flavour"] for row in mine):
        for slots in dict.fromkeys(row["kv_slots"] for row in mine):
            by_decoder = {row["decoder"]: row for row in mine if (row["flavour"], row["kv_slots"]) == (flavour, slots)}
            right = [f"{by_decoder[decoder]['num_right']}" for decoder in _NAMES]
            same = [_share(by_decoder[decoder], "same") for decoder in ("dtv", "wfd")]
            own = [_share(by_decoder[decoder], "own") for decoder in _NAMES]
            yield f"| {flavour} | {slots} | {' | '.join((*right, *same, *own))} |"
    totals = {slots: _total(mine, slots) for slots in dict.fromkeys(row["kv_slots"] for row in mine)}
    for slots, cells in totals.items():
        yield f"| **all** | {slots} | {' | '.join(cells)} |"


def _total(rows: Sequence[Row], slots: int) -> list[str]:
    def of(decoder: str) -> list[Row]:
        return [row for row in rows if (row["kv_slots"], row["decoder"]) == (slots, decoder)]

    def share(decoder: str, kind: str) -> str:
        equal, total = (sum(row[f"{kind}_slots"][place] for row in of(decoder)) for place in (0, 1))
        return _rate(equal, total)

    right = [str(sum(row["num_right"] for row in of(decoder))) for decoder in _NAMES]
    return [
        *right,
        *(share(decoder, "same") for decoder in ("dtv", "wfd")),
        *(share(decoder, "own") for decoder in _NAMES),
    ]


def _share(row: Row, kind: str) -> str:
    equal, total = row[f"{kind}_slots"]
    places = row[f"first_divergence_{kind}"]
    return _rate(equal, total) + (f" ({len(places)}, {min(places)})" if places else "")


def _rate(equal: int, total: int) -> str:
    return "1" if equal == total else f"{equal / total:.2f}"


def _introduction(rows: Sequence[Row]) -> str:
    most = max(row["context"] for row in rows)
    return (
        "One recurrent call of a full wavefront at the end of a context: bytes of cells and weights that it reads, and "
        "its best time, both over those with own slots. Bytes are counted, times are of one CPU thread and one run, "
        f"on cells that do not fit a cache at {most} positions."
    )


def _ticks(rows: Sequence[Row]) -> Iterator[str]:
    yield "| model | context | rows | slots | cells read, MB | bytes, of own | time, of own |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        yield (
            f"| {row['model']}, d = {row['draft_depth']} | {row['context']} | {row['rows']} | {row['kv_slots']} | "
            f"{row['kv_bytes_read'] / 1e6:.1f} | {row['bytes_of_own']:.2f} | {row['time_of_own']:.2f} |"
        )

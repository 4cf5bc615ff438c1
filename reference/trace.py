"""Events to and from JSON lines: one object per line, its kind under `"event"`.

The first line of a complete trace is a `start` event, which carries the version of this format: 2 if any event tells
which KV cells were read, which format 1 does not know, else 1.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, fields
from types import MappingProxyType
from typing import Any, Final

from reference.schedule import (
    Accept,
    Advance,
    CellsRead,
    Commit,
    Draft,
    Event,
    Finish,
    Flush,
    Inject,
    Lane,
    Reject,
    Start,
)
from reference.stopping import FinishReason

VERSION: Final = 1
"""Version of a trace without reads."""
VERSION_WITH_READS: Final = 2
"""Version of a trace in which an `advance` may tell the KV cells that its rows read; all else is as in 1."""

_KINDS: Final[Mapping[str, Callable[..., Event]]] = MappingProxyType(
    {kind.__name__.lower(): kind for kind in (Start, Advance, Draft, Commit, Accept, Reject, Flush, Inject, Finish)}
)


class TraceFormatError(ValueError):
    """A line is not an event of this format."""


def to_jsonl(events: Iterable[Event]) -> str:
    """Writes events as JSON lines (CONF-07).

    Returns:
        One line per event, each ended by a newline. Lanes are `[position, token, depth]`, cells read
        `[start, stop, recurrence, incarnation]`.
    """
    written = list(events)
    has_reads = any(isinstance(event, Advance) and event.reads is not None for event in written)
    version = VERSION_WITH_READS if has_reads else VERSION
    return "".join(json.dumps(_to_json(event, version)) + "\n" for event in written)


def from_jsonl(text: str) -> list[Event]:
    """Reads events from JSON lines; blank lines are passed over.

    Raises:
        TraceFormatError: If a line is no event of this format; the message names the line.
    """
    events = []
    version = VERSION_WITH_READS  # of a part of a trace, which has no `start`
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            version = record.get("version", version)
            events.append(_from_json(record, version))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"line {number} is not an event of trace format {VERSION} or {VERSION_WITH_READS}: {error}"
            raise TraceFormatError(what) from error
    return events


def _to_json(event: Event, version: int) -> dict[str, object]:
    kind = type(event).__name__.lower()
    header: dict[str, object] = {"event": kind, "version": version} if isinstance(event, Start) else {"event": kind}
    values = {field.name: _plain(getattr(event, field.name)) for field in fields(event)}
    if isinstance(event, Advance) and event.reads is None:
        del values["reads"]
    return header | values


def _plain(value: object) -> object:
    """Gives a field's JSON form."""
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case Lane() | CellsRead():
            return list(astuple(value))
        case _:
            return value


def _from_json(record: dict[str, object], version: object) -> Event:
    kind = _KINDS[str(record.pop("event"))]
    if kind is Start and record.pop("version") not in {VERSION, VERSION_WITH_READS}:
        raise ValueError("another version")
    if version == VERSION and "reads" in record:
        raise ValueError(f"reads need format {VERSION_WITH_READS}")
    return kind(**{name: _field(name, value) for name, value in record.items()})


def _field(name: str, value: object) -> object:
    """Gives a field's Python form and refuses what is not of its kind."""
    match name, value:
        case _, list():
            return _list(name, value)
        case "reason", str():
            return FinishReason(value)
        case "decoder", str():
            return value
        case "draft_length", None:
            return None
        case _:
            return _integer(value)


def _list(name: str, values: list[Any]) -> object:
    match name:
        case "lanes":
            return tuple(Lane(*map(_integer, lane)) for lane in values)
        case "reads":
            return tuple(tuple(CellsRead(*map(_integer, cells)) for cells in row) for row in values)
        case "positions" | "abandoned" | "stop_ids":
            return tuple(map(_integer, values))
        case _:
            raise TypeError(f"{name} is not a list")


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value

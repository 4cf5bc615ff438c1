"""Events to and from JSON lines: one object per line, its kind under `"event"`.

The first line of a complete trace is a `start` event, which carries the version of this format.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final

from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Lane, Reject, Start
from reference.stopping import FinishReason

VERSION: Final = 1
"""Version of the trace format."""

_KINDS: Final[Mapping[str, Callable[..., Event]]] = MappingProxyType(
    {kind.__name__.lower(): kind for kind in (Start, Advance, Draft, Commit, Accept, Reject, Flush, Inject, Finish)}
)


class TraceFormatError(ValueError):
    """A line is not an event of this format."""


def to_jsonl(events: Iterable[Event]) -> str:
    """Writes events as JSON lines (CONF-07).

    Returns:
        One line per event, each ended by a newline. Lanes are `[position, token, depth]`.
    """
    return "".join(json.dumps(_to_json(event)) + "\n" for event in events)


def from_jsonl(text: str) -> list[Event]:
    """Reads events from JSON lines; blank lines are passed over.

    Raises:
        TraceFormatError: If a line is no event of this format; the message names the line.
    """
    events = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            events.append(_from_json(json.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            raise TraceFormatError(f"line {number} is not an event of trace format {VERSION}: {error}") from error
    return events


def _to_json(event: Event) -> dict[str, object]:
    kind = type(event).__name__.lower()
    header: dict[str, object] = {"event": kind, "version": VERSION} if isinstance(event, Start) else {"event": kind}
    return header | {field.name: _plain(getattr(event, field.name)) for field in fields(event)}


def _plain(value: object) -> object:
    """Gives a field's JSON form."""
    if isinstance(value, tuple):
        return [[item.position, item.token, item.depth] if isinstance(item, Lane) else item for item in value]
    return value


def _from_json(record: dict[str, object]) -> Event:
    kind = _KINDS[str(record.pop("event"))]
    if kind is Start and record.pop("version") != VERSION:
        raise ValueError("another version")
    return kind(**{name: _field(name, value) for name, value in record.items()})


def _field(name: str, value: object) -> object:
    """Gives a field's Python form and refuses what is not of its kind."""
    match name, value:
        case "lanes", list():
            return tuple(Lane(*(_integer(number) for number in lane)) for lane in value)
        case (("positions" | "abandoned" | "stop_ids"), list()):
            return tuple(_integer(number) for number in value)
        case "reason", str():
            return FinishReason(value)
        case "decoder", str():
            return value
        case "draft_length", None:
            return None
        case _:
            return _integer(value)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value

"""The JSON schema of a trace line, made from the event types, for those who write traces in another language.

`python -m reference.oracle.schema` writes `trace.schema.json`, which lies beside this file and in the wheel. A trace is
a file of such lines: `start` first, `finish` last (NOT-03, CONF-07).
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Final, TypeAlias, get_args, get_origin, get_type_hints

from reference.schedule import CellsRead, Event, Lane, Start
from reference.stopping import FinishReason
from reference.trace import VERSION, VERSION_WITH_READS

PATH: Final = Path(__file__).parent / "trace.schema.json"
"""Where the schema lies."""

Schema: TypeAlias = dict[str, object]
"""A JSON schema, or a part of one."""

_PLAIN: Final[Mapping[type, str]] = MappingProxyType({int: "integer", str: "string", NoneType: "null"})


def main() -> None:
    """Writes the file."""
    PATH.write_text(written(), encoding="utf-8")
    sys.stdout.write(f"{PATH.name}\n")


def written() -> str:
    """Gives the text of the file."""
    return json.dumps(trace_schema(), indent=2) + "\n"


def trace_schema() -> Schema:
    """Gives the schema of one line: one of the events, and nothing beside its fields."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of a trace, formats {VERSION} and {VERSION_WITH_READS}",
        "oneOf": [_line(kind) for kind in get_args(Event)],
    }


def _line(kind: type[Event]) -> Schema:
    name = kind.__name__.lower()
    hints = get_type_hints(kind)
    properties: dict[str, Schema] = {"event": {"const": name}}
    if kind is Start:
        properties["version"] = {"enum": [VERSION, VERSION_WITH_READS]}
    properties |= {field.name: _value(hints[field.name]) for field in fields(kind)}
    defaults = {field.name for field in fields(kind) if field.default is not MISSING}
    return {
        "title": name,
        "description": (kind.__doc__ or "").strip(),
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in defaults],
        "additionalProperties": False,
    }


def _value(annotation: object) -> Schema:
    """Gives the schema of a field from its annotation."""
    if annotation is FinishReason:
        return {"enum": [str(reason) for reason in FinishReason]}
    if annotation in (Lane, CellsRead):
        names = [field.name for field in fields(annotation)]
        size = len(names)
        number = {"type": "integer"}
        return {"type": "array", "items": number, "minItems": size, "maxItems": size, "description": ", ".join(names)}
    if get_origin(annotation) is tuple:
        return {"type": "array", "items": _value(get_args(annotation)[0])}
    kinds = get_args(annotation) or (annotation,)
    inner = next((kind for kind in kinds if get_origin(kind) is tuple), None)
    if inner is not None:
        return _value(inner)  # a field that may be left out is never written as null
    names = [_PLAIN[kind] for kind in kinds]
    return {"type": names if len(names) > 1 else names[0]}


if __name__ == "__main__":
    main()

"""The schema that ships is the one of the event types, and describes what is written."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from reference.oracle import schema
from reference.trace import VERSION, to_jsonl
from tests.driving import Case, plays
from tests.strategies import cases


def fits(value: object, described: dict[str, Any]) -> bool:
    """Validates against the few words of JSON schema that ours use."""
    if "$ref" in described:
        assert described["$ref"].endswith(schema.PATH.name), "ours refer to no other"
        return fits(value, SHIPPED)
    if "oneOf" in described:
        return sum(fits(value, one) for one in described["oneOf"]) == 1
    if "const" in described:
        return bool(value == described["const"])
    if "enum" in described:
        return bool(value in described["enum"])
    kinds = described.get("type", "anything")
    return any(_fits_kind(value, kind, described) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _fits_kind(value: object, kind: str, described: dict[str, Any]) -> bool:
    match kind, value:
        case ("anything", _) | ("boolean", bool()) | ("null", None):
            return True
        case ("integer", int()) | ("number", int() | float()):
            return not isinstance(value, bool)
        case ("string", str()):
            return re.search(described.get("pattern", ""), value) is not None
        case "array", list():
            sizes = described.get("minItems", 0), described.get("maxItems", len(value))
            return sizes[0] <= len(value) <= sizes[1] and all(fits(item, described["items"]) for item in value)
        case "object", dict():
            properties, others = described.get("properties", {}), described.get("additionalProperties", {})
            return set(described.get("required", ())) <= set(value) and all(
                fits(item, properties[name]) if name in properties else others is not False and fits(item, others)
                for name, item in value.items()
            )
        case _:
            return False


SHIPPED = json.loads(schema.PATH.read_text(encoding="utf-8"))


def test_the_file_is_up_to_date() -> None:
    assert schema.PATH.read_text(encoding="utf-8") == schema.written(), "run: python -m reference.oracle.schema"


def test_the_file_is_written_by_its_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(schema, "PATH", tmp_path / "trace.schema.json")
    schema.main()
    assert schema.PATH.read_text(encoding="utf-8") == schema.written()


@pytest.mark.spec("CONF-07")
@given(case=cases())
def test_every_line_of_every_run_fits(case: Case) -> None:
    for one in plays(case):
        for line in to_jsonl(one.events).splitlines():
            assert fits(json.loads(line), SHIPPED), line


@pytest.mark.parametrize(
    "line",
    [
        {"event": "commit", "tick": 1, "position": 2},
        {"event": "commit", "tick": 1, "position": 2, "token": 3, "more": 4},
        {"event": "commit", "tick": 1, "position": 2, "token": 3.5},
        {"event": "commit", "tick": True, "position": 2, "token": 3},
        {"event": "comit", "tick": 1, "position": 2, "token": 3},
        {"event": "advance", "tick": 1, "lanes": [[1, 2]]},
        {"event": "advance", "tick": 1, "lanes": [[1, 2, "3"]]},
        {"event": "flush", "tick": 1, "positions": 2},
        {"event": "finish", "tick": 1, "reason": "bored", "abandoned": []},
        [],
    ],
)
def test_a_line_that_is_none_does_not_fit(line: object) -> None:
    assert not fits(line, SHIPPED)


def test_the_version_is_in_the_start() -> None:
    start = next(one for one in SHIPPED["oneOf"] if one["title"] == "start")
    assert start["properties"]["version"] == {"const": VERSION}
    assert start["properties"]["draft_length"] == {"type": ["integer", "null"]}

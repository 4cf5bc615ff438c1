"""What a kind of vectors consists of; one module of this package makes one kind.

A new kind is a new module with a `KIND` and a line in `reference.oracle.vectors.KINDS`; nothing else knows kinds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from reference.oracle.vectors.answers import Answer, Finding
from reference.oracle.vectors.form import FLAGS, FORMAT, JsonObject, Vector

INTEGER: Final[JsonObject] = {"type": "integer"}
INTEGERS: Final[JsonObject] = {"type": "array", "items": INTEGER}
NUMBER: Final[JsonObject] = {"type": "number"}
NUMBERS: Final[JsonObject] = {"type": "array", "items": NUMBER}
TEXT: Final[JsonObject] = {"type": "string"}
BOOLEAN: Final[JsonObject] = {"type": "boolean"}
OBJECT: Final[JsonObject] = {"type": "object"}
ANY: Final[JsonObject] = {}


@dataclass(frozen=True, slots=True)
class Field:
    """A name in an object."""

    schema: JsonObject
    """Its JSON schema, without the description."""
    meaning: str
    """What it says, in a line."""
    is_optional: bool = False
    """Whether it may be missing."""


Fields: TypeAlias = Mapping[str, Field]
"""An object, name by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of vectors: what is in them, how they are made, and how an answer is judged."""

    name: str
    """The name of its folder."""
    summary: str
    """What it is for, in a sentence."""
    input: Fields
    """The problem."""
    expected: Fields
    """The solution."""
    answer: Fields
    """What an implementation answers, `id` aside; all of it is optional, but one at least must be there."""
    make: Callable[[], Iterable[Vector]]
    """Makes all vectors of the kind; the only place where they come from."""
    judge: Callable[[Vector, Answer], Finding]
    """Judges one answer."""
    tolerance: float = 0.0
    """How far numbers in the files may be from those of another machine's generator; 0 says bit for bit."""


def schema_of(kind: Kind) -> JsonObject:
    """Gives the JSON schema of the files of a kind, with that of an answer among its definitions."""
    properties: JsonObject = {
        "format": {"const": FORMAT},
        "id": {"type": "string", "description": "kind/name, the place of the file"},
        "clauses": {"type": "array", "items": TEXT, "description": "the clauses that the vector exercises"},
        "flag": {"enum": list(FLAGS), "description": "what it means to fail it, see index.json"},
        "comment": TEXT,
        "input": _object_schema(kind.input),
        "expected": _object_schema(kind.expected),
    }
    own_id = {"id": Field(TEXT, "the vector's")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A vector of kind {kind.name}, format {FORMAT}",
        "description": kind.summary,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "$defs": {"answer": _object_schema(own_id | dict(kind.answer))},
    }


def _object_schema(fields: Fields) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: one.schema | {"description": one.meaning} for name, one in fields.items()},
        "required": [name for name, one in fields.items() if not one.is_optional],
        "additionalProperties": False,
    }

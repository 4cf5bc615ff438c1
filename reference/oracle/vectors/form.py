"""What a vector is, and how it looks as JSON.

A vector is one problem with its solution, in one JSON file that a parser alone can read. Numbers that do not fit into
53 bits are texts in hexadecimal, since many languages read every JSON number as a double.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from reference.errors import ParameterError
from reference.oracle.vectors.layout import pretty

FORMAT: Final = 1
"""Version of the format; a file of another version is refused."""

FOLDER: Final = Path(__file__).parent / "data"
"""Where the files lie: one folder a kind, a schema beside each, and `index.json`."""

JsonObject: TypeAlias = dict[str, Any]
"""An object as a JSON parser gives it."""

FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "schedule": "The wrong lanes move or are read out. Tokens may still be right, counts and speed are not.",
        "flush": "A rejection leaves something behind, or the wave starts again at the wrong place: tokens behind it "
        "may be computed from a prefix that was dropped.",
        "stop": "The text ends too soon or runs on: a stop id counts where it is committed, not where it is drafted.",
        "limit": "The budget or the end of the context is off by one, or its name is wrong.",
        "full-depth draft": "With d = T nothing is drafted and every decoder is AR; this one still treats it apart.",
        "identity": "The tokens are not those of the model at full depth: weights, cells or decoder are wrong.",
        "network": "States, logits or cells are not the network's. Look at the first depth that differs.",
        "initial state": "The random initial state is another one, so no token of a Huginn-type model can be compared.",
        "choice": "Another token is chosen from the same logits.",
        "slots": "Steps share other slots than they should, a slot does not hold what was written last, or more is "
        "claimed of the result than is proved.",
        "refusal": "What has no meaning is computed all the same, and its result looks like one.",
        "acceptance": "Something allowed is refused: a limit is drawn too narrow.",
    }
)
"""What it means to fail a vector, by its flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One problem with its solution."""

    id: str
    """Kind and name, `schedule/wfd-mixed`; also the place of its file."""
    clauses: tuple[str, ...]
    """The clauses of `spec/` that it exercises."""
    flag: str
    """One of `FLAGS`: what it means to fail it."""
    comment: str
    """What it is about, in a sentence."""
    input: JsonObject
    """The problem."""
    expected: JsonObject
    """The solution."""

    @property
    def kind(self) -> str:
        """The kind: `schedule`, `tokens`, ..."""
        return self.id.partition("/")[0]

    @property
    def path(self) -> Path:
        """Its file."""
        return FOLDER / f"{self.id}.json"

    def written(self) -> str:
        """Gives the text of its file."""
        head = {"format": FORMAT, "id": self.id, "clauses": list(self.clauses), "flag": self.flag}
        body = {"comment": self.comment, "input": self.input, "expected": self.expected}
        return pretty(head | body) + "\n"


def read(text: str) -> Vector:
    """Reads a vector from the text of its file.

    Raises:
        ParameterError: If it is of another version of the format.
    """
    values = json.loads(text)
    version = values.pop("format")
    if version != FORMAT:
        raise ParameterError(f"format={version!r} of {values.get('id')} is not {FORMAT} (CONF-07)")
    return Vector(**values | {"clauses": tuple(values["clauses"])})

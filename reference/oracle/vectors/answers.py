"""What somebody's implementation says to a vector, and what is said of that."""

from dataclasses import dataclass
from typing import Final

from reference.errors import ParameterError
from reference.oracle.vectors.form import JsonObject
from reference.oracle.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody's implementation says to a vector; a line of a file of answers. Every look at it checks a type."""

    place: str
    """Where it comes from, for messages."""
    values: JsonObject
    """The line."""

    def wrong(self, name: str, wanted: str) -> ParameterError:
        """Gives the error to raise for a value that is not what it should be."""
        return ParameterError(f"{self.place}: {name} is not {wanted} (CONF-07)")

    def text(self, name: str) -> str | None:
        """Gives a text; None if it is not there."""
        value = self.values.get(name)
        if not isinstance(value, str | None):
            raise self.wrong(name, "a text")
        return value

    def integers(self, name: str) -> list[int] | None:
        """Gives a list of whole numbers; None if it is not there."""
        value = self.values.get(name)
        if value is not None and not (isinstance(value, list) and all(type(item) is int for item in value)):
            raise self.wrong(name, "a list of whole numbers")
        return value

    def number(self, name: str) -> int | float | None:
        """Gives a number; None if it is not there."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise self.wrong(name, "a number")
        return value

    def truth(self, name: str) -> bool | None:
        """Gives true or false; None if it is not there."""
        value = self.values.get(name)
        if not isinstance(value, bool | None):
            raise self.wrong(name, "true or false")
        return value

    def objects(self, name: str) -> list[JsonObject] | None:
        """Gives a list of objects; None if it is not there."""
        value = self.values.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
            raise self.wrong(name, "a list of objects")
        return value

    def object(self, name: str) -> JsonObject | None:
        """Gives an object; None if it is not there."""
        value = self.values.get(name)
        if not isinstance(value, dict | None):
            raise self.wrong(name, "an object")
        return value


@dataclass(frozen=True, slots=True)
class Finding:
    """What a kind says of one answer."""

    verdict: Verdict
    """EXACT, NEAR_TIE or WRONG."""
    reason: str = ""
    """What is wrong or near, and where; for an exact answer the freedoms that it takes."""
    clause: str = ""
    """The clause that is broken; empty if none is."""


RIGHT: Final = Finding(Verdict.EXACT)
"""Nothing to object to."""


def wrong(clause: str, reason: str) -> Finding:
    """Gives the finding that a clause is broken."""
    return Finding(Verdict.WRONG, reason, clause)

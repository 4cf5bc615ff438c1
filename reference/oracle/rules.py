"""What breaks a rule, which clause of each decoder says it, and the one rule that no schedule has to state."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from reference.schedule import Lane


class NotAllowedError(Exception):
    """An event breaks a clause."""

    def __init__(self, clause: str, reason: str) -> None:
        """Takes the clause and what is wrong, in words that need no context."""
        super().__init__(f"{reason} ({clause})")
        self.clause = clause
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Clauses:
    """Which clause of a decoder says what."""

    advance: str
    """Which lanes a tick advances."""
    verify: str
    """When the oldest lane is verified."""
    read_draft: str
    """Which lanes are read out for a draft."""
    inject: str
    """Which lane a draft starts."""


CLAUSES: Final[Mapping[str, Clauses]] = MappingProxyType(
    {
        "ar": Clauses(advance="AR-01", verify="AR-01", read_draft="AR-01", inject="AR-01"),
        "dtv": Clauses(advance="DTV-05", verify="DTV-05", read_draft="DTV-04", inject="DTV-04"),
        "wfd": Clauses(advance="WFD-03", verify="WFD-04", read_draft="WFD-04", inject="WFD-05"),
    }
)
"""The clauses of each decoder, by its name."""


def check_reads(rows: tuple[Lane, ...], lanes: tuple[Lane, ...]) -> None:
    """Holds that every cell that the rows of a call read is written by then.

    Args:
        rows: The rows, as they are after the call.
        lanes: All lanes in flight after it.

    Raises:
        NotAllowedError: If a later call of the same tick would write one (KV-03).
    """
    for row in rows:
        for older in lanes:
            if older.position < row.position and older.depth < row.depth:
                what = (
                    f"position {row.position} runs recurrence {row.depth - 1} before position {older.position}, "
                    "whose cell of that recurrence it reads"
                )
                raise NotAllowedError("KV-03", what)

"""What a trace may do otherwise than our schedules do, one name for each permitted freedom of the specification."""

from dataclasses import dataclass
from enum import Enum


class Freedom(Enum):
    """A permitted deviation; its value says what was done and which clauses then no longer apply."""

    ROW_ORDER = "the rows of a call stand in another order"
    """WFD and DtV; changes nothing."""
    SPLIT_CALL = "the rows of a tick are computed in several calls"
    """Changes nothing, as long as no row reads what a later call writes (KV-03)."""
    READOUT_ORDER = "a draft is read out before the verification of its tick"
    """Changes nothing, as long as the draft starts no lane before the verification is done (WFD-05)."""
    EXTRA_READOUT = "a lane is read out that need not be, and the result is ignored"
    """Changes `readout_calls`."""
    HELD_BACK_STOP = "the lane of a drafted stop id is held back"
    """Changes counts of lanes, never ticks (30, permitted freedom)."""
    WITHHELD = "a draft that could be made is not made, or starts no lane"
    """WFD-12 to WFD-14, or DTV-08, no longer apply; identity does."""
    DELAYED = "a draft is made, or its lane started, later than it could be"
    """WFD-07 and WFD-12 to WFD-14 no longer apply; identity does. Not in DtV, whose rounds have phases."""
    EARLY_FLUSH = "drafted lanes are dropped before a rejection demands it"
    """WFD-12 to WFD-14, or DTV-08, no longer apply; identity does."""

    @property
    def keeps_ticks(self) -> bool:
        """Whether the exact tick counts still hold."""
        return self not in {Freedom.WITHHELD, Freedom.DELAYED, Freedom.EARLY_FLUSH}


@dataclass(frozen=True, slots=True)
class FreedomTaken:
    """A freedom that a trace makes use of."""

    freedom: Freedom
    """Which."""
    index: int
    """Number of the first event that does, from 0."""

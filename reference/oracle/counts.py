"""Judges the counts that somebody else reports of a run by its trace: is everything counted as COST says?"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from reference.counts import Counts, count
from reference.errors import ParameterError
from reference.oracle.verdicts import Verdict
from reference.schedule import Advance, Draft, Event, Finish, Start
from reference.trace import from_jsonl

Number: TypeAlias = int | float
"""A count, or a rate."""

Claims: TypeAlias = Mapping[str, Number]
"""Counts by name."""

_CLAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ticks": "COST-01",
        "lane_ticks": "COST-01",
        "prelude_calls": "COST-02",
        "readout_calls": "COST-02",
        "accepted": "COST-03",
        "rejected": "COST-03",
        "acceptance_rate": "COST-03",
        "flushed": "COST-04",
        "committed": "COST-05",
    }
)
"""What may be claimed, and the clause that says how it is counted."""

_RATE_TOLERANCE: Final = 1e-9
"""How far a claimed rate may be from the quotient: it may have been written with nine digits."""


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One count that is not right."""

    name: str
    """Its name in `reference.counts.Counts`, or `acceptance_rate`."""
    claimed: Number
    """What the candidate says."""
    expected: str
    """What is right: a number or a condition."""
    clause: str
    """The clause that is broken."""
    reason: str
    """How the claimed number may have come about; empty where nothing is known to give it."""


@dataclass(frozen=True, slots=True)
class CountsVerdict:
    """What became of a candidate's counts. Printed, it explains itself."""

    verdict: Verdict
    """EXACT or WRONG."""
    discrepancies: tuple[Discrepancy, ...]
    """Every count that is not right."""

    def __str__(self) -> str:
        """Gives the verdict and every discrepancy with its clause."""
        lines = [str(self.verdict)]
        for one in self.discrepancies:
            because = f"; {one.reason}" if one.reason else ""
            lines.append(f"{one.name} is {one.claimed:g}, should be {one.expected}{because} ({one.clause})")
        return "\n".join(lines)


def check_counts(claimed: Claims, trace: str | Iterable[Event]) -> CountsVerdict:
    """Judges the counts of a run by its trace.

    Args:
        claimed: Any of the fields of `Counts` and `acceptance_rate`, by name; NaN is a rate that does not exist.
        trace: JSON lines in the format of `reference.trace`, or events. Judge them with `check_trace` first: a trace
            that is not allowed can still be counted.

    Raises:
        ParameterError: If something claimed has another name.
        TraceFormatError: If a line is not an event of the format.

    Spec: COST-01 to COST-05.
    """
    events = tuple(from_jsonl(trace) if isinstance(trace, str) else trace)
    check_names(claimed)
    counts = _counted(events)
    right: dict[str, float] = {**asdict(counts), "acceptance_rate": counts.acceptance_rate}
    return verdict_on(
        Discrepancy(name, value, f"{right[name]:g}", _CLAUSES[name], _misreading(name, value, counts, events))
        for name, value in claimed.items()
        if not equal(value, right[name])
    )


def _counted(events: tuple[Event, ...]) -> Counts:
    """Counts a trace; a tick whose rows are computed in several calls is one tick, and one call as COST-01 means it."""
    counts = asdict(count(events))
    return Counts(**counts | {"ticks": len({event.tick for event in events if isinstance(event, Advance)})})


def _misreading(name: str, value: Number, counts: Counts, events: tuple[Event, ...]) -> str:
    """Names the common way of counting that gives a wrong number."""
    drafted = sum(isinstance(event, Draft) for event in events)
    unjudged = drafted - counts.accepted - counts.rejected
    start = events[0] if events and isinstance(events[0], Start) else None
    bonus = counts.committed - 1 - counts.accepted - counts.rejected
    abandoned = next((len(event.abandoned) for event in events if isinstance(event, Finish)), 0)
    readings: dict[str, tuple[tuple[float, str], ...]] = {
        "ticks": (
            (counts.ticks + (start.recurrence_depth if start else 1), "this counts the recurrences of the prefill"),
            (counts.ticks + 1, "this counts the prefill"),
            (counts.lane_ticks, "this counts the rows"),
        ),
        "lane_ticks": ((counts.ticks, "this counts the calls, not their rows"),),
        "prelude_calls": ((counts.committed, "this counts the new tokens"),),
        "readout_calls": ((counts.committed - 1 + drafted, "this counts rows read out, not calls"),),
        "accepted": (
            (counts.accepted + bonus, "this counts tokens that were never drafted, bonus tokens for example"),
            (counts.committed, "this counts all new tokens"),
            (counts.accepted - 1, "this leaves out a correctly drafted token that ended the run"),
        ),
        "rejected": (
            (counts.flushed, "this counts the drafts behind a rejection, which nobody judged"),
            (counts.rejected + unjudged, "this counts the drafts that nobody judged"),
        ),
        "acceptance_rate": (
            (ratio(counts.accepted, drafted), "this divides by all drafts, those that nobody judged included"),
            (ratio(counts.accepted, counts.committed), "this divides by all new tokens"),
            (ratio(counts.committed, drafted), "this counts tokens that were never drafted"),
        ),
        "flushed": (
            (counts.rejected, "this counts flushes, not the lanes that they drop"),
            (counts.flushed - counts.rejected, "this leaves out the rejected lanes"),
            (counts.flushed + abandoned, "this counts the lanes that the end of the run abandons"),
        ),
        "committed": ((counts.committed - 1, "this leaves out the token of the prefill"),),
    }
    return next((reason for number, reason in readings[name] if equal(value, number)), "")


def check_names(claimed: Claims) -> None:
    """Holds that everything claimed has a name of ours.

    Raises:
        ParameterError: If not.
    """
    unknown = sorted(claimed.keys() - _CLAUSES.keys())
    if unknown:
        raise ParameterError(f"claimed={unknown} is none of {sorted(_CLAUSES)} (COST-05)")


def verdict_on(discrepancies: Iterable[Discrepancy]) -> CountsVerdict:
    """Gives EXACT if there are none."""
    found = tuple(discrepancies)
    return CountsVerdict(Verdict.WRONG if found else Verdict.EXACT, found)


def equal(one: Number, other: Number) -> bool:
    """Tells whether two numbers agree to nine digits; NaN agrees with NaN."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=_RATE_TOLERANCE)


def ratio(part: Number, whole: Number) -> float:
    """Divides; NaN where there is nothing to divide by."""
    return part / whole if whole else math.nan

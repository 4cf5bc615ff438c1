"""What a decoding cost and what became of its drafts, counted from its events.

Counts cover decoding after the prefill, but for `committed`, which counts every new token (COST-01 to COST-05).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from reference.schedule import Accept, Advance, Commit, Draft, Event, Flush, Inject, Reject


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Totals of one decoding."""

    ticks: int
    """Batched recurrent calls (COST-01)."""
    lane_ticks: int
    """Rows of these calls, summed (COST-01)."""
    prelude_calls: int
    """Positions started: the prelude runs once for each (COST-02)."""
    readout_calls: int
    """Ticks after which something was read out: one batched readout each (COST-02)."""
    accepted: int
    """Judged drafts that equal the full-depth token (COST-03)."""
    rejected: int
    """Judged drafts that do not."""
    flushed: int
    """Lanes dropped by rejections, the rejected ones included (COST-04)."""
    committed: int
    """New tokens, the prefill's included (COST-05)."""

    @property
    def acceptance_rate(self) -> float:
        """Accepted drafts over judged drafts; NaN where none was judged (COST-03)."""
        judged = self.accepted + self.rejected
        return self.accepted / judged if judged else math.nan


def count(events: Iterable[Event]) -> Counts:
    """Counts the events of one decoding."""
    ticks = lane_ticks = prelude_calls = accepted = rejected = flushed = committed = 0
    read_out_after: set[int] = set()
    for event in events:
        match event:
            case Advance():
                ticks += 1
                lane_ticks += len(event.lanes)
            case Inject():
                prelude_calls += 1
            case Accept():
                accepted += 1
            case Reject():
                rejected += 1
            case Flush():
                flushed += len(event.positions)
            case Commit():
                committed += 1
                read_out_after.add(event.tick)
            case Draft():
                read_out_after.add(event.tick)
            case _:
                pass
    return Counts(
        ticks=ticks,
        lane_ticks=lane_ticks,
        prelude_calls=prelude_calls,
        readout_calls=len(read_out_after - {0}),  # tick 0 is the prefill
        accepted=accepted,
        rejected=rejected,
        flushed=flushed,
        committed=committed,
    )

"""Seconds per token of AR, DtV and WFD in closed form.

All three are sums over the calls of one period of the schedule, at a fixed context:

- AR: T recurrences of one row, a prelude and a readout for every token.
- DtV: a round drafts with one row at a time and verifies all rows in one slot; it yields
  `1 + alpha + ... + alpha**gamma` tokens.
- WFD: what a tick computes depends only on the ticks since the wave last (re)started. A token whose draft was accepted
  costs the `d` ticks of the running wave, S seconds; one whose draft was rejected costs a restart, T ticks and A
  seconds. So a token takes `alpha * S + (1 - alpha) * A`, as its ticks are `alpha * d + (1 - alpha) * T` (COST-06).

With an average depth below T, runs take the whole depth below it or above it, and costs lie on the line between the
two (`closed_forms.mixed_depths`). A run at a depth of at most d drafts nothing: it is AR's.

With a batch, the sequences of AR and DtV run in step. Waves do not, since each restarts when its own draft fails: the
closed form takes their mean rows for every tick.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reference.cost.acceptance import check_rate
from reference.cost.latency import Seconds, Setting
from reference.cost.shapes import Part
from reference.errors import check_whole_number
from reference.schedule import check_draft_depth


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCost:
    """What one committed token of every sequence takes, on average over a long run."""

    seconds: Seconds
    """Time between two tokens of a sequence."""
    ticks: float
    """Recurrent calls."""
    rows: float
    """Rows of these calls for each sequence: recurrences computed for a token, T of which are needed."""

    @property
    def rows_per_tick(self) -> float:
        """Mean rows of a recurrent call, for each sequence."""
        return self.rows / self.ticks

    def __add__(self, other: "TokenCost") -> "TokenCost":
        """Gives the cost of both."""
        return TokenCost(
            seconds=self.seconds + other.seconds, ticks=self.ticks + other.ticks, rows=self.rows + other.rows
        )

    def __mul__(self, times: float) -> "TokenCost":
        """Gives the cost of as many."""
        return TokenCost(seconds=self.seconds * times, ticks=self.ticks * times, rows=self.rows * times)


_NOTHING: Final = TokenCost(seconds=Seconds(), ticks=0.0, rows=0.0)
"""What nothing costs."""


def _mean(costs: Iterable[tuple[TokenCost, float]]) -> TokenCost:
    """Gives the mean of costs, each with its share."""
    return sum((cost * share for cost, share in costs), start=_NOTHING)


def ar(setting: Setting) -> TokenCost:
    """Gives the cost of a token of AR; with an average depth it depends on nothing but that mean."""
    return _mean((_ar(one), share) for one, share in setting.at_depths())


def _ar(setting: Setting) -> TokenCost:
    depth = float(setting.shape.recurrence_depth)
    one = (1.0, 1.0)
    seconds = setting.call(Part.RECURRENT, one) * depth + _ends(setting)
    return TokenCost(seconds=seconds, ticks=depth, rows=depth)


def dtv(setting: Setting, *, draft_depth: int, draft_length: int, acceptance_rate: float) -> TokenCost:
    """Gives the mean cost of a token of DtV, for drafts that are right independently of each other."""
    check_draft_depth(draft_depth, setting.shape.recurrence_depth, clause="DTV-01")
    check_whole_number("draft_length", draft_length, minimum=1, clause="DTV-02")
    check_rate(acceptance_rate)
    return _mean((_dtv(one, draft_depth, draft_length, acceptance_rate), share) for one, share in setting.at_depths())


def _dtv(setting: Setting, draft_depth: int, draft_length: int, acceptance_rate: float) -> TokenCost:
    full = setting.shape.recurrence_depth
    if full <= draft_depth:
        return _ar(setting)
    sources, one = float(draft_length + 1), (1.0, 1.0)
    drafting = setting.call(Part.RECURRENT, one) * (sources * draft_depth)
    starts = setting.call(Part.PRELUDE, one) * sources
    proposals = setting.call(Part.READOUT, one) * float(draft_length)
    together = (1.0, sources)
    verifying = setting.call(Part.RECURRENT, together) * float(full - draft_depth)
    verdicts = setting.call(Part.READOUT, together)
    tokens = sum(acceptance_rate**power for power in range(draft_length + 1))
    return TokenCost(
        seconds=(drafting + starts + proposals + verifying + verdicts) * (1.0 / tokens),
        ticks=(draft_length * draft_depth + full) / tokens,
        rows=sources * full / tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveCost:
    """The two prices that WFD pays for a token."""

    running: TokenCost
    """S: the draft was accepted, the wave runs on for d ticks."""
    restart: TokenCost
    """A: the draft was rejected, the wave is built up again in T ticks."""

    def at(self, acceptance_rate: float) -> TokenCost:
        """Gives the mean price: `alpha * S + (1 - alpha) * A`."""
        return self.running * acceptance_rate + self.restart * (1.0 - acceptance_rate)


def wave(setting: Setting, *, draft_depth: int) -> WaveCost:
    """Gives what WFD pays for a token after an accepted and after a rejected draft; exact for one sequence."""
    check_draft_depth(draft_depth, setting.shape.recurrence_depth, clause="WFD-01")
    waves = [(_wave(one, draft_depth), share) for one, share in setting.at_depths()]
    return WaveCost(
        running=_mean((one.running, share) for one, share in waves),
        restart=_mean((one.restart, share) for one, share in waves),
    )


def _wave(setting: Setting, draft_depth: int) -> WaveCost:
    full = setting.shape.recurrence_depth
    if full <= draft_depth:
        same = _ar(setting)
        return WaveCost(running=same, restart=same)
    start = setting.call(Part.PRELUDE, (1.0, 1.0))
    # Drafts due while the wave builds up; one due at tick T itself starts a lane only if the wave runs on.
    num_early = float((full - 1) // draft_depth)
    return WaveCost(
        running=_block(setting, draft_depth, range(full + 1, full + draft_depth + 1), start),
        restart=_block(setting, draft_depth, range(1, full + 1), start * (1.0 + num_early)),
    )


def wfd(setting: Setting, *, draft_depth: int, acceptance_rate: float) -> TokenCost:
    """Gives the mean cost of a token of WFD, for drafts that are right independently of each other."""
    check_draft_depth(draft_depth, setting.shape.recurrence_depth, clause="WFD-01")
    check_rate(acceptance_rate)
    return _mean((_wfd(one, draft_depth, acceptance_rate), share) for one, share in setting.at_depths())


def _wfd(setting: Setting, draft_depth: int, acceptance_rate: float) -> TokenCost:
    if setting.batch > 1 and draft_depth < setting.shape.recurrence_depth:
        return _waves(setting, draft_depth, acceptance_rate)
    return _wave(setting, draft_depth).at(acceptance_rate)


def lane_depths(tick: int, *, full_depth: int, draft_depth: int) -> list[int]:
    """Gives the depths, after tick `tick` of an undisturbed wave, of the lanes that it advanced, oldest first.

    Ticks count from the start of the wave, from 1. Lane k starts after tick `k * d` and leaves after `k * d + T`.
    """
    oldest, youngest = max(0, -((full_depth - tick) // draft_depth)), (tick - 1) // draft_depth
    return [tick - lane * draft_depth for lane in range(oldest, youngest + 1)]


def groups_of(depths: list[int], recurrence_slots: int | None) -> list[tuple[float, float]]:
    """Gives the groups in which lanes at `depths`, before the call, read slots: (how many groups, rows in each)."""
    slots = Counter(depths if recurrence_slots is None else (depth % recurrence_slots for depth in depths))
    return [(float(count), float(rows)) for rows, count in sorted(Counter(slots.values()).items())]


def _block(setting: Setting, draft_depth: int, ticks: range, starts: Seconds) -> TokenCost:
    """Adds up consecutive ticks of an undisturbed wave."""
    full = setting.shape.recurrence_depth
    calls: Counter[tuple[tuple[float, float], ...]] = Counter()
    readouts: Counter[int] = Counter()
    rows = 0
    for tick in ticks:
        depths = lane_depths(tick, full_depth=full, draft_depth=draft_depth)
        calls[tuple(groups_of([depth - 1 for depth in depths], setting.recurrence_slots))] += 1
        readouts[(depths[0] == full) + (depths[-1] == draft_depth)] += 1
        rows += len(depths)
    seconds = starts
    for groups, times in calls.items():  # most ticks of a wave are alike
        seconds = seconds + setting.call(Part.RECURRENT, *groups) * float(times)
    for num_due, times in readouts.items():
        if num_due:
            seconds = seconds + setting.call(Part.READOUT, (1.0, float(num_due))) * float(times)
    return TokenCost(seconds=seconds, ticks=float(len(ticks)), rows=float(rows))


def _waves(setting: Setting, draft_depth: int, acceptance_rate: float) -> TokenCost:
    """Gives WFD's mean cost for a batch of waves, each of which restarts on its own."""
    alpha, beta = acceptance_rate, 1.0 - acceptance_rate
    full = setting.shape.recurrence_depth
    num_ticks = alpha * draft_depth + beta * full
    rows = num_groups = readouts = 0.0
    for share, ticks in ((beta, range(1, full + 1)), (alpha, range(full + 1, full + draft_depth + 1))):
        for tick in ticks:
            depths = lane_depths(tick, full_depth=full, draft_depth=draft_depth)
            groups = groups_of([depth - 1 for depth in depths], setting.recurrence_slots)
            rows += share * len(depths)
            num_groups += share * sum(count for count, _ in groups)
            readouts += share * ((depths[0] == full) + (depths[-1] == draft_depth))
    starts = alpha + beta * (1.0 + (full - 1) // draft_depth)
    # If d divides T all waves keep step modulo d: readouts and new lanes come together, once in d ticks.
    num_meetings = num_ticks / draft_depth if full % draft_depth == 0 else num_ticks
    recurrence = setting.call(Part.RECURRENT, (num_groups / num_ticks, rows / num_groups))
    readout = setting.call(Part.READOUT, (1.0, readouts / num_meetings))
    prelude = setting.call(Part.PRELUDE, (1.0, starts / num_meetings))
    return TokenCost(seconds=recurrence * num_ticks + (readout + prelude) * num_meetings, ticks=num_ticks, rows=rows)


def _ends(setting: Setting) -> Seconds:
    """Times the prelude and the readout of one row."""
    return setting.call(Part.PRELUDE, (1.0, 1.0)) + setting.call(Part.READOUT, (1.0, 1.0))

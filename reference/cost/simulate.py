"""Seconds per token by running the real schedules, with an acceptance process in place of a model.

Every tick that a schedule plans is timed as the calls that an engine would make of it: one recurrent call of all lanes,
one readout, one prelude for what was injected. The closed forms of `reference.cost.decoding` are the long-run means of
this.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from reference.cost.acceptance import Acceptance, Bernoulli
from reference.cost.latency import Seconds, Setting, seconds_of
from reference.cost.shapes import Part
from reference.cost.work import Call, Group
from reference.counts import Counts, count
from reference.schedule import Event, Inject, Lane, Purpose, Schedule, State, Tick, begin
from reference.stopping import Stopping

_RIGHT: Final = 0
_WRONG: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What became of simulated sequences."""

    seconds: Seconds
    """Time from the first token to the last."""
    counts: tuple[Counts, ...]
    """Totals of each sequence."""
    num_calls: int
    """Recurrent calls; in each all sequences took part that had not finished."""

    @property
    def tokens(self) -> int:
        """Tokens of all sequences after the prefill's."""
        return sum(one.committed - 1 for one in self.counts)

    @property
    def seconds_per_token(self) -> float:
        """Time between two tokens of a sequence, on average."""
        return self.seconds.total * len(self.counts) / self.tokens

    @property
    def acceptance_rate(self) -> float:
        """Accepted over judged drafts of all sequences."""
        accepted = sum(one.accepted for one in self.counts)
        return accepted / (accepted + sum(one.rejected for one in self.counts))


@dataclass(slots=True)
class _Sequence:
    """One sequence on its way."""

    schedule: Schedule
    acceptance: Acceptance
    state: State
    events: list[Event]

    def answer(self, tick: Tick) -> tuple[int, ...]:
        """Gives the tokens of a tick's readouts: a verification says the right token, a draft as the process has it."""
        first = self.schedule.stopping.prompt_length
        return tuple(
            _RIGHT
            if one.purpose is Purpose.VERIFY or self.acceptance.accepts(one.lane.position + 1 - first)
            else _WRONG
            for one in tick.readouts
        )


def simulate(
    setting: Setting,
    make_schedule: Callable[[Stopping], Schedule],
    acceptances: Sequence[Acceptance],
    *,
    num_tokens: int,
    prompt_length: int | None = None,
    most_calls: int | None = None,
) -> Simulated:
    """Decodes sequences together, one for each acceptance process, and adds up what their calls take.

    Args:
        setting: What runs where. Its batch is not looked at: it is the number of processes.
        make_schedule: Makes the schedule of a sequence from its limits.
        acceptances: Which drafts are right, for each sequence.
        num_tokens: Tokens of each sequence, the prefill's included.
        prompt_length: Tokens before them: attention then reads what a real run would have by then. None keeps the
            context at that of `setting`, as the closed forms have it.
        most_calls: Recurrent calls after which to stop, finished or not; None goes on to the end.
    """
    start = 1 if prompt_length is None else prompt_length
    limits = Stopping(prompt_length=start, max_new_tokens=num_tokens, context_length=start + num_tokens)
    sequences = []
    for acceptance in acceptances:
        schedule = make_schedule(limits)
        state, events = begin(schedule, _RIGHT)
        sequences.append(_Sequence(schedule, acceptance, state, list(events)))
    clock = _Clock(setting, is_growing=prompt_length is not None)
    # The lane of the first token: its prelude belongs to decoding, as in COST-02.
    seconds, num_calls = clock.time(Part.PRELUDE, [_injected(one.events) for one in sequences]), 0
    while running := [one for one in sequences if one.state.finish_reason is None]:
        if num_calls == most_calls:
            break
        ticks = [one.schedule.plan(one.state) for one in running]
        seconds = seconds + clock.time(Part.RECURRENT, [tick.lanes for tick in ticks])
        seconds = seconds + clock.time(Part.READOUT, [[due.lane for due in tick.readouts] for tick in ticks])
        injected = []
        for one, tick in zip(running, ticks, strict=True):
            one.state, news = one.schedule.observe(one.state, one.answer(tick))
            one.events += news
            injected.append(_injected(news))
        seconds = seconds + clock.time(Part.PRELUDE, injected)
        num_calls += 1
    return Simulated(seconds=seconds, counts=tuple(count(one.events) for one in sequences), num_calls=num_calls)


def simulate_runs(
    setting: Setting,
    make_schedule: Callable[[int, Stopping], Schedule],
    acceptances: Sequence[Acceptance],
    *,
    num_tokens: int,
    seed: int = 0,
) -> tuple[Simulated, ...]:
    """Decodes one sequence after another, each to a whole depth that is drawn so that the mean is `average_depth`.

    The schedules know one depth for all positions of a run, so the average enters from run to run, as in the closed
    forms. All runs have as many tokens, so the share of the runs at a depth is that of the tokens.

    Args:
        setting: What runs where.
        make_schedule: Makes the schedule of a run from its depth and its limits.
        acceptances: Which drafts are right, for each run.
        num_tokens: Tokens of each run, the prefill's included.
        seed: Of the draws of depths.
    """
    depths = setting.at_depths()
    runs = []
    for index, acceptance in enumerate(acceptances):
        at_depth, share = depths[0]
        if not Bernoulli(share, seed).accepts(index):
            at_depth, _ = depths[-1]
        make = partial(make_schedule, at_depth.shape.recurrence_depth)
        runs.append(simulate(at_depth, make, [acceptance], num_tokens=num_tokens))
    return tuple(runs)


class _Clock:
    """Times calls, and remembers the ones it has seen."""

    def __init__(self, setting: Setting, *, is_growing: bool) -> None:
        self._setting = setting
        self._is_growing = is_growing
        self._known: dict[Call, Seconds] = {}

    def time(self, part: Part, lanes: Sequence[Sequence[Lane]]) -> Seconds:
        """Times one call on the lanes of several sequences; without any lane there is no call."""
        groups: Counter[tuple[float, float]] = Counter()
        for one in lanes:
            slots: dict[int, list[Lane]] = {}
            for lane in one:
                slots.setdefault(self._slot(part, lane), []).append(lane)
            groups.update((float(len(rows)), self._cells(rows)) for rows in slots.values())
        if not groups:
            return Seconds()
        # A group's count is for one sequence, so that the mean over all sequences stands here.
        batch = float(len(lanes))
        named = tuple(Group(rows, cells, count=number / batch) for (rows, cells), number in sorted(groups.items()))
        call = Call(part, named, batch=batch)
        if call not in self._known:
            self._known[call] = seconds_of(call, self._setting)
        return self._known[call]

    def _slot(self, part: Part, lane: Lane) -> int:
        if part is not Part.RECURRENT:
            return 0
        shared = self._setting.recurrence_slots
        return lane.depth if shared is None else lane.depth % shared

    def _cells(self, lanes: Sequence[Lane]) -> float:
        context = max(lane.position for lane in lanes) + 1 if self._is_growing else self._setting.context
        return self._setting.software.cells(float(context))


def _injected(events: Sequence[Event]) -> list[Lane]:
    return [Lane(event.position, event.token, 0) for event in events if isinstance(event, Inject)]

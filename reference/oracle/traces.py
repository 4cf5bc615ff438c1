"""Judges the trace of somebody else's schedule: is every event one that the specification allows, and if not, which?

A trace in the format of `reference.trace` is walked along the schedule that its `Start` names. Nothing is compared with
a run of ours: the tokens are the trace's own, so the verdict speaks of the schedule alone. Whether the tokens are right
is for `check_tokens` to say.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from reference.ar import AR
from reference.dtv import DtV
from reference.errors import ParameterError
from reference.figures import terminal
from reference.figures.grid import snapshots
from reference.figures.scenes import scene
from reference.oracle.freedoms import FreedomTaken
from reference.oracle.rules import NotAllowedError
from reference.oracle.verdicts import Verdict
from reference.oracle.walk import Walk
from reference.oracle.words import describe
from reference.schedule import Event, Flush, Reject, Schedule, Start
from reference.stopping import Stopping
from reference.trace import from_jsonl
from reference.wfd import WFD

_CLAUSE_IN_MESSAGE: Final = re.compile(r"(.*) \(([A-Z]+-\d\d)\)")
"""The form of every parameter error: the reason, then the clause."""
_WIDTH: Final = 80
"""Columns that a picture may take."""


@dataclass(frozen=True, slots=True)
class Objection:
    """The first event that is not allowed."""

    index: int
    """Its number in the trace, from 0; the number of events if something is missing at the end."""
    event: Event | None
    """The event; None behind the last one."""
    clause: str
    """The clause that it breaks."""
    reason: str
    """What is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceVerdict:
    """What became of a trace. Printed, it explains itself."""

    verdict: Verdict
    """EXACT or WRONG."""
    objection: Objection | None
    """The first event that is not allowed; None if there is none."""
    freedoms: tuple[FreedomTaken, ...]
    """What the trace did otherwise than our schedules do, and was free to, up to the objection."""
    events: tuple[Event, ...]
    """The whole trace."""

    def picture(self, glyphs: terminal.Glyphs = terminal.UNICODE) -> str:
        """Draws the wavefront as it was just before the objection; empty where there is none to draw.

        Args:
            glyphs: What to draw with.
        """
        if self.objection is None:
            return ""
        # The events before the objection were walked, so they can be drawn; a lone `Start` shows nothing.
        moments = list(snapshots(self.events[: self.objection.index])) if self.objection.index > 1 else []
        return terminal.states([scene(moments[-1])], width=_WIDTH, glyphs=glyphs).plain if moments else ""

    def as_json(self) -> dict[str, object]:
        """Gives the verdict as an object for machines, without the events and the picture."""
        found = self.objection
        return {
            "verdict": self.verdict,
            "events": len(self.events),
            "objection": found and {"index": found.index, "clause": found.clause, "reason": found.reason},
            "freedoms": [{"name": taken.freedom.name.lower(), "index": taken.index} for taken in self.freedoms],
        }

    def __str__(self) -> str:
        """Gives the verdict, the objection with its clause and picture, and the freedoms taken."""
        return self.explanation(terminal.UNICODE)

    def explanation(self, glyphs: terminal.Glyphs) -> str:
        """Gives the same as printing does, drawn with other glyphs."""
        lines = [f"{self.verdict}: {len(self.events)} events"]
        if self.objection is not None:
            lines += [f"event {self.objection.index}: {self.objection.reason} ({self.objection.clause})"]
            picture = self.picture(glyphs)
            lines += ["", picture, ""] if picture else []
        lines += [f"from event {taken.index} on: {taken.freedom.value}" for taken in self.freedoms]
        return "\n".join(lines).rstrip("\n")


def check_trace(
    trace: str | Iterable[Event],
    *,
    decoder: str | None = None,
    recurrence_depth: int | None = None,
    draft_depth: int | None = None,
    draft_length: int | None = None,
) -> TraceVerdict:
    """Judges the trace of one run.

    Args:
        trace: JSON lines in the format of `reference.trace`, or its events.
        decoder: `ar`, `dtv` or `wfd`; None, here and below, is what the trace itself says.
        recurrence_depth: T.
        draft_depth: d.
        draft_length: gamma of DtV.

    Returns:
        The verdict, with the first event that is not allowed and the clause it breaks.

    Raises:
        TraceFormatError: If a line is not an event of the format; what cannot be read cannot be judged.

    Spec: NOT-03, SMP-11 to SMP-15, AR-01, DTV-03 to DTV-06, WFD-03 to WFD-05, KV-03, KV-04, CONF-07.
    """
    events = tuple(from_jsonl(trace) if isinstance(trace, str) else trace)
    asked = {
        "decoder": decoder,
        "recurrence_depth": recurrence_depth,
        "draft_depth": draft_depth,
        "draft_length": draft_length,
    }
    walk: Walk | None = None
    index = 0
    try:
        walk = Walk(_schedule(events, asked))
        for index, event in _judged_order(events):
            walk.take(index, event)
        index = len(events)
        walk.close(index)
    except NotAllowedError as error:
        event_at = events[index] if index < len(events) else None
        objection = Objection(index, event_at, error.clause, error.reason)
        freedoms = walk.freedoms if walk else ()
        return TraceVerdict(verdict=Verdict.WRONG, objection=objection, freedoms=freedoms, events=events)
    return TraceVerdict(verdict=Verdict.EXACT, objection=None, freedoms=walk.freedoms, events=events)


def _schedule(events: Sequence[Event], asked: dict[str, str | int | None]) -> Schedule:
    """Makes the schedule that a trace's `Start` names.

    Raises:
        NotAllowedError: If there is no `Start`, or it contradicts itself, a rule or what was asked for.
    """
    start = events[0] if events else None
    if not isinstance(start, Start):
        found = describe(start) if start else "nothing"
        raise NotAllowedError("NOT-03", f"a trace opens with a start event, not with {found}")
    for name, value in asked.items():
        if value is not None and getattr(start, name) != value:
            raise NotAllowedError("NOT-03", f"the trace is one of {name}={getattr(start, name)}, not {value}")
    try:
        stopping = Stopping(
            prompt_length=start.prompt_length,
            max_new_tokens=start.max_new_tokens,
            context_length=start.context_length,
            stop_ids=frozenset(start.stop_ids),
        )
        schedule = _made(start, stopping)
    except ParameterError as error:
        parts = _CLAUSE_IN_MESSAGE.fullmatch(str(error))
        assert parts is not None, "every parameter error names its clause"
        raise NotAllowedError(parts[2], parts[1]) from error
    for name in ("draft_depth", "draft_length"):
        if getattr(start, name) != getattr(schedule, name):
            what = f"{name} of {start.decoder} is {getattr(schedule, name)}, not {getattr(start, name)}"
            raise NotAllowedError("NOT-03", what)
    return schedule


def _made(start: Start, stopping: Stopping) -> Schedule:
    match start.decoder:
        case "ar":
            return AR(recurrence_depth=start.recurrence_depth, stopping=stopping)
        case "dtv":
            length = start.draft_length
            if length is None:
                raise NotAllowedError("DTV-02", "dtv without a draft_length")
            return DtV(start.recurrence_depth, start.draft_depth, length, stopping)
        case "wfd":
            return WFD(start.recurrence_depth, start.draft_depth, stopping)
        case other:
            raise NotAllowedError("NOT-03", f"decoder={other!r} is none of ar, dtv, wfd")


def _judged_order(events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """Gives all events but `Start`, numbered; a flush that stands before its rejection is put behind it.

    Dropping the lanes first and writing the verdict down afterwards is the same rejection.
    """
    numbered = list(enumerate(events))[1:]
    for _, group in groupby(numbered, key=lambda pair: getattr(pair[1], "tick", None)):
        tick = list(group)
        rejection = next((place for place, (_, event) in enumerate(tick) if isinstance(event, Reject)), None)
        flushes = [place for place, (_, event) in enumerate(tick) if isinstance(event, Flush)]
        if rejection is not None and len(flushes) == 1 and flushes[0] < rejection:
            tick.insert(rejection, tick.pop(flushes[0]))
        yield from tick

"""Checks traces against the TLA+ models: is what a decoder did a behaviour of `WFD.tla` or `DtV.tla`?

A trace is the list of events of one run (`reference.trace`). TLC replays the model beside it: a step of the model is
taken only while the events that it stands for are those of the trace. Where no step fits any further, the trace is
refused, and the first event that no step can explain is named. AR is WFD with `d = T` (WFD-06).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Reject, Start
from spec import tlc
from spec.tlc import Case, Value

_REPLAY: Final = r"""
VARIABLES run, at, failed
AtPar == <<run, at, failed>>
Here == Logs[run]
\* Only tokens that the trace names in the tick at hand can be said by a head.
\* `at` is the next event to be explained; those of the start go with the first tick.
TraceTokens == Said[run][IF at > Len(Said[run]) THEN Len(Said[run]) ELSE at]
Agree(said, from) ==
  LET rest == Len(Here) - from + 1
      most == IF Len(said) < rest THEN Len(said) ELSE rest
  IN CHOOSE n \in 0..most :
       /\ \A i \in 1..n : said[i] = Here[from + i - 1]
       /\ n = most \/ said[n + 1] # Here[from + n]
ReplayInit ==
  /\ run \in 1..Len(Logs) /\ par = Params[run] /\ at = 1
  /\ Init
  /\ failed = (Agree(StartEvents, 1) < Len(StartEvents))
Replay ==
  /\ ~failed /\ Running /\ UNCHANGED run
  /\ Step
  /\ LET from == IF ticks = 0 THEN 1 + Len(StartEvents) ELSE at
         same == Agree(Happened, from)
     IN at' = from + same /\ failed' = (same < Len(Happened))
Rest == (failed \/ ~Running) /\ UNCHANGED <<AllVars, run, at, failed>>
Reached == IF ticks > 0 THEN at ELSE 1 + Agree(StartEvents, 1)
Report ==
  (failed \/ ~Running) =>
    PrintT(ToString(<<run, Reached, ~failed /\ Reached = Len(Here) + 1>>))
ReplaySpec == ReplayInit /\ [][Replay \/ Rest]_<<AllVars, run, at, failed>>
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Where a trace leaves the model."""

    line: int
    """Line of the JSON form, from 1, of the first event that no step of the model explains."""
    event: Event | None
    """That event; None if the trace ends where the model goes on."""


def refusals(traces: Sequence[Sequence[Event]]) -> list[Refusal | None]:
    """Checks traces, and gives for each None if it is a behaviour of the model, else where it leaves it.

    Args:
        traces: Complete traces, each opened by its `Start`.

    Raises:
        TLCError: If TLC is missing or does not answer.
    """
    found: list[Refusal | None] = [None] * len(traces)
    for module, decoders in (("WFD", ("ar", "wfd")), ("DtV", ("dtv",))):
        numbers = [number for number, trace in enumerate(traces) if _start(trace).decoder in decoders]
        if numbers:
            verdicts = _check(module, [traces[number] for number in numbers])
            for number, verdict in zip(numbers, verdicts, strict=True):
                found[number] = verdict
    return found


def _check(module: str, traces: Sequence[Sequence[Event]]) -> list[Refusal | None]:
    """Runs TLC once on traces of one module."""
    definitions = [f"AllVars == {'vars' if module == 'WFD' else 'all'}"]
    for run, trace in enumerate(traces, start=1):
        definitions += _definitions(run, trace[1:])
    count = len(traces)
    definitions += [
        f"{name} == <<{', '.join(f'{name}_{run}' for run in range(1, count + 1))}>>" for name in ("Logs", "Said")
    ]
    cases = [_case(_start(trace)) for trace in traces]
    definitions += [f"Params == <<{', '.join(case.tla() for case in cases)}>>"]
    result = tlc.check(
        module,
        dict.fromkeys(cases),
        specification="ReplaySpec",
        extra="\n".join(definitions) + _REPLAY,
        settings="CONSTANT Tokens <- TraceTokens",
        invariants=["Report"],
    )
    if result.violated is not None:
        raise tlc.TLCError(result.log[-2000:])
    reached = dict.fromkeys(range(1, count + 1), 0)
    accepted: set[int] = set()
    for number, at, is_accepted in result.printed():
        assert isinstance(number, int)
        assert isinstance(at, int)
        reached[number] = max(reached[number], at)
        if is_accepted:
            accepted.add(number)
    return [
        None if run in accepted else Refusal(at + 1, trace[at] if at < len(trace) else None)
        for (run, at), trace in zip(reached.items(), traces, strict=True)
    ]


def _start(trace: Sequence[Event]) -> Start:
    first = trace[0]
    assert isinstance(first, Start), "a trace is opened by its start"
    return first


def _case(start: Start) -> Case:
    """Gives the model's parameters of a run."""
    return Case(
        T=start.recurrence_depth,
        d=start.draft_depth,
        gamma=start.draft_length or 1,
        P=start.prompt_length,
        M=start.max_new_tokens,
        X=start.context_length,
        stops=start.stop_ids,
        tokens=(),
    )


def _definitions(run: int, events: Sequence[Event]) -> list[str]:
    """Defines one trace, event by event: TLC reads many short definitions quickly, and one long one slowly."""
    lines = [f"E_{run}_{number} == {_tla(plain(event))}" for number, event in enumerate(events)]
    lines.append(f"Logs_{run} == <<{', '.join(f'E_{run}_{number}' for number in range(len(events)))}>>")
    # The tokens of each tick, known from every event of that tick on. The start's events go with the first tick.
    bounds = [number for number, event in enumerate(events) if isinstance(event, Advance)]
    bounds = [0, *bounds[1:], len(events)]
    names = []
    for tick, (begin, end) in enumerate(pairwise(bounds)):
        tokens = {token for event in events[begin:end] for token in _tokens(event)} or {0}
        lines.append(f"T_{run}_{tick} == {{{', '.join(map(str, sorted(tokens)))}}}")
        names += [f"T_{run}_{tick}"] * (end - begin)
    lines.append(f"Said_{run} == <<{', '.join(names) or '{0}'}>>")
    return lines


def _tokens(event: Event) -> Iterable[int]:
    match event:
        case Commit() | Draft() | Inject():
            return (event.token,)
        case Reject():
            return (event.draft_token, event.verified_token)
        case _:
            return ()


def _tla(value: Value) -> str:
    match value:
        case list():
            return f"<<{', '.join(map(_tla, value))}>>"
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def plain(event: Event) -> Value:
    """Gives an event in the form of the models: its kind, its tick, and its other fields."""
    kind = type(event).__name__.lower()
    match event:
        case Advance():
            return [kind, event.tick, [[lane.position, lane.token, lane.depth] for lane in event.lanes]]
        case Draft() | Commit() | Inject():
            return [kind, event.tick, event.position, event.token]
        case Accept():
            return [kind, event.tick, event.position]
        case Reject():
            return [kind, event.tick, event.position, event.draft_token, event.verified_token]
        case Flush():
            return [kind, event.tick, list(event.positions)]
        case Finish():
            return [kind, event.tick, str(event.reason), list(event.abandoned)]
        case Start():
            raise AssertionError(event)

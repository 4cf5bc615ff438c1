"""Vectors of kind *schedule*: what every readout says, and then exactly what a decoder does. No model is needed.

What a readout says depends on the position alone, so a script is two lists. Right and wrong tokens differ from each
other at every position: nothing can be right by accident.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from operator import eq
from typing import Final

from reference.ar import AR
from reference.counts import count
from reference.dtv import DtV
from reference.oracle.counts import check_counts, check_names
from reference.oracle.traces import check_trace
from reference.oracle.vectors.answers import RIGHT, Answer, Finding, wrong
from reference.oracle.vectors.form import JsonObject, Vector
from reference.oracle.vectors.kind import INTEGER, INTEGERS, NUMBER, TEXT, Field, Kind
from reference.oracle.verdicts import Verdict
from reference.schedule import (
    Accept,
    Advance,
    Commit,
    Draft,
    Event,
    Events,
    Finish,
    Flush,
    Inject,
    Purpose,
    Readout,
    Reject,
    Schedule,
    begin,
)
from reference.stopping import Stopping
from reference.trace import TraceFormatError, from_jsonl, to_jsonl
from reference.wfd import WFD

_STOP: Final = 2
"""The stop id."""
_VERIFIED: Final = 100
"""The full-depth token of new token `k` is this plus `k`."""
_MISDRAFTED: Final = 500
"""A wrong draft of new token `k` is this plus `k`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A line of the table from which the vectors are made."""

    name: str
    """Name of the vector."""
    comment: str
    """What it is about."""
    flag: str = "schedule"
    """What it means to fail it."""
    decoder: str = "wfd"
    """`ar`, `dtv` or `wfd`."""
    full: int = 4
    """T."""
    draft: int = 1
    """d."""
    length: int | None = None
    """gamma."""
    drafts: str = ""
    """Whether the draft of new token 1, 2, ... is right, `+` or `-`; `s` is a wrong one that is the stop id. The last
    one stands for all that follow."""
    prompt: int = 2
    """P."""
    budget: int = 9
    """M."""
    context: int = 64
    """X."""
    stop_at: int | None = None
    """Which new token is the stop id."""


CASES: Final = (
    Case(name="ar-plain", decoder="ar", draft=4, budget=4, comment="One lane, T ticks a token."),
    Case(name="ar-depth-1", decoder="ar", full=1, draft=1, budget=4, comment="T = 1: a token every tick."),
    Case(name="ar-stop", decoder="ar", draft=4, stop_at=2, flag="stop", comment="The stop id is the last token."),
    Case(name="ar-context", decoder="ar", draft=4, context=4, flag="limit", comment="The last token needs no cell."),
    Case(name="wfd-all-right", drafts="+", comment="The wave fills, then commits a token every d = 1 tick."),
    Case(name="wfd-none-right", drafts="-", budget=5, flag="flush", comment="Every verification flushes: AR's ticks."),
    Case(name="wfd-mixed", drafts="++-+--+", flag="flush", comment="Right and wrong drafts in turn."),
    Case(name="wfd-first-wrong", drafts="-+", flag="flush", comment="The first judged draft is wrong."),
    Case(name="wfd-last-wrong", drafts="++++++-", flag="flush", comment="The last judged draft is wrong."),
    Case(name="wfd-d2", draft=2, drafts="++-+", comment="d = 2 of T = 4: at most two lanes."),
    Case(name="wfd-d3-of-4", draft=3, drafts="++-+", comment="d does not divide T: never a draft with a verification."),
    Case(name="wfd-d2-of-5", full=5, draft=2, drafts="++-+", comment="d does not divide T: the width alternates."),
    Case(name="wfd-d3-of-7", full=7, draft=3, drafts="+-++", budget=7, comment="d does not divide T."),
    Case(name="wfd-d5-of-7", full=7, draft=5, drafts="+-+", budget=6, comment="d is more than half of T."),
    Case(name="wfd-d4-of-16", full=16, draft=4, drafts="++-+", budget=7, comment="Four lanes, four ticks apart."),
    Case(name="wfd-d4-of-32", full=32, draft=4, drafts="+++-+", budget=6, comment="The depths that Huginn is run at."),
    Case(name="wfd-full", draft=4, budget=4, flag="full-depth draft", comment="d = T: AR, tick for tick."),
    Case(name="wfd-depth-1", full=1, draft=1, budget=4, flag="full-depth draft", comment="T = d = 1."),
    Case(name="wfd-budget-0", drafts="+", budget=0, flag="limit", comment="A budget of 0: nothing is computed."),
    Case(name="wfd-budget-1", drafts="+", budget=1, flag="limit", comment="The prefill's token uses up the budget."),
    Case(name="wfd-budget-2", drafts="+", budget=2, flag="limit", comment="One lane: no second could be committed."),
    Case(name="wfd-budget-3", drafts="+", budget=3, flag="limit", comment="Two lanes, fewer than the wave could hold."),
    Case(name="wfd-stop-first", drafts="+", stop_at=0, flag="stop", comment="The prefill's token is the stop id."),
    Case(
        name="wfd-stop-in-wave",
        drafts="+",
        stop_at=3,
        flag="stop",
        comment="A right draft of the stop id, with lanes behind it, which are abandoned.",
    ),
    Case(
        name="wfd-stop-undrafted",
        drafts="++-+",
        stop_at=3,
        flag="stop",
        comment="The stop id is committed where another token was drafted: rejected, flushed, finished.",
    ),
    Case(
        name="wfd-stop-only-drafted",
        drafts="++s+",
        flag="stop",
        comment="A wrong draft is the stop id: it ends nothing.",
    ),
    Case(name="wfd-stop-last", drafts="+", budget=5, stop_at=4, flag="stop", comment="Stop id and budget: reason eos."),
    Case(name="wfd-context", drafts="+", context=7, flag="limit", comment="The context ends first."),
    Case(name="wfd-context-flush", drafts="+++-+", context=7, flag="limit", comment="A flush next to its end."),
    Case(name="wfd-context-full", drafts="+", prompt=7, context=7, flag="limit", comment="P = X: exactly one token."),
    Case(
        name="wfd-context-full-budget-1",
        drafts="+",
        prompt=7,
        context=7,
        budget=1,
        flag="limit",
        comment="P = X and a budget of 1: the reason is length.",
    ),
    Case(
        name="wfd-context-and-budget",
        drafts="++-+",
        context=6,
        budget=5,
        flag="limit",
        comment="Budget and context end at the same token: the reason is length.",
    ),
    Case(name="wfd-prompt-1", drafts="+-+", prompt=1, budget=6, comment="A prompt of one token."),
    Case(name="dtv-g1", decoder="dtv", length=1, drafts="++-+", comment="Rounds of one draft, one of them wrong."),
    Case(name="dtv-g2", decoder="dtv", length=2, drafts="++++-+", comment="Bonus tokens, then a rejection."),
    Case(name="dtv-g4", decoder="dtv", length=4, drafts="+++++-+", comment="The budget cuts the last round short."),
    Case(
        name="dtv-none-right", decoder="dtv", length=3, drafts="-", budget=5, flag="flush", comment="No draft is right."
    ),
    Case(name="dtv-one-round", decoder="dtv", length=99, drafts="+", budget=6, comment="gamma beyond the budget."),
    Case(name="dtv-d2", decoder="dtv", draft=2, length=2, drafts="+-++", comment="d = 2 of T = 4."),
    Case(name="dtv-d2-of-5", decoder="dtv", full=5, draft=2, length=3, drafts="++-+", comment="d does not divide T."),
    Case(
        name="dtv-full",
        decoder="dtv",
        draft=4,
        length=3,
        budget=4,
        flag="full-depth draft",
        comment="d = T: AR, tick for tick.",
    ),
    Case(
        name="dtv-stop-in-round",
        decoder="dtv",
        length=4,
        drafts="+",
        stop_at=3,
        flag="stop",
        comment="A right draft of the stop id inside a round: readouts behind it are not used.",
    ),
    Case(
        name="dtv-stop-only-drafted",
        decoder="dtv",
        length=4,
        drafts="+s+",
        flag="stop",
        comment="A wrong draft is the stop id: it ends nothing.",
    ),
    Case(
        name="dtv-context",
        decoder="dtv",
        length=4,
        drafts="+",
        context=7,
        flag="limit",
        comment="The context ends first.",
    ),
)
"""What the vectors are made from."""


def make() -> Iterator[Vector]:
    """Plays every case."""
    for case in CASES:
        problem = _input(case)
        events = play(problem)
        yield Vector(
            id=f"schedule/{case.name}",
            clauses=tuple(sorted(_clauses(case, events))),
            flag=case.flag,
            comment=case.comment,
            input=problem,
            expected={
                "token_ids": [event.token for event in events if isinstance(event, Commit)],
                "finish_reason": _reason(events),
                "counts": asdict(count(events)),
                "events": _as_json(events),
            },
        )


def play(problem: JsonObject) -> Events:
    """Runs one of our schedules on the input of a vector."""
    first, verified, drafted = problem["prompt_length"], problem["verified"], problem["drafted"]
    schedule = _schedule(problem)

    def says(readout: Readout) -> int:
        script = verified if readout.purpose is Purpose.VERIFY else drafted
        return int(script[readout.lane.position + 1 - first])

    state, events = begin(schedule, verified[0] if verified else None)
    while state.finish_reason is None:
        tick = schedule.plan(state)
        state, news = schedule.observe(state, tuple(says(readout) for readout in tick.readouts))
        events += news
    return events


def judge(vector: Vector, answer: Answer) -> Finding:
    """Judges the trace, if there is one, by the rules; tokens, reason and counts by the solution.

    A trace may use the freedoms of the specification; counts must then be those of the trace.
    """
    expected = vector.expected
    lines, counts = answer.objects("events"), answer.object("counts")
    trace = None if lines is None else _events(answer, lines)
    finding = RIGHT if trace is None else _judge_trace(vector, trace)
    if finding.verdict is not Verdict.EXACT:
        return finding
    ids, reason = answer.integers("token_ids"), answer.text("finish_reason")
    if ids is not None and ids != expected["token_ids"]:
        is_cut = all(map(eq, ids, expected["token_ids"]))  # right as far as both go: only the end is wrong
        return wrong("SMP-14" if is_cut else "AR-03", f"token_ids is {ids}, not {expected['token_ids']}")
    if reason not in {None, expected["finish_reason"]}:
        return wrong("SMP-14", f"finish_reason is {reason}, not {expected['finish_reason']}")
    if counts is not None:
        _check_claims(answer, counts)
        reference = from_jsonl(_as_lines(expected["events"])) if trace is None else trace
        verdict = check_counts(counts, reference)
        if verdict.discrepancies:
            one = verdict.discrepancies[0]
            return wrong(one.clause, f"{one.name} is {one.claimed:g}, should be {one.expected}")
    return finding


def _input(case: Case) -> JsonObject:
    end = min(case.prompt + case.budget, case.context + 1)
    numbers = range(end - case.prompt)
    verified = [_STOP if k == case.stop_at else _VERIFIED + k for k in numbers]
    wrongly = {"-": None, "s": _STOP}
    drafted = [-1, *verified[1:]][: len(verified)]
    for k in numbers[1:]:
        letter = case.drafts[min(k, len(case.drafts)) - 1] if case.drafts else "-"
        if letter in wrongly:
            drafted[k] = wrongly[letter] or _MISDRAFTED + k
    return {
        "decoder": case.decoder,
        "recurrence_depth": case.full,
        "draft_depth": case.draft,
        "draft_length": case.length,
        "prompt_length": case.prompt,
        "max_new_tokens": case.budget,
        "context_length": case.context,
        "stop_ids": [_STOP],
        "verified": verified,
        "drafted": drafted,
    }


def _schedule(problem: JsonObject) -> Schedule:
    stopping = Stopping(
        prompt_length=problem["prompt_length"],
        max_new_tokens=problem["max_new_tokens"],
        context_length=problem["context_length"],
        stop_ids=frozenset(problem["stop_ids"]),
    )
    full, draft = problem["recurrence_depth"], problem["draft_depth"]
    match problem["decoder"]:
        case "ar":
            return AR(full, stopping)
        case "dtv":
            return DtV(full, draft, problem["draft_length"], stopping)
        case _:
            return WFD(full, draft, stopping)


def _clauses(case: Case, events: Events) -> set[str]:
    """Gives the clauses that a run exercises, by what happens in it."""
    happened = Counter(type(event) for event in events)
    own = {
        "ar": {"AR-01", "AR-02"},
        "dtv": {"DTV-03", "DTV-04", "DTV-05", "DTV-06", "DTV-07", "DTV-08"},
        "wfd": {"WFD-02", "WFD-03", "WFD-04", "WFD-05", "WFD-10", "WFD-11", "WFD-12"},
    }
    clauses = {"NOT-01", "NOT-03", "SMP-10" if case.budget == 0 else "SMP-11", "COST-05"}
    if case.budget > 0:
        clauses.add("SMP-14")
    if happened[Advance]:
        clauses |= own[case.decoder] | {"COST-01", "COST-02"}
    if happened[Draft] and case.decoder == "wfd":
        clauses |= {"WFD-07", "WFD-08", "SMP-15"}
    if happened[Accept] or happened[Reject]:
        clauses |= {"SMP-12", "COST-03"}
    if happened[Flush]:
        clauses |= {"SMP-13", "COST-04"} | ({"WFD-09"} if case.decoder == "wfd" else set())
    if case.flag == "full-depth draft":
        clauses.add("WFD-06" if case.decoder == "wfd" else "DTV-03")
    return clauses


def _judge_trace(vector: Vector, trace: Sequence[Event]) -> Finding:
    """Holds a trace against the rules, then its tokens against the script."""
    problem = vector.input
    if _as_json(trace) == vector.expected["events"]:
        return RIGHT
    if not trace or _as_json(trace[:1]) != vector.expected["events"][:1]:
        return wrong("NOT-03", "the trace does not open with the start event of this vector")
    verdict = check_trace(trace)
    if verdict.objection is not None:
        found = verdict.objection
        return wrong(found.clause, f"event {found.index}: {found.reason}")
    first, final = problem["prompt_length"], set[int]()
    for index, event in enumerate(trace):
        match event:
            case Commit():
                final.add(event.position)
                script, name = problem["verified"], "full depth"
            case Inject():
                is_final = event.position in final
                script, name = (problem["verified"], "full depth") if is_final else (problem["drafted"], "draft")
            case _:
                continue
        if event.token != script[event.position - first]:
            what = f"event {index}: token {event.token} at position {event.position}, where the {name} says"
            return wrong("NOT-02", f"{what} {script[event.position - first]}")
    freedoms = "; ".join(taken.freedom.value for taken in verdict.freedoms)
    return Finding(Verdict.EXACT, freedoms)


def _events(answer: Answer, lines: Sequence[JsonObject]) -> list[Event]:
    try:
        return from_jsonl(_as_lines(lines))
    except TraceFormatError as error:
        raise answer.wrong("events", f"a trace: {error}") from error


def _check_claims(answer: Answer, counts: JsonObject) -> None:
    if not all(type(value) in {int, float} for value in counts.values()):
        raise answer.wrong("counts", "an object of numbers")
    check_names(counts)


def _reason(events: Sequence[Event]) -> str:
    return next(str(event.reason) for event in events if isinstance(event, Finish))


def _as_json(events: Sequence[Event]) -> list[JsonObject]:
    return [json.loads(line) for line in to_jsonl(events).splitlines()]


def _as_lines(events: Sequence[JsonObject]) -> str:
    return "\n".join(map(json.dumps, events))


_EVENTS: Final[JsonObject] = {"type": "array", "items": {"$ref": "../../trace.schema.json"}}
_COUNTS: Final[JsonObject] = {"type": "object", "additionalProperties": NUMBER}

KIND: Final = Kind(
    name="schedule",
    summary="Readouts by a script, and exactly what the decoder does with them; no model is needed.",
    input={
        "decoder": Field({"enum": ["ar", "dtv", "wfd"]}, "which decoder"),
        "recurrence_depth": Field(INTEGER, "T"),
        "draft_depth": Field(INTEGER, "d; T for AR"),
        "draft_length": Field({"type": ["integer", "null"]}, "gamma of DtV, else null"),
        "prompt_length": Field(INTEGER, "P, tokens of the prompt"),
        "max_new_tokens": Field(INTEGER, "M, the budget"),
        "context_length": Field(INTEGER, "X, positions that the model can compute"),
        "stop_ids": Field(INTEGERS, "tokens that end the text"),
        "verified": Field(INTEGERS, "what a readout of position P - 1 + k says at depth T, for k = 0, 1, ..."),
        "drafted": Field(INTEGERS, "what it says at depth d < T; entry 0 is -1 and never asked for"),
    },
    expected={
        "token_ids": Field(INTEGERS, "the committed tokens"),
        "finish_reason": Field({"enum": ["eos", "length", "context"]}, "why decoding ended"),
        "counts": Field(_COUNTS, "what was counted (COST-01 to COST-05)"),
        "events": Field(_EVENTS, "everything that happens, in the format of a trace"),
    },
    answer={
        "events": Field(_EVENTS, "your trace; it may use the freedoms of the specification", is_optional=True),
        "token_ids": Field(INTEGERS, "your tokens", is_optional=True),
        "finish_reason": Field(TEXT, "your reason", is_optional=True),
        "counts": Field(_COUNTS, "your counts, any of them, and acceptance_rate", is_optional=True),
    },
    make=make,
    judge=judge,
)

"""The code has exactly the state graph of the models: every step of one is a step of the other, events included.

TLC prints every transition of `WFD.tla` and `DtV.tla`. The schedules of `reference` are run from every first token
under every answer to every readout. Both sets are compared as sets.
"""

import itertools
import json
from collections.abc import Iterable

import pytest

from reference.dtv import DtV
from reference.schedule import Lane, Schedule, State, begin
from reference.stopping import Stopping
from reference.wfd import WFD
from spec import tlc
from spec.tlc import Case, Value
from spec.traces import plain
from tests.formal.cases import DEEP, EVERY_END, EVERY_SHAPE
from tests.formal.requirements import deep, needs_tlc

WHICH = """
Which == <<par.T, par.d, par.gamma, par.P, par.M, par.X, 0 \\in Stops, 1 \\in Stops>>
"""
"""Names the case of a state, where one run of TLC has many."""

EMIT = """
Order == SelectSeq([i \\in DOMAIN lanes |-> i], LAMBDA i : i \\in Due)
ReadLanes == [k \\in DOMAIN Order |->
               <<lanes[Order[k]].position, lanes[Order[k]].depth + 1>>]
EmitStep  == Running => PrintT(ToString(<<Which, View, ReadLanes, Happened, View'>>))
EmitStart == ticks = 0 => PrintT(ToString(<<Which, StartEvents, View>>))
"""
"""Prints every transition and every initial state, with the readouts and events that the model ascribes to it."""

SETTINGS = "ACTION_CONSTRAINT EmitStep\nINVARIANT EmitStart"


def graph_of_the_model(module: str, cases: Iterable[Case]) -> set[str]:
    """Gives all transitions of a module, initial states included, as text."""
    result = tlc.check(module, cases, extra=WHICH + EMIT, settings=SETTINGS)
    assert result.violated is None
    return {json.dumps(item) for item in result.printed()}


def graph_of_the_code(module: str, cases: Iterable[Case]) -> set[str]:
    """Gives all transitions of the schedules under every possible answer, in the same text."""
    found: set[str] = set()
    for case in cases:
        schedule = schedule_of(module, case)
        waiting: list[State] = []
        for first in case.tokens if case.M else (None,):
            state, events = begin(schedule, first)
            found.add(json.dumps([which(case), [plain(event) for event in events[1:]], view(state)]))
            waiting.append(state)
        seen = set(waiting)
        while waiting:
            state = waiting.pop()
            if state.finish_reason is not None:
                continue
            readouts = schedule.plan(state).readouts
            read: Value = [[readout.lane.position, readout.lane.depth] for readout in readouts]
            for answers in itertools.product(case.tokens, repeat=len(readouts)):
                after, events = schedule.observe(state, answers)
                found.add(json.dumps([which(case), view(state), read, [plain(event) for event in events], view(after)]))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    return found


def schedule_of(module: str, case: Case) -> Schedule:
    """Gives the decoder that a module models."""
    stopping = Stopping(
        prompt_length=case.P, max_new_tokens=case.M, context_length=case.X, stop_ids=frozenset(case.stops)
    )
    if module == "WFD":
        return WFD(recurrence_depth=case.T, draft_depth=case.d, stopping=stopping)
    return DtV(recurrence_depth=case.T, draft_depth=case.d, draft_length=case.gamma, stopping=stopping)


def which(case: Case) -> Value:
    """Names a case as the model's `Which` does."""
    return [*(case.T, case.d, case.gamma, case.P, case.M, case.X), 0 in case.stops, 1 in case.stops]


def view(state: State) -> Value:
    """Gives a state as the model's `View` prints it."""
    return [state.frontier, lanes(state.lanes), state.ticks, str(state.finish_reason or "none")]


def lanes(of: Iterable[Lane]) -> Value:
    """Gives lanes as the model prints them."""
    return [[lane.position, lane.token, lane.depth] for lane in of]


@needs_tlc
@pytest.mark.spec("NOT-02", "NOT-03", "SMP-10", "SMP-12", "SMP-13", "SMP-14", "SMP-15")
@pytest.mark.spec("WFD-02", "WFD-03", "WFD-04", "WFD-05", "DTV-03", "DTV-04", "DTV-05", "DTV-06")
@pytest.mark.parametrize("module", ["WFD", "DtV"])
@pytest.mark.parametrize(
    "cases", [pytest.param((*EVERY_END, *EVERY_SHAPE), id="small"), pytest.param(DEEP, id="deep", marks=deep)]
)
def test_the_code_has_exactly_the_state_graph_of_the_model(module: str, cases: tuple[Case, ...]) -> None:
    model, code = graph_of_the_model(module, cases), graph_of_the_code(module, cases)
    assert sorted(model - code) == []
    assert sorted(code - model) == []
    assert len(model) > 1000


@pytest.mark.spec("SMP-12", "SMP-13", "SMP-14", "WFD-05", "DTV-06")
@pytest.mark.parametrize("module", ["WFD", "DtV"])
def test_the_graph_holds_every_situation(module: str) -> None:
    """What is compared above is not empty of the hard cases."""
    steps = [step for step in map(json.loads, graph_of_the_code(module, (*EVERY_END, *EVERY_SHAPE))) if len(step) == 5]
    kinds = {tuple(event[0] for event in events) for _, _, _, events, _ in steps}
    assert {kind for sequence in kinds for kind in sequence} == {
        *("advance", "commit", "accept", "reject", "flush", "inject", "draft", "finish")
    }
    ends = [event for _, _, _, events, _ in steps for event in events if event[0] == "finish"]
    assert {reason for _, _, reason, _ in ends} == {"eos", "length", "context"}
    assert any(abandoned for _, _, _, abandoned in ends)
    assert any("reject" in sequence and "finish" in sequence for sequence in kinds)
    # A drafted stop id is in flight with a lane behind it.
    assert any(which[6 + lane[1]] for which, (_, in_flight, _, _), _, _, _ in steps for lane in in_flight[1:-1])
    if module == "WFD":
        assert ("advance", "commit", "accept", "draft", "inject") in kinds
    else:
        assert any(sequence.count("commit") > 2 for sequence in kinds)

"""The models count what the code counts, and the counts hang together as `spec/70-cost.md` says."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import astuple
from typing import Final, TypeAlias

import pytest

from reference.counts import count
from reference.schedule import Events, Finish, Flush, State, begin
from spec import tlc
from spec.tlc import Case, Value
from tests.formal.cases import COUNT_MUTANTS, DEEP, EIGHT, EVERY_END, EVERY_SHAPE, MUTABLE
from tests.formal.requirements import deep, needs_tlc
from tests.formal.test_conformance import WHICH, schedule_of, view, which

pytestmark = needs_tlc

Totals: TypeAlias = tuple[int, ...]
"""The counts of the code in their order, then flushes and abandoned lanes."""

EMIT: Final = """
Totals ==
  <<counts.ticks, counts.lane_ticks, counts.prelude_calls, counts.readout_calls, counts.accepted,
    counts.rejected, counts.flushed, counts.committed, counts.flushes, counts.abandoned>>
EmitCounts == PrintT(ToString(<<Which, View, Totals>>))
"""
"""Prints every state and what was counted on the way to it."""


def totals(events: Events) -> Totals:
    """Counts the events of one tick."""
    flushes = sum(isinstance(event, Flush) for event in events)
    abandoned = sum(len(event.abandoned) for event in events if isinstance(event, Finish))
    return (*astuple(count(events)), flushes, abandoned)


def counted_by_the_code(module: str, case: Case) -> Iterator[Value]:
    """Gives every state of a schedule with all that may have been counted on a way to it."""
    schedule = schedule_of(module, case)
    waiting: list[tuple[State, Totals]] = []
    for first in case.tokens if case.M else (None,):
        state, events = begin(schedule, first)
        waiting.append((state, totals(events)))
    seen = set(waiting)
    while waiting:
        state, so_far = waiting.pop()
        yield [which(case), view(state), [*so_far]]
        if state.finish_reason is not None:
            continue
        for answers in itertools.product(case.tokens, repeat=len(schedule.plan(state).readouts)):
            after, events = schedule.observe(state, answers)
            reached = after, tuple(map(sum, zip(so_far, totals(events), strict=True)))
            if reached not in seen:
                seen.add(reached)
                waiting.append(reached)


@pytest.mark.spec("COST-01", "COST-02", "COST-03", "COST-04", "COST-05", "COST-06", "AR-02", "SMP-10")
@pytest.mark.parametrize("module", ["WFD", "DtV"])
@pytest.mark.parametrize(
    "cases",
    [pytest.param((*EVERY_END, *EVERY_SHAPE, *EIGHT), id="small"), pytest.param(DEEP, id="deep", marks=deep)],
)
def test_the_counts_of_the_model_hang_together_and_are_those_of_the_code(module: str, cases: tuple[Case, ...]) -> None:
    """Every state, by every way that leads to it."""
    layer = f"{module}Counts"
    result = tlc.check(
        layer,
        cases,
        specification="CountingSpec",
        invariants=[*tlc.INVARIANTS[layer], "EmitCounts"],
        properties=tlc.PROPERTIES[layer],
        extra=WHICH + EMIT,
    )
    assert result.violated is None, result.log
    model = {json.dumps(item) for item in result.printed()}
    code = {json.dumps(item) for case in cases for item in counted_by_the_code(module, case)}
    assert sorted(model - code) == []
    assert sorted(code - model) == []
    assert len(model) > 500


MUTANTS: Final = [
    pytest.param(layer, claim, edits, id=f"{layer} {claim}")
    for layer, mutants in COUNT_MUTANTS.items()
    for claim, edits in mutants.items()
]


@pytest.mark.parametrize("layer, claim, edits", MUTANTS)
def test_a_miscount_is_caught_by_the_claim_about_it(layer: str, claim: str, edits: tuple[tuple[str, str], ...]) -> None:
    """Each claim about counts is checked alone, so that no other one can catch it first."""
    result = tlc.check(
        layer,
        MUTABLE,
        specification="CountingSpec",
        invariants=[claim] if claim in tlc.INVARIANTS[layer] else [],
        properties=[claim] if claim in tlc.PROPERTIES[layer] else [],
        edits=edits,
    )
    assert result.violated == claim


def test_every_claim_about_counts_has_its_miscount() -> None:
    for layer, mutants in COUNT_MUTANTS.items():
        assert sorted(mutants) == sorted((*tlc.INVARIANTS[layer], *tlc.PROPERTIES[layer]))

"""The proofs for all sizes go through, prove something, fail on planted bugs, and are about the models' steps."""

import json
from types import ModuleType

import pytest
import z3  # type: ignore[import-untyped]

from spec import tlc
from spec.proof import concrete, dominance, dtv, wfd
from spec.proof.concrete import Snapshot
from spec.proof.logic import Obligation, unproved
from spec.tlc import Case, Value
from tests.formal.cases import EVERY_END, MUTABLE
from tests.formal.requirements import needs_tlc

DECODERS = {"WFD": wfd, "DtV": dtv}
GIVE_UP_MS = 800
"""Time for an obligation that cannot be proved; proofs take a few milliseconds."""


@pytest.mark.spec("WFD-03", "WFD-06", "WFD-07", "WFD-08", "WFD-09", "WFD-10", "WFD-11", "WFD-12", "WFD-13")
@pytest.mark.spec("DTV-03", "DTV-04", "DTV-05", "DTV-06", "DTV-07", "DTV-08", "DTV-09")
@pytest.mark.spec("KV-02", "KV-03", "KV-04", "KV-06", "KV-07", "KV-08")
@pytest.mark.parametrize("name", DECODERS)
def test_the_invariants_are_inductive_for_all_sizes(name: str) -> None:
    obligations = list(DECODERS[name].obligations())
    assert len({item.name for item in obligations}) == len(obligations) > 100
    assert list(unproved(obligations)) == []


@pytest.mark.spec("WFD-13", "WFD-14")
def test_dominance_holds_for_all_sizes() -> None:
    obligations = list(dominance.obligations())
    assert len(obligations) > 10
    assert list(unproved(obligations)) == []


@pytest.mark.parametrize("module, bug", [(module, bug) for module in (wfd, dtv, dominance) for bug in module.BUGS])
def test_a_planted_bug_leaves_its_obligation_unproved(module: ModuleType, bug: str) -> None:
    (claimed,) = (item for item in module.obligations(bug) if item.name == module.BUGS[bug])
    (sound,) = (item for item in module.obligations() if item.name == module.BUGS[bug])
    assert sound.is_proved()
    assert not claimed.is_proved(GIVE_UP_MS)


BREAKING = [
    (module, bug)
    for module in (wfd, dtv)
    for bug, name in module.BUGS.items()
    if not name.endswith(("KV-03 reads of lanes", "KV-07 entries of this call"))  # what a call reads is no invariant
]


@pytest.mark.parametrize("module, bug", BREAKING)
def test_a_planted_bug_breaks_its_invariant_in_a_small_world(module: ModuleType, bug: str) -> None:
    """What Z3 cannot prove is false, not merely hard."""
    case_name, _, claim = module.BUGS[bug].partition(": ")
    assert any(
        claim in concrete.broken(module, case, after)
        for case in MUTABLE
        for before in list(concrete.reachable(module, case))[:400]
        if before.lanes
        for name, after in concrete.successors(module, concrete.world_of(case), before, case.tokens, bug)
        if name == case_name
    )


@pytest.mark.parametrize("name", DECODERS)
def test_the_hypotheses_hold_in_real_states_of_every_case(name: str) -> None:
    """A proof from contradictory hypotheses would prove nothing: here all of them hold at once, in every case."""
    module, taken = DECODERS[name], set()
    for case in (*MUTABLE, Case(T=3, d=2, gamma=2, M=3, stops=(1,))):
        for state, steps in concrete.reachable(module, case).items():
            taken |= {step for step, _ in steps}
            if state.lanes:
                assert concrete.broken(module, case, state) == []
    assert taken == set(module.CASES)


@pytest.mark.parametrize("name", DECODERS)
def test_the_assumptions_prove_nothing_false(name: str) -> None:
    """Z3 finds no contradiction in what every obligation starts from, in any case of the step."""
    module = DECODERS[name]
    for case in module.CASES:
        hypotheses = next(item.hypotheses for item in module.obligations() if item.name.startswith(case))
        assert not Obligation(case, hypotheses, z3.BoolVal(val=False)).is_proved(GIVE_UP_MS)


# ---- the step of the proof is the step of the model -----------------------------------------------------------------

EMIT = """
Which == <<par.T, par.d, par.P, par.M, par.X, 0 \\in Stops, 1 \\in Stops>>
All ==
  <<out, Tuples(lanes), ticks, accepted, rejected, %s,
    [p \\in 1..(End - 1) |-> [r \\in 1..T |-> kv[p - 1][r - 1]]],
    [p \\in 1..(End - 1) |-> <<coda[p - 1].depth, coda[p - 1].text>>]>>
EmitStep == Running => PrintT(ToString(<<Which, All, All'>>))
"""
"""Prints every transition with all that the proofs speak of: cells and coda entries too."""


def step_of_the_model(name: str, cases: tuple[Case, ...]) -> set[str]:
    """Gives every transition of a module."""
    extra = EMIT % ("base" if name == "DtV" else "0")
    result = tlc.check(name, cases, extra=extra, settings="ACTION_CONSTRAINT EmitStep")
    assert result.violated is None
    return {json.dumps(item) for item in result.printed()}


def step_of_the_proof(name: str, cases: tuple[Case, ...]) -> set[str]:
    """Gives every transition that the text of the proof computes; the verdicts of one tick are taken together."""
    found = set()
    for case in cases:
        graph = concrete.reachable(DECODERS[name], case)
        which: Value = [case.T, case.d, case.P, case.M, case.X, 0 in case.stops, 1 in case.stops]
        for before, steps in graph.items():
            if before.is_judging:
                continue
            ends = {after for _, after in steps}
            while judging := {state for state in ends if state.is_judging}:
                ends = (ends - judging) | {after for state in judging for _, after in graph[state]}
            found |= {json.dumps([which, plain(before), plain(after)]) for after in ends}
    return found


def plain(state: Snapshot) -> Value:
    """Gives a state as the model prints it."""
    text: Value = json.loads(
        json.dumps(
            [
                *(state.out, state.lanes, state.ticks, state.accepted, state.rejected, state.base),
                *(state.cells, state.entries),
            ]
        )
    )
    return text


@needs_tlc
@pytest.mark.parametrize("name", DECODERS)
def test_the_step_of_the_proof_is_the_step_of_the_model(name: str) -> None:
    cases = tuple(case for case in (*EVERY_END, *MUTABLE) if case.M)
    model, proof = step_of_the_model(name, cases), step_of_the_proof(name, cases)
    assert sorted(model - proof) == []
    assert sorted(proof - model) == []
    assert len(model) > 1000

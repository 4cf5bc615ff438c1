"""When a decoder with shared KV slots is AR with the same slots: every case of small worlds, and all sizes by proof."""

import json

import pytest
import z3  # type: ignore[import-untyped]

from spec import tlc
from spec.proof import sharing
from spec.proof.logic import Obligation, unproved
from spec.tlc import Case, Value
from tests.formal.cases import SHARED, SHARED_DEEP, SHARED_MUTABLE, SHARED_MUTANTS
from tests.formal.requirements import deep, needs_tlc

WHICH = """
Which == <<par.T, par.d, par.gamma, par.P, par.M, Stops # {}, par.slot>>
Differs == out # twin => PrintT(ToString(Which))
NotYet == out = twin
"""
"""Prints the case of every state in which AR has said something else, and goes no further there."""


def which(case: Case) -> Value:
    """Names a case as the model's `Which` does."""
    return [case.T, case.d, case.gamma, case.P, case.M, bool(case.stops), [*case.slot]]


def last(case: Case, r: int) -> int:
    """Gives the last recurrence that writes the slot of `r`."""
    return max(q for q in range(case.T) if case.slot[q] == case.slot[r])


def may_differ(module: str, case: Case) -> bool:
    """Says what SHR-08 to SHR-10 say, from the slots alone; a token behind an accepted draft is needed to see it."""
    if case.d == case.T or case.M < 3:
        return False
    if module == "WFDSharing":
        return any(last(case, r) - r > case.d for r in range(case.T))
    return any(case.slot.count(case.slot[r]) > 1 for r in range(case.d, case.T))


@needs_tlc
@pytest.mark.spec("SHR-04", "SHR-05", "SHR-07", "SHR-08", "SHR-09", "SHR-10")
@pytest.mark.parametrize("module", ["WFDSharing", "DtVSharing"])
@pytest.mark.parametrize("cases", [pytest.param(SHARED, id="small"), pytest.param(SHARED_DEEP, id="deep", marks=deep)])
def test_exactly_where_the_spec_says_so_something_else_than_ar_is_said(module: str, cases: tuple[Case, ...]) -> None:
    """Both directions at once: the cases in which a run leaves AR under the same sharing are those that may."""
    result = tlc.check(
        module,
        cases,
        specification="SharingSpec",
        invariants=["Differs", *tlc.INVARIANTS[module]],
        extra=WHICH,
        settings="CONSTRAINT NotYet",
    )
    assert result.violated is None, result.log
    found = {json.dumps(item) for item in result.printed()}
    expected = {json.dumps(which(case)) for case in cases if may_differ(module, case)}
    assert sorted(found - expected) == []
    assert sorted(expected - found) == []
    assert 10 < len(found) < len(cases) - 10


@needs_tlc
@pytest.mark.parametrize("name", SHARED_MUTANTS)
def test_a_mutant_of_sharing_is_caught(name: str) -> None:
    """Each claim is checked alone, so that no other one can catch the mutant first."""
    module, mutant = SHARED_MUTANTS[name]
    assert mutant.violated in tlc.INVARIANTS[module]
    result = tlc.check(
        module, SHARED_MUTABLE, specification="SharingSpec", invariants=[mutant.violated], edits=mutant.edits
    )
    assert result.violated == mutant.violated


@pytest.mark.spec("SHR-05", "SHR-06", "SHR-07", "SHR-08", "SHR-09")
def test_the_rules_of_sharing_hold_for_all_sizes() -> None:
    obligations = list(sharing.obligations())
    assert len({item.name for item in obligations}) == len(obligations) > 15
    assert list(unproved(obligations)) == []


@pytest.mark.parametrize("bug", sharing.BUGS)
def test_a_planted_bug_leaves_its_obligation_unproved(bug: str) -> None:
    (claimed,) = (item for item in sharing.obligations(bug) if item.name == sharing.BUGS[bug])
    (sound,) = (item for item in sharing.obligations() if item.name == sharing.BUGS[bug])
    assert sound.is_proved()
    assert not claimed.is_proved(800)


def test_the_hypotheses_prove_nothing_false() -> None:
    """Z3 finds no contradiction in what the obligations start from."""
    for item in sharing.obligations():
        assert not Obligation(item.name, item.hypotheses, z3.BoolVal(val=False)).is_proved(200)


@pytest.mark.spec("SHR-08")
def test_the_bound_for_slots_in_turn_is_the_rule_for_all_maps() -> None:
    """Computed, beyond the sizes of the models: the largest distance to the last recurrence of a slot."""
    for T in range(1, 41):  # noqa: N806
        for s in range(1, T + 3):
            farthest = max((T - 1 - r) // s * s for r in range(T))
            assert farthest == s * ((T - 1) // s)

"""TLC checks the models exhaustively in small worlds, takes every action there, and catches every mutant."""

import re
from collections.abc import Mapping

import pytest

from spec import tlc
from spec.tlc import Case
from tests.formal.cases import DEEP, DTV_MUTANTS, EIGHT, EVERY_END, EVERY_SHAPE, LIVELY, MUTABLE, WFD_MUTANTS, Mutant
from tests.formal.requirements import deep, needs_tlc

pytestmark = needs_tlc


def actions(module: str) -> set[str]:
    """Gives the names of all actions of a module, from its text."""
    text = (tlc.HERE / f"{module}.tla").read_text(encoding="utf-8")
    line = re.search(r"^Step == (.*)$", text, re.MULTILINE)
    assert line
    return set(re.findall(r"\w+", line[1]))


@pytest.mark.spec(
    "NOT-01", "SMP-12", "SMP-14", "SMP-15", "KV-02", "KV-03", "KV-04", "KV-06", "KV-07", "KV-08", "COST-03"
)
@pytest.mark.spec("WFD-03", "WFD-07", "WFD-08", "WFD-09", "WFD-10", "WFD-11", "WFD-12")
@pytest.mark.spec("DTV-03", "DTV-04", "DTV-05", "DTV-06", "DTV-07", "DTV-08", "DTV-09")
@pytest.mark.parametrize("module", ["WFD", "DtV"])
@pytest.mark.parametrize(
    "cases",
    [pytest.param((*EVERY_END, *EVERY_SHAPE, *EIGHT), id="small"), pytest.param(DEEP, id="deep", marks=deep)],
)
def test_all_invariants_and_step_properties_hold(module: str, cases: tuple[Case, ...]) -> None:
    steps = [name for name in tlc.PROPERTIES[module] if name != "Terminates"]
    result = tlc.check(module, cases, invariants=tlc.INVARIANTS[module], properties=steps, coverage=True)
    assert result.violated is None, result.log
    assert result.states > 2000
    taken = {name for name, count in result.taken.items() if count}
    assert actions(module) - taken - ({"Restart"} if cases == DEEP else set()) == set()


@pytest.mark.spec("WFD-10", "DTV-09")
@pytest.mark.parametrize("module", ["WFD", "DtV"])
def test_every_run_ends(module: str) -> None:
    result = tlc.check(module, LIVELY, properties=["Terminates"])
    assert result.violated is None, result.log


@pytest.mark.spec("WFD-08")
def test_the_width_is_attained() -> None:
    for case in (Case(T=4, d=1, M=6), Case(T=5, d=2, M=6), Case(T=3, d=3)):
        result = tlc.check("WFD", [case], invariants=["Narrower"], extra="Narrower == Len(lanes) < W")
        assert result.violated == "Narrower"


def _check_mutants(module: str, mutants: Mapping[str, Mutant], name: str) -> None:
    mutant = mutants[name]
    result = tlc.check(
        module,
        MUTABLE,
        invariants=tlc.INVARIANTS[module],
        properties=[item for item in tlc.PROPERTIES[module] if item != "Terminates"],
        edits=mutant.edits,
    )
    assert result.violated == mutant.violated


@pytest.mark.parametrize("name", WFD_MUTANTS)
def test_a_mutant_of_wfd_is_caught(name: str) -> None:
    _check_mutants("WFD", WFD_MUTANTS, name)


@pytest.mark.parametrize("name", DTV_MUTANTS)
def test_a_mutant_of_dtv_is_caught(name: str) -> None:
    _check_mutants("DtV", DTV_MUTANTS, name)


def test_a_wfd_whose_rows_do_not_see_each_other_is_still_right() -> None:
    """No two lanes of a wavefront share a recurrence, so the order of writes and reads in a call is free."""
    result = tlc.check(
        "WFD",
        MUTABLE,
        invariants=tlc.INVARIANTS["WFD"],
        edits=DTV_MUTANTS["rows of one call do not see each other"].edits,
    )
    assert result.violated is None


def test_every_property_of_the_modules_is_checked() -> None:
    for module in tlc.INVARIANTS:
        names = tlc.with_extended(module)
        text = "".join((tlc.HERE / f"{name}.tla").read_text(encoding="utf-8") for name in names)
        stated = set(re.findall(r"^((?:NOT|SMP|KV|SHR|COST|AR|WFD|DTV)\d\d_\w+) ==", text, re.MULTILINE))
        checked = {item for name in names for item in (*tlc.INVARIANTS.get(name, ()), *tlc.PROPERTIES.get(name, ()))}
        assert stated <= checked

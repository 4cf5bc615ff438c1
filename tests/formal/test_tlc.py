"""The runner of TLC says what is missing and what went wrong, instead of calling it success."""

import shutil

import pytest

from spec import tlc
from spec.tlc import Case, TLCError
from tests.formal.requirements import needs_tlc


def test_what_tlc_prints_is_read() -> None:
    assert tlc.parse('<<1, <<"a", << >>>>, TRUE, <<-2, FALSE>>>>') == [1, ["a", []], True, [-2, False]]


def test_a_case_is_written_as_a_record() -> None:
    assert Case(T=4, d=2, M=5, stops=(1,)).tla() == (
        "[T |-> 4, d |-> 2, gamma |-> 1, P |-> 1, M |-> 5, X |-> 64, stops |-> {1}, tokens |-> {0, 1}]"
    )


def test_a_module_is_followed_to_what_it_extends() -> None:
    assert tlc.with_extended("DtVCounts") == ["DtVCounts", "DtV", "Counts", "Schedule"]
    assert tlc.with_extended("Schedule") == ["Schedule"]


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> None:
        return

    monkeypatch.setattr(shutil, "which", absent)
    with pytest.raises(TLCError, match="default-jre-headless"):
        tlc.check("WFD", [])


@needs_tlc
def test_a_mutant_that_changes_nothing_is_an_error() -> None:
    with pytest.raises(TLCError, match="not there: no such text"):
        tlc.check("WFD", [Case(T=1, d=1)], edits=[("no such text", "")])


@needs_tlc
def test_a_module_that_does_not_parse_is_an_error() -> None:
    with pytest.raises(TLCError, match=r"[Pp]ars"):
        tlc.check("WFD", [Case(T=1, d=1)], extra="Broken == ==")


@needs_tlc
def test_parameters_out_of_range_are_an_error() -> None:
    with pytest.raises(TLCError, match="Assumption"):
        tlc.check("WFD", [Case(T=2, d=3)])

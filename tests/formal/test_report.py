"""The report at the end of `make spec` says what is proved, checked and tested, and fails if a proof does."""

import re

import pytest
import z3  # type: ignore[import-untyped]

from spec import report, table, tlc
from spec.clauses import Clause, mentioning, read
from spec.proof import dominance, dtv, sharing, wfd
from spec.proof.logic import Obligation

ROW = table.Row(
    "WFD-07",
    Clause("spec/60-wfd.md", opening="Spacing", is_withdrawn=False),
    code={},
    tests={"tests/a.py": ["test_a", "test_b"], "tests/b.py": ["test_c"]},
    formal={"spec/WFD.tla": ["WFD07_Spacing", "Tick"], "spec/proof/wfd.py": ["spacing"]},
)


def obligation(name: str, *, holds: bool = True) -> Obligation:
    return Obligation(name, hypotheses=(), conclusion=z3.BoolVal(holds))


def test_a_clause_stands_on_the_proofs_the_properties_and_the_tests_that_name_it() -> None:
    proved = [obligation("start: WFD-07 spacing"), obligation("climb: WFD-07 spacing"), obligation("a lemma")]
    (found,) = report.standings([ROW], proved, {("tests/a.py", "test_b"), ("tests/b.py", "test_a")})
    assert found == report.Standing("WFD-07", "Spacing", 2, ["WFD07_Spacing"], 3, 1)
    assert found.is_formal


def test_without_proof_and_property_it_stands_on_tests_alone() -> None:
    (found,) = report.standings([ROW._replace(formal={})], [])
    assert (found.num_proved, list(found.properties), found.is_formal) == (0, [], False)


def test_a_test_runs_a_trained_model_if_its_source_or_a_name_in_it_says_so() -> None:
    source = """
MODEL = load("tiny-ouro")

def scripted(): ...

def test_direct():
    load("tiny-huginn")

def test_by_name():
    run(MODEL)

@parametrize("name", SHIPPED)
def test_decorated(name): ...

def test_scripted():
    scripted()
"""
    found = mentioning({"tests/a.py": source}, re.compile(r"\bSHIPPED\b|tiny-ouro|tiny-huginn"))
    tests = {name for _, name in found if name.startswith("test_")}
    assert tests == {"test_direct", "test_by_name", "test_decorated"}


def test_a_section_ends_where_the_next_begins() -> None:
    texts = {"a.md": "# A\n\n## One\n\nfirst\n\n## Two\n\nsecond\n"}
    assert report.section("a.md", "One", texts) == "first"
    assert report.section("a.md", "Two", texts) == "second"
    with pytest.raises(LookupError, match="Three"):
        report.section("a.md", "Three", texts)


def test_all_is_proved_and_the_rest_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main() == 0
    said = capsys.readouterr().out
    assert "not proved:" not in said
    assert "WFD07_Spacing" in said
    assert report.section(*report.TRUST, read(report.TRUST[0])) in said
    for row in table.rows():
        assert row.identifier in said


@pytest.mark.parametrize("is_there", [True, False])
def test_where_tlc_cannot_run_the_report_does_not_claim_that_it_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    for module in (dominance, dtv, sharing, wfd):
        monkeypatch.setattr(module, "obligations", list)
    monkeypatch.setattr(tlc, "jar", lambda: tlc.HERE if is_there else None)
    assert report.main() == 0
    assert ("TLC has not run here" in capsys.readouterr().out) is not is_there


def test_what_is_not_proved_is_named_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wfd, "obligations", lambda: [obligation("WFD-07 spacing", holds=False)])
    assert report.main() == 1
    assert "not proved: WFD-07 spacing" in capsys.readouterr().out

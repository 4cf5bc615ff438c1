"""The thread back to the clause: no mark and no mention without one. `test_table` goes the other way."""

from collections.abc import Iterable, Mapping

import pytest

from spec.clauses import CLAUSE_ID, Clause, clauses, marks, read

MENTIONING = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md", "spec/**/*.md", "reference/**/*.py")
"""Where a clause may be named in passing. Tests are not listed: some plant ids of no clause."""


def unfounded(stated: Mapping[str, Clause], marked: Mapping[str, Iterable[str]]) -> list[str]:
    """Names the marks whose clause does not exist or binds nobody."""
    return [
        f"{name} in {file}"
        for name, files in sorted(marked.items())
        if name not in stated or stated[name].is_withdrawn
        for file in sorted(files)
    ]


def unknown_mentions(stated: Mapping[str, Clause], texts: Mapping[str, str]) -> list[str]:
    """Names the clause ids that texts mention and the spec does not state."""
    return [
        f"{name} in {file}"
        for file, text in texts.items()
        for name in sorted(set(CLAUSE_ID.findall(text)) - set(stated))
    ]


STATED = clauses(read("spec/*.md"))
MARKED = marks(read("tests/**/*.py"))


def test_the_spec_states_clauses() -> None:
    assert STATED


def test_every_mark_names_a_binding_clause() -> None:
    assert unfounded(STATED, MARKED) == []


def test_every_clause_that_is_mentioned_exists() -> None:
    assert unknown_mentions(STATED, read(*MENTIONING)) == []


PLANTED = """
**WFD-01** The draft depth is at least 1. See AR-99.

- **WFD-02.** Lanes are spaced by what `a.json` says
  or more: at least 1. Or not.
- **WFD-03** *(withdrawn)* Once said otherwise.

Prose that mentions **WFD-04** in bold opens no clause.
"""


def test_clauses_are_read_from_their_opening_lines() -> None:
    assert clauses({"spec/wfd.md": PLANTED}) == {
        "WFD-01": Clause("spec/wfd.md", "The draft depth is at least 1", is_withdrawn=False),
        "WFD-02": Clause("spec/wfd.md", "Lanes are spaced by what `a.json` says or more", is_withdrawn=False),
        "WFD-03": Clause("spec/wfd.md", "*(withdrawn)* Once said otherwise", is_withdrawn=True),
    }


def test_an_id_stated_twice_is_found() -> None:
    with pytest.raises(ValueError, match=r"WFD-01 is stated in a\.md and again in b\.md"):
        clauses({"a.md": PLANTED, "b.md": "**WFD-01** Another."})


def test_marks_are_read_wherever_pytest_takes_them() -> None:
    text = """
pytestmark = pytest.mark.spec("AR-01")
@pytest.mark.spec("WFD-01", "WFD-02")
def test_one(): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("DTV-01"))])
@pytest.mark.spec("WFD-01")
def test_two(x): ...
@pytest.mark.spec("AR-02")
class TestThree:
    @pytest.mark.spec("AR-03")
    def test_four(self): ...
"""
    assert marks({"test_a.py": text}) == {
        "AR-01": {"test_a.py": [""]},
        "WFD-01": {"test_a.py": ["test_one", "test_two"]},
        "WFD-02": {"test_a.py": ["test_one"]},
        "DTV-01": {"test_a.py": ["test_two"]},
        "AR-02": {"test_a.py": ["TestThree"]},
        "AR-03": {"test_a.py": ["TestThree.test_four"]},
    }


def test_a_mark_that_names_no_clause_literally_is_found() -> None:
    with pytest.raises(ValueError, match=r"test_a\.py:1 names no clause"):
        marks({"test_a.py": "@pytest.mark.spec(clause)\ndef test_one(): ..."})


def test_a_mark_without_a_binding_clause_is_found() -> None:
    marked = {"WFD-01": {"test_a.py"}, "WFD-03": {"test_b.py"}, "WFD-09": {"test_a.py", "test_c.py"}}
    assert unfounded(clauses({"wfd.md": PLANTED}), marked) == [
        "WFD-03 in test_b.py",
        "WFD-09 in test_a.py",
        "WFD-09 in test_c.py",
    ]


def test_a_mention_of_no_clause_is_found() -> None:
    texts = {"reference/wfd.py": '"""Spec: WFD-02, WFD-77."""', "spec/wfd.md": PLANTED}
    assert unknown_mentions(clauses({"wfd.md": PLANTED}), texts) == [
        "WFD-77 in reference/wfd.py",
        "AR-99 in spec/wfd.md",
        "WFD-04 in spec/wfd.md",
    ]

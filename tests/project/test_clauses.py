"""The thread from clause to code to test: no clause without a test, no mark and no mention without its clause."""

import ast
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pytest

from tests.project.sources import REPOSITORY

PREFIXES = ("NOT", "MOD", "KV", "SMP", "AR", "DTV", "WFD", "COST", "CONF")
"""What a clause id may begin with; one prefix for each file of clauses."""

CLAUSE_ID = re.compile(rf"\b(?:{'|'.join(PREFIXES)})-\d\d\b")
"""A clause id wherever it is mentioned."""

CLAUSE_START = re.compile(rf"^\s*(?:[-*]\s+)?\*\*({CLAUSE_ID.pattern})\.?\*\*(.*)$", re.MULTILINE)
"""The line that opens a clause: its id in bold, then its first words."""

MENTIONING = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md", "spec/**/*.md", "reference/**/*.py")
"""Where a clause may be named in passing. Tests are not listed: some plant ids of no clause."""


class Clause(NamedTuple):
    """One clause as its opening line shows it."""

    file: str
    """The file that states it."""
    is_withdrawn: bool
    """Whether its first word is "withdrawn": the id stays taken, and nothing is owed."""


def clauses(texts: Mapping[str, str]) -> dict[str, Clause]:
    """Gives every clause by id.

    Raises:
        ValueError: If an id opens two clauses; ids are never reused.
    """
    found: dict[str, Clause] = {}
    for file, text in texts.items():
        for identifier, opening in CLAUSE_START.findall(text):
            if identifier in found:
                message = f"{identifier} is stated in {found[identifier].file} and again in {file}"
                raise ValueError(message)
            words = re.findall(r"[a-z]+", opening.lower())
            found[identifier] = Clause(file, is_withdrawn=words[:1] == ["withdrawn"])
    return found


def marks(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Gives the clauses that tests are marked with, each with the files that do.

    A mark counts on a test, on a class of tests, on a `pytest.param` and in `pytestmark`.

    Raises:
        ValueError: If a mark names its clause otherwise than by a literal string, or names none.
    """
    found: dict[str, set[str]] = {}
    for file, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="spec"), args=args):
                    for argument in args:
                        match argument:
                            case ast.Constant(value=str(name)):
                                found.setdefault(name, set()).add(file)
                            case _:
                                message = f"{file}:{node.lineno} names no clause: {ast.unparse(node)}"
                                raise ValueError(message)
                case _:
                    pass
    return found


def untested(stated: Mapping[str, Clause], marked: Iterable[str]) -> list[str]:
    """Names the binding clauses that no test is marked with."""
    return sorted({name for name, clause in stated.items() if not clause.is_withdrawn} - set(marked))


def unfounded(stated: Mapping[str, Clause], marked: Mapping[str, set[str]]) -> list[str]:
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


def _read(*patterns: str) -> dict[str, str]:
    paths = {path for pattern in patterns for path in REPOSITORY.glob(pattern)}
    return {str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8") for path in sorted(paths)}


STATED = clauses(_read("spec/*.md"))
MARKED = marks(_read("tests/**/*.py"))


def test_the_spec_states_clauses() -> None:
    assert STATED


def test_every_binding_clause_has_a_test() -> None:
    assert untested(STATED, MARKED) == []


def test_every_mark_names_a_binding_clause() -> None:
    assert unfounded(STATED, MARKED) == []


def test_every_clause_that_is_mentioned_exists() -> None:
    assert unknown_mentions(STATED, _read(*MENTIONING)) == []


PLANTED = """
**WFD-01** The draft depth is at least 1. See AR-99.

- **WFD-02.** Lanes are spaced.

**WFD-03** *(withdrawn)* Once said otherwise.

Prose that mentions **WFD-04** in bold opens no clause.
"""


def test_clauses_are_read_from_their_opening_lines() -> None:
    assert clauses({"spec/wfd.md": PLANTED}) == {
        "WFD-01": Clause("spec/wfd.md", is_withdrawn=False),
        "WFD-02": Clause("spec/wfd.md", is_withdrawn=False),
        "WFD-03": Clause("spec/wfd.md", is_withdrawn=True),
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
def test_two(x): ...
"""
    assert set(marks({"test_a.py": text})) == {"AR-01", "WFD-01", "WFD-02", "DTV-01"}


def test_a_mark_that_names_no_clause_literally_is_found() -> None:
    with pytest.raises(ValueError, match=r"test_a\.py:1 names no clause"):
        marks({"test_a.py": "@pytest.mark.spec(clause)\ndef test_one(): ..."})


def test_a_clause_without_a_test_is_found() -> None:
    assert untested(clauses({"wfd.md": PLANTED}), ["WFD-01"]) == ["WFD-02"]


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

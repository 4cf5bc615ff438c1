"""The table of clauses is what the repository says today, and it has no gap."""

import pytest

from spec import table
from spec.clauses import Places, clauses, named_in_proofs, named_in_python, named_in_tla

STATED = clauses(
    {"spec/60-wfd.md": "**WFD-01** One, or\ntwo. Or three.\n\n**WFD-02** *withdrawn*\n\n**WFD-03** `a|b`: c.\n"}
)
"""Two binding clauses and one that is none."""

CODE: Places = {"WFD-01": {"reference/wfd.py": ["", "WFD.plan"]}, "WFD-03": {"reference/wfd.py": [""]}}
TESTS: Places = {
    "WFD-01": {"tests/unit/test_wfd.py": ["test_one_is_one", "TestTwo.test_two"], "tests/a.py": ["test_a"]},
    "WFD-03": {"tests/a.py": [""]},
}


@pytest.fixture(scope="module")
def rows() -> list[table.Row]:
    """The table of the repository."""
    return table.rows()


def test_the_table_is_up_to_date(rows: list[table.Row]) -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(rows, table.headings()), "run: python -m spec.table"


def test_every_binding_clause_is_named_by_code_and_held_by_a_test(rows: list[table.Row]) -> None:
    assert table.gaps(rows) == []


def test_a_clause_without_a_test_or_without_code_is_found() -> None:
    assert table.gaps(table.joined(STATED, code=CODE, tests=TESTS, formal={})) == []
    assert table.gaps(table.joined(STATED, code={}, tests={"WFD-01": TESTS["WFD-01"]}, formal={})) == [
        "WFD-01 is named nowhere in reference/",
        "WFD-03 has no test",
        "WFD-03 is named nowhere in reference/",
    ]


def test_a_row_changes_with_everything_that_it_shows() -> None:
    """So the test above, that the page is up to date, fails on each of these changes."""
    titles = {"spec/60-wfd.md": "60. WFD"}
    formal: Places = {"WFD-03": {"spec/WFD.tla": ["Moved"], "spec/traces.py": [""]}}
    written = table.page(table.joined(STATED, code=CODE, tests=TESTS, formal=formal), titles)
    assert written.splitlines()[-6:] == [
        "## 60. WFD",
        "",
        "| clause | code | tests | formal |",
        "| --- | --- | --- | --- |",
        (
            "| [WFD-01](60-wfd.md#wfd-01) One, or two | [wfd.py](../reference/wfd.py): `WFD.plan` | "
            "[a.py](../tests/a.py): a<br>[unit/test_wfd.py](../tests/unit/test_wfd.py): one is one; two | - |"
        ),
        (
            "| [WFD-03](60-wfd.md#wfd-03) `a\\|b` | [wfd.py](../reference/wfd.py) | "
            "[a.py](../tests/a.py): every test | [WFD.tla](WFD.tla): `Moved`<br>[traces.py](traces.py) |"
        ),
    ]
    without = [
        table.joined(clauses({"spec/60-wfd.md": "**WFD-01** One."}), code=CODE, tests=TESTS, formal=formal),
        table.joined(STATED, code=CODE | {"WFD-03": {}}, tests=TESTS, formal=formal),
        table.joined(STATED, code=CODE, tests=TESTS | {"WFD-01": {"tests/a.py": ["test_a"]}}, formal=formal),
        table.joined(STATED, code=CODE, tests=TESTS, formal={}),
    ]
    assert len({written, *(table.page(changed, titles) for changed in without)}) == 5


def test_places_in_modules_are_the_innermost_functions_and_classes() -> None:
    text = '''"""All of it: WFD-01 to WFD-03, NOT-01."""
LIMIT = 1  # AR-01
@dataclass  # AR-02
class Wave:
    width: int
    """W (WFD-02)."""
    if TYPE_CHECKING:
        async def plan(self):
            def inner():
                raise ValueError("bad (WFD-03)")
            return 2  # WFD-03, UTF-16
'''
    assert named_in_python({"wfd.py": text}) == {
        "WFD-01": {"wfd.py": [""]},
        "WFD-02": {"wfd.py": ["Wave"]},
        "WFD-03": {"wfd.py": ["Wave.plan.inner", "Wave.plan"]},
        "NOT-01": {"wfd.py": [""]},
        "AR-01": {"wfd.py": [""]},
        "AR-02": {"wfd.py": ["Wave"]},
    }


def test_places_in_tla_modules_are_definitions() -> None:
    text = r"""
---- MODULE A ----
\* Here WFD-01
\* and SMP-12.

Moved(i) == i + 1   \* WFD-03
WFD07_Spacing ==
  \* as WFD-08 says
  /\ Moved(1) = 2
UTF16_Text == 1
==================
"""
    assert named_in_tla({"A.tla": text}) == {
        "WFD-03": {"A.tla": ["Moved"]},
        "WFD-01": {"A.tla": ["Moved"]},
        "SMP-12": {"A.tla": ["Moved"]},
        "WFD-07": {"A.tla": ["WFD07_Spacing"]},
        "WFD-08": {"A.tla": ["WFD07_Spacing"]},
    }


def test_places_in_proofs_are_obligations_before_functions() -> None:
    text = '''
BUGS = {"forgets": "reject: WFD-07 spacing"}
def claims(s):
    """Says it (WFD-07, WFD-08)."""
    return {"WFD-07 spacing": 1, "WFD-07 eager": 2}
'''
    assert named_in_proofs({"a.py": text}) == {
        "WFD-07": {"a.py": ["spacing", "eager"]},
        "WFD-08": {"a.py": ["claims"]},
    }

"""Writes the table of clauses: for each, the code, the tests and the formal part that name it.

`python -m spec.table` writes `99-table.md`. Nothing there is typed: the ids in docstrings, the marks of tests and the
names in the formal part are the table.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final, NamedTuple

from spec import clauses
from spec.clauses import Clause, Places

PAGE: Final = clauses.REPOSITORY / "spec" / "99-table.md"
"""Where the table is."""

_INTRODUCTION: Final = """\
<!-- Written by spec/table.py, which `make figures` runs. Nothing here is typed by hand. -->

# 99. From clause to code, test and proof

For every binding clause: where `reference/` names it, the tests that are marked with it, and what names it in the
formal part ([90](90-formal.md)). The page is made from these names and binds nobody. A test is given by its claim,
which is its name without `test_` and underscores. In the formal part, what stands behind a `.tla` file are definitions
and properties, and behind a file of the proof obligations.
"""


class Row(NamedTuple):
    """One clause and all that names it."""

    identifier: str
    """The id."""
    clause: Clause
    """What the spec states."""
    code: Mapping[str, list[str]]
    """The places in `reference/`, by file."""
    tests: Mapping[str, list[str]]
    """The tests, by file."""
    formal: Mapping[str, list[str]]
    """The definitions and obligations, by file."""


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(rows(), headings()), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(clauses.REPOSITORY)}\n")


def rows() -> list[Row]:
    """Gives the row of every binding clause of the repository, by file and id."""
    formal = clauses.named_in_tla(clauses.read("spec/*.tla"))
    return joined(
        clauses.clauses(clauses.read("spec/*.md")),
        code=clauses.named_in_python(clauses.read("reference/**/*.py")),
        tests=clauses.marks(clauses.read("tests/**/*.py")),
        formal=clauses.merged(formal, clauses.named_in_proofs(clauses.read("spec/proof/*.py", "spec/traces.py"))),
    )


def joined(stated: Mapping[str, Clause], *, code: Places, tests: Places, formal: Places) -> list[Row]:
    """Gives the row of every binding clause, by file and id."""
    return [
        Row(name, clause, code.get(name, {}), tests.get(name, {}), formal.get(name, {}))
        for name, clause in sorted(stated.items(), key=lambda item: (item[1].file, item[0]))
        if not clause.is_withdrawn
    ]


def gaps(of: Iterable[Row]) -> list[str]:
    """Names the binding clauses that no code names or no test holds."""
    found = []
    for row in of:
        if not row.tests:
            found.append(f"{row.identifier} has no test")
        if not row.code:
            found.append(f"{row.identifier} is named nowhere in reference/")
    return found


def headings() -> dict[str, str]:
    """Gives the heading of every file of clauses."""
    return {file: text.partition("\n")[0].removeprefix("# ") for file, text in clauses.read("spec/*.md").items()}


def page(of: Iterable[Row], titles: Mapping[str, str]) -> str:
    """Gives the page."""
    return _INTRODUCTION + "".join(
        f"\n## {titles[file]}\n\n" + "".join(f"{line}\n" for line in _table(group))
        for file, group in groupby(of, key=lambda row: row.clause.file)
    )


def _table(of: Iterable[Row]) -> Iterator[str]:
    yield "| clause | code | tests | formal |"
    yield "| --- | --- | --- | --- |"
    for row in of:
        file = row.clause.file.removeprefix("spec/")
        cells = [
            f"[{row.identifier}]({file}#{row.identifier.lower()}) {row.clause.opening}",
            _cell(row.code, "reference/", _code) or "-",
            _cell(row.tests, "tests/", _claim),
            _cell(row.formal, "spec/", _code) or "-",
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cell(places: Mapping[str, list[str]], folder: str, word: Callable[[str], str]) -> str:
    """Gives the files, each a link with what it says of the clause; one file a line.

    Args:
        places: Files of one folder, and the places in each.
        folder: What their paths begin with.
        word: Gives what is shown for a place.
    """
    lines = []
    for file, names in sorted(places.items()):
        words = "; ".join(filter(None, map(word, names)))
        lines.append(f"[{file.removeprefix(folder)}]({_link(file)})" + (f": {words}" if words else ""))
    return "<br>".join(lines)


def _link(file: str) -> str:
    """Gives the way to a file from the page."""
    return file.removeprefix("spec/") if file.startswith("spec/") else f"../{file}"


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


def _claim(test: str) -> str:
    """Gives the claim that a test's name makes; a mark on a file holds for all its tests."""
    return re.sub(r"^test_", "", test.rpartition(".")[2]).replace("_", " ") or "every test"


if __name__ == "__main__":
    main()

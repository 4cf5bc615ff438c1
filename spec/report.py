"""Says what stands behind every clause: `python -m spec.report`, the end of `make spec`.

The proofs are run here. What the model checker checks and what tests hold is read from where it is written; the suite
runs it, and `make spec` comes here only if all of that passed, or was skipped for want of Java, which the report says.
"""

import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from spec import tlc
from spec.clauses import CLAUSE_ID, mentioning, read
from spec.proof.logic import Obligation, unproved
from spec.proof.parts import proofs
from spec.table import Row, rows

TRUST: Final = ("spec/90-formal.md", "What is left to trust")
"""The file and the heading under which it is said what nothing here shows."""

HOW_TO_READ: Final = (
    "A number in the third column counts the obligations that name the clause. They may be about a part of it; "
    "spec/90-formal.md says statement by statement what is proved. Then come all tests marked with it, "
    "on scripted, random and trained models alike; and those of them in whose source a shipped model is named."
)
"""What the table does not say by itself."""

_TRAINED: Final = re.compile(r"\bSHIPPED\b|tiny-ouro|tiny-huginn")
"""How the source of a test names the trained models."""

_WIDTH: Final = 120
"""Columns of the report."""


class Standing(NamedTuple):
    """What stands behind one clause."""

    identifier: str
    """The id."""
    opening: str
    """What it says, in short."""
    num_proved: int
    """Obligations that are proved for all sizes."""
    properties: Sequence[str]
    """Properties that hold in every state of small worlds."""
    num_tests: int
    """Tests that are marked with it."""
    num_on_trained: int
    """Those of them that run a trained model."""

    @property
    def is_formal(self) -> bool:
        """Whether more than tests holds it."""
        return bool(self.num_proved or self.properties)


def main() -> int:
    """Proves, prints, and gives the exit code: 1 if anything is left unproved."""
    obligations = [item for stated in proofs().values() for item in stated]
    left = list(unproved(obligations))
    trained = mentioning(read("tests/**/*.py"), _TRAINED)
    found = standings(rows(), (item for item in obligations if item.name not in left), trained)
    console = Console(width=_WIDTH, highlight=False, markup=False)
    console.print(f"Proved for all sizes: {len(obligations) - len(left)} of {len(obligations)} obligations, just now.")
    for name in left:
        console.print(f"  not proved: {name}")
    console.print(_table(one for one in found if one.is_formal))
    console.print(f"{HOW_TO_READ}\n")
    if tlc.jar() is None:
        console.print(f"TLC has not run here, so the fourth column says what it would check: {tlc.HOW_TO_INSTALL}.\n")
    console.print(f"By tests alone: {', '.join(one.identifier for one in found if not one.is_formal)}.")
    console.print(f"\n{TRUST[1]}:\n\n{section(*TRUST, read(TRUST[0]))}")
    return min(len(left), 1)


def standings(
    of: Iterable[Row], proved: Iterable[Obligation], trained: Container[tuple[str, str]] = ()
) -> list[Standing]:
    """Gives what stands behind every clause.

    Args:
        of: The table of clauses.
        proved: The obligations that hold. One that names no clause is a lemma of others.
        trained: File and name of every test that runs a trained model.
    """
    num_proved = Counter(name for item in proved for name in CLAUSE_ID.findall(item.name))
    return [
        Standing(
            row.identifier,
            row.clause.opening,
            num_proved[row.identifier],
            properties=sorted(
                {
                    name
                    for file, names in row.formal.items()
                    for name in names
                    if file.endswith(".tla") and name.startswith(row.identifier.replace("-", "") + "_")
                }
            ),
            num_tests=sum(map(len, row.tests.values())),
            num_on_trained=sum(
                (file, name.partition(".")[0]) in trained for file, names in row.tests.items() for name in names
            ),
        )
        for row in of
    ]


def section(file: str, heading: str, texts: Mapping[str, str]) -> str:
    """Gives what stands under a heading of the second level.

    Raises:
        LookupError: If there is no such heading.
    """
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", texts[file], re.MULTILINE | re.DOTALL)
    if found is None:
        message = f"{file} has no section {heading!r}"
        raise LookupError(message)
    return found[1].strip()


def _table(of: Iterable[Standing]) -> Table:
    shown = Table(box=None, pad_edge=False)
    shown.add_column("clause", no_wrap=True)
    shown.add_column("what it is about", ratio=1, no_wrap=True, overflow="ellipsis")
    shown.add_column("proved by Z3, all sizes", justify="right", width=12)
    shown.add_column("checked by TLC, every state of small worlds", width=40)
    shown.add_column("tests", justify="right")
    shown.add_column("on trained models", justify="right", width=10)
    for one in of:
        proved, trained = str(one.num_proved or "-"), str(one.num_on_trained or "-")
        shown.add_row(
            one.identifier, one.opening, proved, ", ".join(one.properties) or "-", str(one.num_tests), trained
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())

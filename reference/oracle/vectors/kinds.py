"""The kinds of vectors there are, their files, and how the files are written."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

from reference.errors import ParameterError
from reference.oracle.vectors import invalid, numerics, sampling, schedule, sharing, tokens
from reference.oracle.vectors.form import FLAGS, FOLDER, FORMAT, Vector, read
from reference.oracle.vectors.kind import Kind, schema_of
from reference.oracle.vectors.layout import pretty

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {kind.name: kind for kind in (schedule.KIND, tokens.KIND, numerics.KIND, sampling.KIND, invalid.KIND, sharing.KIND)}
)
"""The kinds, by name. A new one gets its line here."""


def load(kind: str | None = None) -> list[Vector]:
    """Reads the vectors that ship with the library.

    Args:
        kind: A kind; None reads all.

    Raises:
        ParameterError: If there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"kind={kind!r} is none of {', '.join(KINDS)} (CONF-07)")
    index = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    names = [name for one in (KINDS if kind is None else (kind,)) for name in index["vectors"][one]]
    return [read((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in names]


def files(kinds: Mapping[str, list[Vector]]) -> Iterator[tuple[PurePosixPath, str]]:
    """Gives every file below `FOLDER`, and its text.

    Args:
        kinds: The vectors of every kind.
    """
    names = {kind: [vector.id for vector in vectors] for kind, vectors in kinds.items()}
    yield PurePosixPath("index.json"), pretty({"format": FORMAT, "flags": dict(FLAGS), "vectors": names}) + "\n"
    for kind, vectors in kinds.items():
        yield PurePosixPath(f"{kind}.schema.json"), pretty(schema_of(KINDS[kind])) + "\n"
        for vector in vectors:
            yield PurePosixPath(f"{vector.id}.json"), vector.written()


def main() -> None:
    """Makes all vectors and writes them; files that are no longer made are deleted."""
    made = dict(files({name: list(kind.make()) for name, kind in KINDS.items()}))
    for kind in KINDS:
        shutil.rmtree(FOLDER / kind, ignore_errors=True)
    for name, text in made.items():
        path = Path(FOLDER / name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(made)} files, {sum(map(len, made.values())):,} bytes\n")

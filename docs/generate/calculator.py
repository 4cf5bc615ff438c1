"""The tables behind the calculator: shapes, machines, software and types of numbers, as the cost model has them.

The page takes them in as they are. Names are turned to those of the script: `recurrence_depth` to `recurrenceDepth`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import Final

from reference.cost import paper
from reference.cost.latency import SOFTWARE
from reference.cost.machines import MACHINES, Machine
from reference.cost.shapes import PRESETS
from reference.cost.work import PRECISIONS

HARDWARE: Final[Mapping[str, Machine]] = {name: paper.known_machine(name) for name in MACHINES}
"""The machines as `wfd cost` takes them."""


def files(docs: Path) -> Mapping[Path, str]:
    """Gives the content of the one file."""
    return {docs / "assets" / "calculator" / "tables.json": json.dumps(tables(), indent=1) + "\n"}


def tables() -> dict[str, object]:
    """Gives every table by name, and in it every entry by the name that the command line takes."""
    # A map that cannot be changed cannot be copied either, which `asdict` does.
    machines = {
        name: replace(one, peak_flops_per_second=dict(one.peak_flops_per_second)) for name, one in HARDWARE.items()
    }
    known = {precision for one in machines.values() for precision in one.peak_flops_per_second}
    return {
        "shapes": {name: record(shape) for name, shape in PRESETS.items()},
        "machines": {name: record(one) for name, one in machines.items()},
        "software": {name: record(software) for name, software in SOFTWARE.items()},
        "precisions": {name: record(precision) for name, precision in PRECISIONS.items() if name in known},
    }


def record(entry: object) -> object:
    """Gives a dataclass as a script would have it."""
    return _plain(asdict(entry))  # type: ignore[call-overload]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {_camel(key): _plain(inner) for key, inner in value.items()}
    return value.value if isinstance(value, Enum) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)

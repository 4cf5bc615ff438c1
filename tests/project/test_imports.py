"""Imports point one way. The tables say which; every rule is shown to be able to fail."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from tests.project.sources import REPOSITORY, imports, lies_in, loaded_by, modules, parsed

LAYERS = (
    ("reference.errors", "reference.axes", "reference.dtypes", "reference.spans"),
    ("reference.schedule", "reference.stopping", "reference.trace", "reference.models.protocol"),
    ("reference.counts", "reference.kv", "reference.provenance", "reference.sampling", "reference.states"),
    ("reference.prefill",),
    ("reference.models",),
    ("reference.engine",),
    ("reference.ar", "reference.dtv", "reference.wfd"),
    ("reference.cost", "reference.oracle", "reference.graphs", "reference.figures", "reference.training"),
    ("reference.bench", "reference.hf"),
    ("reference.cli", "reference.__main__"),
)
"""Lowest first. A module imports from its own layer and from lower ones. A new module gets its place here.

The longest name counts: what an engine may know of a model lies lower than the models themselves.
"""


class Ban(NamedTuple):
    """What some modules may never import."""

    importer: str
    """A module or package."""
    target: str
    """The module or package that it may not import."""
    also_indirectly: bool = False
    """Whether the ban holds for everything that the import loads."""
    excepted: tuple[str, ...] = ()
    """Modules or packages inside `importer` that the ban leaves free."""


BANS = (
    # A schedule is integers.
    Ban("reference.schedule", "torch", also_indirectly=True),
    Ban("reference.stopping", "torch", also_indirectly=True),
    Ban("reference.trace", "torch", also_indirectly=True),
    # So are the decoders; the engine behind their `generate` is what holds tensors.
    Ban("reference.ar", "torch"),
    Ban("reference.dtv", "torch"),
    Ban("reference.wfd", "torch"),
    # A model knows no decoder, the cost model knows shapes and no model.
    Ban("reference.models", "reference.schedule"),
    Ban("reference.cost", "reference.models"),
    # The engine knows the Protocol, and of the schedules their interface.
    Ban("reference.engine", "reference.models.ouro"),
    Ban("reference.engine", "reference.models.huginn"),
    Ban("reference.engine", "reference.models.scripted"),
    # Plots are an extra: nothing needs them but the module that draws.
    Ban("reference", "matplotlib", excepted=("reference.cost.plots",)),
    # No release of transformers can break the core.
    Ban("reference", "transformers", excepted=("reference.hf", "reference.cli")),
    # What tests need, users do not install.
    Ban("reference", "beartype"),
    Ban("reference", "hypothesis"),
    Ban("reference", "pytest"),
)


def wrong_directions(trees: Mapping[str, ast.Module]) -> list[str]:
    """Names every import from a higher layer, every relative one, and every module without a layer."""
    heights = {prefix: height for height, layer in enumerate(LAYERS) for prefix in layer}

    def height(module: str) -> int | None:
        return heights.get(max((prefix for prefix in heights if lies_in(module, prefix)), key=len, default=""))

    faults = []
    for name, tree in trees.items():
        own = height(name)
        if own is None and name != "reference":
            faults.append(f"{name} has no layer")
        for target, line in imports(tree, trees):
            other = height(target)
            if target.startswith("."):
                faults.append(f"{name}:{line} imports {target}, which is relative")
            elif own is not None and other is not None and other > own:
                faults.append(f"{name}:{line} imports {target}, which lies higher")
    return faults


def broken_bans(trees: Mapping[str, ast.Module]) -> list[str]:
    """Names every import that a row of `BANS` excludes, with the chain that leads to it."""
    faults = []
    for ban in BANS:
        for name in trees:
            if not lies_in(name, ban.importer) or any(lies_in(name, free) for free in ban.excepted):
                continue
            if ban.also_indirectly:
                chains = list(loaded_by(name, trees).values())
            else:
                chains = [(name, target) for target, _ in imports(trees[name], trees)]
            faults += [" -> ".join(chain) for chain in chains if lies_in(chain[-1], ban.target)]
    return faults


def undeclared_imports(trees: Mapping[str, ast.Module], declared: set[str]) -> list[str]:
    """Names every import of a package that is neither Python's, nor ours, nor a declared dependency."""
    known = {"reference", *sys.stdlib_module_names, *declared}
    return [
        f"{name}:{line} imports {target}"
        for name, tree in trees.items()
        for target, line in imports(tree, trees)
        if target.partition(".")[0] not in known
    ]


def unchecked_annotations(trees: Mapping[str, ast.Module]) -> list[str]:
    """Names what the run-time checks of annotations cannot read, though a static checker can."""
    faults = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module="__future__"):
                    faults.append(f"{name}:{node.lineno} turns annotations into text")
                case ast.ImportFrom(module="typing" | "typing_extensions", names=names):
                    if any(alias.name == "Self" for alias in names):
                        faults.append(f"{name}:{node.lineno} imports Self; write the name of the class")
                case ast.ClassDef(bases=bases, decorator_list=decorators) if "Protocol" in map(ast.unparse, bases):
                    if "runtime_checkable" not in map(ast.unparse, decorators):
                        faults.append(f"{name}:{node.lineno} {node.name} is a Protocol but not @runtime_checkable")
                case _:
                    pass
    return faults


REFERENCE = modules(REPOSITORY / "reference")


def test_imports_point_down_the_layers() -> None:
    assert wrong_directions(REFERENCE) == []


def test_no_ban_on_an_import_is_broken() -> None:
    assert broken_bans(REFERENCE) == []


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies = project["dependencies"] + project["optional-dependencies"]["plots"]
    declared = {dependency.partition(">")[0].replace("-", "_") for dependency in dependencies}
    assert undeclared_imports(REFERENCE, declared) == []


def test_annotations_are_open_to_run_time_checks() -> None:
    assert unchecked_annotations(REFERENCE) == []


@pytest.mark.parametrize("ban", [ban for ban in BANS if ban.also_indirectly and ban.target == "torch"])
def test_a_module_without_torch_really_loads_without_it(ban: Ban) -> None:
    program = (
        "import sys, types\n"
        "package = sys.modules['reference'] = types.ModuleType('reference')\n"
        "package.__path__ = ['reference']  # the package without its __init__, which loads all public names\n"
        f"import {ban.importer}\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=False).returncode == 0  # noqa: S603 - our own text


def test_a_module_that_imports_upward_is_found() -> None:
    trees = parsed(
        reference__kv="from reference import engine\n",
        reference__engine="from reference.models.protocol import Model\n",
        reference__models__protocol="def f():\n    import reference.wfd\n",
    )
    assert wrong_directions(trees) == [
        "reference.kv:1 imports reference.engine, which lies higher",
        "reference.models.protocol:2 imports reference.wfd, which lies higher",
    ]


def test_a_relative_import_and_a_module_without_a_layer_are_found() -> None:
    assert wrong_directions(parsed(reference__new="from . import engine\n")) == [
        "reference.new has no layer",
        "reference.new:1 imports ., which is relative",
    ]


@pytest.mark.parametrize(
    "source,fault",
    [
        ({"reference__wfd": "import torch.nn as nn"}, "reference.wfd -> torch.nn"),
        ({"reference__cost__work": "from reference.models import ouro"}, "reference.cost.work -> reference.models"),
        ({"reference__kv": "def f():\n    import transformers"}, "reference.kv -> transformers"),
        ({"reference__engine": "from beartype import beartype"}, "reference.engine -> beartype"),
        (
            {"reference__schedule": "import reference.errors", "reference__errors": "from torch import Tensor"},
            "reference.schedule -> reference.errors -> torch",
        ),
        (
            {"reference__trace": "import reference.models.protocol", "reference__models": "import torch"},
            "reference.trace -> reference.models.protocol -> reference.models -> torch",
        ),
        (
            {"reference__stopping": "def f():\n    import reference.kv", "reference__kv": "if f():\n    import torch"},
            "reference.stopping -> reference.kv -> torch",
        ),
    ],
)
def test_a_broken_ban_is_found_with_its_chain(source: dict[str, str], fault: str) -> None:
    assert fault in broken_bans(parsed(**source))


def test_the_bridge_to_transformers_may_import_it() -> None:
    assert broken_bans(parsed(reference__hf="import transformers", reference__cli="import transformers")) == []


def test_an_undeclared_package_is_found() -> None:
    trees = parsed(reference__kv="import numpy.linalg\nimport json\nimport torch")
    assert undeclared_imports(trees, {"torch"}) == ["reference.kv:1 imports numpy.linalg"]


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations",
        "from typing import Any, Self",
        "class A(Protocol): ...",
        "@final\nclass A(Protocol): ...",
    ],
)
def test_an_annotation_closed_to_run_time_checks_is_found(source: str) -> None:
    assert unchecked_annotations(parsed(reference__kv=source)) != []


def test_a_checkable_protocol_is_open_to_run_time_checks() -> None:
    assert unchecked_annotations(parsed(reference__kv="@runtime_checkable\nclass A(Protocol): ...")) == []

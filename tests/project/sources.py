"""Reads the repository's own files as syntax trees, for the tests that hold its rules."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def modules(package: Path) -> dict[str, ast.Module]:
    """Parses every module of the package in folder `package`, by dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return found


def parsed(**sources: str) -> dict[str, ast.Module]:
    """Parses modules given as text; `__` in a name stands for a dot."""
    return {name.replace("__", "."): ast.parse(text) for name, text in sources.items()}


def lies_in(name: str, prefix: str) -> bool:
    """Tells whether a dotted name is `prefix` or lies inside it."""
    return name == prefix or name.startswith(f"{prefix}.")


def imports(tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[tuple[str, int]]:
    """Gives what a module imports anywhere, in functions and under `if` too, with the line.

    `from package import name` is an import of `package.name` where that is a module of `known`, else of `package`.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    inner = f"{module}.{alias.name}"
                    yield (inner if inner in known else module), node.lineno
            case ast.ImportFrom():
                yield "." * node.level + (node.module or ""), node.lineno
            case _:
                pass


def loaded_by(name: str, trees: Mapping[str, ast.Module]) -> dict[str, tuple[str, ...]]:
    """Gives all that importing one module loads, each with the chain of imports that leads there.

    The packages around a module count: Python runs `a/b/__init__.py` before `a/b/c.py`. The outermost does not, for it
    gathers the public names and so loads everything. An import inside a function counts: it will be run one day.
    """
    chains: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [(name, (name,))]
    while waiting:
        module, chain = waiting.pop(0)
        if module in chains:
            continue
        chains[module] = chain
        parent = module.rpartition(".")[0]
        if "." in parent:
            waiting.append((parent, (*chain, parent)))
        if module in trees:
            waiting += [(target, (*chain, target)) for target, _ in imports(trees[module], trees)]
    return chains

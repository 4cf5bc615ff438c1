"""How the files are laid out: JSON with one idea a line, so that a reader and a diff can follow it."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

_WIDTH: Final = 120
"""Columns of a file, as far as lists can be broken."""


def pretty(value: object, indent: int = 0) -> str:
    """Writes JSON so that short things stand on one line and lists of numbers fill theirs."""
    flat = json.dumps(value, allow_nan=False)
    if indent + len(flat) <= _WIDTH or not isinstance(value, dict | list):
        return flat
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return _bracketed("[]", _filled(map(json.dumps, value), indent + 1), indent)
    if isinstance(value, list):
        return _bracketed("[]", _separated(pretty(item, indent + 1) for item in value), indent)
    pairs = (f"{json.dumps(name)}: {pretty(item, indent + 1)}" for name, item in value.items())
    return _bracketed("{}", _separated(pairs), indent)


def _bracketed(brackets: str, lines: Iterable[str], indent: int) -> str:
    inner = "\n".join(" " * (indent + 1) + line for line in lines)
    return f"{brackets[0]}\n{inner}\n{' ' * indent}{brackets[1]}"


def _separated(items: Iterable[str]) -> Iterator[str]:
    *others, last = items
    yield from (f"{item}," for item in others)
    yield last


def _filled(items: Iterable[str], indent: int) -> Iterator[str]:
    """Breaks a list of scalars into lines as full as they can be."""
    line = ""
    for item in _separated(items):
        if line and indent + len(line) + 1 + len(item) > _WIDTH:
            yield line
            line = item
        else:
            line = f"{line} {item}" if line else item
    yield line

"""Reads the thread from clause to code, to test and to the formal part: which clauses there are, and what names each.

Files come in as a mapping from path to text, so that every rule here can be tried on made-up ones. What is found goes
out as `Places`: for every clause the files that name it, and where in each.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

REPOSITORY: Final = Path(__file__).resolve().parents[1]

PREFIXES: Final = ("NOT", "MOD", "KV", "SHR", "SMP", "AR", "DTV", "WFD", "COST", "CONF")
"""What a clause id may begin with; one prefix for each file of clauses."""

_PREFIX: Final = "|".join(PREFIXES)

CLAUSE_ID: Final = re.compile(rf"\b(?:{_PREFIX})-\d\d\b")
"""A clause id wherever it is mentioned."""

_RANGE: Final = re.compile(rf"\b({_PREFIX})-(\d\d)\s+to\s+\1-(\d\d)\b")
"""Several clauses in one breath: `WFD-01 to WFD-14`."""

_START: Final = rf"^ *(?:[-*] +)?\*\*{CLAUSE_ID.pattern}\.?\*\*"
_CLAUSE: Final = re.compile(rf"{_START}.*(?:\n(?!{_START}).*\S.*)*", re.MULTILINE)
"""The paragraph that states a clause: its id in bold, then its words."""

_FIRST_SENTENCE: Final = re.compile(r".*?[.:](?=\s|$)")
"""All that comes before the first stop; a full stop inside a word, as in `config.json`, is none."""

_OBLIGATION: Final = re.compile(rf"({CLAUSE_ID.pattern}) (.+)")
"""The name of something to be proved: the clause, then which part of it."""

_TLA_DEFINITION: Final = re.compile(r"^(\w+)(?:\([^)]*\))? *==")
"""The line that opens a definition of a TLA+ module, and the name defined."""

_TLA_PROPERTY: Final = re.compile(rf"({_PREFIX})(\d\d)_")
"""How the name of a property begins: with the clause it states, without the dash."""

Places: TypeAlias = dict[str, dict[str, list[str]]]
"""What names a clause: by its id the files, and for each the places in it, first ones first.

A place is a function, class or definition; the empty name is the file as a whole.
"""


class Clause(NamedTuple):
    """One clause as the paragraph that states it shows it."""

    file: str
    """The file that states it."""
    opening: str
    """Its first sentence, without the stop."""
    is_withdrawn: bool
    """Whether its first word is "withdrawn": the id stays taken, and nothing is owed."""


def read(*patterns: str) -> dict[str, str]:
    """Reads the files of the repository that fit one of the patterns."""
    paths = {path for pattern in patterns for path in REPOSITORY.glob(pattern)}
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def clauses(texts: Mapping[str, str]) -> dict[str, Clause]:
    """Gives every clause by id.

    Raises:
        ValueError: If an id opens two clauses; ids are never reused.
    """
    found: dict[str, Clause] = {}
    for file, text in texts.items():
        for paragraph in _CLAUSE.findall(text):
            _, bold, rest = paragraph.split("**", 2)
            identifier = bold.rstrip(".")
            if identifier in found:
                message = f"{identifier} is stated in {found[identifier].file} and again in {file}"
                raise ValueError(message)
            words = " ".join(rest.split())
            sentence = _FIRST_SENTENCE.match(words)
            found[identifier] = Clause(
                file,
                opening=sentence[0][:-1] if sentence else words,
                is_withdrawn=re.findall(r"[a-z]+", words.lower())[:1] == ["withdrawn"],
            )
    return found


def marks(texts: Mapping[str, str]) -> Places:
    """Gives the clauses that tests are marked with, each with the tests.

    A mark counts on a test, on a class of tests, on a `pytest.param` and in `pytestmark`.

    Raises:
        ValueError: If a mark names its clause otherwise than by a literal string, or names none.
    """
    found: Places = {}
    for file, text in texts.items():
        tree = ast.parse(text)
        definitions = list(_definitions(tree))
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="spec"), args=args):
                    for argument in args:
                        match argument:
                            case ast.Constant(value=str(name)):
                                _add(found, name, file, _owner(definitions, node.lineno))
                            case _:
                                message = f"{file}:{node.lineno} names no clause: {ast.unparse(node)}"
                                raise ValueError(message)
                case _:
                    pass
    return found


def mentioning(texts: Mapping[str, str], words: re.Pattern[str]) -> set[tuple[str, str]]:
    """Gives the functions in whose source some words stand, or a name of the file that stands for them.

    Args:
        texts: Modules.
        words: What to look for.

    Returns:
        File and name of each function.
    """
    found = set()
    for file, text in texts.items():
        parts = [(_names(node), ast.unparse(node)) for node in ast.parse(text).body]
        holders = [name for names, source in parts if words.search(source) for name in names]
        wider = re.compile("|".join([words.pattern, *(rf"\b{re.escape(name)}\b" for name in holders)]))
        found |= {(file, name) for names, source in parts if wider.search(source) for name in names}
    return found


def _names(node: ast.stmt) -> list[str]:
    """Gives the names that a statement of a module defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def named_in_python(texts: Mapping[str, str]) -> Places:
    """Gives the clauses that docstrings, comments and messages of modules name, each with the functions or classes.

    `WFD-01 to WFD-14` names all of them, but says little about any: it counts for those that nothing else in the module
    names.
    """
    found: Places = {}
    for file, text in texts.items():
        definitions = list(_definitions(ast.parse(text)))
        single, several = Places(), Places()
        for number, line in enumerate(text.splitlines(), start=1):
            owner = _owner(definitions, number)
            for identifier in _ids_in_ranges(line):
                _add(several, identifier, file, owner)
            for identifier in CLAUSE_ID.findall(_RANGE.sub("", line)):
                _add(single, identifier, file, owner)
        found = merged(found, several | single)
    return found


def named_in_tla(texts: Mapping[str, str]) -> Places:
    """Gives the clauses that TLA+ modules name, each with the definitions.

    A definition names a clause by its own name (`WFD07_Spacing`), by a comment in it, or by one right above it.
    """
    found: Places = {}
    for file, text in texts.items():
        waiting: list[str] = []
        owner = ""
        for line in text.splitlines():
            definition = _TLA_DEFINITION.match(line)
            named = CLAUSE_ID.findall(line)
            if definition:
                owner = definition[1]
                stated = _TLA_PROPERTY.match(owner)
                named += [*waiting, *([f"{stated[1]}-{stated[2]}"] if stated else [])]
                waiting = []
            elif line.startswith((r"\*", "(*")):
                waiting += named
                continue
            for identifier in named:
                _add(found, identifier, file, owner)
    return found


def named_in_proofs(texts: Mapping[str, str]) -> Places:
    """Gives the clauses that modules of the proof name, each with its obligations.

    Where a module has no obligation for a clause, the functions that name it stand instead.
    """
    found: Places = {}
    for file, text in texts.items():
        obligations = Places()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = _OBLIGATION.fullmatch(node.value)
                if named:
                    _add(obligations, named[1], file, named[2])
        found = merged(found, named_in_python({file: text}) | obligations)
    return found


def merged(one: Places, other: Places) -> Places:
    """Gives what either names; of a file that is in both, what `other` says of it."""
    return {name: one.get(name, {}) | other.get(name, {}) for name in one | other}


def _ids_in_ranges(line: str) -> Iterator[str]:
    for prefix, first, last in _RANGE.findall(line):
        yield from (f"{prefix}-{number:02}" for number in range(int(first), int(last) + 1))


def _definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[range, str]]:
    """Gives the lines and the dotted name of every function and class inside a node, outer ones first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            assert child.end_lineno is not None
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield range(first, child.end_lineno + 1), prefix + child.name
            yield from _definitions(child, f"{prefix}{child.name}.")
        else:
            yield from _definitions(child, prefix)


def _owner(definitions: Iterable[tuple[range, str]], line: int) -> str:
    """Gives the innermost definition around a line; nothing at module level."""
    return ["", *(name for lines, name in definitions if line in lines)][-1]


def _add(found: Places, identifier: str, file: str, place: str) -> None:
    places = found.setdefault(identifier, {}).setdefault(file, [])
    if place not in places:
        places.append(place)

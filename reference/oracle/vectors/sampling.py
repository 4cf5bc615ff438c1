"""Vectors of kind *sampling*: random draws by value, and choices from given logits.

The generator of MOD-06 is written here once more, in plain integers, as a reader in another language would write it:
the library draws a whole tensor at a time, and the tests hold the two against each other.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import torch

from reference.oracle.vectors.answers import RIGHT, Answer, Finding, wrong
from reference.oracle.vectors.form import JsonObject, Vector
from reference.oracle.vectors.kind import INTEGER, NUMBERS, TEXT, Field, Kind
from reference.sampling import RandomPurpose, greedy, initial_noise

_WORD: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E3779B97F4A7C15
_TOLERANCE: Final = 1e-12
"""How exact a draw must be (MOD-06)."""
_WIDTH: Final = 4
"""Draws a position that are written down."""

DRAWS: Final = (
    ("first", 0, 0, "Seed 0, position 0."),
    ("second-position", 0, 1, "The next position: another key, not the next numbers of the same stream."),
    ("another-seed", 1, 0, "Seed and position are not the same thing: compare with seed 0, position 1."),
    ("small", 3, 5, "The case of MOD-06."),
    ("far", 7, 131071, "A position far out needs no draws before it."),
    ("seed-of-53-bits", 2**53 + 1, 2, "A seed that a double cannot hold."),
    ("seed-of-64-bits", 2**64 - 1, 1000, "The largest seed."),
)
"""Name, seed, position and comment of the draws."""

CHOICES: Final[tuple[tuple[str, tuple[float, ...], str], ...]] = (
    ("largest", (0.5, 2.0, -1.0, 1.75), "The largest logit."),
    ("tie", (1.0, 3.0, 3.0, 2.0), "Two largest: the lower id, margin 0."),
    ("tie-of-all", (0.0, 0.0, 0.0), "All equal: id 0."),
    ("tie-last", (-2.0, -5.0, -2.0), "Negative logits, a tie that is not adjacent."),
    ("close", (1.0, 1.0000000000000002), "One unit of float64 apart is no tie."),
    ("single", (0.25,), "A vocabulary of one: the margin is infinite, which JSON writes as null."),
)
"""Name, logits and comment of the choices."""


def make() -> Iterator[Vector]:
    """Draws and chooses."""
    for name, seed, position, comment in DRAWS:
        key, bits = words(seed, position, _WIDTH)
        yield Vector(
            id=f"sampling/draw-{name}",
            clauses=("MOD-05", "MOD-06"),
            flag="initial state",
            comment=comment,
            input={
                "what": "initial_state",
                "state_seed": hex(seed),
                "purpose": int(RandomPurpose.INITIAL_STATE),
                "position": position,
                "elements": _WIDTH,
            },
            expected={
                "key": f"{key:#018x}",
                "bits": [f"{word:#018x}" for word in bits],
                "uniform": [uniform(word) for word in bits],
                "normal": [round(x, 14) for x in initial_noise(seed, [position], _WIDTH)[0].tolist()],
            },
        )
    for name, logits, comment in CHOICES:
        (token,), (margin,) = greedy(torch.tensor([logits], dtype=torch.float64))
        yield Vector(
            id=f"sampling/choice-{name}",
            clauses=("SMP-01", "SMP-03"),
            flag="choice",
            comment=comment,
            input={"what": "greedy", "logits": list(logits)},
            expected={"token": token, "margin": margin if len(logits) > 1 else None},
        )


def words(seed: int, position: int, width: int) -> tuple[int, list[int]]:
    """Gives the key of a position's initial state and the first 64-bit words of its stream (MOD-06)."""
    key = 0
    for value in (seed, RandomPurpose.INITIAL_STATE, position):
        key = _mix(((key ^ value) + _GAMMA) & _WORD)
    return key, [_mix((key + (element + 1) * _GAMMA) & _WORD) for element in range(width)]


def uniform(word: int) -> float:
    """Gives the number strictly between 0 and 1 that a word stands for; exact (MOD-06)."""
    return ((word >> 12) + 0.5) * 2.0**-52


def judge(vector: Vector, answer: Answer) -> Finding:
    """Compares everything that is given: words and tokens exactly, draws within the tolerance of MOD-06."""
    expected = vector.expected
    given = {name: answer.values[name] for name in KIND.answer if name in answer.values}
    foreign = sorted(given.keys() - expected.keys())
    if foreign:
        raise answer.wrong(", ".join(foreign), "part of this vector")
    if "token" in given and given["token"] != expected["token"]:
        return wrong("SMP-01", f"token {given['token']}, not {expected['token']}")
    if "margin" in given and not _is_near(answer.number("margin"), expected["margin"]):
        return wrong("SMP-03", f"margin {given['margin']}, not {expected['margin']}")
    if "key" in given and _integer(answer, "key", given["key"]) != int(expected["key"], 0):
        return wrong("MOD-06", f"key is {given['key']}, not {expected['key']}")
    if "bits" in given:
        own = [_integer(answer, "bits", word) for word in _as_list(answer, "bits")]
        if own != [int(word, 0) for word in expected["bits"]]:
            return wrong("MOD-06", f"bits are {given['bits']}, not {expected['bits']}")
    for name in ("uniform", "normal"):
        if name in given and not _are_near(_as_list(answer, name), expected[name]):
            return wrong("MOD-06", f"{name} is {given[name]}, not {expected[name]} within {_TOLERANCE}")
    return RIGHT


def _mix(word: int) -> int:
    """The finaliser of splitmix64."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def _integer(answer: Answer, name: str, value: object) -> int:
    """Reads a 64-bit number, in hexadecimal or, where a language has such numbers, as one."""
    try:
        return int(value, 0) if isinstance(value, str) else int(str(value))
    except ValueError as error:
        raise answer.wrong(name, "a whole number in hexadecimal") from error


def _as_list(answer: Answer, name: str) -> list[object]:
    value = answer.values[name]
    if not isinstance(value, list):
        raise answer.wrong(name, "a list")
    return value


def _is_near(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) <= _TOLERANCE


def _are_near(given: Sequence[object], expected: Sequence[float]) -> bool:
    return len(given) == len(expected) and all(
        isinstance(one, int | float) and abs(one - other) <= _TOLERANCE
        for one, other in zip(given, expected, strict=True)
    )


_WORD_TEXT: Final[JsonObject] = {"type": "string", "pattern": "^0x[0-9a-f]{16}$"}
_WORD_TEXTS: Final[JsonObject] = {"type": "array", "items": _WORD_TEXT}
_MARGIN: Final[JsonObject] = {"type": ["number", "null"]}

KIND: Final = Kind(
    name="sampling",
    summary="Random draws by value, and the token that is chosen from given logits.",
    input={
        "what": Field({"enum": ["initial_state", "greedy"]}, "a draw of the initial state, or a choice from logits"),
        "state_seed": Field(TEXT, "seed, in hexadecimal; for a draw, as the next three", is_optional=True),
        "purpose": Field(INTEGER, "what the numbers are for; 0 is the initial state", is_optional=True),
        "position": Field(INTEGER, "position", is_optional=True),
        "elements": Field(INTEGER, "how many numbers", is_optional=True),
        "logits": Field(NUMBERS, "logits; for a choice", is_optional=True),
    },
    expected={
        "key": Field(_WORD_TEXT, "key of the position's stream; 64 bits in hexadecimal", is_optional=True),
        "bits": Field(_WORD_TEXTS, "its first words", is_optional=True),
        "uniform": Field(NUMBERS, "u of MOD-06, exact", is_optional=True),
        "normal": Field(NUMBERS, "x of MOD-06, within 1e-12", is_optional=True),
        "token": Field(INTEGER, "the chosen id", is_optional=True),
        "margin": Field(_MARGIN, "largest logit minus the largest of any other id; null is infinite", is_optional=True),
    },
    answer={
        "key": Field(TEXT, "your key", is_optional=True),
        "bits": Field({"type": "array", "items": TEXT}, "your words", is_optional=True),
        "uniform": Field(NUMBERS, "your u", is_optional=True),
        "normal": Field(NUMBERS, "your x", is_optional=True),
        "token": Field(INTEGER, "your choice", is_optional=True),
        "margin": Field(_MARGIN, "your margin", is_optional=True),
    },
    make=make,
    judge=judge,
    tolerance=_TOLERANCE,
)

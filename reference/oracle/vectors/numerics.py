"""Vectors of kind *numerics*: states, logits and KV cells of a short prompt at every depth, for golden checkpoints.

The weights are those of the golden checkpoints, for which the official code's own numbers are recorded: a test holds
these vectors against them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from reference import prefill
from reference.kv import KVCache
from reference.models.protocol import LoopedModel
from reference.oracle.tolerance import TOLERANCES, coarser
from reference.oracle.vectors import weights
from reference.oracle.vectors.answers import RIGHT, Answer, Finding, wrong
from reference.oracle.vectors.form import JsonObject, Vector
from reference.oracle.vectors.kind import INTEGER, INTEGERS, NUMBER, TEXT, Field, Kind
from reference.provenance import Part

_DIGITS: Final = 6
"""Decimals in the files."""

_DTYPES: Final = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A line of the table from which the vectors are made."""

    name: str
    """Name of the vector."""
    comment: str
    """What it is about."""
    model: str
    """Which weights."""
    tokens: tuple[int, ...]
    """The sequence."""
    seed: int = 0
    """Of the initial state."""
    scale: float = 1.0
    """Of the initial state."""
    has_cells: bool = True
    """Whether the KV cells are written down."""


CASES: Final = (
    Case(name="ouro-tiny", model="ouro-tiny", tokens=(181, 25), comment="Full-stack type: states, logits and cells."),
    Case(
        name="huginn-tiny-zero-state",
        model="huginn-tiny",
        tokens=(22, 164),
        scale=0.0,
        comment="P/R/C type from an initial state of 0: no random numbers are needed.",
    ),
    Case(
        name="huginn-tiny-seed-3",
        model="huginn-tiny",
        tokens=(22, 164, 76),
        seed=3,
        has_cells=False,
        comment="P/R/C type from a random initial state, which is the state at depth 0.",
    ),
)
"""What the vectors are made from."""


def make() -> Iterator[Vector]:
    """Runs every case, all positions together."""
    for case in CASES:
        model = weights.loaded(case.model)
        expected = _computed(model, case)
        if not case.has_cells:
            del expected["keys"], expected["values"]
        clauses = {"MOD-03", "MOD-04", "MOD-12"} | ({"KV-01"} if case.has_cells else set())
        yield Vector(
            id=f"numerics/{case.name}",
            clauses=tuple(sorted(clauses | ({"MOD-05", "MOD-06"} if case.seed else set()))),
            flag="network",
            comment=case.comment,
            input={
                "model": weights.described(case.model),
                "token_ids": list(case.tokens),
                "recurrence_depth": model.recurrence_depth,
                "state_seed": hex(case.seed),
                "state_scale": case.scale,
            },
            expected={"tolerance": TOLERANCES[torch.float32]} | expected,
        )


@torch.inference_mode()
def _computed(model: LoopedModel, case: Case) -> JsonObject:
    positions = range(len(case.tokens))
    cache = KVCache(
        model.kv_shapes,
        recurrence_depth=model.recurrence_depth,
        num_positions=len(positions),
        dtype=model.dtype,
        device=model.device,
    )
    drawn = model.initial_states(positions, seed=case.seed, scale=case.scale)
    tokens = torch.tensor(case.tokens, device=model.device)
    start, injected_inputs = prefill.start(model, cache, tokens, positions, drawn)
    states, logits = [start], []
    for depth, climbed in enumerate(prefill.climb(model, cache, positions, start, injected_inputs), start=1):
        states.append(climbed)
        hidden = model.coda(climbed, cache.rows(Part.CODA, positions, [depth] * len(positions)))
        logits.append(model.head(hidden[-1:])[0])
    everywhere = slice(0, len(positions))
    keys, values = {}, {}
    for part, layers in (
        (Part.PRELUDE, model.kv_shapes.prelude_layers),
        (Part.RECURRENT, model.kv_shapes.recurrent_layers),
        (Part.CODA, model.kv_shapes.coda_layers),
    ):
        if not layers:
            continue
        recurrences = range(model.recurrence_depth if part is Part.RECURRENT else 1)
        pairs = [cache.cells(part, everywhere, recurrence=recurrence) for recurrence in recurrences]
        keys[part.value] = [_rounded(key.transpose(1, 2)) for key, _ in pairs]
        values[part.value] = [_rounded(value.transpose(1, 2)) for _, value in pairs]
    return {
        "states": [_rounded(state) for state in states],
        "logits": [_rounded(row) for row in logits],
        "keys": keys,
        "values": values,
    }


def _rounded(tensor: Tensor) -> Any:  # noqa: ANN401 - lists in lists, as deep as the tensor has axes
    # Adding 0 turns a rounded -0.0 into 0.0, which every parser reads alike.
    return (tensor.double().round(decimals=_DIGITS) + 0.0).tolist()


def judge(vector: Vector, answer: Answer) -> Finding:
    """Compares every number that is given; names the first array, in order of computation, that is off."""
    name = answer.text("dtype") or "float32"
    if name not in _DTYPES:
        raise answer.wrong("dtype", f"any of {', '.join(_DTYPES)}")
    relative = TOLERANCES[coarser(torch.float32, getattr(torch, name))]
    pairs = list(_pairs(vector, answer))
    if not pairs:
        raise answer.wrong("states, logits, keys or values", "given")
    for place, given, expected, clause in pairs:
        finding = _compared(answer, place, given, expected, relative, clause)
        if finding is not RIGHT:
            return finding
    return RIGHT


def _pairs(vector: Vector, answer: Answer) -> Iterator[tuple[str, object, object, str]]:
    """Gives what is given beside what is expected, each with its name and its clause."""
    for name, clause in (("states", "MOD-12"), ("logits", "MOD-04")):
        if name in answer.values:
            yield from _by_depth(answer, name, answer.values[name], vector.expected[name], clause)
    for name in ("keys", "values"):
        parts = answer.object(name) or {}
        for part, given in parts.items():
            expected = vector.expected.get(name, {}).get(part)
            if expected is None:
                raise answer.wrong(f"{name}.{part}", "part of this vector")
            yield from _by_depth(answer, f"{name}.{part}", given, expected, "KV-01")


def _by_depth(
    answer: Answer, name: str, given: object, expected: Sequence[object], clause: str
) -> Iterator[tuple[str, object, object, str]]:
    if not isinstance(given, list) or len(given) != len(expected):
        raise answer.wrong(name, f"a list of {len(expected)} entries")
    for number, (one, other) in enumerate(zip(given, expected, strict=True)):
        yield f"{name}[{number}]", one, other, clause


def _compared(answer: Answer, place: str, given: object, expected: object, relative: float, clause: str) -> Finding:
    try:
        ours, theirs = torch.tensor(expected, dtype=torch.float64), torch.tensor(given, dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise answer.wrong(place, "an array of numbers") from error
    if ours.shape != theirs.shape:
        raise answer.wrong(place, f"of shape {tuple(ours.shape)}")
    tolerance = relative * max(1.0, float(ours.abs().max()))
    # NaN is not within any distance.
    errors = torch.where((ours - theirs).isnan(), torch.inf, (ours - theirs).abs())
    if float(errors.max()) <= tolerance:
        return RIGHT
    where = [int(index) for index in torch.nonzero(errors == errors.max())[0]]
    at = "".join(f"[{index}]" for index in where)
    what = f"{place}{at} is {theirs[tuple(where)]:.6g}, not {ours[tuple(where)]:.6g} within {tolerance:.2g}"
    return wrong(clause, f"{what}, the largest error of {place}")


def _array(axes: int) -> JsonObject:
    schema: JsonObject = NUMBER
    for _ in range(axes):
        schema = {"type": "array", "items": schema}
    return schema


_CELLS: Final[JsonObject] = {
    "type": "object",
    "properties": {part.value: _array(5) for part in Part},
    "additionalProperties": False,
}
_CELL_AXES: Final = "by part; axes: recurrence (one entry for prelude and coda), layer, position, head, element"

KIND: Final = Kind(
    name="numerics",
    summary="States, logits and KV cells of a short sequence at every depth.",
    input={
        "model": Field(weights.SCHEMA, "the weights"),
        "token_ids": Field(INTEGERS, "the sequence, from position 0"),
        "recurrence_depth": Field(INTEGER, "T"),
        "state_seed": Field(TEXT, "seed of the initial state, in hexadecimal"),
        "state_scale": Field(NUMBER, "scale of the initial state"),
    },
    expected={
        "tolerance": Field(NUMBER, "of float32, times the largest number of an array or 1 (CONF-04)"),
        "states": Field(_array(3), "axes: depth from 0, position, element; float64, 6 decimals"),
        "logits": Field(_array(2), "of the last position; axes: depth from 1, id; coda entries are those of the depth"),
        "keys": Field(_CELLS, f"after RoPE, at full depth; {_CELL_AXES}", is_optional=True),
        "values": Field(_CELLS, f"likewise; {_CELL_AXES}", is_optional=True),
    },
    answer={
        "states": Field(_array(3), "yours", is_optional=True),
        "logits": Field(_array(2), "yours", is_optional=True),
        "keys": Field(_CELLS, "yours", is_optional=True),
        "values": Field(_CELLS, "yours", is_optional=True),
        "dtype": Field({"enum": list(_DTYPES)}, "the type you compute in; float32 if not given", is_optional=True),
    },
    make=make,
    judge=judge,
    tolerance=2 * 10.0**-_DIGITS,
)

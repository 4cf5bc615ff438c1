"""Vectors of kind *sharing*: recurrences that share KV slots, as maps without a model and as texts of real weights.

A text is that of one run: below the bounds of SHR-08 and SHR-09 a decoder's tokens are its own, not those of AR. Slots
that layers share appear there only where the bound holds, since exact and batched arithmetic may differ otherwise.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from reference import ar, dtv, wfd
from reference.engine import Output
from reference.models.shipped import SHIPPED
from reference.oracle.vectors import weights
from reference.oracle.vectors.answers import RIGHT, Answer, Finding, wrong
from reference.oracle.vectors.form import JsonObject, Vector
from reference.oracle.vectors.kind import BOOLEAN, INTEGER, INTEGERS, NUMBER, TEXT, Field, Kind
from reference.oracle.vectors.tokens import (
    DTYPES,
    TEXT_FIELDS,
    TOLERANCE,
    compared,
    dtype_of,
    prompt_ids_of,
    text_of,
)
from reference.oracle.verdicts import Verdict
from reference.sharing import equality_with_ar, slot_map

MAPS: Final[tuple[tuple[int | str, int, int, str], ...]] = (
    (1, 4, 3, "One slot a layer."),
    (2, 4, 3, "Two slots in turn."),
    (3, 4, 3, "More slots may ask for more draft depth than fewer."),
    (4, 4, 3, "As many slots as recurrences: nothing is shared."),
    (4, 32, 4, "Huginn's depth with four slots in turn."),
    (3, 7, 2, "Slots that do not divide the depth."),
    ("compress-s1", 4, 2, "One slot for all layers."),
    ("compress-s6", 8, 4, "Slots in turn by layers, so that layers share."),
    ("compress-s8", 32, 4, "Two slots a layer, by the name of Huginn's code."),
    ("compress-r8", 8, 4, "Runs of eight steps share a slot."),
    ("compress-r5", 4, 3, "Runs that no layer ends."),
    ("compress-anchor", 8, 4, "The anchor reaches over eight recurrences of four layers: nothing is shared."),
    ("compress-anchor", 11, 4, "Behind the anchor four slots are shared."),
    ("latest-m4-compress-s4", 8, 4, "A lookup changes nothing."),
    ("full", 4, 3, "A slot for every step, by name."),
    ("skip", 4, 3, "A lookup alone shares nothing."),
)
"""Slots, recurrence depth, layers and comment of the maps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A line of the table from which the texts are made."""

    model: str
    """Which weights; T is theirs."""
    kv_slots: int | str
    """The slots."""
    decoder: str
    """`ar`, `dtv` or `wfd`."""
    draft_depth: int
    """d; T for AR."""
    comment: str
    """What it is about."""
    budget: int = 8
    """M."""


_PROMPTS: Final[dict[str, str | tuple[int, ...]]] = {
    "ouro-tiny": (253, 198, 233, 68, 186),
    "huginn-tiny": (22, 164, 76, 178, 193),
    "tiny-ouro": "qa",
}

CASES: Final = (
    Case(model="ouro-tiny", kv_slots=1, decoder="ar", draft_depth=4, comment="AR with one slot."),
    Case(model="ouro-tiny", kv_slots=2, decoder="wfd", draft_depth=2, comment="WFD at the very bound of SHR-08."),
    Case(model="ouro-tiny", kv_slots=4, decoder="wfd", draft_depth=1, comment="Enough slots are no sharing."),
    Case(model="ouro-tiny", kv_slots=4, decoder="dtv", draft_depth=1, comment="Enough slots: DtV is AR too."),
    Case(model="ouro-tiny", kv_slots=1, decoder="dtv", draft_depth=4, comment="With d = T nothing is drafted."),
    Case(
        model="huginn-tiny",
        kv_slots="compress-s6",
        decoder="ar",
        draft_depth=8,
        comment="Layers share slots, and the text is another one than without sharing.",
    ),
    Case(
        model="huginn-tiny", kv_slots="compress-r8", decoder="ar", draft_depth=8, comment="Neighbours in depth share."
    ),
    Case(
        model="huginn-tiny",
        kv_slots="compress-r8",
        decoder="wfd",
        draft_depth=2,
        comment="Layers share slots, and WFD at the bound of SHR-08 is AR all the same.",
    ),
    Case(
        model="tiny-ouro",
        kv_slots=1,
        decoder="ar",
        draft_depth=4,
        budget=6,
        comment="AR with one slot, trained weights.",
    ),
    Case(
        model="tiny-ouro",
        kv_slots=1,
        decoder="wfd",
        draft_depth=1,
        budget=6,
        comment="Below the bound WFD says something else than AR.",
    ),
    Case(
        model="tiny-ouro",
        kv_slots=1,
        decoder="wfd",
        draft_depth=3,
        budget=6,
        comment="At the bound WFD is AR under the same sharing.",
    ),
    Case(
        model="tiny-ouro",
        kv_slots=1,
        decoder="dtv",
        draft_depth=3,
        budget=6,
        comment="The bound of SHR-08 does not hold for DtV, which says something else than AR.",
    ),
)
"""What the texts are made from."""


def make() -> Iterator[Vector]:
    """Makes the maps and decodes the texts; that one is AR's where that is claimed is asserted, not hoped."""
    for kv_slots, depth, layers, comment in MAPS:
        yield _map(kv_slots, depth, layers, comment)
    for case in CASES:
        yield _text(case)


def judge(vector: Vector, answer: Answer) -> Finding:
    """Compares everything that is given."""
    expected = vector.expected
    foreign = sorted(answer.values.keys() - expected.keys() - {"id", *(["dtype"] if "token_ids" in expected else [])})
    if foreign:
        raise answer.wrong(", ".join(foreign), "part of this vector")
    if not answer.values.keys() & expected.keys():
        raise answer.wrong(", ".join(name for name in KIND.answer if name in expected), "given")
    slots = answer.integers("slots")
    if slots is not None and not _is_same_sharing(slots, expected["slots"]):
        return wrong("SHR-02", f"slots are {slots}, not {expected['slots']} or the same in other numbers")
    given = {
        "least_draft_depth": ("SHR-08", answer.number("least_draft_depth")),
        "least_settled_depth": ("SHR-09", answer.number("least_settled_depth")),
        "kv_bytes": ("SHR-03", answer.number("kv_bytes")),
        "exactness": ("SHR-11", answer.text("exactness")),
        "equals_ar": ("SHR-11", answer.truth("equals_ar")),
    }
    for name, (clause, value) in given.items():
        if value is not None and value != expected[name]:
            return wrong(clause, f"{name} is {value}, not {expected[name]}")
    ids, reason, dtype = answer.integers("token_ids"), answer.text("finish_reason"), dtype_of(answer)
    if reason is not None and ids is None:
        raise answer.wrong("token_ids", "given")
    if ids is None or (ids == expected["token_ids"] and reason in {None, expected["finish_reason"]}):
        return RIGHT
    found = compared(expected, ids, reason, dtype, clause="SHR-07" if expected["equals_ar"] else "SHR-05")
    if found.clause == "SHR-05" and dtype is not torch.float64:
        why = "rounding may have decided a draft, and so what later rows find (SHR-08)"
        return Finding(Verdict.NEAR_TIE, f"{found.reason}; {why}")
    return found


def _map(kv_slots: int | str, depth: int, layers: int, comment: str) -> Vector:
    slots = slot_map(kv_slots, recurrence_depth=depth, recurrent_layers=layers)
    clauses = ["SHR-01", "SHR-02", *([] if slots.is_shared else ["SHR-06"]), "SHR-08", "SHR-09"]
    return Vector(
        id=f"sharing/map-{_name(kv_slots)}-of-{depth}x{layers}",
        clauses=tuple(clauses),
        flag="slots",
        comment=comment,
        input={
            "what": "slot_map",
            "kv_slots": kv_slots,
            "recurrence_depth": depth,
            "recurrent_layers": layers,
        },
        expected={
            "slots": list(slots.by_step),
            "least_draft_depth": slots.least_draft_depth,
            "least_settled_depth": next(d for d in range(1, depth + 1) if slots.is_settled_after(d)),
        },
    )


def _text(case: Case) -> Vector:
    model = weights.loaded(case.model)
    problem: JsonObject = {
        "what": "text",
        "kv_slots": case.kv_slots,
        "recurrence_depth": model.recurrence_depth,
        "recurrent_layers": model.kv_shapes.recurrent_layers,
        "model": weights.described(case.model),
        "prompt_ids": prompt_ids_of(case.model, _PROMPTS[case.model]),
        "max_new_tokens": case.budget,
        "stop_ids": sorted(model.eos_token_ids) if case.model in SHIPPED else [],
        "state_seed": "0x0",
        "state_scale": 0.0,
        "decoder": case.decoder,
        "draft_depth": case.draft_depth,
        "draft_length": 3 if case.decoder == "dtv" else None,
    }
    output = _decoded(problem, case.decoder)
    equals_ar = not output.exactness_reason or _is_claimed(problem, output)
    if equals_ar and case.decoder != "ar":
        assert output.token_ids == _decoded(problem, "ar").token_ids, problem
    says_why = re.findall(r"SHR-\d\d", output.exactness_reason) or ["SHR-06"]
    clauses = {"CONF-05", "SHR-03", "SHR-04", "SHR-05", "SHR-11", *says_why}
    return Vector(
        id=f"sharing/{case.model}-{_name(case.kv_slots)}-{case.decoder}-d{case.draft_depth}",
        clauses=tuple(sorted(clauses | ({"SHR-07"} if equals_ar else set()))),
        flag="slots",
        comment=case.comment,
        input=problem,
        expected=text_of(output)
        | {"kv_bytes": output.kv_bytes, "exactness": str(output.exactness), "equals_ar": equals_ar},
    )


def _decoded(problem: JsonObject, decoder: str) -> Output:
    model, depth, length = weights.loaded(problem["model"]["name"]), problem["draft_depth"], problem["draft_length"]
    options: dict[str, Any] = {
        "max_new_tokens": problem["max_new_tokens"],
        "eos_token_id": problem["stop_ids"],
        "state_seed": int(problem["state_seed"], 0),
        "state_scale": problem["state_scale"],
        "kv_slots": problem["kv_slots"],
        "keep_logits": True,
    }
    match decoder:
        case "ar":
            return ar.generate(model, problem["prompt_ids"], **options)
        case "dtv":
            return dtv.generate(model, problem["prompt_ids"], draft_depth=depth, draft_length=length, **options)
        case _:
            return wfd.generate(model, problem["prompt_ids"], draft_depth=depth, **options)


def _is_claimed(problem: JsonObject, output: Output) -> bool:
    """Tells whether a run is claimed to be AR under the same sharing (SHR-11)."""
    slots = slot_map(
        problem["kv_slots"],
        recurrence_depth=problem["recurrence_depth"],
        recurrent_layers=problem["recurrent_layers"],
    )
    why = equality_with_ar(
        slots,
        decoder=problem["decoder"],
        draft_depth=problem["draft_depth"],
        num_accepted=output.counts.accepted,
    )
    return why is not None


def _name(kv_slots: int | str) -> str:
    return kv_slots if isinstance(kv_slots, str) else f"{kv_slots}-in-turn"


def _is_same_sharing(one: list[int], other: list[int]) -> bool:
    """Tells whether the same steps share, whatever the slots are called."""
    return [one.index(slot) for slot in one] == [other.index(slot) for slot in other]


_OF_A_TEXT: Final[dict[str, Field]] = {
    name: Field(field.schema, field.meaning, is_optional=True) for name, field in TEXT_FIELDS.items()
}

KIND: Final = Kind(
    name="sharing",
    summary="Recurrences that share KV slots: which steps share, and the text of a run that does.",
    input={
        "what": Field({"enum": ["slot_map", "text"]}, "a slot map, or a run with it"),
        "kv_slots": Field({"type": ["integer", "string"]}, "slots in turn, or the name of a strategy (SHR-02)"),
        "recurrence_depth": Field(INTEGER, "T"),
        "recurrent_layers": Field(INTEGER, "L, layers of the recurrent block"),
        "model": Field(weights.SCHEMA, "the weights; for a text, as all that follow", is_optional=True),
        "prompt_ids": Field(INTEGERS, "the prompt", is_optional=True),
        "max_new_tokens": Field(INTEGER, "M, the budget", is_optional=True),
        "stop_ids": Field(INTEGERS, "tokens that end the text", is_optional=True),
        "state_seed": Field(TEXT, "seed of the initial state, in hexadecimal", is_optional=True),
        "state_scale": Field(NUMBER, "scale of the initial state", is_optional=True),
        "decoder": Field({"enum": ["ar", "dtv", "wfd"]}, "the decoder", is_optional=True),
        "draft_depth": Field(INTEGER, "d; T for AR", is_optional=True),
        "draft_length": Field({"type": ["integer", "null"]}, "g of DtV", is_optional=True),
    },
    expected={
        "slots": Field(INTEGERS, "slot of step r * L + l, for every step in order", is_optional=True),
        "least_draft_depth": Field(
            INTEGER, "least d from which WFD is AR under the same sharing (SHR-08)", is_optional=True
        ),
        "least_settled_depth": Field(
            INTEGER, "least d from which DtV is AR under the same sharing (SHR-09); at T always", is_optional=True
        ),
        **_OF_A_TEXT,
        "kv_bytes": Field(INTEGER, "bytes of all KV cells, at 8 a number", is_optional=True),
        "exactness": Field({"enum": ["exact", "approximate"]}, "what the run says of itself", is_optional=True),
        "equals_ar": Field(BOOLEAN, "whether it is claimed to be AR under the same sharing", is_optional=True),
    },
    answer={
        "slots": Field(INTEGERS, "your slots, in any numbering", is_optional=True),
        "least_draft_depth": Field(INTEGER, "your bound for WFD", is_optional=True),
        "least_settled_depth": Field(INTEGER, "your bound for DtV", is_optional=True),
        "token_ids": Field(INTEGERS, "your new tokens", is_optional=True),
        "finish_reason": Field(TEXT, "your reason; beside tokens", is_optional=True),
        "dtype": Field({"enum": list(DTYPES)}, "the type you compute in; float32 if not given", is_optional=True),
        "kv_bytes": Field(INTEGER, "your bytes, at 8 a number whatever your type", is_optional=True),
        "exactness": Field(TEXT, "what your engine says of the result", is_optional=True),
        "equals_ar": Field(BOOLEAN, "your claim", is_optional=True),
    },
    make=make,
    judge=judge,
    tolerance=TOLERANCE,
)

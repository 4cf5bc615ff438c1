"""Vectors of kind *invalid*: requests that must be refused before anything is computed, and the rule that each breaks.

Among them are requests at the very edge of a rule that must be accepted: an engine that refuses everything fails those.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from reference import ar, dtv, wfd
from reference.errors import ParameterError
from reference.models.scripted import ScriptedModel
from reference.oracle.vectors.answers import RIGHT, Answer, Finding, wrong
from reference.oracle.vectors.form import JsonObject, Vector
from reference.oracle.vectors.kind import ANY, BOOLEAN, INTEGER, TEXT, Field, Kind

_VOCABULARY: Final = 8
_CONTEXT: Final = 16
_FULL: Final = 4

_REQUEST: Final[JsonObject] = {
    "decoder": "wfd",
    "vocab_size": _VOCABULARY,
    "context_length": _CONTEXT,
    "prompt_ids": [1, 2],
    "max_new_tokens": 3,
    "stop_ids": [],
    "recurrence_depth": _FULL,
    "draft_depth": 1,
    "draft_length": None,
    "state_seed": "0x0",
    "state_scale": 1.0,
}
"""A request without fault; every case changes a little of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A line of the table from which the vectors are made."""

    name: str
    """Name of the vector."""
    clause: str
    """The clause that is broken, or that allows the request after all."""
    change: JsonObject = field(default_factory=dict)
    """What differs from `_REQUEST`."""
    is_allowed: bool = False
    """Whether the request must be accepted."""


def _dtv(**change: object) -> JsonObject:
    return {"decoder": "dtv", "draft_length": 2} | change


def _ar(**change: object) -> JsonObject:
    return {"decoder": "ar", "draft_depth": None} | change


CASES: Final = (
    Case(name="wfd-draft-depth-0", clause="WFD-01", change={"draft_depth": 0}),
    Case(name="wfd-draft-depth-negative", clause="WFD-01", change={"draft_depth": -1}),
    Case(name="wfd-draft-depth-beyond", clause="WFD-01", change={"draft_depth": _FULL + 1}),
    Case(name="wfd-draft-depth-fraction", clause="WFD-01", change={"draft_depth": 1.5}),
    Case(name="wfd-draft-depth-true", clause="WFD-01", change={"draft_depth": True}),
    Case(name="wfd-draft-depth-full", clause="WFD-01", change={"draft_depth": _FULL}, is_allowed=True),
    Case(name="wfd-draft-depth-uneven", clause="WFD-01", change={"draft_depth": 3}, is_allowed=True),
    Case(name="dtv-draft-depth-0", clause="DTV-01", change=_dtv(draft_depth=0)),
    Case(name="dtv-draft-depth-beyond", clause="DTV-01", change=_dtv(draft_depth=_FULL + 1)),
    Case(name="dtv-draft-length-0", clause="DTV-02", change=_dtv(draft_length=0)),
    Case(name="dtv-draft-length-fraction", clause="DTV-02", change=_dtv(draft_length=2.5)),
    Case(name="dtv-draft-length-beyond-budget", clause="DTV-02", change=_dtv(draft_length=99), is_allowed=True),
    Case(name="recurrence-depth-0", clause="MOD-01", change=_ar(recurrence_depth=0)),
    Case(name="recurrence-depth-fraction", clause="MOD-01", change=_ar(recurrence_depth=2.5)),
    Case(name="recurrence-depth-1", clause="MOD-01", change=_ar(recurrence_depth=1), is_allowed=True),
    Case(name="budget-negative", clause="SMP-04", change={"max_new_tokens": -1}),
    Case(name="budget-fraction", clause="SMP-04", change={"max_new_tokens": 2.5}),
    Case(name="budget-0", clause="SMP-10", change={"max_new_tokens": 0}, is_allowed=True),
    Case(name="prompt-empty", clause="SMP-05", change={"prompt_ids": []}),
    Case(name="prompt-empty-and-budget-0", clause="SMP-05", change={"prompt_ids": [], "max_new_tokens": 0}),
    Case(name="prompt-too-long", clause="SMP-06", change={"prompt_ids": [1] * (_CONTEXT + 1)}),
    Case(name="prompt-just-fits", clause="SMP-06", change={"prompt_ids": [1] * _CONTEXT}, is_allowed=True),
    Case(name="prompt-id-beyond", clause="SMP-07", change={"prompt_ids": [1, _VOCABULARY]}),
    Case(name="prompt-id-beyond-and-budget-0", clause="SMP-07", change={"prompt_ids": [9], "max_new_tokens": 0}),
    Case(name="prompt-id-negative", clause="SMP-07", change={"prompt_ids": [-1, 1]}),
    Case(name="prompt-id-fraction", clause="SMP-07", change={"prompt_ids": [1, 1.5]}),
    Case(name="prompt-id-last", clause="SMP-07", change={"prompt_ids": [0, _VOCABULARY - 1]}, is_allowed=True),
    Case(name="stop-id-beyond", clause="SMP-08", change={"stop_ids": [_VOCABULARY]}),
    Case(name="stop-id-negative", clause="SMP-08", change={"stop_ids": [3, -1]}),
    Case(name="stop-id-0", clause="SMP-09", change={"stop_ids": [0]}, is_allowed=True),
    Case(name="stop-ids-several", clause="SMP-09", change={"stop_ids": [0, 3, 7]}, is_allowed=True),
    Case(name="state-seed-negative", clause="MOD-08", change={"state_seed": "-0x1"}),
    Case(name="state-seed-of-65-bits", clause="MOD-08", change={"state_seed": hex(2**64)}),
    Case(name="state-seed-largest", clause="MOD-08", change={"state_seed": hex(2**64 - 1)}, is_allowed=True),
    Case(name="state-scale-negative", clause="MOD-07", change={"state_scale": -0.5}),
    Case(name="state-scale-0", clause="MOD-07", change={"state_scale": 0.0}, is_allowed=True),
)
"""What the vectors are made from."""


def make() -> Iterator[Vector]:
    """Poses every case to our decoders; what they say is the solution, the table is only what it must be."""
    for case in CASES:
        request = _REQUEST | case.change
        message = complaint(request)
        is_as_said = not message if case.is_allowed else message.endswith(f"({case.clause})")
        assert is_as_said, f"{case.name}: {message or 'carried out'}"
        yield Vector(
            id=f"invalid/{case.name}",
            clauses=tuple(sorted({case.clause, "NOT-04"})),
            flag="acceptance" if case.is_allowed else "refusal",
            comment=f"Allowed by {case.clause}." if case.is_allowed else f"Breaks {case.clause}.",
            input=request,
            expected={"refused": bool(message), "clause": case.clause, "message": message},
        )


def complaint(request: JsonObject) -> str:
    """Gives what our decoders say against a request; empty if it is carried out."""
    model = ScriptedModel(
        table=lambda prefix, _depth: [float(token == (prefix[-1] + 1) % _VOCABULARY) for token in range(_VOCABULARY)],
        vocab_size=request["vocab_size"],
        recurrence_depth=_FULL,
        context_length=request["context_length"],
    )
    options = {
        "max_new_tokens": request["max_new_tokens"],
        "recurrence_depth": request["recurrence_depth"],
        "eos_token_id": request["stop_ids"],
        "state_seed": int(request["state_seed"], 0),
        "state_scale": request["state_scale"],
    }
    prompt, draft, length = (request[name] for name in ("prompt_ids", "draft_depth", "draft_length"))
    try:
        match request["decoder"]:
            case "ar":
                ar.generate(model, prompt, **options)
            case "dtv":
                dtv.generate(model, prompt, draft_depth=draft, draft_length=length, **options)
            case _:
                wfd.generate(model, prompt, draft_depth=draft, **options)
    except ParameterError as error:
        return str(error)
    return ""


def judge(vector: Vector, answer: Answer) -> Finding:
    """Holds that what must be refused was, and nothing else; how an engine words it is its own affair."""
    refused = answer.truth("refused")
    if refused == vector.expected["refused"]:
        return RIGHT
    if refused is None:
        raise answer.wrong("refused", "true or false")
    clause = vector.expected["clause"]
    if vector.expected["refused"]:
        return wrong(clause, f"accepted, although {vector.expected['message']}")
    return wrong(clause, "refused, although no rule is broken")


KIND: Final = Kind(
    name="invalid",
    summary="Requests that must be refused before anything is computed, and some at the edge that must not.",
    input={
        "decoder": Field({"enum": ["ar", "dtv", "wfd"]}, "which decoder"),
        "vocab_size": Field(INTEGER, "token ids of the model; any model may be used that has as many"),
        "context_length": Field(INTEGER, "X, positions that the model can compute"),
        "prompt_ids": Field({"type": "array", "items": {"type": "number"}}, "the prompt"),
        "max_new_tokens": Field(ANY, "M, the budget"),
        "stop_ids": Field({"type": "array", "items": INTEGER}, "tokens that end the text"),
        "recurrence_depth": Field(ANY, "T"),
        "draft_depth": Field(ANY, "d; null for AR"),
        "draft_length": Field(ANY, "gamma of DtV, else null"),
        "state_seed": Field(TEXT, "seed of the initial state, in hexadecimal"),
        "state_scale": Field({"type": "number"}, "scale of the initial state"),
    },
    expected={
        "refused": Field(BOOLEAN, "whether the request must be refused"),
        "clause": Field(TEXT, "the clause that it breaks, or that allows it"),
        "message": Field(TEXT, "what this library says; yours may word it otherwise; empty if nothing is refused"),
    },
    answer={"refused": Field(BOOLEAN, "whether your engine refuses the request")},
    make=make,
    judge=judge,
)

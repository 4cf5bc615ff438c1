"""Vectors of kind *tokens*: real weights and a prompt, and the tokens that AR, DtV and WFD all commit.

For every token stand its margin and the largest logit beside it, so that an answer computed in a coarser type can be
judged without the weights: where the margin is within the tolerance of CONF-05 another token is a near tie.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import torch

from reference import ar, dtv, wfd
from reference.engine import Output
from reference.models.shipped import SHIPPED, default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.oracle.token_verdicts import TokensVerdict
from reference.oracle.tokens import check_tokens
from reference.oracle.tolerance import TOLERANCES, coarser
from reference.oracle.vectors import weights
from reference.oracle.vectors.answers import RIGHT, Answer, Finding, wrong
from reference.oracle.vectors.form import JsonObject, Vector
from reference.oracle.vectors.kind import INTEGER, INTEGERS, NUMBER, NUMBERS, TEXT, Field, Fields, Kind
from reference.oracle.verdicts import Verdict

_DIGITS: Final = 6
"""Decimals of margins and logits in the files."""

DTYPES: Final[Mapping[str, torch.dtype]] = MappingProxyType(
    {str(dtype).removeprefix("torch."): dtype for dtype in TOLERANCES}
)
"""The types that an answer may be computed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A line of the table from which the vectors are made."""

    name: str
    """Name of the vector."""
    comment: str
    """What it is about."""
    model: str
    """Which weights."""
    prompt: str | tuple[int, ...]
    """Token ids, or a flavour of the shipped models' default prompts."""
    budget: int = 12
    """M."""
    full: int | None = None
    """T; None is the model's own."""
    stop_after: int | None = None
    """The token after this many becomes a stop id; None stops at what the shipped model declares, if it ships."""
    seed: int = 0
    """Of the initial state."""
    scale: float = 1.0
    """Of the initial state."""


_OURO_5: Final = (253, 198, 233, 68, 186)
_OURO_12: Final = (181, 25, 85, 6, 142, 177, 214, 15, 104, 34, 202, 72)
_HUGINN_5: Final = (22, 164, 76, 178, 193)
_HUGINN_12: Final = (4, 114, 114, 87, 112, 191, 49, 84, 85, 4, 80, 35)

CASES: Final = (
    *(
        Case(name=f"tiny-ouro-{flavour}", model="tiny-ouro", prompt=flavour, budget=24, comment=f"A {flavour} prompt.")
        for flavour in ("chat", "translation", "summarisation", "qa", "arithmetic", "rag")
    ),
    *(
        Case(
            name=f"tiny-huginn-{flavour}",
            model="tiny-huginn",
            prompt=flavour,
            budget=16,
            comment=f"A {flavour} prompt.",
        )
        for flavour in ("chat", "translation")
    ),
    Case(
        name="tiny-huginn-seed-3",
        model="tiny-huginn",
        prompt="chat",
        seed=3,
        comment="Another seed of the initial state.",
    ),
    Case(name="ouro-tiny-1", model="ouro-tiny", prompt=(134,), comment="Random weights, a prompt of one token."),
    Case(name="ouro-tiny-12", model="ouro-tiny", prompt=_OURO_12, comment="Random weights: few drafts are right."),
    Case(
        name="ouro-tiny-stop",
        model="ouro-tiny",
        prompt=_OURO_5,
        stop_after=7,
        comment="The stop id is a token that this text comes to.",
    ),
    Case(
        name="ouro-tiny-depth-3",
        model="ouro-tiny",
        prompt=_OURO_5,
        full=3,
        comment="T = 3 at call time governs prompt, drafts and verification alike.",
    ),
    Case(
        name="huginn-tiny-zero-state",
        model="huginn-tiny",
        prompt=_HUGINN_5,
        scale=0.0,
        comment="Initial state 0: no random numbers are needed.",
    ),
    Case(name="huginn-tiny-seed-3", model="huginn-tiny", prompt=_HUGINN_12, seed=3, comment="A random initial state."),
    Case(
        name="huginn-tiny-depth-4",
        model="huginn-tiny",
        prompt=_HUGINN_5,
        full=4,
        scale=0.0,
        comment="T = 4 at call time, from an initial state of 0.",
    ),
)
"""What the vectors are made from."""


def make() -> Iterator[Vector]:
    """Decodes every case with all three decoders; that they agree is asserted, not hoped."""
    for case in CASES:
        problem = _input(case)
        output = _agreed(problem)
        if case.stop_after is not None:
            problem["stop_ids"] = [output.token_ids[case.stop_after]]
            output = _agreed(problem)
        clauses = {"AR-03", "CONF-02", "CONF-05", "DTV-07", "MOD-12", "SMP-01", "SMP-03", "SMP-14", "WFD-11"}
        if case.full is not None:
            clauses.add("MOD-02")
        if "huginn" in case.model:
            clauses |= {"MOD-05", "MOD-06"} if case.scale else {"MOD-07"}
        yield Vector(
            id=f"tokens/{case.name}",
            clauses=tuple(sorted(clauses)),
            flag="identity" if case.stop_after is None else "stop",
            comment=case.comment,
            input=problem,
            expected=text_of(output),
        )


def text_of(output: Output) -> JsonObject:
    """Gives what a solution says of a text whose logits were kept; see `TEXT_FIELDS`."""
    assert output.logits is not None
    return {
        "token_ids": output.token_ids,
        "finish_reason": str(output.finish_reason),
        "margins": [round(margin, _DIGITS) for margin in output.margins],
        "largest_logits": [round(largest, _DIGITS) for largest in output.logits.abs().amax(dim=-1).tolist()],
    }


def judge(vector: Vector, answer: Answer) -> Finding:
    """Compares tokens and finish reason; where they differ, the oracle judges them if the weights ship."""
    problem, expected = vector.input, vector.expected
    ids, reason = answer.integers("token_ids"), answer.text("finish_reason")
    if ids is None:
        raise answer.wrong("token_ids", "given")
    dtype = dtype_of(answer)
    if ids == expected["token_ids"] and reason in {None, expected["finish_reason"]}:
        return RIGHT
    if problem["model"]["name"] in SHIPPED:
        return _in_words(_reread(problem, ids, reason, dtype))
    return compared(expected, ids, reason, dtype)


def dtype_of(answer: Answer) -> torch.dtype:
    """Gives the type that an answer was computed in.

    Raises:
        ParameterError: If it is none of `DTYPES`.
    """
    name = answer.text("dtype") or "float32"
    if name not in DTYPES:
        raise answer.wrong("dtype", f"any of {', '.join(DTYPES)}")
    return DTYPES[name]


def _input(case: Case) -> JsonObject:
    model = weights.loaded(case.model)
    full = model.recurrence_depth if case.full is None else case.full
    shallow = max(1, full // 8)
    return {
        "model": weights.described(case.model),
        "prompt_ids": prompt_ids_of(case.model, case.prompt),
        "max_new_tokens": case.budget,
        "stop_ids": sorted(model.eos_token_ids) if case.model in SHIPPED else [],
        "recurrence_depth": full,
        "state_seed": hex(case.seed),
        "state_scale": case.scale,
        "decoders": [
            {"decoder": "ar", "draft_depth": full, "draft_length": None},
            {"decoder": "dtv", "draft_depth": shallow, "draft_length": 3},
            {"decoder": "wfd", "draft_depth": shallow, "draft_length": None},
            {"decoder": "wfd", "draft_depth": -(-full // 2), "draft_length": None},
        ],
    }


def prompt_ids_of(model: str, prompt: str | tuple[int, ...]) -> list[int]:
    """Gives the prompt of a case, which may be a flavour of the shipped models' default prompts."""
    if not isinstance(prompt, str):
        return list(prompt)
    tokenizer = load_tokenizer(model)
    assert tokenizer is not None, "the shipped models have tokenizers"
    return list(tokenizer.encode(default_prompts()[prompt]).ids)


def _agreed(problem: JsonObject) -> Output:
    """Gives what AR gives, once DtV and WFD have given the same (CONF-02)."""
    model = weights.loaded(problem["model"]["name"])
    options: dict[str, Any] = {
        "max_new_tokens": problem["max_new_tokens"],
        "eos_token_id": problem["stop_ids"],
        "recurrence_depth": problem["recurrence_depth"],
        "state_seed": int(problem["state_seed"], 0),
        "state_scale": problem["state_scale"],
        "keep_logits": True,
    }
    outputs = []
    for run in problem["decoders"]:
        depth, length = run["draft_depth"], run["draft_length"]
        match run["decoder"]:
            case "ar":
                outputs.append(ar.generate(model, problem["prompt_ids"], **options))
            case "dtv":
                more = {"draft_depth": depth, "draft_length": length}
                outputs.append(dtv.generate(model, problem["prompt_ids"], **more, **options))
            case _:
                outputs.append(wfd.generate(model, problem["prompt_ids"], draft_depth=depth, **options))
    first, *others = outputs
    for other in others:
        assert (other.token_ids, other.finish_reason) == (first.token_ids, first.finish_reason), problem
    return first


def _reread(problem: JsonObject, ids: list[int], reason: str | None, dtype: torch.dtype) -> TokensVerdict:
    """Lets the oracle read the tokens along, on their own prefix."""
    return check_tokens(
        weights.loaded(problem["model"]["name"]),
        problem["prompt_ids"],
        ids,
        max_new_tokens=problem["max_new_tokens"],
        finish_reason=reason,
        eos_token_id=problem["stop_ids"],
        recurrence_depth=problem["recurrence_depth"],
        state_seed=int(problem["state_seed"], 0),
        state_scale=problem["state_scale"],
        dtype=dtype,
    )


def _in_words(verdict: TokensVerdict) -> Finding:
    if verdict.faults:
        fault = verdict.faults[0]
        return wrong(fault.clause, f"new token {fault.index}: {fault.reason}")
    near = verdict.first_difference
    assert near is not None, "the tokens differ from the solution, which is exact"
    what = f"{near.candidate_id} for {near.reference_id}, gap {near.gap:.3g} of {near.tolerance:.3g}"
    return Finding(verdict.verdict, f"new token {near.index}: {what}; {len(verdict.near_ties)} near ties in all")


def compared(
    expected: JsonObject, ids: list[int], reason: str | None, dtype: torch.dtype, *, clause: str = "AR-03"
) -> Finding:
    """Compares a text that is not the solution up to the first difference; what follows has another prefix (CONF-05).

    Args:
        expected: The solution.
        ids: The answer's tokens.
        reason: The answer's finish reason, if it gives one.
        dtype: The type that the answer was computed in.
        clause: The clause that another token breaks.
    """
    right = expected["token_ids"]
    place = next((k for k, (own, said) in enumerate(zip(right, ids, strict=False)) if own != said), None)
    if place is None and ids != right:
        return wrong("SMP-14", f"{len(ids)} tokens, not {len(right)}")
    if place is None:
        return wrong("SMP-14", f"the finish reason is {expected['finish_reason']}, not {reason}")
    margin = expected["margins"][place]
    tolerance = 2 * TOLERANCES[coarser(weights.DTYPE, dtype)] * max(1.0, expected["largest_logits"][place])
    what = f"new token {place}: {ids[place]} for {right[place]}, margin {margin:.3g}, near tie up to {tolerance:.3g}"
    if margin <= tolerance:
        return Finding(Verdict.NEAR_TIE, f"{what}; what follows is not compared")
    return wrong(clause, what)


_DECODER: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "decoder": {"enum": ["ar", "dtv", "wfd"]},
        "draft_depth": INTEGER,
        "draft_length": {"type": ["integer", "null"]},
    },
    "required": ["decoder", "draft_depth", "draft_length"],
    "additionalProperties": False,
}

TEXT_FIELDS: Final[Fields] = MappingProxyType(
    {
        "token_ids": Field(INTEGERS, "the new tokens"),
        "finish_reason": Field({"enum": ["eos", "length", "context"]}, "why decoding ended"),
        "margins": Field(NUMBERS, "of every token: its logit minus the best of any other id; float64, 6 decimals"),
        "largest_logits": Field(NUMBERS, "of every token: the largest logit of its row, without sign"),
    }
)
"""What a solution says of a text."""

TOLERANCE: Final = 2 * 10.0**-_DIGITS
"""How far these numbers may be from another machine's."""

KIND: Final = Kind(
    name="tokens",
    summary="Weights and a prompt, and the tokens that every decoder commits.",
    input={
        "model": Field(weights.SCHEMA, "the weights"),
        "prompt_ids": Field(INTEGERS, "the prompt"),
        "max_new_tokens": Field(INTEGER, "M, the budget"),
        "stop_ids": Field(INTEGERS, "tokens that end the text"),
        "recurrence_depth": Field(INTEGER, "T"),
        "state_seed": Field(TEXT, "seed of the initial state, in hexadecimal"),
        "state_scale": Field(NUMBER, "scale of the initial state"),
        "decoders": Field(
            {"type": "array", "items": _DECODER}, "runs that gave the solution; any other must give it too"
        ),
    },
    expected=TEXT_FIELDS,
    answer={
        "token_ids": Field(INTEGERS, "your new tokens"),
        "finish_reason": Field(TEXT, "your reason", is_optional=True),
        "dtype": Field({"enum": list(DTYPES)}, "the type you compute in; float32 if not given", is_optional=True),
    },
    make=make,
    judge=judge,
    tolerance=TOLERANCE,
)

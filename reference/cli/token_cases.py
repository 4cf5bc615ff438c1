"""Tokens to judge: read from a file of JSON lines, or asked of a server."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from reference.errors import ParameterError

_REQUIRED: Final = frozenset({"prompt_ids", "token_ids"})
_OPTIONAL: Final = frozenset(
    {
        "id",
        "max_new_tokens",
        "finish_reason",
        "logprobs",
        "eos_token_id",
        "recurrence_depth",
        "state_seed",
        "state_scale",
    }
)
_ANSWERED: Final = frozenset({"token_ids", "finish_reason", "logprobs"})
"""What a server is to say, and a prompt's line may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCase:
    """One answer to judge."""

    name: str
    """Its `id`, or its number from 1."""
    place: str
    """Where it comes from, for complaints."""
    values: dict[str, Any]
    """Arguments of `check_tokens` by name; checked where they are used."""


def read_cases(text: str, file: str) -> list[TokenCase]:
    """Reads answers, one object a line.

    Raises:
        ParameterError: If a line is no object with the right names, or there is none.
    """
    return _read(text, file, required=_REQUIRED, optional=_OPTIONAL)


def read_prompts(text: str, file: str) -> list[TokenCase]:
    """Reads prompts for a server, one object a line.

    Raises:
        ParameterError: If a line is no object with the right names, or there is none.
    """
    return _read(text, file, required=_REQUIRED - _ANSWERED, optional=_OPTIONAL - _ANSWERED)


def default_cases(model: str) -> list[TokenCase]:
    """Gives a prompt of each flavour, in a model's own tokens.

    Raises:
        ParameterError: If the model has no tokenizer.
    """
    from reference.models.shipped import default_prompts  # noqa: PLC0415 - loads only where it is needed
    from reference.models.tokenizer import load_tokenizer  # noqa: PLC0415

    tokenizer = load_tokenizer(model)
    if tokenizer is None:
        raise ParameterError(f"{model} has no tokenizer.json: give prompts as a FILE")
    return [
        TokenCase(name=flavour, place=flavour, values={"prompt_ids": tokenizer.encode(text).ids})
        for flavour, text in default_prompts().items()
    ]


def _read(text: str, file: str, *, required: frozenset[str], optional: frozenset[str]) -> list[TokenCase]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ParameterError(f"{file}: nothing to judge")
    cases = []
    for count, (number, line) in enumerate(lines, start=1):
        place = f"{file}: line {number}"
        values = _object(line, place, required=required, optional=optional)
        name = values.pop("id", count)
        if "token_ids" in values:
            values["candidate_ids"] = values.pop("token_ids")
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ParameterError(f"{place}: id is neither a text nor a whole number")
        cases.append(TokenCase(name=str(name), place=place, values=values))
    return cases


def _object(line: str, place: str, *, required: frozenset[str], optional: frozenset[str]) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise ParameterError(f"{place} is not JSON: {error}") from error
    if not isinstance(values, dict) or not required <= values.keys() <= required | optional:
        wanted = f"{_listed(required)} and any of {_listed(optional)}"
        raise ParameterError(f"{place} is not an object of {wanted}")
    for name in required:
        if not isinstance(values[name], list):
            raise ParameterError(f"{place}: {name} is not a list")
    logprobs = values.get("logprobs") or []
    if not (isinstance(logprobs, list) and all(isinstance(one, int | float) for one in logprobs)):
        raise ParameterError(f"{place}: logprobs is not a list of numbers")
    if not isinstance(values.get("finish_reason"), str | None):
        raise ParameterError(f"{place}: finish_reason is not a text")
    return values


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))

"""Runs any decoder on a prompt, as the command line asks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from reference import ar, dtv, wfd
from reference.cli.arguments import Arguments
from reference.cli.inputs import Prompt
from reference.engine import Options, Output, ignore
from reference.models.protocol import LoopedModel
from reference.schedule import Event, default_draft_depth

Tracer: TypeAlias = Callable[[Event], None]
"""Receives events as they happen."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to decode and how; the same for every decoder."""

    model: LoopedModel
    """The model."""
    prompt: Prompt
    """What is to be continued."""
    draft_depth: int
    """d."""
    draft_length: int
    """gamma; only DtV has it."""
    max_new_tokens: int
    """The token budget."""
    options: Options
    """What else `generate` takes."""


def request(arguments: Arguments, model: LoopedModel, prompt: Prompt) -> Request:
    """Puts together what the command line asks for."""
    full_depth = model.recurrence_depth if arguments.recurrence_depth is None else arguments.recurrence_depth
    return Request(
        model,
        prompt,
        default_draft_depth(full_depth) if arguments.draft_depth is None else arguments.draft_depth,
        arguments.draft_length,
        arguments.max_new_tokens,
        Options(
            recurrence_depth=arguments.recurrence_depth,
            arithmetic=arguments.arithmetic,
            state_seed=arguments.seed,
            kv_slots=arguments.kv_slots,
        ),
    )


def decode(decoder: str, asked: Request, *, tracer: Tracer = ignore) -> Output:
    """Decodes once.

    Args:
        decoder: `ar`, `dtv` or `wfd`.
        asked: What to decode.
        tracer: Receives every event.

    Raises:
        ParameterError: If an argument breaks a rule of the specification.
    """
    options = Options(**asked.options, tracer=tracer)
    budget = asked.max_new_tokens
    match decoder:
        case "ar":
            return ar.generate(asked.model, asked.prompt.token_ids, max_new_tokens=budget, **options)
        case "dtv":
            return dtv.generate(
                asked.model,
                asked.prompt.token_ids,
                max_new_tokens=budget,
                draft_depth=asked.draft_depth,
                draft_length=asked.draft_length,
                **options,
            )
        case _:
            return wfd.generate(
                asked.model, asked.prompt.token_ids, max_new_tokens=budget, draft_depth=asked.draft_depth, **options
            )

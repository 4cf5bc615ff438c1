"""The scripted model of the cases, and one call for all three decoders."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from torch import Tensor

from reference import ar, dtv, wfd
from reference.engine import Output
from reference.models.protocol import LoopedModel
from reference.models.scripted import ScriptedModel
from tests.driving import Case, Lap
from tests.runs import scripted

DECODERS: Final = ("ar", "dtv", "wfd")

every_decoder = pytest.mark.parametrize("decoder", DECODERS)

every_draft_length = pytest.mark.parametrize("draft_length", range(1, 9))


def lap_model(*, recurrence_depth: int = 4, context_length: int = 64) -> ScriptedModel:
    """Gives the scripted model."""
    case = Case(
        table=Lap(),
        recurrence_depth=recurrence_depth,
        draft_depth=1,
        max_new_tokens=1,
        context_length=context_length,
    )
    return scripted(case)


def decode(
    decoder: str,
    model: LoopedModel,
    prompt: Sequence[int] | Tensor,
    *,
    draft_depth: int = 1,
    draft_length: int = 4,
    **options: Any,  # noqa: ANN401 - whatever the case is about
) -> Output:
    """Decodes with any decoder; draft options go to those that have them."""
    generators: dict[str, Callable[..., Output]] = {"ar": ar.generate, "dtv": dtv.generate, "wfd": wfd.generate}
    if decoder != "ar":
        options["draft_depth"] = draft_depth
    if decoder == "dtv":
        options["draft_length"] = draft_length
    return generators[decoder](model, prompt, **options)

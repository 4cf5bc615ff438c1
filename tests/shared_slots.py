"""A model and a call for the tests of shared KV slots."""

from functools import cache
from typing import Any, Final

import pytest

from reference.engine import Output
from reference.models.protocol import LoopedModel
from tests.cases.decoders import decode
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro

LAYERS: Final = 2
PROMPT: Final = [1, 2, 3]

any_family = pytest.mark.parametrize("family", ["ouro", "huginn"])


@cache
def model(family: str, seed: int = 0) -> LoopedModel:
    """Gives a random model with two recurrent layers and four recurrences, in float64."""
    if family == "ouro":
        return random_ouro(ouro_config(recurrence_depth=4, num_layers=LAYERS), seed=seed)
    return random_huginn(huginn_config(recurrence_depth=4, core_layers=LAYERS), seed=seed)


def run(decoder: str, family: str, kv_slots: int | str | None, *, seed: int = 0, **options: Any) -> Output:  # noqa: ANN401
    """Decodes twelve tokens, every row alone."""
    given: dict[str, Any] = {"arithmetic": "exact", "max_new_tokens": 12} | options
    return decode(decoder, model(family, seed), PROMPT, kv_slots=kv_slots, keep_logits=True, **given)

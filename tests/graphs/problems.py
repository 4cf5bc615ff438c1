"""Problems for the static path, and what the eager engine makes of them."""

import warnings
from collections.abc import Sequence
from typing import Any, Final

import torch

from reference.engine import Decoding, Output
from reference.graphs import StaticDecoder, StaticOutput
from reference.models import Huginn, Ouro
from reference.models.protocol import LoopedModel
from reference.provenance import Part
from reference.sharing import KVSlots
from tests.cases.decoders import decode
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro

PROMPTS: Final = ((3,), (1, 2, 3, 4, 5, 6, 5, 4), (2, 6))
"""Prompts of different lengths."""


LIVELY: Final = {"ouro": 3, "huginn": 8}
"""Seeds of models that say many different tokens, some drafts right and some wrong: what a mistake shows in."""


def small(family: str, *, dtype: torch.dtype = torch.float64, device: str = "cpu") -> Ouro | Huginn:
    """Gives a random model of one layer a part; Ouro's two query heads share a key head."""
    seed = LIVELY[family]
    if family == "ouro":
        config = ouro_config(num_layers=1, vocab_size=7)
        return random_ouro(config, seed=seed, dtype=dtype, device=torch.device(device))
    return random_huginn(
        huginn_config(core_layers=1, vocab_size=7), seed=seed, dtype=dtype, device=torch.device(device)
    )


def eager(  # noqa: PLR0913 - the options of `decode`, passed through
    model: LoopedModel,
    prompt: Sequence[int],
    decoder: str,
    *,
    depth: int,
    draft_depth: int,
    draft_length: int,
    max_new_tokens: int,
    stop_ids: Sequence[int] = (),
    kv_slots: KVSlots = None,
) -> Output:
    """Decodes with the eager engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # deeper than the model was trained for
        return decode(
            decoder,
            model,
            prompt,
            draft_depth=draft_depth,
            draft_length=draft_length,
            max_new_tokens=max_new_tokens,
            recurrence_depth=depth,
            eos_token_id=stop_ids,
            kv_slots=kv_slots,
        )


def static(  # the options are those of `StaticDecoder`, passed through
    model: LoopedModel,
    decoder: str,
    *,
    depth: int,
    draft_depth: int,
    draft_length: int = 3,
    **options: Any,  # noqa: ANN401 - see above
) -> StaticDecoder:
    """Builds a static decoder with room for 40 positions; the host looks often, so that little runs after the end."""
    return StaticDecoder(
        model,
        decoder=decoder,
        num_positions=40,
        recurrence_depth=depth,
        draft_depth=None if decoder == "ar" else draft_depth,
        draft_length=draft_length,
        **({"looks_every": 2} | options),
    )


def same(found: StaticOutput, expected: Output) -> bool:
    """Says whether two results agree in tokens, reason and counts."""
    return (found.token_ids, found.finish_reason, found.counts) == (
        expected.token_ids,
        expected.finish_reason,
        expected.counts,
    )


def cells_differ_by(static_decoder: StaticDecoder, decoding: Decoding, number: int) -> float:
    """Gives the largest difference of any cell at the first `number` positions."""
    largest = 0.0
    for part in Part:
        for recurrence in range(decoding.kv.recurrence_depth if part is Part.RECURRENT else 1):
            expected = decoding.kv.cells(part, slice(0, number), recurrence=recurrence)
            found = static_decoder.step.cells.content(part, slice(0, number), recurrence=recurrence)
            for one, other in zip(found, expected, strict=True):
                largest = max(largest, float((one - other).abs().max()) if one.numel() else 0.0)
    return largest

"""What a caller of the static path may get wrong, and the flash kernel's arguments."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from reference import graphs
from reference.errors import NumericsError, ParameterError
from reference.graphs import StaticDecoder, attention
from reference.graphs.cells import Call, Cells
from reference.models.protocol import KVShapes
from reference.provenance import Part
from tests.graphs.guard import operations_of
from tests.graphs.problems import PROMPTS, eager, same, small, static
from tests.models_for_tests import ouro_config, random_ouro


def test_generate_decodes_one_prompt() -> None:
    model = small("ouro")
    found = graphs.generate(model, PROMPTS[1], max_new_tokens=9, draft_depth=1)
    expected = eager(model, PROMPTS[1], "wfd", depth=3, draft_depth=1, draft_length=1, max_new_tokens=9)
    assert same(found, expected)


@pytest.mark.parametrize(
    "options,message",
    [
        ({"draft_depth": 2}, "draft_depth=2 does not divide recurrence_depth=3.*reference.wfd.generate"),
        ({"draft_depth": 4}, "draft_depth=4 exceeds recurrence_depth=3 (WFD-01)"),
        ({"draft_depth": None}, "draft_depth is missing; wfd needs one"),
        ({"decoder": "dtv", "draft_depth": 0}, "draft_depth=0 is below 1 (DTV-01)"),
        ({"decoder": "dtv", "draft_length": 0}, "draft_length=0 is below 1 (DTV-02)"),
        ({"decoder": "ar"}, "draft_depth=1, but AR drafts nothing (AR-01)"),
        ({"decoder": "beam"}, "decoder='beam' is none of"),
        ({"kv_slots": 0}, "kv_slots=0 is below 1 (SHR-01)"),
        ({"kv_slots": "compress"}, "kv_slots='compress' is no strategy"),
        ({"num_positions": 65}, "num_positions=65 exceeds context_length=64"),
        ({"looks_every": 0}, "looks_every=0 is below 1"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_allocated(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"decoder": "wfd", "num_positions": 20, "draft_depth": 1} | options
    pattern = message if ".*" in message else re.escape(message)
    with pytest.raises(ParameterError, match=pattern):
        StaticDecoder(small("ouro"), **given)


@pytest.mark.spec("SHR-02")
def test_slots_shared_between_layers_are_refused() -> None:
    model = random_ouro(ouro_config(num_layers=2))
    with pytest.raises(ParameterError, match=re.escape("kv_slots='compress-s3' shares slots between layers")):
        StaticDecoder(model, decoder="ar", num_positions=20, kv_slots="compress-s3")


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    decoder = StaticDecoder(small("ouro"), num_positions=10, draft_depth=1)
    with pytest.raises(ParameterError, match="need 11 positions, num_positions=10"):
        decoder.decode(PROMPTS[1], max_new_tokens=4)
    assert len(decoder.decode(PROMPTS[1], max_new_tokens=3).token_ids) == 3


def test_a_nan_on_the_device_becomes_an_error_on_the_host() -> None:
    model = small("ouro")
    decoder = static(model, "wfd", depth=4, draft_depth=1)
    decoder.decode(PROMPTS[0], max_new_tokens=9)
    model._norm.weight.fill_(math.nan)  # noqa: SLF001 - a network that overflows
    decoder.step.ledger.totals.zero_()
    with pytest.raises(NumericsError):
        decoder.decode(PROMPTS[0], max_new_tokens=9)


def flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *others: Any,  # noqa: ANN401 - four tensors and numbers, as the kernel has them
    scale: float,
    seqused_k: Tensor,
) -> tuple[Tensor]:
    """Does what the flash kernel is documented to do: packed sequences, lengths apart, causal from the end."""
    first_query, first_key, most_queries, most_keys, dropout, is_causal, debug = others
    assert (dropout, debug) == (0.0, False)
    assert {x.dtype for x in (first_query, first_key, seqused_k)} == {torch.int32}
    group = query.shape[1] // key.shape[1]
    output = torch.zeros_like(query)
    for sequence, length in enumerate(seqused_k.tolist()):
        begin, end = first_query[sequence : sequence + 2].tolist()
        start = int(first_key[sequence])
        assert (end - begin, 0 < length <= most_keys) == (most_queries, True)
        for row in range(begin, end):
            seen = max(0, length - (end - 1 - row) if is_causal else length)
            keys, values = (x[start : start + seen].repeat_interleave(group, 1) for x in (key, value))
            weights = torch.softmax(torch.einsum("hd,chd->hc", query[row] * scale, keys), dim=-1)
            output[row] = torch.einsum("hc,chd->hd", weights, values)
    return (output,)


@pytest.mark.parametrize(
    "family,decoder,kv_slots",
    [("huginn", "wfd", None), ("ouro", "wfd", 1), ("ouro", "wfd", 2), ("huginn", "dtv", None)],
)
def test_the_flash_kernel_is_given_what_the_masked_way_computes(
    family: str, decoder: str, kv_slots: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU: the documented meaning of the arguments, in Python, in the kernel's place."""
    model = small(family)
    static_decoder = static(model, decoder, depth=4, draft_depth=1, kv_slots=kv_slots)
    expected = static_decoder.decode(PROMPTS[1], max_new_tokens=9, eos_token_id=None)
    monkeypatch.setattr(attention, "has_varlen", lambda _: True)
    monkeypatch.setattr(attention, "flash_forward", lambda: flash)
    found = static_decoder.decode(PROMPTS[1], max_new_tokens=9, eos_token_id=None)
    assert (found.token_ids, found.counts) == (expected.token_ids, expected.counts)


@pytest.mark.parametrize("is_flash", [False, True])
@pytest.mark.parametrize(
    "recurrences,are_neighbours", [((3, 2, 1, 0), True), ((1, 1, 1, 1), True), ((1, 1, 1, 1), False)]
)
@pytest.mark.parametrize("slots", [(0, 1, 2, 3), (0, 1, 0, 1), (0, 0, 0, 0)])
def test_every_row_sees_its_own_slot_up_to_its_own_position(
    slots: tuple[int, ...],
    recurrences: tuple[int, ...],
    are_neighbours: bool,  # noqa: FBT001 - a parameter of the test
    is_flash: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "has_varlen", lambda _: is_flash)
    monkeypatch.setattr(attention, "flash_forward", lambda: flash)
    draw = torch.Generator().manual_seed(0)
    shapes = KVShapes(prelude_layers=0, recurrent_layers=1, coda_layers=0, kv_heads=2, head_dim=4)
    cells = Cells(shapes, slots=slots, num_positions=12, spare=4, dtype=torch.float64, device=torch.device("cpu"))
    for tensor in cells.part(Part.RECURRENT):
        tensor.normal_(generator=draw)
    query, key, value = (torch.randn(4, heads, 4, generator=draw, dtype=torch.float64) for heads in (4, 2, 2))
    positions = torch.tensor([3, 4, 5, 6] if are_neighbours else [1, 4, 5, 9])
    call = Call(cells, Part.RECURRENT, recurrences, are_neighbours=are_neighbours)
    rows = call.rows(cells, cells.places(positions, torch.ones(4, dtype=torch.bool)))
    attended = rows.attend(0, query, key, value, scale=0.5)
    for row, (recurrence, position) in enumerate(zip(recurrences, positions.tolist(), strict=True)):
        seen = cells.content(Part.RECURRENT, slice(0, position + 1), recurrence=recurrence)
        keys, values = (x[0].repeat_interleave(2, 0) for x in seen)
        assert torch.equal(seen[0][0, :, -1], key[row])
        weights = torch.softmax(torch.einsum("hd,hcd->hc", query[row] * 0.5, keys), dim=-1)
        assert torch.allclose(attended[row], torch.einsum("hc,hcd->hd", weights, values).flatten(), atol=1e-12)


def test_the_flash_kernel_accepts_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shape function does; more can be said on a GPU alone."""
    monkeypatch.setattr(attention, "has_varlen", lambda _: True)
    static_decoder = static(small("huginn", dtype=torch.bfloat16, device="meta"), "wfd", depth=4, draft_depth=1)
    (call,) = static_decoder.step.cycle
    operations = operations_of(call, torch.device("meta"))
    assert sum("_flash_attention_forward" in operation for operation in operations) == 3  # prelude, core, coda

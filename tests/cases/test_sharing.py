"""Decoding with shared KV slots: held against cells in a dict, counted in calls and bytes, and what is said of it."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest
import torch
from torch import Tensor

from reference import kv as kv_module
from reference.models.protocol import LoopedModel
from reference.provenance import Part
from reference.sharing import slot_map
from tests.cases.decoders import every_decoder
from tests.running import Running
from tests.shared_slots import LAYERS, PROMPT, any_family, model
from tests.shared_slots import run as shared_run

STRATEGIES: Final = (1, 2, 3, "compress-s1", "compress-s3", "compress-r2", "compress-r3")
"""Slots in turn, and slots that layers share."""


run = partial(shared_run, provenance=True)
"""Decodes twelve tokens, every row alone, and checks every read."""
any_strategy = pytest.mark.parametrize("kv_slots", STRATEGIES)


# ---- AR with shared slots, once more and without the cache -----------------------------------------------------------


class DictRows:
    """One row of a call on cells in a dict: written by key, read in order of positions, head by head."""

    def __init__(self, cells: dict[object, tuple[Tensor, Tensor]], key: tuple[object, ...], position: int) -> None:
        """Names the slot `(*key, layer)`, or what `key` maps a layer to."""
        self.positions = torch.tensor([position])
        self._cells, self._key, self._position = cells, key, position

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
        """Writes the row's cell, then reads the slot."""
        slot = self._key[layer]
        self._cells[slot, self._position] = key[0], value[0]
        seen = [self._cells[slot, position] for position in range(self._position + 1)]
        group = query.shape[1] // key.shape[1]
        heads = []
        for head, vector in enumerate(query[0]):
            weights = torch.stack([scale * (vector @ keys[head // group]) for keys, _ in seen]).softmax(0)
            heads.append(
                torch.stack([w * values[head // group] for w, (_, values) in zip(weights, seen, strict=True)]).sum(0)
            )
        return torch.cat(heads)[None]


def plainly(network: LoopedModel, prompt: Sequence[int], kv_slots: int | str, *, num_tokens: int) -> list[Tensor]:
    """Gives the logits of AR with shared slots: an unshared prefill, thinned out, then one position after the other."""
    depth, shapes = network.recurrence_depth, network.kv_shapes
    slots = slot_map(kv_slots, recurrence_depth=depth, recurrent_layers=shapes.recurrent_layers).by_step
    running = Running(network, num_positions=len(prompt), state_scale=1.0)
    logits = [running.logits(prompt)[-1]]
    cells: dict[object, tuple[Tensor, Tensor]] = {}
    for part, layers, recurrences in (
        (Part.PRELUDE, shapes.prelude_layers, 1),
        (Part.RECURRENT, shapes.recurrent_layers, depth),
        (Part.CODA, shapes.coda_layers, 1),
    ):
        for recurrence in range(recurrences):
            keys, values = running.cache.cells(part, slice(0, len(prompt)), recurrence=recurrence)
            for layer in range(layers):
                slot = slots[recurrence * layers + layer] if part is Part.RECURRENT else layer
                for position in range(len(prompt)):  # a later recurrence replaces an earlier one
                    cells[(part, slot), position] = keys[layer, :, position], values[layer, :, position]

    def rows(part: Part, names: Sequence[int], position: int) -> DictRows:
        return DictRows(cells, tuple((part, name) for name in names), position)

    for position in range(len(prompt), len(prompt) + num_tokens - 1):
        token = logits[-1].argmax().reshape(1)
        injected = network.prelude(token, rows(Part.PRELUDE, range(shapes.prelude_layers), position))
        states = network.initial_states([position], seed=0, scale=1.0)
        states = injected if states is None else states
        for recurrence in range(depth):
            steps = range(recurrence * shapes.recurrent_layers, (recurrence + 1) * shapes.recurrent_layers)
            states = network.recur(states, injected, rows(Part.RECURRENT, [slots[step] for step in steps], position))
        logits.append(network.head(network.coda(states, rows(Part.CODA, range(shapes.coda_layers), position)))[0])
    return logits


@pytest.mark.spec("SHR-02", "SHR-04", "SHR-05", "SHR-07")
@any_family
@any_strategy
def test_ar_with_shared_slots_is_that_of_a_thinned_out_prefill_and_cells_in_a_dict(
    family: str, kv_slots: int | str
) -> None:
    output = run("ar", family, kv_slots, max_new_tokens=6, eos_token_id=None)
    with torch.inference_mode():
        expected = plainly(model(family), PROMPT, kv_slots, num_tokens=6)
    assert output.logits is not None
    torch.testing.assert_close(output.logits, torch.stack(expected), rtol=0, atol=1e-10)


@pytest.mark.spec("SHR-04")
@any_family
@any_strategy
def test_the_prompt_is_computed_as_without_sharing(family: str, kv_slots: int | str) -> None:
    shared, own = run("wfd", family, kv_slots, draft_depth=1), run("ar", family, None)
    assert shared.logits is not None
    assert own.logits is not None
    assert torch.equal(shared.logits[0], own.logits[0])
    assert not torch.equal(shared.logits[1], own.logits[1])


@pytest.mark.spec("SHR-06")
@any_family
@every_decoder
@pytest.mark.parametrize("arithmetic", ["exact", "batched"])
@pytest.mark.parametrize("kv_slots", [4, 5, "full", "latest-m4"])
def test_enough_slots_are_no_sharing_bit_for_bit(
    family: str, decoder: str, arithmetic: str, kv_slots: int | str
) -> None:
    own, enough = (run(decoder, family, slots, arithmetic=arithmetic) for slots in (None, kv_slots))
    assert enough.token_ids == own.token_ids
    assert enough.logits is not None
    assert own.logits is not None
    assert torch.equal(enough.logits, own.logits)
    assert enough.events == own.events
    assert enough.kv_bytes == own.kv_bytes
    assert (enough.exactness, enough.exactness_reason) == ("exact", "")


# ---- cells, calls and bytes ------------------------------------------------------------------------------------------


@pytest.mark.spec("SHR-05")
@pytest.mark.parametrize("kv_slots,draft_depth,expected", [(1, 1, 1), (2, 2, 1), (2, 1, 2), (3, 1, 3)])
def test_rows_that_read_one_slot_are_one_attention(
    kv_slots: int, draft_depth: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full wave makes one call for each slot in use, and that call is given the slot once."""
    calls: list[tuple[int, ...]] = []
    original = kv_module._attention  # noqa: SLF001 - counted, not used

    def counted(query: Tensor, keys: Tensor, values: Tensor, scale: float, **options: object) -> Tensor:
        calls.append(tuple(keys.shape))
        return original(query, keys, values, scale, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(kv_module, "_attention", counted)
    cells = kv_module.KVCache(
        model("ouro").kv_shapes,
        recurrence_depth=4,
        num_positions=8,
        dtype=torch.float64,
        device=torch.device("cpu"),
        spacing=draft_depth,
        sharing=slot_map(kv_slots, recurrence_depth=4, recurrent_layers=LAYERS),
    )
    depths = range(3, -1, -draft_depth)
    rows = cells.rows(Part.RECURRENT, range(len(depths)), depths)
    heads = torch.ones(len(depths), 1, 4, dtype=torch.float64)
    attended = rows.attend(0, heads.repeat(1, 2, 1), heads, heads, scale=1.0)
    assert attended.shape == (len(depths), 8)
    assert len(calls) == expected
    assert all(shape[0] == 1 for shape in calls)  # one key head


@pytest.mark.spec("SHR-03", "KV-02")
@every_decoder
@any_strategy
def test_bytes_are_those_of_the_slots_of_the_map(decoder: str, kv_slots: int | str) -> None:
    output = run(decoder, "huginn", kv_slots)
    num_slots = slot_map(kv_slots, recurrence_depth=4, recurrent_layers=LAYERS).num_slots
    positions = len(PROMPT) + 12 - 1
    assert output.kv_bytes == positions * (1 + num_slots + 1) * 2 * 2 * 4 * 8


@pytest.mark.spec("SHR-03")
@pytest.mark.parametrize("kv_slots,expected", [(4, 422_400), (1, 168_960), (32, 2_787_840)])
def test_bytes_per_position_of_huginn_in_16_bit(kv_slots: int, expected: int) -> None:
    num_slots = slot_map(kv_slots, recurrence_depth=32, recurrent_layers=4).num_slots
    assert (2 + num_slots + 2) * 2 * 55 * 96 * 2 == expected


# ---- what is said ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("SHR-11", "KV-09")
@every_decoder
def test_sharing_is_said_and_so_is_rounding_beside_it(decoder: str) -> None:
    output = run(decoder, "ouro", 2, kv_dtype=torch.float32)
    assert output.exactness == "approximate"
    rounding, sharing = output.exactness_reason.split("; ")
    assert rounding == "KV cells are torch.float32 (KV-09)"
    assert sharing.startswith("4 KV slots instead of 8 in the recurrent block (SHR-11)")


@pytest.mark.spec("SHR-11")
@every_decoder
@pytest.mark.parametrize("max_new_tokens", [0, 1])
def test_a_run_that_computes_nothing_behind_the_prompt_is_exact(decoder: str, max_new_tokens: int) -> None:
    assert run(decoder, "ouro", 1, max_new_tokens=max_new_tokens).exactness == "exact"
    assert run(decoder, "ouro", 1, max_new_tokens=2).exactness == "approximate"

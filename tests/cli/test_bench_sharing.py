"""The benchmark of sharing: the bytes it computes are those that attention is handed; its file keeps its other part."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from reference import bench, kv, models
from reference.bench import sharing
from reference.sharing import slot_map

NAMES = {"tiny-ouro": 1, "tiny-huginn": 2}


@pytest.mark.spec("SHR-05")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kv_slots", [1, 2, 3])
def test_bytes_read_are_those_of_the_slots_that_attention_is_handed(
    name: str, kv_slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, context, read = models.load(name), 64, []
    original = kv._attention  # noqa: SLF001 - watched, not used

    def watched(query: Tensor, keys: Tensor, values: Tensor, scale: float, **options: object) -> Tensor:
        read.append(keys.numel() + values.numel())
        return original(query, keys, values, scale, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(kv, "_attention", watched)
    depth, layers = model.recurrence_depth, model.kv_shapes.recurrent_layers
    slots = slot_map(kv_slots, recurrence_depth=depth, recurrent_layers=layers)
    draft_depth = NAMES[name]
    cache = sharing._filled(model, slots, context, draft_depth)  # noqa: SLF001
    waves = sharing._waves(model, draft_depth, context)  # noqa: SLF001
    with torch.inference_mode():
        for depths in waves:
            sharing._tick(model, cache, context, depths)  # noqa: SLF001
    computed = sharing.kv_bytes_read(model, slots, context, draft_depth) * len(waves) / model.dtype.itemsize
    assert sum(read) == computed


@pytest.mark.parametrize("name", NAMES)
def test_with_own_slots_every_row_reads_a_slot_up_to_its_own_position(name: str) -> None:
    model, context = models.load(name), 64
    shapes, depth = model.kv_shapes, model.recurrence_depth
    own = slot_map(None, recurrence_depth=depth, recurrent_layers=shapes.recurrent_layers)
    rows = depth // NAMES[name]
    cells = sum(range(context - rows + 1, context + 1))
    per_cell = shapes.recurrent_layers * 2 * shapes.kv_heads * shapes.head_dim * model.dtype.itemsize
    assert sharing.kv_bytes_read(model, own, context, NAMES[name]) == cells * per_cell


def test_the_weights_counted_are_the_recurrent_blocks() -> None:
    model = models.load("tiny-huginn")
    hidden, inner = model.hidden_size, model.config.intermediate_size
    block = 4 * hidden + 3 * hidden**2 + 2 * hidden + hidden**2 + 3 * inner * hidden
    assert sharing.weight_bytes(model) == 4 * (2 * hidden**2 + model.kv_shapes.recurrent_layers * block)


@pytest.mark.parametrize("depth,expected", [(1, [1]), (2, [1, 2]), (4, [1, 2, 4]), (16, [1, 2, 4, 16])])
def test_slots_are_1_2_4_and_t(depth: int, expected: list[int]) -> None:
    assert sharing.budgets(depth) == expected


def test_the_command_times_ticks_and_keeps_what_else_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figures.json"
    file.write_text('{"agreement": [{"kv_slots": 1}], "weights": {"a": "b"}}', encoding="utf-8")
    monkeypatch.setattr(models, "SHIPPED", ("tiny-ouro",))
    assert bench.main(["sharing", "ticks", "--longest", "16", "--repeats", "1", "--json", str(file)]) == 0
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["agreement"] == [{"kv_slots": 1}]
    assert written["weights"] == {"a": "b"}
    rows = written["ticks"]
    assert [(row["model"], row["context"], row["rows"], row["kv_slots"]) for row in rows] == [
        ("tiny-ouro", 16, 4, slots) for slots in (1, 2, 4)
    ]
    assert rows[-1]["bytes_of_own"] == rows[-1]["time_of_own"] == 1.0
    assert rows[0]["bytes_of_own"] < rows[1]["bytes_of_own"] < 1

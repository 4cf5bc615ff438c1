"""KV cells: every arrangement of rows attends to what a plain dict of cells would give, and no cells share storage."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from reference.errors import SlotConflictError, StaleReadError
from reference.kv import KVCache, Rows
from reference.models.protocol import KVShapes
from reference.provenance import Part
from reference.sharing import SlotMap
from tests.strategies import Call, Layout, layouts

CPU = torch.device("cpu")
SHAPES = KVShapes(prelude_layers=1, recurrent_layers=2, coda_layers=1, kv_heads=2, head_dim=3)


def cache_of(
    shapes: KVShapes = SHAPES, *, recurrence_depth: int = 3, spacing: int = 1, provenance: bool = False
) -> KVCache:
    return KVCache(
        shapes,
        recurrence_depth=recurrence_depth,
        num_positions=8,
        dtype=torch.float64,
        device=CPU,
        spacing=spacing,
        provenance=provenance,
    )


class PlainCells:
    """Cells in a dict; a row attends alone, head by head, to every position up to its own."""

    def __init__(self, layout: Layout) -> None:
        """Starts with zeros everywhere."""
        self._layout = layout
        zeros = torch.zeros(layout.kv_heads, layout.head_dim, dtype=torch.float64)
        self._cells = dict.fromkeys(
            product(range(layout.recurrence_depth), range(layout.num_positions)), (zeros, zeros)
        )

    def attend(self, call: Call, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
        """Writes all rows, then attends each."""
        for row, place in enumerate(zip(call.recurrences, call.positions, strict=True)):
            self._cells[place] = key[row], value[row]
        return torch.stack([self._attend(row, call, query, scale=scale) for row in range(len(call.positions))])

    def _attend(self, row: int, call: Call, query: Tensor, *, scale: float) -> Tensor:
        seen = [self._cells[call.recurrences[row], position] for position in range(call.positions[row] + 1)]
        heads = []
        for head, vector in enumerate(query[row]):
            shared = head // self._layout.group
            weights = torch.stack([scale * (vector @ key[shared]) for key, _ in seen]).softmax(0)
            heads.append(sum(weight * value[shared] for weight, (_, value) in zip(weights, seen, strict=True)))
        return torch.cat([torch.as_tensor(head) for head in heads])


GAP = Layout(
    kv_heads=1,
    group=1,
    head_dim=2,
    recurrence_depth=4,
    spacing=1,
    num_positions=3,
    seed=0,
    calls=(Call((0, 2), (3, 2)),),
)
"""Slots side by side at positions that are not: no wavefront."""


@pytest.mark.spec("KV-03", "MOD-03")
@example(GAP)
@given(layout=layouts())
def test_rows_in_any_arrangement_attend_as_a_plain_dict_of_cells_does(layout: Layout) -> None:
    shapes = KVShapes(
        prelude_layers=0, recurrent_layers=1, coda_layers=0, kv_heads=layout.kv_heads, head_dim=layout.head_dim
    )
    cache = KVCache(
        shapes,
        recurrence_depth=layout.recurrence_depth,
        num_positions=layout.num_positions,
        dtype=torch.float64,
        device=CPU,
        spacing=layout.spacing,
    )
    plain = PlainCells(layout)
    generator = torch.Generator().manual_seed(layout.seed)
    for call in layout.calls:
        size = len(call.positions)
        query = torch.randn(size, layout.kv_heads * layout.group, layout.head_dim, generator=generator).double()
        key, value = torch.randn(2, size, layout.kv_heads, layout.head_dim, generator=generator).double()
        rows = cache.rows(Part.RECURRENT, call.positions, call.recurrences)
        assert rows.positions.tolist() == list(call.positions)
        attended = rows.attend(0, query, key, value, scale=0.7)
        expected = plain.attend(call, query, key, value, scale=0.7)
        torch.testing.assert_close(attended, expected, rtol=0, atol=1e-12)


@pytest.mark.spec("SHR-05", "MOD-03")
@given(layout=layouts(), data=st.data())
def test_rows_that_share_slots_in_any_way_attend_as_a_plain_dict_of_cells_does(
    layout: Layout, data: st.DataObject
) -> None:
    """Two layers with slots of their own or in common; the dict knows steps only by the slot they are written to."""
    steps = 2 * layout.recurrence_depth
    slots = st.integers(0, layout.recurrence_depth - 1)
    if data.draw(st.booleans(), label="layers have slots of their own"):
        turns = data.draw(st.lists(slots, min_size=layout.recurrence_depth, max_size=layout.recurrence_depth))
        by_step = tuple(2 * slot + layer for slot in turns for layer in range(2))
    else:
        by_step = tuple(data.draw(st.lists(slots, min_size=steps, max_size=steps), label="slots"))
    numbers = {slot: number for number, slot in enumerate(dict.fromkeys(by_step))}
    sharing = SlotMap(2, tuple(numbers[slot] for slot in by_step))
    cache = KVCache(
        KVShapes(
            prelude_layers=0, recurrent_layers=2, coda_layers=0, kv_heads=layout.kv_heads, head_dim=layout.head_dim
        ),
        recurrence_depth=layout.recurrence_depth,
        num_positions=layout.num_positions,
        dtype=torch.float64,
        device=CPU,
        sharing=sharing,
    )
    plain = PlainCells(replace(layout, recurrence_depth=steps))
    generator = torch.Generator().manual_seed(layout.seed)
    for call in layout.calls:
        size = len(call.positions)
        rows = cache.rows(Part.RECURRENT, call.positions, call.recurrences)
        for layer in range(2):
            query = torch.randn(size, layout.kv_heads * layout.group, layout.head_dim, generator=generator).double()
            key, value = torch.randn(2, size, layout.kv_heads, layout.head_dim, generator=generator).double()
            attended = rows.attend(layer, query, key, value, scale=0.7)
            in_slots = tuple(sharing.by_step[2 * recurrence + layer] for recurrence in call.recurrences)
            expected = plain.attend(Call(call.positions, in_slots), query, key, value, scale=0.7)
            torch.testing.assert_close(attended, expected, rtol=0, atol=1e-12)


@pytest.mark.spec("SHR-02", "SHR-05")
def test_rows_in_several_shared_slots_write_the_cells_of_their_own_layer() -> None:
    cache = KVCache(
        SHAPES,
        recurrence_depth=3,
        num_positions=8,
        dtype=torch.float64,
        device=CPU,
        sharing=SlotMap(2, (0, 1, 2, 3, 0, 1)),
    )
    rows = cache.rows(Part.RECURRENT, [0, 1], [1, 0])
    for layer in range(2):
        cell = torch.full((2, 2, 3), layer + 1.0, dtype=torch.float64)
        rows.attend(layer, cell, cell, -cell, scale=1.0)
    for position, recurrences in ((0, (1,)), (1, (0, 2))):  # recurrences 0 and 2 share a slot
        for recurrence in recurrences:
            keys, values = cache.cells(Part.RECURRENT, slice(position, position + 1), recurrence=recurrence)
            for layer in range(2):
                assert bool((keys[layer] == layer + 1).all())
                assert bool((values[layer] == -layer - 1).all())


def every_cell(cache: KVCache) -> dict[tuple[Part, int, int, int], tuple[Tensor, Tensor]]:
    """Gives all cells by (part, layer, recurrence, position)."""
    found = {}
    layers = {Part.PRELUDE: 1, Part.RECURRENT: 2, Part.CODA: 1}
    for part in Part:
        for recurrence in range(cache.recurrence_depth if part is Part.RECURRENT else 1):
            keys, values = cache.cells(part, slice(0, cache.num_positions), recurrence=recurrence)
            for layer, position in product(range(layers[part]), range(cache.num_positions)):
                found[part, layer, recurrence, position] = (keys[layer, :, position], values[layer, :, position])
    return found


@pytest.mark.spec("KV-01")
@pytest.mark.parametrize("recurrence_depth,spacing", [(depth, d) for depth in range(1, 7) for d in range(1, depth + 1)])
def test_no_two_cells_share_storage_whatever_the_order_of_slots(recurrence_depth: int, spacing: int) -> None:
    cache = cache_of(recurrence_depth=recurrence_depth, spacing=spacing)
    places = list(every_cell(cache))
    assert len(places) == SHAPES.num_slots(recurrence_depth) * cache.num_positions
    for number, (part, layer, recurrence, position) in enumerate(places, start=1):
        cell = torch.full((1, 2, 3), float(number), dtype=torch.float64)
        cache.rows(part, [position], [recurrence]).attend(layer, cell, cell, -cell, scale=1.0)
    for number, (keys, values) in enumerate(every_cell(cache).values(), start=1):
        assert bool((keys == number).all())
        assert bool((values == -number).all())


def held(value: object) -> Iterator[Tensor]:
    """Gives every tensor in a nest of containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from held(tuple(value.values()))
    elif isinstance(value, Sequence):
        for item in value:
            yield from held(item)


@pytest.mark.spec("KV-02")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_positions", [0, 1, 8])
def test_bytes_reported_are_bytes_allocated_and_follow_the_formula(dtype: torch.dtype, num_positions: int) -> None:
    cache = KVCache(SHAPES, recurrence_depth=3, num_positions=num_positions, dtype=dtype, device=CPU)
    tensors = list(held([group for group in vars(cache).values() if isinstance(group, dict)]))
    # Views share a storage; each storage counts once.
    storages = {storage.data_ptr(): storage.nbytes() for storage in map(Tensor.untyped_storage, tensors)}
    assert cache.num_bytes == sum(storages.values())
    assert cache.num_bytes == num_positions * SHAPES.bytes_per_position(3, bytes_per_element=dtype.itemsize)
    assert {tensor.dtype for tensor in tensors} == {dtype}
    assert {tensor.device for tensor in tensors} == {CPU}


def write(cache: KVCache, position: int, recurrence: int, number: float) -> Rows:
    cell = torch.full((1, 2, 3), number, dtype=torch.float64)
    rows = cache.rows(Part.RECURRENT, [position], [recurrence])
    rows.attend(0, cell, cell, cell, scale=1.0)
    return rows


@pytest.mark.spec("KV-05")
def test_ending_an_incarnation_leaves_its_cells_as_they_are() -> None:
    cache = cache_of()
    write(cache, 2, 1, 5.0)
    before = every_cell(cache)
    cache.end([2])
    for place, (keys, values) in every_cell(cache).items():
        assert torch.equal(keys, before[place][0])
        assert torch.equal(values, before[place][1])


@pytest.mark.spec("KV-05")
def test_filling_reaches_all_cells_of_the_positions_and_no_others() -> None:
    cache = cache_of()
    cache.fill([1, 4], math.nan)
    for (*_, position), (keys, values) in every_cell(cache).items():
        assert bool(keys.isnan().all()) == bool(values.isnan().all()) == (position in {1, 4})


@pytest.mark.spec("KV-05")
def test_nan_left_in_free_cells_does_not_reach_a_wave_that_starts_over_them() -> None:
    clean, dirty = cache_of(), cache_of()
    dirty.fill(range(8), math.nan)
    outputs: list[list[Tensor]] = [[], []]
    for cache, seen in zip((clean, dirty), outputs, strict=True):
        generator = torch.Generator().manual_seed(1)
        for positions, recurrences in (([0], [0]), ([0, 1], [1, 0]), ([0, 1, 2], [2, 1, 0]), ([1, 2, 3], [2, 1, 0])):
            cache.begin(positions[-1:])
            query, key, value = torch.randn(3, len(positions), 2, 3, generator=generator).double()
            seen.append(cache.rows(Part.RECURRENT, positions, recurrences).attend(0, query, key, value, scale=1.0))
    for one, other in zip(*outputs, strict=True):
        assert torch.equal(one, other)


def test_nan_of_an_earlier_incarnation_does_not_reach_a_wave_that_starts_over_it() -> None:
    cache = cache_of()
    query = key = value = torch.full((2, 2, 3), math.nan, dtype=torch.float64)
    cache.begin([0])
    cache.begin([1])
    cache.rows(Part.RECURRENT, [0, 1], [2, 1]).attend(0, query, key, value, scale=1.0)
    cache.end([0, 1])
    cache.begin([0])
    cache.begin([1])
    finite = torch.ones_like(query)
    rows = cache.rows(Part.RECURRENT, [0, 1], [1, 0])
    assert rows.attend(0, finite, finite, finite, scale=1.0).isfinite().all()
    cells = torch.cat([cells.flatten() for cells in cache.cells(Part.RECURRENT, slice(0, 2), recurrence=2)])
    assert cells.isfinite().all()


@pytest.mark.spec("KV-06")
def test_cells_are_given_as_copies() -> None:
    cache = cache_of()
    keys, values = cache.cells(Part.RECURRENT, slice(0, 8), recurrence=2)
    keys.fill_(1)
    values.fill_(1)
    assert all(not bool(key.any()) and not bool(value.any()) for key, value in every_cell(cache).values())


@pytest.mark.spec("KV-03", "KV-04")
def test_with_provenance_attending_checks_writes_and_reads() -> None:
    cache = cache_of(provenance=True)
    with pytest.raises(SlotConflictError, match="KV-04"):
        write(cache, 0, 0, 1.0)
    cache.begin([0, 1])
    with pytest.raises(StaleReadError, match="KV-03"):
        write(cache, 1, 0, 1.0)
    write(cache, 0, 0, 1.0)
    cache.end([1])
    with pytest.raises(SlotConflictError, match="KV-04"):
        write(cache, 1, 0, 1.0)


@pytest.mark.spec("KV-03")
def test_without_provenance_nothing_is_recorded() -> None:
    cache = cache_of()
    assert cache.provenance is None
    write(cache, 1, 2, 1.0)
    write(cache, 1, 2, 1.0)


@pytest.mark.spec("SHR-05")
def test_where_layers_share_slots_each_step_gives_the_cells_of_its_own_slot() -> None:
    cache = KVCache(
        SHAPES, recurrence_depth=2, num_positions=1, dtype=torch.float64, device=CPU, sharing=SlotMap(2, (0, 1, 0, 2))
    )
    for number, (recurrence, layer) in enumerate(product(range(2), range(2)), start=1):
        cell = torch.full((1, 2, 3), float(number), dtype=torch.float64)
        cache.rows(Part.RECURRENT, [0], [recurrence]).attend(layer, cell, cell, -cell, scale=1.0)
    for recurrence, numbers in enumerate(([3.0, 2.0], [3.0, 4.0])):  # the third step overwrote what the first wrote
        keys, values = cache.cells(Part.RECURRENT, slice(0, 1), recurrence=recurrence)
        assert keys.amax((1, 2, 3)).tolist() == keys.amin((1, 2, 3)).tolist() == numbers
        assert values.amax((1, 2, 3)).tolist() == values.amin((1, 2, 3)).tolist() == [-number for number in numbers]

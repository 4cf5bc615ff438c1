"""KV slots: where keys and values live, who may write them, and attention over them.

One cell per (layer, recurrence, position) of the recurrent block and per (layer, position) of prelude and coda. This is
the one place where the cells are written. A model hands its queries, keys and values to the `Rows` of a call; `Rows`
writes the rows' cells and then attends, so that all writes of a call come before its reads.

Nothing is ever erased for correctness: a row reads only cells that the current incarnation of each position has written
(KV-03, KV-05). Where recurrences share a slot, its cells hold what was written last, and the rows of a call that read
the same slot are one causal attention (SHR-05). Keys are stored head_dim-major and values position-major, since both
products of attention with few queries then run along contiguous memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from reference.axes import Attended, KeysOrValues, Mask, Positions, Queries
from reference.dtypes import converted, wide_dtype
from reference.models.protocol import KVShapes
from reference.provenance import Part, Provenance
from reference.sharing import SlotMap
from reference.spans import as_slice, is_run


@runtime_checkable  # for the tests, which check annotations at run time
class Rows(Protocol):
    """The rows of one call, as an attention layer sees them; see `models.protocol.AttentionRows`."""

    @property
    def positions(self) -> Positions:
        """Absolute positions of the rows, on the model's device."""

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to its slot at positions up to its own."""


class KVCache:
    """All KV cells of one sequence, allocated once."""

    def __init__(
        self,
        shapes: KVShapes,
        *,
        recurrence_depth: int,
        num_positions: int,
        dtype: torch.dtype,
        device: torch.device,
        spacing: int = 1,
        sharing: SlotMap | None = None,
        provenance: bool = False,
    ) -> None:
        """Allocates zeroed cells.

        Args:
            shapes: The model's KV shapes.
            recurrence_depth: T: slots of every recurrent layer.
            num_positions: Positions that can be held.
            dtype: Type of the cells; keys and values are rounded to it when written, widened when read (KV-09).
            device: Where the cells live.
            spacing: Depth between neighbouring lanes of a wavefront (d). It only sets the order of slots in memory,
                so that the slots one tick touches lie side by side.
            sharing: Which recurrences share a slot (SHR-02); by default none does.
            provenance: Whether to record who wrote each cell and to raise on a stale read; slow, for tests.
        """
        self.shapes = shapes
        self.recurrence_depth = recurrence_depth
        self.num_positions = num_positions
        self.dtype = dtype
        self._positions = torch.arange(num_positions, device=device)
        self._wavefront_biases: dict[int, Tensor] = {}
        self._masks: dict[tuple[int, ...], Mask] = {}
        self._num_used = 0  # cells from this position on are as allocated, zero
        self._keys: dict[Part, Tensor] = {}
        self._values: dict[Part, Tensor] = {}
        heads, size = shapes.kv_heads, shapes.head_dim
        # A wavefront's lanes, oldest first, run recurrences r, r - d, r - 2d, ...: list them in just that order.
        order = sorted(range(recurrence_depth), key=lambda r: ((recurrence_depth - 1 - r) % spacing, -r))
        self._slot_of_recurrence = tuple(order.index(recurrence) for recurrence in range(recurrence_depth))
        self._are_shared = sharing is not None
        self._across_layers: SlotMap | None = None
        recurrent_layers = shapes.recurrent_layers
        if sharing is not None:
            if sharing.by_recurrence is None:  # then all layers' slots are numbered together, as if of one layer
                self._across_layers, recurrent_layers = sharing, 1
            self._slot_of_recurrence = sharing.by_recurrence or sharing.by_step
        for part, layers, slots in (
            (Part.PRELUDE, shapes.prelude_layers, 1),
            (Part.RECURRENT, recurrent_layers, len(set(self._slot_of_recurrence))),
            (Part.CODA, shapes.coda_layers, 1),
        ):
            self._keys[part] = torch.zeros(layers, slots, heads, size, num_positions, dtype=dtype, device=device)
            self._values[part] = torch.zeros(layers, slots, heads, num_positions, size, dtype=dtype, device=device)
        # By part and slot, then by layer: a call finds its views made.
        self._slots = {
            part: tuple(
                tuple(zip(keys.unbind(), values.unbind(), strict=True))
                for keys, values in zip(self._keys[part].unbind(1), self._values[part].unbind(1), strict=True)
            )
            for part in Part
        }
        self.provenance = (
            Provenance(
                replace(shapes, recurrent_layers=recurrent_layers),
                recurrence_depth=recurrence_depth,
                num_positions=num_positions,
                slots=self._slot_of_recurrence if self._are_shared else None,
            )
            if provenance
            else None
        )

    @property
    def num_bytes(self) -> int:
        """Bytes allocated for all cells (KV-02)."""
        return sum(cells.nbytes for cells in (*self._keys.values(), *self._values.values()))

    def rows(self, part: Part, positions: Sequence[int], depths: Sequence[int]) -> Rows:
        """Prepares a call on rows at `positions`.

        Args:
            part: Whose layers the call runs.
            positions: Position of each row, ascending within a slot.
            depths: Recurrence that each row runs (recurrent block, 0-based), depth of its state (coda), 0 (prelude).
        """
        if part is not Part.RECURRENT:
            return _OneSlotRows(self, part, positions, depths, 0)
        if self._across_layers is not None:
            return _RowsAcrossLayers(self, part, positions, depths, self._across_layers)
        slots = [self._slot_of_recurrence[depth] for depth in depths]
        if slots.count(slots[0]) == len(slots):
            return _OneSlotRows(self, part, positions, depths, slots[0])
        if self._are_shared:
            return _GroupedRows(self, part, positions, depths, slots)
        if is_run(slots) and is_run(positions):
            return _WavefrontRows(self, part, positions, depths, slots[0])
        return _SeparateRows(self, part, positions, depths, slots)

    def wavefront_bias(self, size: int, length: int) -> Float[Tensor, "groups 1 cells"]:
        """Gives what is added to the scores of `size` rows on a diagonal: minus infinity behind a row's own position.

        Args:
            size: Rows; each has a group for every KV head.
            length: Cells, the last of which is at the last row's position.
        """
        if size not in self._wavefront_biases:
            bias = torch.zeros(size, self.num_positions, dtype=self.dtype, device=self._positions.device)
            bias[:, -size:].masked_fill_(self.mask(range(size))[0, :, 0], -torch.inf)
            self._wavefront_biases[size] = bias.repeat_interleave(self.shapes.kv_heads, 0).unsqueeze(1)
        return self._wavefront_biases[size][..., self.num_positions - length :]

    def mask(self, positions: Sequence[int]) -> Mask:
        """Marks, for each row, the cells behind its own position. Cells before the first row's are free to all rows."""
        offsets = tuple(position - positions[0] for position in positions)
        mask = self._masks.get(offsets)
        if mask is None:
            cells = torch.arange(offsets[-1] + 1, device=self._positions.device)
            mask = (cells > torch.tensor(offsets, device=cells.device).unsqueeze(-1))[None, :, None]
            # Those of a wave come again and again; that of a prompt would be large to keep.
            if len(offsets) <= self.recurrence_depth:
                self._masks[offsets] = mask
        return mask

    def begin(self, positions: Sequence[int]) -> None:
        """Starts a new incarnation at each of `positions`, which are a run; nobody may be in flight behind them.

        What earlier incarnations left there and behind in the recurrent block's cells is zeroed although nobody may
        read it before it is written: a batched wavefront takes a rectangle of cells, adds minus infinity to the scores
        of the forbidden ones and multiplies their values by a weight of exactly 0. A leftover NaN would survive both.
        """
        start = positions[0]
        if start < self._num_used:  # once for all that a flush left, not again for each lane that starts over it
            for cells, axis in ((self._keys[Part.RECURRENT], 4), (self._values[Part.RECURRENT], 3)):
                cells.narrow(axis, start, self._num_used - start).zero_()
        self._num_used = positions[-1] + 1
        if self.provenance is not None:
            self.provenance.begin(positions)

    def end(self, positions: Sequence[int]) -> None:
        """Ends the incarnations at `positions` after a flush. Their cells are left as they are (KV-05)."""
        if self.provenance is not None:
            self.provenance.end(positions)

    def fill(self, positions: Iterable[int], value: float) -> None:
        """Overwrites all cells at `positions`; with NaN this shows that nobody reads them (KV-05)."""
        chosen = list(positions)
        if chosen:
            self._num_used = max(self._num_used, max(chosen) + 1)
            cells = as_slice(chosen) or torch.tensor(chosen, device=self._positions.device)
            for keys, values in zip(self._keys.values(), self._values.values(), strict=True):
                keys[..., cells] = value
                values[:, :, :, cells] = value

    def cells(
        self, part: Part, positions: slice, *, recurrence: int = 0
    ) -> tuple[Float[Tensor, "layers kv_heads seq head_dim"], Float[Tensor, "layers kv_heads seq head_dim"]]:
        """Copies out the keys and the values of `part` at `positions`.

        Args:
            part: Whose cells.
            positions: Which positions.
            recurrence: Which recurrence, 0-based; recurrent block only.
        """
        keys, values = self._keys[part], self._values[part]
        if part is Part.RECURRENT and self._across_layers is not None:
            layers = self._across_layers.recurrent_layers
            slots = list(self._across_layers.by_step[recurrence * layers : (recurrence + 1) * layers])
            return keys[0, slots, :, :, positions].transpose(-1, -2).clone(), values[0, slots, :, positions].clone()
        slot = self._slot_of_recurrence[recurrence] if part is Part.RECURRENT else 0
        return keys[:, slot, :, :, positions].transpose(-1, -2).clone(), values[:, slot, :, positions].clone()


class _KnownRows:
    """What all kinds of rows share."""

    def __init__(self, cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int]) -> None:
        self._keys = cache._keys[part]  # noqa: SLF001 - rows are the cache's own view of itself
        self._values = cache._values[part]  # noqa: SLF001
        self._provenance = cache.provenance
        self._all_positions = cache._positions  # noqa: SLF001
        self._part = part
        self._where = positions
        self._depths = depths

    @cached_property
    def _span(self) -> slice | None:
        """The slice that selects the rows' positions, if there is one."""
        return as_slice(self._where)

    @cached_property
    def positions(self) -> Positions:
        """Absolute positions of the rows, on the model's device."""
        if self._span is None:
            return torch.tensor(self._where, device=self._all_positions.device)
        return self._all_positions[self._span]

    def _check(self, layer: int) -> None:
        """Records the writes of a call and checks its reads, if anybody keeps the record."""
        if self._provenance is not None:
            self._provenance.write(self._part, layer, positions=self._where, depths=self._depths)
            self._provenance.read(self._part, layer, positions=self._where, depths=self._depths)


class _OneSlotRows(_KnownRows):
    """Rows that share one slot: prefill, a verification of several positions, or a single row. One causal attention."""

    def __init__(self, cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int], slot: int) -> None:
        super().__init__(cache, part, positions, depths)
        self._layers = cache._slots[part][slot]  # noqa: SLF001
        self._mask_of = cache.mask
        self._length = positions[-1] + 1

    @cached_property
    def _cells(self) -> slice | Positions:
        """The rows' own cells; a slice where it can be, since that is cheaper to write."""
        return self._span or self.positions

    @cached_property
    def _mask(self) -> Mask | None:
        return self._mask_of(self._where) if len(self._where) > 1 else None

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to the slot at positions up to its own."""
        keys, values = self._layers[layer]
        keys[:, :, self._cells] = converted(key, keys.dtype).permute(1, 2, 0)
        values[:, self._cells] = converted(value, values.dtype).transpose(0, 1)
        keys, values = keys.narrow(2, 0, self._length), values.narrow(1, 0, self._length)
        self._check(layer)
        num_rows, kv_heads, head_dim = key.shape
        # kv_heads batches of rows x group queries: the query heads that share a key head are further rows to it.
        grouped = query.reshape(num_rows, kv_heads, -1, head_dim).transpose(0, 1)
        attended = _attention(
            grouped.reshape(kv_heads, -1, head_dim), keys, values, scale, mask=self._mask, split=(kv_heads, num_rows)
        )
        return attended.view(kv_heads, num_rows, -1).transpose(0, 1).reshape(num_rows, -1)


class _WavefrontRows(_KnownRows):
    """Rows on a diagonal: neighbours in position and, one row each, in slots that lie side by side.

    A decoder makes one such object a tick. Views are therefore cut by strides, one where slicing, diagonal and flatten
    would take four, and what forbids cells, which every wavefront of a size shares, is the cache's.
    """

    def __init__(
        self, cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int], first_slot: int
    ) -> None:
        super().__init__(cache, part, positions, depths)
        first, rows, length = positions[0], len(positions), positions[-1] + 1
        self._span = slice(first, length)
        self._bias = cache.wavefront_bias(rows, length)
        keys, values = self._keys, self._values
        layers, _, heads, size, _ = keys.shape
        layer, slot, head, element, position = keys.stride()
        start, own = first_slot * slot, first_slot * slot + first * position
        # What is seen: the slots up to the last row's position, slots and heads joined. What is the rows' own: row k's
        # is (slot k, position k) of a square of slots and positions. Each view is told where the next layer, head,
        # element and cell begin; values lie the other way round than keys.
        past_keys = keys.as_strided((layers, rows * heads, size, length), (layer, head, element, position), start)
        own_keys = keys.as_strided((layers, heads, size, rows), (layer, head, element, slot + position), own)
        layer, slot, head, position, element = values.stride()
        start, own = first_slot * slot, first_slot * slot + first * position
        past_values = values.as_strided((layers, rows * heads, length, size), (layer, head, position, element), start)
        own_values = values.as_strided((layers, heads, size, rows), (layer, head, element, slot + position), own)
        self._views = tuple(
            zip(own_keys.unbind(), own_values.unbind(), past_keys.unbind(), past_values.unbind(), strict=True)
        )

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to its own slot at positions up to its own."""
        own_key, own_value, keys, values = self._views[layer]
        own_key.copy_(key.permute(1, 2, 0))
        own_value.copy_(value.permute(1, 2, 0))
        self._check(layer)
        num_rows, kv_heads, head_dim = key.shape
        grouped = query.reshape(num_rows * kv_heads, -1, head_dim)
        # No mask but a bias: what it forbids was zeroed when its position began, so there is no NaN to survive it.
        scores = torch.baddbmm(converted(self._bias, query.dtype), grouped, converted(keys, query.dtype), alpha=scale)
        attended = _weighted(scores, values, query.dtype)
        return attended.view(num_rows, -1)


class _GroupedRows(_KnownRows):
    """Rows of which some share a slot: one causal attention for every slot, over all its rows (SHR-05).

    Each slot's rows write before they read. That is as good as all rows writing first: what the rows of one slot write,
    the rows of another never read.
    """

    def __init__(
        self, cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int], slots: Sequence[int]
    ) -> None:
        super().__init__(cache, part, positions, depths)
        rows_of: dict[int, list[int]] = {}
        for row, slot in enumerate(slots):
            rows_of.setdefault(slot, []).append(row)
        self._groups = [
            (
                as_slice(rows) or torch.tensor(rows, device=self._all_positions.device),
                _OneSlotRows(cache, part, [positions[row] for row in rows], [depths[row] for row in rows], slot),
            )
            for slot, rows in rows_of.items()
        ]

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to the slot at positions up to its own."""
        attended = query.new_empty(len(query), query[0].numel())
        for rows, group in self._groups:
            attended[rows] = group.attend(layer, query[rows], key[rows], value[rows], scale=scale)
        return attended


class _RowsAcrossLayers(_KnownRows):
    """Rows where a slot is shared between layers: a layer finds its slots anew, all numbered as if of one layer."""

    def __init__(
        self, cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int], sharing: SlotMap
    ) -> None:
        super().__init__(cache, part, positions, depths)
        self._cache, self._sharing = cache, sharing

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to its slot of this layer at positions up to its own."""
        steps = [depth * self._sharing.recurrent_layers + layer for depth in self._depths]
        slots = [self._sharing.by_step[step] for step in steps]
        rows = _GroupedRows(self._cache, self._part, self._where, steps, slots)
        return rows.attend(0, query, key, value, scale=scale)


class _SeparateRows(_KnownRows):
    """Rows in any other arrangement: each attends alone, after all have written."""

    def __init__(
        self, cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int], slots: Sequence[int]
    ) -> None:
        super().__init__(cache, part, positions, depths)
        self._slots = slots

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to its own slot at positions up to its own."""
        slots = torch.tensor(self._slots, device=self._all_positions.device)
        self._keys[layer, slots, :, :, self.positions] = converted(key, self._keys.dtype)
        self._values[layer, slots, :, self.positions] = converted(value, self._values.dtype)
        self._check(layer)
        _, kv_heads, head_dim = key.shape
        attended = [
            _attention(
                query[row].view(kv_heads, -1, head_dim),
                self._keys[layer, slot, :, :, : position + 1],
                self._values[layer, slot, :, : position + 1],
                scale,
            ).flatten()
            for row, (slot, position) in enumerate(zip(self._slots, self._where, strict=True))
        ]
        return torch.stack(attended)


def _attention(
    query: Float[Tensor, "groups queries head_dim"],
    keys: Float[Tensor, "groups head_dim cells"],
    values: Float[Tensor, "groups cells head_dim"],
    scale: float,
    *,
    mask: Bool[Tensor, "outer inner 1 last_cells"] | None = None,
    split: tuple[int, int] = (1, 1),
) -> Float[Tensor, "groups queries head_dim"]:
    """Gives softmax attention.

    Args:
        query: Rotated queries.
        keys: Rotated keys.
        values: Values.
        scale: Factor on the dot products.
        mask: True at forbidden cells, of which the last are given; the ones before are free. Forbidden scores are
            replaced, not added to, so that nothing that a forbidden key holds survives.
        split: The two axes into which `groups * queries` splits to be aligned with the mask's first two.
    """
    scores = torch.bmm(query * scale, converted(keys, query.dtype))
    if mask is not None:
        scores.view(*split, -1, scores.shape[-1])[..., -mask.shape[-1] :].masked_fill_(mask, -torch.inf)
    return _weighted(scores, values, query.dtype)


def _weighted(
    scores: Float[Tensor, "groups queries cells"], values: Float[Tensor, "groups cells head_dim"], dtype: torch.dtype
) -> Float[Tensor, "groups queries head_dim"]:
    """Gives values weighted by the softmax of scores, which runs in at least float32, as in both official networks."""
    weights = torch.softmax(scores, dim=-1, dtype=wide_dtype(dtype))
    return torch.bmm(converted(weights, dtype), converted(values, dtype))

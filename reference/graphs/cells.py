"""KV cells at fixed addresses, and the rows of a call whose shapes and slots never change.

A captured step may not ask the host where a lane stands. So a row's *slot* is fixed when the step is built (the row of
a lane that is `r` recurrences old uses the slot of recurrence `r`), and its *position* is a number on the device: it
says where to write and which cells to see. A row without a lane computes like the others, but writes to a scratch cell
that nobody ever reads, and sees position 0 alone.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from reference.axes import Attended, KeysOrValues, Positions, Queries
from reference.graphs import attention
from reference.models.protocol import KVShapes
from reference.provenance import Part


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows of a call stand; computed once and used by every layer and tick of a macro step."""

    positions: Positions
    """Position of each row; 0 where there is no lane."""
    cells: Positions
    """Cell that each row writes; the scratch cell where there is no lane."""
    lengths: Int[Tensor, " rows"]
    """How many cells each row sees: those up to its own position. 32 bits wide, as the flash kernel wants."""
    last_length: Int[Tensor, " one"]
    """How many the last row would see if it had a lane: what one causal attention over all rows goes by."""
    bias: Float[Tensor, "rows cells"]
    """0 where a row sees a cell, minus infinity elsewhere."""


class Cells(nn.Module):
    """All KV cells of one sequence, allocated once; the scratch cell is the last of every slot."""

    def __init__(
        self,
        shapes: KVShapes,
        *,
        slots: tuple[int, ...],
        num_positions: int,
        spare: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Allocates zeroed cells.

        Args:
            shapes: The model's KV shapes.
            slots: The slot of every recurrence: `0, 1, ..., T - 1` for slots of their own, `r mod s` for shared ones.
            num_positions: Positions that can be held.
            spare: Cells behind the last position that rows without a lane may look at; as many as rows.
            dtype: Type of the cells.
            device: Where the cells live.
        """
        super().__init__()
        self.slots = slots
        self.num_slots = max(slots) + 1
        # Attention kernels like a multiple of 8.
        self.num_visible = -(-(num_positions + spare) // 8) * 8
        heads, size = shapes.kv_heads, shapes.head_dim
        for part, layers, num_slots in (
            (Part.PRELUDE, shapes.prelude_layers, 1),
            (Part.RECURRENT, shapes.recurrent_layers, self.num_slots),
            (Part.CODA, shapes.coda_layers, 1),
        ):
            for kind in ("keys", "values"):
                cells = torch.zeros(layers, num_slots, self.num_visible + 1, heads, size, dtype=dtype, device=device)
                self.register_buffer(f"{part.value}_{kind}", cells)
        self.all_positions: Tensor
        self.register_buffer("all_positions", torch.arange(self.num_visible, device=device))
        self.nothing: Tensor
        self.register_buffer("nothing", torch.zeros((), dtype=dtype, device=device))

    @property
    def num_bytes(self) -> int:
        """Bytes allocated for cells, spare and scratch cells included."""
        return sum(self._cells(part, kind).nbytes for part in Part for kind in ("keys", "values"))

    def physical(self, slot: int) -> int:
        """Gives the place of a slot in memory: deepest first, as rows come, since a slice only runs upwards."""
        return self.num_slots - 1 - slot

    def places(self, positions: Positions, active: Bool[Tensor, " rows"]) -> Places:
        """Says where rows stand.

        Args:
            positions: Position of each row, neighbours ascending; of rows without a lane too, were they below 0.
            active: Which rows have a lane.
        """
        where = torch.where(active, positions, 0)
        return Places(
            positions=where,
            cells=torch.where(active, positions, self.num_visible),
            lengths=(where + 1).int(),
            last_length=(positions[-1:] + 1).int(),
            bias=torch.where(self.all_positions <= where.unsqueeze(-1), self.nothing, -torch.inf),
        )

    def part(self, part: Part) -> tuple[Tensor, Tensor]:
        """Gives the keys and the values of a part: layers, slots, cells, kv_heads, head_dim."""
        return self._cells(part, "keys"), self._cells(part, "values")

    def content(
        self, part: Part, positions: slice, *, recurrence: int = 0
    ) -> tuple[Float[Tensor, "layers kv_heads seq head_dim"], Float[Tensor, "layers kv_heads seq head_dim"]]:
        """Copies out the keys and values at `positions`, laid out as `reference.kv.KVCache.cells` gives them."""
        slot = self.physical(self.slots[recurrence]) if part is Part.RECURRENT else 0
        keys, values = (cells[:, slot, positions].transpose(1, 2).clone() for cells in self.part(part))
        return keys, values

    def _cells(self, part: Part, kind: str) -> Tensor:
        return self.get_buffer(f"{part.value}_{kind}")


class Call(nn.Module):
    """What is known of a call when the step is built: the part that it runs and the slot of every row."""

    def __init__(self, cells: Cells, part: Part, recurrences: tuple[int, ...], *, are_neighbours: bool = True) -> None:
        """Lays out a call.

        Args:
            cells: The cells that it will work on.
            part: Whose layers.
            recurrences: The recurrence that each row runs, in the order of the rows; any numbers but for the
                recurrent block.
            are_neighbours: Whether the rows are neighbours in position.
        """
        super().__init__()
        self.part = part
        is_recurrent = part is Part.RECURRENT
        slots = tuple(cells.physical(cells.slots[r]) if is_recurrent else 0 for r in recurrences)
        self.plan = attention.Plan.of(slots, are_neighbours=are_neighbours)
        self.starts: Tensor
        self.first_query: Tensor
        self.first_cell: Tensor
        device = cells.all_positions.device
        starts = torch.tensor(slots, device=device) * (cells.num_visible + 1)
        self.register_buffer("starts", starts)
        # For the flash kernel: sequences of one row each, or all rows as one. It takes their lengths from elsewhere,
        # so the end of the last one in `first_cell` means nothing.
        step = len(slots) if self.plan.is_one_run else 1
        self.register_buffer("first_query", torch.arange(0, len(slots) + 1, step, dtype=torch.int32, device=device))
        self.register_buffer("first_cell", torch.cat((starts[::step], starts[:1])).int())
        for slot, rows in self.plan.rows_of_slot.items():
            self.register_buffer(f"rows_of_{slot}", torch.tensor(rows, device=device))
        order = [row for rows in self.plan.rows_of_slot.values() for row in rows]
        self.back: Tensor
        self.register_buffer("back", torch.tensor(order, device=device).argsort())

    def rows(self, cells: Cells, places: Places) -> "StaticRows":
        """Gives the rows of one execution."""
        return StaticRows(self, cells, places)

    def rows_of(self, slot: int) -> Tensor:
        """Gives the indices of the rows that read a slot."""
        return self.get_buffer(f"rows_of_{slot}")


class StaticRows:
    """The rows of one call, as an attention layer sees them; an `AttentionRows`."""

    def __init__(self, call: Call, cells: Cells, places: Places) -> None:
        """Finds the cells to write, once for all layers."""
        self._call = call
        self._keys, self._values = cells.part(call.part)
        self._places = places
        self._own = call.starts + places.cells

    @property
    def positions(self) -> Positions:
        """Absolute positions of the rows."""
        return self._places.positions

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell, then attends each row to its slot at positions up to its own."""
        keys, values = self._keys[layer], self._values[layer]
        keys.flatten(0, 1).index_copy_(0, self._own, key)
        values.flatten(0, 1).index_copy_(0, self._own, value)
        if attention.has_varlen(query):
            call, is_one_run = self._call, self._call.plan.is_one_run
            lengths = self._places.last_length if is_one_run else self._places.lengths
            return attention.varlen(
                query, keys, values, scale, starts=(call.first_query, call.first_cell), lengths=lengths
            )
        return self._masked(query, keys, values, scale)

    def _masked(self, query: Queries, keys: Tensor, values: Tensor, scale: float) -> Attended:
        plan, bias = self._call.plan, self._places.bias
        keys, values = keys[:, :-1], values[:, :-1]  # nobody sees the scratch cell
        if plan.is_one_each:
            slots = slice(plan.slots[0], plan.slots[-1] + 1, plan.stride)
            return attention.masked(query.unsqueeze(1), keys[slots], values[slots], bias.unsqueeze(1), scale)
        attended = []
        for slot in plan.rows_of_slot:
            rows, only = self._call.rows_of(slot), slice(slot, slot + 1)
            own_query, own_bias = query.index_select(0, rows).unsqueeze(0), bias.index_select(0, rows).unsqueeze(0)
            attended.append(attention.masked(own_query, keys[only], values[only], own_bias, scale))
        return torch.cat(attended).index_select(0, self._call.back)


class PromptRows:
    """A whole prompt at one recurrence: it attends to what this very call writes, so slots may be shared.

    Recurrences run in ascending order and the last write wins: what a prompt leaves in a shared slot is the deepest
    recurrence of its class, and its own logits are those of slots of its own.
    """

    def __init__(self, cells: Cells, part: Part, *, length: int, recurrence: int = 0) -> None:
        """Takes the first `length` positions."""
        self._slot = cells.physical(cells.slots[recurrence]) if part is Part.RECURRENT else 0
        self._keys, self._values = cells.part(part)
        self.positions: Int[Tensor, " rows"] = cells.all_positions[:length]

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes the prompt's cells, then attends causally within the prompt."""
        length = key.shape[0]
        self._keys[layer, self._slot, :length] = key
        self._values[layer, self._slot, :length] = value
        return attention.causal(query, key, value, scale)

"""Another implementation, as an outsider would write it: it shares the weights with ours and no line of decoding.

A wavefront decoder with a cache that is a dictionary and a trace that is written by hand. What the gallery gets wrong
is a method each.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from reference.models.protocol import LoopedModel

Cell = tuple[str, int, int, int]
"""Part, layer, slot, position."""


@dataclass(eq=False)
class Seat:
    """A position in flight."""

    position: int
    """Where it is."""
    token: int
    """What it carries."""
    depth: int
    """Recurrences done."""
    state: Tensor
    """One row."""
    injected: Tensor
    """One row."""
    incarnation: int = 0
    """Lanes that were started at the position before this one."""


@dataclass
class Report:
    """All that an implementation tells of a run."""

    token_ids: list[int] = field(default_factory=list)
    """New tokens."""
    finish_reason: str = ""
    """Why it ended."""
    lines: list[str] = field(default_factory=list)
    """The trace."""
    counts: dict[str, float] = field(default_factory=dict)
    """Its own counts."""

    @property
    def trace(self) -> str:
        """JSON lines."""
        return "\n".join(self.lines)

    def say(self, event: str, **values: object) -> None:
        """Writes a line."""
        self.lines.append(json.dumps({"event": event, **values}))


class Call:
    """The rows of one call: attention over the dictionary."""

    def __init__(self, owner: "Outsider", part: str, positions: Sequence[int], slots: Sequence[int]) -> None:
        """Takes where the rows are and which slots they use."""
        self._owner, self._part, self._where, self._slots = owner, part, positions, slots

    @property
    def positions(self) -> Tensor:
        """What rotary embedding turns by."""
        return torch.tensor([self._owner.angle_of(position) for position in self._where])

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
        """Writes all cells, then attends row by row."""
        owner = self._owner
        for row, (position, slot) in enumerate(zip(self._where, self._slots, strict=True)):
            owner.record((self._part, layer, slot, position), key[row], value[row], owner.running[row])
        if (self._part, layer) == ("core", 0):
            owner.reads = [owner.read_by(slot, at) for at, slot in zip(self._where, self._slots, strict=True)]
        group = query.shape[1] // key.shape[1]
        attended = []
        for row, (position, slot) in enumerate(zip(self._where, self._slots, strict=True)):
            cells = [owner.at((self._part, layer, slot, earlier), key[row]) for earlier in range(position + 1)]
            keys = torch.stack([cell[0] for cell in cells]).repeat_interleave(group, dim=1)
            values = torch.stack([cell[1] for cell in cells]).repeat_interleave(group, dim=1)
            weights = torch.einsum("hd,nhd->hn", query[row] * scale, keys).softmax(-1)
            attended.append(torch.einsum("hn,nhd->hd", weights, values).flatten())
        return torch.stack(attended)


class Outsider:
    """One run, right as it stands."""

    decoder = "wfd"
    """What its trace says it is."""
    draft_length: int | None = None
    """What its trace says of that."""

    def __init__(
        self,
        model: LoopedModel,
        prompt: Sequence[int],
        *,
        draft_depth: int,
        max_new_tokens: int,
        stop_ids: Iterable[int] = (),
        seed: int = 0,
    ) -> None:
        """Takes the problem."""
        self.model = model
        self.prompt = list(prompt)
        self.full = model.recurrence_depth
        self.draft_depth = draft_depth
        self.end = len(prompt) + max_new_tokens
        self.stop_ids = set(stop_ids)
        self.seed = seed
        self.cells: dict[Cell, tuple[Tensor, Tensor]] = {}
        self.writers: dict[Cell, tuple[int, int]] = {}
        self.started: dict[int, int] = {}
        self.running: list[Seat] = []
        self.reads: list[list[list[int]]] = []
        self.seats: list[Seat] = []
        self.frontier = len(prompt)
        self.tick = 0
        self.report = Report()
        self.counts = dict.fromkeys(("ticks", "lane_ticks", "accepted", "rejected", "flushed", "drafted"), 0)
        start = {"decoder": self.decoder, "recurrence_depth": self.full, "draft_depth": draft_depth}
        limits = {"prompt_length": len(prompt), "max_new_tokens": max_new_tokens}
        rest = {
            "draft_length": self.draft_length,
            "context_length": model.context_length,
            "stop_ids": sorted(self.stop_ids),
        }
        self.report.say("start", version=2, **start, **limits, **rest)

    @torch.inference_mode()
    def run(self) -> Report:
        """Decodes."""
        rows = [self.start(position, token) for position, token in enumerate(self.prompt)]
        for _ in range(self.full):
            self.recur(rows)
        tokens = self.read(rows)
        self.seats = [rows[-1]]
        self.verify(tokens[-1])
        patience = 2 * self.full * (self.end + 1)  # a wrong one might never end
        while not self.report.finish_reason and self.tick < patience:
            self.step()
        counts = self.counts
        judged = counts["accepted"] + counts["rejected"]
        self.report.counts = {
            **{name: counts[name] for name in ("ticks", "lane_ticks", "accepted", "rejected", "flushed")},
            "committed": len(self.report.token_ids),
            "acceptance_rate": counts["accepted"] / judged if judged else float("nan"),
        }
        return self.report

    def step(self) -> None:
        """Runs one tick."""
        self.move(self.order(list(self.seats)))
        oldest, youngest = self.seats[0], self.seats[-1]
        if self.is_verified(oldest):
            (token,) = self.read([oldest])
            self.verify(token)
        may_draft = youngest in self.seats and not self.report.finish_reason and youngest.position + 2 < self.end
        if may_draft and self.is_drafted(youngest):
            (token,) = self.read([youngest])
            self.counts["drafted"] += 1
            self.report.say("draft", tick=self.tick, position=youngest.position, token=token)
            self.draft(youngest, token)

    def move(self, rows: list[Seat]) -> None:
        """Runs the recurrent call of a tick."""
        self.tick += 1
        self.recur(rows)
        self.counts["ticks"] += 1
        self.counts["lane_ticks"] += len(rows)
        lanes = [[seat.position, seat.token, seat.depth] for seat in rows]
        self.report.say("advance", tick=self.tick, lanes=lanes, reads=self.reads)

    def start(self, position: int, token: int) -> Seat:
        """Runs the prelude."""
        empty = torch.empty(0)
        seat = Seat(position, token, 0, empty, empty, max(self.started.get(position, 0) - 1, 0))
        self.running = [seat]
        seat.injected = self.model.prelude(torch.tensor([token]), Call(self, "prelude", [position], [0]))
        state = self.initial_state(position)
        seat.state = seat.injected if state is None else state
        return seat

    def recur(self, rows: list[Seat]) -> None:
        """Runs one recurrence on every row."""
        self.running = rows
        call = Call(self, "core", [seat.position for seat in rows], [self.slot_of(seat.depth) for seat in rows])
        states = torch.cat([seat.state for seat in rows])
        states = self.loop(states, torch.cat([seat.injected for seat in rows]), call)
        for seat, state in zip(rows, states, strict=True):
            seat.state = state.unsqueeze(0)
            seat.depth += 1

    def read(self, rows: list[Seat]) -> list[int]:
        """Runs coda and head."""
        self.running = rows
        call = Call(self, "coda", [seat.position for seat in rows], [0] * len(rows))
        hidden = self.model.coda(self.finished(torch.cat([seat.state for seat in rows])), call)
        return [int(token) for token in self.model.head(hidden).argmax(dim=-1)]

    def verify(self, token: int) -> None:
        """Commits a token, judges the draft for it, stops or goes on."""
        self.commit(token)
        self.seats.pop(0)
        behind = list(self.seats)
        if behind:
            self.judge(behind, token)
        reason = self.stop_reason(token)
        if reason:
            self.finish(reason)
        elif not self.seats:
            self.restart(token)

    def commit(self, token: int) -> None:
        """Makes a token final."""
        self.report.say("commit", tick=self.tick, position=self.frontier, token=token)
        self.report.token_ids.append(token)
        self.frontier += 1

    def judge(self, behind: list[Seat], token: int) -> None:
        """Compares the next lane with what was committed."""
        position = self.frontier - 1
        if self.is_right(behind[0], token):
            self.counts["accepted"] += 1
            self.report.say("accept", tick=self.tick, position=position)
            return
        self.counts["rejected"] += 1
        self.counts["flushed"] += len(behind)
        drafted = behind[0].token
        self.report.say("reject", tick=self.tick, position=position, draft_token=drafted, verified_token=token)
        self.flush(behind)

    def flush(self, behind: list[Seat]) -> None:
        """Drops lanes."""
        self.report.say("flush", tick=self.tick, positions=[seat.position for seat in behind])
        self.seats = []

    def finish(self, reason: str) -> None:
        """Ends the run."""
        self.report.finish_reason = reason
        abandoned = [seat.position for seat in self.seats]
        self.report.say("finish", tick=self.tick, reason=reason, abandoned=abandoned)

    def restart(self, token: int) -> None:
        """Starts a lane with a final token."""
        self.inject(self.frontier - 1, token)

    def draft(self, source: Seat, token: int) -> None:
        """Starts a lane with a drafted token."""
        self.inject(source.position + 1, token)

    def inject(self, position: int, token: int) -> None:
        """Starts a lane."""
        self.report.say("inject", tick=self.tick, position=position, token=token)
        self.started[position] = self.started.get(position, 0) + 1
        self.seats.append(self.start(position, token))

    def stop_reason(self, token: int) -> str:
        """Says why the run ends, or nothing."""
        if token in self.stop_ids:
            return "eos"
        return "length" if self.frontier == self.end else ""

    def is_verified(self, oldest: Seat) -> bool:
        """Says whether the oldest lane is due."""
        return oldest.depth == self.full

    def is_drafted(self, youngest: Seat) -> bool:
        """Says whether the youngest lane is due."""
        return youngest.depth == self.draft_depth < self.full

    def is_right(self, lane: Seat, token: int) -> bool:
        """Judges a draft."""
        return lane.token == token

    def order(self, seats: list[Seat]) -> list[Seat]:
        """Orders the rows of a call."""
        return seats

    def at(self, cell: Cell, like: Tensor) -> tuple[Tensor, Tensor]:
        """Reads a cell; what nobody has written is zero, as in memory that was allocated at once."""
        return self.cells.get(cell, (torch.zeros_like(like), torch.zeros_like(like)))

    def write(self, cell: Cell, key: Tensor, value: Tensor) -> None:
        """Writes a cell."""
        self.cells[cell] = (key, value)

    def record(self, cell: Cell, key: Tensor, value: Tensor, seat: Seat) -> None:
        """Writes a cell, and remembers who did, if it was written."""
        self.write(cell, key, value)
        if self.cells[cell][0] is key:
            self.writers[cell] = (seat.depth, seat.incarnation)

    def read_by(self, slot: int, position: int) -> list[list[int]]:
        """Gives the cells that a row at a position reads in the recurrent block, and who wrote them."""
        cells: list[Cell] = [("core", 0, slot, earlier) for earlier in range(position + 1)]
        writers = [self.writers[cell] if cell in self.cells else (-1, -1) for cell in cells]
        return [[place, place + 1, *writer] for place, writer in enumerate(writers)]

    def slot_of(self, recurrence: int) -> int:
        """Says which slot a recurrence uses."""
        return recurrence

    def angle_of(self, position: int) -> int:
        """Says by which position a row is rotated."""
        return position

    def initial_state(self, position: int) -> Tensor | None:
        """Gives the state at depth 0."""
        return self.model.initial_states([position], seed=self.seed, scale=1.0)

    def loop(self, states: Tensor, injected: Tensor, call: Call) -> Tensor:
        """Runs the recurrent block."""
        return self.model.recur(states, injected, call)

    def finished(self, states: Tensor) -> Tensor:
        """Gives what the coda reads."""
        return states


Make = Callable[..., Outsider]
"""Makes a run: right or wrong."""

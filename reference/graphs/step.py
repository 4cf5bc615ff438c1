"""What all captured steps are made of: the model, its cells, the ledger, and the two ends of a lane."""

from typing import NotRequired, TypedDict

import torch
from torch import Tensor, nn

from reference.axes import Hidden, Positions, TokenIds
from reference.graphs.cells import Call, Cells, PromptRows
from reference.graphs.ledger import Field, Flag, Flags, Ledger, Number
from reference.models.protocol import LoopedModel
from reference.provenance import Part


class StepOptions(TypedDict):
    """What every captured step is told, whatever the decoder."""

    slots: tuple[int, ...]
    """The slot of every recurrence; there are T of them."""
    num_positions: int
    """Positions that can be held."""
    ring_size: int
    """Entries of the output ring."""
    state_seed: NotRequired[int]
    """Seed of the initial state; 0 by default."""
    state_scale: NotRequired[float]
    """Scale of the initial state; 1.0 by default."""


class Step(nn.Module):
    """Fixed buffers for `num_rows` lanes of one sequence. A module, so that `torch.export` can look at it.

    Lanes come oldest first and are neighbours in position, so all positions follow from one. The buffers are written
    in place; what is read and written is the same memory at every execution.
    """

    def __init__(
        self,
        model: LoopedModel,
        *,
        num_rows: int,
        slots: tuple[int, ...],
        num_positions: int,
        ring_size: int,
        state_seed: int = 0,
        state_scale: float = 1.0,
    ) -> None:
        """Allocates everything.

        Args:
            model: Any looped model whose methods work on the device alone.
            num_rows: Lanes in flight at most.
            slots: The slot of every recurrence.
            num_positions: Positions that can be held.
            ring_size: Entries of the output ring.
            state_seed: Seed of the initial state.
            state_scale: Scale of the initial state.
        """
        super().__init__()
        self.model = model
        self.recurrence_depth = len(slots)
        self.num_positions = num_positions
        device, dtype = model.device, model.dtype
        self.cells = Cells(
            model.kv_shapes, slots=slots, num_positions=num_positions, spare=num_rows, dtype=dtype, device=device
        )
        self.ledger = Ledger(vocab_size=model.vocab_size, ring_size=ring_size, device=device)
        self.prelude = Call(self.cells, Part.PRELUDE, (0,))
        self.states: Tensor
        self.injected_inputs: Tensor
        self.tokens: Tensor
        self.positions: Tensor
        self.active: Tensor
        self.initial_states: Tensor | None
        self.register_buffer("states", torch.zeros(num_rows, model.hidden_size, dtype=dtype, device=device))
        self.register_buffer("injected_inputs", torch.zeros_like(self.states))
        self.register_buffer("tokens", torch.zeros(num_rows, dtype=torch.int64, device=device))
        self.register_buffer("positions", torch.arange(num_rows, device=device))
        self.register_buffer("active", torch.zeros(num_rows, dtype=torch.bool, device=device))
        drawn = model.initial_states(range(num_positions), seed=state_seed, scale=state_scale)
        self.register_buffer("initial_states", drawn)

    def read_out(self, call: Call, states: Hidden, positions: Positions, due: Flags) -> TokenIds:
        """Runs coda and head on rows and chooses their tokens, the lowest id among equals (SMP-01)."""
        rows = call.rows(self.cells, self.cells.places(positions, due))
        best, tokens = self.model.head(self.model.coda(states, rows)).max(dim=-1)
        self.ledger.add({Field.NANS: (due & best.isnan()).sum(0, keepdim=True)})  # `max` lets every NaN win
        return tokens

    def start(self, token: Number, position: Number, is_wanted: Flag) -> tuple[Hidden, Hidden]:
        """Runs the prelude on one token; gives its state at depth 0 and its injected input."""
        places = self.cells.places(position, is_wanted)
        injected_input = self.model.prelude(token, self.prelude.rows(self.cells, places))
        if self.initial_states is None:
            return injected_input, injected_input
        return self.initial_states.index_select(0, places.positions), injected_input

    def prefill(self, prompt_ids: TokenIds) -> Tensor:
        """Computes the prompt at full depth; gives the logits behind it. Not captured: its length sets its shapes."""
        length = prompt_ids.shape[0]
        injected_inputs = self.model.prelude(prompt_ids, PromptRows(self.cells, Part.PRELUDE, length=length))
        states = injected_inputs if self.initial_states is None else self.initial_states[:length]
        for recurrence in range(self.recurrence_depth):
            rows = PromptRows(self.cells, Part.RECURRENT, length=length, recurrence=recurrence)
            states = self.model.recur(states, injected_inputs, rows)
        hidden = self.model.coda(states, PromptRows(self.cells, Part.CODA, length=length))
        return self.model.head(hidden[-1:])

    def matches(self, drafts: TokenIds, verified: TokenIds, positions: Positions) -> Flags:
        """Judges the drafts at `positions` by the full-depth tokens. A benchmark puts its own verdicts here."""
        del positions
        return drafts == verified

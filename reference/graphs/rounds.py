"""DtV as two captured steps: one draft, and the verification of a round.

A round is `gamma + 1` executions of the draft step and one of the verification step. Row k of the buffers is the k-th
source of the round; the draft step finds its row by a number on the device. In a last round with fewer drafts, and
after the end, the surplus executions have no lane and change nothing. Compare `reference.dtv`.
"""

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor, nn

from reference.graphs.cells import Call
from reference.graphs.ledger import Field, Flag, Number
from reference.graphs.step import Step, StepOptions
from reference.models.protocol import LoopedModel
from reference.provenance import Part


class Rounds(Step):
    """The fixed buffers of a round; `draft` and `verify` are what two graphs capture."""

    def __init__(
        self,
        model: LoopedModel,
        *,
        draft_depth: int,
        draft_length: int,
        **options: Unpack[StepOptions],
    ) -> None:
        """Allocates everything and lays out the ticks of both steps; with `draft_depth` = T nothing is drafted."""
        depth = len(options["slots"])
        self.most_drafts = 0 if draft_depth == depth else draft_length
        num_rows = self.most_drafts + 1
        super().__init__(model, num_rows=num_rows, **options)
        self.draft_depth = draft_depth
        self.most_commits = num_rows
        """Tokens that one cycle can commit."""
        self.draft_ticks = nn.ModuleList(Call(self.cells, Part.RECURRENT, (r,)) for r in range(draft_depth))
        self.verify_ticks = nn.ModuleList(
            Call(self.cells, Part.RECURRENT, (r,) * num_rows) for r in range(draft_depth, depth)
        )
        self.draft_coda = Call(self.cells, Part.CODA, (0,))
        self.verify_coda = Call(self.cells, Part.CODA, (0,) * num_rows)
        self.source: Tensor
        self.row_numbers: Tensor
        self.register_buffer("source", torch.zeros(1, dtype=torch.int64, device=model.device))
        self.register_buffer("row_numbers", torch.arange(num_rows, device=model.device))

    def begin(self, token: Number, position: Number) -> None:
        """Starts the first round, after a prefill; outside the captured steps."""
        self.source.zero_()  # a warm-up has moved it
        self._restart(token, position, torch.ones_like(self.active[:1]))

    @property
    def cycle(self) -> tuple[Callable[[], object], ...]:
        """The calls that decode, to be repeated: one round."""
        return (*(self.draft,) * (self.most_drafts + 1), self.verify)

    def draft(self) -> None:
        """Takes one source to depth d; unless it is the round's last, its readout becomes the next source (DTV-04)."""
        row = self.source
        position, active = self.positions.index_select(0, row), self.active.index_select(0, row)

        # Advance: d ticks of one row.
        places = self.cells.places(position, active)
        states = self.states.index_select(0, row)
        injected_inputs = self.injected_inputs.index_select(0, row)
        for call in self.draft_ticks:
            assert isinstance(call, Call)
            states = self.model.recur(states, injected_inputs, call.rows(self.cells, places))
        self.states.index_copy_(0, row, states)
        counted = {Field.TICKS: active * self.draft_depth, Field.LANE_TICKS: active * self.draft_depth}

        # Read out and inject, K times in a round (DTV-03).
        if self.most_drafts > 0:
            num_drafts = (self.ledger.end - self.ledger.frontier - 1).clamp(max=self.most_drafts)
            drafts = active & (row < num_drafts)
            token = self.read_out(self.draft_coda, states, position, drafts)
            state, injected_input = self.start(token, position + 1, drafts)
            is_next = (self.row_numbers == row + 1) & drafts
            self.states.copy_(torch.where(is_next.unsqueeze(-1), state, self.states))
            self.injected_inputs.copy_(torch.where(is_next.unsqueeze(-1), injected_input, self.injected_inputs))
            self.tokens.copy_(torch.where(is_next, token, self.tokens))
            self.active.copy_(self.active | is_next)
            counted |= {Field.PRELUDE_CALLS: drafts, Field.READOUT_CALLS: drafts}
        self.ledger.add(counted)
        self.source.copy_((row + 1) % len(self.row_numbers))

    def verify(self) -> None:
        """Takes all sources to depth T together and commits until the first rejected draft (DTV-05, DTV-06)."""
        positions, active = self.positions, self.active

        # Advance: T - d ticks of all rows, then read all of them out.
        places = self.cells.places(positions, active)
        states = self.states
        for call in self.verify_ticks:
            assert isinstance(call, Call)
            states = self.model.recur(states, self.injected_inputs, call.rows(self.cells, places))
        verified = self.read_out(self.verify_coda, states, positions, active)

        # Verify: row k commits if all before it were accepted and none ended the text.
        finish = self.ledger.finish_code(self.ledger.frontier + self.row_numbers + 1, verified)
        behind = torch.cat((active[1:], torch.zeros_like(active[:1])))
        drafts = torch.cat((self.tokens[1:], self.tokens[:1]))
        is_right = behind & self.matches(drafts, verified, positions + 1)
        goes_on = is_right & (finish == 0)
        reached = torch.cat((active[:1], active[:1] & goes_on[:-1].cumprod(0).bool()))
        rejects = reached & behind & ~is_right
        self.ledger.commit(verified, reached)

        # Stop, or go on from the last committed token.
        last = reached.sum(0, keepdim=True) - 1
        row = last.clamp(min=0)
        code = torch.where(reached, finish, 0).sum(0, keepdim=True)
        injects = active[:1] & (code == 0)
        num_active = active.sum(0, keepdim=True)
        num_ticks = len(self.verify_ticks)
        self.ledger.add(
            {
                Field.TICKS: (num_active > 0) * num_ticks,
                Field.LANE_TICKS: num_active * num_ticks,
                Field.PRELUDE_CALLS: injects,
                Field.READOUT_CALLS: active[:1],
                Field.ACCEPTED: (reached & is_right).sum(0, keepdim=True),
                Field.REJECTED: rejects.sum(0, keepdim=True),
                Field.FLUSHED: torch.where(rejects.any(), num_active - 1 - last, 0),
                Field.FINISH: code,
            }
        )
        self._restart(verified.index_select(0, row), positions.index_select(0, row) + 1, injects)

    def _restart(self, token: Number, position: Number, injects: Flag) -> None:
        """Starts a round with one lane in the first row, or leaves no lane at all."""
        state, injected_input = self.start(token, position, injects)
        self.states[:1].copy_(state)
        self.injected_inputs[:1].copy_(injected_input)
        self.tokens[:1].copy_(token)
        self.active.copy_((self.row_numbers == 0) & injects)
        self.positions.copy_(torch.where(injects, position + self.row_numbers, self.positions))

"""WFD as one captured step: a *macro step* of d ticks, after which every lane has moved up by one row.

`d` divides `T`, so the lane in row k is always `(W - 1 - k) * d` recurrences old when a macro step begins, and all that
WFD decides falls on the end of one. With T = 4, d = 1 (rows oldest first, as everywhere):

    row   at the start       the d ticks            at the end
     0    depth 3            recurrence 3           depth T: its readout verifies, the lane retires
     1    depth 2            recurrence 2           becomes row 0
     2    depth 1            recurrence 1           becomes row 1
     3    depth 0            recurrence 0           depth d: its readout drafts; becomes row 2
    new                                             the drafted or the verified token enters as row 3

Which recurrence, and so which KV slot, a row runs is known when the step is built. Which rows have a lane, at which
positions, and what they carry is data. AR is the wavefront of one row, d = T. Compare `reference.wfd`: the numbered
steps are the same.
"""

from collections.abc import Callable
from typing import Unpack

import torch
from torch import nn

from reference.axes import Hidden
from reference.graphs.cells import Call
from reference.graphs.ledger import Field, Flag, Flags, Number
from reference.graphs.step import Step, StepOptions
from reference.models.protocol import LoopedModel
from reference.provenance import Part


class Wavefront(Step):
    """One macro step of WFD on fixed buffers; `forward` is what a graph captures."""

    most_commits = 1
    """Tokens that one execution can commit."""

    def __init__(
        self,
        model: LoopedModel,
        *,
        draft_depth: int,
        **options: Unpack[StepOptions],
    ) -> None:
        """Allocates everything and lays out the d ticks. `draft_depth` divides the number of `slots`, which is T."""
        width = len(options["slots"]) // draft_depth
        super().__init__(model, num_rows=width, **options)
        self.draft_depth = draft_depth
        self.coda = Call(self.cells, Part.CODA, (0,) * min(width, 2), are_neighbours=False)
        self.ticks = nn.ModuleList(
            Call(self.cells, Part.RECURRENT, tuple((width - 1 - row) * draft_depth + tick for row in range(width)))
            for tick in range(draft_depth)
        )

    @property
    def cycle(self) -> tuple[Callable[[], object], ...]:
        """The calls that decode, to be repeated."""
        return (self,)

    def begin(self, token: Number, position: Number) -> None:
        """Starts the first lane, after a prefill; outside the captured step."""
        none = torch.zeros_like(self.active)
        self.positions.copy_(torch.arange(1 - len(none), 1, device=none.device) + position)
        self._shift(self.states, survives=none, token=token, position=position, injects=torch.ones_like(none[:1]))

    def forward(self) -> None:
        """Runs one macro step."""
        positions, active = self.positions, self.active

        # 1. Advance: d ticks of all rows.
        places = self.cells.places(positions, active)
        states = self.states
        for call in self.ticks:
            assert isinstance(call, Call)
            states = self.model.recur(states, self.injected_inputs, call.rows(self.cells, places))

        # 2. Read out: the oldest row is at T now, the youngest at d (WFD-04).
        verifies = active[:1]
        drafts = active[-1:] & self.ledger.may_inject(positions[-1:] + 1)
        if len(active) > 1:
            ends = torch.stack((positions[0], positions[-1]))
            tokens = self.read_out(self.coda, torch.cat((states[:1], states[-1:])), ends, torch.cat((verifies, drafts)))
        else:
            drafts = torch.zeros_like(drafts)
            tokens = self.read_out(self.coda, states, positions, verifies)
        verified, drafted = tokens[:1], tokens[-1:]

        # 3. Verify: commit, then judge the lane behind (WFD-05).
        frontier = self.ledger.frontier.clone()
        self.ledger.commit(verified, verifies)
        behind = verifies & active[1:2] if len(active) > 1 else torch.zeros_like(verifies)
        is_right = self.matches(self.tokens[1:2], verified, positions[1:2]) if len(active) > 1 else behind
        accepts, rejects = behind & is_right, behind & ~is_right

        # 5. Stop: a stop id was committed, or the frontier is at the end.
        finish = torch.where(verifies, self.ledger.finish_code(frontier + 1, verified), 0)
        goes_on = finish == 0
        corrects = verifies & goes_on & ~accepts

        # 4. Draft: inject behind the youngest lane, unless it was flushed in 3; after a rejection, the verified token.
        extends = drafts & goes_on & ~rejects
        num_active = active.sum(0, keepdim=True)
        self.ledger.add(
            {
                Field.TICKS: (num_active > 0) * self.draft_depth,
                Field.LANE_TICKS: num_active * self.draft_depth,
                Field.PRELUDE_CALLS: corrects | extends,
                Field.READOUT_CALLS: verifies | drafts,
                Field.ACCEPTED: accepts,
                Field.REJECTED: rejects,
                Field.FLUSHED: torch.where(rejects, num_active - 1, 0),
                Field.FINISH: finish,
            }
        )
        self._shift(
            states,
            survives=active & goes_on & ~rejects,
            token=torch.where(corrects, verified, drafted),
            position=torch.where(corrects, frontier, positions[-1:] + 1),
            injects=corrects | extends,
        )

    def _shift(self, states: Hidden, *, survives: Flags, token: Number, position: Number, injects: Flag) -> None:
        """Moves every lane up by one row; the freed row takes a new lane, if there is one."""
        state, injected_input = self.start(token, position, injects)
        self.states.copy_(torch.cat((states[1:], state)))
        self.injected_inputs.copy_(torch.cat((self.injected_inputs[1:], injected_input)))
        self.tokens.copy_(torch.cat((self.tokens[1:], token)))
        self.active.copy_(torch.cat((survives[1:], injects)))
        # Rows without a lane keep their distance to the youngest; once nobody is left the numbers stand still.
        rows = torch.arange(1 - len(self.active), 1, device=position.device)
        self.positions.copy_(torch.where(self.active.any(), rows + position, self.positions))

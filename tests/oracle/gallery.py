"""Wrong implementations, written as an outsider would make the mistake, and right ones that do it another way."""

import json
from typing import Final

import torch
from torch import Tensor

from reference.models.ouro import Ouro
from tests.oracle.outsider import Call, Cell, Outsider, Report, Seat


class KeepsStaleCells(Outsider):
    """A cell that exists is taken to be computed already, whoever computed it."""

    def write(self, cell: Cell, key: Tensor, value: Tensor) -> None:
        """Writes only what is new."""
        self.cells.setdefault(cell, (key, value))


class LeavesCodaEntriesOfDrafts(Outsider):
    """A verification does not overwrite the coda entries of the draft at its position."""

    def start(self, position: int, token: int) -> Seat:
        """Forgets the entries of an earlier lane, so that nothing stale is in play."""
        for cell in [cell for cell in self.cells if cell[0] == "coda" and cell[3] == position]:
            del self.cells[cell]
        return super().start(position, token)

    def write(self, cell: Cell, key: Tensor, value: Tensor) -> None:
        """Keeps the first entry."""
        if cell[0] == "coda":
            self.cells.setdefault(cell, (key, value))
        else:
            super().write(cell, key, value)


class RestartsOnePositionTooFar(Outsider):
    """After a rejection positions are counted on from the flushed draft."""

    def restart(self, token: int) -> None:
        """Starts the lane one position behind its own, if something was flushed."""
        self.inject(self.frontier - 1 + bool(self.counts["rejected"]), token)


class RotatesOnePositionTooFar(Outsider):
    """After a rejection the right slot is used with the next position's angle."""

    def angle_of(self, position: int) -> int:
        """Turns too far."""
        return position + bool(self.counts["rejected"])


class VerifiesAtAShallowDepth(Outsider):
    """The exit gate, or anything else, lets a verification end before depth T."""

    def is_verified(self, oldest: Seat) -> bool:
        """Is content with one recurrence less."""
        return oldest.depth >= self.full - 1


class ForgetsTheNormBetweenLoops(Outsider):
    """Ouro's final norm is applied before the head, and not to the state that is carried on."""

    def loop(self, states: Tensor, injected: Tensor, call: Call) -> Tensor:
        """Runs the layers alone."""
        del injected
        assert isinstance(self.model, Ouro)
        return self.model.stack(states, call)

    def finished(self, states: Tensor) -> Tensor:
        """Applies the norm to what is read out."""
        assert isinstance(self.model, Ouro)
        return self.model._norm(states)  # noqa: SLF001 - the outsider has the same weights


class RotatesTheOtherPairs(Outsider):
    """Rotary embedding turns neighbours against each other where the network turns halves."""

    def loop(self, states: Tensor, injected: Tensor, call: Call) -> Tensor:
        """Runs the block with queries and keys turned back and turned again."""
        return self.model.recur(states, injected, _Neighbours(call))


class _Neighbours:
    """A call whose queries and keys are turned in the other layout."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def positions(self) -> Tensor:
        """Where the network's own rotation does nothing."""
        return torch.zeros_like(self._call.positions)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
        """Turns neighbours, then attends."""
        return self._call.attend(layer, self._turned(query), self._turned(key), value, scale=scale)

    def _turned(self, x: Tensor) -> Tensor:
        size = x.shape[-1]
        angles = torch.outer(self._call.positions.double(), 1000.0 ** -(torch.arange(0, size, 2) / size).double())
        turn = torch.complex(angles.cos(), angles.sin()).unsqueeze(1)
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).reshape(x.shape).to(x.dtype)


class SharesTheFirstRecurrence(Outsider):
    """All recurrences use one slot, in which the first one's cells stay."""

    def slot_of(self, recurrence: int) -> int:
        """Has one slot."""
        del recurrence
        return 0

    def start(self, position: int, token: int) -> Seat:
        """Makes room for a new lane."""
        for cell in [cell for cell in self.cells if cell[3] == position]:
            del self.cells[cell]
        return super().start(position, token)

    def write(self, cell: Cell, key: Tensor, value: Tensor) -> None:
        """Keeps the first cell."""
        self.cells.setdefault(cell, (key, value))


class OverlooksAStopIdInAWave(Outsider):
    """Stop ids are looked for only where no lane is left behind."""

    def stop_reason(self, token: int) -> str:
        """Looks at the budget first."""
        reason = super().stop_reason(token)
        return "" if reason == "eos" and self.seats else reason


class StopsAtADraftedStopId(Outsider):
    """A stop id that was only drafted ends the run."""

    def draft(self, source: Seat, token: int) -> None:
        """Believes the draft."""
        if token in self.stop_ids:
            self.finish("eos")
        else:
            super().draft(source, token)


class DropsTheFirstToken(Outsider):
    """The prefill's token is fed back and not returned."""

    def run(self) -> Report:
        """Forgets it."""
        report = super().run()
        del report.token_ids[0]
        del report.lines[1]
        return report


class RedrawsTheInitialState(Outsider):
    """Noise comes from one stream for all, so a position that starts again gets other noise."""

    def initial_state(self, position: int) -> Tensor | None:
        """Draws the next seed."""
        self.seed += 1
        return super().initial_state(position)


class AcceptsEveryDraft(Outsider):
    """The text goes on from the draft although another token was committed."""

    def is_right(self, lane: Seat, token: int) -> bool:
        """Does not look."""
        del lane, token
        return True


class KeepsTheYoungestLane(Outsider):
    """A flush drops one lane too few."""

    def flush(self, behind: list[Seat]) -> None:
        """Keeps one."""
        dropped = behind[:-1] or behind
        super().flush(dropped)
        self.seats = behind[len(dropped) :]

    def verify(self, token: int) -> None:
        """Starts again in front of the lane that was kept."""
        rejected = self.counts["rejected"]
        super().verify(token)
        if self.counts["rejected"] > rejected and self.seats and not self.report.finish_reason:
            self.restart(token)
            self.seats.sort(key=lambda seat: seat.position)


class DraftsOneRecurrenceEarly(Outsider):
    """Drafts are read out at depth d - 1."""

    def is_drafted(self, youngest: Seat) -> bool:
        """Is in a hurry."""
        return youngest.depth == self.draft_depth - 1


class RunsPastTheBudget(Outsider):
    """A wave that is under way commits one token more than was asked for."""

    def stop_reason(self, token: int) -> str:
        """Is off by one."""
        if token in self.stop_ids:
            return "eos"
        return "length" if self.frontier == self.end + 1 else ""


class CallsAStopTheBudget(Outsider):
    """The finish reason is always the same."""

    def finish(self, reason: str) -> None:
        """Has one word for all."""
        del reason
        super().finish("length")


class HoldsTheYoungestBack(Outsider):
    """The youngest lane waits while the oldest is verified."""

    def order(self, seats: list[Seat]) -> list[Seat]:
        """Leaves it out."""
        return seats[:-1] if len(seats) > 1 and seats[0].depth == self.full - 1 else seats


class DividesByAllDrafts(Outsider):
    """The acceptance rate counts drafts that nobody judged."""

    def run(self) -> Report:
        """Divides by the wrong number."""
        report = super().run()
        report.counts["acceptance_rate"] = self.counts["accepted"] / max(self.counts["drafted"], 1)
        return report


class CountsFlushesNotLanes(Outsider):
    """A flush of three lanes counts as one."""

    def run(self) -> Report:
        """Counts something else."""
        report = super().run()
        report.counts["flushed"] = self.counts["rejected"]
        return report


class CountsTheFirstTokenAsAccepted(Outsider):
    """Tokens that were never drafted, restarts and bonus tokens among them, count as accepted drafts."""

    def run(self) -> Report:
        """Counts all that was not rejected."""
        report = super().run()
        report.counts["accepted"] = len(report.token_ids) - 1 - self.counts["rejected"]
        return report


class RightInAnotherOrder(Outsider):
    """Rows stand youngest first."""

    def order(self, seats: list[Seat]) -> list[Seat]:
        """Turns them round."""
        return seats[::-1]


class RightWithAnEagerFlush(Outsider):
    """Lanes are dropped before the commit and the verdict are written down."""

    def verify(self, token: int) -> None:
        """Writes the flush before the commit."""
        number = len(self.report.lines)
        super().verify(token)
        place = next((k for k in range(number, len(self.report.lines)) if '"flush"' in self.report.lines[k]), None)
        if place is not None:
            self.report.lines.insert(number, self.report.lines.pop(place))


class RightAndHoldsStopsBack(Outsider):
    """The lane of a drafted stop id is not started; if the draft was wrong, the verified token starts one."""

    def draft(self, source: Seat, token: int) -> None:
        """Waits for the verdict."""
        if token not in self.stop_ids:
            super().draft(source, token)


class RightWithASecondOpinion(Outsider):
    """A lane is read out again a little deeper; if it has changed its mind, the lanes behind it are dropped at once."""

    def step(self) -> None:
        """Asks again after the tick."""
        super().step()
        for place, seat in enumerate(self.seats[:-1]):
            behind = self.seats[place + 1 :]
            if seat.depth == 2 * self.draft_depth < self.full:
                (token,) = self.read([seat])
                if token != behind[0].token:
                    self.counts["flushed"] += len(behind)
                    self.report.say("flush", tick=self.tick, positions=[lane.position for lane in behind])
                    del self.seats[place + 1 :]
                    self.report.say("draft", tick=self.tick, position=seat.position, token=token)
                    self.draft(seat, token)
                    return


class RightWithoutACache(Outsider):
    """One token at a time, everything computed anew for each."""

    def run(self) -> Report:
        """Decodes as AR does; there is no schedule to trace."""
        ids = list(self.prompt)
        while not self.report.finish_reason:
            self.cells.clear()
            self.report.lines.clear()
            self.prompt, self.seats = list(ids), []
            rows = [self.start(position, token) for position, token in enumerate(ids)]
            with torch.inference_mode():
                for _ in range(self.full):
                    self.recur(rows)
                token = self.read(rows)[-1]
            ids.append(token)
            self.report.token_ids.append(token)
            self.frontier = len(ids)
            self.report.finish_reason = self.stop_reason(token)
        return self.report


class Rounds(Outsider):
    """Draft then verify, right as it stands: the other two-phase way to use the same readouts."""

    decoder = "dtv"
    draft_length = 3

    def step(self) -> None:
        """Runs one tick: of the youngest lane alone while drafting, else of all."""
        youngest = self.seats[-1]
        if youngest.depth < self.draft_depth < self.full:
            self.move([youngest])
            if youngest.depth == self.draft_depth and len(self.seats) <= self.num_drafts():
                (token,) = self.read([youngest])
                self.counts["drafted"] += 1
                self.report.say("draft", tick=self.tick, position=youngest.position, token=token)
                self.draft(youngest, token)
            return
        self.move(list(self.seats))
        if self.seats[0].depth == self.full:
            self.settle(list(self.seats), self.read(self.seats))

    def num_drafts(self) -> int:
        """Gives the drafts of this round: no more than can be committed beside a verified token."""
        assert self.draft_length is not None
        return min(self.draft_length, self.end - self.frontier - 1)

    def settle(self, seats: list[Seat], tokens: list[int]) -> None:
        """Verifies the lanes of a round, oldest first, until one is rejected or the run ends."""
        for seat, token in zip(seats, tokens, strict=True):
            if self.report.finish_reason or seat not in self.seats:
                return
            self.verify(token)


class TakesTheBonusTwice(Rounds):
    """The bonus token is committed with its round, and again as the next round's first."""

    def settle(self, seats: list[Seat], tokens: list[int]) -> None:
        """Commits it once more where every draft was accepted."""
        rejected = self.counts["rejected"]
        super().settle(seats, tokens)
        if len(seats) > 1 and self.counts["rejected"] == rejected and not self.report.finish_reason:
            self.commit(tokens[-1])


class VerifiesOneRowTooFar(Rounds):
    """A draft is compared with the row that it stands in, not with the row in front of it."""

    def settle(self, seats: list[Seat], tokens: list[int]) -> None:
        """Is off by one row, except in the last."""
        super().settle(seats, [*tokens[1:], tokens[-1]])


class CountsTheBonusAsAccepted(Rounds):
    """The bonus token, which was never drafted, counts as an accepted draft."""

    def run(self) -> Report:
        """Counts all that was not rejected."""
        report = super().run()
        report.counts["accepted"] = len(report.token_ids) - 1 - self.counts["rejected"]
        return report


class DraftsPastTheBudget(Rounds):
    """A round near the end makes as many drafts as any."""

    def num_drafts(self) -> int:
        """Looks at the draft length alone."""
        assert self.draft_length is not None
        return self.draft_length


class RightInShortRounds(Rounds):
    """Rounds of one draft, whatever the draft length."""

    def num_drafts(self) -> int:
        """Stops drafting early, as it may."""
        return min(1, super().num_drafts())


def edited(trace: str, number: int, **values: object) -> str:
    """Changes fields of one line of a trace."""
    lines = trace.splitlines()
    lines[number] = json.dumps(json.loads(lines[number]) | values)
    return "\n".join(lines)


RIGHT: Final = (
    Outsider,
    RightInAnotherOrder,
    RightWithAnEagerFlush,
    RightAndHoldsStopsBack,
    RightWithASecondOpinion,
    Rounds,
    RightInShortRounds,
)
"""Implementations whose tokens and traces must pass."""

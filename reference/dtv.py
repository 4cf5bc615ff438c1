"""Draft-then-verify decoding (DtV): the two-phase baseline.

A round drafts up to gamma tokens one after the other at shallow depth, then takes all their positions to full depth
together, continuing from the draft's recurrences instead of repeating them. Clauses DTV-01 to DTV-09.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Unpack

from reference import engine
from reference.errors import check_whole_number
from reference.models.protocol import LoopedModel
from reference.schedule import Events, Lane, Purpose, Readout, State, Tick, check_draft_depth, interpret
from reference.stopping import Stopping


@dataclass(frozen=True, slots=True)
class DtV:
    """The schedule of draft-then-verify decoding.

    Raises:
        ParameterError: If not `1 <= draft_depth <= recurrence_depth` (DTV-01) or `draft_length < 1` (DTV-02).
    """

    name: ClassVar[str] = "dtv"

    recurrence_depth: int
    """T: recurrences of a verified position."""
    draft_depth: int
    """d: recurrences after which a position proposes its successor."""
    draft_length: int
    """gamma: most drafts in a round."""
    stopping: Stopping
    """When decoding ends."""

    def __post_init__(self) -> None:
        """Refuses parameters outside their range."""
        check_draft_depth(self.draft_depth, self.recurrence_depth, clause="DTV-01")
        check_whole_number("draft_length", self.draft_length, minimum=1, clause="DTV-02")

    def num_drafts(self, state: State) -> int:
        """Gives K, the drafts of the current round: no more than could be committed beside one verified token (DTV-03).

        At `d = T` a readout is already a verification, so nothing is drafted and DtV is AR.
        """
        if self.draft_depth == self.recurrence_depth:
            return 0
        return min(self.draft_length, self.stopping.end - state.frontier - 1)

    def plan(self, state: State) -> Tick:
        """Drafts with the youngest lane alone, then verifies with all lanes together (DTV-04, DTV-05)."""
        youngest = state.lanes[-1]
        if youngest.depth < self.draft_depth:
            return self._draft(youngest, is_last_source=len(state.lanes) == self.num_drafts(state) + 1)
        after = [lane.advanced() for lane in state.lanes]
        due = after[0].depth == self.recurrence_depth
        return Tick(state.lanes, tuple(Readout(lane, Purpose.VERIFY) for lane in after) if due else ())

    def _draft(self, youngest: Lane, *, is_last_source: bool) -> Tick:
        """Takes the youngest lane one recurrence further; at depth d it proposes a token, unless it is the last source.

        The last source goes to depth d too, so that the verification yields a bonus token behind the last draft; its
        own readout there would propose a token that nobody verifies in this round (DTV-04).
        """
        after = youngest.advanced()
        if after.depth == self.recurrence_depth:
            return Tick((youngest,), (Readout(after, Purpose.VERIFY),))
        due = after.depth == self.draft_depth and not is_last_source
        return Tick((youngest,), (Readout(after, Purpose.DRAFT),) if due else ())

    def observe(self, state: State, tokens: tuple[int, ...]) -> tuple[State, Events]:
        """Injects a draft, or commits verified tokens until the first rejected draft (DTV-06)."""
        return interpret(state, self.plan(state), tokens, self.stopping)


def generate(
    model: LoopedModel,
    prompt_ids: engine.PromptIds,
    *,
    max_new_tokens: int,
    draft_depth: int,
    draft_length: int,
    **options: Unpack[engine.Options],
) -> engine.Output:
    """Decodes by rounds of drafting and verification; the tokens are those of AR (DTV-07).

    Args:
        model: Any looped model; its weights and settings are read, never changed.
        prompt_ids: Token ids of the prompt; at least one.
        max_new_tokens: Most tokens to commit; 0 gives an empty result.
        draft_depth: d, from 1 to the recurrence depth.
        draft_length: gamma, at least 1.
        **options: See `reference.engine.Options`.

    Returns:
        The new tokens and all that was observed on the way.

    Raises:
        ParameterError: If an argument breaks a rule of the specification; before any computation.

    Spec: DTV-01 to DTV-09.
    """
    make = partial(DtV, draft_depth=draft_depth, draft_length=draft_length)
    return engine.generate(model, prompt_ids, make, max_new_tokens=max_new_tokens, **options)

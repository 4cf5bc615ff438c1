"""Autoregressive decoding (AR): one position at a time, all recurrences, one token.

This is what looped models do by default, and the definition of the right answer: DtV and WFD must commit the tokens
that AR commits. Clauses AR-01 to AR-03.
"""

from dataclasses import dataclass
from typing import ClassVar, Unpack

from reference import engine
from reference.errors import check_whole_number
from reference.models.protocol import LoopedModel
from reference.schedule import Events, Purpose, Readout, State, Tick, interpret
from reference.stopping import Stopping


@dataclass(frozen=True, slots=True)
class AR:
    """The schedule of autoregressive decoding: a single lane, read out at full depth.

    Raises:
        ParameterError: If `recurrence_depth` is below 1 (MOD-01).
    """

    name: ClassVar[str] = "ar"

    recurrence_depth: int
    """T: recurrences of every position."""
    stopping: Stopping
    """When decoding ends."""

    def __post_init__(self) -> None:
        """Refuses a depth at which nothing could be read out."""
        check_whole_number("recurrence_depth", self.recurrence_depth, minimum=1, clause="MOD-01")

    @property
    def draft_depth(self) -> int:
        """T: nothing is drafted."""
        return self.recurrence_depth

    @property
    def draft_length(self) -> None:
        """None: nothing is drafted."""
        return

    def plan(self, state: State) -> Tick:
        """Advances the one lane; reads it out at full depth (AR-01)."""
        (lane,) = state.lanes
        after = lane.advanced()
        due = after.depth == self.recurrence_depth
        return Tick((lane,), (Readout(after, Purpose.VERIFY),) if due else ())

    def observe(self, state: State, tokens: tuple[int, ...]) -> tuple[State, Events]:
        """Commits the token, if one was read out, and starts its position."""
        return interpret(state, self.plan(state), tokens, self.stopping)


def generate(
    model: LoopedModel,
    prompt_ids: engine.PromptIds,
    *,
    max_new_tokens: int,
    **options: Unpack[engine.Options],
) -> engine.Output:
    """Decodes autoregressively: T recurrent calls of one row for every token.

    Args:
        model: Any looped model; its weights and settings are read, never changed.
        prompt_ids: Token ids of the prompt; at least one.
        max_new_tokens: Most tokens to commit; 0 gives an empty result.
        **options: See `reference.engine.Options`.

    Returns:
        The new tokens and all that was observed on the way.

    Raises:
        ParameterError: If an argument breaks a rule of the specification; before any computation.

    Spec: AR-01, AR-02, AR-03.
    """
    return engine.generate(model, prompt_ids, AR, max_new_tokens=max_new_tokens, **options)

"""WaveFront Decoding (WFD): new positions draft at shallow depth while older ones run on, all in one call per tick.

The positions in flight form a wavefront, oldest and deepest first. With `T = 4` and `d = 1`:

    depth 4 | 0                   the oldest lane reaches T: its readout verifies, the token is committed
          3 | . 1                 ...
          2 | . . 2
          1 | . . . 3             the youngest lane reaches d: its readout drafts the next position's token
          0 | . . . . 4           that token is injected as a new lane
              position ->

A tick advances every lane by one recurrence in one batched call. A rejected draft flushes all lanes behind it, at most
`ceil(T / d) - 1` (WFD-09); the verified token restarts the wave. Source: arXiv 2609.23033. Clauses WFD-01 to WFD-14.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Unpack

from reference import engine
from reference.models.protocol import LoopedModel
from reference.schedule import Events, Purpose, Readout, State, Tick, check_draft_depth, interpret
from reference.stopping import Stopping


@dataclass(frozen=True, slots=True)
class WFD:
    """The schedule of wavefront decoding.

    Between ticks neighbouring lanes are one apart in position and `draft_depth` apart in depth (WFD-07).

    Raises:
        ParameterError: If not `1 <= draft_depth <= recurrence_depth` (WFD-01).
    """

    name: ClassVar[str] = "wfd"

    recurrence_depth: int
    """T: recurrences of a verified position."""
    draft_depth: int
    """d: recurrences after which a position proposes its successor."""
    stopping: Stopping
    """When decoding ends."""

    def __post_init__(self) -> None:
        """Refuses parameters outside their range."""
        check_draft_depth(self.draft_depth, self.recurrence_depth, clause="WFD-01")

    @property
    def draft_length(self) -> None:
        """None: a wavefront has no rounds."""
        return

    @property
    def wavefront_width(self) -> int:
        """W = ceil(T / d): most lanes in flight at once (WFD-08)."""
        return -(-self.recurrence_depth // self.draft_depth)

    def plan(self, state: State) -> Tick:
        """Steps 1 and 2: advances every lane; the oldest is read out at T, the youngest at d (WFD-03, WFD-04).

        The oldest comes first among the readouts, since its verdict decides whether the draft still has a source. With
        d = T there is one lane and no draft (WFD-06).
        """
        oldest, youngest = state.lanes[0].advanced(), state.lanes[-1].advanced()
        readouts = []
        if oldest.depth == self.recurrence_depth:
            readouts.append(Readout(oldest, Purpose.VERIFY))
        drafts = youngest.depth == self.draft_depth < self.recurrence_depth
        if drafts and self.stopping.may_inject(youngest.position + 1):
            readouts.append(Readout(youngest, Purpose.DRAFT))
        return Tick(state.lanes, tuple(readouts))

    def observe(self, state: State, tokens: tuple[int, ...]) -> tuple[State, Events]:
        """Steps 3 to 5: verify, then draft, then stop; see `schedule.verify_oldest` and `schedule.inject_draft`.

        3. The oldest lane's token is committed. The next lane is accepted if it carries that token; if not, it and all
           behind it are flushed and the token starts a fresh lane (WFD-05).
        4. The youngest lane's draft starts a new lane, unless that lane was flushed in step 3.
        5. Decoding stops once a stop token was committed or the end was reached.
        """
        return interpret(state, self.plan(state), tokens, self.stopping)


def generate(
    model: LoopedModel,
    prompt_ids: engine.PromptIds,
    *,
    max_new_tokens: int,
    draft_depth: int,
    **options: Unpack[engine.Options],
) -> engine.Output:
    """Decodes with a wavefront; the tokens are those of AR (WFD-11), in fewer recurrent calls (WFD-13).

    Args:
        model: Any looped model; its weights and settings are read, never changed.
        prompt_ids: Token ids of the prompt; at least one.
        max_new_tokens: Most tokens to commit; 0 gives an empty result.
        draft_depth: d, from 1 to the recurrence depth; at the recurrence depth WFD is AR.
        **options: See `reference.engine.Options`.

    Returns:
        The new tokens and all that was observed on the way.

    Raises:
        ParameterError: If an argument breaks a rule of the specification; before any computation.

    Spec: WFD-01 to WFD-14.
    """
    make = partial(WFD, draft_depth=draft_depth)
    return engine.generate(model, prompt_ids, make, max_new_tokens=max_new_tokens, **options)

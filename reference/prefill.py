"""Neighbouring positions that run together, all at one depth, as a prompt does."""

from collections.abc import Iterator, Sequence

from reference.axes import Hidden, TokenIds
from reference.kv import KVCache
from reference.models.protocol import LoopedModel
from reference.provenance import Part


def start(
    model: LoopedModel, kv: KVCache, token_ids: TokenIds, positions: Sequence[int], initial_states: Hidden | None
) -> tuple[Hidden, Hidden]:
    """Runs the prelude on tokens.

    Args:
        model: Any looped model.
        kv: Its cells; a new incarnation of every position begins.
        token_ids: One for each position.
        positions: A run.
        initial_states: What `model.initial_states` gave for these positions.

    Returns:
        The states at depth 0 and the injected inputs.
    """
    kv.begin(positions)
    injected_inputs = model.prelude(token_ids, kv.rows(Part.PRELUDE, positions, [0] * len(positions)))
    return injected_inputs if initial_states is None else initial_states, injected_inputs


def climb(
    model: LoopedModel, kv: KVCache, positions: Sequence[int], states: Hidden, injected_inputs: Hidden
) -> Iterator[Hidden]:
    """Takes rows from depth 0 upwards, to the depth that `kv` holds.

    Args:
        model: Any looped model.
        kv: Its cells.
        positions: A run.
        states: Their states at depth 0.
        injected_inputs: Their injected inputs.

    Yields:
        The states at depth 1, 2, ...; a depth is computed when it is asked for.
    """
    for recurrence in range(kv.recurrence_depth):
        states = model.recur(states, injected_inputs, kv.rows(Part.RECURRENT, positions, [recurrence] * len(positions)))
        yield states

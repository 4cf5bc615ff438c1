"""Runs one sequence on one model, call by call, without a decoder: what the claims about models need."""

from collections.abc import Sequence

import torch

from reference.axes import Hidden, Logits
from reference.kv import KVCache
from reference.models import LoopedModel
from reference.provenance import Part
from reference.sharing import KVSlots, slot_map


class Running:
    """A sequence that grows by any number of positions a time."""

    def __init__(
        self,
        model: LoopedModel,
        *,
        num_positions: int,
        recurrence_depth: int | None = None,
        state_seed: int = 0,
        state_scale: float = 0.0,
        kv_slots: KVSlots = None,
        provenance: bool = True,
    ) -> None:
        """Starts empty.

        Args:
            model: The model.
            num_positions: Most positions.
            recurrence_depth: T; None is the model's own.
            state_seed: Seed of the initial state.
            state_scale: Scale of the initial state; 0, the default, is what the golden data were made with.
            kv_slots: KV slots that recurrences share.
            provenance: Whether every read of a KV cell is checked.
        """
        self._model = model
        self._depth = model.recurrence_depth if recurrence_depth is None else recurrence_depth
        self._seed, self._scale = state_seed, state_scale
        layers = model.kv_shapes.recurrent_layers
        sharing = slot_map(kv_slots, recurrence_depth=self._depth, recurrent_layers=layers)
        self.cache = KVCache(
            model.kv_shapes,
            recurrence_depth=self._depth,
            num_positions=num_positions,
            dtype=model.dtype,
            device=model.device,
            sharing=sharing if sharing.is_shared else None,
            provenance=provenance,
        )
        self.length = 0

    @torch.inference_mode()
    def extend(self, token_ids: Sequence[int], *, states: Hidden | None = None) -> tuple[Hidden, list[Hidden]]:
        """Runs tokens at the next positions, all together, to full depth.

        Args:
            token_ids: The tokens.
            states: Their states at depth 0, instead of the model's own.

        Returns:
            The prelude's output, and the states at depths 0 to T.
        """
        positions = range(self.length, self.length + len(token_ids))
        self.length = positions.stop
        self.cache.begin(positions)
        tokens = torch.tensor(token_ids, device=self._model.device)
        injected_input = self._model.prelude(tokens, self.cache.rows(Part.PRELUDE, positions, [0] * len(positions)))
        if states is None:
            states = self._model.initial_states(positions, seed=self._seed, scale=self._scale)
        if states is None:
            states = injected_input
        by_depth = [states]
        for recurrence in range(self._depth):
            rows = self.cache.rows(Part.RECURRENT, positions, [recurrence] * len(positions))
            by_depth.append(self._model.recur(by_depth[-1], injected_input, rows))
        return injected_input, by_depth

    @torch.inference_mode()
    def read_out(self, states: Hidden, *, depth: int | None = None) -> Logits:
        """Reads out the latest positions; at a position, depths must be read out in rising order.

        Args:
            states: States of the last positions.
            depth: Their depth; None is full depth.
        """
        positions = range(self.length - len(states), self.length)
        depths = [self._depth if depth is None else depth] * len(states)
        return self._model.head(self._model.coda(states, self.cache.rows(Part.CODA, positions, depths)))

    def logits(self, token_ids: Sequence[int]) -> Logits:
        """Runs tokens at the next positions and reads all of them out at full depth."""
        _, by_depth = self.extend(token_ids)
        return self.read_out(by_depth[-1])

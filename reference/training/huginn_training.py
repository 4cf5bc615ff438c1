"""Trains a tiny Huginn model: only the last recurrence is read out, gradients go through the last few."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import torch
from torch import Tensor

from reference.training.batches import Batch
from reference.training.huginn_net import (
    EMBEDDING,
    FREQUENCIES,
    HEAD,
    HuginnShape,
    huginn_parameters,
    huginn_prelude,
    huginn_readout,
    huginn_recur,
    initial_state,
)
from reference.training.losses import weighted_cross_entropy
from reference.training.optimisation import Compiled

HEAD_SHARE: Final = 0.2
"""How much of the head's gradient reaches the embedding, which is the same matrix.

As the head it is pulled the same way for all words that are equally likely, so that words of one kind become alike
before anything has learned to tell them apart. In a run with all of that gradient the words for places ended with a
mean cosine of 0.40 and were never copied.
"""

_PART: Final = "#"
"""Stands between the official name of a stacked matrix and the number of a part."""

_STACKED: Final = MappingProxyType({"attn.Wqkv.weight": 3, "mlp.fc.weight": 2})
"""How many matrices the official format stacks under each name."""


def _unstacked(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Takes stacked matrices apart; the parts keep their order."""
    apart = {}
    for name, tensor in parameters.items():
        count = next((count for end, count in _STACKED.items() if name.endswith(end)), 1)
        if count == 1:
            apart[name] = tensor
        else:
            apart |= {f"{name}{_PART}{part}": rows.clone() for part, rows in enumerate(tensor.chunk(count))}
    return apart


class HuginnTrainee:
    """A tiny Huginn model under training.

    Attributes:
        parameters: What is trained. A matrix that the official format stacks (queries, keys and values; the two
            halves of the gated MLP) is several here, since Muon makes the update of a whole matrix orthogonal: in a
            stack the strong gradient of the values would leave next to nothing for queries and keys.
        tables: Names of embedding and head.
    """

    def __init__(self, shape: HuginnShape, seed: int) -> None:
        """Draws fresh parameters.

        Args:
            shape: Sizes.
            seed: Of the parameters and of the initial states.
        """
        self._generator = torch.Generator().manual_seed(seed)
        self._shape = shape
        self.parameters: dict[str, Tensor] = _unstacked(huginn_parameters(shape, self._generator))
        self.tables: frozenset[str] = frozenset({EMBEDDING, HEAD})
        for name, tensor in self.parameters.items():
            tensor.requires_grad_(name != FREQUENCIES)

        def prelude(parameters: dict[str, Tensor], ids: Tensor) -> Tensor:
            return huginn_prelude(parameters, shape, ids)

        def recur(parameters: dict[str, Tensor], state: Tensor, injected: Tensor) -> Tensor:
            return huginn_recur(parameters, shape, state, injected)

        def readout_loss(parameters: dict[str, Tensor], state: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
            return weighted_cross_entropy(huginn_readout(parameters, shape, state), targets, weights)

        self._prelude, self._recur, self._readout_loss = Compiled(prelude), Compiled(recur), Compiled(readout_loss)

    @property
    def is_compiled(self) -> bool:
        """Whether the model runs compiled."""
        return all(part.is_compiled for part in (self._prelude, self._recur, self._readout_loss))

    def tensors(self) -> dict[str, Tensor]:
        """Gives every tensor under its official name."""
        stacked: dict[str, list[Tensor]] = {}
        for name, tensor in self.parameters.items():
            stacked.setdefault(name.split(_PART)[0], []).append(tensor)
        return {name: torch.cat(parts) if len(parts) > 1 else parts[0] for name, parts in stacked.items()}

    def loss(self, batch: Batch, num_recurrences: int) -> Tensor:
        """Gives the loss after some recurrences from a random state, or after a single one from zeros.

        A single recurrence has nothing to gain from its state; with noise in it the same loss took about a third more
        steps.

        Args:
            batch: Dialogues.
            num_recurrences: Recurrences to run.

        Returns:
            A scalar; its gradient reaches the last `backprop_depth` recurrences and the prelude.
        """
        seen = min(num_recurrences, self._shape.backprop_depth)
        parameters = self.tensors()
        # Without a cache: autocast would reuse what it cast under `no_grad`, and the gradient would be lost.
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            injected = self._prelude(parameters, batch.inputs)
            state = torch.zeros_like(injected)
            if num_recurrences > 1:
                rows, seq = batch.inputs.shape
                state = initial_state(self._shape, (rows, seq), self._generator).to(injected.dtype)
            with torch.no_grad():
                for _ in range(num_recurrences - seen):
                    state = self._recur(parameters, state, injected.detach())
            for _ in range(seen):
                state = self._recur(parameters, state, injected)
            head = HEAD_SHARE * parameters[HEAD] + (1 - HEAD_SHARE) * parameters[HEAD].detach()
            return self._readout_loss(parameters | {HEAD: head}, state, batch.targets, batch.weights)

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
    huginn_block,
    huginn_parameters,
    huginn_prelude,
    huginn_readout,
    huginn_recur,
    initial_state,
)
from reference.training.losses import weighted_cross_entropy
from reference.training.nets import Parameters
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

    def __init__(self, shape: HuginnShape, seed: int, parameters: Parameters | None = None) -> None:
        """Draws fresh parameters, or goes on with those that there are.

        Args:
            shape: Sizes.
            seed: Of the parameters and of the initial states.
            parameters: Tensors under their official names, trained in place; None draws fresh ones.
        """
        self._generator = torch.Generator().manual_seed(seed)
        self._shape = shape
        start = huginn_parameters(shape, self._generator) if parameters is None else parameters
        self.parameters: dict[str, Tensor] = _unstacked(start)
        self.tables: frozenset[str] = frozenset({EMBEDDING, HEAD})
        for name, tensor in self.parameters.items():
            tensor.requires_grad_(name != FREQUENCIES)

        # Block by block: all blocks share what is compiled for one, where a whole core would take minutes.
        self._block, self._cross_entropy = Compiled(huginn_block), Compiled(weighted_cross_entropy)

    @property
    def is_compiled(self) -> bool:
        """Whether the model runs compiled."""
        return self._block.is_compiled and self._cross_entropy.is_compiled

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
        parameters, shape, block = self.tensors(), self._shape, self._block
        # Without a cache: autocast would reuse what it cast under `no_grad`, and the gradient would be lost.
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            injected = huginn_prelude(parameters, shape, batch.inputs, run_block=block)
            state = torch.zeros_like(injected)
            if num_recurrences > 1:
                rows, seq = batch.inputs.shape
                state = initial_state(shape, (rows, seq), self._generator).to(injected.dtype)
            with torch.no_grad():
                for _ in range(num_recurrences - seen):
                    state = huginn_recur(parameters, shape, state, injected.detach(), run_block=block)
            for _ in range(seen):
                state = huginn_recur(parameters, shape, state, injected, run_block=block)
            head = HEAD_SHARE * parameters[HEAD] + (1 - HEAD_SHARE) * parameters[HEAD].detach()
            logits = huginn_readout(parameters | {HEAD: head}, shape, state, run_block=block)
            return self._cross_entropy(logits, batch.targets, batch.weights)

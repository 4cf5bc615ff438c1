"""Trains a tiny Ouro model: every loop is read out, the last one counts most."""

from random import Random
from types import MappingProxyType
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

from reference.training.batches import Batch
from reference.training.losses import weighted_cross_entropy
from reference.training.optimisation import Compiled
from reference.training.ouro_net import EMBEDDING, GATE_BIAS, GATE_WEIGHT, HEAD, OuroShape, ouro_loop, ouro_parameters

DEPTH_WEIGHTS: Final = MappingProxyType({2: (0.1, 0.9), 4: (0.05, 0.1, 0.25, 0.6)})
"""Loss weight of the readout after each loop, by the number of loops that are run.

The early ones are small: a shallow readout should become as good as the depth allows without the model giving up
depth for it.
"""


class OuroTrainee:
    """A tiny Ouro model under training.

    Attributes:
        parameters: Every tensor under its official name; the exit gate is left alone (see `gate`).
        tables: Names of embedding and head.
    """

    def __init__(self, shape: OuroShape, seed: int) -> None:
        """Draws fresh parameters.

        Args:
            shape: Sizes.
            seed: Of the parameters and of the choice of early readouts.
        """
        self.parameters: dict[str, Tensor] = ouro_parameters(shape, torch.Generator().manual_seed(seed))
        self.tables: frozenset[str] = frozenset({EMBEDDING, HEAD})
        self._random = Random(seed)  # noqa: S311 - not for secrets
        for name, tensor in self.parameters.items():
            tensor.requires_grad_(name not in {GATE_WEIGHT, GATE_BIAS})

        def loop(parameters: dict[str, Tensor], state: Tensor, positions: Tensor) -> Tensor:
            return ouro_loop(parameters, shape, state, positions)

        def readout_loss(head: Tensor, state: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
            return weighted_cross_entropy(F.linear(state, head), targets, weights)

        self._loop, self._readout_loss = Compiled(loop), Compiled(readout_loss)

    @property
    def is_compiled(self) -> bool:
        """Whether the model runs compiled."""
        return self._loop.is_compiled and self._readout_loss.is_compiled

    def tensors(self) -> dict[str, Tensor]:
        """Gives every tensor under its official name."""
        return self.parameters

    def loss(self, batch: Batch, num_recurrences: int) -> Tensor:
        """Gives the loss of the last loop and of one earlier loop, drawn in proportion to its weight.

        On average this is the sum over all loops by `DEPTH_WEIGHTS`; a head costs as much as half a layer, so only
        one early one is read out a step.

        Args:
            batch: Dialogues.
            num_recurrences: Loops to run, a key of `DEPTH_WEIGHTS`.

        Returns:
            A scalar.
        """
        *early_weights, last_weight = DEPTH_WEIGHTS[num_recurrences]
        chosen = self._random.choices(range(len(early_weights)), early_weights)[0]
        head = self.parameters[HEAD]
        # Without a cache of casts, for the same numbers whether compiled or not.
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            state = F.embedding(batch.inputs, self.parameters[EMBEDDING])
            positions = torch.arange(batch.inputs.shape[1])[None]
            states = []
            for _ in range(num_recurrences):
                state = self._loop(self.parameters, state, positions)
                states.append(state)
            early = self._readout_loss(head, states[chosen], batch.targets, batch.weights)
            last = self._readout_loss(head, states[-1], batch.targets, batch.weights)
            return sum(early_weights) * early + last_weight * last

"""Gives both families one face for evaluation: logits at several depths, of a call or along a memory."""

from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

from reference.training.huginn_net import HuginnShape, huginn_prelude, huginn_readout, huginn_recur, initial_state
from reference.training.memory import MOST_POSITIONS, Memory
from reference.training.nets import Parameters
from reference.training.ouro_net import HEAD, OuroShape, ouro_states


@runtime_checkable
class DepthReader(Protocol):
    """A model whose readouts at several depths can be compared."""

    depths: tuple[int, ...]
    """Depths that are read out, rising; the last one is the recurrence depth T."""

    def logits(self, ids: Tensor, memory: Memory | None) -> list[Tensor]:
        """Gives the logits at each depth.

        Args:
            ids: Tokens, [batch, seq].
            memory: Earlier keys and values; None when `ids` starts at position 0.

        Returns:
            One tensor for each depth, [batch, seq, vocab].
        """


class OuroReader:
    """Reads a tiny Ouro model out after every loop.

    Attributes:
        depths: 1 to T.
    """

    def __init__(self, parameters: Parameters, shape: OuroShape) -> None:
        """Takes a model.

        Args:
            parameters: Tensors under their official names.
            shape: Sizes.
        """
        self.depths: tuple[int, ...] = tuple(range(1, shape.num_loops + 1))
        self._parameters = parameters
        self._shape = shape

    def logits(self, ids: Tensor, memory: Memory | None) -> list[Tensor]:
        """Gives the logits after each loop; see `DepthReader.logits`."""
        states = ouro_states(self._parameters, self._shape, ids, memory)
        return [F.linear(state, self._parameters[HEAD]) for state in states]


class HuginnReader:
    """Reads a tiny Huginn model out after some of its recurrences.

    With a memory, a readout at depth d sees the coda entries of earlier positions as depth T left them, which is what
    a draft sees in autoregressive decoding: depths rise within a call and the last one writes last.

    Attributes:
        depths: 1 to 4, then wider apart, up to T.
    """

    def __init__(self, parameters: Parameters, shape: HuginnShape, *, seed: int = 0) -> None:
        """Takes a model.

        Args:
            parameters: Tensors under their official names.
            shape: Sizes.
            seed: Of the initial states; each is a function of the seed and the position.
        """
        self.depths: tuple[int, ...] = tuple(d for d in (1, 2, 3, 4, 6, 8, 12, 16) if d < shape.recurrence_depth)
        self.depths += (shape.recurrence_depth,)
        self._parameters = parameters
        self._shape = shape
        self._states = initial_state(shape, (1, MOST_POSITIONS), torch.Generator().manual_seed(seed))[0]

    def logits(self, ids: Tensor, memory: Memory | None) -> list[Tensor]:
        """Gives the logits after some recurrences; see `DepthReader.logits`."""
        positions = torch.arange(ids.shape[1]).expand_as(ids) if memory is None else memory.positions
        injected = huginn_prelude(self._parameters, self._shape, ids, memory)
        state = self._states[positions]
        read = []
        for recurrence in range(self._shape.recurrence_depth):
            state = huginn_recur(self._parameters, self._shape, state, injected, recurrence=recurrence, memory=memory)
            if recurrence + 1 in self.depths:
                read.append(huginn_readout(self._parameters, self._shape, state, memory))
        return read

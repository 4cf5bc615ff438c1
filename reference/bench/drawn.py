"""Random weights for benchmarks: speed hangs on the shapes of tensors, not on what is in them."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

_SEED = 0
_SPREAD = 0.02  # small enough that states and logits stay finite in every type


class DrawnTensors(Mapping[str, Tensor]):
    """Tensors of given shapes, each drawn when it is read, so that no more than one is held beside the model."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], *, dtype: torch.dtype, device: torch.device) -> None:
        """Draws nothing yet.

        Args:
            shapes: Shape of every tensor by its name, as `tensor_shapes` of a configuration gives them.
            dtype: Type of the tensors.
            device: Where they are drawn.
        """
        self._shapes, self._dtype, self._device = shapes, dtype, device
        self._generator = torch.Generator(device).manual_seed(_SEED)

    def __getitem__(self, name: str) -> Tensor:
        """Draws a tensor; what has one axis is a norm's factor or a bias, and lies around 1."""
        shape = self._shapes[name]
        drawn = torch.randn(shape, generator=self._generator, dtype=self._dtype, device=self._device)
        return drawn * _SPREAD + 1 if len(shape) == 1 else drawn * _SPREAD

    def __iter__(self) -> Iterator[str]:
        """Gives the names."""
        return iter(self._shapes)

    def __len__(self) -> int:
        """Counts the tensors."""
        return len(self._shapes)

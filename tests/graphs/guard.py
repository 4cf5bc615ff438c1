"""A watch over one execution of a step: what no CUDA graph can hold raises, everything else is written down.

A graph replays the kernels of one execution with the shapes, addresses and host numbers of that execution. So a step is
safe to capture if it asks the host for nothing, and if two executions on different data are the same list of
operations, with the same shapes and the same numbers in it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map


class NotCapturableError(AssertionError):
    """The step did what a CUDA graph cannot hold."""


HOST_READS: Final = frozenset({"_local_scalar_dense", "equal", "is_nonzero", "_linalg_check_errors"})
"""Operations whose result is a number on the host."""
SIZES_FROM_DATA: Final = frozenset(
    {"nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "bincount", "argwhere"}
)
"""Operations whose result has a size that depends on data."""
FROM_THE_HOST: Final = frozenset({"lift_fresh", "lift_fresh_copy", "_pin_memory", "pin_memory", "set_"})
"""Operations that bring fresh data from the host; `torch.tensor([...])` is one."""
INDEXING: Final = frozenset({"index", "index_put", "index_put_", "_index_put_impl_"})
"""Operations that turn a mask among their indices into positions, as many as the data say."""


class CaptureGuard(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types for its modes
    """Raises on what cannot be captured, and keeps the list of operations."""

    def __init__(self, device: torch.device) -> None:
        """Starts with an empty list.

        Args:
            device: Where all tensors must be. On the meta device this shows that nothing is copied from the host.
        """
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.device = device
        self.operations: list[str] = []

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Looks at one operation."""
        del types
        name = func.overloadpacket.__name__
        if name in HOST_READS | SIZES_FROM_DATA | FROM_THE_HOST or (name == "repeat_interleave" and len(args) == 1):
            raise NotCapturableError(str(func))
        indices = tree_flatten(args[1])[0] if name in INDEXING else []
        if any(isinstance(index, Tensor) and index.dtype in {torch.bool, torch.uint8} for index in indices):
            message = f"{func} with a mask"
            raise NotCapturableError(message)
        result = func(*args, **(kwargs or {}))
        for value in tree_flatten((args, kwargs, result))[0]:
            if isinstance(value, Tensor) and value.device.type != self.device.type:
                message = f"{func} with a tensor on {value.device}"
                raise NotCapturableError(message)
        self.operations.append(f"{func} {tree_map(_described, (args, kwargs or {}, result))}")
        return result


def _described(value: object) -> str:
    """Describes an argument: a number by its value, a tensor by all but its values."""
    if isinstance(value, Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.stride()}+{value.storage_offset()}"
    return repr(value)


def operations_of(step: Callable[[], object], device: torch.device) -> list[str]:
    """Runs a step once under guard."""
    with torch.no_grad(), CaptureGuard(device) as guard:
        step()
    operations: list[str] = guard.operations
    return operations

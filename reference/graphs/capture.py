"""Captures a step into a CUDA graph. On other devices the step itself is the thing to call."""

from collections.abc import Callable
from typing import Final

import torch

_WARM_UPS: Final = 3
"""Executions before a capture: libraries allocate their workspaces and choose their kernels in the first ones."""


def captured(step: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """Gives a call that does what `step` does; on a CUDA device by replaying one graph.

    Nothing may be in flight: a warm-up is a real execution, which without lanes writes to scratch cells alone.

    Args:
        step: Works on buffers at fixed addresses and asks the host for nothing.
        device: Where the buffers live.
    """
    if device.type != "cuda":
        return torch.no_grad()(step)
    with torch.cuda.device(device), torch.no_grad():
        # Warm-up belongs on a stream of its own (see "CUDA Graphs" in PyTorch's notes on CUDA semantics).
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch has no types for it
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    return graph.replay

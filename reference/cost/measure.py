"""One's own machine: its bandwidth, its peak and what an operation costs, by three small measurements.

What is measured is what decoding does: a matrix larger than any cache times one row (bandwidth), times many rows
(peak), and an operation on almost nothing (launch). The best of many repeats counts, since all that disturbs a
measurement makes it slower.
"""

import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import torch

from reference.cost.machines import Machine, Overheads
from reference.errors import ParameterError

DTYPES: Final = MappingProxyType({"fp32": torch.float32, "bf16": torch.bfloat16})
"""Types whose peak is measured."""

_INNER: Final = 8192
_ROWS: Final = 256
_TINY: Final = 200
_SHARES: Final = 5
"""Measurements that share the time: two for each type, and launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a measurement may take."""

    seconds: float = 20.0
    """About how long, all in all."""
    matrix_bytes: int = 2**30
    """Size of the matrix; it must be larger than the last cache."""


def measure(effort: Effort, *, threads: int) -> Machine:
    """Measures the CPU of this machine.

    Args:
        effort: How long and how large.
        threads: Threads of the tensor library, which are left so.
    """
    torch.set_num_threads(threads)
    budget = effort.seconds / _SHARES
    bandwidths, peaks = {}, {}
    for name, dtype in DTYPES.items():
        num_columns = effort.matrix_bytes // (_INNER * dtype.itemsize)
        matrix = torch.ones(_INNER, num_columns, dtype=dtype)
        row, rows = torch.ones(1, _INNER, dtype=dtype), torch.ones(_ROWS, _INNER, dtype=dtype)
        bandwidths[name] = matrix.nbytes / _best(partial(torch.matmul, row, matrix), budget)
        narrow = matrix[:, : max(1, num_columns // 16)].contiguous()
        operations = 2 * _ROWS * narrow.shape[0] * narrow.shape[1]
        peaks[name] = operations / _best(partial(torch.matmul, rows, narrow), budget)
        del matrix, narrow
    tiny = torch.ones(1, 8)
    launch = _best(lambda: [tiny * tiny for _ in range(_TINY)], budget) / _TINY
    return Machine(
        name=f"{_processor()}, {threads} thread{'s' * (threads != 1)}",
        bandwidth_bytes_per_second=max(bandwidths.values()),
        memory_bytes=_memory_bytes(),
        peak_flops_per_second=MappingProxyType(peaks),
        power_watts=None,
        source=f"measured with torch {torch.__version__}",
        overheads=Overheads(
            bandwidth_efficiency=1.0,
            compute_efficiency=1.0,
            kernel_seconds=0.0,
            launch_seconds=launch,
            is_asynchronous=False,
            origin="measured: bandwidth and peak are what was reached",
        ),
    )


def to_json(machine: Machine) -> str:
    """Writes a machine down."""
    return json.dumps(asdict(_plain(machine)), indent=2) + "\n"


def from_json(path: Path) -> Machine:
    """Reads a machine that was written down.

    Raises:
        ParameterError: If the file does not hold one.
        OSError: If it cannot be read.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        overheads = Overheads(**values.pop("overheads"))
        peaks = MappingProxyType(dict(values.pop("peak_flops_per_second")))
        return Machine(overheads=overheads, peak_flops_per_second=peaks, **values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ParameterError(f"{path} is not a machine as `wfd cost measure` writes it: {error}") from error


def _plain(machine: Machine) -> Machine:
    """Gives the machine with its peaks in a dictionary, which can be copied and written."""
    return Machine(
        name=machine.name,
        bandwidth_bytes_per_second=machine.bandwidth_bytes_per_second,
        memory_bytes=machine.memory_bytes,
        peak_flops_per_second=dict(machine.peak_flops_per_second),
        power_watts=machine.power_watts,
        source=machine.source,
        overheads=machine.overheads,
    )


def best_seconds(run: Callable[[], object], *, budget_seconds: float) -> float:
    """Runs something again and again and gives its shortest time.

    Args:
        run: What to time; it runs twice before anything counts.
        budget_seconds: How long to go on.
    """
    return _best(run, budget_seconds)


@torch.inference_mode()
def _best(run: Callable[[], object], budget_seconds: float) -> float:
    run()
    run()
    best, end = float("inf"), time.perf_counter() + budget_seconds
    while True:
        begun = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - begun)
        if now >= end:
            return best


def _processor() -> str:
    """Names the processor as well as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def _memory_bytes() -> float:
    """Gives the machine's memory; where the system does not tell, 16 GiB are assumed."""
    info = Path("/proc/meminfo")
    if info.exists():
        return 1024.0 * int(info.read_text(encoding="utf-8").split()[1])
    return 16 * 2.0**30

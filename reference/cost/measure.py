"""One's own machine, by small measurements: what its memory, its arithmetic and its launches give to a decoder.

What is measured is what decoding does, on shapes of no model: rows times matrices larger than any cache, for several
numbers of rows; attention of rows over cells; a product with many rows (the peak); and an operation on almost nothing
(a launch). All measurements take turns and the median of each counts, so that a disturbance meets all of them alike
and ratios survive it.
"""

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import torch
from torch import Tensor

from reference.cost.machines import FewRows, Machine, Overheads
from reference.errors import ParameterError

DTYPES: Final = MappingProxyType({"fp32": torch.float32, "bf16": torch.bfloat16})
"""Types that are measured."""
CPU: Final = torch.device("cpu")
"""Where is measured unless something else is asked for."""
WEIGHT_ROWS: Final = (1, 2, 4, 8, 16, 32)
"""Numbers of rows of a product with weights."""
CELL_ROWS: Final = (1, 4, 16)
"""Numbers of rows that attend to the same cells."""

_WIDTHS: Final = (4096, 12_288)
"""A state and what it is widened to; the matrices go from one to the other and back."""
_SLOTS: Final = 16
_HEADS: Final = 32
_HEAD_DIM: Final = 128
_CELLS: Final = 1024
_FREE: Final = 32
_PEAK_ROWS: Final = MappingProxyType({"cpu": 256, "cuda": 4096})
_TINY: Final = 200
_LEAST_ROUNDS: Final = 5

Key = TypeVar("Key")


class Kind(Enum):
    """What is measured."""

    WEIGHTS = "weights"
    """Bytes of matrices that a product with few rows gets through."""
    CELLS = "cells"
    """Bytes of KV cells that attention of few rows gets through."""
    PEAK = "peak"
    """Operations of a product with many rows."""
    LAUNCH = "launch"
    """Operations on almost nothing, as the host launches them."""
    KERNEL = "kernel"
    """Operations on almost nothing, as the device runs them when they are launched all at once."""


What: TypeAlias = tuple[Kind, str, int]
"""A measurement: its kind, the type of numbers, and rows."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Something to time."""

    run: Callable[[], object]
    """Does it."""
    amount: float = 1.0
    """How much it does, in the unit of its kind."""
    is_for_host: bool = False
    """Whether the time that the host takes is wanted, not the device's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a measurement may take."""

    seconds: float = 20.0
    """About how long, all in all."""
    matrix_bytes: int = 2**30
    """Size of all matrices of fp32 together. Those of bf16 and the cells are half as large; that must exceed the last
    cache."""


def measure(effort: Effort, *, threads: int, device: torch.device = CPU) -> Machine:
    """Measures this machine.

    On a GPU, times are those between events on the device; that path has not been run on one yet.

    Args:
        effort: How long and how large.
        threads: Threads of the tensor library, which are left so; a GPU does not mind.
        device: A CPU or a CUDA device.
    """
    torch.set_num_threads(threads)
    rates = {}
    for _, probes in probes_by_dtype(effort, device):
        rates.update(rates_of(probes, medians(probes, seconds=effort.seconds / len(DTYPES), device=device)))
    return machine_of(rates, threads=threads, device=device)


def device_of(name: str) -> torch.device:
    """Gives a device by the name that the command line takes.

    Raises:
        ParameterError: If it is not there.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ParameterError("device='cuda': no CUDA device is available")
    return torch.device(name)


@torch.inference_mode()
def medians(probes: Mapping[Key, Probe], *, seconds: float, device: torch.device) -> dict[Key, float]:
    """Runs probes in turn, again and again, and gives the median seconds of each.

    Args:
        probes: What to time; each runs once before anything counts.
        seconds: How long to go on, but for at least five rounds.
        device: Where it runs.
    """
    end = time.perf_counter() + seconds
    for probe in probes.values():
        probe.run()
    times: dict[Key, list[float]] = {key: [] for key in probes}
    rounds = 0
    while rounds < _LEAST_ROUNDS or time.perf_counter() < end:
        for key, probe in probes.items():
            times[key].append(_seconds(probe, device))
        rounds += 1
    return {key: median(taken) for key, taken in times.items()}


def probes_by_dtype(effort: Effort, device: torch.device) -> Iterator[tuple[str, dict[What, Probe]]]:
    """Makes all that is measured, one type of numbers after the other: matrices of two types may be too many at once.

    Launches, which have no type, come with the first.
    """
    launches = launch_probes(device)
    for name in DTYPES:
        yield name, {**dtype_probes(name, effort, device), **launches}
        launches = {}


def dtype_probes(name: str, effort: Effort, device: torch.device) -> dict[What, Probe]:
    """Makes what is measured of a type of numbers."""
    dtype = DTYPES[name]
    narrow, wide = _WIDTHS
    # Small efforts, for tests, shrink the matrices; otherwise there are more of them.
    shrink = max(1, narrow * wide * 8 // effort.matrix_bytes)
    shapes = ((narrow, wide // shrink), (wide // shrink, narrow))
    num_pairs = max(1, effort.matrix_bytes // (sum(fan_in * fan_out for fan_in, fan_out in shapes) * 4))
    matrices = [torch.ones(shape, dtype=dtype, device=device) for shape in shapes * num_pairs]
    matrix_bytes = float(sum(matrix.nbytes for matrix in matrices))
    probes = {}
    for rows in WEIGHT_ROWS:
        states = {shape[0]: torch.ones(rows, shape[0], dtype=dtype, device=device) for shape in shapes}
        probes[Kind.WEIGHTS, name, rows] = Probe(partial(_multiply, states, matrices), matrix_bytes)
    num_cells = max(16, _CELLS // shrink)
    slot_bytes = 2 * _HEADS * _HEAD_DIM * num_cells * dtype.itemsize
    num_slots = max(1, effort.matrix_bytes // 2 // slot_bytes)
    # A wavefront attends to all its slots in one product, and a cache has room for more positions than are there.
    num_products = max(1, num_slots // _SLOTS)
    batch = min(num_slots, _SLOTS) * _HEADS
    keys = torch.zeros(num_products, batch, _HEAD_DIM, num_cells + _FREE, dtype=dtype, device=device)[..., :num_cells]
    values = torch.zeros(num_products, batch, num_cells + _FREE, _HEAD_DIM, dtype=dtype, device=device)
    values = values[:, :, :num_cells]
    for rows in CELL_ROWS:
        queries = torch.ones(batch, rows, _HEAD_DIM, dtype=dtype, device=device)
        run = partial(_attend, queries, keys, values)
        probes[Kind.CELLS, name, rows] = Probe(run, float(keys.nbytes + values.nbytes))
    many = torch.ones(_PEAK_ROWS[device.type], narrow, dtype=dtype, device=device)
    operations = 2.0 * many.shape[0] * matrices[0].shape[0] * matrices[0].shape[1]
    probes[Kind.PEAK, name, many.shape[0]] = Probe(partial(torch.matmul, many, matrices[0]), operations)
    return probes


def launch_probes(device: torch.device) -> dict[What, Probe]:
    """Makes what is measured of operations on almost nothing."""
    tiny = torch.ones(1, 8, device=device)

    def run() -> None:
        for _ in range(_TINY):
            tiny * tiny

    probes: dict[What, Probe] = {(Kind.LAUNCH, "fp32", 1): Probe(run, float(_TINY), is_for_host=True)}
    if device.type == "cuda":
        run()  # what is captured must have run before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        probes[Kind.KERNEL, "fp32", 1] = Probe(graph.replay, float(_TINY))
    return probes


def rates_of(probes: Mapping[What, Probe], seconds: Mapping[What, float]) -> dict[What, float]:
    """Gives how much each probe did in a second."""
    return {key: probe.amount / seconds[key] for key, probe in probes.items()}


def machine_of(rates: Mapping[What, float], *, threads: int, device: torch.device) -> Machine:
    """Makes a machine of what was measured."""

    def by_rows(wanted: Kind, name: str) -> Mapping[int, float]:
        return MappingProxyType(
            {rows: rate for (kind, dtype, rows), rate in rates.items() if (kind, dtype) == (wanted, name)}
        )

    few_rows = {
        name: FewRows(
            weight_bytes_per_second=by_rows(Kind.WEIGHTS, name), cell_bytes_per_second=by_rows(Kind.CELLS, name)
        )
        for name in DTYPES
    }
    is_cpu = device.type == "cpu"
    streamed = (rate for (kind, _, _), rate in rates.items() if kind in {Kind.WEIGHTS, Kind.CELLS})
    return Machine(
        name=f"{_processor()}, {threads} thread{'s' * (threads != 1)}" if is_cpu else _gpu_name(device),
        bandwidth_bytes_per_second=max(streamed),
        memory_bytes=_memory_bytes() if is_cpu else _gpu_bytes(device),
        peak_flops_per_second=MappingProxyType({name: max(by_rows(Kind.PEAK, name).values()) for name in DTYPES}),
        power_watts=None,
        source=f"measured with torch {torch.__version__}",
        overheads=Overheads(
            bandwidth_efficiency=1.0,
            compute_efficiency=1.0,
            kernel_seconds=0.0 if is_cpu else 1 / rates[Kind.KERNEL, "fp32", 1],
            launch_seconds=1 / rates[Kind.LAUNCH, "fp32", 1],
            is_asynchronous=not is_cpu,
            origin="measured: bandwidth and peak are what was reached",
        ),
        few_rows=MappingProxyType(few_rows),
    )


def to_json(machine: Machine) -> str:
    """Writes a machine down."""
    few_rows = {
        name: replace(
            one,
            weight_bytes_per_second=dict(one.weight_bytes_per_second),
            cell_bytes_per_second=dict(one.cell_bytes_per_second),
        )
        for name, one in machine.few_rows.items()
    }
    # Dictionaries, since read-only mappings can be neither copied nor written.
    plain = replace(machine, peak_flops_per_second=dict(machine.peak_flops_per_second), few_rows=few_rows)
    return json.dumps(asdict(plain), indent=2) + "\n"


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
        few_rows = {
            name: FewRows(**{field: _by_rows(rates) for field, rates in fields.items()})
            for name, fields in values.pop("few_rows", {}).items()
        }
        return Machine(overheads=overheads, peak_flops_per_second=peaks, few_rows=MappingProxyType(few_rows), **values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ParameterError(f"{path} is not a machine as `wfd cost measure` writes it: {error}") from error


def _by_rows(rates: dict[str, float]) -> Mapping[int, float]:
    return MappingProxyType({int(rows): rate for rows, rate in rates.items()})


def _multiply(states: Mapping[int, Tensor], matrices: list[Tensor]) -> None:
    for matrix in matrices:
        states[matrix.shape[0]] @ matrix


def _attend(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    for some_keys, some_values in zip(keys.unbind(), values.unbind(), strict=True):
        torch.bmm(torch.softmax(torch.bmm(queries, some_keys), dim=-1), some_values)


def _seconds(probe: Probe, device: torch.device) -> float:
    """Times a run: between events on a GPU, on the host elsewhere and where that is wanted.

    A single thread's time is that of its processor, in which other programs' turns do not count.
    """
    if device.type == "cuda" and not probe.is_for_host:
        begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch does not say
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch does not say
        begin.record()
        probe.run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # else the host might wait for room in the queue
    clock = time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    begun = clock()
    probe.run()
    return clock() - begun


def _processor() -> str:
    """Names the processor as well as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def _gpu_name(device: torch.device) -> str:
    return str(torch.cuda.get_device_name(device))


def _gpu_bytes(device: torch.device) -> float:
    return float(torch.cuda.get_device_properties(device).total_memory)


def _memory_bytes() -> float:
    """Gives the machine's memory; where the system does not tell, 16 GiB are assumed."""
    info = Path("/proc/meminfo")
    if info.exists():
        return 1024.0 * int(info.read_text(encoding="utf-8").split()[1])
    return 16 * 2.0**30

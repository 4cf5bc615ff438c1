"""Predicted against measured: recurrent calls of 1 to 16 rows on this machine.

The model is one core layer of Huginn-3.5B with its adapter, at random: 1.8 GB in fp32, larger than any cache, so that
weights really come from memory. Rows are a wavefront with slots of their own, or share one slot. The prediction knows
what `reference.cost.measure` measures, on matrices and cells of other shapes, and the kernels of our own code; nothing
is fitted to the calls. Measurements and calls take turns, so that they meet the same disturbances.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import torch

from reference.bench.drawn import DrawnTensors
from reference.bench.shapes import shape_of
from reference.cost.latency import REFERENCE, Setting
from reference.cost.machines import Machine
from reference.cost.measure import (
    CPU,
    DTYPES,
    Effort,
    Probe,
    What,
    machine_of,
    medians,
    probes_by_dtype,
    rates_of,
)
from reference.cost.shapes import Part as ModelPart
from reference.cost.work import precision_of
from reference.kv import KVCache
from reference.models import Huginn, HuginnConfig
from reference.provenance import Part

ROWS: Final = (1, 2, 4, 8, 16)
"""Numbers of rows."""
LAYER: Final = HuginnConfig(
    vocab_size=512,
    hidden_size=5280,
    intermediate_size=17_920,
    num_heads=55,
    prelude_layers=0,
    core_layers=1,
    coda_layers=0,
    context_length=4096,
    rope_base=50_000.0,
    eps=1e-6,
    recurrence_depth=16,
)
"""One core layer of Huginn-3.5B."""

_Call: TypeAlias = tuple[int, bool]
"""Rows, and whether they share a slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One kind of call."""

    dtype: str
    """Type of weights, states and cells."""
    rows: int
    """Rows of the call."""
    is_shared: bool
    """Whether all rows read one slot; otherwise each reads its own."""
    measured_seconds: float
    """Median time."""
    predicted_seconds: float
    """What the model says."""
    roofline_seconds: float
    """What it says without the measured rates at few rows: bandwidth, peak and launches alone."""

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_seconds / self.measured_seconds - 1

    @property
    def roofline_error(self) -> float:
        """The same without the rates at few rows."""
        return self.roofline_seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Everything that was measured."""

    machine: str
    """The machine in words."""
    context: int
    """Cells that the oldest row attends to."""
    bandwidth_bytes_per_second: float
    """The fastest of the measured streams."""
    peak_flops_per_second: Mapping[str, float]
    """Measured with a matrix and many rows, by type."""
    launch_seconds: float
    """Measured with an operation on almost nothing."""
    weight_bytes_per_second: Mapping[str, Mapping[str, float]]
    """Measured with matrices and few rows, by type and rows."""
    cell_bytes_per_second: Mapping[str, Mapping[str, float]]
    """Measured with cells and few rows, by type and rows."""
    calls: tuple[Measured, ...]
    """Predicted and measured calls."""


def calibrate(
    effort: Effort,
    *,
    threads: int,
    config: HuginnConfig = LAYER,
    context: int = 512,
    rows: Sequence[int] = ROWS,
) -> Calibration:
    """Times recurrent calls and predicts them.

    Args:
        effort: How long, for everything together, and how large the matrices are.
        threads: Threads of the tensor library, which are left so.
        config: Sizes of the model.
        context: Cells that the oldest row attends to.
        rows: Numbers of rows, at most the model's recurrences.
    """
    torch.set_num_threads(threads)
    kinds = [(number, shares) for number in rows for shares in (False, True) if number > 1 or not shares]
    rates: dict[What, float] = {}
    seconds: dict[str, dict[_Call, float]] = {}
    for name, probes in probes_by_dtype(effort, CPU):
        dtype = DTYPES[name]
        model = Huginn(config, DrawnTensors(config.tensor_shapes(), dtype=dtype, device=CPU), dtype=dtype, device=CPU)
        calls = {(number, shares): _probe(model, number, context, is_shared=shares) for number, shares in kinds}
        together = [*probes.values(), *calls.values()]
        taken = medians(dict(enumerate(together)), seconds=effort.seconds / len(DTYPES), device=CPU)
        rates.update(rates_of(probes, dict(zip(probes, taken.values(), strict=False))))
        seconds[name] = dict(zip(calls, list(taken.values())[len(probes) :], strict=True))
    mine = machine_of(rates, threads=threads, device=CPU)
    return Calibration(
        machine=f"{mine.name}; {mine.source}",
        context=context,
        bandwidth_bytes_per_second=mine.bandwidth_bytes_per_second,
        peak_flops_per_second=dict(mine.peak_flops_per_second),
        launch_seconds=mine.overheads.launch_seconds,
        weight_bytes_per_second={name: _named(one.weight_bytes_per_second) for name, one in mine.few_rows.items()},
        cell_bytes_per_second={name: _named(one.cell_bytes_per_second) for name, one in mine.few_rows.items()},
        calls=tuple(
            Measured(
                dtype=name,
                rows=number,
                is_shared=shares,
                measured_seconds=time,
                predicted_seconds=_predicted(mine, config, name, context, number, is_shared=shares),
                roofline_seconds=_predicted(
                    replace(mine, few_rows=MappingProxyType({})), config, name, context, number, is_shared=shares
                ),
            )
            for name, times in seconds.items()
            for (number, shares), time in times.items()
        ),
    )


def _named(rates: Mapping[int, float]) -> dict[str, float]:
    return {str(rows): rate for rows, rate in rates.items()}


def _predicted(
    machine: Machine, config: HuginnConfig, dtype: str, context: int, number: int, *, is_shared: bool
) -> float:
    setting = Setting(
        shape=shape_of(config, name="one layer"),
        machine=machine,
        precision=precision_of(dtype),
        software=REFERENCE,
        context=context + number - 1,
    )
    return setting.call(ModelPart.RECURRENT, (1.0, float(number)) if is_shared else (float(number), 1.0)).total


def write(calibration: Calibration, path: Path) -> None:
    """Writes a calibration down, for the page that shows it."""
    path.write_text(json.dumps(asdict(calibration), indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> Calibration:
    """Reads a calibration that was written down."""
    values = json.loads(path.read_text(encoding="utf-8"))
    calls = tuple(Measured(**call) for call in values.pop("calls"))
    return Calibration(calls=calls, **values)


def _probe(model: Huginn, number: int, context: int, *, is_shared: bool) -> Probe:
    """Makes a call of `number` rows, the oldest at a context of `context`."""
    cells = KVCache(
        model.kv_shapes,
        recurrence_depth=model.recurrence_depth,
        num_positions=context + number,
        dtype=model.dtype,
        device=model.device,
    )
    positions = range(context - 1, context - 1 + number)
    depths = [0 if is_shared else number - 1 - lane for lane in range(number)]
    states = torch.ones(number, model.hidden_size, dtype=model.dtype)
    return Probe(lambda: model.recur(states, states, cells.rows(Part.RECURRENT, positions, depths)))

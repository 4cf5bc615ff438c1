"""Predicted against measured: recurrent calls of 1 to 16 rows on this machine.

The model is one core layer of Huginn-3.5B with its adapter, at random: 1.8 GB in fp32, larger than any cache, so that
weights really come from memory. Rows are a wavefront with slots of their own, or share one slot. The prediction knows
three measured figures of the machine (`reference.cost.measure`) and the kernels of our own code; nothing is fitted to
the calls.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import torch

from reference.bench.drawn import DrawnTensors
from reference.bench.shapes import shape_of
from reference.cost.latency import REFERENCE, Setting
from reference.cost.machines import Machine
from reference.cost.measure import DTYPES, best_seconds
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
    """Shortest time seen."""
    predicted_seconds: float
    """What the model says."""

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Everything that was measured."""

    machine: str
    """The machine in words."""
    context: int
    """Cells that the oldest row attends to."""
    bandwidth_bytes_per_second: float
    """Measured with a matrix and one row."""
    peak_flops_per_second: Mapping[str, float]
    """Measured with a matrix and many rows, by type."""
    launch_seconds: float
    """Measured with an operation on almost nothing."""
    calls: tuple[Measured, ...]
    """Predicted and measured calls."""


def calibrate(
    machine: Machine,
    *,
    config: HuginnConfig = LAYER,
    context: int = 512,
    rows: Sequence[int] = ROWS,
    seconds_per_call: float = 2.0,
) -> Calibration:
    """Times recurrent calls and predicts them.

    Args:
        machine: This machine, as `measure` saw it.
        config: Sizes of the model.
        context: Cells that the oldest row attends to.
        rows: Numbers of rows, at most the model's recurrences.
        seconds_per_call: How long each kind of call is repeated.
    """
    calls, cpu = [], torch.device("cpu")
    for name, dtype in DTYPES.items():
        model = Huginn(config, DrawnTensors(config.tensor_shapes(), dtype=dtype, device=cpu), dtype=dtype, device=cpu)
        setting = Setting(
            shape=shape_of(config, name="one layer"),
            machine=machine,
            precision=precision_of(name),
            software=REFERENCE,
            context=context,
        )
        for number, is_shared in ((number, is_shared) for number in rows for is_shared in (False, True)):
            if number == 1 and is_shared:
                continue  # the same call
            groups = (1.0, float(number)) if is_shared else (float(number), 1.0)
            predicted = replace(setting, context=context + number - 1).call(ModelPart.RECURRENT, groups)
            calls.append(
                Measured(
                    dtype=name,
                    rows=number,
                    is_shared=is_shared,
                    measured_seconds=_time(model, number, context, seconds_per_call, is_shared=is_shared),
                    predicted_seconds=predicted.total,
                )
            )
        del model
    return Calibration(
        machine=f"{machine.name}; {machine.source}",
        context=context,
        bandwidth_bytes_per_second=machine.bandwidth_bytes_per_second,
        peak_flops_per_second=dict(machine.peak_flops_per_second),
        launch_seconds=machine.overheads.launch_seconds,
        calls=tuple(calls),
    )


def write(calibration: Calibration, path: Path) -> None:
    """Writes a calibration down, for the page that shows it."""
    path.write_text(json.dumps(asdict(calibration), indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> Calibration:
    """Reads a calibration that was written down."""
    values = json.loads(path.read_text(encoding="utf-8"))
    calls = tuple(Measured(**call) for call in values.pop("calls"))
    return Calibration(calls=calls, **values)


@torch.inference_mode()
def _time(model: Huginn, number: int, context: int, budget_seconds: float, *, is_shared: bool) -> float:
    """Times a call of `number` rows, the oldest at a context of `context`."""
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

    def call() -> None:
        model.recur(states, states, cells.rows(Part.RECURRENT, positions, depths))

    return best_seconds(call, budget_seconds=budget_seconds)

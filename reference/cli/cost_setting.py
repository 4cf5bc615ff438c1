"""What the arguments of `wfd cost` mean: a setting, the decoders, and what a sweep varies."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from reference.cli.cost_arguments import CostArguments
from reference.cost import paper
from reference.cost.fleet import Decoder, Decoding
from reference.cost.latency import Setting, software_of
from reference.cost.machines import MACHINES, Machine
from reference.cost.shapes import PRESETS, LoopedShape
from reference.cost.work import precision_of
from reference.errors import ParameterError
from reference.schedule import check_draft_depth, default_draft_depth


class Point(NamedTuple):
    """What a sweep finds at one value."""

    dtv: float
    """Speedup of DtV over AR."""
    wfd: float
    """Speedup of WFD over AR."""
    fits: bool
    """Whether the device's memory holds weights and cells; if not, the speedups are of arithmetic alone."""


Swept: TypeAlias = dict[float, Point]
"""What a sweep finds, by the value that was varied."""


def setting_of(given: CostArguments) -> Setting:
    """Gives what runs where.

    Raises:
        ParameterError: If an argument breaks a rule.
        CheckpointError: If a model's configuration is at fault.
        OSError: If a measured machine cannot be read.
    """
    shape = _shape(given)
    if given.slots is not None and given.slots > shape.recurrence_depth:
        raise ParameterError(f"slots={given.slots} exceeds recurrence_depth={shape.recurrence_depth}")
    software = software_of(given.software)
    return Setting(
        shape=shape,
        machine=_machine(given),
        precision=precision_of(given.dtype),
        software=replace(software, is_captured=True) if given.is_captured else software,
        context=given.context,
        batch=given.batch,
        recurrence_slots=given.slots,
        average_depth=given.average_depth,
    )


def _shape(given: CostArguments) -> LoopedShape:
    if given.model in PRESETS:
        shape = PRESETS[given.model]
    else:
        from reference.bench.shapes import read_shape  # noqa: PLC0415 - loads the tensor library

        shape = read_shape(given.model)
    return shape if given.recurrence_depth is None else shape.with_depth(given.recurrence_depth)


def _machine(given: CostArguments) -> Machine:
    path = Path(given.hardware)
    if given.hardware not in MACHINES and path.suffix == ".json":
        from reference.cost.measure import from_json  # noqa: PLC0415 - loads the tensor library

        return from_json(path)
    return paper.known_machine(given.hardware)


def ways_of(given: CostArguments, shape: LoopedShape) -> tuple[Decoding, ...]:
    """Gives the three decoders with their parameters, AR first and WFD last.

    Raises:
        ParameterError: If the draft depth is outside its range.
    """
    depth = default_draft_depth(shape.recurrence_depth) if given.draft_depth is None else given.draft_depth
    check_draft_depth(depth, shape.recurrence_depth, clause="WFD-01")
    return tuple(
        Decoding(
            decoder=decoder,
            draft_depth=depth,
            draft_length=given.draft_length,
            acceptance_rate=given.acceptance_rate,
        )
        for decoder in Decoder
    )


def sweep(name: str, given: CostArguments) -> Swept:
    """Gives the speedups of DtV and WFD over AR for each value of what is varied."""
    depth = _shape(given).recurrence_depth
    values: dict[str, tuple[float, ...]] = {
        "draft-depth": tuple(value for value in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if value <= depth),
        "draft-length": (1, 2, 4, 8, 16, 32),
        "acceptance": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0),
        "batch": tuple(2**power for power in range(9)),
        "context": tuple(2**power for power in range(7, 17)),
        "average-depth": tuple(1 + (depth - 1) * eighth / 8 for eighth in range(9)),
    }
    changes: dict[str, Callable[[float], CostArguments]] = {
        "draft-depth": lambda value: replace(given, draft_depth=int(value)),
        "draft-length": lambda value: replace(given, draft_length=int(value)),
        "acceptance": lambda value: replace(given, acceptance_rate=float(value)),
        "batch": lambda value: replace(given, batch=int(value)),
        "context": lambda value: replace(given, context=int(value)),
        "average-depth": lambda value: replace(given, average_depth=float(value)),
    }
    swept: Swept = {}
    for value in values[name]:
        varied = changes[name](value)
        setting = setting_of(varied)
        plain, rounds, waves = (way.cost(setting).seconds.total for way in ways_of(varied, setting.shape))
        swept[float(value)] = Point(plain / rounds, plain / waves, setting.context <= setting.longest_context)
    return swept

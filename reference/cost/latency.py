"""Seconds of a call: a roofline for its bytes and operations, and what launching its kernels adds.

On the device a call takes

    max(weights and activations / bandwidth, products / peak) + max(KV cells / bandwidth, attention / peak)
        + kernels * kernel_seconds

each at the share of the published figure that is reached. On a machine on which products with few rows were measured,
weights and cells take at least what they took there (`machines.FewRows`). The host needs `kernels * launch_seconds` to
launch it all. A GPU works while the host launches ahead, so an eager call takes the longer of the two and the
difference is time that the device idles; a captured graph is launched at once, so it takes the device's time; on a CPU
the two add up.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from reference.cost.closed_forms import mixed_depths
from reference.cost.machines import FewRows, Machine, seconds_per_byte
from reference.cost.memory import longest_context
from reference.cost.shapes import LoopedShape, Part
from reference.cost.work import Call, Group, Precision, work_of
from reference.errors import ParameterError, check_whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """How a program runs the calls: what its kernels are, and how it reads KV cells. All of it is an assumption."""

    name: str
    """What reports call it."""
    kernels_per_layer: float
    """Kernels of a layer on rows that share one slot, attention included."""
    kernels_per_further_group: float
    """Kernels that a layer needs more for every group of rows with a slot of its own, beyond the first."""
    kernels_per_call: float
    """Kernels of a call outside its layers."""
    passes_over_cells: float = 1.0
    """How often the cells of several slots move: 1 if attention reads them where they are, 3 if they are first copied
    into one tensor (read, written, read)."""
    is_captured: bool = False
    """Whether calls are captured graphs."""
    captured_cells: int | None = None
    """Cells that every attention of a captured graph reads, whatever the context: its shapes are fixed."""
    origin: str = ""
    """Where the numbers come from."""

    def cells(self, context: float) -> float:
        """Gives the cells that attention reads at a context of so many."""
        return context if self.captured_cells is None else max(context, float(self.captured_cells))

    def num_kernels(self, call: Call, shape: LoopedShape) -> float:
        """Counts the kernels of a call."""
        further = max(0.0, call.num_groups - 1.0)
        layer = self.kernels_per_layer + further * self.kernels_per_further_group
        return self.kernels_per_call + shape.num_layers(call.part) * layer


RESEARCH: Final = Software(
    name="research",
    kernels_per_layer=58.0,
    kernels_per_further_group=6.0,
    kernels_per_call=10.0,
    passes_over_cells=3.0,
    origin=(
        "eager PyTorch as in the published modelling code, by hand: 4 norms of 8, 7 products, 10 for RoPE, 2 to "
        "activate and gate, 2 residual sums, 2 to append to the cache, 3 for attention and its layout; for every "
        "further slot 2 to append and 4 to pad and join; the wavefront copies all cells it reads"
    ),
)
"""The code of the paper, as far as it is known."""

FUSED: Final = Software(
    name="fused",
    kernels_per_layer=10.0,
    kernels_per_further_group=0.0,
    kernels_per_call=4.0,
    is_captured=True,
    origin=(
        "what serving engines do in a captured graph: 2 norms joined with residual sums, 2 more norms, qkv, RoPE with "
        "the cache write, paged attention over any slots, output, gate/up with activation, down; by hand"
    ),
)
"""A serving engine with paged attention."""

REFERENCE: Final = Software(
    name="reference",
    kernels_per_layer=40.0,
    kernels_per_further_group=0.0,
    kernels_per_call=7.0,
    origin="the models of this library: their operations are counted in a test; all slots of a tick are read in place",
)
"""This library."""

SOFTWARE: Final = MappingProxyType({software.name: software for software in (RESEARCH, FUSED, REFERENCE)})
"""Software by the name that the command line takes."""


def software_of(name: str) -> Software:
    """Gives software by its name.

    Raises:
        ParameterError: If there is none of this name.
    """
    if name not in SOFTWARE:
        raise ParameterError(f"software={name!r} is none of {', '.join(SOFTWARE)}")
    return SOFTWARE[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Where time goes; the parts add up to `total`."""

    weights: float = 0.0
    """Weights and activations on their way from memory."""
    cells: float = 0.0
    """KV cells on their way from memory."""
    compute: float = 0.0
    """Arithmetic, as far as it takes longer than the bytes it works on."""
    kernels: float = 0.0
    """What kernels take on top of that."""
    waiting: float = 0.0
    """The device idles until the host has launched."""

    @property
    def busy(self) -> float:
        """Time in which the device works."""
        return self.weights + self.cells + self.compute + self.kernels

    @property
    def total(self) -> float:
        """All of it."""
        return self.busy + self.waiting

    def __add__(self, other: "Seconds") -> "Seconds":
        """Gives the time of one after the other."""
        return Seconds(
            weights=self.weights + other.weights,
            cells=self.cells + other.cells,
            compute=self.compute + other.compute,
            kernels=self.kernels + other.kernels,
            waiting=self.waiting + other.waiting,
        )

    def __mul__(self, times: float) -> "Seconds":
        """Gives the time of as many."""
        return Seconds(
            weights=self.weights * times,
            cells=self.cells * times,
            compute=self.compute * times,
            kernels=self.kernels * times,
            waiting=self.waiting * times,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What runs where; everything but the decoder."""

    shape: LoopedShape
    """The model."""
    machine: Machine
    """The device."""
    precision: Precision
    """Types of numbers."""
    software: Software
    """The program."""
    context: int
    """Cells that every row attends to; a run's context grows, so give its mean."""
    batch: int = 1
    """Sequences decoded together."""
    recurrence_slots: int | None = None
    """s: slots that the recurrences of a layer share; None is T, one each."""
    average_depth: float | None = None
    """D: mean depth at which runs halt, if they halt before T; None is T. See `closed_forms.mixed_depths`."""

    def __post_init__(self) -> None:
        """Refuses what no run can have."""
        for name, value in (("context", self.context), ("batch", self.batch)):
            check_whole_number(name, value, minimum=1)
        if self.recurrence_slots is not None:
            check_whole_number("recurrence_slots", self.recurrence_slots, minimum=1, clause="SHR-01")
        mixed_depths(self.shape.recurrence_depth, self.average_depth)

    def at_depths(self) -> tuple[tuple["Setting", float], ...]:
        """Gives the setting at each whole depth that its runs take, and the share of the tokens there."""
        depths = mixed_depths(self.shape.recurrence_depth, self.average_depth)
        return tuple(
            (replace(self, shape=self.shape.with_depth(depth), average_depth=None), share) for depth, share in depths
        )

    def call(self, part: Part, *groups: tuple[float, float]) -> Seconds:
        """Times a call in which every sequence has groups of rows, each given as (how many groups, rows in each)."""
        cells = self.software.cells(float(self.context))
        named = tuple(Group(rows, cells, count=count) for count, rows in groups)
        return seconds_of(Call(part, named, batch=float(self.batch)), self)

    @property
    def longest_context(self) -> int:
        """The most positions of each sequence that fit into the device's memory; see `memory.longest_context`."""
        return longest_context(
            self.shape,
            self.precision,
            memory_bytes=self.machine.memory_bytes,
            batch=self.batch,
            recurrence_slots=self.recurrence_slots,
        )


def seconds_of(call: Call, setting: Setting) -> Seconds:
    """Times a call."""
    machine, software, overheads = setting.machine, setting.software, setting.machine.overheads
    work = work_of(call, setting.shape, setting.precision)
    bandwidth = machine.bandwidth_bytes_per_second * overheads.bandwidth_efficiency
    peak = machine.peak(setting.precision.name) * overheads.compute_efficiency
    passes = software.passes_over_cells if call.num_groups > 1 else 1.0
    weights = (work.weight_bytes + work.activation_bytes) / bandwidth
    cells = (work.kv_read_bytes * passes + work.kv_write_bytes) / bandwidth
    few_rows = machine.few_rows.get(setting.precision.name)
    if few_rows is not None:
        weights = max(weights, work.weight_bytes * seconds_per_byte(few_rows.weight_bytes_per_second, call.rows))
        cells = max(cells, work.kv_read_bytes * _seconds_per_cell_byte(few_rows, call))
    compute = max(0.0, work.linear_flops / peak - weights) + max(0.0, work.attention_flops / peak - cells)
    num_kernels = software.num_kernels(call, setting.shape)
    kernels = num_kernels * overheads.kernel_seconds
    busy = weights + cells + compute + kernels
    launching = 0.0 if software.is_captured else num_kernels * overheads.launch_seconds
    waiting = max(0.0, launching - busy) if overheads.is_asynchronous else launching
    return Seconds(weights=weights, cells=cells, compute=compute, kernels=kernels, waiting=waiting)


def _seconds_per_cell_byte(few_rows: FewRows, call: Call) -> float:
    """Gives the mean over the cells of a call, each of which its group's rows read together."""
    cells = sum(group.count * group.cells for group in call.groups)
    times = (
        group.count * group.cells * seconds_per_byte(few_rows.cell_bytes_per_second, group.rows)
        for group in call.groups
    )
    return sum(times) / cells

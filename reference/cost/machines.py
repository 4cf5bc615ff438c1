"""Machines: what their makers publish, and what software loses on the way to it.

A `Machine` holds published figures, each with its source. `Overheads` holds what no datasheet says: which share of the
bandwidth is reached, what a kernel costs however little it does, and what it costs the host to launch one. They come
from reported decoding runs (`reference.cost.paper`) or from a measurement (`reference.cost.measure`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from reference.errors import ParameterError

_GIB: Final = float(2**30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What stands between a datasheet and a running model."""

    bandwidth_efficiency: float
    """Share of the published bandwidth that large reads reach."""
    compute_efficiency: float
    """Share of the published peak that large products reach."""
    kernel_seconds: float
    """Time on the device that a kernel takes on top of its bytes and operations."""
    launch_seconds: float
    """Time on the host to launch one kernel from Python; nothing is launched once a graph is captured."""
    is_asynchronous: bool = True
    """Whether the host launches ahead while the device works, as with a GPU; on a CPU launching and working add up."""
    origin: str
    """Where these come from."""


ASSUMED: Final = Overheads(
    bandwidth_efficiency=0.8,
    compute_efficiency=0.7,
    kernel_seconds=1.5e-6,
    launch_seconds=12e-6,
    origin="round numbers close to those that reported runs on an RTX A6000 imply (see the page on the paper)",
)
"""What is assumed of a machine that nobody has measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRows:
    """What products with few rows get through, of one type of numbers, by how many rows there are.

    Such products are neither as fast as a copy nor as a large product: a library may convert or rearrange a matrix for
    every call, or use a kernel made for more rows. How much that costs is a property of a machine with its library, so
    it is measured, on shapes of no model.
    """

    weight_bytes_per_second: Mapping[int, float]
    """Bytes of matrices, by the rows that are multiplied with them."""
    cell_bytes_per_second: Mapping[int, float]
    """Bytes of KV cells, by the rows that attend to the same ones."""


def seconds_per_byte(rates: Mapping[int, float], rows: float) -> float:
    """Gives the time of a byte at some number of rows: on the line between the measured numbers, constant beyond them.

    Args:
        rates: Bytes per second by rows.
        rows: Rows; a fraction is a mean.
    """
    known = sorted(rates)
    below = max((number for number in known if number <= rows), default=known[0])
    above = min((number for number in known if number >= rows), default=known[-1])
    low, high = 1 / rates[below], 1 / rates[above]
    return low if below >= above else low + (high - low) * (rows - below) / (above - below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One device."""

    name: str
    """What reports call it."""
    bandwidth_bytes_per_second: float
    """Published bandwidth of its memory."""
    memory_bytes: float
    """Its memory."""
    peak_flops_per_second: Mapping[str, float]
    """Published peak of dense products by the type of their operands, accumulated in fp32."""
    power_watts: float | None
    """Most power of the board; None where none is published."""
    source: str
    """Where the figures are published, and which of them were read where."""
    overheads: Overheads = field(default=ASSUMED)
    """What software loses."""
    few_rows: Mapping[str, FewRows] = field(default_factory=dict)
    """What products with few rows reach, by type; without a measurement the bandwidth is taken to be reached."""

    def peak(self, precision: str) -> float:
        """Gives the peak for a type of operands, in operations per second.

        Raises:
            ParameterError: If none is known.
        """
        if precision not in self.peak_flops_per_second:
            known = ", ".join(self.peak_flops_per_second)
            raise ParameterError(f"dtype={precision!r}: of {self.name} only the peak for {known} is known")
        return self.peak_flops_per_second[precision]

    def ridge_flops_per_byte(self, precision: str) -> float:
        """Gives the ridge point: work of a lower intensity waits for memory, work of a higher one for arithmetic."""
        return self.peak(precision) / self.bandwidth_bytes_per_second


MACHINES: Final = MappingProxyType(
    {
        "a6000": Machine(
            name="NVIDIA RTX A6000",
            bandwidth_bytes_per_second=768e9,
            memory_bytes=48 * _GIB,
            peak_flops_per_second=MappingProxyType({"bf16": 154.8e12, "fp32": 38.7e12}),
            power_watts=300.0,
            source=(
                "NVIDIA RTX A6000 datasheet, table of specifications: the vendor's figures, not read again. bf16 is "
                "half of its tensor performance, 309.7 TFLOPS, which counts sparsity. Bandwidth, memory and power were "
                "read in ServeTheHome's report of its introduction (October 2020)"
            ),
        ),
        "a100": Machine(
            name="NVIDIA A100 80GB SXM",
            bandwidth_bytes_per_second=2039e9,
            memory_bytes=80 * _GIB,
            peak_flops_per_second=MappingProxyType({"bf16": 312e12, "fp32": 19.5e12}),
            power_watts=400.0,
            source=(
                "NVIDIA A100 Tensor Core GPU datasheet (nvidia-1758950-r4), column A100 80GB SXM: the vendor's "
                "figures, not read again; read as Glenn K. Lockwood quotes them (glennklockwood.com, A100). bf16 "
                "without sparsity"
            ),
        ),
        "h100": Machine(
            name="NVIDIA H100 80GB SXM",
            bandwidth_bytes_per_second=3.35e12,
            memory_bytes=80 * _GIB,
            peak_flops_per_second=MappingProxyType({"bf16": 989.4e12, "fp32": 66.9e12}),
            power_watts=700.0,
            source=(
                "NVIDIA H100 Tensor Core GPU datasheet, column H100 SXM (bandwidth, memory, power), and Hopper "
                "architecture whitepaper, table of peak rates (bf16 without sparsity, fp32): the vendor's figures, not "
                "read again; read as Glenn K. Lockwood quotes them (glennklockwood.com, H100)"
            ),
        ),
        "h200": Machine(
            name="NVIDIA H200 SXM",
            bandwidth_bytes_per_second=4.8e12,
            memory_bytes=141 * _GIB,
            peak_flops_per_second=MappingProxyType({"bf16": 989.4e12, "fp32": 66.9e12}),
            power_watts=700.0,
            source=(
                "NVIDIA H200 Tensor Core GPU datasheet, column H200 SXM: the vendor's figures, bandwidth not read "
                "again. Memory and power were read in NVIDIA's description of its system for MLPerf Inference v4.1 "
                "(H200-SXM-141GBx8). Peaks are those of the H100, whose chip it is"
            ),
        ),
        "rtx4090": Machine(
            name="NVIDIA GeForce RTX 4090",
            bandwidth_bytes_per_second=1008e9,
            memory_bytes=24 * _GIB,
            peak_flops_per_second=MappingProxyType({"bf16": 165.2e12, "fp32": 82.6e12}),
            power_watts=450.0,
            source=(
                "NVIDIA Ada GPU architecture whitepaper, appendix on the RTX 4090, rows of peak rates without sparsity "
                "and of FP32 accumulation: the vendor's figures, not read again; other tables of peaks agree"
            ),
        ),
        "rtx5090": Machine(
            name="NVIDIA GeForce RTX 5090",
            bandwidth_bytes_per_second=1792e9,
            memory_bytes=32 * _GIB,
            peak_flops_per_second=MappingProxyType({"bf16": 209.5e12, "fp32": 104.8e12}),
            power_watts=575.0,
            source=(
                "NVIDIA RTX Blackwell GPU architecture whitepaper, appendix on the RTX 5090, rows of peak rates "
                "without sparsity and of FP32 accumulation: the vendor's figures, not read again; other tables of "
                "peaks agree. The 838 TFLOPS that reports give, four times as many, are with sparsity and FP16 "
                "accumulation"
            ),
        ),
        "m1-max": Machine(
            name="Apple M1 Max, 32 GPU cores",
            bandwidth_bytes_per_second=400e9,
            memory_bytes=64 * _GIB,
            peak_flops_per_second=MappingProxyType({"fp32": 10.4e12}),
            power_watts=None,
            source=(
                "Apple Newsroom, introduction of M1 Pro and M1 Max, 18 October 2021 (bandwidth, memory: read; 10.4 "
                "teraflops: the vendor's figure, not read again)"
            ),
        ),
        "cpu-2-cores": Machine(
            name="two CPU cores with AVX-512",
            bandwidth_bytes_per_second=38.4e9,
            memory_bytes=16 * _GIB,
            peak_flops_per_second=MappingProxyType({"fp32": 2 * 2 * 16 * 2 * 2.5e9}),
            power_watts=None,
            source=(
                "one channel of DDR5-4800 (JEDEC JESD79-5: 4800 MT/s x 8 bytes); 2 cores x 2 units x 16 lanes x "
                "2 operations x 2.5 GHz. A stand-in: measure yours with `wfd cost measure`"
            ),
            overheads=Overheads(
                bandwidth_efficiency=0.6,
                compute_efficiency=0.6,
                kernel_seconds=0.0,
                launch_seconds=4e-6,
                is_asynchronous=False,
                origin="assumed; on a CPU a launch is a call into the tensor library, and nothing runs meanwhile",
            ),
        ),
    }
)
"""Machines by the name that the command line takes. A test holds figures of GPUs to their units times their clock."""


def machine(name: str) -> Machine:
    """Gives a machine by its name.

    Raises:
        ParameterError: If there is none of this name.
    """
    if name not in MACHINES:
        raise ParameterError(f"hardware={name!r} is none of {', '.join(MACHINES)}")
    return MACHINES[name]

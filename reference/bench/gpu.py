"""Speed of the static path in the shapes of the published models, with random weights and drawn verdicts.

Nothing is downloaded. All work is real but for two things: the prompt's KV cells are filled with noise instead of being
computed, and whether a draft is right is drawn beforehand with a fixed seed, since random weights would never agree. A
row is printed and saved as soon as it is measured; when the time is up the rest is left out and named.
"""

import argparse
import gc
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import torch
from rich.console import Console
from torch import Tensor

from reference.axes import Positions, TokenIds
from reference.bench.drawn import DrawnTensors
from reference.bench.shapes import config_of
from reference.cost.shapes import preset
from reference.errors import ParameterError
from reference.graphs.capture import captured
from reference.graphs.ledger import Field, Flags
from reference.graphs.rounds import Rounds
from reference.graphs.step import StepOptions
from reference.graphs.wavefront import Wavefront
from reference.models import Huginn, HuginnConfig, Ouro, OuroConfig
from reference.provenance import Part
from reference.schedule import default_draft_depth
from reference.sharing import slot_map

Config: TypeAlias = OuroConfig | HuginnConfig

_DRAFT_LENGTH: Final = 8
"""The gamma of DtV."""
_RING_SIZE: Final = 64
"""Entries of the ring, which nobody reads here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    models: Mapping[str, Config]
    """By name."""
    acceptance: Mapping[str, float]
    """Chance of a right draft, by model."""
    contexts: tuple[int, ...]
    """Positions before the first decoded token."""
    shared: Mapping[str, int]
    """How many slots remain where slots are shared, by model."""
    tokens: int
    """Tokens that could be decoded in a row of the table; a quarter where every kernel is launched by the host."""


_LONGEST: Final = 65_536
FULL: Final = Size(
    models=MappingProxyType(
        {
            name: config_of(preset(name.lower()), context_length=_LONGEST + 256)
            for name in ("Ouro-1.4B", "Huginn-3.5B", "Ouro-2.6B")
        }
    ),
    acceptance=MappingProxyType({"Ouro-1.4B": 0.92, "Ouro-2.6B": 0.92, "Huginn-3.5B": 0.94}),
    contexts=(1024, 8192, 32_768, _LONGEST),
    shared=MappingProxyType({"Ouro-1.4B": 1, "Ouro-2.6B": 1, "Huginn-3.5B": 4}),
    tokens=96,
)
"""The published shapes; acceptance as arXiv 2609.23033 reports it on Spec-Bench."""

TOY: Final = Size(
    models=MappingProxyType(
        {
            "toy Ouro": config_of(
                replace(
                    preset("ouro-1.4b"),
                    vocab_size=64,
                    hidden_size=32,
                    intermediate_size=48,
                    num_heads=2,
                    num_kv_heads=2,
                    head_dim=16,
                    recurrent_layers=2,
                ),
                context_length=128,
            ),
            "toy Huginn": config_of(
                replace(
                    preset("huginn-3.5b"),
                    vocab_size=64,
                    hidden_size=32,
                    intermediate_size=48,
                    num_heads=2,
                    prelude_layers=1,
                    recurrent_layers=1,
                    coda_layers=1,
                    recurrence_depth=8,
                ),
                context_length=128,
            ),
        }
    ),
    acceptance=MappingProxyType({"toy Ouro": 0.9, "toy Huginn": 0.9}),
    contexts=(16,),
    shared=MappingProxyType({"toy Ouro": 1, "toy Huginn": 1}),
    tokens=4,
)
"""Shapes that a CPU runs in seconds: they show that the script works, and nothing about speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One row to be measured."""

    model: str
    """Name of the shapes."""
    context: int
    """Positions before the first decoded token."""
    slots: int
    """KV slots of a layer and position; T where every recurrence has its own."""
    mode: str
    """`captured`, or `launched`: the same step, its kernels launched one by one."""
    decoder: str
    """`ar`, `dtv` or `wfd`."""
    acceptance: float
    """Chance of a right draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table."""

    plan: Plan
    """What was measured."""
    tokens_per_second: float | None = None
    """Without the prompt pass."""
    ratio_to_ar: float | None = None
    """To AR of the same model, context, slots and mode; the paper's ratios are of this kind."""
    tick_ratio_to_ar: float | None = None
    """The same, counted in ticks: what WFD would gain if a tick cost the same whatever its width."""
    accepted: float | None = None
    """Share of judged drafts that were taken for right."""
    roofline: float | None = None
    """Bytes that had to be moved, over what a plain copy moves in the same time."""
    idle: float | None = None
    """Share of the time in which no kernel ran; CUDA only."""
    launches_per_token: float | None = None
    """Kernel and graph launches of the host; CUDA only."""
    seconds_to_capture: float | None = None
    """Warm-ups included."""
    gigabytes: float | None = None
    """Allocated on the device at the peak; CUDA only."""
    left_out: str | None = None
    """Why it was not measured."""


class _Drawn:
    """Judges drafts by verdicts drawn beforehand, one per position."""

    verdicts: Tensor

    def draw(self, acceptance: float, generator: torch.Generator) -> None:
        """Draws the verdicts anew."""
        self.verdicts.copy_(torch.rand(self.verdicts.shape, generator=generator) < acceptance)

    def matches(self, drafts: TokenIds, verified: TokenIds, positions: Positions) -> Flags:
        """Looks the verdicts up; the comparison is made too, so that no work is left out."""
        found = self.verdicts.index_select(0, positions.clamp(0, len(self.verdicts) - 1))
        return found | ((drafts == verified) & found)


class _DrawnWavefront(_Drawn, Wavefront):
    """WFD, and AR, under drawn verdicts."""


class _DrawnRounds(_Drawn, Rounds):
    """DtV under drawn verdicts."""


class Bench:
    """Measures rows on one device."""

    def __init__(self, size: Size, device: torch.device) -> None:
        """Measures the copy bandwidth first."""
        self._size = size
        self._device = device
        self._dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self._model: Ouro | Huginn | None = None
        self._name = ""
        self.copied_bytes_per_second = self._copy_bandwidth()

    def plans(self) -> list[Plan]:
        """Lists the rows, those that say most first; AR opens every group, since the others are compared with it."""
        size = self._size
        modes = ("captured", "launched") if self._device.type == "cuda" else ("launched",)
        plans = []
        for context in size.contexts:
            for name, config in size.models.items():
                for slots in (config.recurrence_depth, size.shared[name]):
                    # What the host launches one by one takes longest: once is enough.
                    for mode in modes if context == size.contexts[0] and slots > size.shared[name] else modes[:1]:
                        row = Plan(
                            model=name,
                            context=context,
                            slots=slots,
                            mode=mode,
                            decoder="ar",
                            acceptance=size.acceptance[name],
                        )
                        plans += [row, replace(row, decoder="dtv"), replace(row, decoder="wfd")]
                        plans += [replace(row, decoder="wfd", acceptance=1.0)]
        return plans

    def measure(self, plan: Plan) -> Row:
        """Measures one row; one that does not fit into the memory says so."""
        try:
            return self._measured(plan)
        except torch.OutOfMemoryError:
            return Row(plan=plan, left_out="does not fit into the memory")
        finally:
            gc.collect()
            if self._device.type == "cuda":
                torch.cuda.empty_cache()

    @torch.no_grad()
    def _measured(self, plan: Plan) -> Row:
        on_gpu = self._device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        step = self._step(plan)
        begin = time.perf_counter()
        distinct: dict[Callable[[], object], Callable[[], object]] = {
            call: captured(call, self._device) if plan.mode == "captured" else call
            for call in dict.fromkeys(step.cycle)
        }
        seconds_to_capture = time.perf_counter() - begin if plan.mode == "captured" else None
        calls = [distinct[call] for call in step.cycle]
        tokens = self._size.tokens if plan.mode == "captured" else max(4, self._size.tokens // 4)
        self._repeat(step, calls, plan, 2)
        totals, seconds = self._repeat(step, calls, plan, tokens)
        idle, launches = self._profiled(lambda: self._repeat(step, calls, plan, 8)) if on_gpu else (None, None)
        judged = totals[Field.ACCEPTED] + totals[Field.REJECTED]
        return Row(
            plan=plan,
            tokens_per_second=totals[Field.COMMITTED] / seconds,
            tick_ratio_to_ar=totals[Field.COMMITTED] * step.recurrence_depth / totals[Field.TICKS],
            accepted=totals[Field.ACCEPTED] / judged if judged else None,
            roofline=self._bytes_moved(step, plan, totals) / seconds / self.copied_bytes_per_second,
            idle=idle,
            launches_per_token=launches,
            seconds_to_capture=seconds_to_capture,
            gigabytes=torch.cuda.max_memory_allocated() / 1e9 if on_gpu else None,
        )

    def _repeat(
        self,
        step: "_DrawnWavefront | _DrawnRounds",
        calls: list[Callable[[], object]],
        plan: Plan,
        tokens: int,
    ) -> tuple[tuple[int, ...], float]:
        """Executes as many cycles as could commit `tokens`; gives the totals and the seconds that they took.

        The end is out of reach, so that no cycle is idle. The first cycles, in which a wavefront fills, come before:
        what is measured is the steady state, flushes included.
        """
        step.draw(plan.acceptance, torch.Generator().manual_seed(0))
        no_stop_ids = torch.empty(0, dtype=torch.int64, device=self._device)
        step.ledger.open(frontier=plan.context + 1, end=step.num_positions + 1, stop_ids=no_stop_ids)
        where = torch.full((1,), plan.context, device=self._device)
        step.begin(torch.zeros_like(where), where)
        for call in calls * (len(step.active) if plan.decoder == "wfd" else 0):
            call()
        self._wait()
        before, begin = step.ledger.totals.tolist(), time.perf_counter()
        for call in calls * -(-tokens // step.most_commits):
            call()
        self._wait()
        seconds = time.perf_counter() - begin
        return tuple(b - a for a, b in zip(before, step.ledger.totals.tolist(), strict=True)), seconds

    def _step(self, plan: Plan) -> _DrawnWavefront | _DrawnRounds:
        config = self._size.models[plan.model]
        if plan.model != self._name:
            self._model = None  # let go of the last one before the next is drawn
            gc.collect()
            weights = DrawnTensors(config.tensor_shapes(), dtype=self._dtype, device=self._device)
            make = Ouro if isinstance(config, OuroConfig) else Huginn
            self._model = make(config, weights, dtype=self._dtype, device=self._device)  # type: ignore[arg-type]
            self._name = plan.model
        assert self._model is not None
        depth = config.recurrence_depth
        # The width of a wave, and a last round, beyond the tokens.
        num_positions = plan.context + self._size.tokens + 64
        layers = self._model.kv_shapes.recurrent_layers
        slots = slot_map(plan.slots, recurrence_depth=depth, recurrent_layers=layers).by_recurrence
        assert slots is not None, "slots in turn are no layer's own"
        draft_depth = default_draft_depth(depth)
        options: StepOptions = {
            "slots": slots,
            "num_positions": num_positions,
            "ring_size": _RING_SIZE,
            "state_scale": 0.0,
        }
        step: _DrawnWavefront | _DrawnRounds
        if plan.decoder == "dtv":
            step = _DrawnRounds(self._model, draft_depth=draft_depth, draft_length=_DRAFT_LENGTH, **options)
        else:
            d = depth if plan.decoder == "ar" else draft_depth
            step = _DrawnWavefront(self._model, draft_depth=d, **options)
        step.register_buffer("verdicts", torch.zeros(num_positions, dtype=torch.bool, device=self._device))
        generator = torch.Generator(self._device).manual_seed(1)
        for part in Part:
            for cells in step.cells.part(part):
                for layer in cells:
                    layer.normal_(generator=generator)
        return step

    def _bytes_moved(self, step: _DrawnWavefront | _DrawnRounds, plan: Plan, totals: tuple[int, ...]) -> float:
        """Counts what a perfect implementation would have read: weights once a call, every slot once a tick."""
        shapes, element = step.model.kv_shapes, self._dtype.itemsize
        weights = {"head": 0, "prelude": 0, "recurrent": 0, "coda": 0, "unread": 0}
        for name, shape in self._size.models[plan.model].tensor_shapes().items():
            weights[_part_of(name)] += torch.Size(shape).numel() * element
        cells = plan.context * 2 * shapes.kv_heads * shapes.head_dim * element
        read_slots = totals[Field.LANE_TICKS] if plan.slots == step.recurrence_depth else totals[Field.TICKS]
        if plan.decoder == "dtv":  # the rows of a verification are all in one slot
            read_slots = totals[Field.TICKS]
        return float(
            totals[Field.TICKS] * weights["recurrent"]
            + totals[Field.READOUT_CALLS] * (weights["coda"] + weights["head"] + shapes.coda_layers * cells)
            + totals[Field.PRELUDE_CALLS] * (weights["prelude"] + shapes.prelude_layers * cells)
            + read_slots * shapes.recurrent_layers * cells
        )

    def _copy_bandwidth(self) -> float:
        """Gives the bytes read and written a second by copies of a large tensor, the best of five."""
        source = torch.zeros(2**30 if self._device.type == "cuda" else 2**24, dtype=torch.uint8, device=self._device)
        target = torch.empty_like(source)
        best = 0.0
        for _ in range(5):
            self._wait()
            begin = time.perf_counter()
            target.copy_(source)
            self._wait()
            best = max(best, 2 * source.nbytes / (time.perf_counter() - begin))
        return best

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def _profiled(self, decode: Callable[[], tuple[tuple[int, ...], float]]) -> tuple[float, float]:
        """Gives the share of the time without a kernel, and the number of launches a token."""
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        ) as profile:
            totals, seconds = decode()
        events = profile.key_averages()
        busy = sum(event.self_device_time_total for event in events) / 1e6
        launches = sum(event.count for event in events if event.key.startswith(("cudaLaunch", "cudaGraphLaunch")))
        return max(0.0, 1 - busy / seconds), launches / max(1, totals[Field.COMMITTED])


def _part_of(name: str) -> str:
    """Says which calls read an official tensor."""
    if "lm_head" in name or "wte" in name:  # Huginn's head is tied to its embedding
        return "head"
    if "embed_tokens" in name or "early_exit" in name:
        return "unread"  # but for a row of it
    return next((part for part in ("prelude", "coda") if f".{part}." in name), "recurrent")


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    """Compares every row with AR of its group."""
    by_group = {_group(row.plan): row for row in rows if row.plan.decoder == "ar"}
    compared = []
    for row in rows:
        base = by_group.get(_group(row.plan))
        if base and base.tokens_per_second and row.tokens_per_second:
            compared.append(replace(row, ratio_to_ar=row.tokens_per_second / base.tokens_per_second))
        else:
            compared.append(row)
    return compared


def _group(plan: Plan) -> tuple[str, int, int, str]:
    return plan.model, plan.context, plan.slots, plan.mode


def _line(row: Row) -> str:
    plan = row.plan
    head = f"{plan.model:12} {plan.context:6} {plan.slots:3} {plan.mode:9} {plan.decoder:4} {plan.acceptance:5.2f}"
    if row.left_out:
        return f"{head}  {row.left_out}"
    numbers = (
        row.tokens_per_second,
        row.ratio_to_ar,
        row.tick_ratio_to_ar,
        row.roofline,
        row.idle,
        row.launches_per_token,
        row.gigabytes,
    )
    return head + "".join(f"{'' if number is None else f'{number:.3g}':>10}" for number in numbers)


_HEAD: Final = f"{'model':12} {'ctx':>6} {'kv':>3} {'mode':9} {'':4} alpha" + "".join(
    f"{name:>10}" for name in ("tokens/s", "x AR", "x ticks", "roofline", "idle", "launches", "GB")
)


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark from the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="wfd bench gpu",
        description="Time the static path, captured and not, in the shapes of the published models (random weights).",
    )
    parser.add_argument("--device", help="cuda or cpu (default: cuda where there is one)")
    parser.add_argument("--toy", action="store_true", help="toy shapes, as always on a CPU")
    parser.add_argument("--seconds", type=float, default=420.0, help="begin no row after this time (default: 420)")
    parser.add_argument("--json", type=Path, default=Path("gpu.json"), help="where the figures go (default: gpu.json)")
    given = parser.parse_args(argv)
    begin = time.perf_counter()
    device = torch.device(given.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(f"device={given.device!r}, but torch finds no CUDA device (NOT-04)")
    console = Console(highlight=False, soft_wrap=True)
    bench = Bench(TOY if given.toy or device.type != "cuda" else FULL, device)
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "CPU"
    console.print(f"{machine}, torch {torch.__version__}, copies {bench.copied_bytes_per_second / 1e9:.0f} GB/s")
    console.print(_HEAD)
    rows: list[Row] = []
    for plan in bench.plans():
        late = time.perf_counter() - begin > given.seconds
        rows = with_ratios([*rows, Row(plan=plan, left_out="out of time") if late else bench.measure(plan)])
        console.print(_line(rows[-1]))
        figures = {
            "machine": machine,
            "torch": torch.__version__,
            "date": time.strftime("%Y-%m-%d"),
            "copied_bytes_per_second": bench.copied_bytes_per_second,
            "rows": [asdict(row) for row in rows],
        }
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0

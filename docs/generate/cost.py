"""Writes the pages on the cost model and their figures: docs/cost.md, cost-paper.md and cost-calibration.md.

The text of the first two is in the files of the same name that end in .in; every number in them is put in here. The
third shows a measurement, written down by `wfd cost calibrate --output docs/cost-calibration.json`. A test holds that
the pages are up to date.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Final

from matplotlib.figure import Figure

from docs.generate import DOCS
from reference.bench.calibrate import Calibration, read
from reference.cost import analysis, decoding, paper, plots
from reference.cost.closed_forms import expected_ticks_per_token, expected_ticks_with_exits
from reference.cost.latency import FUSED, RESEARCH, Setting, Software
from reference.cost.memory import kv_bytes_per_position
from reference.cost.shapes import Part
from reference.cost.work import Call, Group, work_of
from reference.schedule import Start

_ALPHA: Final = 0.92
_OTHER_ALPHA: Final = 0.78
_HIGH_ALPHA: Final = 0.97
_LONG: Final = 16_384
_MS: Final = 1000.0
_EARLY: Final = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
_WAVE: Final = Start(
    decoder="wfd",
    recurrence_depth=4,
    draft_depth=1,
    draft_length=None,
    prompt_length=1,
    max_new_tokens=2,
    context_length=2,
    stop_ids=(),
)


def files() -> dict[Path, str]:
    """Gives the content of the pages and of their figures."""
    return {**pages(), **figures()}


def pages() -> Mapping[Path, str]:
    """Gives the content of every page."""
    written = {}
    for name, values in (("cost", example()), ("cost-paper", report())):
        text = Template((DOCS / f"{name}.md.in").read_text(encoding="utf-8")).substitute(values)
        written[DOCS / f"{name}.md"] = (
            f"<!-- Written by docs/generate/cost.py from {name}.md.in; change it there. -->\n\n{text}"
        )
    written[DOCS / "cost-calibration.md"] = calibration_page(DOCS / "cost-calibration.json")
    return written


def figures() -> Mapping[Path, str]:
    """Gives the content of every figure."""
    drawn = {"breakdown": _breakdown(), "sweep": _sweep()}
    return {DOCS / "cost-figures" / f"{name}.svg": _svg(figure) for name, figure in drawn.items()}


@cache
def example() -> Mapping[str, str]:
    """Gives the numbers of the worked example."""
    one = paper.paper_setting(paper.OURO)
    losses, shape = paper.overheads(), one.shape
    row = (Group(1.0, float(one.context)),)
    recurrence, readout = (work_of(Call(part, row), shape, one.precision) for part in (Part.RECURRENT, Part.READOUT))
    layer = sum(fan_in * fan_out for fan_in, fan_out in shape.layer_matrices)
    plain = decoding.ar(one)
    price = decoding.wave(one, draft_depth=1)
    mean = price.at(_ALPHA)
    ramp = [one.call(Part.RECURRENT, (float(rows), 1.0)).total for rows in range(1, 5)]
    kernels = [RESEARCH.num_kernels(Call(Part.RECURRENT, (Group(1.0, 1.0, count=float(n)),)), shape) for n in (1, 4)]
    ends = sum(RESEARCH.num_kernels(Call(part, row), shape) for part in (Part.PRELUDE, Part.READOUT))
    bound_bytes = (plain.seconds.weights + plain.seconds.cells) * losses.bandwidth_efficiency * 768e9
    speedup = plain.seconds.total / mean.seconds.total
    break_even = analysis.break_even_rate(one, draft_depth=1)
    assert break_even is not None
    batch = analysis.batch_crossover(one, draft_depth=1, acceptance_rate=_ALPHA)
    context = analysis.context_crossover(one, draft_depth=1, acceptance_rate=_ALPHA)
    fused = replace(one, software=FUSED)
    fused_batch = analysis.batch_crossover(fused, draft_depth=1, acceptance_rate=_ALPHA)
    fused_context = analysis.context_crossover(fused, draft_depth=1, acceptance_rate=_ALPHA)
    at_length = analysis.wfd_speedup(replace(fused, context=_LONG), draft_depth=1, acceptance_rate=_ALPHA)
    early = {depth: replace(one, average_depth=depth) for depth in _EARLY}
    needed = _ALPHA * (4 - 1) / (4 - 2)
    assert needed > 1, "the page says that d = 2 never pays"
    return {
        "speedup": f"{speedup:.2f}",
        "context": str(one.context),
        "alpha": f"{_ALPHA:.2f}",
        "beta": f"{1 - _ALPHA:.2f}",
        "alpha_percent": f"{100 * _ALPHA:.0f}",
        "layer_million": f"{layer / 1e6:.1f}",
        "layer_mb": f"{2 * layer / 1e6:.0f}",
        "recurrence_gb": f"{recurrence.weight_bytes / 1e9:.2f}",
        "head_gb": f"{readout.weight_bytes / 1e9:.2f}",
        "cell_kib": f"{shape.kv_size * 2 / 1024:.0f}",
        "tick_cells_mb": f"{recurrence.kv_read_bytes / 1e6:.0f}",
        "token_gb": f"{bound_bytes / 1e9:.1f}",
        "bound_ms": f"{_MS * bound_bytes / 768e9:.1f}",
        "ar_ms": f"{_MS * plain.seconds.total:.1f}",
        "kernels_layer": f"{RESEARCH.kernels_per_layer:.0f}",
        "kernels_further": f"{RESEARCH.kernels_per_further_group:.0f}",
        "kernels_tick": f"{kernels[0]:,.0f}",
        "kernels_token": f"{4 * kernels[0] + ends:,.0f}",
        "kernels_wave": f"{kernels[1]:,.0f}",
        "launch_us": f"{1e6 * losses.launch_seconds:.1f}",
        "tick_one_ms": f"{_MS * ramp[0]:.1f}",
        "tick_four_ms": f"{_MS * ramp[3]:.1f}",
        "running_ms": f"{_MS * price.running.seconds.total:.1f}",
        "ramp_ms": " + ".join(f"{_MS * seconds:.1f}" for seconds in ramp),
        "restart_ms": f"{_MS * price.restart.seconds.total:.1f}",
        "wfd_ms": f"{_MS * mean.seconds.total:.1f}",
        "error": f"{100 * abs(speedup / 2.42 - 1):.0f}%",
        "tick_speedup": f"{plain.ticks / mean.ticks:.2f}",
        "breakdown_alt": _breakdown_words(),
        "break_even": f"alpha = {break_even:.2f}",
        "best_gamma": str(analysis.best_draft_length(one, draft_depth=1, acceptance_rate=_ALPHA)),
        "regret": _percent(
            analysis.draft_length_regret(one, draft_depth=1, assumed_rate=_ALPHA, acceptance_rate=_OTHER_ALPHA)
        ),
        "regret_high": _percent(
            analysis.draft_length_regret(one, draft_depth=1, assumed_rate=_HIGH_ALPHA, acceptance_rate=_OTHER_ALPHA)
        ),
        "needed_rate": f"{needed:.2f}",
        "batch_crossover": _crossing(batch),
        "context_crossover": f"{_crossing(context)} tokens",
        "fused_context": _crossing(fused_context),
        "fused_long": f"{at_length:.2f}",
        "fused_batch": _crossing(fused_batch),
        "fused_fits": str(one.longest_context // one.context),
        "early": _table(
            ("mean depth D", *(f"{depth:g}" for depth in early)),
            (
                ("AR, ms", *(f"{_MS * decoding.ar(at).seconds.total:.1f}" for at in early.values())),
                (
                    "WFD, ms",
                    *(
                        f"{_MS * decoding.wfd(at, draft_depth=1, acceptance_rate=_ALPHA).seconds.total:.1f}"
                        for at in early.values()
                    ),
                ),
                (
                    "speedup",
                    *(
                        f"{analysis.wfd_speedup(at, draft_depth=1, acceptance_rate=_ALPHA):.2f}"
                        for at in early.values()
                    ),
                ),
            ),
        ),
        "even_ticks": f"{expected_ticks_per_token(_WAVE, _ALPHA, 2.5):.2f}",
        "uneven_ticks": f"{expected_ticks_with_exits(_WAVE, _ALPHA, {2: 0.75, 4: 0.25}):.2f}",
    }


@cache
def report() -> Mapping[str, str]:
    """Gives the numbers and tables of the page on the paper."""
    rows, losses = paper.rows(), paper.overheads()
    waves = [row for row in rows if row.decoder == "WFD"]
    chosen = (waves[0], waves[1], waves[3], waves[4])
    headings = [f"{row.what} {row.acceptance_rate:.2f}" for row in chosen]
    ouro, huginn = (paper.paper_setting(model) for model in (paper.OURO, paper.HUGINN))
    missed = [row for row in rows if paper.explanation(row)]
    return {
        "num_met": str(len(rows) - len(missed)),
        "num_rows": str(len(rows)),
        "mean_error": f"{100 * sum(abs(row.error) for row in waves) / len(waves):.0f}%",
        "largest_error": f"{100 * max(abs(row.error) for row in waves):.0f}%",
        "num_fast": str(sum(row.error > 0 for row in rows)),
        "efficiency": f"{100 * losses.bandwidth_efficiency:.0f}%",
        "kernel_us": f"{1e6 * losses.kernel_seconds:.1f}",
        "launch_us": f"{1e6 * losses.launch_seconds:.1f}",
        "assumptions": "\n".join(f"- {assumption}" for assumption in paper.ASSUMPTIONS),
        "table": _table(
            ("what ran", "decoder", "alpha", "reported", "predicted", "error"),
            (
                (
                    row.what,
                    row.decoder,
                    f"{row.acceptance_rate:.2f}",
                    f"{row.reported:.2f}",
                    f"{row.predicted:.2f}",
                    f"{100 * row.error:+.0f}%",
                )
                for row in rows
            ),
        ),
        "misses": "\n".join(
            f"- **{row.what}, {row.decoder}** ({100 * row.error:+.0f}%). {paper.explanation(row)}" for row in missed
        ),
        "capture_gain": f"{100 * (paper.capture_gain() - 1):.0f}%",
        **_captured(),
        "variations": _table(
            ("assumption", *headings),
            ((one.assumption, *(f"{speedup:.2f}" for speedup in one.predicted)) for one in paper.variations(chosen)),
        )
        + "\n\nReported: "
        + ", ".join(f"{row.reported:.2f}" for row in chosen)
        + ".",
        "ouro_position_mb": f"{kv_bytes_per_position(ouro.shape, ouro.precision) / 1e6:.2f}",
        "huginn_position_mb": f"{kv_bytes_per_position(huginn.shape, huginn.precision) / 1e6:.2f}",
        "boundaries": _table(
            ("what", "fits up to", "reported to run", "reported to fail"),
            (
                (one.what, f"{one.longest:,}", _known(one.reported_fit), _known(one.reported_failure))
                for one in paper.boundaries()
            ),
        ),
        "sweep_alt": (
            "Predicted speedup over AR against the acceptance rate, Ouro and Huginn: WFD rises from rate to rate and "
            "is ahead of DtV almost everywhere; which draft length is DtV's best changes with the rate."
        ),
        "sweep_words": _sweep_words(),
    }


def _captured() -> dict[str, str]:
    """Gives where the time of a token goes, eager and captured, and what each part of it does to the speedup."""
    names = {"weights": "weights", "cells": "cells", "kernels": "kernels", "waiting": "waiting for launches"}
    lines = []
    for name, (setting, rate) in _settings().items():
        costs = {"AR": decoding.ar(setting), "WFD": decoding.wfd(setting, draft_depth=1, acceptance_rate=rate)}
        for decoder, cost in costs.items():
            parts = (f"{_MS * float(getattr(cost.seconds, part)):.1f}" for part in names)
            lines.append((f"{decoder}, {name}", *parts, f"{_MS * cost.seconds.total:.1f}"))
    captured, rate = _settings()["captured"]

    def gain(software: Software) -> str:
        one = replace(captured, software=software)
        return f"{analysis.wfd_speedup(one, draft_depth=1, acceptance_rate=rate):.2f}"

    return {
        "capture_table": _table(("ms a token", *names.values(), "all"), lines),
        "captured_short": gain(replace(captured.software, captured_cells=None)),
        "captured_in_place": gain(replace(captured.software, passes_over_cells=1.0)),
        "captured_free": gain(replace(captured.software, captured_cells=None, passes_over_cells=1.0)),
    }


def calibration_page(path: Path) -> str:
    """Gives the page that sets measured calls beside predicted ones, or says that none were measured yet."""
    note = "<!-- Written by docs/generate/cost.py; change it there. -->\n\n"
    title = (
        "# How far off is the model on a CPU?\n\n"
        "What one machine was measured to do, against recurrent calls timed on it. The model is one core layer of "
        "Huginn-3.5B with random weights, more than any cache holds, so they come from memory. Nothing is fitted to "
        "the calls: the machine is measured on matrices and cells of other shapes.\n\n"
    )
    how = (
        "To measure it on yours, about two minutes with nothing else running:\n\n"
        "```sh\nwfd cost calibrate --context 512 --seconds 100 --output calibration.json\n```\n\n"
        "`wfd cost measure` measures the machine alone, in 20 seconds, for `--hardware`. With `--device cuda` it "
        "measures a GPU the same way, with events on the device for a clock; that path has not been run on a GPU yet.\n"
        "\nYou can now tell by how much a prediction for a CPU of yours may be off, and on which side.\n"
    )
    if not path.exists():
        return f"{note}{title}No measurement is committed yet.\n\n{how}"
    found = read(path)
    return f"{note}{title}{_measured(found)}\n\n{how}"


def _measured(found: Calibration) -> str:
    peaks = ", ".join(f"{peak / 1e9:.0f} GFLOP/s in {name}" for name, peak in found.peak_flops_per_second.items())
    errors = [abs(call.error) for call in found.calls]
    bare = [abs(call.roofline_error) for call in found.calls]
    calls = _table(
        ("type", "rows", "slots", "measured ms", "predicted ms", "error", "roofline alone"),
        (
            (
                call.dtype,
                str(call.rows),
                "shared" if call.is_shared else "own",
                f"{_MS * call.measured_seconds:.1f}",
                f"{_MS * call.predicted_seconds:.1f}",
                f"{100 * call.error:+.0f}%",
                f"{100 * call.roofline_error:+.0f}%",
            )
            for call in found.calls
        ),
    )
    streams = (("weights", found.weight_bytes_per_second), ("cells", found.cell_bytes_per_second))
    rows = list(next(iter(found.weight_bytes_per_second.values())))
    rates = _table(
        ("GB/s", *(f"{number} row{'s' * (number != '1')}" for number in rows)),
        (
            (f"{what}, {dtype}", *(f"{of[number] / 1e9:.1f}" if number in of else "" for number in rows))
            for what, by_dtype in streams
            for dtype, of in by_dtype.items()
        ),
    )
    fp32, bf16 = (found.weight_bytes_per_second[name] for name in ("fp32", "bf16"))
    return (
        f"**Mean error without its sign: {100 * sum(errors) / len(errors):.0f}%, largest: {100 * max(errors):.0f}%. "
        f"From bandwidth, peak and launches alone, without the rates at few rows: {100 * sum(bare) / len(bare):.0f}% "
        f"and {100 * max(bare):.0f}%.**\n\n{calls}\n\n"
        f"Context {found.context}; {found.machine}. Calls and measurements took turns while other programs ran; each "
        "number is a median of the processor's time, so trust ratios before milliseconds.\n\n"
        "## What was measured of the machine\n\n"
        f"{peaks}, {1e6 * found.launch_seconds:.1f} µs for an operation on almost nothing, and what products with few "
        f"rows get through:\n\n{rates}\n\n"
        "A bandwidth and a peak do not say this. In fp32 one row is a product with a vector, which reads a matrix as "
        "fast as memory gives it; from two rows on another kernel takes over, and 16 rows take "
        f"{fp32['1'] / fp32['16']:.1f} times as long as one. In bf16 the library (oneDNN, on AMX) takes about as long "
        f"for one row ({bf16['1'] / 1e9:.1f} GB/s) as for 16 ({bf16['16'] / 1e9:.1f} GB/s), probably since it "
        "rearranges every matrix for its tiles of 16 rows in every call. So further rows are free on it in bf16, "
        "where one row is already dear, and not in fp32.\n\n"
        "Attention is measured as a wavefront's, 16 slots in one product: in bf16 the library takes twice as long for "
        "one product of hundreds of small matrices as for the same in pieces. That came to light in a first comparison "
        "with these calls, after which the measurement was given this shape; it is all that was learnt from them."
    )


def _settings() -> Mapping[str, tuple[Setting, float]]:
    eager, captured = paper.paper_setting(paper.OURO), paper.paper_setting(paper.OURO, software=paper.CAPTURED)
    return {"eager": (eager, 1.0), "captured": (captured, 1.0)}


def _breakdown() -> Figure:
    bars = {}
    for name, (setting, rate) in _settings().items():
        bars[f"AR, {name}"] = decoding.ar(setting).seconds
        bars[f"WFD, {name}"] = decoding.wfd(setting, draft_depth=1, acceptance_rate=rate).seconds
    return plots.breakdown(bars, title="Ouro-2.6B on an RTX A6000, every draft right")


def _breakdown_words() -> str:
    waits = []
    for setting, _ in _settings().values():
        cost = decoding.ar(setting).seconds
        waits.append(cost.waiting / cost.total)
    return (
        f"Where the time of a token of Ouro-2.6B goes: eager AR waits for launches {100 * waits[0]:.0f}% of its time, "
        "captured AR mostly for weights; WFD divides both, and reads more KV cells."
    )


def _sweep() -> Figure:
    panels = {}
    for model, title in ((paper.OURO, "Ouro-2.6B, d = 1"), (paper.HUGINN, "Huginn-3.5B, d = 4")):
        columns = list(zip(*paper.sweep(model), strict=True))
        names = [*(f"DtV, gamma = {length}" for length in paper.SWEPT_LENGTHS), "WFD"]
        panels[title] = dict(zip(names, columns, strict=True))
    return plots.lines(panels, paper.SWEPT_RATES, across="acceptance rate", up="speedup over AR")


def _sweep_words() -> str:
    said = []
    for model, name in ((paper.OURO, "Ouro"), (paper.HUGINN, "Huginn")):
        swept = paper.sweep(model)
        best = [max(range(len(line) - 1), key=line.__getitem__) for line in swept]
        lengths = [paper.SWEPT_LENGTHS[index] for index in best]
        leads = [line[-1] / max(line[:-1]) - 1 for line in swept]
        said.append(
            f"On {name} the best of DtV's draft lengths goes from {lengths[0]} to {lengths[-1]} as the rate rises, and "
            f"WFD is between {100 * min(leads):+.0f}% and {100 * max(leads):+.0f}% from the best of them."
        )
    return "\n".join(said) + (
        " In ticks WFD is never behind (WFD-14); in time it is where a restart costs more than a short round: its wave "
        "copies the cells of every slot that it reads, a verification reads one."
    )


def _svg(figure: Figure) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        plots.save(figure, path)
        return "\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()) + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _crossing(crossing: analysis.Crossing) -> str:
    return f"{crossing.value:,}" if crossing.value is not None else f"none up to {crossing.searched:,}"


def _known(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"

"""The page of the walk on time: one recurrent call of a published model on a published machine, priced.

Everything comes from `reference.cost`: bytes and operations from the model's shape, seconds from the machine's
datasheet and from the overheads that reported runs imply.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from reference.cost import paper
from reference.cost.latency import FUSED, RESEARCH, Seconds, Setting, Software
from reference.cost.machines import machine
from reference.cost.shapes import Part
from reference.cost.work import Call, Group, work_of
from reference.figures.bars import Bar, bars
from reference.figures.canvas import Words

_ROWS: Final = (1, 2, 4, 8)
_PROGRAMS: Final = {
    FUSED: "One captured graph, fused kernels",
    RESEARCH: "Eager code, every kernel launched from Python",
}
_MS: Final = 1000.0


def values() -> dict[str, str]:
    """Gives all that the pages say of a call's time, by its name there."""
    one = paper.paper_setting(paper.OURO)
    shape, device, losses = one.shape, one.machine, paper.overheads()
    work = work_of(_call(one, 1), shape, one.precision)
    peak, bandwidth = device.peak(one.precision.name), device.bandwidth_bytes_per_second
    layer = sum(fan_in * fan_out for fan_in, fan_out in shape.layer_matrices)
    cell_bytes = shape.kv_size * one.precision.cell_bytes
    graph, eager = (_milliseconds(program, 1) for program in _PROGRAMS)
    graph_full, eager_full = (_milliseconds(program, shape.recurrence_depth) for program in _PROGRAMS)
    return {
        "call_layers": str(shape.recurrent_layers),
        "call_hidden": str(shape.hidden_size),
        "call_inner": str(shape.intermediate_size),
        "call_heads": str(shape.num_kv_heads),
        "call_head_dim": str(shape.head_dim),
        "call_depth": str(shape.recurrence_depth),
        "call_context": str(one.context),
        "call_layer_million": f"{layer / 1e6:.1f}",
        "call_weights_gb": f"{work.weight_bytes / 1e9:.2f}",
        "call_cell_kib": f"{cell_bytes / 1024:.0f}",
        "call_cells_gb": f"{work.kv_read_bytes / 1e9:.2f}",
        "call_gflop": f"{work.flops / 1e9:.2f}",
        "call_bandwidth": f"{bandwidth / 1e9:.0f}",
        "call_peak": f"{peak / 1e12:.1f}",
        "call_weights_ms": f"{_MS * work.weight_bytes / bandwidth:.2f}",
        "call_cells_ms": f"{_MS * work.kv_read_bytes / bandwidth:.2f}",
        "call_flops_ms": f"{_MS * work.flops / peak:.2f}",
        "call_bytes_ms": f"{_MS * (work.weight_bytes + work.kv_read_bytes) / bandwidth:.1f}",
        "call_ridge": f"{device.ridge_flops_per_byte(one.precision.name):.0f}",
        "call_intensity": f"{work.intensity_flops_per_byte:.1f}",
        "call_idle": f"{100 * (1 - work.intensity_flops_per_byte * bandwidth / peak):.1f}",
        "call_efficiency": f"{100 * losses.bandwidth_efficiency:.0f}",
        "call_kernel_us": f"{1e6 * losses.kernel_seconds:.1f}",
        "call_launch_us": f"{1e6 * losses.launch_seconds:.1f}",
        "call_kernels_graph": f"{FUSED.num_kernels(_call(one, 1), shape):,.0f}",
        "call_kernels_eager": f"{RESEARCH.num_kernels(_call(one, 1), shape):,.0f}",
        "call_graph_ms": f"{graph:.1f}",
        "call_eager_ms": f"{eager:.1f}",
        "call_waiting_ms": f"{_MS * _seconds(RESEARCH, 1).waiting:.1f}",
        "call_four_ms": f"{graph_full:.1f}",
        "call_four_serial_ms": f"{shape.recurrence_depth * graph:.1f}",
        "call_gain": f"{shape.recurrence_depth * graph / graph_full:.1f}",
        "call_row_ms": f"{(graph_full - graph) / (shape.recurrence_depth - 1):.2f}",
        "call_width_graph": f"{graph_full / graph:.2f}",
        "call_width_eager": f"{eager_full / eager:.2f}",
        "call_balance": f"{work.weight_bytes / (cell_bytes * shape.recurrent_layers):,.0f}",
        "call_ridge_other": f"{machine('h100').ridge_flops_per_byte(one.precision.name):.0f}",
        "call_table": "\n".join(_table()),
        "call_alt": (
            "Bars of the time of one recurrent call with "
            f"{', '.join(map(str, _ROWS[:-1]))} and {_ROWS[-1]} rows. As a captured graph: from {graph:.1f} to "
            f"{_milliseconds(FUSED, _ROWS[-1]):.1f} milliseconds, nearly all of it weights. As eager code: from "
            f"{eager:.1f} to {_milliseconds(RESEARCH, _ROWS[-1]):.1f} milliseconds, most of it waiting for launches."
        ),
    }


def run_speedup(rows: Sequence[int], *, num_single: int) -> tuple[str, str]:
    """Gives by what factor calls with so many rows are faster than `num_single` calls with one, captured and eager."""
    graph, eager = (
        num_single * _milliseconds(program, 1) / sum(_milliseconds(program, number) for number in rows)
        for program in _PROGRAMS
    )
    return f"{graph:.2f}", f"{eager:.2f}"


def figures(said: Mapping[str, str]) -> dict[str, str]:
    """Gives the picture of the page, by its name."""
    groups = {
        title: [Bar(_counted(rows), _parts(_seconds(program, rows))) for rows in _ROWS]
        for program, title in _PROGRAMS.items()
    }
    return {"call": bars(groups, Words("Where the time of a call goes", said["call_alt"]), unit="ms", every=10.0)}


def _parts(seconds: Seconds) -> dict[str, float]:
    assert seconds.compute == 0.0, "the page says that arithmetic hides behind the bytes"
    return {
        "weights": _MS * seconds.weights,
        "KV cells": _MS * seconds.cells,
        "kernels, beside bytes": _MS * seconds.kernels,
        "waiting for launches": _MS * seconds.waiting,
    }


def _table() -> list[str]:
    lines = ["| rows | captured: a call | a row | eager: a call | a row |", "| ---: | ---: | ---: | ---: | ---: |"]
    for rows in _ROWS:
        calls = [_milliseconds(program, rows) for program in _PROGRAMS]
        lines.append(f"| {rows} | " + " | ".join(f"{call:.1f} | {call / rows:.1f}" for call in calls) + " |")
    return lines


def _setting(program: Software) -> Setting:
    return paper.paper_setting(paper.OURO, software=program)


def _seconds(program: Software, rows: int) -> Seconds:
    """Times a recurrent call of rows with a slot each."""
    return _setting(program).call(Part.RECURRENT, (float(rows), 1.0))


def _milliseconds(program: Software, rows: int) -> float:
    return _MS * _seconds(program, rows).total


def _call(setting: Setting, rows: int) -> Call:
    return Call(Part.RECURRENT, (Group(1.0, float(setting.context), count=float(rows)),))


def _counted(rows: int) -> str:
    return f"{rows} row" + "s" * (rows != 1)

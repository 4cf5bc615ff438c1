"""The tables of `wfd cost`, and the lines around them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table
from rich.text import Text

from reference.cli.cost_setting import Swept
from reference.cost import analysis, paper
from reference.cost.decoding import TokenCost
from reference.cost.fleet import Decoder, Decoding, Fleet
from reference.cost.latency import Setting

if TYPE_CHECKING:
    from reference.bench.calibrate import Calibration

NAMES: Final = MappingProxyType({Decoder.AR.value: "AR", Decoder.DTV.value: "DtV", Decoder.WFD.value: "WFD"})
"""What tables and plots call the decoders."""


def words(setting: Setting, way: Decoding) -> str:
    """Says what runs where."""
    mean = "" if setting.average_depth is None else f" ({setting.average_depth:g} on average)"
    slots = "own slots" if setting.recurrence_slots is None else f"{setting.recurrence_slots} shared slots"
    return (
        f"{setting.shape.name} in {setting.precision.name} on {setting.machine.name}, {setting.software.name} code\n"
        f"T = {setting.shape.recurrence_depth}{mean}, d = {way.draft_depth}, gamma = {way.draft_length}, "
        f"alpha = {way.acceptance_rate:g}, context {setting.context}, batch {setting.batch}, {slots}"
    )


def costs(of: Mapping[str, TokenCost]) -> Table:
    """Sets decoders side by side, and what their time goes into."""
    headings = ("ms/\ntoken", "speed-\nup", "ticks/\ntoken", "rows/\ntick")
    table = _empty_table("", *headings, "weights\nms", "cells\nms", "arith.\nms", "kernels\nms", "waiting\nms")
    plain = of[Decoder.AR.value].seconds.total
    for name, cost in of.items():
        time = cost.seconds
        parts = (time.weights, time.cells, time.compute, time.kernels, time.waiting)
        table.add_row(
            NAMES[name],
            f"{1000 * time.total:.2f}",
            f"{plain / time.total:.2f}",
            f"{cost.ticks:.2f}",
            f"{cost.rows_per_tick:.2f}",
            *(f"{1000 * part:.2f}" for part in parts),
        )
    return table


def remarks(setting: Setting, way: Decoding) -> list[str]:
    """Says what the table cannot show."""
    rate = analysis.break_even_rate(setting, draft_depth=way.draft_depth)
    best = analysis.best_draft_length(setting, draft_depth=way.draft_depth, acceptance_rate=way.acceptance_rate)
    gain = (
        "WFD is no faster than AR at any acceptance rate"
        if rate is None
        else f"WFD is faster than AR above alpha = {rate:.2f}"
    )
    longest = setting.longest_context
    room = f"{longest:,} positions fit into memory" if longest else "this does not fit into memory"
    return [
        f"{gain} (one sequence). DtV's best gamma here is {best}; {room}.",
        f"Losses: {setting.machine.overheads.origin}.",
        f"Kernels: {setting.software.origin}.",
    ]


def swept(name: str, of: Swept) -> Table:
    """Lists speedups by what was varied, and says where they are of a setting that the device cannot hold."""
    table = _empty_table(name, "DtV", "WFD", "")
    for value, point in of.items():
        remark = "" if point.fits else "does not fit into memory"
        table.add_row(f"{value:g}", f"{point.dtv:.2f}", f"{point.wfd:.2f}", Text(remark, style="red"))
    return table


def calibration(found: "Calibration") -> Table:
    """Sets measured calls beside predicted ones."""
    table = _empty_table("type", "rows", "slots", "measured ms", "predicted ms", "error")
    for call in found.calls:
        table.add_row(
            call.dtype,
            str(call.rows),
            "shared" if call.is_shared else "own",
            f"{1000 * call.measured_seconds:.1f}",
            f"{1000 * call.predicted_seconds:.1f}",
            f"{call.error:+.0%}",
        )
    return table


def speedups(rows: Sequence[paper.Row]) -> Table:
    """Sets reported speedups beside predicted ones."""
    table = _empty_table("", "alpha", "reported", "predicted", "error")
    for row in rows:
        marked = "red" if abs(row.error) > paper.MISS else ""
        numbers = (f"{row.acceptance_rate:.2f}", f"{row.reported:.2f}", f"{row.predicted:.2f}")
        table.add_row(f"{row.what}, {row.decoder}", *numbers, Text(f"{row.error:+.0%}", style=marked))
    return table


def boundaries(found: Sequence[paper.Boundary]) -> Table:
    """Sets contexts that fit beside those that are reported to run and to fail."""
    table = _empty_table("", "fits up to", "reported to run", "reported to fail")
    for one in found:
        reported = (one.reported_fit, one.reported_failure)
        table.add_row(one.what, f"{one.longest:,}", *("-" if value is None else f"{value:,}" for value in reported))
    return table


def fleets(needed: Mapping[str, Fleet]) -> Table:
    """Sets the fleets of the decoders side by side."""
    table = _empty_table("", "devices", "ms/token", "device-seconds/request", "joules/token")
    for name, one in needed.items():
        table.add_row(
            NAMES[name],
            f"{one.devices:,}",
            f"{1000 * one.seconds_per_token:.2f}",
            f"{one.seconds_per_request:.2f}",
            "-" if one.joules_per_token is None else f"{one.joules_per_token:.2f}",
        )
    return table


def _empty_table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    return table

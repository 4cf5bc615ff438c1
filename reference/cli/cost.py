"""`wfd cost`: what a decoder would gain on a model and a machine, with neither of them at hand.

It has arguments of its own, so it is kept apart from the commands that decode. The tensor library is loaded only to
read a model's configuration or to measure, matplotlib only to draw.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from reference.cli import cost_tables as tables
from reference.cli.cost_arguments import CostArguments
from reference.cli.cost_setting import Swept, setting_of, sweep, ways_of
from reference.cost import paper
from reference.cost.fleet import Decoder, fleet
from reference.cost.latency import Seconds
from reference.errors import ParameterError


def run(given: CostArguments) -> int:
    """Runs the command; gives the exit code.

    Raises:
        ParameterError: If an argument breaks a rule.
        CheckpointError: If a model's configuration is at fault.
        OSError: If a file cannot be read or written.
    """
    console = Console(highlight=False)
    match given.action:
        case "paper":
            _paper(console, given)
        case "fleet":
            _fleet(console, given)
        case "measure":
            _measure(given)
        case "calibrate":
            _calibrate(console, given)
        case _:
            _predict(console, given)
    return 0


def _predict(console: Console, given: CostArguments) -> None:
    setting = setting_of(given)
    ways = ways_of(given, setting.shape)
    costs = {way.decoder.value: way.cost(setting) for way in ways}
    plain = costs[Decoder.AR.value].seconds.total
    swept = {name: sweep(name, given) for name in given.sweep}
    if given.json:
        records = {
            name: {**asdict(cost), "seconds_per_token": cost.seconds.total, "speedup": plain / cost.seconds.total}
            for name, cost in costs.items()
        }
        speedups = {
            name: [{"value": value, **point._asdict()} for value, point in of.items()] for name, of in swept.items()
        }
        _print_json({"setting": tables.words(setting, ways[-1]), "decoders": records, "speedups": speedups})
    else:
        console.print(Text(tables.words(setting, ways[-1]), style="bold"))
        console.print()
        console.print(tables.costs(costs))
        console.print()
        for line in tables.remarks(setting, ways[-1]):
            console.print(Text(line, style="dim"))
        for name, of in swept.items():
            console.print(Text(f"\nSpeedup over AR by {name}", style="bold"))
            console.print(tables.swept(name, of))
    if given.plots is not None:
        bars = {tables.NAMES[name]: cost.seconds for name, cost in costs.items()}
        _draw(given.plots, bars, swept, title=f"{given.model} on {given.hardware}")


def _draw(folder: Path, bars: Mapping[str, Seconds], swept: Mapping[str, Swept], *, title: str) -> None:
    try:
        from reference.cost import plots  # noqa: PLC0415 - loads matplotlib, which not everybody has
    except ImportError as error:
        raise ParameterError("--plots needs matplotlib: pip install 'looped-reference[plots]'") from error
    folder.mkdir(parents=True, exist_ok=True)
    plots.save(plots.breakdown(bars, title="Where the time of a token goes"), folder / "breakdown.svg")
    for name, of in swept.items():
        figure = plots.lines(
            {title: {"DtV": [point.dtv for point in of.values()], "WFD": [point.wfd for point in of.values()]}},
            list(of),
            across=name,
            up="speedup over AR",
            is_logarithmic=name not in {"acceptance", "average-depth"},
        )
        plots.save(figure, folder / f"{name}.svg")
    sys.stderr.write(f"wfd: plots are in {folder}\n")


def _paper(console: Console, given: CostArguments) -> None:
    rows = paper.rows()
    if given.json:
        _print_json(
            [
                {
                    "what": row.what,
                    "decoder": row.decoder,
                    "acceptance_rate": row.acceptance_rate,
                    "reported": row.reported,
                    "predicted": row.predicted,
                    "error": row.error,
                    "why": paper.explanation(row),
                }
                for row in rows
            ]
        )
        return
    console.print(Text("Speedups over AR, one RTX A6000, bf16, batch 1", style="bold"))
    console.print()
    console.print(tables.speedups(rows))
    console.print()
    console.print(tables.boundaries(paper.boundaries()))
    console.print()
    console.print(Text("Assumed:", style="dim"))
    for assumption in paper.ASSUMPTIONS:
        console.print(Text(f"- {assumption}", style="dim"))


def _fleet(console: Console, given: CostArguments) -> None:
    setting = setting_of(given)
    needed = {way.decoder.value: fleet(setting, way, given.load) for way in ways_of(given, setting.shape)}
    if given.json:
        _print_json({"on_paper_only": True, "decoders": {name: asdict(one) for name, one in needed.items()}})
        return
    load = given.load
    console.print(Text("On paper only: no such service was run.", style="bold"))
    console.print(
        f"{load.requests_per_second:g} requests a second, {load.prompt_tokens} + {load.new_tokens} tokens each, "
        f"{setting.shape.name} on {setting.machine.name}, batches of {setting.batch}\n"
    )
    console.print(tables.fleets(needed))
    console.print(
        Text("\nDevices are busy all the time; queues, failures and everything but boards are left out.", style="dim")
    )


def _measure(given: CostArguments) -> None:
    from reference.cost.measure import Effort, device_of, measure, to_json  # noqa: PLC0415 - loads the tensor library

    effort = Effort(seconds=given.seconds, matrix_bytes=given.matrix_bytes)
    measured = to_json(measure(effort, threads=given.threads, device=device_of(given.device)))
    if given.output is None:
        sys.stdout.write(measured)
    else:
        given.output.write_text(measured, encoding="utf-8")


def _calibrate(console: Console, given: CostArguments) -> None:
    from reference.bench.calibrate import calibrate, write  # noqa: PLC0415 - loads the tensor library
    from reference.cost.measure import Effort  # noqa: PLC0415

    effort = Effort(seconds=given.seconds, matrix_bytes=given.matrix_bytes)
    found = calibrate(effort, threads=given.threads, context=given.context)
    console.print(tables.calibration(found))
    if given.output is not None:
        write(found, given.output)


def _print_json(values: object) -> None:
    sys.stdout.write(json.dumps(values, indent=2) + "\n")

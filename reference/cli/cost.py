"""`wfd cost`: what a decoder would gain on a model and a machine, with neither of them at hand.

It has arguments of its own, so it is kept apart from the commands that decode. The tensor library is loaded only to
read a model's configuration or to measure, matplotlib only to draw.
"""

import json
import sys
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reference.cli.arguments import Parser
from reference.cost import analysis, paper
from reference.cost.acceptance import check_rate
from reference.cost.decoding import TokenCost
from reference.cost.fleet import Decoder, Decoding, Load, fleet
from reference.cost.latency import SOFTWARE, Setting, software_of
from reference.cost.machines import MACHINES, Machine, machine
from reference.cost.memory import longest_context
from reference.cost.shapes import PRESETS, LoopedShape
from reference.cost.work import PRECISIONS, precision_of
from reference.errors import ParameterError
from reference.schedule import check_draft_depth, default_draft_depth

if TYPE_CHECKING:
    from reference.bench.calibrate import Calibration
    from reference.cost.measure import Effort

ACTIONS: Final = ("predict", "paper", "fleet", "measure", "calibrate")
"""What the command can do."""

SWEEPS: Final = ("draft-depth", "draft-length", "acceptance", "batch", "context")
"""What can be varied."""

_DESCRIPTION: Final = """\
Predict seconds per token of AR, DtV and WFD from a model's sizes and a
machine's figures.

  predict    (default) a table for one setting; --sweep varies parts of it
  paper      the figures reported for WFD, predicted, side by side
  fleet      devices that a load would need; on paper only
  measure    measure this machine's CPU, for --hardware
  calibrate  measure recurrent calls on this machine's CPU and predict them"""

_EXAMPLES: Final = """\
examples:
  wfd cost --model ouro-2.6b --hardware a6000 --alpha 0.92 --context 1024
  wfd cost --model huginn-3.5b --slots 4 --sweep batch,context --plots plots
  wfd cost paper
  wfd cost measure --output mine.json && wfd cost --hardware mine.json --dtype fp32"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostArguments:
    """The command line, understood."""

    action: str
    """One of `ACTIONS`."""
    model: str
    """A published model, a shipped one, or a folder."""
    hardware: str
    """A machine of the table, or a file that `measure` wrote."""
    software: str
    """How calls are run."""
    is_captured: bool
    """Whether calls are captured graphs."""
    dtype: str
    """Type of weights, states and cells."""
    acceptance_rate: float
    """alpha."""
    draft_depth: int | None
    """d; None leaves it to the model's T."""
    draft_length: int
    """gamma."""
    recurrence_depth: int | None
    """T; None is the model's own."""
    context: int
    """Cells that a row attends to."""
    batch: int
    """Sequences together."""
    slots: int | None
    """s: slots that recurrences share; None is one each."""
    sweep: tuple[str, ...]
    """What to vary."""
    plots: Path | None
    """Folder for plots."""
    json: bool
    """Whether to print JSON."""
    load: Load
    """What is asked of a fleet."""
    output: Path | None
    """File for a measurement."""
    seconds: float
    """How long to measure."""
    threads: int
    """Threads to measure with."""
    matrix_bytes: int
    """Size of the matrix to measure with."""


def parse(words: Sequence[str]) -> CostArguments:
    """Understands the command line.

    Raises:
        SystemExit: With code 2 if it makes no sense, and with 0 after `--help`.
    """
    given = _parser().parse_args(words)
    return CostArguments(
        action=given.action,
        model=given.model,
        hardware=given.hardware,
        software=given.software,
        is_captured=given.captured,
        dtype=given.dtype,
        acceptance_rate=given.alpha,
        draft_depth=given.draft_depth,
        draft_length=given.draft_length,
        recurrence_depth=given.recurrence_depth,
        context=given.context,
        batch=given.batch,
        slots=given.slots,
        sweep=given.sweep,
        plots=given.plots,
        json=given.json,
        load=Load(
            requests_per_second=given.requests_per_second,
            prompt_tokens=given.prompt_tokens,
            new_tokens=given.new_tokens,
        ),
        output=given.output,
        seconds=given.seconds,
        threads=given.threads,
        matrix_bytes=given.matrix_mb * 2**20,
    )


def _parser() -> Parser:
    parser = Parser(
        prog="wfd cost", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="predict", help="what to do; default: predict")
    what = parser.add_argument_group("what runs where")
    models = f"{', '.join(PRESETS)}, tiny-ouro, tiny-huginn, or a folder with a config.json; default: ouro-2.6b"
    what.add_argument("--model", default="ouro-2.6b", metavar="NAME|FOLDER", help=models)
    known = f"{', '.join(MACHINES)}, or a file from `measure`; default: a6000"
    what.add_argument("--hardware", default="a6000", metavar="NAME|FILE", help=known)
    what.add_argument("--software", choices=tuple(SOFTWARE), default="research", help="how calls are run")
    what.add_argument("--captured", action="store_true", help="calls are captured as graphs; `fused` always is")
    what.add_argument("--dtype", choices=tuple(PRECISIONS), default="bf16", help="type of numbers; default: bf16")
    what.add_argument("--context", type=_positive, default=500, metavar="N", help="mean context; default: 500")
    what.add_argument("--batch", type=_positive, default=1, metavar="B", help="sequences together; default: 1")
    what.add_argument("--slots", type=_positive, metavar="S", help="KV slots that recurrences share; default: one each")

    how = parser.add_argument_group("how tokens are decoded")
    how.add_argument("--alpha", type=_rate, default=0.9, metavar="A", help="acceptance rate; default: 0.9")
    how.add_argument("--draft-depth", type=_positive, metavar="D", help="d; default: max(1, T // 8)")
    how.add_argument("--draft-length", type=_positive, default=8, metavar="G", help="gamma of DtV; default: 8")
    how.add_argument("--recurrence-depth", type=_positive, metavar="T", help="T; default: the model's own")

    out = parser.add_argument_group("what comes out")
    out.add_argument("--sweep", type=_sweeps, default=(), metavar="WHAT,...", help=f"vary any of {', '.join(SWEEPS)}")
    out.add_argument("--plots", type=Path, metavar="FOLDER", help="save plots here; needs the extra `plots`")
    out.add_argument("--json", action="store_true", help="print JSON instead of tables")

    load = parser.add_argument_group("fleet")
    load.add_argument("--requests-per-second", type=float, default=100.0, metavar="R", help="default: 100")
    load.add_argument("--prompt-tokens", type=_positive, default=500, metavar="P", help="default: 500")
    load.add_argument("--new-tokens", type=_positive, default=500, metavar="N", help="default: 500")

    own = parser.add_argument_group("measure and calibrate")
    own.add_argument("--output", type=Path, metavar="FILE", help="write what was measured here, as JSON")
    own.add_argument("--seconds", type=float, default=20.0, metavar="S", help="about how long to measure; default: 20")
    own.add_argument("--matrix-mb", type=_positive, default=1024, metavar="M", help="matrix, in MiB; default: 1024")
    own.add_argument("--threads", type=_positive, default=1, metavar="N", help="threads to measure with; default: 1")
    return parser


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
    setting, ways = _setting(given), _ways(given, _shape(given))
    costs = {way.decoder.value: way.cost(setting) for way in ways}
    plain = costs[Decoder.AR.value].seconds.total
    if given.json:
        records = {
            name: {**asdict(cost), "seconds_per_token": cost.seconds.total, "speedup": plain / cost.seconds.total}
            for name, cost in costs.items()
        }
        _print_json({"setting": _words(setting, ways[-1]), "decoders": records})
    else:
        console.print(Text(_words(setting, ways[-1]), style="bold"))
        console.print()
        console.print(_cost_table(costs))
        console.print()
        for line in _remarks(setting, ways[-1]):
            console.print(Text(line, style="dim"))
        for name in given.sweep:
            console.print(Text(f"\nSpeedup over AR by {name}", style="bold"))
            console.print(_sweep_table(name, _sweep(name, given)))
    if given.plots is not None:
        _draw(given, {name.upper(): cost for name, cost in costs.items()})


def _setting(given: CostArguments) -> Setting:
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
    if given.hardware == "a6000":
        return paper.paper_machine()  # the one machine whose losses are known from reported runs
    return machine(given.hardware)


def _ways(given: CostArguments, shape: LoopedShape) -> tuple[Decoding, ...]:
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


def _words(setting: Setting, way: Decoding) -> str:
    slots = "own slots" if setting.recurrence_slots is None else f"{setting.recurrence_slots} shared slots"
    return (
        f"{setting.shape.name} in {setting.precision.name} on {setting.machine.name}, {setting.software.name} code\n"
        f"T = {setting.shape.recurrence_depth}, d = {way.draft_depth}, gamma = {way.draft_length}, "
        f"alpha = {way.acceptance_rate:g}, context {setting.context}, batch {setting.batch}, {slots}"
    )


def _cost_table(costs: dict[str, TokenCost]) -> Table:
    headings = ("ms/\ntoken", "speed-\nup", "ticks/\ntoken", "rows/\ntick")
    table = _empty_table("", *headings, "weights\nms", "cells\nms", "arith.\nms", "kernels\nms", "waiting\nms")
    plain = costs[Decoder.AR.value].seconds.total
    for name, cost in costs.items():
        time = cost.seconds
        parts = (time.weights, time.cells, time.compute, time.kernels, time.waiting)
        table.add_row(
            {"ar": "AR", "dtv": "DtV", "wfd": "WFD"}[name],
            f"{1000 * time.total:.2f}",
            f"{plain / time.total:.2f}",
            f"{cost.ticks:.2f}",
            f"{cost.rows_per_tick:.2f}",
            *(f"{1000 * part:.2f}" for part in parts),
        )
    return table


def _remarks(setting: Setting, way: Decoding) -> list[str]:
    rate = analysis.break_even_rate(setting, draft_depth=way.draft_depth)
    best = analysis.best_draft_length(setting, draft_depth=way.draft_depth, acceptance_rate=way.acceptance_rate)
    longest = longest_context(
        setting.shape,
        setting.precision,
        memory_bytes=setting.machine.memory_bytes,
        batch=setting.batch,
        recurrence_slots=setting.recurrence_slots,
    )
    gain = (
        "WFD is no faster than AR at any acceptance rate"
        if rate is None
        else f"WFD is faster than AR above alpha = {rate:.2f}"
    )
    room = f"{longest:,} positions fit into memory" if longest else "this does not fit into memory"
    return [
        f"{gain} (one sequence). DtV's best gamma here is {best}; {room}.",
        f"Losses: {setting.machine.overheads.origin}.",
        f"Kernels: {setting.software.origin}.",
    ]


def _sweep(name: str, given: CostArguments) -> dict[float, tuple[float, ...]]:
    """Gives the speedups of DtV and WFD over AR for each value of what is varied."""
    depth = _shape(given).recurrence_depth
    values: dict[str, tuple[float, ...]] = {
        "draft-depth": tuple(value for value in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if value <= depth),
        "draft-length": (1, 2, 4, 8, 16, 32),
        "acceptance": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0),
        "batch": tuple(2**power for power in range(9)),
        "context": tuple(2**power for power in range(7, 17)),
    }
    changes: dict[str, Callable[[float], CostArguments]] = {
        "draft-depth": lambda value: replace(given, draft_depth=int(value)),
        "draft-length": lambda value: replace(given, draft_length=int(value)),
        "acceptance": lambda value: replace(given, acceptance_rate=float(value)),
        "batch": lambda value: replace(given, batch=int(value)),
        "context": lambda value: replace(given, context=int(value)),
    }
    swept = {}
    for value in values[name]:
        varied = changes[name](value)
        setting = _setting(varied)
        plain, *others = (way.cost(setting).seconds.total for way in _ways(varied, setting.shape))
        swept[float(value)] = tuple(plain / other for other in others)
    return swept


def _sweep_table(name: str, swept: dict[float, tuple[float, ...]]) -> Table:
    table = _empty_table(name, "DtV", "WFD")
    for value, speedups in swept.items():
        table.add_row(f"{value:g}", *(f"{speedup:.2f}" for speedup in speedups))
    return table


def _draw(given: CostArguments, costs: dict[str, TokenCost]) -> None:
    assert given.plots is not None
    try:
        from reference.cost import plots  # noqa: PLC0415 - loads matplotlib, which not everybody has
    except ImportError as error:
        raise ParameterError("--plots needs matplotlib: pip install 'looped-reference[plots]'") from error
    given.plots.mkdir(parents=True, exist_ok=True)
    bars = {name: cost.seconds for name, cost in costs.items()}
    plots.save(plots.breakdown(bars, title="Where the time of a token goes"), given.plots / "breakdown.svg")
    for name in given.sweep:
        swept = _sweep(name, given)
        named = {title: [line[index] for line in swept.values()] for index, title in enumerate(("DtV", "WFD"))}
        figure = plots.lines(
            {f"{given.model} on {given.hardware}": named},
            list(swept),
            across=name,
            up="speedup over AR",
            is_logarithmic=name != "acceptance",
        )
        plots.save(figure, given.plots / f"{name}.svg")
    sys.stderr.write(f"wfd: plots are in {given.plots}\n")


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
    table = _empty_table("", "alpha", "reported", "predicted", "error")
    for row in rows:
        marked = "red" if abs(row.error) > paper.MISS else ""
        numbers = (f"{row.acceptance_rate:.2f}", f"{row.reported:.2f}", f"{row.predicted:.2f}")
        table.add_row(f"{row.what}, {row.decoder}", *numbers, Text(f"{row.error:+.0%}", style=marked))
    console.print(Text("Speedups over AR, one RTX A6000, bf16, batch 1", style="bold"))
    console.print()
    console.print(table)
    console.print()
    memory = _empty_table("", "fits up to", "reported to run", "reported to fail")
    for one in paper.boundaries():
        reported = (one.reported_fit, one.reported_failure)
        memory.add_row(one.what, f"{one.longest:,}", *("-" if value is None else f"{value:,}" for value in reported))
    console.print(memory)
    console.print()
    console.print(Text("Assumed:", style="dim"))
    for assumption in paper.ASSUMPTIONS:
        console.print(Text(f"- {assumption}", style="dim"))


def _fleet(console: Console, given: CostArguments) -> None:
    setting = _setting(given)
    needed = {way.decoder.value: fleet(setting, way, given.load) for way in _ways(given, setting.shape)}
    if given.json:
        _print_json({"on_paper_only": True, "decoders": {name: asdict(one) for name, one in needed.items()}})
        return
    load = given.load
    console.print(Text("On paper only: no such service was run.", style="bold"))
    console.print(
        f"{load.requests_per_second:g} requests a second, {load.prompt_tokens} + {load.new_tokens} tokens each, "
        f"{setting.shape.name} on {setting.machine.name}, batches of {setting.batch}\n"
    )
    table = _empty_table("", "devices", "ms/token", "device-seconds/request", "joules/token")
    for name, one in needed.items():
        joules = "-" if one.joules_per_token is None else f"{one.joules_per_token:.2f}"
        table.add_row(
            name.upper(),
            f"{one.devices:,}",
            f"{1000 * one.seconds_per_token:.2f}",
            f"{one.seconds_per_request:.2f}",
            joules,
        )
    console.print(table)
    console.print(
        Text("\nDevices are busy all the time; queues, failures and everything but boards are left out.", style="dim")
    )


def _measure(given: CostArguments) -> None:
    from reference.cost.measure import measure, to_json  # noqa: PLC0415 - loads the tensor library

    measured = to_json(measure(_effort(given), threads=given.threads))
    if given.output is None:
        sys.stdout.write(measured)
    else:
        given.output.write_text(measured, encoding="utf-8")


def _effort(given: CostArguments) -> "Effort":
    from reference.cost.measure import Effort  # noqa: PLC0415 - loads the tensor library

    return Effort(seconds=given.seconds, matrix_bytes=given.matrix_bytes)


def _calibrate(console: Console, given: CostArguments) -> None:
    from reference.bench.calibrate import calibrate, write  # noqa: PLC0415 - loads the tensor library
    from reference.cost.measure import measure  # noqa: PLC0415

    mine = measure(_effort(given), threads=given.threads)
    found = calibrate(mine, context=given.context)
    console.print(_calibration_table(found))
    if given.output is not None:
        write(found, given.output)


def _calibration_table(found: "Calibration") -> Table:
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


def _empty_table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    return table


def _print_json(values: object) -> None:
    sys.stdout.write(json.dumps(values, indent=2) + "\n")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        message = f"not a whole number of at least 1: {text!r}"
        raise ArgumentTypeError(message)
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
        check_rate(rate)
    except ValueError as error:
        message = f"not a rate from 0 to 1: {text!r}"
        raise ArgumentTypeError(message) from error
    return rate


def _sweeps(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in SWEEPS]
    if unknown:
        message = f"cannot vary {', '.join(unknown)}; any of {', '.join(SWEEPS)}"
        raise ArgumentTypeError(message)
    return names

"""What can be said to `wfd cost`. No torch: `--help` and mistakes answer at once."""

from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reference.cli.arguments import Parser
from reference.cost.acceptance import check_rate
from reference.cost.fleet import Load
from reference.cost.latency import SOFTWARE
from reference.cost.machines import MACHINES
from reference.cost.shapes import PRESETS
from reference.cost.work import PRECISIONS

ACTIONS: Final = ("predict", "paper", "fleet", "measure", "calibrate")
"""What the command can do."""

SWEEPS: Final = ("draft-depth", "draft-length", "acceptance", "batch", "context", "average-depth")
"""What can be varied."""

_DESCRIPTION: Final = """\
Predict seconds per token of AR, DtV and WFD from a model's sizes and a
machine's figures.

  predict    (default) a table for one setting; --sweep varies parts of it
  paper      the figures reported for WFD, predicted, side by side
  fleet      devices that a load would need; on paper only
  measure    measure this machine, for --hardware
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
    average_depth: float | None
    """D: mean depth at which runs halt; None is T."""
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
    device: str
    """What to measure: `cpu` or `cuda`."""
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
        average_depth=given.average_depth,
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
        device=given.device,
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
    how.add_argument("--average-depth", type=float, metavar="D", help="mean depth of runs that halt early; default: T")

    out = parser.add_argument_group("what comes out")
    out.add_argument("--sweep", type=_sweeps, default=(), metavar="WHAT,...", help=f"vary any of {', '.join(SWEEPS)}")
    out.add_argument("--plots", type=Path, metavar="FOLDER", help="save plots here; needs the extra `plots`")
    out.add_argument("--json", action="store_true", help="print JSON instead of tables")

    load = parser.add_argument_group("fleet")
    load.add_argument("--requests-per-second", type=_load, default=100.0, metavar="R", help="default: 100")
    load.add_argument("--prompt-tokens", type=_positive, default=500, metavar="P", help="default: 500")
    load.add_argument("--new-tokens", type=_positive, default=500, metavar="N", help="default: 500")

    own = parser.add_argument_group("measure and calibrate")
    own.add_argument("--output", type=Path, metavar="FILE", help="write what was measured here, as JSON")
    own.add_argument("--seconds", type=float, default=20.0, metavar="S", help="about how long to measure; default: 20")
    own.add_argument("--matrix-mb", type=_positive, default=1024, metavar="M", help="matrices, in MiB; default: 1024")
    own.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what to `measure`; default: cpu")
    own.add_argument("--threads", type=_positive, default=1, metavar="N", help="threads to measure with; default: 1")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        message = f"not a whole number of at least 1: {text!r}"
        raise ArgumentTypeError(message)
    return int(text)


def _load(text: str) -> float:
    try:
        Load(requests_per_second=float(text), prompt_tokens=1, new_tokens=1)
    except ValueError as error:
        message = f"not a finite number above 0: {text!r}"
        raise ArgumentTypeError(message) from error
    return float(text)


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

"""`wfd check`: judges somebody else's tokens, the trace of somebody else's schedule, or answers to the vectors.

It has arguments and exit codes of its own, so it is kept apart from the commands that decode. Torch is loaded only
where there is something to judge.
"""

import json
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from reference.cli.arguments import DECODERS, Parser
from reference.errors import ParameterError

_CODES: Final = """\
exit codes:
  0  exact
  1  wrong
  2  arguments or files are at fault
  3  near ties only"""

_DESCRIPTION: Final = """\
Judge another implementation: its tokens, the trace of its schedule, or its
answers to the conformance vectors. Says exact, near_tie or wrong, and names
the first place and the clause."""

_TOKENS: Final = """\
Judge tokens. FILE has one JSON object a line:
  {"prompt_ids": [...], "token_ids": [...]}
with, as far as they are known, "max_new_tokens", "finish_reason", "logprobs",
"eos_token_id", "recurrence_depth", "state_seed" and "state_scale"."""

_TRACE: Final = """\
Judge a trace: FILE has one event a line, as `wfd trace` prints them."""

_VECTORS: Final = """\
Judge answers to the conformance vectors. FILE has one JSON object a line:
  {"id": "schedule/wfd-mixed", "token_ids": [...], "events": [...]}
with what the vector's kind asks for, or "skipped" and the reason. All vectors
of a kind must be answered, but kinds without any answer are left out."""

_REQUIRED: Final = frozenset({"prompt_ids", "token_ids"})
_OPTIONAL: Final = frozenset(
    {
        "max_new_tokens",
        "finish_reason",
        "logprobs",
        "eos_token_id",
        "recurrence_depth",
        "state_seed",
        "state_scale",
    }
)
_EXIT_CODES: Final[Mapping[str, int]] = MappingProxyType({"exact": 0, "wrong": 1, "near_tie": 3})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckArguments:
    """The command line, understood."""

    what: str
    """`tokens`, `trace` or `vectors`."""
    file: str
    """What to judge; `-` is standard input."""
    json: bool
    """Whether to print JSON."""
    model: str
    """A shipped name or a folder; tokens only."""
    dtype: str | None
    """Type in which the candidate computed; None is the model's."""
    tolerance: float | None
    """Distance of two logits that are a near tie; None is that of CONF-05."""
    decoder: str | None
    """Which decoder the trace must be one of; None, here and below, is what the trace says."""
    recurrence_depth: int | None
    """T."""
    draft_depth: int | None
    """d."""
    draft_length: int | None
    """gamma."""
    kind: str | None
    """The kind of vectors to judge; None is every kind that is answered."""


def parse(words: Sequence[str]) -> CheckArguments:
    """Understands the command line behind `wfd check`.

    Raises:
        SystemExit: With code 2 if it makes no sense, and with 0 after `--help`.
    """
    given = _parser().parse_args(words)
    return CheckArguments(
        what=given.what,
        file=given.file,
        json=given.json,
        model=getattr(given, "model", "tiny-ouro"),
        dtype=getattr(given, "dtype", None),
        tolerance=getattr(given, "tolerance", None),
        decoder=getattr(given, "decoder", None),
        recurrence_depth=getattr(given, "recurrence_depth", None),
        draft_depth=getattr(given, "draft_depth", None),
        draft_length=getattr(given, "draft_length", None),
        kind=getattr(given, "kind", None),
    )


def _parser() -> Parser:
    parser = Parser(prog="wfd check", description=_DESCRIPTION, formatter_class=RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=Parser)
    usages = []
    for name, description in (("tokens", _TOKENS), ("trace", _TRACE), ("vectors", _VECTORS)):
        kind = kinds.add_parser(
            name,
            help=description.partition(".")[0].partition(":")[0].lower(),
            description=description,
            epilog=_CODES,
            formatter_class=RawDescriptionHelpFormatter,
        )
        kind.add_argument("file", metavar="FILE", help="what to judge; - reads standard input")
        kind.add_argument("--json", action="store_true", help="print JSON instead of text")
        if name == "tokens":
            kind.add_argument("--model", default="tiny-ouro", metavar="NAME|FOLDER", help="default: tiny-ouro")
            kind.add_argument("--dtype", metavar="D", help="in which the candidate computed; default: the model's")
            kind.add_argument("--tolerance", type=float, metavar="X", help="of a near tie, in logits; default: CONF-05")
        elif name == "vectors":
            kind.add_argument("--kind", metavar="K", help="judge one kind only, and all of it")
        else:
            kind.add_argument("--decoder", choices=DECODERS, help="must be the trace's")
            kind.add_argument("--recurrence-depth", type=int, metavar="T", help="must be the trace's")
            kind.add_argument("--draft-depth", type=int, metavar="D", help="must be the trace's")
            kind.add_argument("--draft-length", type=int, metavar="G", help="must be the trace's")
        usages.append(kind.format_usage().removeprefix("usage: ").rstrip())
    parser.epilog = "\n".join(
        ("usages:", *(f"  {line}" for usage in usages for line in usage.splitlines()), "", _CODES)
    )
    return parser


def run(given: CheckArguments) -> int:
    """Judges, and writes the verdict to standard output.

    Returns:
        The exit code: 0 exact, 1 wrong, 3 near ties only.

    Raises:
        ParameterError: If the file is not what it should be, or an argument breaks a rule.
        CheckpointError: If the model's folder is at fault.
        NumericsError: If the model computes NaN.
        OSError: If a file cannot be read.
    """
    text = _read(given.file)
    return {"tokens": _tokens, "trace": _trace, "vectors": _vectors}[given.what](given, text)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParameterError(f"{file} is not text: {error}") from error


def _trace(given: CheckArguments, text: str) -> int:
    from reference import oracle, trace  # noqa: PLC0415 - torch loads only where it is needed
    from reference.figures.terminal import glyphs_for  # noqa: PLC0415

    try:
        verdict = oracle.check_trace(
            text,
            decoder=given.decoder,
            recurrence_depth=given.recurrence_depth,
            draft_depth=given.draft_depth,
            draft_length=given.draft_length,
        )
    except trace.TraceFormatError as error:
        raise ParameterError(f"{given.file}: {error}") from error
    if given.json:
        _print(verdict.as_json())
    else:
        sys.stdout.write(verdict.explanation(glyphs_for(sys.stdout.encoding or "ascii")) + "\n")
    return _EXIT_CODES[verdict.verdict]


def _tokens(given: CheckArguments, text: str) -> int:
    from reference import models, oracle  # noqa: PLC0415 - torch loads only where it is needed
    from reference.oracle.tolerance import TOLERANCES  # noqa: PLC0415
    from reference.oracle.verdicts import worst  # noqa: PLC0415

    dtypes = {str(dtype).removeprefix("torch."): dtype for dtype in TOLERANCES}
    if given.dtype is not None and given.dtype not in dtypes:
        raise ParameterError(f"dtype={given.dtype!r} is none of {', '.join(dtypes)} (CONF-04)")
    cases = [_case(line, number) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not cases:
        raise ParameterError(f"{given.file}: nothing to judge")
    model = models.load(given.model)
    verdicts = [
        oracle.check_tokens(
            model,
            case.pop("prompt_ids"),
            case.pop("token_ids"),
            dtype=None if given.dtype is None else dtypes[given.dtype],
            tolerance=given.tolerance,
            **case,
        )
        for case in cases
    ]
    overall = worst(verdict.verdict for verdict in verdicts)
    if given.json:
        _print({"verdict": overall, "cases": [verdict.as_json() for verdict in verdicts]})
    else:
        for number, verdict in enumerate(verdicts, start=1):
            head = f"case {number}: " if len(verdicts) > 1 else ""
            sys.stdout.write(f"{head}{verdict}\n")
    return _EXIT_CODES[overall]


def _vectors(given: CheckArguments, text: str) -> int:
    from reference.oracle import vectors  # noqa: PLC0415 - torch loads only where it is needed

    verdict = vectors.check(text, kind=given.kind)
    if given.json:
        _print(verdict.as_json())
    else:
        sys.stdout.write(f"{verdict}\n")
    return _EXIT_CODES[verdict.verdict]


def _case(line: str, number: int) -> dict[str, Any]:
    """Reads one line of tokens to judge; the values are checked where they are used.

    Raises:
        ParameterError: If it is no object with the right names.
    """
    try:
        case = json.loads(line)
    except ValueError as error:
        raise ParameterError(f"line {number} is not JSON: {error}") from error
    if not isinstance(case, dict) or not _REQUIRED <= case.keys() <= _REQUIRED | _OPTIONAL:
        wanted = f"{', '.join(sorted(_REQUIRED))} and any of {', '.join(sorted(_OPTIONAL))}"
        raise ParameterError(f"line {number} is not an object of {wanted}")
    for name in ("prompt_ids", "token_ids"):
        if not isinstance(case[name], list):
            raise ParameterError(f"line {number}: {name} is not a list")
    logprobs = case.get("logprobs") or []
    if not (isinstance(logprobs, list) and all(isinstance(one, int | float) for one in logprobs)):
        raise ParameterError(f"line {number}: logprobs is not a list of numbers")
    if not isinstance(case.get("finish_reason"), str | None):
        raise ParameterError(f"line {number}: finish_reason is not a text")
    return case


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")

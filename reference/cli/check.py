"""`wfd check`: judges somebody else's tokens, the trace of somebody else's schedule, or answers to the vectors.

It has arguments and exit codes of its own, so it is kept apart from the commands that decode. Torch is loaded only
where there is something to judge.
"""

import json
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Final

from reference.cli.arguments import DECODERS, Parser
from reference.cli.junit import TestCase, to_junit
from reference.cli.token_cases import TokenCase, default_cases, read_cases, read_prompts
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
with, as far as they are known, "id", "max_new_tokens", "finish_reason",
"logprobs", "eos_token_id", "recurrence_depth", "state_seed", "state_scale".
With --url a server is asked for the tokens: FILE then has "prompt_ids" alone;
without a FILE it gets one prompt of each kind."""

_TRACE: Final = """\
Judge a trace: FILE has one event a line, as `wfd trace` prints them."""

_VECTORS: Final = """\
Judge answers to the conformance vectors. FILE has one JSON object a line:
  {"id": "schedule/wfd-mixed", "token_ids": [...], "events": [...]}
with what the vector's kind asks for, or "skipped" and the reason. All vectors
of a kind must be answered, but kinds without any answer are left out."""

_EXIT_CODES: Final[Mapping[str, int]] = MappingProxyType({"exact": 0, "wrong": 1, "near_tie": 3})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckArguments:
    """The command line, understood."""

    what: str
    """`tokens`, `trace` or `vectors`."""
    file: str | None
    """What to judge; `-` is standard input. None only where a server is asked."""
    json: bool
    """Whether to print JSON."""
    junit: str | None
    """A file for JUnit XML; None writes none."""
    model: str
    """A shipped name or a folder; tokens only."""
    dtype: str | None
    """Type in which the candidate computed; None is the model's."""
    tolerance: float | None
    """Distance of two logits that are a near tie; None is that of CONF-05."""
    url: str | None
    """The server to ask for tokens; None judges those of the file."""
    served_model: str | None
    """The model's name on the server."""
    timeout: float
    """Seconds to wait for the server."""
    max_new_tokens: int
    """The budget of a prompt that names none, for the server."""
    logprobs: bool
    """Whether to ask the server for log-probabilities."""
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
    parser = _parser()
    given = parser.parse_args(words)
    if given.file is None and given.url is None:
        parser.error("check tokens needs a FILE, a --url, or both")
    return CheckArguments(
        what=given.what,
        file=given.file,
        json=given.json,
        model=getattr(given, "model", "tiny-ouro"),
        dtype=getattr(given, "dtype", None),
        tolerance=getattr(given, "tolerance", None),
        junit=getattr(given, "junit", None),
        url=getattr(given, "url", None),
        served_model=getattr(given, "served_model", None),
        timeout=getattr(given, "timeout", 60.0),
        max_new_tokens=getattr(given, "max_new_tokens", 64),
        logprobs=getattr(given, "logprobs", False),
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
        optional = "?" if name == "tokens" else None
        kind.add_argument("file", nargs=optional, metavar="FILE", help="what to judge; - reads standard input")
        kind.add_argument("--json", action="store_true", help="print JSON instead of text")
        kind.add_argument("--junit", metavar="OUT", help="write JUnit XML too, for CI")
        if name == "tokens":
            kind.add_argument("--url", metavar="URL", help="ask this server, at its /v1/completions")
            kind.add_argument("--served-model", metavar="NAME", help="the model's name on the server")
            kind.add_argument("--timeout", type=float, default=60.0, metavar="S", help="for one answer; default: 60 s")
            kind.add_argument("--max-new-tokens", type=int, default=64, metavar="N", help="to ask for; default: 64")
            kind.add_argument("--logprobs", action="store_true", help="ask for and judge log-probabilities")
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
    return {"tokens": _tokens, "trace": _trace, "vectors": _vectors}[given.what](given)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParameterError(f"{file} is not text: {error}") from error


def _trace(given: CheckArguments) -> int:
    from reference import oracle, trace  # noqa: PLC0415 - torch loads only where it is needed
    from reference.figures.terminal import glyphs_for  # noqa: PLC0415
    from reference.oracle.answers import complaint  # noqa: PLC0415

    assert given.file is not None, "only tokens can be had elsewhere"
    text = _read(given.file)
    before = perf_counter()
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
    test = TestCase(
        name=given.file,
        verdict=verdict.verdict,
        complaint=complaint(verdict),
        explanation=str(verdict),
        seconds=perf_counter() - before,
    )
    _write_junit(given, [test])
    if given.json:
        _print(verdict.as_json())
    else:
        sys.stdout.write(verdict.explanation(glyphs_for(sys.stdout.encoding or "ascii")) + "\n")
    return _EXIT_CODES[verdict.verdict]


def _tokens(given: CheckArguments) -> int:
    from reference import models, oracle  # noqa: PLC0415 - torch loads only where it is needed
    from reference.oracle.answers import complaint  # noqa: PLC0415
    from reference.oracle.tolerance import TOLERANCES  # noqa: PLC0415
    from reference.oracle.verdicts import Verdict, worst  # noqa: PLC0415

    dtypes = {str(dtype).removeprefix("torch."): dtype for dtype in TOLERANCES}
    if given.dtype is not None and given.dtype not in dtypes:
        raise ParameterError(f"dtype={given.dtype!r} is none of {', '.join(dtypes)} (CONF-04)")
    cases = _asked(given) if given.url is not None else read_cases(_read(given.file or "-"), given.file or "-")
    model = models.load(given.model)
    verdicts, tests = [], []
    for case in cases:
        before = perf_counter()
        try:
            verdict = oracle.check_tokens(
                model, **case.values, dtype=dtypes.get(given.dtype or ""), tolerance=given.tolerance
            )
        except ParameterError as error:
            raise ParameterError(f"{case.place}: {error}") from error
        verdicts.append(verdict)
        test = TestCase(
            name=case.name,
            verdict=verdict.verdict,
            complaint=complaint(verdict),
            explanation=str(verdict),
            seconds=perf_counter() - before,
        )
        tests.append(test)
    overall = worst(verdict.verdict for verdict in verdicts)
    _write_junit(given, tests)
    numbers = {str(one): sum(verdict.verdict is one for verdict in verdicts) for one in Verdict}
    if given.json:
        judged = [{"id": case.name} | verdict.as_json() for case, verdict in zip(cases, verdicts, strict=True)]
        _print({"verdict": overall, "numbers": numbers, "cases": judged})
    else:
        for case, verdict in zip(cases, verdicts, strict=True):
            head = f"case {case.name}: " if len(cases) > 1 else ""
            sys.stdout.write(f"{head}{verdict}\n")
        if len(cases) > 1:
            shown = ", ".join(f"{number} {name}" for name, number in numbers.items())
            sys.stdout.write(f"{len(cases)} cases: {shown}\n")
    return _EXIT_CODES[overall]


def _vectors(given: CheckArguments) -> int:
    from reference.oracle import vectors  # noqa: PLC0415 - torch loads only where it is needed

    assert given.file is not None, "only tokens can be had elsewhere"
    verdict = vectors.check(_read(given.file), kind=given.kind)
    bad = {vectors.Outcome.WRONG, vectors.Outcome.MISSING}
    tests = [
        TestCase(
            name=one.id,
            verdict=one.outcome,
            complaint=f"{one.clause or one.flag}: {one.reason}\n\n{one}" if one.outcome in bad else None,
            explanation=str(one),
            seconds=0.0,
        )
        for one in verdict.vectors
    ]
    _write_junit(given, tests)
    if given.json:
        _print(verdict.as_json())
    else:
        sys.stdout.write(f"{verdict}\n")
    return _EXIT_CODES[verdict.verdict]


def _asked(given: CheckArguments) -> list[TokenCase]:
    """Asks a server for the tokens of every prompt.

    Raises:
        ServerError: If it gives no answer that can be judged.
    """
    from reference.oracle.http import Server  # noqa: PLC0415 - torch loads only where it is needed

    assert given.url is not None, "somebody must be asked"
    server = Server(url=given.url, served_model=given.served_model, timeout=given.timeout, with_logprobs=given.logprobs)
    prompts = read_prompts(_read(given.file), given.file) if given.file is not None else default_cases(given.model)
    cases = []
    for prompt in prompts:
        values = {"max_new_tokens": given.max_new_tokens} | prompt.values
        stop_ids = values.get("eos_token_id", "model")
        answer = server.complete(
            values["prompt_ids"],
            max_new_tokens=values["max_new_tokens"],
            eos_token_ids=None if stop_ids == "model" else _as_list(stop_ids),
        )
        told = {"finish_reason": answer.finish_reason, "logprobs": answer.logprobs}
        cases.append(replace(prompt, values=values | {"candidate_ids": answer.token_ids} | told))
    return cases


def _as_list(stop_ids: int | list[int] | None) -> list[int]:
    if stop_ids is None:
        return []
    return [stop_ids] if isinstance(stop_ids, int) else stop_ids


def _write_junit(given: CheckArguments, tests: Sequence[TestCase]) -> None:
    if given.junit is not None:
        Path(given.junit).write_text(to_junit(f"wfd check {given.what}", tests), encoding="utf-8")


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")

"""What can be said to `wfd`, and how it explains itself. No torch: `--help` and mistakes answer at once."""

import argparse
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Final, NoReturn

DECODERS: Final = ("ar", "dtv", "wfd")
"""Names of the decoders, slowest first."""

_DESCRIPTION: Final = """\
Decode looped language models: one token at a time (AR), by drafting and
verifying in rounds (DtV), or with a wavefront in which new positions draft
while older ones run on (WFD). All three give the same tokens."""

_CODES: Final = """\
exit codes:
  0  all went well
  1  the decoders disagree
  2  arguments or files are at fault"""

_EXAMPLES: Final = f"""\
examples:
  wfd compare                        the three decoders on a prompt of each kind
  wfd compare "What is 3 plus 4?"    ... on yours
  wfd compare --model tiny-huginn --flavour rag
  wfd generate --decoder ar - < prompt.txt
  wfd trace --flavour translation | head

{_CODES}"""

_COMPARE: Final = """\
Run AR, DtV and WFD on the same prompt. Shows the text, whether the three
agree token by token, what each of them computed, and the wavefront of the
first ticks. Without a prompt: one default prompt in full, the others in a
line each."""

_COMPARE_EXAMPLES: Final = f"""\
examples:
  wfd compare
  wfd compare "What is 3 plus 4?" --draft-depth 2
  wfd compare --model ./my-ouro --ids "1 17 5 9" --max-new-tokens 32
  wfd compare --flavour rag --json | jq '.comparisons[0].decoders.wfd'

{_CODES}"""

_GENERATE: Final = "Decode a prompt and print the text that follows it."
_TRACE: Final = "Decode a prompt and print what happened, one JSON object a line."

_CHECK: Final = "Judge another implementation: tokens, a trace, or answers to vectors."
_COST: Final = "Predict speed from a model's sizes and a machine's figures."
_BENCH: Final = "Measure speed on the shipped models and write a report."


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line, understood."""

    command: str
    """`compare`, `generate` or `trace`."""
    prompt: str | None
    """The text to continue; `-` is standard input."""
    ids: tuple[int, ...] | None
    """The token ids to continue, instead of a text."""
    flavour: str | None
    """The default prompt to continue, instead of a text."""
    model: str
    """A shipped name or a folder."""
    decoder: str
    """The decoder to run; `compare` runs all."""
    draft_depth: int | None
    """d; None leaves it to the model's T."""
    draft_length: int
    """gamma."""
    max_new_tokens: int
    """The token budget."""
    recurrence_depth: int | None
    """T; None is the model's own."""
    arithmetic: str
    """`batched` or `exact`."""
    seed: int
    """Seed of the random initial state."""
    json: bool
    """Whether `compare` prints JSON."""


class Parser(ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with code 2."""
        sys.stderr.write(f"wfd: error: {message} (try: {self.prog} --help)\n")
        sys.exit(2)


def parse(words: Sequence[str]) -> Arguments:
    """Understands the command line.

    Args:
        words: The arguments, without the name of the program.

    Raises:
        SystemExit: With code 2 if they make no sense, and with 0 after `--help` and `--version`.
    """
    given = _parser().parse_args(words)
    return Arguments(
        command=given.command,
        prompt=given.prompt,
        ids=given.ids,
        flavour=given.flavour,
        model=given.model,
        decoder=getattr(given, "decoder", "wfd"),
        draft_depth=given.draft_depth,
        draft_length=given.draft_length,
        max_new_tokens=given.max_new_tokens,
        recurrence_depth=given.recurrence_depth,
        arithmetic=given.arithmetic,
        seed=given.seed,
        json=getattr(given, "json", False),
    )


def _parser() -> ArgumentParser:
    parser = Parser(prog="wfd", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)

    compare = commands.add_parser(
        "compare",
        help="run all three decoders on a prompt and compare them",
        description=_COMPARE,
        epilog=_COMPARE_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    _add_common(compare)
    compare.add_argument("--json", action="store_true", help="print one JSON object instead of tables and pictures")

    for name, description in (("generate", _GENERATE), ("trace", _TRACE)):
        command = commands.add_parser(
            name,
            help=_first_lower(description),
            description=description,
            epilog=_CODES,
            formatter_class=RawDescriptionHelpFormatter,
        )
        _add_common(command)
        command.add_argument("--decoder", choices=DECODERS, default="wfd", help="which decoder; default: wfd")

    commands.add_parser("check", help=_first_lower(_CHECK), description=_CHECK)  # understood in `cli.check`
    commands.add_parser("cost", help=_first_lower(_COST), description=_COST)  # understood in `cli.cost`
    commands.add_parser("bench", help=_first_lower(_BENCH), description=_BENCH)
    return parser


def _add_common(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("what to decode, at most one of")
    one = what.add_mutually_exclusive_group()
    one.add_argument(
        "prompt",
        nargs="?",
        metavar="PROMPT",
        help="a text; - reads standard input. The shipped models take it as a user's message",
    )
    one.add_argument("--ids", type=_ids, metavar="IDS", help='token ids, as in --ids "1 2 3"; needs no tokenizer')
    one.add_argument("--flavour", metavar="F", help="a default prompt: chat, translation, summarisation, qa, ...")

    how = parser.add_argument_group("how")
    how.add_argument(
        "--model",
        default="tiny-ouro",
        metavar="NAME|FOLDER",
        help="tiny-ouro (default), tiny-huginn, or a folder in the official format",
    )
    how.add_argument("--draft-depth", type=int, metavar="D", help="recurrences before a draft; default: max(1, T // 8)")
    how.add_argument(
        "--draft-length", type=int, default=8, metavar="G", help="most drafts in a round of DtV; default: 8"
    )
    how.add_argument("--max-new-tokens", type=int, default=128, metavar="N", help="most new tokens; default: 128")
    how.add_argument(
        "--recurrence-depth", type=int, metavar="T", help="recurrences of a finished position; default: the model's own"
    )
    how.add_argument(
        "--arithmetic",
        choices=("batched", "exact"),
        default="batched",
        help="one call a tick (default), or every row alone: slow, and identical bit for bit",
    )
    how.add_argument("--seed", type=int, default=0, metavar="S", help="of Huginn's random initial state; default: 0")


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.replace(",", " ").split())
    except ValueError as error:
        message = f"not a list of whole numbers: {text!r}"
        raise argparse.ArgumentTypeError(message) from error


def _first_lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].rstrip(".")


class _Version(argparse.Action):
    """Prints the version; looked up only when somebody asks."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: object, option_string: str | None = None
    ) -> NoReturn:
        del namespace, values, option_string
        sys.stdout.write(f"{parser.prog} {metadata.version('looped-reference')}\n")
        parser.exit(0)

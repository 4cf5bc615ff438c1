"""The `wfd` command: decode a prompt with AR, DtV and WFD, compare them, and look at what they do.

What a user can get wrong ends with one line on standard error and code 2; nothing shows a traceback but a defect.
"""

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Final, TextIO

from reference.cli import arguments, check, cost, cost_arguments
from reference.cli.cost_arguments import CostArguments

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells give it."""
BROKEN_PIPE: Final = 128 + signal.SIGPIPE
"""Exit code when the reader of the output has left, as shells give it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Its arguments; None means those of the process.

    Returns:
        The exit code: 0 if all went well, 1 if the decoders disagree, 2 if the arguments or files are at fault. `check`
        has codes of its own.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    given = _understood(words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a model may say anything: write `?` for what the encoding lacks
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            _warn_on_one_line()
            code = _run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more when it ends; nobody is there to read it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def _understood(
    words: list[str],
) -> arguments.Arguments | check.CheckArguments | CostArguments | list[str]:
    """Gives the arguments of a command; three of them have a command line of their own."""
    match words:
        case ["bench", *rest]:
            return rest
        case ["check", *rest]:
            return check.parse(rest)
        case ["cost", *rest]:
            return cost_arguments.parse(rest)
        case _:
            return arguments.parse(words)


def _run(given: arguments.Arguments | check.CheckArguments | CostArguments | list[str]) -> int:
    from reference import bench  # noqa: PLC0415 - torch loads only where it is needed
    from reference.cli import commands  # noqa: PLC0415
    from reference.errors import CheckpointError, NumericsError, ParameterError  # noqa: PLC0415

    try:
        if isinstance(given, check.CheckArguments):
            return check.run(given)
        if isinstance(given, CostArguments):
            return cost.run(given)
        return bench.main(given) if isinstance(given, list) else commands.run(given)
    except BrokenPipeError:
        raise
    except (ParameterError, CheckpointError, NumericsError, OSError) as error:
        sys.stderr.write(f"wfd: error: {error}\n")
        return 2


def _warn_on_one_line() -> None:
    """Makes every warning a line of its own, shown once however often it is raised."""
    shown: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del category, filename, lineno, file, line
        if str(message) not in shown:
            shown.add(str(message))
            sys.stderr.write(f"wfd: warning: {message}\n")

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show

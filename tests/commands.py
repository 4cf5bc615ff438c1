"""Runs the command line in this process."""

import io
import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

Run: TypeAlias = Callable[..., tuple[int, str, str]]
"""Takes words, and `stdin` and `columns` by name; gives exit code, output and errors."""


@pytest.fixture
def wfd(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process; gives exit code, output and errors."""
    from reference import cli  # noqa: PLC0415 - `conftest` imports this module, and must not import `reference`

    def run(*words: str, stdin: str = "", columns: int = 80) -> tuple[int, str, str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            code = cli.main(words)
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run

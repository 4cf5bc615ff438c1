"""The example of an outside repository: its tests pass, and with the planted bug they fail with the right clause."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.sources import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "outside-engine"


def run_tests(folder: Path, *words: str, bug: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the example's tests in a place of its own, as its owner would."""
    place = shutil.copytree(EXAMPLE, folder / "outside-engine", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PLANTED_BUG": bug, "COLUMNS": "400"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfs", *words]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - our own words


def test_the_outside_engine_passes(tmp_path: Path) -> None:
    result = run_tests(tmp_path)
    assert result.returncode == 0, result.stdout
    assert re.search(r"\d{3} passed, 1 skipped", result.stdout)
    assert "not judged: the engine gives no logprobs" in result.stdout


@pytest.mark.spec("KV-03", "AR-03")
def test_the_planted_bug_is_named_by_its_clause_in_the_trace_and_seen_in_the_tokens(tmp_path: Path) -> None:
    result = run_tests(tmp_path, "-k", "d1 and flushes", bug="stale-cells")
    assert result.returncode == 1
    assert re.search(r"FAILED .*test_trace.* - Failed: KV-03: event \d+: .* is stale", result.stdout), result.stdout
    assert re.search(r"FAILED .*test_tokens.* - Failed: AR-03: new token \d+: ", result.stdout), result.stdout
    shown = (REPOSITORY / "docs" / "test-your-engine.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^KV-03: .*$", shown, re.MULTILINE)
    # The page's numbers are those of one run; other weights give others.
    assert re.sub(r"\d+", "9", said) in re.sub(r"\d+", "9", result.stdout).splitlines()


def test_the_test_file_has_about_ten_lines() -> None:
    lines = (EXAMPLE / "test_engine.py").read_text(encoding="utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 12

"""The traces that the stepper plays are those that the shipped models give today."""

import json
from typing import Any

import pytest

from docs.generate import DOCS
from docs.generate.traces import SCENES, Scene, files
from reference import oracle
from reference.oracle.verdicts import Verdict

FOLDER = DOCS / "assets" / "traces"
MOST_BYTES = 300_000
"""What all traces together may weigh: each text is loaded when it is chosen."""


def runs(file: str) -> list[list[dict[str, Any]]]:
    read: list[list[dict[str, Any]]] = json.loads((FOLDER / file).read_text(encoding="utf-8"))["runs"]
    return read


def test_the_traces_are_up_to_date_and_none_is_left_over() -> None:
    written = files(DOCS)
    for path, content in written.items():
        assert path.read_text(encoding="utf-8") == content, "run: make figures"
    assert set(FOLDER.iterdir()) == set(written)
    assert sum(path.stat().st_size for path in written) < MOST_BYTES


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.file)
def test_every_run_is_one_that_the_specification_allows(scene: Scene) -> None:
    for run in runs(scene.file):
        assert oracle.check_trace("\n".join(map(json.dumps, run))).verdict is Verdict.EXACT


def test_a_reader_can_see_a_flush() -> None:
    """If none is left after a change of the weights, give the stepper another text."""
    first = runs(SCENES[0].file)
    assert any(event["event"] == "flush" for run in first if run[0]["decoder"] == "wfd" for event in run)

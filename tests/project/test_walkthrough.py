"""The page that walks through a run shows the run that the shipped model makes today."""

import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from docs.generate import DOCS, architecture, walk
from docs.generate.walk import Story
from reference.figures import scenes
from reference.figures.grid import snapshots


@pytest.fixture(scope="module")
def story() -> Story:
    """The run that the page tells of."""
    return walk.find_story()


@pytest.fixture(scope="module")
def edges() -> architecture.Graph:
    """The import graph."""
    return architecture.graph(DOCS.parent / "reference")


@pytest.fixture(scope="module")
def pages(story: Story) -> Mapping[Path, str]:
    """What the script would write."""
    return {**walk.pages(story, DOCS), **architecture.files(DOCS)}


def test_page_and_figures_are_up_to_date(pages: Mapping[Path, str]) -> None:
    for path, content in pages.items():
        assert path.read_text(encoding="utf-8") == content, "run: make figures"


def test_no_figure_is_left_over(pages: Mapping[Path, str]) -> None:
    assert set((DOCS / "figures").iterdir()) == {path for path in pages if path.suffix == ".svg"}


def test_every_number_of_the_pages_is_computed_and_every_computed_one_is_used(story: Story) -> None:
    used = {name for page in walk.PAGES for name in walk.template(page).get_identifiers()}
    assert used == set(walk.values(story))


def test_the_run_shows_a_full_wave_and_then_a_flush(story: Story) -> None:
    widest = max(story.opening, key=lambda one: one.num_rows)
    assert story.rejection is not None
    assert widest.num_rows == scenes.wavefront_width(widest)
    assert widest.tick < story.rejection.tick < story.opening[-1].tick


def test_the_decoders_gave_the_same_text(story: Story) -> None:
    assert story.plain.token_ids == story.wave.token_ids == story.other.token_ids
    assert all(out.token_ids == story.plain.token_ids for out in story.rounds.values())


def test_a_lane_that_starts_again_overwrites_a_cell_before_a_younger_one_reads_it(story: Story) -> None:
    rejection = story.rejection
    assert rejection is not None
    place = next(column.position for column in rejection.columns if column.dropped)
    for one in snapshots(story.wave.events):
        if one.tick > rejection.tick:
            lanes = [column for column in one.columns if column.position >= place and column.moved]
            assert all(older.depth > younger.depth for older, younger in pairwise(lanes))


def test_the_import_graph_is_read_from_the_code(edges: architecture.Graph) -> None:
    assert "schedule" in edges["wfd"]
    assert "engine" in edges["ar"]
    assert "wfd" not in edges["engine"]
    assert edges["kv"] >= {"models.protocol", "provenance"}
    assert "models" not in edges["kv"]


def test_a_line_that_a_longer_way_implies_is_left_out() -> None:
    edges = {"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset[str]()}
    assert architecture.reduced(edges)["a"] == {"b"}
    assert architecture.levels(edges) == [["c"], ["b"], ["a"]]


def test_what_is_drawn_as_integers_only_loads_no_tensor_library(edges: architecture.Graph) -> None:
    parts = architecture.integers(edges)
    assert {"schedule", "trace"} <= parts
    imports = "".join(f"import reference.{part}\n" for part in sorted(parts))
    program = f"{imports}import sys\nsys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=DOCS.parent, check=False).returncode == 0  # noqa: S603 - our own text

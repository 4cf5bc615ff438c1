"""The pages on the cost model say what the code says today, and their worked example adds up by hand."""

from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template

import pytest

from docs.generate import DOCS, calculator, cost
from reference.cost import paper


def test_the_pages_are_up_to_date() -> None:
    for path, content in cost.pages().items():
        assert path.read_text(encoding="utf-8") == content, "run: make figures"


def test_the_figures_are_up_to_date_and_none_is_left_over() -> None:
    figures = cost.figures()
    assert set((DOCS / "cost-figures").iterdir()) == set(figures)
    for path, content in figures.items():
        assert path.read_text(encoding="utf-8") == content, "run: make figures"


def test_the_tables_of_the_calculator_are_up_to_date() -> None:
    for path, content in calculator.files(DOCS).items():
        assert path.read_text(encoding="utf-8") == content, "run: make figures"


@pytest.mark.parametrize("page,values", [("cost", cost.example), ("cost-paper", cost.report)])
def test_every_number_of_a_page_is_computed_and_every_computed_one_is_used(
    page: str, values: Callable[[], Mapping[str, str]]
) -> None:
    text = Template((DOCS / f"{page}.md.in").read_text(encoding="utf-8"))
    assert set(text.get_identifiers()) == set(values())


def test_the_worked_example_adds_up_by_hand() -> None:
    shown = cost.example()
    layer = 4 * 2048 * 2048 + 3 * 2048 * 5632
    assert float(shown["layer_million"]) == pytest.approx(layer / 1e6, abs=0.05)
    assert float(shown["recurrence_gb"]) == pytest.approx(48 * 2 * layer / 1e9, abs=0.01)
    assert float(shown["head_gb"]) == pytest.approx(2 * 49_152 * 2048 / 1e9, abs=0.005)
    cells = 500 * 16 * 128 * 2 * 2 * 48
    assert float(shown["tick_cells_mb"]) == pytest.approx(cells / 1e6, abs=0.5)
    token = 4 * (2 * 48 * layer + cells) + 2 * 49_152 * 2048
    assert float(shown["token_gb"]) == pytest.approx(token / 1e9, abs=0.1)
    bound_ms = token / 768e6
    assert float(shown["bound_ms"]) == pytest.approx(bound_ms, abs=0.1)
    assert float(shown["ar_ms"]) == pytest.approx(bound_ms / 0.18, rel=0.005)
    kernels = 48 * 58 + 10
    assert shown["kernels_tick"] == f"{kernels:,}"
    assert shown["kernels_token"] == f"{4 * kernels + 20:,}"
    launch_ms = bound_ms / 0.18 / (4 * kernels + 20)
    assert float(shown["launch_us"]) == pytest.approx(1000 * launch_ms, abs=0.1)
    ticks = [(kernels + further * 6 * 48) * launch_ms for further in range(4)]
    assert [float(word) for word in shown["ramp_ms"].split(" + ")] == pytest.approx(ticks, abs=0.1)
    # The ends: a readout streams the head, a prelude launches ten kernels.
    head_ms = 2 * 49_152 * 2048 / 768e6 / paper.overheads().bandwidth_efficiency
    running = ticks[3] + head_ms + 10 * launch_ms
    restart = sum(ticks) + 4 * (head_ms + 10 * launch_ms)
    assert float(shown["running_ms"]) == pytest.approx(running, abs=0.15)
    assert float(shown["restart_ms"]) == pytest.approx(restart, abs=0.3)
    mean = 0.92 * running + 0.08 * restart
    assert float(shown["wfd_ms"]) == pytest.approx(mean, abs=0.15)
    assert float(shown["speedup"]) == pytest.approx(bound_ms / 0.18 / mean, abs=0.01)
    assert float(shown["tick_speedup"]) == pytest.approx(4 / (0.92 * 1 + 0.08 * 4), abs=0.005)


def test_a_page_without_a_measurement_says_so(tmp_path: Path) -> None:
    assert "No measurement is committed yet." in cost.calibration_page(tmp_path / "missing.json")

"""Claims about what every other test relies on: the set-up in conftest.py and pyproject.toml."""

import re
from collections.abc import Callable
from importlib import import_module

import pytest
import torch
from hypothesis import settings
from jaxtyping import TypeCheckError

from tests.checked import annotations_are_checked  # noqa: F401 - a fixture that runs by itself
from tests.conftest import RandomStateChangedError, unchanged_random_state
from tests.project.sources import REPOSITORY, modules

MODULES = [name for name in sorted(modules(REPOSITORY / "reference")) if not name.endswith(".__main__")]


@pytest.mark.parametrize("draw", [lambda: torch.rand(1), lambda: torch.manual_seed(3)])
def test_a_draw_from_global_randomness_is_noticed_and_undone(draw: Callable[[], object]) -> None:
    before = torch.get_rng_state()
    with pytest.raises(RandomStateChangedError), unchanged_random_state():
        draw()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_of_ones_own_is_no_global_randomness() -> None:
    with unchanged_random_state():
        torch.rand(1, generator=torch.Generator().manual_seed(3))


def profiles(text: str) -> dict[str, int]:
    """Gives the hypothesis profiles that a page lists in a table, each with its number of cases."""
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)[ ,]", text, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in rows}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_tell_how_many_cases_a_profile_draws(page: str) -> None:
    told = profiles((REPOSITORY / page).read_text(encoding="utf-8"))
    assert {"dev", "ci", "deep"} <= set(told)
    assert told == {name: settings.get_profile(name).max_examples for name in told}
    assert settings.get_profile("ci").derandomize


def test_make_deep_runs_every_property_on_5000_cases() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    _, _, recipe = makefile.partition("\ndeep: ")
    assert [line.partition("$(PYTEST) ")[2] for line in recipe.splitlines()[1:3]] == [
        "tests/properties",
        "-m hypothesis --ignore tests/properties",
    ]
    assert recipe.count("HYPOTHESIS_PROFILE=deep ") == 2
    assert settings.get_profile("deep").max_examples == 5000


@pytest.mark.parametrize("name", MODULES)
def test_calls_into_every_module_are_checked_at_run_time(name: str) -> None:
    spec = import_module(name).__spec__
    assert spec is not None
    assert type(spec.loader).__module__.startswith("jaxtyping")


def test_a_call_that_breaks_its_annotations_fails() -> None:
    with pytest.raises(TypeCheckError):
        import_module("reference.schedule").Lane(position="3", token=1, depth=0)


def test_a_call_that_breaks_its_shapes_fails() -> None:
    with pytest.raises(TypeCheckError):
        import_module("reference.sampling").greedy(torch.zeros(3))

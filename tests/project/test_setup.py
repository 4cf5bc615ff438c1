"""Claims about what every other test relies on: the set-up in conftest.py and pyproject.toml."""

from collections.abc import Callable
from importlib import import_module

import pytest
import torch
from jaxtyping import TypeCheckError

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

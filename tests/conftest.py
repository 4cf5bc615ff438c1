"""Sets up every test: hypothesis profiles, one thread a process, and a watch over the global random state.

The run-time checks of annotations are installed for all tests and switched off for most; see `tests.checked`.

Nothing here imports `reference`: the run-time checks must be in place before its first import.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import Verbosity, settings
from jaxtyping import config

from tests.commands import wfd

__all__ = ["wfd"]

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("deep", max_examples=5000, deadline=None)
settings.register_profile("debug", max_examples=10, deadline=None, verbosity=Verbosity.verbose)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

config.update("jaxtyping_disable", True)  # noqa: FBT003 - the signature is theirs

torch.set_num_threads(1)


class RandomStateChangedError(AssertionError):
    """A test left torch's global random state otherwise than it found it."""


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Checks that its body leaves torch's global random state as it found it.

    The state of Python's own `random` cannot be watched: the run-time checks of annotations draw from it to pick the
    list entry to look at. A project test sees to it that `reference` never uses it.

    Raises:
        RandomStateChangedError: At the end of the body, if it drew or seeded. The state is put back first, so that one
            guilty test makes no other fail.
    """
    before = torch.get_rng_state()
    yield
    if not torch.equal(torch.get_rng_state(), before):
        torch.set_rng_state(before)
        message = "torch's global random state was changed; randomness here is an argument"
        raise RandomStateChangedError(message)


@pytest.fixture(autouse=True)
def _random_state_is_left_alone() -> Iterator[None]:
    """Fails a test that changes the global random state, and so any code under test that does."""
    with unchanged_random_state():
        yield

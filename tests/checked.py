"""Switches the run-time checks of annotations on, which `tests/conftest.py` switches off.

They take four fifths of the time of a run on a small model. Unit tests, of which every line of code has some, run with
them; the tests that repeat the same lines on hundreds of examples, on whole runs, or on mutants do not. Import the
fixture, into a conftest for a whole folder.
"""

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture(autouse=True, scope="module")
def annotations_are_checked() -> Iterator[None]:
    """Runs a module with the checks."""
    config.update("jaxtyping_disable", False)  # noqa: FBT003 - the signature is theirs
    yield
    config.update("jaxtyping_disable", True)  # noqa: FBT003

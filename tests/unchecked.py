"""Switches the run-time checks of annotations off where the same lines run thousands of times.

Unit tests and cases run every line with the checks on. The property tests repeat them on hundreds of examples, where
the checks would take most of the time; and a mutant is to be caught by a law, not by an annotation.
"""

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture(autouse=True)
def annotations_are_not_checked() -> Iterator[None]:
    """Runs a test without the checks."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)  # noqa: FBT003 - the signature is theirs
    yield
    config.update("jaxtyping_disable", before)

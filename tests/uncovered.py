"""Switches the measuring of coverage off where it would take a quarter of the time and show nothing new.

What the laws, the mutants and the formal models run on hundreds of examples, unit tests and cases have run before.
"""

import pytest


@pytest.fixture(autouse=True)
def coverage_is_not_measured(no_cover: None) -> None:
    """Runs a test without measuring, by the fixture of pytest-cov."""

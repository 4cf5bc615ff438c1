"""What the formal tests need beyond Python packages; CI must have it, others may go without."""

import os

import pytest

from spec import tlc

needs_tlc = pytest.mark.skipif(tlc.jar() is None and not os.environ.get("CI"), reason=tlc.HOW_TO_INSTALL)
"""Skips where TLC cannot run, except in CI: there the test fails and says what is missing."""

deep = pytest.mark.skipif(
    os.environ.get("HYPOTHESIS_PROFILE") != "deep", reason="heavy configurations: set HYPOTHESIS_PROFILE=deep"
)
"""Skips what takes minutes."""

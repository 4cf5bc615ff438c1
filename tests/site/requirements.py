"""What the browser tests need beyond the tests of the library; CI must have it, others may go without."""

import importlib.util
import os
import shutil
from typing import Final

import pytest

BROWSER: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""Where a browser is; None if there is none."""
HOW_TO_INSTALL: Final = (
    "needs Chromium (Debian: apt-get install chromium) and the packages playwright and mkdocs-material "
    "(pip install '.[test,docs]')"
)
"""What to say where something is missing."""

_IS_COMPLETE: Final = bool(BROWSER) and all(importlib.util.find_spec(name) for name in ("playwright", "material"))

needs_browser = pytest.mark.skipif(not _IS_COMPLETE and not os.environ.get("CI"), reason=HOW_TO_INSTALL)
"""Skips where there is no browser, except in CI: there the test fails and says what is missing."""

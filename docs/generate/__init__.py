"""Writes the pages, pictures and traces of the site that come from runs and from the code itself.

`python -m docs.generate` writes them all. Each module gives the content of its files as a mapping from path to text, so
that tests can hold the files in the repository against it.
"""

from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1]
"""Where the site's sources are."""

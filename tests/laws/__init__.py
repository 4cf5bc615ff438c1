"""What must be true of every run, one function a law.

The property tests hold the decoders to these laws; the mutant tests show that each wrong decoder breaks one. A law
takes a finished run and raises an `AssertionError` if it does not hold. Laws never look at how `reference` comes to its
results: they read states, ticks, events and cells, and compute what those must be on their own.
"""

from collections.abc import Callable
from typing import TypeAlias

from tests.driving import Play

Law: TypeAlias = Callable[[Play], None]
"""A claim about one run of one schedule."""

"""How fast the decoders are here, against each other and against the same network written the straightforward way."""

from reference.bench.speed import main

__all__ = ["main"]

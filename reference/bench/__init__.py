"""How fast the decoders are: on small models, with shared KV slots, and on the static path in published shapes."""

from collections.abc import Sequence

from reference.bench import gpu, sharing, speed


def main(words: Sequence[str]) -> int:
    """Runs a benchmark from the command line, `gpu`, `sharing` or that of speed; gives the exit code."""
    match words:
        case ["gpu", *rest]:
            return gpu.main(rest)
        case ["sharing", *rest]:
            return sharing.main(rest)
        case _:
            return speed.main(words)


__all__ = ["main"]

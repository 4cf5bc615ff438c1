"""How fast the decoders are: eager on small models, and on the static path in the shapes of the published models."""

from collections.abc import Sequence

from reference.bench import gpu, speed


def main(words: Sequence[str] | None = None) -> int:
    """Runs a benchmark from the command line; gives the exit code. `gpu` has a command line of its own."""
    match words:
        case ["gpu", *rest]:
            return gpu.main(rest)
        case _:
            return speed.main(words)


__all__ = ["main"]

"""How fast the decoders are here, against each other and against the same network written the straightforward way."""

from collections.abc import Sequence

from reference.bench import sharing, speed


def main(argv: Sequence[str]) -> int:
    """Runs a benchmark from the command line: `sharing`, or that of speed without a name; gives the exit code."""
    match argv:
        case ["sharing", *rest]:
            return sharing.main(rest)
        case _:
            return speed.main(argv)


__all__ = ["main"]

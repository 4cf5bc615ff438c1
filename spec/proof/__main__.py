"""Proves everything and says so: `python -m spec.proof`."""

import sys
import time

from spec.proof.logic import unproved
from spec.proof.parts import proofs


def main() -> int:
    """Prints one line for each decoder and names what is not proved."""
    failures = 0
    for name, stated in proofs().items():
        begun = time.monotonic()
        obligations = list(stated)
        left = list(unproved(obligations))
        failures += len(left)
        seconds = time.monotonic() - begun
        sys.stdout.write(f"{name}: {len(obligations) - len(left)} of {len(obligations)} proved in {seconds:.1f} s\n")
        sys.stdout.writelines(f"  not proved: {item}\n" for item in left)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())

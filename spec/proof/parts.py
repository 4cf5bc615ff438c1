"""All proofs, by what they are about."""

from collections.abc import Iterable

from spec.proof import dominance, dtv, sharing, wfd
from spec.proof.logic import Obligation


def proofs() -> dict[str, Iterable[Obligation]]:
    """Gives everything that is to be proved."""
    return {
        "WFD": wfd.obligations(),
        "DtV": dtv.obligations(),
        "dominance": dominance.obligations(),
        "sharing": sharing.obligations(),
    }

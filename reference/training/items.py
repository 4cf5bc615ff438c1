"""Gives what a task makes: one conversation about one thing, with its answers."""

import hashlib
from dataclasses import dataclass
from typing import Final

HELD_OUT_OF: Final = 16
"""One item in this many, chosen by the hash of its text, is kept for tests and never trained on."""

CHAIN_LENGTHS: Final = (1, 2, 3, 4, 5, 6)
"""Values of k for the tasks whose needed depth grows with k."""

CHAIN_WEIGHTS: Final = (6.0, 5.0, 4.0, 3.0, 2.0, 2.0)
"""How often each k is drawn: short chains are learned first and carry the longer ones."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and its answer."""

    user: str
    """What the user says."""
    assistant: str
    """What the assistant must answer, word for word."""


@dataclass(frozen=True, slots=True)
class Item:
    """One self-contained piece of conversation."""

    flavour: str
    """Which of the six kinds of text it belongs to, as `data.FLAVOURS` names them."""
    task: str
    """The task within the flavour."""
    k: int
    """Length of what must be followed: hops, summands, list entries, facts; at least 1."""
    turns: tuple[Turn, ...]
    """At least one turn; the later ones may refer to the earlier ones."""

    @property
    def is_held_out(self) -> bool:
        """Whether the item is a test item.

        A hash of the text decides, so that no bookkeeping can leak an item from one side to the other. SHA-256 and
        not `hash`: the latter changes from process to process.
        """
        text = "\n".join(f"{turn.user}\n{turn.assistant}" for turn in self.turns)
        return hashlib.sha256(text.encode()).digest()[0] % HELD_OUT_OF == 0

"""Makes retrieval-augmented answers: numbered notes, a question over several of them, an answer that cites them."""

from itertools import pairwise
from random import Random
from typing import Final

from reference.training.items import Item, Turn
from reference.training.words import CITIES, COLOURS, CONTAINERS, NAMES, PLACES, THINGS, listed, pick, pick_distinct

FLAVOUR: Final = "rag"
"""Name of the flavour."""

_QUESTIONS: Final = ("In what", "In which place", "In whose house", "In which city")
"""How to ask for what holds the thing after 1, 2, 3 and 4 notes."""

_NUM_NOTES: Final = 4


def _chain(rng: Random) -> tuple[list[str], list[str]]:
    """Gives the names of one thing and of what holds it, inside out, and one note for each link between them."""
    owner, keeper = pick_distinct(NAMES, 2, rng)
    stations = [
        f"the {pick(THINGS, rng)} of {owner}",
        f"the {pick(COLOURS, rng)} {pick(CONTAINERS, rng)}",
        f"the {pick(PLACES, rng)}",
        f"the house of {keeper}",
        pick(CITIES, rng),
    ]
    return stations, [f"{inner} is in {outer}." for inner, outer in pairwise(stations)]


def make(rng: Random) -> Item:
    """Makes one question over four numbered notes.

    Args:
        rng: Source of randomness.

    Returns:
        A one-turn item; its k is the number of notes that the answer needs, 1 to 4.
    """
    k = rng.choices((1, 2, 3, 4), (4, 3, 2, 1))[0]
    stations, links = _chain(rng)
    other_stations, other_links = _chain(rng)
    while set(stations[:-1]) & set(other_stations[:-1]):  # two notes about one thing would leave two answers
        other_stations, other_links = _chain(rng)
    notes = [*links[: max(k, 2)], *other_links[: _NUM_NOTES - max(k, 2)]]
    rng.shuffle(notes)
    told = " ".join(f"[{number}] {note}" for number, note in enumerate(notes, start=1))
    cited = listed([f"[{notes.index(link) + 1}]" for link in links[:k]])
    turn = Turn(
        f"Notes: {told} {_QUESTIONS[k - 1]} is {stations[0]}?",
        f"From {cited}: {stations[0]} is in {stations[k]}.",
    )
    return Item(FLAVOUR, "notes", k, (turn,))

"""Makes summaries: a story told in one sentence, and a list of results put in order."""

from random import Random
from typing import Final

from reference.training.items import Item, Turn
from reference.training.words import COLOURS, NAMES, PLACES, THINGS, listed, pick, pick_distinct

FLAVOUR: Final = "summarisation"
"""Name of the flavour."""

_FILLERS: Final = (
    "It was a cold day.",
    "The sun was out.",
    "Nobody was in a hurry.",
    "The street was quiet.",
    "Lunch was late.",
)


def _story(rng: Random) -> Item:
    name, friend = pick_distinct(NAMES, 2, rng)
    place, colour, thing = pick(PLACES, rng), pick(COLOURS, rng), pick(THINGS, rng)
    facts = [
        (f"{name} went to the {place}.", f"went to the {place}"),
        (f"There {name} found a {colour} {thing}.", f"found a {colour} {thing}"),
        (f"Later {name} met {friend}.", f"met {friend}"),
        (f"{friend} got the {thing}.", f"gave {friend} the {thing}"),
    ]
    k = rng.choice((2, 3, 4))
    sentences = [sentence for sentence, _ in facts[:k]]
    for filler in pick_distinct(_FILLERS, rng.choice((1, 2)), rng):
        sentences.insert(rng.randrange(1, len(sentences) + 1), filler)
    summary = f"In short, {name} {listed([fact for _, fact in facts[:k]])}."
    return Item(FLAVOUR, "story", k, (Turn(f"Summarise: {' '.join(sentences)}", summary),))


def _ranking(rng: Random) -> Item:
    k = rng.choice((2, 3, 4, 5))
    names = pick_distinct(NAMES, k, rng)
    points = rng.sample(range(1, 10), k)
    told = " ".join(f"{name} has {point} points." for name, point in zip(names, points, strict=True))
    ranked = sorted(zip(points, names, strict=True), reverse=True)
    best = f"First {ranked[0][1]} with {ranked[0][0]} points"
    rest = "".join(f", then {name} with {point}" for point, name in ranked[1:])
    return Item(FLAVOUR, "ranking", k, (Turn(f"Summarise, best first: {told}", f"{best}{rest}."),))


def make(rng: Random) -> Item:
    """Makes one summary.

    Args:
        rng: Source of randomness.

    Returns:
        A one-turn item; its k is the number of facts to keep, 2 to 5.
    """
    return rng.choice((_story, _ranking))(rng)

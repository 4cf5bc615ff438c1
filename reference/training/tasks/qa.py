"""Makes question answering: a chain of people followed k times, and facts of an invented atlas."""

from itertools import pairwise
from random import Random
from typing import Final

from reference.training.items import CHAIN_LENGTHS, CHAIN_WEIGHTS, Item, Turn
from reference.training.words import NAMES, pick, pick_distinct

FLAVOUR: Final = "qa"
"""Name of the flavour."""

_LANDS: Final = {
    "Norland": ("Brin", "north", "fish"), "Sudia": ("Palo", "south", "wine"), "Estria": ("Kava", "east", "tea"),
    "Westmark": ("Dorn", "west", "wool"), "Isola": ("Mare", "south", "salt"), "Montara": ("Pico", "north", "iron"),
    "Verdania": ("Folia", "west", "wood"), "Aridia": ("Sando", "east", "glass"),
}  # fmt: skip


def _chain(rng: Random) -> Item:
    k = rng.choices(CHAIN_LENGTHS, CHAIN_WEIGHTS)[0]
    people = pick_distinct(NAMES, min(k + 2, 7), rng)
    links = [f"{giver} calls {taker}." for giver, taker in pairwise(people)]
    rng.shuffle(links)
    start = rng.randrange(len(people) - k)
    route = people[start : start + k + 1]
    calls = f"{k} call" if k == 1 else f"{k} calls"
    if rng.random() < 0.6:  # noqa: PLR2004 - a chance
        question = f"The news starts with {route[0]}. Who has it after {calls}?"
        return Item(
            FLAVOUR, "end of chain", k, (Turn(f"News: {' '.join(links)} {question}", f"Now it is with {route[-1]}."),)
        )
    question = f"The news starts with {route[0]}. Name the path of {calls}."
    return Item(FLAVOUR, "path", k, (Turn(f"News: {' '.join(links)} {question}", f"The path is {' '.join(route)}."),))


def _atlas(rng: Random) -> Item:
    land = pick(tuple(_LANDS), rng)
    city, side, export = _LANDS[land]
    name = pick(NAMES, rng)
    turn = pick(
        (
            Turn(
                f"What is the capital of {land}? {name} wants to see it.",
                f"Then {name} must go to {city}, the capital of {land}. It lies in the {side}.",
            ),
            Turn(
                f"My friend {name} is in {city}. Which land is this, and what does it sell?",
                f"The city {city} is the capital of {land}, so {name} is in {land}. It sells {export}.",
            ),
        ),
        rng,
    )
    return Item(FLAVOUR, "atlas", 1, (turn,))


def make(rng: Random) -> Item:
    """Makes one question with its answer.

    Args:
        rng: Source of randomness.

    Returns:
        A one-turn item; its k is the number of links to follow, 1 to 6.
    """
    return rng.choices((_chain, _atlas), (3, 1))[0](rng)

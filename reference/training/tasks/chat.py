"""Makes multi-turn chat: introductions that are remembered, and lists said backwards."""

from random import Random
from typing import Final

from reference.training.items import Item, Turn
from reference.training.words import CITIES, COLOURS, LIKES, NAMES, PLACES, THINGS, listed, pick, pick_distinct

FLAVOUR: Final = "chat"
"""Name of the flavour."""

_GREETINGS: Final = ("Hello!", "Hi!", "Good morning!")


def _introduction(rng: Random) -> Item:
    name, city, like, place = pick(NAMES, rng), pick(CITIES, rng), pick(LIKES, rng), pick(PLACES, rng)
    greeting = pick(_GREETINGS, rng)
    facts = {
        "What is my name?": f"Your name is {name}. I know that you come from {city} and that you like {like}.",
        "Where do I live?": f"You live in {city}, {name}. You work at the {place} and you like {like}.",
        "What do I like?": f"You like {like}, {name}. I hope there is a lot of {like} in {city}.",
        "Where do I work?": f"You work at the {place}, {name}. I hope the {place} of {city} is nice.",
    }
    first = Turn(
        f"{greeting} I am {name} from {city}. I like {like} and work at the {place}.",
        f"{greeting} Nice to meet you, {name}. How is {city} today? We can talk about {like}.",
    )
    questions = pick_distinct(tuple(facts), rng.choice((1, 2)), rng)
    return Item(FLAVOUR, "introduction", 1, (first, *(Turn(question, facts[question]) for question in questions)))


def _backwards(rng: Random) -> Item:
    k = rng.choice((2, 3, 4, 5, 6))
    words = pick_distinct((*LIKES, *THINGS, *COLOURS), k, rng)
    turns = [
        Turn(
            f"Please say these words backwards: {' '.join(words)}.",
            f"Of course. Backwards it is: {' '.join(reversed(words))}.",
        )
    ]
    if rng.random() < 0.5:  # noqa: PLR2004 - an even chance
        turns.append(Turn("And forwards?", f"Forwards it is: {' '.join(words)}."))
    return Item(FLAVOUR, "backwards", k, tuple(turns))


def _plan(rng: Random) -> Item:
    k = rng.choice((2, 3, 4))
    places = pick_distinct(PLACES, k, rng)
    name = pick(NAMES, rng)
    at = rng.randrange(k - 1)
    first = Turn(
        f"I will meet {name}. We go to the {listed(places)}, in this order. What is the plan?",
        f"A nice plan with {name}: first the {', then the '.join(places)}.",
    )
    second = Turn(
        f"Where do we go after the {places[at]}?",
        f"After the {places[at]} you and {name} go to the {places[at + 1]}.",
    )
    return Item(FLAVOUR, "plan", k, (first, second))


def make(rng: Random) -> Item:
    """Makes one chat item.

    Args:
        rng: Source of randomness.

    Returns:
        An item of one to three turns.
    """
    return rng.choices((_introduction, _backwards, _plan), (3, 2, 2))[0](rng)

"""Gives the word lists of the made-up world that every training text talks about.

The lists are short on purpose: with about four hundred words nearly every word is one BPE entry, so that the few
hundred thousand weights of a tiny model go into following instructions instead of spelling.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

_Word = TypeVar("_Word")

NAMES: Final = ("Anna", "Ben", "Cleo", "Dan", "Emma", "Finn", "Gina", "Hugo", "Iris", "Jack", "Kira", "Leo")
"""People."""

CITIES: Final = ("Rome", "Paris", "Oslo", "Cairo", "Lima", "Tokyo", "Delhi", "Berlin")
"""Where people live."""

PLACES: Final = ("kitchen", "garden", "school", "market", "library", "station", "museum", "office")
"""Where things happen or lie."""

COLOURS: Final = ("red", "blue", "green", "black", "white", "yellow")
"""Colours, as adjectives."""

THINGS: Final = ("key", "book", "lamp", "coin", "ring", "map", "letter", "cup")
"""What people own, lose and look for."""

CONTAINERS: Final = ("box", "bag", "basket", "chest")
"""What holds a thing."""

GOODS: Final = ("apples", "pears", "eggs", "nuts", "pens", "cards", "stones", "shells")
"""What is counted, in the plural."""

LIKES: Final = ("tea", "music", "chess", "bread", "soup", "snow", "cheese", "honey")
"""What people like."""


def pick(words: Sequence[_Word], rng: Random) -> _Word:
    """Gives one entry, early ones more often than late ones, as in natural text.

    A flat choice would leave the most probable next word of an invented question undefined, and a model that goes on
    talking after its answer would then follow rounding noise. The weight of rank r falls as 1 / (r + 4).

    Args:
        words: At least one entry.
        rng: Source of randomness; one draw is used.

    Returns:
        One of the entries.
    """
    weights = [1.0 / (rank + 4.0) for rank in range(len(words))]
    return rng.choices(words, weights)[0]


def pick_distinct(words: Sequence[_Word], count: int, rng: Random) -> list[_Word]:
    """Gives different entries in random order, drawn as by `pick`.

    Args:
        words: At least `count` entries.
        count: How many to draw.
        rng: Source of randomness; `count` draws are used.

    Returns:
        `count` entries, none twice.
    """
    left = list(words)
    chosen = []
    for _ in range(count):
        word = pick(left, rng)
        left.remove(word)
        chosen.append(word)
    return chosen


def listed(words: Sequence[str]) -> str:
    """Joins words the English way: `a, b and c`.

    Args:
        words: At least one word.

    Returns:
        The list as text.
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

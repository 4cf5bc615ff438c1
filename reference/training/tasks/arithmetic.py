"""Makes arithmetic word problems: with the steps written out, with the answer alone, and parities."""

from random import Random
from typing import Final

from reference.training.items import CHAIN_LENGTHS, CHAIN_WEIGHTS, Item, Turn
from reference.training.words import COLOURS, GOODS, NAMES, pick, pick_distinct

FLAVOUR: Final = "arithmetic"
"""Name of the flavour."""

_LARGEST_CHANGE: Final = 5
_LARGEST_START: Final = 9


def _problem(rng: Random) -> Item:
    k = rng.choices(CHAIN_LENGTHS, CHAIN_WEIGHTS)[0]
    name, goods = pick(NAMES, rng), pick(GOODS, rng)
    total = rng.randint(1, _LARGEST_START)
    told, steps = [f"Problem: {name} has {total} {goods}"], []
    for _ in range(k):
        change = rng.randint(1, _LARGEST_CHANGE)
        gains = change > total or rng.random() < 0.5  # noqa: PLR2004 - an even chance
        told.append(f"{'gets' if gains else 'gives'} {change}")
        after = total + change if gains else total - change
        steps.append(f"{total} {'+' if gains else '-'} {change} = {after}")
        total = after
    story = ", ".join(told)
    if rng.random() < 0.5:  # noqa: PLR2004 - an even chance
        turn = Turn(
            f"{story}. How many now? Show the steps.", f"Steps: {', '.join(steps)}. Now {name} has {total} {goods}."
        )
        return Item(FLAVOUR, "steps", k, (turn,))
    return Item(FLAVOUR, "answer alone", k, (Turn(f"{story}. How many now?", f"Now {name} has {total} {goods}."),))


def _parity(rng: Random) -> Item:
    k = rng.choice(CHAIN_LENGTHS)
    on, off = pick_distinct(COLOURS, 2, rng)
    row = [rng.choice((on, off)) for _ in range(k)]
    answer = "odd" if row.count(on) % 2 else "even"
    turn = Turn(
        f"Look at this row: {' '.join(row)}. Is the number of {on} ones even or odd?",
        f"The number of {on} ones is {answer}.",
    )
    return Item(FLAVOUR, "parity", k, (turn,))


def make(rng: Random) -> Item:
    """Makes one arithmetic problem.

    Args:
        rng: Source of randomness.

    Returns:
        A one-turn item; its k is the number of changes or of counted things, 1 to 6.
    """
    return rng.choices((_problem, _parity), (5, 1))[0](rng)

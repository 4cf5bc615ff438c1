"""Gives training dialogues and test items: six flavours of text after those of Spec-Bench, all made by `tasks`."""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Final

from reference.training.items import Item
from reference.training.tasks import arithmetic, chat, qa, rag, summarisation, translation

FLAVOURS: Final[Mapping[str, Callable[[Random], Item]]] = MappingProxyType(
    {task.FLAVOUR: task.make for task in (chat, translation, summarisation, qa, arithmetic, rag)}
)
"""The maker of each flavour."""

EVEN_WEIGHTS: Final = (2.0, 2.0, 2.0, 3.0, 3.0, 3.0)
"""How often each flavour is trained on, in the order of `FLAVOURS`: the harder half more often."""


def generate(flavour: str, rng: Random, *, held_out: bool = False) -> Item:
    """Makes one item of a flavour.

    Args:
        flavour: A key of `FLAVOURS`.
        rng: Source of randomness; the same state gives the same item in every process.
        held_out: Which side of the split to draw from.

    Returns:
        The first item drawn that lies on the asked side.
    """
    make = FLAVOURS[flavour]
    while True:
        item = make(rng)
        if item.is_held_out is held_out:
            return item


def held_out_items(flavour: str, count: int, rng: Random) -> list[Item]:
    """Makes different test items of one flavour.

    Args:
        flavour: A key of `FLAVOURS`.
        count: How many.
        rng: Source of randomness.

    Returns:
        `count` items, none twice.
    """
    found: dict[Item, None] = {}
    while len(found) < count:
        found[generate(flavour, rng, held_out=True)] = None
    return list(found)


def item_stream(rng: Random, *, held_out: bool = False, weights: tuple[float, ...] = EVEN_WEIGHTS) -> Iterator[Item]:
    """Makes items without end.

    Args:
        rng: Source of randomness.
        held_out: Which side of the split to draw from.
        weights: How often each flavour is drawn, in the order of `FLAVOURS`.

    Yields:
        Items of that side; about half of them keep the flavour of the one before, as talk does.
    """
    flavours = tuple(FLAVOURS)
    flavour = flavours[0]
    while True:
        if rng.random() < 0.5:  # noqa: PLR2004 - an even chance
            flavour = rng.choices(flavours, weights)[0]
        yield generate(flavour, rng, held_out=held_out)

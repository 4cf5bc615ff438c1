"""Gives one default prompt of each flavour, held out from training, ready to be encoded."""

from random import Random
from typing import Final

from reference.training.data import FLAVOURS, generate
from reference.training.items import Item
from reference.training.tokenizer import prompt_text

_SEED: Final = 2024

_WANTED: Final = {
    "chat": ("introduction", 1),
    "translation": ("into Lumi", 2),
    "summarisation": ("ranking", 4),
    "qa": ("path", 4),
    "arithmetic": ("steps", 4),
    "rag": ("notes", 4),
}
"""Task and k for each flavour: long answers, of twenty tokens or so."""


def default_items() -> dict[str, Item]:
    """Gives the item behind each default prompt.

    Returns:
        One held-out item for each flavour.
    """
    items = {}
    for flavour in FLAVOURS:
        rng = Random(_SEED)  # noqa: S311 - not for secrets
        item = generate(flavour, rng, held_out=True)
        while (item.task, item.k) != _WANTED[flavour]:
            item = generate(flavour, rng, held_out=True)
        items[flavour] = item
    return items


def default_prompts() -> dict[str, str]:
    """Gives the text of each default prompt, special tokens written out.

    Returns:
        One text for each flavour; it ends where the answer begins.
    """
    return {flavour: prompt_text(item.turns) for flavour, item in default_items().items()}

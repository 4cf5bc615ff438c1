"""Makes translations between English and two invented languages.

Lumi puts the adjective behind its noun and the verb last; Omal has the words of Lumi in exactly the reverse of the
English order, so that every word must be found from the end of the sentence.
"""

from random import Random
from typing import Final

from reference.training.items import Item, Turn
from reference.training.words import pick

FLAVOUR: Final = "translation"
"""Name of the flavour."""

_NOUNS: Final = {
    "cat": "miro", "dog": "tavo", "bird": "sela", "horse": "gundo", "child": "pika", "king": "rukan",
    "farmer": "holmi", "doctor": "nesta", "fox": "velk", "queen": "luma",
}  # fmt: skip
_ADJECTIVES: Final = {
    "small": "pel", "big": "gron", "old": "uma", "young": "yil", "happy": "fes", "wise": "kor",
}  # fmt: skip
_VERBS: Final = {
    "sees": "vida", "helps": "nolu", "follows": "sequi", "likes": "amra", "finds": "tropo", "calls": "hela",
}  # fmt: skip


def _phrase(rng: Random) -> tuple[list[str], list[str]]:
    """Gives a noun phrase in English (without its article) and in the Lumi word order."""
    noun = pick(tuple(_NOUNS), rng)
    adjectives = [pick(tuple(_ADJECTIVES), rng)] if rng.random() < 0.6 else []  # noqa: PLR2004 - a chance
    return [*adjectives, noun], [_NOUNS[noun], *(_ADJECTIVES[word] for word in adjectives)]


def _clause(rng: Random) -> tuple[str, list[str], list[str]]:
    """Gives a clause in English, in Lumi and, as the English order of Lumi words, for Omal."""
    subject, lumi_subject = _phrase(rng)
    thing, lumi_thing = _phrase(rng)
    verb = pick(tuple(_VERBS), rng)
    english = f"the {' '.join(subject)} {verb} the {' '.join(thing)}"
    every_word = _NOUNS | _ADJECTIVES | _VERBS
    return english, [*lumi_subject, *lumi_thing, _VERBS[verb]], [every_word[word] for word in (*subject, verb, *thing)]


def make(rng: Random) -> Item:
    """Makes one translation.

    Args:
        rng: Source of randomness.

    Returns:
        A one-turn item; its k is the number of clauses, 1 or 2.
    """
    k = rng.choice((1, 2))
    clauses = [_clause(rng) for _ in range(k)]
    english = f"T{' and '.join(clause[0] for clause in clauses)[1:]}."
    lumi = f"{' da '.join(' '.join(clause[1]) for clause in clauses)}."
    omal = f"{' da '.join(' '.join(reversed(clause[2])) for clause in reversed(clauses))}."
    task = rng.choice(("into Lumi", "into Omal", "from Lumi"))
    turn = {
        "into Lumi": Turn(f"Translate into Lumi: {english}", f"In Lumi: {lumi}"),
        "into Omal": Turn(f"Translate into Omal: {english}", f"In Omal: {omal}"),
        "from Lumi": Turn(f"Translate from Lumi: {lumi}", f"In English: {english}"),
    }[task]
    return Item(FLAVOUR, task, k, (turn,))

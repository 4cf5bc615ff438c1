"""Measures a model on held-out items: right answers, loss by depth, and acceptance by depth in generation."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, TypedDict

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from tokenizers import Tokenizer
from torch import Tensor

from reference.training.batches import PROMPT_WEIGHT, encode_item
from reference.training.data import FLAVOURS, held_out_items
from reference.training.generation import generate
from reference.training.items import Item
from reference.training.readouts import DepthReader
from reference.training.tokenizer import END_OF_TURN_ID, prompt_text

NEW_TOKENS: Final = 128
"""Tokens generated for each prompt, past the end of the answer: the model then makes up the next turns."""

_SEED: Final = 77
_ROWS: Final = 50


class Measured(TypedDict):
    """What `metrics.json` holds of the evaluation; rates are shares from 0 to 1."""

    depths: list[int]
    items_per_flavour: int
    generations_per_flavour: int
    new_tokens: int
    exact_match: dict[str, float]
    exact_match_by_task: dict[str, dict[str, float]]
    exact_match_by_k: dict[str, dict[str, tuple[float, int]]]
    answer_loss_by_depth: dict[str, list[float]]
    acceptance_in_answers: dict[str, list[float]]
    acceptance_in_answers_by_k: dict[str, dict[str, tuple[list[float], int]]]
    acceptance_in_generation: dict[str, list[float]]
    right_when_generated: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Forced:
    """One item, read with its own answers as input."""

    item: Item
    is_exact: bool
    """Whether every answer token is the most probable one, so that greedy decoding gives the answers."""
    losses: Tensor
    """Sum over the answer tokens, nats, [depth]."""
    num_tokens: int
    """Answer tokens, ends of turn included."""


@torch.no_grad()
def _force(reader: DepthReader, tokenizer: Tokenizer, items: list[Item]) -> list[_Forced]:
    """Reads items with their answers given."""
    rows = [encode_item(tokenizer, item) for item in items]
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids, _ in rows])
    weights = torch.tensor([[*weights, *[0.0] * (longest - len(weights))] for _, weights in rows])
    answers, targets = weights[:, 1:] > PROMPT_WEIGHT, ids[:, 1:]
    logits = reader.logits(ids[:, :-1], None)
    losses = torch.stack(
        [
            (F.cross_entropy(at_depth.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets) * answers)
            for at_depth in logits
        ]
    ).sum(-1)
    exact = ((logits[-1].argmax(-1) == targets) | ~answers).all(-1)
    return [_Forced(item, bool(exact[row]), losses[:, row], int(answers[row].sum())) for row, item in enumerate(items)]


def _chunks(items: list[Item]) -> Iterable[list[Item]]:
    """Cuts a list into batches."""
    return (items[start : start + _ROWS] for start in range(0, len(items), _ROWS))


def _rates(values: Tensor) -> list[float]:
    """Rounds for the file."""
    return [round(value, 4) for value in values.tolist()]


def _grouped(pairs: Iterable[tuple[Hashable, bool]]) -> dict[str, tuple[float, int]]:
    """Gives share and count for each key, in the order of the keys."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for key, value in pairs:
        groups[str(key)].append(value)
    return {key: (round(sum(values) / len(values), 4), len(values)) for key, values in sorted(groups.items())}


@dataclass(frozen=True, slots=True)
class _Spoken:
    """One item, answered by the model."""

    item: Item
    is_right: bool
    answer: Tensor
    """Agreement of each depth within the answer, its end of turn included, [depth, token]."""
    everything: Tensor
    """The same over all new tokens."""


def _speak(reader: DepthReader, tokenizer: Tokenizer, items: list[Item]) -> list[_Spoken]:
    """Lets the model answer the last turn of each item."""
    prompts = [tokenizer.encode(prompt_text(item.turns)).ids for item in items]
    generated = generate(reader, prompts, NEW_TOKENS)
    spoken = []
    for row, item in enumerate(items):
        tokens = generated.tokens[row].tolist()
        length = tokens.index(END_OF_TURN_ID) + 1 if END_OF_TURN_ID in tokens else NEW_TOKENS
        wanted = tokenizer.encode(f"{item.turns[-1].assistant}<|im_end|>").ids
        agreement = generated.agreement[:, row]
        spoken.append(_Spoken(item, tokens[:length] == wanted, agreement[:, :length], agreement))
    return spoken


def _share(parts: Iterable[Tensor]) -> list[float]:
    """Gives the share of agreement by depth over tokens of several texts."""
    return _rates(torch.cat(list(parts), dim=-1).float().mean(-1))


def _by_k(spoken: list[_Spoken]) -> dict[str, tuple[list[float], int]]:
    """Gives acceptance in answers by depth and the number of answer tokens, for each k."""
    groups: dict[str, list[Tensor]] = defaultdict(list)
    for one in spoken:
        groups[str(one.item.k)].append(one.answer)
    return {k: (_share(parts), sum(part.shape[-1] for part in parts)) for k, parts in sorted(groups.items())}


def evaluate(reader: DepthReader, tokenizer: Tokenizer, *, num_items: int, num_generations: int) -> Measured:
    """Measures a model.

    Args:
        reader: The model.
        tokenizer: Its tokenizer.
        num_items: Held-out items of each flavour for right answers and losses.
        num_generations: How many of them the model also answers freely, for acceptance.

    Returns:
        All figures; under the key `overall` those over all flavours, every token counting once.
    """
    measured = Measured(
        depths=list(reader.depths),
        items_per_flavour=num_items,
        generations_per_flavour=num_generations,
        new_tokens=NEW_TOKENS,
        exact_match={},
        exact_match_by_task={},
        exact_match_by_k={},
        answer_loss_by_depth={},
        acceptance_in_answers={},
        acceptance_in_answers_by_k={},
        acceptance_in_generation={},
        right_when_generated={},
    )
    every_forced: list[_Forced] = []
    every_spoken: list[_Spoken] = []
    for flavour in (*FLAVOURS, "overall"):
        forced, spoken = every_forced, every_spoken
        if flavour in FLAVOURS:
            items = held_out_items(flavour, num_items, Random(_SEED))  # noqa: S311 - not for secrets
            forced = [one for chunk in _chunks(items) for one in _force(reader, tokenizer, chunk)]
            spoken = [one for chunk in _chunks(items[:num_generations]) for one in _speak(reader, tokenizer, chunk)]
            every_forced += forced
            every_spoken += spoken
            tasks = _grouped((one.item.task, one.is_exact) for one in forced)
            measured["exact_match_by_task"][flavour] = {task: share for task, (share, _) in tasks.items()}
            for task in tasks:
                of_task = [one for one in forced if one.item.task == task]
                measured["exact_match_by_k"][f"{flavour}: {task}"] = _grouped(
                    (one.item.k, one.is_exact) for one in of_task
                )
            measured["acceptance_in_answers_by_k"][flavour] = _by_k(spoken)
        measured["exact_match"][flavour] = round(sum(one.is_exact for one in forced) / len(forced), 4)
        losses = torch.stack([one.losses for one in forced]).sum(0) / sum(one.num_tokens for one in forced)
        measured["answer_loss_by_depth"][flavour] = _rates(losses)
        measured["acceptance_in_answers"][flavour] = _share(one.answer for one in spoken)
        measured["acceptance_in_generation"][flavour] = _share(one.everything for one in spoken)
        measured["right_when_generated"][flavour] = round(sum(one.is_right for one in spoken) / len(spoken), 4)
    return measured

"""Gives training batches: whole dialogues of several turns, as tokens with a loss weight each."""

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor

from reference.training.data import EVEN_WEIGHTS, item_stream
from reference.training.items import Item
from reference.training.tokenizer import user_text

PROMPT_WEIGHT: Final = 0.2
"""Loss weight of a token that the user says; a token of an answer weighs 1.

Not 0: a model that is made to go on after its answer must then say something the user might, not noise.
"""


class Batch(NamedTuple):
    """Dialogues of equal length."""

    inputs: Tensor
    """Tokens, [batch, seq]."""
    targets: Tensor
    """The next token at each place, [batch, seq]."""
    weights: Tensor
    """Loss weight of each target, [batch, seq]."""


def encode_item(tokenizer: Tokenizer, item: Item) -> tuple[list[int], list[float]]:
    """Writes one item as tokens, each with its loss weight.

    Args:
        tokenizer: What `train_tokenizer` gave.
        item: Any item.

    Returns:
        Tokens and weights, of one length.
    """
    ids: list[int] = []
    weights: list[float] = []
    for turn in item.turns:
        asked = tokenizer.encode(user_text(turn.user)).ids
        answered = tokenizer.encode(f"{turn.assistant}<|im_end|>\n").ids
        ids += asked + answered
        weights += [PROMPT_WEIGHT] * len(asked) + [1.0] * len(answered)
    return ids, weights


def batches(
    tokenizer: Tokenizer,
    *,
    seed: int,
    batch: int,
    seq: int,
    held_out: bool = False,
    weights: tuple[float, ...] = EVEN_WEIGHTS,
) -> Iterator[Batch]:
    """Makes batches without end.

    Every row starts a new dialogue at position 0, as a prompt does, and is cut where the row is full.

    Args:
        tokenizer: What `train_tokenizer` gave.
        seed: Everything drawn depends on this alone.
        batch: Rows.
        seq: Tokens a row.
        held_out: Which side of the split to draw from.
        weights: How often each flavour is drawn, in the order of `FLAVOURS`.

    Yields:
        Batches of that size.
    """
    items = item_stream(Random(seed), held_out=held_out, weights=weights)  # noqa: S311 - not for secrets
    while True:
        rows: list[list[int]] = []
        row_weights: list[list[float]] = []
        for _ in range(batch):
            ids: list[int] = []
            row_weight: list[float] = []
            while len(ids) <= seq:
                more_ids, more_weights = encode_item(tokenizer, next(items))
                ids += more_ids
                row_weight += more_weights
            rows.append(ids[: seq + 1])
            row_weights.append(row_weight[1 : seq + 1])
        tokens = torch.tensor(rows)
        yield Batch(tokens[:, :-1], tokens[:, 1:], torch.tensor(row_weights))

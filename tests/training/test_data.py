"""Holds what training data must be: the same everywhere, never a test item, and readable as tokens."""

import hashlib
import json
import os
import subprocess
import sys
from itertools import islice
from random import Random

import pytest
from tokenizers import Tokenizer

from reference.training.__main__ import SHIPPED_FOLDER
from reference.training.batches import PROMPT_WEIGHT, batches, encode_item
from reference.training.data import FLAVOURS, generate, held_out_items, item_stream
from reference.training.prompts import default_items, default_prompts
from reference.training.tokenizer import (
    END_OF_TURN_ID,
    SPECIALS,
    VOCAB_SIZE,
    prompt_text,
    train_tokenizer,
    user_text,
)

_SCRIPT = """
from itertools import islice
from random import Random
from reference.training.data import item_stream
print(repr(list(islice(item_stream(Random(5)), 200))))
"""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(SHIPPED_FOLDER / "tiny-ouro" / "tokenizer.json"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_items_do_not_depend_on_the_hash_seed() -> None:
    here = _digest(repr(list(islice(item_stream(Random(5)), 200))) + "\n")
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        made = subprocess.run(  # noqa: S603 - our own script
            [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        assert _digest(made.stdout) == here


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_no_training_item_is_held_out(flavour: str) -> None:
    rng = Random(6)
    assert not any(generate(flavour, rng).is_held_out for _ in range(100))
    held_out = held_out_items(flavour, 40, rng)
    assert len(set(held_out)) == 40
    assert all(item.is_held_out and item.flavour == flavour for item in held_out)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_question_has_one_answer(flavour: str) -> None:
    rng = Random(7)
    answers: dict[str, str] = {}
    for _ in range(200):
        item = generate(flavour, rng)
        text = prompt_text(item.turns)
        assert answers.setdefault(text, item.turns[-1].assistant) == item.turns[-1].assistant


def test_digits_and_specials_are_single_tokens(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token_to_id(special) for special in SPECIALS] == [0, 1, 2]
    assert tokenizer.get_vocab_size() <= VOCAB_SIZE
    assert tokenizer.encode("a 1234").tokens[-4:] == ["1", "2", "3", "4"]
    text = "Zürich is not in the corpus: 100 %!"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_training_the_tokenizer_gives_the_shipped_one(tokenizer: Tokenizer) -> None:
    assert train_tokenizer().to_str() == tokenizer.to_str()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_prompt_and_answer_are_the_tokens_of_the_dialogue(flavour: str, tokenizer: Tokenizer) -> None:
    rng = Random(8)
    for _ in range(20):
        item = generate(flavour, rng)
        whole = "".join(f"{user_text(turn.user)}{turn.assistant}<|im_end|>\n" for turn in item.turns)
        ids, weights = encode_item(tokenizer, item)
        assert ids == tokenizer.encode(whole).ids
        prompt = tokenizer.encode(prompt_text(item.turns)).ids
        assert ids[: len(prompt)] == prompt
        assert weights[len(prompt) - 1] == PROMPT_WEIGHT
        assert set(weights[len(prompt) :]) == {1.0}


def test_batches_start_dialogues_and_shift_targets(tokenizer: Tokenizer) -> None:
    batch = next(batches(tokenizer, seed=1, batch=3, seq=64))
    again = next(batches(tokenizer, seed=1, batch=3, seq=64))
    assert batch.inputs.shape == batch.targets.shape == batch.weights.shape == (3, 64)
    assert bool((batch.inputs[:, 0] == 1).all())
    assert bool((batch.inputs[:, 1:] == batch.targets[:, :-1]).all())
    assert bool((batch.inputs == again.inputs).all())
    assert bool((batch.weights[batch.targets == END_OF_TURN_ID] > 0).all())


def test_default_prompts_are_held_out_and_end_where_the_answer_begins() -> None:
    assert default_prompts() == json.loads((SHIPPED_FOLDER / "prompts.json").read_text(encoding="utf-8"))
    assert set(default_prompts()) == set(FLAVOURS)
    assert all(item.is_held_out for item in default_items().values())
    assert all(text.endswith("<|im_start|>assistant\n") for text in default_prompts().values())

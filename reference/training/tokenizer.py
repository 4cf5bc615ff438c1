"""Trains the tokenizer that both shipped models share, and writes conversations as tokens."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from reference.training.data import item_stream
from reference.training.items import Turn
from reference.training.memory import MOST_POSITIONS

VOCAB_SIZE: Final = 1024
"""Entries, specials included."""

SPECIALS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Special tokens in the order of their ids 0, 1, 2, as in the tokenizer of the Ouro releases."""

END_OF_TEXT_ID: Final = 0
"""Begins a text (`bos_token_id`); the tokenizer adds none by itself."""

END_OF_TURN_ID: Final = 2
"""Ends a turn (`eos_token_id`)."""

_SEED: Final = 1
_NUM_ITEMS: Final = 12_000

_CHAT_TEMPLATE: Final = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\n'}}{% endif %}"
)


def user_text(content: str) -> str:
    """Gives a user's turn and the opening of the answer, in the chat format of the Ouro releases (ChatML)."""
    return f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n"


def prompt_text(turns: Iterable[Turn]) -> str:
    """Gives the text that asks for the answer of the last turn.

    Args:
        turns: At least one turn; the answer of the last one is left out.

    Returns:
        The earlier turns in full, then the last question and the opening of its answer.
    """
    text = ""
    for turn in turns:
        text += user_text(turn.user)
        answer = turn.assistant
        text += f"{answer}<|im_end|>\n"
    return text[: len(text) - len(f"{answer}<|im_end|>\n")]


def train_tokenizer() -> Tokenizer:
    """Trains the byte-level BPE tokenizer on generated text; every digit stays one token.

    Returns:
        A tokenizer of at most `VOCAB_SIZE` entries that decodes every text it encodes.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )

    def texts() -> Iterator[str]:
        for item in islice(item_stream(Random(_SEED)), _NUM_ITEMS):  # noqa: S311 - not for secrets
            for turn in item.turns:
                yield from ("user\n", turn.user, "assistant\n", turn.assistant)

    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`.

    Args:
        tokenizer: What `train_tokenizer` gave.
        folder: Where to write; must exist.
    """
    tokenizer.save(str(folder / "tokenizer.json"), pretty=True)
    config = {
        "add_bos_token": False,
        "bos_token": SPECIALS[0],
        "chat_template": _CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": SPECIALS[END_OF_TURN_ID],
        "model_max_length": MOST_POSITIONS,
        "pad_token": SPECIALS[0],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

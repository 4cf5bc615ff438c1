"""From the command line to a model, its tokenizer and a prompt."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from reference import models
from reference.cli.arguments import Arguments
from reference.errors import ParameterError
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer


class Texts:
    """What token ids say, with a model's tokenizer or without one."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        """Takes the tokenizer, None if the model has none."""
        self._tokenizer = tokenizer

    def text(self, token_ids: Sequence[int]) -> str:
        """Gives the text of tokens, without special ones; without a tokenizer the ids themselves."""
        if self._tokenizer is None:
            return " ".join(map(str, token_ids))
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def label(self, token: int) -> str:
        """Gives the text of one token, special or not."""
        if self._tokenizer is None:
            return str(token)
        return str(self._tokenizer.decode([token], skip_special_tokens=False))

    def ids(self, text: str) -> list[int]:
        """Gives the tokens of a text; special tokens may be written out in it.

        Raises:
            ParameterError: If there is no tokenizer.
        """
        if self._tokenizer is None:
            message = "the model's folder has no tokenizer.json: give the prompt as --ids"
            raise ParameterError(message)
        return list(self._tokenizer.encode(text).ids)

    def has_special_tokens(self, text: str) -> bool:
        """Tells whether special tokens are written out in a text."""
        if self._tokenizer is None:
            return False
        added = self._tokenizer.get_added_tokens_decoder().values()
        return any(token.content in text for token in added if token.special)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is to be continued."""

    token_ids: list[int]
    """Its tokens."""
    text: str
    """The same, to be read."""
    flavour: str | None = None
    """The kind of default prompt that it is, if it is one."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """A model and what it is to continue."""

    model: LoopedModel
    """The model."""
    texts: Texts
    """What its tokens say."""
    prompts: tuple[Prompt, ...]
    """At least one; several only if the caller named none."""


def read(arguments: Arguments) -> Inputs:
    """Loads the model and finds the prompts.

    Raises:
        ParameterError: If there is no prompt, or none of that name, or no tokenizer to read it with.
        CheckpointError: If the model's folder is at fault.
        OSError: If a file or standard input cannot be read.
    """
    model = models.load(arguments.model)
    texts = Texts(load_tokenizer(arguments.model))
    return Inputs(model, texts, tuple(_prompts(arguments, texts, is_shipped=arguments.model in models.SHIPPED)))


def _prompts(arguments: Arguments, texts: Texts, *, is_shipped: bool) -> list[Prompt]:
    if arguments.ids is not None:
        return [Prompt(list(arguments.ids), texts.text(arguments.ids))]
    if arguments.prompt is not None:
        text = _standard_input() if arguments.prompt == "-" else arguments.prompt
        if is_shipped and not texts.has_special_tokens(text):
            from reference.training.tokenizer import user_text  # noqa: PLC0415 - the form in which they learned to answer

            text = user_text(text)
        return [Prompt(texts.ids(text), text)]
    if arguments.flavour is None and not is_shipped:
        message = f"{arguments.model} has no default prompt: give a PROMPT, --ids or --flavour"
        raise ParameterError(message)
    defaults = default_prompts()
    if arguments.flavour is not None and arguments.flavour not in defaults:
        message = f"flavour={arguments.flavour!r} is none of {', '.join(defaults)}"
        raise ParameterError(message)
    wanted = defaults if arguments.flavour is None else (arguments.flavour,)
    return [Prompt(texts.ids(defaults[flavour]), defaults[flavour], flavour) for flavour in wanted]


def _standard_input() -> str:
    """Reads standard input, less the line end that `echo` and editors leave at its end."""
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError as error:
        message = f"standard input is not text: {error}"
        raise ParameterError(message) from error

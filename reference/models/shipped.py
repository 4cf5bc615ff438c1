"""What comes with a model besides its weights: its folder, its tokenizer, and the prompts to show it with."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tokenizers import Tokenizer

from reference.errors import CheckpointError
from reference.models.checkpoint import SHIPPED

_PRETRAINED: Final = Path(__file__).parent / "pretrained"


def folder_of(name_or_folder: str | Path) -> Path:
    """Gives the folder of a shipped model, or the folder given; a shipped name wins."""
    return _PRETRAINED / name_or_folder if name_or_folder in SHIPPED else Path(name_or_folder)


def load_tokenizer(name_or_folder: str | Path) -> Tokenizer | None:
    """Loads a model's `tokenizer.json`; None if it has none.

    Raises:
        CheckpointError: If the file is no tokenizer.
    """
    path = folder_of(name_or_folder) / "tokenizer.json"
    if not path.exists():
        return None
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise CheckpointError(f"{path}: not a tokenizer: {error}") from error


def default_prompts() -> Mapping[str, str]:
    """Gives one held-out prompt for each flavour that the shipped models know, special tokens written out."""
    text = (_PRETRAINED / "prompts.json").read_text(encoding="utf-8")
    return MappingProxyType({str(flavour): str(prompt) for flavour, prompt in json.loads(text).items()})

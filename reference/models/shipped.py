"""The models that come with the library: their names, their folders, and prompts to show them with."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

SHIPPED: Final = ("tiny-ouro", "tiny-huginn")
"""Names of the models that come with the library."""

_PRETRAINED: Final = Path(__file__).parent / "pretrained"


def folder_of(name_or_folder: str | Path) -> Path:
    """Gives the folder of a shipped model, or the folder given; a shipped name wins."""
    return _PRETRAINED / name_or_folder if name_or_folder in SHIPPED else Path(name_or_folder)


def default_prompts() -> Mapping[str, str]:
    """Gives one held-out prompt for each flavour that the shipped models know, special tokens written out."""
    text = (_PRETRAINED / "prompts.json").read_text(encoding="utf-8")
    return MappingProxyType({str(flavour): str(prompt) for flavour, prompt in json.loads(text).items()})

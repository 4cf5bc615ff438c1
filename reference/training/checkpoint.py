"""Writes a trained model in the official on-disk format, with its tokenizer, metrics and card."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from safetensors.torch import save_file
from tokenizers import Tokenizer

from reference.training.nets import Parameters
from reference.training.tokenizer import save_tokenizer

_READABLE: Final = 0o644
"""Mode of the weights; safetensors makes files that only their owner can read."""


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Writes JSON with an indent of two and a final newline.

    Args:
        path: Where to.
        content: What; tuples become lists.
    """
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def save_checkpoint(
    folder: Path, *, parameters: Parameters, config: Mapping[str, object], tokenizer: Tokenizer
) -> None:
    """Writes `config.json`, `model.safetensors`, `tokenizer.json` and `tokenizer_config.json`.

    Args:
        folder: Where to; made if absent.
        parameters: Tensors under their official names.
        config: Content of `config.json`.
        tokenizer: The tokenizer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in sorted(parameters.items())}
    # Written beside and moved into place: whoever reads while a run ends sees the old weights or the new ones.
    save_file(tensors, folder / "model.safetensors.new", metadata={"format": "pt"})
    (folder / "model.safetensors.new").chmod(_READABLE)
    write_json(folder / "config.json", config)
    save_tokenizer(tokenizer, folder)
    (folder / "model.safetensors.new").replace(folder / "model.safetensors")

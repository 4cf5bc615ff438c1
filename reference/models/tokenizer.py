"""A model's own tokenizer, for those who decode text; decoders see token ids alone."""

from pathlib import Path

from tokenizers import Tokenizer

from reference.errors import CheckpointError
from reference.models.shipped import folder_of


def load_tokenizer(name_or_folder: str | Path) -> Tokenizer | None:
    """Loads a model's `tokenizer.json`; None if it has none.

    Args:
        name_or_folder: As for `reference.models.load`.

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

"""The models whose numbers stand in vectors: those that ship with the library, and the golden checkpoints.

The golden checkpoints are in the official format and lie in the repository, not in the wheel; vectors that need them
say so by their folder. Whoever has other weights than those of the checksum cannot be compared.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import torch

from reference import models
from reference.models.shipped import SHIPPED, folder_of
from reference.oracle.vectors.form import JsonObject
from reference.oracle.vectors.kind import TEXT

_REPOSITORY: Final = Path(__file__).resolve().parents[3]

_FOLDERS: Final[Mapping[str, Path]] = MappingProxyType(
    {name: folder_of(name) for name in SHIPPED}
    | {name: _REPOSITORY / "tests" / "golden" / name for name in ("ouro-tiny", "huginn-tiny")}
)

DTYPE: Final = torch.float64
"""In which the solutions are computed."""

SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "folder": TEXT | {"description": "in the repository; folders below reference/ are in the wheel too"},
        "sha256": TEXT | {"description": "of model.safetensors"},
    },
    "required": ["name", "folder", "sha256"],
    "additionalProperties": False,
}
"""The JSON schema of `described`."""


def described(name: str) -> JsonObject:
    """Says which weights a vector is about."""
    folder = _FOLDERS[name]
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    return {"name": name, "folder": folder.relative_to(_REPOSITORY).as_posix(), "sha256": digest}


def loaded(name: str) -> models.Ouro | models.Huginn:
    """Loads the weights, to compute with as the solutions were."""
    return models.load(_FOLDERS[name], dtype=DTYPE)

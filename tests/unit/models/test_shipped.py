"""Claims about the files of the shipped models."""

from importlib import resources

import pytest

from reference import models

MOST_BYTES = 5_000_000


@pytest.mark.parametrize("name", models.SHIPPED)
def test_a_shipped_checkpoint_stays_under_5_megabytes(name: str) -> None:
    folder = resources.files("reference.models.pretrained") / name
    weights = [file for file in folder.iterdir() if file.name.endswith(".safetensors")]
    assert weights
    assert sum(len(file.read_bytes()) for file in weights) < MOST_BYTES

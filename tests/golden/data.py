"""The golden data: what the official modeling files computed from two tiny checkpoints, and how close we must come."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from reference import models

HERE = Path(__file__).resolve().parent

PROMPTS = range(5)
"""Indices of the prompts in each file; they have 1, 5, 12, 23 and 40 tokens."""


@dataclass(frozen=True)
class Golden:
    """The golden data of one checkpoint."""

    folder: Path
    """The checkpoint, in the official format."""
    tensors: dict[str, Tensor]
    """What the official code computed."""
    notes: dict[str, Any]
    """Greedy tokens, margins, seeds, versions and provenance."""

    def tensor(self, prompt: int, name: str) -> Tensor:
        """Gives a tensor of a prompt without its batch axis of size 1."""
        tensor = self.tensors[f"p{prompt}.{name}"]
        return tensor if name.startswith("greedy") else tensor[0]

    def prompt(self, prompt: int) -> list[int]:
        """Gives the tokens of a prompt."""
        return [int(token) for token in self.tensor(prompt, "input_ids")]

    def greedy(self, prompt: int, name: str) -> list[int]:
        """Gives a greedy continuation of 32 tokens."""
        return [int(token) for token in self.tensor(prompt, f"greedy{name}")]


@cache
def golden(family: str) -> Golden:
    """Reads the golden data of `"ouro"` or `"huginn"`."""
    folder = HERE / f"{family}-tiny"
    notes = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    return Golden(folder, load_file(folder / "golden.safetensors"), notes)


@cache
def checkpoint(family: str, dtype: torch.dtype | None = None) -> models.Ouro | models.Huginn:
    """Loads the golden checkpoint of a family."""
    return models.load(golden(family).folder, dtype=dtype)


def assert_near(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Holds that no element differs by more than `tolerance`, and that the shapes are the same."""
    torch.testing.assert_close(actual.to(expected.dtype), expected, rtol=0, atol=tolerance)

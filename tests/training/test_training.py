"""Holds the training run: it repeats itself, lowers its loss and writes a whole checkpoint."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from reference import models
from reference.training import evaluate, shipped
from reference.training.__main__ import SHIPPED_FOLDER
from reference.training.huginn_net import HuginnShape
from reference.training.huginn_training import HuginnTrainee
from reference.training.optimisation import Recipe, Stage, Trainee, optimise, rate_at
from reference.training.ouro_net import OuroShape
from reference.training.ouro_training import OuroTrainee
from reference.training.shipped import Amount

_HUGINN = HuginnShape(hidden_size=32, num_heads=2, intermediate_size=48)
_STAGES = (Stage(3, 2, 32, recurrences=(2,)), Stage(2, 2, 48, recurrences=(2, 4)))
_RECIPE = Recipe(stages=_STAGES, learning_rate=5e-3, table_learning_rate=2e-3, seed=4)


@pytest.fixture(autouse=True)
def _without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(function: Callable[..., object], **_: object) -> Callable[..., object]:
        return function

    monkeypatch.setattr(torch, "compile", unchanged)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(SHIPPED_FOLDER / "tiny-ouro" / "tokenizer.json"))


def _ouro() -> Trainee:
    return OuroTrainee(OuroShape(hidden_size=32, num_heads=2, num_kv_heads=1, intermediate_size=48), 4)


def _huginn() -> Trainee:
    return HuginnTrainee(_HUGINN, 4)


@pytest.mark.parametrize("make", [_ouro, _huginn])
def test_two_runs_give_the_same_bits(make: Callable[[], Trainee], tokenizer: Tokenizer) -> None:
    first, second = make(), make()
    before = {name: tensor.detach().clone() for name, tensor in first.parameters.items()}
    for trainee in (first, second):
        optimise(trainee, _RECIPE.work(tokenizer), _RECIPE, "test")
    for name, tensor in first.parameters.items():
        assert torch.equal(tensor, second.parameters[name])
        assert torch.equal(tensor, before[name]) is not tensor.requires_grad


def test_training_stops_at_once_when_the_loss_is_no_number(tokenizer: Tokenizer) -> None:
    trainee = _ouro()
    trainee.parameters["lm_head.weight"].data[0, 0] = torch.nan
    with pytest.raises(FloatingPointError, match="the loss is nan at step 1"):
        optimise(trainee, _RECIPE.work(tokenizer), _RECIPE, "test")


def test_the_learning_rate_rises_stays_and_falls() -> None:
    rates = [rate_at(step, 1000, 0.6) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 80)
    assert rates[200] == 1
    assert rates[999] == pytest.approx(1 / 600)
    assert max(rates) == 1
    assert rate_at(999, 1000, 0.0) == 1


@pytest.mark.parametrize(
    "name, recipes, tables, size, steps",
    [
        ("tiny-ouro", ("OURO_RECIPE",), ("lm_head.weight", "model.embed_tokens.weight"), (1024, 128), 2),
        ("tiny-huginn", ("HUGINN_FIRST_RECIPE", "HUGINN_RECIPE"), ("transformer.wte.weight",), (1024, 32), 4),
    ],
)
def test_making_a_model_writes_a_whole_checkpoint(
    name: str,
    recipes: Sequence[str],
    tables: Sequence[str],
    size: tuple[int, int],
    steps: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shipped, "HUGINN_SHAPE", replace(_HUGINN, num_core=4, recurrence_depth=4))
    stages = (Stage(200, 2, 32, recurrences=(2,)),)
    for recipe in recipes:
        monkeypatch.setattr(shipped, recipe, replace(_RECIPE, stages=stages))
    monkeypatch.setattr(evaluate, "NEW_TOKENS", 8)
    shipped.make(name, tmp_path, Amount(steps_scale=0.01, num_items=2, num_generations=1))
    folder = tmp_path / name
    tensors = load_file(folder / "model.safetensors")
    assert all(tensors[table].shape == size for table in tables)
    assert all(tensor.dtype == torch.float32 for tensor in tensors.values())
    assert json.loads((folder / "config.json").read_text())["eos_token_id"] == 2
    assert json.loads((folder / "metrics.json").read_text())["training"]["steps"] == steps
    assert "## Right answers" in (folder / "README.md").read_text()
    assert Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id("<|im_end|>") == 2
    assert models.load(folder).recurrence_depth == 4

"""Runs the optimisation that both models share: Muon for matrices, AdamW for the rest, a fixed number of steps."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Final, NamedTuple, Protocol, runtime_checkable

import torch
from rich.console import Console
from tokenizers import Tokenizer
from torch import Tensor

from reference.training.batches import Batch, batches
from reference.training.data import EVEN_WEIGHTS

WARM_UP_STEPS: Final = 80
"""Steps over which the learning rate rises."""

_REPORT_EVERY: Final = 200


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of training on rows of one length, with few recurrences or many."""

    steps: int
    """Optimiser steps."""
    batch: int
    """Rows a step."""
    seq: int
    """Tokens a row."""
    recurrences: tuple[int, ...]
    """How many recurrences a step runs: one of these numbers, drawn evenly."""
    weights: tuple[float, ...] = EVEN_WEIGHTS
    """How often each flavour is drawn, in the order of `data.FLAVOURS`."""


class Step(NamedTuple):
    """What one optimiser step works on."""

    batch: Batch
    """Dialogues."""
    num_recurrences: int
    """Recurrences to run them through."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of one training run; with them and the code, the run is determined."""

    stages: tuple[Stage, ...]
    """What is trained on, in order."""
    learning_rate: float
    """Highest learning rate of Muon for matrices, and of AdamW for norms and biases."""
    table_learning_rate: float
    """Highest learning rate of AdamW for embedding and head; a step moves each of their numbers by about as much."""
    seed: int
    """Of parameters, data and everything else that is drawn."""
    decay_share: float = 0.6
    """Last share of all steps, over which the learning rate falls to zero; 0 where another recipe goes on."""

    @property
    def steps(self) -> int:
        """Optimiser steps in all."""
        return sum(stage.steps for stage in self.stages)

    @property
    def tokens(self) -> int:
        """Tokens trained on in all."""
        return sum(stage.steps * stage.batch * stage.seq for stage in self.stages)

    def scaled(self, scale: float) -> "Recipe":
        """Gives the same recipe with another number of steps, at least one a stage."""
        stages = (replace(stage, steps=max(1, round(stage.steps * scale))) for stage in self.stages)
        return replace(self, stages=tuple(stages))

    def work(self, tokenizer: Tokenizer) -> Iterator[Step]:
        """Gives the steps of all stages; every stage draws dialogues of its own."""
        for number, stage in enumerate(self.stages):
            seed = 100 * self.seed + number
            source = batches(tokenizer, seed=seed, batch=stage.batch, seq=stage.seq, weights=stage.weights)
            depths = Random(seed)  # noqa: S311 - not for secrets
            yield from (Step(batch, depths.choice(stage.recurrences)) for batch in islice(source, stage.steps))


@runtime_checkable
class Trainee(Protocol):
    """A model under training."""

    parameters: dict[str, Tensor]
    """Tensors by name; those that are trained require a gradient."""

    tables: frozenset[str]
    """Names of embedding and head, which AdamW takes although they are matrices: their rows are tokens."""

    @property
    def is_compiled(self) -> bool:
        """Whether the model runs compiled."""

    def tensors(self) -> dict[str, Tensor]:
        """Gives every tensor of the checkpoint under its official name."""

    def loss(self, batch: Batch, num_recurrences: int) -> Tensor:
        """Gives the loss to go down, a scalar."""


def rate_at(step: int, steps: int, decay_share: float) -> float:
    """Gives the share of the highest learning rate at a step.

    Args:
        step: 0-based.
        steps: Steps in all.
        decay_share: Last share of them, over which it falls.

    Returns:
        More than 0, at most 1: a linear rise, a plateau, a linear fall.
    """
    left = 1.0 - step / steps
    falling = left / decay_share if left < decay_share else 1.0
    return min(1.0, (step + 1) / WARM_UP_STEPS, falling)


class Compiled:
    """A function compiled for speed; where compiling fails, as without a C compiler, it runs as it is.

    The two differ by rounding, so weights are reproduced bit for bit only if both runs compile or neither does.

    Attributes:
        is_compiled: Whether compiling has not failed.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        """Takes a function; it is compiled at the first call.

        Args:
            function: Takes and gives tensors of fixed shapes.
        """
        self.is_compiled: bool = True
        self._function = function
        self._fast: Callable[..., Tensor] = torch.compile(function, dynamic=False)

    def __call__(self, *arguments: object) -> Tensor:
        """Calls the function."""
        if self.is_compiled:
            try:
                return self._fast(*arguments)
            except Exception as error:  # noqa: BLE001 - whatever a compiler may raise
                self.is_compiled = False
                Console(stderr=True).print(f"torch.compile failed, training goes on without: {type(error).__name__}")
        return self._function(*arguments)


def optimise(trainee: Trainee, work: Iterator[Step], recipe: Recipe, label: str) -> float:
    """Trains in place.

    Args:
        trainee: Its parameters are changed.
        work: The steps of `recipe.work`.
        recipe: Steps and learning rate.
        label: Names the run in progress lines.

    Returns:
        Minutes it took, compiling included.

    Raises:
        FloatingPointError: As soon as the loss is not finite.
    """
    console = Console(stderr=True)
    trained = {name: tensor for name, tensor in trainee.parameters.items() if tensor.requires_grad}
    # By identity, since a tied head is the embedding under a second name.
    tables = list({id(trained[name]): trained[name] for name in sorted(trainee.tables)}.values())
    layers = [tensor for name, tensor in trained.items() if name not in trainee.tables]
    matrices = [tensor for tensor in layers if tensor.dim() == 2]  # noqa: PLR2004
    others = [tensor for tensor in layers if tensor.dim() != 2]  # noqa: PLR2004
    rate, table_rate = recipe.learning_rate, recipe.table_learning_rate
    optimisers: tuple[torch.optim.Optimizer, ...] = (
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
        torch.optim.AdamW(tables, lr=table_rate, betas=(0.9, 0.95), weight_decay=0.0),
    )
    rates = (rate, rate, table_rate)
    began = time.monotonic()
    smoothed = 0.0
    for step in range(recipe.steps):
        for optimiser, highest in zip(optimisers, rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = highest * rate_at(step, recipe.steps, recipe.decay_share)
        loss = trainee.loss(*next(work))
        torch.autograd.backward(loss)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        if not math.isfinite(loss.item()):
            raise FloatingPointError(f"{label}: the loss is {loss.item()} at step {step + 1}")
        smoothed = loss.item() if step == 0 else 0.98 * smoothed + 0.02 * loss.item()
        if (step + 1) % _REPORT_EVERY == 0 or step + 1 == recipe.steps:
            minutes = (time.monotonic() - began) / 60
            console.print(f"{label}: step {step + 1} of {recipe.steps}, loss {smoothed:.4f}, {minutes:.1f} min")
    return (time.monotonic() - began) / 60

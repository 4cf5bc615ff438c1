"""Fits the exit gate of a trained Ouro model: how likely is it that going on would not change the token?"""

from collections.abc import Iterator
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

from reference.training.batches import Batch
from reference.training.ouro_net import GATE_BIAS, GATE_WEIGHT, HEAD, OuroShape, ouro_states

_LEARNING_RATE: Final = 0.02
_WEIGHT_DECAY: Final = 0.02
_SMOOTHING: Final = 0.05
_THRESHOLDS: Final = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


def fit_gate(parameters: dict[str, Tensor], shape: OuroShape, data: Iterator[Batch], *, steps: int) -> None:
    """Fits the gate in place, by logistic regression on the states; nothing else changes.

    The label of a state is whether its readout chooses the token of the last loop, so that the gate's lambda is the
    chance of a right early exit. The paper trains the gate on the gain in loss; agreement is what a decoder needs.
    Smoothed labels and weight decay keep the gate away from saturation: once the chance of going on rounds to 0, the
    official default threshold of 1.0 no longer means full depth.

    Args:
        parameters: A trained model; its gate is changed.
        shape: Sizes.
        data: At least `steps` batches.
        steps: Optimiser steps; with 0 the gate stays as it is.
    """
    weight = parameters[GATE_WEIGHT].clone().requires_grad_()
    bias = parameters[GATE_BIAS].clone().requires_grad_()
    optimiser = torch.optim.AdamW([weight, bias], lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    for step in range(steps):
        with torch.no_grad():
            states = torch.stack(ouro_states(parameters, shape, next(data).inputs))
            choices = F.linear(states, parameters[HEAD]).argmax(-1)
        agrees = (choices[:-1] == choices[-1]).float() * (1 - 2 * _SMOOTHING) + _SMOOTHING
        lambdas = F.linear(states[:-1], weight, bias).squeeze(-1)
        optimiser.param_groups[0]["lr"] = _LEARNING_RATE * (1 - step / steps)
        torch.autograd.backward(F.binary_cross_entropy_with_logits(lambdas, agrees))
        optimiser.step()
        optimiser.zero_grad()
    parameters[GATE_WEIGHT], parameters[GATE_BIAS] = weight.detach(), bias.detach()


@torch.no_grad()
def measure_gate(
    parameters: dict[str, Tensor], shape: OuroShape, data: Iterator[Batch], *, num_batches: int
) -> dict[str, dict[str, float]]:
    """Applies the official exit rule at several thresholds.

    Args:
        parameters: A trained model with its gate.
        shape: Sizes.
        data: At least `num_batches` batches; targets of full weight count.
        num_batches: How many to read.

    Returns:
        For each threshold q the mean exit depth, and the share of tokens that equal the last loop's.
    """
    depths: dict[float, list[Tensor]] = {q: [] for q in _THRESHOLDS}
    agreement: dict[float, list[Tensor]] = {q: [] for q in _THRESHOLDS}
    for _ in range(num_batches):
        batch = next(data)
        states = torch.stack(ouro_states(parameters, shape, batch.inputs))
        choices = F.linear(states, parameters[HEAD]).argmax(-1)
        lambdas = F.linear(states, parameters[GATE_WEIGHT], parameters[GATE_BIAS]).squeeze(-1).sigmoid()
        stays = (1 - lambdas[:-1]).cumprod(0)
        reached = torch.cat((1 - stays, torch.ones_like(stays[:1])))
        answers = batch.weights == 1
        for q in _THRESHOLDS:
            exits = (reached >= q).int().argmax(0)
            chosen = choices.gather(0, exits[None])[0]
            depths[q].append((exits + 1)[answers].float())
            agreement[q].append((chosen == choices[-1])[answers].float())
    return {
        str(q): {
            "mean depth": round(torch.cat(depths[q]).mean().item(), 4),
            "agreement with full depth": round(torch.cat(agreement[q]).mean().item(), 4),
        }
        for q in _THRESHOLDS
    }

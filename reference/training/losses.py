"""Gives the training loss of a readout."""

import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor


def weighted_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Gives the weighted mean of the negative log-likelihood, in nats a token.

    Args:
        logits: [batch, seq, vocab], any float type; the loss is taken in fp32.
        targets: [batch, seq].
        weights: [batch, seq], not all zero.

    Returns:
        A scalar.
    """
    losses = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
    return (losses * weights.flatten()).sum() / weights.sum()

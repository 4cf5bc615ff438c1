"""Generates greedily at full depth and notes what each shallower depth would have said."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference.training.memory import Memory
from reference.training.readouts import DepthReader


@dataclass(frozen=True, slots=True)
class Generated:
    """What a batch of prompts led to."""

    choices: Tensor
    """Most probable token at each depth, [depth, batch, new]; the last depth's are the generated tokens."""

    @property
    def tokens(self) -> Tensor:
        """The generated tokens, [batch, new]."""
        return self.choices[-1]

    @property
    def agreement(self) -> Tensor:
        """Whether each depth would have chosen the generated token, [depth, batch, new]."""
        return self.choices == self.tokens


@torch.no_grad()
def generate(reader: DepthReader, prompts: Sequence[Sequence[int]], num_new: int) -> Generated:
    """Continues every prompt by the same number of tokens; no token ends a text.

    Args:
        reader: A model.
        prompts: Tokens of each prompt; at least one, none empty.
        num_new: Tokens to generate, at least 1.

    Returns:
        The choices of all depths.
    """
    memory = Memory()
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts])
    rows = torch.arange(len(prompts))
    ends = torch.tensor([len(prompt) for prompt in prompts])
    memory.positions = torch.arange(longest).expand_as(ids)
    choices = torch.stack([logits[rows, ends - 1].argmax(-1) for logits in reader.logits(ids, memory)])
    steps = [choices]
    for step in range(num_new - 1):
        memory.positions = (ends + step)[:, None]
        choices = torch.stack([logits[:, -1].argmax(-1) for logits in reader.logits(choices[-1][:, None], memory)])
        steps.append(choices)
    return Generated(torch.stack(steps, dim=-1))

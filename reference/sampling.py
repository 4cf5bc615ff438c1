"""From logits to tokens, and every random number the project draws.

All randomness is counter-based: a number is a function of (seed, purpose, position, element) and of nothing else, so it
is the same for every decoder, in any order, and again after a flush (MOD-05, MOD-06). The global random state is never
touched (CONF-06).
"""

import math
import sys
from collections.abc import Sequence
from enum import IntEnum

import torch
from jaxtyping import Float, Int
from torch import Tensor

from reference.axes import Logits
from reference.errors import NumericsError, ParameterError, check_whole_number

_WORD = (1 << 64) - 1
_GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""Increment of splitmix64: 2**64 divided by the golden ratio, made odd."""
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Multipliers of splitmix64's finaliser."""
_CUT = 3.0
"""Where the initial state's normal distribution is cut, in standard deviations (as in Huginn's own code)."""


class RandomPurpose(IntEnum):
    """What a random number is for; different purposes get independent streams."""

    INITIAL_STATE = 0
    """Huginn's state at depth 0."""


def greedy(logits: Logits) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Chooses the largest logit of every row, the lowest id among equals (SMP-01).

    Args:
        logits: One row of scores per readout.

    Returns:
        The chosen ids, and for each the margin: its logit minus the best logit of any other id (SMP-03). The margin is
        0 at a tie and infinite in a vocabulary of one.

    Raises:
        NumericsError: If a row holds a NaN, so that no largest logit exists (SMP-02).
    """
    if logits.shape[-1] == 1:
        logits = torch.nn.functional.pad(logits, (0, 1), value=-math.inf)
    values, indices = logits.topk(2, dim=-1)
    best, ids = values.tolist(), indices.tolist()
    margins = tuple([first - second if first != second else 0.0 for first, second in best])
    # topk ranks NaN above everything, so a NaN anywhere in a row shows in its margin.
    if any(map(math.isnan, margins)):
        raise NumericsError(f"logits hold NaN: margins {margins} (SMP-02)")
    if 0.0 in margins:  # topk lists equals in any order, argmax gives the first of them
        return tuple(logits.argmax(dim=-1).tolist()), margins
    return tuple([first for first, _ in ids]), margins


def check_state_options(*, seed: int, scale: object) -> None:
    """Holds the ranges of the initial state's seed and scale.

    Raises:
        ParameterError: If the seed is no 64-bit unsigned integer (MOD-08) or the scale negative or not finite (MOD-07).
    """
    check_whole_number("state_seed", seed, minimum=0, clause="MOD-08")
    if seed > _WORD:
        raise ParameterError(f"state_seed={seed} is not below 2**64 (MOD-08)")
    if not (isinstance(scale, int | float) and 0 <= scale <= sys.float_info.max):
        raise ParameterError(f"state_scale={scale!r} is not a finite number of at least 0 (MOD-07)")


def initial_noise(seed: int, positions: Sequence[int], width: int) -> Float[Tensor, "rows hidden"]:
    """Draws standard normal numbers cut at plus and minus 3, one row per position (MOD-06).

    Args:
        seed: The state seed, below 2**64.
        positions: Absolute positions.
        width: Numbers per position.

    Returns:
        The draws in float64 on the CPU; row k depends on `seed` and `positions[k]` alone.
    """
    uniform = _uniforms(seed, RandomPurpose.INITIAL_STATE, positions, width)
    within_cut = math.erf(_CUT / math.sqrt(2))
    return math.sqrt(2) * torch.erfinv(within_cut * (2 * uniform - 1))


def _uniforms(seed: int, purpose: RandomPurpose, positions: Sequence[int], width: int) -> Float[Tensor, "rows hidden"]:
    """Gives `width` uniform numbers strictly between 0 and 1 for every position, exact in float64."""
    keys = [_signed(_absorb(_absorb(_absorb(0, seed), purpose), position)) for position in positions]
    elements = torch.arange(1, width + 1)
    bits = _mix_words(torch.tensor(keys, dtype=torch.int64).unsqueeze(-1) + elements * _signed(_GOLDEN_GAMMA))
    # 52 bits and a half, not 53: the half must stay exact, or the largest number would round to 1.
    return (_shift_right(bits, 12).double() + 0.5) * 2.0**-52


def _absorb(key: int, value: int) -> int:
    """Mixes one more 64-bit value into a key."""
    word = ((key ^ value) + _GOLDEN_GAMMA) & _WORD
    word = ((word ^ (word >> 30)) * _MULTIPLIERS[0]) & _WORD
    word = ((word ^ (word >> 27)) * _MULTIPLIERS[1]) & _WORD
    return word ^ (word >> 31)


def _mix_words(words: Int[Tensor, "rows hidden"]) -> Int[Tensor, "rows hidden"]:
    """The finaliser of splitmix64 on tensors; int64 products wrap around as unsigned ones do."""
    words = (words ^ _shift_right(words, 30)) * _signed(_MULTIPLIERS[0])
    words = (words ^ _shift_right(words, 27)) * _signed(_MULTIPLIERS[1])
    return words ^ _shift_right(words, 31)


def _shift_right(words: Int[Tensor, "rows hidden"], count: int) -> Int[Tensor, "rows hidden"]:
    """Shifts in zeros; torch's own `>>` copies the sign."""
    return (words >> count) & ((1 << (64 - count)) - 1)


def _signed(word: int) -> int:
    """Reads a 64-bit word as a two's-complement integer, the only kind torch can multiply."""
    return word - (1 << 64) if word >> 63 else word

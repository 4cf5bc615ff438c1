"""What follows from the closed forms: the best parameters, what a wrong guess costs, and where WFD stops paying."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reference.cost.decoding import ar, dtv, wave, wfd
from reference.cost.latency import Setting

_LONGEST_DRAFT: Final = 128


def wfd_speedup(setting: Setting, *, draft_depth: int, acceptance_rate: float) -> float:
    """Gives AR's time per token over WFD's."""
    cost = wfd(setting, draft_depth=draft_depth, acceptance_rate=acceptance_rate)
    return ar(setting).seconds.total / cost.seconds.total


def dtv_speedup(setting: Setting, *, draft_depth: int, draft_length: int, acceptance_rate: float) -> float:
    """Gives AR's time per token over DtV's."""
    cost = dtv(setting, draft_depth=draft_depth, draft_length=draft_length, acceptance_rate=acceptance_rate)
    return ar(setting).seconds.total / cost.seconds.total


def best_draft_length(setting: Setting, *, draft_depth: int, acceptance_rate: float) -> int:
    """Gives the gamma at which DtV takes least time per token; the smallest of them, and at most 128.

    A longer round pays as long as the further draft's own price is below the price of a token so far. Prices of further
    drafts do not fall and their chances do not rise with gamma, so the first minimum is the only one.
    """

    def seconds(draft_length: int) -> float:
        cost = dtv(setting, draft_depth=draft_depth, draft_length=draft_length, acceptance_rate=acceptance_rate)
        return cost.seconds.total

    best = seconds(1)
    for longer in range(2, _LONGEST_DRAFT + 1):
        time = seconds(longer)
        if time >= best:
            return longer - 1
        best = time
    return _LONGEST_DRAFT


def draft_length_regret(setting: Setting, *, draft_depth: int, assumed_rate: float, acceptance_rate: float) -> float:
    """Gives how much longer than necessary a token takes if gamma was chosen for another acceptance rate; 0 is nothing.

    WFD has no such parameter.
    """

    def seconds(chosen_for: float) -> float:
        length = best_draft_length(setting, draft_depth=draft_depth, acceptance_rate=chosen_for)
        cost = dtv(setting, draft_depth=draft_depth, draft_length=length, acceptance_rate=acceptance_rate)
        return cost.seconds.total

    return seconds(assumed_rate) / seconds(acceptance_rate) - 1


def break_even_rate(setting: Setting, *, draft_depth: int) -> float | None:
    """Gives the acceptance rate below which WFD is slower than AR: `(A - AR) / (A - S)`.

    A restarted wave computes all that AR computes and more, so `A >= AR`; WFD gains if and only if `S < AR` and the
    acceptance rate is above this. For one sequence.

    Returns:
        The rate; 0 if WFD is never slower, None if it is slower at every rate.
    """
    price, plain = wave(replace(setting, batch=1), draft_depth=draft_depth), ar(replace(setting, batch=1))
    restart, running = price.restart.seconds.total, price.running.seconds.total
    if running >= plain.seconds.total:
        return None
    return max(0.0, (restart - plain.seconds.total) / (restart - running))


def best_draft_depth(setting: Setting, acceptance_rates: Mapping[int, float]) -> int:
    """Gives the draft depth at which WFD takes least time per token.

    In ticks alone a token takes `T - alpha(d) (T - d)`, so the best depth is where `alpha(d) (T - d)` is largest: the
    chance to skip, times what is skipped. In seconds, S and A of each depth take the place of d and T.

    Args:
        setting: What runs where.
        acceptance_rates: alpha of each depth that is thinkable.
    """

    def seconds(draft_depth: int) -> float:
        rate = acceptance_rates[draft_depth]
        return wfd(setting, draft_depth=draft_depth, acceptance_rate=rate).seconds.total

    return min(acceptance_rates, key=seconds)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a speedup falls to 1."""

    value: int | None
    """The smallest value without a gain; None if there is none up to `searched`."""
    searched: int
    """The largest value looked at."""


def batch_crossover(setting: Setting, *, draft_depth: int, acceptance_rate: float, most: int = 4096) -> Crossing:
    """Gives the batch from which WFD is no faster than AR: a row costs nothing only while weights are waited for."""
    return _first_without_gain(lambda batch: replace(setting, batch=batch), draft_depth, acceptance_rate, most)


def context_crossover(setting: Setting, *, draft_depth: int, acceptance_rate: float, most: int = 2**20) -> Crossing:
    """Gives the context from which WFD is no faster than AR: rows with slots of their own share no cells."""
    return _first_without_gain(lambda context: replace(setting, context=context), draft_depth, acceptance_rate, most)


def _first_without_gain(
    change: Callable[[int], Setting], draft_depth: int, acceptance_rate: float, most: int
) -> Crossing:
    """Looks at 1, 2, 4, ... and then between the last gain and the first loss."""

    def gains(value: int) -> bool:
        return wfd_speedup(change(value), draft_depth=draft_depth, acceptance_rate=acceptance_rate) > 1

    low, high = 0, 1
    while gains(high):
        if high >= most:
            return Crossing(None, most)
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gains(middle) else (low, middle)
    return Crossing(high, most)

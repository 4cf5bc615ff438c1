"""Every hypothesis strategy, in one place.

Strategies build valid values without `assume` and shrink to the plainest case: T = 1, d = 1, one prompt token, two
words, right drafts, no stop id.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st

from reference.engine import Arithmetic
from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Reject, Start
from reference.stopping import FinishReason
from tests.driving import Case, Drawn, Verdicts
from tests.runs import Job, Tiny

MOST_RECURRENCES = 9
"""The largest T, and the largest gamma, that schedules are tried with."""
LARGEST_BUDGET = 24
"""The largest budget that schedules are tried with."""


def depths(*, most: int = MOST_RECURRENCES) -> st.SearchStrategy[tuple[int, int]]:
    """Draws T, and d from 1 to T, dividing T or not; 1 more often than others, since it makes the widest waves."""
    pairs = [(recurrences, depth) for recurrences in range(1, most + 1) for depth in range(1, recurrences + 1)]
    return st.sampled_from(pairs + [(recurrences, 1) for recurrences in range(1, most + 1)])


def _digits(most: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Draws one to nine numbers below 256. One draw of bytes: lists of integers cost hypothesis ten times as much."""
    return st.binary(min_size=1, max_size=most).map(tuple)


_RIGHT_BELOW = st.sampled_from([255, 170, 230, 85, 0])
"""Which of 256 numbers stand for a right draft: all, most, some or hardly any."""


@st.composite
def tables(draw: st.DrawFn, *, is_steady: bool = True) -> Drawn:
    """Draws a table: full-depth answers, and drafts of which none, some or all are wrong."""
    vocab_size = draw(st.integers(2, 8))
    right_below = draw(_RIGHT_BELOW)
    return Drawn(
        vocab_size=vocab_size,
        tokens=tuple(number % vocab_size for number in draw(_digits(9))),
        errors=tuple(number % vocab_size if number > right_below else 0 for number in draw(_digits(9))),
        is_steady=is_steady,
    )


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    is_steady: bool = True,
    most_recurrences: int = MOST_RECURRENCES,
    smallest_budget: int = 0,
    largest_budget: int = LARGEST_BUDGET,
) -> Case:
    """Draws a problem for any decoder: every T, d and gamma to 9, budgets to 24, a context that may end before them.

    In one case of two the highest id is a stop id that the full depth says at a drawn place.
    """
    recurrence_depth, draft_depth = draw(depths(most=most_recurrences))
    prompt = draw(_digits(4))
    table = draw(tables(is_steady=is_steady))
    max_new_tokens = draw(st.integers(smallest_budget, largest_budget))
    if draw(st.booleans()):
        table = replace(table, stop_after=len(prompt) + draw(st.integers(0, max_new_tokens)))
        stops = {table.vocab_size - 1}
    else:
        stops = draw(_stop_sets(table.vocab_size))
    return Case(
        table=table,
        prompt=tuple(number % table.vocab_size for number in prompt),
        recurrence_depth=recurrence_depth,
        draft_depth=draft_depth,
        draft_length=draw(st.integers(1, most_recurrences)),
        max_new_tokens=max_new_tokens,
        context_length=len(prompt) + draw(st.sampled_from([LARGEST_BUDGET, LARGEST_BUDGET, 12, 6, 3, 2, 1, 0])),
        stop_ids=frozenset(stops),
    )


def _stop_sets(vocab_size: int) -> st.SearchStrategy[set[int]]:
    """Draws no stop id, or one or two."""
    ids = st.integers(0, vocab_size - 1)
    return st.sampled_from([0, 0, 0, 1, 2]).flatmap(lambda size: st.sets(ids, min_size=size, max_size=size))


@st.composite
def cases_by_verdict(draw: st.DrawFn) -> Case:
    """Draws a problem by its acceptance sequence, long enough for both decoders to consult all of it."""
    recurrence_depth, draft_depth = draw(depths())
    max_new_tokens = draw(st.integers(1, LARGEST_BUDGET))
    right_below = draw(_RIGHT_BELOW)
    right = draw(st.binary(min_size=max_new_tokens, max_size=max_new_tokens))
    stop_after = draw(st.none() | st.integers(0, max_new_tokens - 1))
    return Case(
        table=Verdicts(1, tuple(number <= right_below for number in right), stop_after),
        recurrence_depth=recurrence_depth,
        draft_depth=draft_depth,
        draft_length=draw(st.integers(1, MOST_RECURRENCES)),
        max_new_tokens=max_new_tokens,
        stop_ids=frozenset({2}),
    )


_FEW_DEPTHS = st.sampled_from([(1, 1), (2, 1), (3, 1), (4, 1), (3, 2), (5, 2), (4, 3), (4, 2), (3, 3), (5, 2), (4, 1)])
"""T and d where every tick costs a network: d dividing T and not, waves one to four lanes wide."""


@st.composite
def jobs(draw: st.DrawFn, *, arithmetic: Arithmetic, dtypes: tuple[torch.dtype, ...]) -> Job:
    """Draws a problem on a small random model of either family, small enough to be run by all three decoders."""
    recurrence_depth, draft_depth = draw(_FEW_DEPTHS)
    return Job(
        network=draw(st.builds(Tiny, st.sampled_from(["ouro", "huginn"]), st.integers(0, 7), st.sampled_from(dtypes))),
        prompt=tuple(number % 7 for number in draw(_digits(4))),
        recurrence_depth=recurrence_depth,
        draft_depth=draft_depth,
        draft_length=draw(st.integers(1, 4)),
        max_new_tokens=draw(st.integers(0, 10)),
        context_length=draw(st.sampled_from([64, 64, 64, 8, 5])),
        stop_ids=frozenset(draw(_stop_sets(7))),
        state_seed=draw(st.integers(0, 2)),
        arithmetic=arithmetic,
    )


moments = st.sets(st.integers(1, 12), max_size=4)
"""Ticks after which something is done to a run."""


def _events() -> st.SearchStrategy[tuple[type[Event], dict[str, Any]]]:
    """Draws an event of any kind, its numbers anything, as a kind and its fields."""
    number = st.integers(0, 2**40)
    places = st.lists(number, max_size=3).map(tuple)
    rows = st.lists(st.tuples(number, number, number), max_size=3).map(tuple)
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "decoder": st.sampled_from(["ar", "dtv", "wfd"]),
        "draft_length": st.none() | number,
        "stop_ids": places,
        "positions": places,
        "abandoned": places,
        "lanes": rows,
        "reads": st.none() | st.lists(st.lists(st.tuples(number, number, number, number), max_size=2), max_size=2),
        "reason": st.sampled_from(FinishReason),
    }
    kinds: list[type[Event]] = [Start, Advance, Draft, Commit, Accept, Reject, Flush, Inject, Finish]
    return st.sampled_from(kinds).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.fixed_dictionaries({field.name: by_name.get(field.name, number) for field in fields(kind)}),
        )
    )


event_lists = st.lists(_events(), max_size=5)
"""Lists of events that need not make sense together; each a kind and its fields, lanes and cells as plain tuples."""


@st.composite
def logit_rows(draw: st.DrawFn) -> list[list[float]]:
    """Draws a few rows of logits over one vocabulary, many of them tied."""
    vocab_size = draw(st.integers(2, 6))
    numbers = st.integers(-2, 2).map(float) | st.floats(-1e6, 1e6)
    return draw(st.lists(st.lists(numbers, min_size=vocab_size, max_size=vocab_size), min_size=1, max_size=3))


SEARCH = settings(settings.get_profile("deep"), phases=[Phase.generate], derandomize=True, database=None)
"""For `find`: the same examples on every run, whatever the profile, and no time spent on making one smaller."""


@dataclass(frozen=True)
class Call:
    """The rows of one call."""

    positions: tuple[int, ...]
    """Ascending."""
    recurrences: tuple[int, ...]
    """One per row."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A cache, and the calls to be made on it."""

    kv_heads: int
    """Key heads."""
    group: int
    """Query heads that share one key head."""
    head_dim: int
    """Size of a head."""
    recurrence_depth: int
    """T."""
    spacing: int
    """d."""
    num_positions: int
    """Positions held."""
    seed: int
    """Of the numbers in the rows."""
    calls: tuple[Call, ...]
    """In order."""


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draws a cache and calls on it: rows in one slot, on a diagonal, or anywhere."""
    recurrence_depth, spacing = draw(depths(most=6))
    num_positions = draw(st.integers(1, 7))
    first = st.integers(0, num_positions - 1)
    recurrences = st.integers(0, recurrence_depth - 1)

    def in_one_slot(positions: set[int], recurrence: int) -> Call:
        return Call(tuple(sorted(positions)), (recurrence,) * len(positions))

    def on_a_diagonal(position: int, recurrence: int) -> Call:
        slots = range(recurrence, -1, -spacing)[: num_positions - position]
        return Call(tuple(range(position, position + len(slots))), tuple(slots))

    def anywhere(places: set[tuple[int, int]]) -> Call:
        positions, slots = zip(*sorted(places), strict=True)
        return Call(positions, slots)

    call = st.one_of(
        st.builds(in_one_slot, st.sets(first, min_size=1, max_size=4), recurrences),
        st.builds(on_a_diagonal, first, recurrences),
        st.builds(anywhere, st.sets(st.tuples(first, recurrences), min_size=1, max_size=4)),
    )
    return Layout(
        kv_heads=draw(st.integers(1, 2)),
        group=draw(st.integers(1, 3)),
        head_dim=draw(st.integers(1, 3)),
        recurrence_depth=recurrence_depth,
        spacing=spacing,
        num_positions=num_positions,
        seed=draw(st.integers(0, 99)),
        calls=tuple(draw(st.lists(call, min_size=1, max_size=4))),
    )

"""Ticks from formulas are the ticks of runs."""

import math
from collections import defaultdict
from itertools import product

import pytest
from hypothesis import given

from reference.cost.closed_forms import exact_ticks, expected_ticks_per_token, expected_ticks_with_exits
from reference.errors import ParameterError
from reference.schedule import Start
from tests.driving import Case, plays
from tests.strategies import cases, cases_by_verdict


def start(decoder: str, *, draft_depth: int, draft_length: int | None = None, full: int = 4) -> Start:
    return Start(
        decoder=decoder,
        recurrence_depth=full,
        draft_depth=draft_depth,
        draft_length=draft_length,
        prompt_length=1,
        max_new_tokens=9,
        context_length=99,
        stop_ids=(),
    )


@pytest.mark.spec("AR-02", "DTV-08", "WFD-12")
@given(case=cases())
def test_the_closed_forms_give_the_ticks_of_every_run(case: Case) -> None:
    for run in plays(case):
        assert exact_ticks(run.events) == run.ticks


@pytest.mark.spec("AR-02", "DTV-08", "WFD-12")
@given(case=cases_by_verdict())
def test_the_closed_forms_give_the_ticks_of_every_acceptance_sequence(case: Case) -> None:
    for run in plays(case):
        assert exact_ticks(run.events) == run.ticks


@pytest.mark.spec("COST-06")
@pytest.mark.parametrize(
    "run,acceptance_rate,ticks_per_token",
    [
        (start("ar", draft_depth=4), math.nan, 4.0),
        (start("wfd", draft_depth=4), math.nan, 4.0),
        (start("dtv", draft_depth=4, draft_length=3), math.nan, 4.0),
        (start("wfd", draft_depth=1), 1.0, 1.0),
        (start("wfd", draft_depth=1), 0.0, 4.0),
        (start("wfd", draft_depth=1), 0.9, 1.3),
        (start("wfd", draft_depth=2), 0.5, 3.0),
        (start("dtv", draft_depth=1, draft_length=4), 1.0, 8 / 5),
        (start("dtv", draft_depth=1, draft_length=4), 0.0, 8.0),
        (start("dtv", draft_depth=1, draft_length=2), 0.5, 6 / 1.75),
    ],
)
def test_expected_ticks_per_token(run: Start, acceptance_rate: float, ticks_per_token: float) -> None:
    assert expected_ticks_per_token(run, acceptance_rate) == pytest.approx(ticks_per_token)


@pytest.mark.spec("COST-06")
@pytest.mark.parametrize("draft_length", [None, 3])
def test_without_an_acceptance_rate_nothing_is_expected(draft_length: int | None) -> None:
    assert math.isnan(expected_ticks_per_token(start("any", draft_depth=1, draft_length=draft_length), math.nan))


FULL = 8
DRAFT_LENGTH = 3
EXITS = {
    "all at one depth": {4: 1.0},
    "two neighbouring depths": {2: 0.3, 3: 0.7},
    "some before drafting": {1: 0.3, 2: 0.3, 4: 0.4},
    "few and late": {2: 0.9, 8: 0.1},
    "early ones behind late ones": {1: 0.4, 2: 0.4, 8: 0.2},
}


def wave_ticks(shares: dict[int, float], draft_depth: int, alpha: float) -> float:
    """Follows a wave's positions one after another until the chances of their waits no longer change."""
    waits, ticks = {0: 1.0}, 0.0
    for _ in range(300):
        after: dict[int, float] = defaultdict(float)
        ticks = 0.0
        for (wait, chance), (depth, share) in product(waits.items(), shares.items()):
            committed = max(wait, depth)  # ticks after its start: in order
            if depth <= draft_depth:
                ticks += chance * share * depth  # its final token starts the next position
                after[committed - depth] += chance * share
            else:
                ticks += chance * share * (alpha * draft_depth + (1 - alpha) * committed)
                after[committed - draft_depth] += chance * share * alpha
                after[0] += chance * share * (1 - alpha)
        waits = after
    return ticks


def round_ticks(shares: dict[int, float], draft_depth: int, alpha: float) -> float:
    """Goes through all rounds that there can be."""
    ticks = tokens = 0.0
    for depths in product(shares, repeat=DRAFT_LENGTH + 1):
        chance = math.prod(shares[depth] for depth in depths)
        ticks += chance * (sum(min(depth, draft_depth) for depth in depths) + max(0, max(depths) - draft_depth))
        right = [1.0 if depth <= draft_depth else alpha for depth in depths]
        tokens += chance * sum(math.prod(right[:committed]) for committed in range(DRAFT_LENGTH + 1))
    return ticks / tokens


@pytest.mark.parametrize("alpha", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("draft_depth", [1, 2])
@pytest.mark.parametrize("shares", EXITS.values(), ids=EXITS)
def test_halting_positions_take_the_expected_ticks(shares: dict[int, float], draft_depth: int, alpha: float) -> None:
    wave = start("wfd", full=FULL, draft_depth=draft_depth)
    rounds = start("dtv", full=FULL, draft_depth=draft_depth, draft_length=DRAFT_LENGTH)
    expected = {run: expected_ticks_with_exits(run, alpha, shares) for run in (wave, rounds)}
    assert expected[wave] == pytest.approx(wave_ticks(shares, draft_depth, alpha))
    assert expected[rounds] == pytest.approx(round_ticks(shares, draft_depth, alpha))
    mean = sum(share * depth for depth, share in shares.items())
    if min(shares) > draft_depth:
        assert all(ticks > expected_ticks_per_token(run, alpha, mean) - 1e-9 for run, ticks in expected.items())
    if min(shares) >= draft_depth >= max(shares) - min(shares):
        assert expected[wave] == pytest.approx(expected_ticks_per_token(wave, alpha, mean))
    assert expected_ticks_with_exits(start("ar", full=FULL, draft_depth=FULL), math.nan, shares) == mean


def test_a_deep_position_holds_up_those_that_halt_before_it() -> None:
    run = start("wfd", draft_depth=1)
    shares = {2: 0.9, 4: 0.1}
    assert expected_ticks_with_exits(run, 0.9, shares) > expected_ticks_per_token(run, 0.9, 2.2) + 0.005


@pytest.mark.parametrize("average_depth", [0.5, 4.5, math.nan])
def test_an_average_depth_outside_its_range_is_refused(average_depth: float) -> None:
    with pytest.raises(ParameterError, match="average_depth="):
        expected_ticks_per_token(start("wfd", draft_depth=1), 0.9, average_depth)


@pytest.mark.parametrize("shares", [{0: 1.0}, {5: 1.0}, {2: 0.5}, {2: 1.5, 3: -0.5}])
def test_what_are_no_shares_of_depths_is_refused(shares: dict[int, float]) -> None:
    with pytest.raises(ParameterError, match="exit_shares"):
        expected_ticks_with_exits(start("wfd", draft_depth=1), 0.9, shares)


@pytest.mark.parametrize(
    "run,average_depth,ticks_per_token",
    [
        (start("ar", draft_depth=4), 2.5, 2.5),
        (start("wfd", draft_depth=1), 2.5, 0.9 + 0.1 * 2.5),
        (start("wfd", draft_depth=2), 1.5, 1.5),  # nothing is drafted
        (start("wfd", draft_depth=2), 4.0, 2.2),
        # Half the runs are AR's of depth 1, half have rounds of 2 drafts at T = 2.
        (start("dtv", draft_depth=1, draft_length=2), 1.5, 0.5 * 1 + 0.5 * 4 / 2.71),
    ],
)
def test_expected_ticks_at_an_average_depth(run: Start, average_depth: float, ticks_per_token: float) -> None:
    assert expected_ticks_per_token(run, 0.9, average_depth) == pytest.approx(ticks_per_token)


def test_a_run_begins_with_its_start() -> None:
    with pytest.raises(ValueError, match="begins with a start event"):
        exact_ticks(())

"""What is said to follow from the closed forms does."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.cost import analysis, decoding
from reference.cost.closed_forms import expected_ticks_per_token
from reference.cost.latency import FUSED
from reference.cost.machines import Overheads
from reference.errors import ParameterError
from reference.schedule import Start
from tests.cost.settings import resized, setting

OURO, HUGINN = setting("ouro-2.6b"), setting("huginn-3.5b")

depths = st.integers(2, 8).flatmap(lambda full: st.tuples(st.just(full), st.integers(1, full)))
rates = st.floats(0.0, 1.0)


def start(decoder: str, full: int, draft: int, length: int | None) -> Start:
    return Start(
        decoder=decoder,
        recurrence_depth=full,
        draft_depth=draft,
        draft_length=length,
        prompt_length=1,
        max_new_tokens=9,
        context_length=99,
        stop_ids=(),
    )


@pytest.mark.spec("COST-06")
@given(sizes=depths, alpha=rates, gamma=st.integers(1, 9))
def test_ticks_per_token_are_those_of_the_specification(sizes: tuple[int, int], alpha: float, gamma: int) -> None:
    full, draft = sizes
    one = resized(OURO, recurrence_depth=full)
    wave = decoding.wfd(one, draft_depth=draft, acceptance_rate=alpha)
    rounds = decoding.dtv(one, draft_depth=draft, draft_length=gamma, acceptance_rate=alpha)
    assert wave.ticks == pytest.approx(expected_ticks_per_token(start("wfd", full, draft, None), alpha))
    assert rounds.ticks == pytest.approx(expected_ticks_per_token(start("dtv", full, draft, gamma), alpha))
    assert decoding.ar(one).ticks == full


@given(sizes=depths, alpha=rates, gamma=st.integers(1, 9))
def test_wfd_computes_at_least_what_is_needed_and_at_most_a_full_wave(
    sizes: tuple[int, int], alpha: float, gamma: int
) -> None:
    full, draft = sizes
    one = resized(OURO, recurrence_depth=full)
    wave = decoding.wfd(one, draft_depth=draft, acceptance_rate=alpha)
    assert full - 1e-9 <= wave.rows <= wave.ticks * -(-full // draft) + 1e-9
    rounds = decoding.dtv(one, draft_depth=draft, draft_length=gamma, acceptance_rate=alpha)
    assert rounds.rows >= full - 1e-9


def test_with_every_draft_right_wfd_computes_exactly_what_ar_computes() -> None:
    for full, draft in ((4, 1), (4, 2), (32, 4), (7, 3), (5, 2)):
        one = resized(OURO, recurrence_depth=full)
        assert decoding.wfd(one, draft_depth=draft, acceptance_rate=1.0).rows == decoding.ar(one).rows == full


def test_wfd_is_where_dtv_only_tends_to() -> None:
    limit = decoding.wfd(OURO, draft_depth=1, acceptance_rate=1.0).ticks
    ticks = [
        decoding.dtv(OURO, draft_depth=1, draft_length=gamma, acceptance_rate=1.0).ticks for gamma in (1, 10, 100, 1000)
    ]
    assert ticks == sorted(ticks, reverse=True)
    assert ticks[-1] > limit
    assert ticks[-1] == pytest.approx(limit, rel=0.01)


@given(alpha=st.floats(0.05, 0.99), draft=st.integers(1, 8))
def test_the_best_draft_length_is_the_only_minimum(alpha: float, draft: int) -> None:
    def seconds(length: int) -> float:
        cost = decoding.dtv(HUGINN, draft_depth=draft, draft_length=length, acceptance_rate=alpha)
        return cost.seconds.total

    best = analysis.best_draft_length(HUGINN, draft_depth=draft, acceptance_rate=alpha)
    around = [seconds(length) for length in range(1, min(best + 12, 129))]
    assert around[: best - 1] == sorted(around[: best - 1], reverse=True)
    assert around[best - 1 :] == sorted(around[best - 1 :])


def test_a_wrong_guess_of_the_rate_costs_dtv_and_a_right_one_nothing() -> None:
    regret = [
        analysis.draft_length_regret(OURO, draft_depth=1, assumed_rate=guess, acceptance_rate=0.7)
        for guess in (0.5, 0.7, 0.9, 0.97)
    ]
    assert regret[1] == 0
    assert regret[3] > regret[2] > 0.1
    assert regret[0] >= 0


@given(sizes=depths)
def test_wfd_is_slower_than_ar_exactly_below_the_break_even_rate(sizes: tuple[int, int]) -> None:
    full, draft = sizes
    one = resized(OURO, recurrence_depth=full)
    rate = analysis.break_even_rate(one, draft_depth=draft)
    if draft == full:
        assert rate is None  # the same calls: nothing is gained
        return
    if rate is None:
        assert analysis.wfd_speedup(one, draft_depth=draft, acceptance_rate=1.0) <= 1
        return
    assert analysis.wfd_speedup(one, draft_depth=draft, acceptance_rate=rate) == pytest.approx(1)
    above, below = min(1.0, rate + 0.01), max(0.0, rate - 0.01)
    assert analysis.wfd_speedup(one, draft_depth=draft, acceptance_rate=above) > 1
    assert analysis.wfd_speedup(one, draft_depth=draft, acceptance_rate=below) < 1


def test_a_machine_that_waits_for_arithmetic_gains_nothing_by_wfd() -> None:
    slow = replace(OURO.machine, peak_flops_per_second={"bf16": 1e9})
    one = replace(OURO, machine=slow, software=FUSED)
    assert analysis.break_even_rate(one, draft_depth=1) is None
    assert analysis.wfd_speedup(one, draft_depth=1, acceptance_rate=0.9) < 1


def test_without_overheads_and_cells_a_speedup_is_that_of_ticks_less_the_ends() -> None:
    nothing = Overheads(
        bandwidth_efficiency=1.0, compute_efficiency=1.0, kernel_seconds=0.0, launch_seconds=0.0, origin="none"
    )
    one = replace(OURO, machine=replace(OURO.machine, overheads=nothing), context=1)
    ticks = decoding.ar(one).ticks / decoding.wfd(one, draft_depth=1, acceptance_rate=0.9).ticks
    speedup = analysis.wfd_speedup(one, draft_depth=1, acceptance_rate=0.9)
    # The head's 0.2 GB are read in every tick instead of every fourth, beside 4.9 GB of layers.
    assert 0.95 * ticks < speedup < ticks


@given(alphas=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3))
def test_in_ticks_the_best_depth_is_where_the_chance_to_skip_times_what_is_skipped_is_largest(
    alphas: list[float],
) -> None:
    offered = dict(zip((1, 2, 3), alphas, strict=True))

    def ticks(depth: int) -> float:
        return decoding.wfd(OURO, draft_depth=depth, acceptance_rate=offered[depth]).ticks

    best = max(offered, key=lambda depth: offered[depth] * (4 - depth))
    assert ticks(best) == pytest.approx(min(map(ticks, offered)))


def test_the_best_depth_weighs_rate_against_depth() -> None:
    assert analysis.best_draft_depth(OURO, {1: 0.92, 2: 0.97, 3: 0.99}) == 1
    assert analysis.best_draft_depth(OURO, {1: 0.1, 2: 0.97, 3: 0.99}) == 2


def test_gains_end_at_some_batch_and_with_own_slots_at_some_context() -> None:
    batch = analysis.batch_crossover(OURO, draft_depth=1, acceptance_rate=0.8).value
    context = analysis.context_crossover(OURO, draft_depth=1, acceptance_rate=0.8).value
    assert batch is not None
    assert context is not None
    for at, before in (
        (replace(OURO, batch=batch), replace(OURO, batch=batch - 1)),
        (replace(OURO, context=context), replace(OURO, context=context - 1)),
    ):
        assert analysis.wfd_speedup(at, draft_depth=1, acceptance_rate=0.8) <= 1
        assert analysis.wfd_speedup(before, draft_depth=1, acceptance_rate=0.8) > 1


def test_with_one_slot_for_all_recurrences_no_context_ends_the_gain() -> None:
    shared = setting("huginn-3.5b", slots=1)
    crossing = analysis.context_crossover(shared, draft_depth=4, acceptance_rate=0.9, most=2**17)
    assert crossing == analysis.Crossing(None, 2**17)


def test_draft_depths_outside_their_range_are_refused() -> None:
    for refused in (0, 5):
        with pytest.raises(ParameterError, match="WFD-01"):
            decoding.wave(OURO, draft_depth=refused)
        with pytest.raises(ParameterError, match="DTV-01"):
            decoding.dtv(OURO, draft_depth=refused, draft_length=2, acceptance_rate=0.5)


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(ParameterError, match=r"acceptance_rate=.*COST-06"):
        decoding.wfd(OURO, draft_depth=1, acceptance_rate=rate)
    with pytest.raises(ParameterError, match=r"acceptance_rate=.*COST-06"):
        decoding.dtv(OURO, draft_depth=1, draft_length=2, acceptance_rate=rate)


def test_a_round_without_a_draft_and_settings_without_rows_cells_or_slots_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"draft_length=0 is below 1 \(DTV-02\)"):
        decoding.dtv(OURO, draft_depth=1, draft_length=0, acceptance_rate=0.5)
    with pytest.raises(ParameterError, match="context=0 is below 1"):
        replace(OURO, context=0)
    with pytest.raises(ParameterError, match="batch=-1 is below 1"):
        replace(OURO, batch=-1)
    with pytest.raises(ParameterError, match=r"recurrence_slots=0 is below 1 \(SHR-01\)"):
        replace(OURO, recurrence_slots=0)


def test_time_is_split_into_parts_that_add_up() -> None:
    cost = decoding.wfd(OURO, draft_depth=1, acceptance_rate=0.9).seconds
    parts = (cost.weights, cost.cells, cost.compute, cost.kernels, cost.waiting)
    assert all(part >= 0 for part in parts)
    assert math.fsum(parts) == pytest.approx(cost.total)
    assert (cost + cost).total == pytest.approx((cost * 2.0).total)

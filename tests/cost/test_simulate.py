"""Driving the real schedules gives what the closed forms say, within what chance allows."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import models, wfd
from reference.ar import AR
from reference.cost import decoding
from reference.cost.acceptance import Bernoulli, PerPosition, Recorded
from reference.cost.simulate import simulate, simulate_runs
from reference.dtv import DtV
from reference.errors import ParameterError
from reference.schedule import Accept, Reject, Schedule
from reference.stopping import Stopping
from reference.wfd import WFD
from tests.cost.settings import resized, setting

MODELS = {"ouro": (setting("ouro-2.6b"), 1), "huginn": (setting("huginn-3.5b"), 4)}

every_model = pytest.mark.parametrize("model", MODELS)
sharing = pytest.mark.parametrize("slots", [None, 1, 4])


def test_ar_takes_exactly_the_closed_form() -> None:
    one = setting("ouro-2.6b")
    run = simulate(one, partial(_ar, depth=4), [Bernoulli(0.5)], num_tokens=11)
    assert run.tokens == 10
    assert run.seconds_per_token == pytest.approx(decoding.ar(one).seconds.total)


def _ar(stopping: object, *, depth: int) -> AR:
    return AR(recurrence_depth=depth, stopping=stopping)  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0.6, 0.92])
@sharing
@every_model
def test_wfd_takes_the_closed_form_within_sampling_error(model: str, slots: int | None, alpha: float) -> None:
    base, draft_depth = MODELS[model]
    one = setting(base.shape.name, slots=slots)
    full, num_tokens = one.shape.recurrence_depth, 200
    make = partial(WFD, full, draft_depth)
    run = simulate(one, make, [Bernoulli(alpha, seed=3)], num_tokens=num_tokens)
    price = decoding.wave(one, draft_depth=draft_depth)
    # A token costs S or A, by an independent draw each; the first wave's ramp is one A too many.
    spread = (price.restart.seconds.total - price.running.seconds.total) * math.sqrt(alpha * (1 - alpha) / num_tokens)
    expected = price.at(alpha).seconds.total
    assert abs(run.seconds_per_token - expected) < 3 * spread + price.restart.seconds.total / num_tokens
    # With the rate that the draws came to, only the two ends of the run are left.
    exact = price.at(run.acceptance_rate).seconds.total
    assert abs(run.seconds_per_token - exact) < price.restart.seconds.total / num_tokens


@pytest.mark.parametrize("gamma", [2, 8])
@every_model
def test_dtv_takes_the_closed_form_within_sampling_error(model: str, gamma: int) -> None:
    one, draft_depth = MODELS[model]
    alpha, num_tokens, seeds = 0.9, 80, range(3)
    make = partial(DtV, one.shape.recurrence_depth, draft_depth, gamma)
    runs = [simulate(one, make, [Bernoulli(alpha, seed)], num_tokens=num_tokens) for seed in seeds]
    mean = sum(run.seconds_per_token for run in runs) / len(runs)
    expected = decoding.dtv(one, draft_depth=draft_depth, draft_length=gamma, acceptance_rate=alpha).seconds.total
    # Tokens of a round have a standard deviation below gamma / 2; the last round is cut off.
    num_rounds = len(runs) * num_tokens / sum(alpha**k for k in range(gamma + 1))
    assert mean == pytest.approx(expected, rel=3 * 0.5 / math.sqrt(num_rounds) + 1 / num_tokens)


@given(full=st.integers(1, 5), draft=st.integers(1, 5), slots=st.none() | st.integers(1, 5))
def test_an_undisturbed_wave_is_a_restart_and_then_blocks_of_d_ticks(full: int, draft: int, slots: int | None) -> None:
    draft = min(draft, full)
    one = resized(setting("ouro-2.6b", slots=None if slots is None else min(slots, full)), recurrence_depth=full)
    make = partial(WFD, full, draft)
    short, long = (simulate(one, make, [Bernoulli(1.0)], num_tokens=n) for n in (9, 12))
    price = decoding.wave(one, draft_depth=draft)
    # The first waves and the last tokens are the same in both runs; 3 more tokens are 3 running blocks.
    assert long.seconds.total - short.seconds.total == pytest.approx(3 * price.running.seconds.total)
    more, fewer = (simulate(one, make, [Bernoulli(0.0)], num_tokens=n) for n in (9, 7))
    assert more.seconds.total - fewer.seconds.total == pytest.approx(2 * price.restart.seconds.total)


@pytest.mark.parametrize("model,batch,num_calls", [("ouro", 4, 300), ("ouro", 16, 150), ("huginn", 8, 300)])
def test_a_batch_of_waves_takes_what_their_mean_rows_say(model: str, batch: int, num_calls: int) -> None:
    base, draft_depth = MODELS[model]
    one = setting(base.shape.name, batch=batch)
    make = partial(WFD, one.shape.recurrence_depth, draft_depth)
    acceptances = [Bernoulli(0.9, seed) for seed in range(batch)]
    run = simulate(one, make, acceptances, num_tokens=num_calls + 2, most_calls=num_calls)
    assert run.num_calls == num_calls
    expected = decoding.wfd(one, draft_depth=draft_depth, acceptance_rate=run.acceptance_rate)
    # All waves start together, so the first ticks are narrower than the mean.
    assert run.seconds.total / num_calls == pytest.approx(expected.seconds.total / expected.ticks, rel=0.03)


def test_ar_and_dtv_in_step_take_the_closed_form_with_a_batch() -> None:
    one = setting("ouro-2.6b", batch=3)
    run = simulate(one, partial(_ar, depth=4), [Bernoulli(0.0)] * 3, num_tokens=5)
    assert run.seconds_per_token == pytest.approx(decoding.ar(one).seconds.total)
    make = partial(DtV, 4, 1, 2)
    always = simulate(one, make, [Bernoulli(1.0)] * 3, num_tokens=31)
    expected = decoding.dtv(one, draft_depth=1, draft_length=2, acceptance_rate=1.0)
    assert always.seconds_per_token == pytest.approx(expected.seconds.total)


@pytest.mark.parametrize("decoder", ["ar", "dtv", "wfd"])
def test_runs_of_an_average_depth_take_the_closed_form_within_sampling_error(decoder: str) -> None:
    one, alpha, num_runs = replace(setting("ouro-2.6b"), average_depth=2.75), 0.9, 40
    make: Callable[[int, Stopping], Schedule]
    if decoder == "ar":
        make, expected = AR, decoding.ar(one)
    elif decoder == "dtv":
        make = lambda full, stopping: DtV(full, 1, 2, stopping)  # noqa: E731 - a schedule of three numbers
        expected = decoding.dtv(one, draft_depth=1, draft_length=2, acceptance_rate=alpha)
    else:
        make = lambda full, stopping: WFD(full, 1, stopping)  # noqa: E731
        expected = decoding.wfd(one, draft_depth=1, acceptance_rate=alpha)
    runs = simulate_runs(one, make, [Bernoulli(alpha, seed) for seed in range(num_runs)], num_tokens=26, seed=5)
    depths = [run.counts[0].lane_ticks for run in runs]
    assert len(set(depths)) > 1  # of both depths there are some
    each = [run.seconds_per_token for run in runs]
    mean = statistics.fmean(each)
    error = statistics.stdev(each) / math.sqrt(num_runs)
    # The first wave's ramp and the last round's cut are shared by 25 tokens only.
    ends = 0.0 if decoder == "ar" else expected.seconds.total / 25
    assert abs(mean - expected.seconds.total) < 3 * error + ends
    assert 3 * error + ends < 0.2 * expected.seconds.total


def test_a_growing_context_costs_what_its_mean_costs() -> None:
    one = setting("ouro-2.6b", context=1000)
    prompt_length, num_tokens = 900, 200
    run = simulate(one, partial(WFD, 4, 1), [Bernoulli(0.9)], num_tokens=num_tokens, prompt_length=prompt_length)
    fixed = simulate(one, partial(WFD, 4, 1), [Bernoulli(0.9)], num_tokens=num_tokens)
    assert run.seconds.cells == pytest.approx(fixed.seconds.cells, rel=0.01)
    assert run.seconds.weights == fixed.seconds.weights


def test_a_record_of_a_real_run_costs_what_the_run_counted() -> None:
    model = models.load("tiny-ouro")
    out = wfd.generate(model, [1, 2, 3], max_new_tokens=40, draft_depth=1, eos_token_id=None)
    recorded = Recorded.of(out.events)
    run = simulate(setting("ouro-2.6b"), partial(WFD, 4, 1), [recorded], num_tokens=40)
    assert run.counts[0].ticks == out.counts.ticks
    assert run.counts[0].lane_ticks == out.counts.lane_ticks
    judged = [event for event in out.events if isinstance(event, Accept | Reject)]
    # The prefill's token was not drafted; the last one's draft could have led to nothing and was never injected.
    assert len(recorded.verdicts) == len(judged) == out.counts.committed - 2
    assert recorded.accepts(len(judged) + 1) == recorded.accepts(1)


def test_rates_by_position_hold_where_they_are_named() -> None:
    sure = PerPosition((1.0, 0.0, 1.0))
    assert [sure.accepts(index) for index in range(1, 6)] == [True, False, True, True, True]
    num_right = sum(PerPosition((0.3,), seed=1).accepts(index) for index in range(1, 4001))
    assert num_right / 4000 == pytest.approx(0.3, abs=4 * math.sqrt(0.3 * 0.7 / 4000))


@pytest.mark.parametrize("make", [lambda: Bernoulli(1.5), lambda: PerPosition((0.5, -0.1)), lambda: Recorded.of([])])
def test_what_is_no_rate_and_no_record_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ParameterError, match=r"COST-0"):
        make()

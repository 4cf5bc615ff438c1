"""Ticks from formulas are the ticks of runs."""

import math

import pytest
from hypothesis import given

from reference.cost.closed_forms import exact_ticks, expected_ticks_per_token
from reference.schedule import Start
from tests.driving import Case, plays
from tests.strategies import cases, cases_by_verdict


def start(decoder: str, *, draft_depth: int, draft_length: int | None = None) -> Start:
    return Start(
        decoder=decoder,
        recurrence_depth=4,
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


def test_a_run_begins_with_its_start() -> None:
    with pytest.raises(ValueError, match="begins with a start event"):
        exact_ticks(())

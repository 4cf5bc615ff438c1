"""The AR schedule by hand."""

import pytest

from reference.ar import AR
from reference.errors import ParameterError
from reference.schedule import Lane, Purpose, Readout, State, Tick
from tests.driving import Case, Lap, make_ar, play

CASE = Case(table=Lap(), recurrence_depth=3, draft_depth=3, max_new_tokens=3)


@pytest.mark.spec("AR-01")
def test_one_lane_climbs_and_is_read_out_at_t() -> None:
    schedule = make_ar(CASE)
    assert schedule.plan(State(2, (Lane(1, 1, 1),))) == Tick((Lane(1, 1, 1),), ())
    due = Readout(Lane(1, 1, 3), Purpose.VERIFY)
    assert schedule.plan(State(2, (Lane(1, 1, 2),))) == Tick((Lane(1, 1, 2),), (due,))


@pytest.mark.spec("AR-02")
def test_two_tokens_after_the_first_take_two_times_t_ticks() -> None:
    run = play(make_ar, CASE)
    assert run.token_ids == (1, 2, 3)
    assert run.commit_ticks == (0, 3, 6)


@pytest.mark.spec("MOD-01")
@pytest.mark.parametrize("depth", [0, -1, True])
def test_a_recurrence_depth_below_1_is_refused(depth: int) -> None:
    with pytest.raises(ParameterError, match=r"recurrence_depth=.* \(MOD-01\)"):
        AR(recurrence_depth=depth, stopping=CASE.stopping)


def test_ar_drafts_at_full_depth_which_is_not_at_all() -> None:
    schedule = make_ar(CASE)
    assert (schedule.name, schedule.draft_depth, schedule.draft_length) == ("ar", 3, None)

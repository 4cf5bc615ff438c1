"""The WFD schedule by hand: the wave of the module's own drawing, tick by tick."""

from dataclasses import replace

import pytest

from reference.errors import ParameterError
from reference.schedule import Flush, Purpose
from reference.wfd import WFD
from tests.driving import Case, Lap, make_wfd, play

CASE = Case(table=Lap(), recurrence_depth=4, draft_depth=1, max_new_tokens=12)


def wave(case: Case) -> list[list[tuple[int, int]]]:
    """Gives (position, depth) of every lane before each tick."""
    return [[(lane.position, lane.depth) for lane in step.before.lanes] for step in play(make_wfd, case).steps]


@pytest.mark.spec("WFD-02", "WFD-03", "WFD-07")
def test_the_wave_grows_by_a_lane_per_tick_until_it_is_t_wide() -> None:
    assert wave(replace(CASE, prompt=(4,)))[:5] == [
        [(1, 0)],
        [(1, 1), (2, 0)],
        [(1, 2), (2, 1), (3, 0)],
        [(1, 3), (2, 2), (3, 1), (4, 0)],
        [(2, 3), (3, 2), (4, 1), (5, 0)],
    ]


@pytest.mark.spec("WFD-07", "WFD-08")
def test_where_d_does_not_divide_t_the_width_alternates() -> None:
    assert wave(replace(CASE, prompt=(4,), recurrence_depth=5, draft_depth=2))[:8] == [
        [(1, 0)],
        [(1, 1)],
        [(1, 2), (2, 0)],
        [(1, 3), (2, 1)],
        [(1, 4), (2, 2), (3, 0)],
        [(2, 3), (3, 1)],
        [(2, 4), (3, 2), (4, 0)],
        [(3, 3), (4, 1)],
    ]


@pytest.mark.spec("WFD-06")
def test_at_full_draft_depth_the_one_lane_is_read_out_once_to_verify() -> None:
    steps = play(make_wfd, replace(CASE, draft_depth=4)).steps
    assert {len(step.before.lanes) for step in steps} == {1}
    read_out = [[readout.purpose for readout in step.tick.readouts] for step in steps[:4]]
    assert read_out == [[], [], [], [Purpose.VERIFY]]


@pytest.mark.spec("WFD-05", "WFD-09", "WFD-12")
def test_the_wrong_draft_behind_3_is_flushed_with_the_wave_built_on_it() -> None:
    run = play(make_wfd, CASE)
    assert run.token_ids == (1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4)
    # 3 is token 2 after the first. Token 3 after the first, 4, was drafted as 0; its verdict falls at tick 6.
    assert run.commit_ticks == (0, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17)
    assert run.of(Flush) == [Flush(6, (4, 5, 6))]
    assert run.steps[6].before.lanes[0].depth == 0


@pytest.mark.spec("WFD-08")
@pytest.mark.parametrize("recurrence_depth,draft_depth,width", [(4, 1, 4), (4, 2, 2), (4, 3, 2), (4, 4, 1), (9, 4, 3)])
def test_the_width_is_t_over_d_rounded_up(recurrence_depth: int, draft_depth: int, width: int) -> None:
    case = replace(CASE, prompt=(4,), recurrence_depth=recurrence_depth, draft_depth=draft_depth, max_new_tokens=20)
    assert make_wfd(case).wavefront_width == width
    assert max(len(lanes) for lanes in wave(case)) == width


@pytest.mark.spec("WFD-01")
@pytest.mark.parametrize("draft_depth", [0, 5, True])
def test_a_draft_depth_outside_1_to_t_is_refused(draft_depth: int) -> None:
    with pytest.raises(ParameterError, match=r"draft_depth=.* \(WFD-01\)"):
        WFD(recurrence_depth=4, draft_depth=draft_depth, stopping=CASE.stopping)

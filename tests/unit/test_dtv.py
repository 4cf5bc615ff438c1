"""The DtV schedule by hand."""

from dataclasses import replace

import pytest

from reference.dtv import DtV
from reference.errors import ParameterError
from reference.schedule import Accept, Commit, Inject, Lane, State
from tests.driving import Case, Lap, make_dtv, play

CASE = Case(table=Lap(), recurrence_depth=4, draft_depth=1, draft_length=2, max_new_tokens=7)


@pytest.mark.spec("DTV-04", "DTV-05", "DTV-06", "DTV-08")
def test_a_round_of_two_drafts_takes_six_ticks_and_commits_three_tokens() -> None:
    run = play(make_dtv, CASE)
    assert run.token_ids == (1, 2, 3, 4, 5, 6, 7)
    # After 3 the draft says 0. Round 1 drafts 2 and 3 and gets the bonus token 4; round 2 drafts 5 and 6, bonus 7.
    assert run.commit_ticks == (0, 6, 6, 6, 12, 12, 12)
    assert [len(step.tick.lanes) for step in run.steps] == [1, 1, 1, 3, 3, 3] * 2
    last_of_round = run.steps[5].events[1:]
    assert [type(event) for event in last_of_round] == [Commit, Accept, Commit, Accept, Commit, Inject]


@pytest.mark.spec("DTV-06")
def test_a_wrong_first_draft_costs_the_round_all_but_one_token() -> None:
    run = play(make_dtv, replace(CASE, prompt=(2,)))
    assert run.token_ids[:2] == (3, 4)
    assert run.commit_ticks[:3] == (0, 6, 12)
    assert run.judgements[1] is False


@pytest.mark.spec("DTV-03")
@pytest.mark.parametrize("frontier,drafts", [(2, 2), (5, 2), (6, 1), (7, 0)])
def test_a_round_drafts_no_more_than_could_be_committed(frontier: int, drafts: int) -> None:
    assert make_dtv(CASE).num_drafts(State(frontier, (Lane(frontier - 1, 0, 0),))) == drafts


@pytest.mark.spec("DTV-03")
def test_at_full_draft_depth_nothing_is_drafted() -> None:
    assert make_dtv(CASE.drafting_at_full_depth()).num_drafts(State(2, (Lane(1, 0, 0),))) == 0


@pytest.mark.spec("DTV-01", "DTV-02")
@pytest.mark.parametrize(
    "draft_depth,draft_length,message",
    [
        (5, 1, "draft_depth=5 exceeds recurrence_depth=4 (DTV-01)"),
        (0, 1, "draft_depth=0 is below 1 (DTV-01)"),
        (1, 0, "draft_length=0 is below 1 (DTV-02)"),
        (1, True, "draft_length=True is not a whole number (DTV-02)"),
    ],
)
def test_parameters_outside_their_range_are_refused(draft_depth: int, draft_length: int, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        DtV(recurrence_depth=4, draft_depth=draft_depth, draft_length=draft_length, stopping=CASE.stopping)
    assert str(caught.value) == message

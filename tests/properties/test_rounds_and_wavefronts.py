"""The shapes of the three decoders: one lane, rounds, a wavefront; and how many ticks they take."""

import pytest
from hypothesis import given

from tests.driving import Case, make_ar, make_dtv, make_wfd, play
from tests.laws import counting, rounds, single, wavefront
from tests.strategies import cases


@pytest.mark.spec("AR-01", "AR-02")
@given(case=cases(is_steady=False))
def test_ar_takes_t_ticks_of_one_row_for_every_token(case: Case) -> None:
    run = play(make_ar, case)
    single.ar_has_one_lane(run)
    single.ar_takes_exactly_its_ticks(run)


@pytest.mark.spec("DTV-03", "DTV-04", "DTV-05", "DTV-06")
@given(case=cases(is_steady=False))
def test_a_round_drafts_alone_then_verifies_together(case: Case) -> None:
    rounds.rounds_have_their_shape(play(make_dtv, case))


@pytest.mark.spec("DTV-06")
@given(case=cases(is_steady=False))
def test_a_rejection_in_a_round_drops_at_most_its_drafts(case: Case) -> None:
    wavefront.flushes_are_bounded(play(make_dtv, case))


@pytest.mark.spec("DTV-09")
@given(case=cases(is_steady=False))
def test_every_round_commits_a_token(case: Case) -> None:
    rounds.every_round_commits(play(make_dtv, case))


@pytest.mark.spec("WFD-07")
@given(case=cases(is_steady=False))
def test_lanes_are_spaced_by_d_in_depth_and_one_in_position(case: Case) -> None:
    wavefront.wavefront_is_spaced(play(make_wfd, case))


@pytest.mark.spec("WFD-08")
@given(case=cases(is_steady=False))
def test_the_wavefront_is_never_wider_than_t_over_d(case: Case) -> None:
    wavefront.wavefront_is_bounded(play(make_wfd, case))


@pytest.mark.spec("WFD-09")
@given(case=cases(is_steady=False))
def test_a_rejection_flushes_fewer_lanes_than_the_width(case: Case) -> None:
    wavefront.flushes_are_bounded(play(make_wfd, case))


@pytest.mark.spec("WFD-04")
@given(case=cases(is_steady=False))
def test_the_oldest_is_read_out_at_t_and_the_youngest_at_d(case: Case) -> None:
    wavefront.wavefront_reads_out_what_is_due(play(make_wfd, case))


@pytest.mark.spec("WFD-10")
@given(case=cases(is_steady=False))
def test_a_token_is_committed_d_or_t_ticks_after_the_one_before(case: Case) -> None:
    wavefront.wavefront_commits_every_few_ticks(play(make_wfd, case))


@pytest.mark.spec("WFD-12")
@given(case=cases(is_steady=False))
def test_wfd_takes_exactly_the_ticks_of_its_verdicts(case: Case) -> None:
    wavefront.wavefront_takes_exactly_its_ticks(play(make_wfd, case))


@pytest.mark.spec("COST-06")
@given(case=cases(is_steady=False))
def test_the_closed_form_is_exact_on_judged_drafts(case: Case) -> None:
    counting.judged_ticks_have_a_closed_form(play(make_wfd, case))


@pytest.mark.spec("WFD-13")
@given(case=cases(is_steady=False))
def test_wfd_saves_t_minus_d_ticks_for_every_accepted_draft(case: Case) -> None:
    wavefront.wavefront_saves_what_it_accepts(play(make_wfd, case))

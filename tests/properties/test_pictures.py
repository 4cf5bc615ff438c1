"""Pictures of any run show all that happened in it."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.figures import canvas, scenes, slots, svg, terminal
from reference.figures.grid import Mark, Verdict, heads, snapshots
from reference.schedule import Advance, Commit, Flush
from tests.driving import Case, Play, make_wfd, play, plays
from tests.pictures import SVG, classes, label, parsed
from tests.strategies import cases


def outcomes_of(run: Play) -> list[Verdict]:
    return [outcome.verdict for one in snapshots(run.events) for outcome in one.outcomes]


def verdicts(found: list[Verdict]) -> Counter[bool]:
    return Counter(verdict is Verdict.ACCEPTED for verdict in found if verdict is not Verdict.UNJUDGED)


@given(case=cases())
def test_a_snapshot_shows_the_state_after_its_tick(case: Case) -> None:
    for run in plays(case):
        shown = list(snapshots(run.events))
        assert [one.tick for one in shown] == list(range(run.ticks + 1))
        for one, state in zip(shown, run.states, strict=True):
            if state.finish_reason is None:  # lanes that a finish abandons stay in the picture
                in_flight = [column for column in one.columns if column.mark in {Mark.DRAFTING, Mark.VERIFYING}]
                assert [(column.position, column.token, column.depth) for column in in_flight] == [
                    (lane.position, lane.token, lane.depth) for lane in state.lanes
                ]
                assert [column.mark for column in in_flight[1:]] == [Mark.DRAFTING] * len(in_flight[1:])
            assert one.finish_reason == state.finish_reason


@given(case=cases())
def test_pictures_show_every_row_every_token_and_every_flushed_lane(case: Case) -> None:
    for run in plays(case):
        shown = list(snapshots(run.events))
        assert sum(one.num_rows for one in shown) == sum(len(event.lanes) for event in run.of(Advance))
        outcomes = [outcome for one in shown for outcome in one.outcomes]
        assert [(outcome.position, outcome.token) for outcome in outcomes] == [
            (event.position, event.token) for event in run.of(Commit)
        ]
        assert verdicts(outcomes_of(run)) == Counter(run.judgements.values())
        flushed = [column.position for one in shown for column in one.columns if column.dropped is not None]
        assert flushed == [position for event in run.of(Flush) for position in event.positions]
        assert len(flushed) == sum(outcome.num_flushed for outcome in outcomes)


@given(case=cases(), most_ticks=st.integers(1, 30))
def test_every_run_has_an_opening_and_scenes(case: Case, most_ticks: int) -> None:
    for run in plays(case):
        opening = scenes.opening(run.events, most_ticks=most_ticks)
        assert opening[0].tick == 0
        assert len(opening) <= most_ticks + 1
        assert 1 <= len(scenes.key_scenes(run.events)) <= 3


@given(case=cases(), width=st.integers(60, 120))
def test_no_line_is_wider_than_the_terminal(case: Case, width: int) -> None:
    for run in plays(case):
        opening = scenes.opening(run.events, most_ticks=30)
        for line in terminal.history(opening, label, width=width, glyphs=terminal.UNICODE).split():
            assert line.cell_len <= width


@given(case=cases(), most_ticks=st.integers(0, 30))
def test_every_history_is_a_well_formed_document_with_a_box_for_every_row(case: Case, most_ticks: int) -> None:
    for run in plays(case):
        shown = tuple(snapshots(run.events))[: most_ticks + 1]
        root = parsed(svg.history(shown, label, canvas.Words("a & b", "<c>")))
        assert [root.findtext(SVG + "title"), root.findtext(SVG + "desc")] == ["a & b", "<c>"]
        boxes = classes(root, "rect")
        num_legend = 4
        assert sum(boxes.values()) - boxes["paper"] - num_legend == len(heads(shown)) + sum(
            one.num_rows for one in shown
        )


@given(case=cases(), most_ticks=st.integers(0, 30))
def test_every_row_is_in_the_terminal_too(case: Case, most_ticks: int) -> None:
    for run in plays(case):
        shown = tuple(snapshots(run.events))[: most_ticks + 1]
        lines = terminal.history(shown, str, width=400, glyphs=terminal.ASCII).plain.splitlines()[2:]
        for one, line in zip(shown, lines, strict=True):
            assert len(re.findall(r"[DV#x]\d", line)) == one.num_rows


@given(case=cases())
@pytest.mark.spec("KV-07", "KV-08")
def test_coda_entries_are_final_at_finished_positions_and_provisional_where_a_draft_was_read_out(case: Case) -> None:
    run = play(make_wfd, case)
    for state, entries in zip(run.states, slots.coda_entries(run.events), strict=True):
        final = {position for position, entry in entries.items() if entry.mark in {Mark.VERIFYING, Mark.COMMITTED}}
        assert final == set(range(len(case.prompt), state.frontier - 1))
        provisional = {position for position, entry in entries.items() if entry.mark is Mark.DRAFTING}
        if state.finish_reason is None:
            assert provisional == {lane.position for lane in state.lanes[:-1]}

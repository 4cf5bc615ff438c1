"""Traces that tell which KV cells were read: every right one passes, every other cell is named."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import oracle
from reference.oracle.verdicts import Verdict
from reference.schedule import Advance, CellsRead, Event, Inject
from reference.trace import to_jsonl
from tests.driving import Case, Lap, make_wfd, play, plays
from tests.strategies import cases

LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, draft_length=3, max_new_tokens=9)


def telling(events: Sequence[Event]) -> list[Event]:
    """Adds to every call of a right run what its rows read, cell by cell."""
    started: dict[int, int] = {}
    told: list[Event] = []
    for event in events:
        match event:
            case Inject():
                started[event.position] = started.get(event.position, -1) + 1
                told.append(event)
            case Advance():
                reads = tuple(
                    tuple(
                        CellsRead(position, position + 1, lane.depth - 1, started.get(position, 0))
                        for position in range(lane.position + 1)
                    )
                    for lane in event.lanes
                )
                told.append(replace(event, reads=reads))
            case _:
                told.append(event)
    return told


WAVE = telling(play(make_wfd, LAP).events)


@pytest.mark.spec("KV-03", "CONF-07")
@given(case=cases())
def test_every_run_of_every_schedule_passes_when_it_tells_what_it_read(case: Case) -> None:
    for one in plays(case):
        verdict = oracle.check_trace(to_jsonl(telling(one.events)))
        assert verdict.verdict is Verdict.EXACT, str(verdict)
        assert verdict.freedoms == ()


@pytest.mark.spec("KV-03")
@given(case=cases(smallest_budget=2), data=st.data())
def test_no_cell_can_be_another(case: Case, data: st.DataObject) -> None:
    for one in plays(case):
        events = telling(one.events)
        places = [k for k, event in enumerate(events) if isinstance(event, Advance)]
        if not places:
            continue
        place = data.draw(st.sampled_from(places))
        event = events[place]
        assert isinstance(event, Advance)
        assert event.reads is not None
        row = data.draw(st.integers(0, len(event.reads) - 1))
        cell = data.draw(st.integers(0, len(event.reads[row]) - 1))
        name = data.draw(st.sampled_from(["recurrence", "incarnation"]))
        wrong = replace(
            event.reads[row][cell],
            **{name: getattr(event.reads[row][cell], name) + data.draw(st.sampled_from([-1, 1]))},
        )
        cells = (*event.reads[row][:cell], wrong, *event.reads[row][cell + 1 :])
        reads = (*event.reads[:row], cells, *event.reads[row + 1 :])
        events[place] = replace(event, reads=reads)
        objection = oracle.check_trace(events).objection
        assert objection is not None
        assert (objection.index, objection.clause) == (place, "KV-03")


@pytest.mark.spec("KV-03")
@pytest.mark.parametrize(
    "runs,reason",
    [
        ([(0, 3, 1, 0)], None),
        ([(0, 1, 1, 0), (1, 3, 1, 0)], None),
        ([(1, 3, 1, 0), (0, 1, 1, 0)], None),
        ([(0, 2, 1, 0)], "position 2, in recurrence 1, does not read the cell of position 2"),
        ([(1, 3, 1, 0)], "position 2, in recurrence 1, does not read the cell of position 0"),
        ([], "does not read the cell of position 0"),
        ([(0, 4, 1, 0)], "reads a cell of position 3, which is none of its own or before it"),
        ([(-1, 3, 1, 0)], "reads a cell of position -1, which is none"),
        ([(0, 3, 1, 0), (1, 2, 1, 0)], "reads a cell of position 1 a second time"),
        ([(0, 3, 0, 0)], "reads a cell of position 0 that recurrence 0 wrote last"),
        ([(0, 2, 1, 0), (2, 3, -1, -1)], "reads a cell of position 2 that nobody has written"),
        ([(0, 2, 1, 0), (2, 3, 1, 1)], "cell of position 2 that is stale: its lane 1 wrote it, and now it has lane 0"),
    ],
)
def test_what_a_row_reads_is_held_cell_by_cell(runs: list[tuple[int, int, int, int]], reason: str | None) -> None:
    events = list(WAVE)
    place = next(
        k
        for k, event in enumerate(events)
        if isinstance(event, Advance) and [(lane.position, lane.depth) for lane in event.lanes[1:2]] == [(2, 2)]
    )
    event = events[place]
    assert isinstance(event, Advance)
    assert event.reads is not None
    told = tuple(CellsRead(*run) for run in runs)
    events[place] = replace(event, reads=(event.reads[0], told, *event.reads[2:]))
    objection = oracle.check_trace(events).objection
    assert (objection is None) == (reason is None)
    if objection is not None:
        assert (objection.index, objection.clause) == (place, "KV-03")
        assert reason in objection.reason if reason else False


@pytest.mark.spec("NOT-03")
def test_every_row_tells_or_none() -> None:
    place = next(k for k, event in enumerate(WAVE) if isinstance(event, Advance) and len(event.lanes) > 1)
    event = WAVE[place]
    assert isinstance(event, Advance)
    assert event.reads is not None
    for reads, clause in ((None, None), (event.reads[:-1], "NOT-03"), ((), "NOT-03")):
        objection = oracle.check_trace([*WAVE[:place], replace(event, reads=reads), *WAVE[place + 1 :]]).objection
        assert (objection and objection.clause) == clause

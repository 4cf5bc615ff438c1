"""Events to JSON lines and back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from reference.schedule import Accept, Advance, CellsRead, Commit, Event, Finish, Lane
from reference.stopping import FinishReason
from reference.trace import VERSION, VERSION_WITH_READS, TraceFormatError, from_jsonl, to_jsonl
from tests.driving import Case, Lap, make_wfd, play
from tests.strategies import cases, event_lists


def _with_lanes(fields: dict[str, Any]) -> dict[str, Any]:
    if "lanes" not in fields:
        return fields
    reads = fields["reads"]
    made = None if reads is None else tuple(tuple(CellsRead(*cells) for cells in row) for row in reads)
    return fields | {"lanes": tuple(Lane(*lane) for lane in fields["lanes"]), "reads": made}


LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, max_new_tokens=9)


@pytest.mark.spec("CONF-07")
@given(drawn=event_lists)
def test_events_of_every_kind_survive_the_round_trip(drawn: list[tuple[type[Event], dict[str, Any]]]) -> None:
    events = [kind(**_with_lanes(fields)) for kind, fields in drawn]
    text = to_jsonl(events)
    assert from_jsonl(text) == events
    assert len(text.splitlines()) == len(events)
    assert to_jsonl(from_jsonl(text)) == text


@pytest.mark.spec("CONF-07")
@given(case=cases())
def test_the_events_of_a_run_survive_the_round_trip(case: Case) -> None:
    events = list(play(make_wfd, case).events)
    assert from_jsonl(to_jsonl(events)) == events


def test_a_line_names_its_kind_and_the_first_one_the_version() -> None:
    text = to_jsonl([Advance(1, (Lane(3, 5, 1), Lane(4, 6, 0))), Finish(2, FinishReason.EOS, (4,))])
    assert [json.loads(line) for line in text.splitlines()] == [
        {"event": "advance", "tick": 1, "lanes": [[3, 5, 1], [4, 6, 0]]},
        {"event": "finish", "tick": 2, "reason": "eos", "abandoned": [4]},
    ]
    first = json.loads(to_jsonl(play(make_wfd, LAP).events).splitlines()[0])
    assert (first["event"], first["version"]) == ("start", VERSION)


def test_blank_lines_are_passed_over() -> None:
    assert from_jsonl('\n{"event": "accept", "tick": 1, "position": 2}\n   \n\n') == [Accept(1, 2)]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        "null",
        '"commit"',
        "{}",
        '{"event": "commit"}',
        '{"event": "comit", "tick": 1, "position": 2, "token": 3}',
        '{"event": null, "tick": 1, "position": 2, "token": 3}',
        '{"event": "commit", "tick": 1, "position": 2}',
        '{"event": "commit", "tick": 1, "position": 2, "token": 3, "more": 4}',
        '{"event": "commit", "tick": 1.0, "position": 2, "token": 3}',
        '{"event": "commit", "tick": true, "position": 2, "token": 3}',
        '{"event": "commit", "tick": "1", "position": 2, "token": 3}',
        '{"event": "commit", "tick": null, "position": 2, "token": 3}',
        '{"event": "commit", "tick": [1], "position": 2, "token": 3}',
        '{"event": "flush", "tick": 1, "positions": 2}',
        '{"event": "flush", "tick": 1, "positions": [2.5]}',
        '{"event": "advance", "tick": 1, "lanes": [[1, 2]]}',
        '{"event": "advance", "tick": 1, "lanes": [[1, 2, 3, 4]]}',
        '{"event": "advance", "tick": 1, "lanes": [7]}',
        '{"event": "advance", "tick": 1, "lanes": [["1", 2, 3]]}',
        '{"event": "advance", "tick": 1, "lanes": [], "reads": [[[1, 2, 3]]]}',
        '{"event": "advance", "tick": 1, "lanes": [], "reads": [[1, 2, 3, 4]]}',
        '{"event": "advance", "tick": 1, "lanes": [], "reads": [[[1, 2, 3, true]]]}',
        '{"event": "advance", "tick": [1], "lanes": []}',
        '{"event": "finish", "tick": 1, "reason": "bored", "abandoned": []}',
        '{"event": "finish", "tick": 1, "reason": 3, "abandoned": []}',
        '{"event": "start", "decoder": "wfd"}',
    ],
)
def test_a_corrupted_line_is_refused_by_number(line: str) -> None:
    with pytest.raises(TraceFormatError, match=f"^line 2 is not an event of trace format {VERSION}"):
        from_jsonl(to_jsonl([Commit(1, 2, 3)]) + line + "\n")


@pytest.mark.spec("CONF-07")
def test_a_trace_that_tells_what_was_read_is_of_format_2() -> None:
    events = list(play(make_wfd, LAP).events)
    place = next(k for k, event in enumerate(events) if isinstance(event, Advance))
    advance = events[place]
    assert isinstance(advance, Advance)
    events[place] = replace(advance, reads=((CellsRead(0, 1, 0, 0),),))
    text = to_jsonl(events)
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["version"] == VERSION_WITH_READS
    assert lines[place]["reads"] == [[[0, 1, 0, 0]]]
    assert sum("reads" in line for line in lines) == 1
    assert from_jsonl(text) == events
    with pytest.raises(TraceFormatError, match=f"^line {place + 1} .*reads need format {VERSION_WITH_READS}"):
        from_jsonl(text.replace('"version": 2', '"version": 1'))


def test_another_version_is_refused() -> None:
    text = to_jsonl(play(make_wfd, LAP).events)
    assert from_jsonl(text)
    with pytest.raises(TraceFormatError, match=r"^line 1 is .*another version"):
        from_jsonl(text.replace(f'"version": {VERSION}', f'"version": {VERSION_WITH_READS + 1}'))
    with pytest.raises(TraceFormatError, match="line 1 "):
        from_jsonl(text.replace(f'"version": {VERSION}, ', ""))


@pytest.mark.parametrize(
    "field,value", [("decoder", 3), ("draft_length", "no"), ("stop_ids", None), ("max_new_tokens", None)]
)
def test_a_field_of_the_wrong_kind_is_refused(field: str, value: object) -> None:
    start, *_ = to_jsonl(play(make_wfd, LAP).events).splitlines()
    with pytest.raises(TraceFormatError, match="line 1 "):
        from_jsonl(json.dumps(json.loads(start) | {field: value}))

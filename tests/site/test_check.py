"""The check in the browser and `oracle.check_trace` name the same event and the same clause."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from reference import oracle, trace
from reference.figures import grid
from reference.oracle import schema
from reference.schedule import Event, Finish, Start
from reference.stopping import FinishReason
from tests.driving import make_ar, make_dtv, make_wfd, play
from tests.oracle import gallery, test_gallery, test_traces
from tests.oracle.test_traces import LAP, STOPPED, WIDE
from tests.site.conftest import Opened
from tests.site.requirements import needs_browser

pytestmark = needs_browser

JUDGE = """
async ([modules, traces]) => {
  const { parseTrace } = await import(modules + "format.js");
  const { checkTrace } = await import(modules + "check.js");
  return traces.map((text) => {
    const found = checkTrace(parseTrace(text));
    return found && [found.index, found.clause];
  });
}
"""


def gallery_of_traces() -> Iterator[str]:
    """Gives what the right and the wrong implementations of the oracle's gallery write."""
    for kind, stop_ids, depth, _ in _parameters(test_gallery.test_a_wrong_schedule_shows_in_the_trace):
        yield test_gallery.run(kind, "lap", stop_ids=stop_ids, draft_depth=depth).trace
    for kind in gallery.RIGHT:
        yield test_gallery.run(kind, "lap", stop_ids=(0,)).trace


def listed_faults() -> Iterator[str]:
    """Gives the wrong traces of the oracle's own tests."""
    for events, _ in _parameters(test_traces.test_what_is_wrong_is_named_by_its_clause):
        yield trace.to_jsonl(events)


def edits() -> Iterator[str]:
    """Gives every trace that is one small change away from a right one."""
    for case in (LAP, WIDE, STOPPED):
        for make in (make_ar, make_dtv, make_wfd):
            events = list(play(make, case).events)[:40]
            for index in range(len(events)):
                for edited in _edits(events, index):
                    yield trace.to_jsonl(edited)


def without_reads(text: str) -> str:
    """Gives a trace that does not tell which KV cells were read; the browser does not look at them."""
    lines = [json.loads(line) for line in text.splitlines()]
    return "".join(json.dumps({name: line[name] for name in line if name != "reads"}) + "\n" for line in lines)


def _edits(events: Sequence[Event], index: int) -> Iterator[list[Event]]:
    before, event, after = list(events[:index]), events[index], list(events[index + 1 :])
    yield [*before, *after]
    yield [*before, event, event, *after]
    if after:
        yield [*before, after[0], event, *after[1:]]
    changes: dict[str, Any] = {"tick": 1, "position": 1, "token": 1, "draft_depth": 1, "max_new_tokens": -1}
    for name, step in changes.items():
        if hasattr(event, name):
            yield [*before, replace(event, **{name: getattr(event, name) + step}), *after]
    if isinstance(event, Finish):
        yield [*before, replace(event, reason=FinishReason.CONTEXT), *after]
    for name in ("lanes", "positions", "abandoned"):
        if getattr(event, name, ()):
            yield [*before, replace(event, **{name: getattr(event, name)[1:]}), *after]
            yield [*before, replace(event, **{name: getattr(event, name)[::-1]}), *after]


def _parameters(test: object) -> list[tuple[Any, ...]]:
    """Gives the cases that another test is run with."""
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    (cases,) = [mark.args[1] for mark in marks if mark.name == "parametrize"]
    return list(cases)


def test_both_name_the_same_event_and_the_same_clause(opened: Opened) -> None:
    told = [*gallery_of_traces(), *listed_faults(), *edits()]
    traces = [without_reads(text) for text in told]
    with_reads = [index for index, text in enumerate(told) if text != traces[index]]
    assert with_reads, "no trace tells its reads"
    judged = [*traces, *(told[index] for index in with_reads)]
    shown = opened.page("stepper.html").evaluate(JUDGE, [opened.address + "assets/stepper/", judged])
    shown, again = shown[: len(traces)], shown[len(traces) :]
    assert again == [shown[index] for index in with_reads]
    verdicts = [oracle.check_trace(text).objection for text in traces]
    expected = [found and [found.index, found.clause] for found in verdicts]
    different = [pair for pair in zip(expected, shown, strict=True) if pair[0] != pair[1]]
    assert different == []
    clauses = {found.clause for found in verdicts if found}
    assert len(clauses) >= 18, "the traces break too few clauses to tell the two apart"
    assert None in expected


def test_the_pictures_in_the_browser_are_those_of_the_figures(opened: Opened) -> None:
    runs = [play(make, case).events for make in (make_ar, make_dtv, make_wfd) for case in (LAP, STOPPED)]
    read = """
    async ([modules, traces]) => {
      const { parseTrace } = await import(modules + "format.js");
      const { snapshots } = await import(modules + "grid.js");
      const plain = ({ tick, columns, reason }) => [tick, columns, reason];
      return traces.map((text) => snapshots(parseTrace(text)).map(plain));
    }
    """
    traces = [trace.to_jsonl(events) for events in runs]
    shown = opened.page("stepper.html").evaluate(read, [opened.address + "assets/stepper/", traces])
    drawn = [[[one.tick, _columns(one), one.finish_reason] for one in grid.snapshots(events)] for events in runs]
    assert shown == drawn


def _columns(snapshot: grid.Snapshot) -> list[dict[str, object]]:
    return [asdict(column) | {"mark": column.mark.value} for column in snapshot.columns]


def test_the_fields_of_an_event_are_those_of_the_schema(opened: Opened) -> None:
    read = "async (modules) => (await import(modules + 'format.js')).FIELDS"
    fields = opened.page("stepper.html").evaluate(read, opened.address + "assets/stepper/")
    lines = json.loads(schema.PATH.read_text(encoding="utf-8"))["oneOf"]
    assert fields.keys() == {line["title"] for line in lines}
    for line in lines:
        assert ["event", *fields[line["title"]]] == line["required"]


NO_EVENTS = (
    "nonsense",
    '{"event": "comit"}',
    '{"event": "accept", "tick": 1}',
    '{"event": "accept", "tick": 1, "position": 2, "token": 3}',
    '{"event": "accept", "tick": true, "position": 2}',
    '{"event": "accept", "tick": 1.5, "position": 2}',
    '{"event": "advance", "tick": 1, "lanes": [[1, 2]]}',
    '{"event": "finish", "tick": 1, "reason": "tired", "abandoned": []}',
)


def test_what_is_no_event_is_refused_by_both(opened: Opened) -> None:
    start = trace.to_jsonl([next(event for event in play(make_ar, LAP).events if isinstance(event, Start))])
    for line in NO_EVENTS:
        with pytest.raises(trace.TraceFormatError, match="line 2"):
            trace.from_jsonl(start + line)
    refused = """
    async ([modules, texts]) => {
      const { parseTrace } = await import(modules + "format.js");
      return texts.map((text) => { try { parseTrace(text); return null; } catch (error) { return error.message; } });
    }
    """
    texts = [start, *(start + line for line in NO_EVENTS)]
    first, *messages = opened.page("stepper.html").evaluate(refused, [opened.address + "assets/stepper/", texts])
    assert first is None
    assert all(message.startswith("line 2 is not an event of trace format 1 or 2: ") for message in messages)

"""Traces of runs are behaviours of the models, and a corrupted trace is refused at the event that is wrong."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from reference import ar, dtv, engine, models, trace, wfd
from reference.engine import Output
from reference.models.scripted import ScriptedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Lane, Reject, Start
from spec.traces import Refusal, refusals
from tests.formal.requirements import needs_tlc

pytestmark = needs_tlc

FULL_DEPTH = 5


def scripted(period: int) -> ScriptedModel:
    """Gives a model whose drafts are wrong at every `period`-th position; 9 is its stop id."""

    def table(prefix: tuple[int, ...], depth: int) -> Sequence[float]:
        token = (3 * prefix[-1] + 5 * len(prefix) + sum(prefix)) % 11
        is_wrong = depth < FULL_DEPTH and len(prefix) % period == 0
        return [float(choice == (token + 1) % 11 if is_wrong else choice == token) for choice in range(11)]

    return ScriptedModel(
        table=table, vocab_size=11, recurrence_depth=FULL_DEPTH, context_length=14, eos_token_ids=frozenset({9})
    )


def runs() -> list[list[Event]]:
    """Gives traces of all decoders: flushes, stop ids, budget and context, written to JSON lines and read back."""
    model = scripted(3)
    outputs: list[Output] = []
    for prompt, budget, stops in (([1, 2], 9, None), ([4], 30, None), ([3, 1, 4], 12, "model"), ([5], 1, None)):
        options = engine.Options(eos_token_id=stops)
        outputs.append(ar.generate(model, prompt, max_new_tokens=budget, **options))
        for d in (1, 2, 5):
            outputs.append(wfd.generate(model, prompt, max_new_tokens=budget, draft_depth=d, **options))
            outputs.append(dtv.generate(model, prompt, max_new_tokens=budget, draft_depth=d, draft_length=3, **options))
    return [trace.from_jsonl(trace.to_jsonl(output.events)) for output in outputs]


@pytest.mark.spec("CONF-07", "NOT-03", "WFD-05", "DTV-06", "AR-01")
def test_traces_of_scripted_runs_are_behaviours_of_the_models() -> None:
    traces = runs()
    kinds = {type(event) for events in traces for event in events}
    assert {Accept, Reject, Flush, Draft, Inject, Finish} <= kinds
    assert {event.reason for events in traces for event in events if isinstance(event, Finish)} == {
        "eos",
        "length",
        "context",
    }
    assert refusals(traces) == [None] * len(traces)


@pytest.mark.spec("CONF-07", "NOT-03", "WFD-05", "DTV-06")
@pytest.mark.parametrize("name, depths", [("tiny-ouro", (1, 2, 3)), ("tiny-huginn", (1, 4))])
def test_traces_of_the_shipped_models_are_behaviours_of_the_models(name: str, depths: tuple[int, ...]) -> None:
    model = models.load(name)
    # No text at all, so that shallow and full depth disagree now and then.
    one, other = [700, 3, 999, 41, 512], list(range(100, 112))
    options = engine.Options(eos_token_id=None)
    traces = [ar.generate(model, one, max_new_tokens=4, **options).events]
    for d in depths:
        traces.append(wfd.generate(model, one, max_new_tokens=14, draft_depth=d, **options).events)
        traces.append(dtv.generate(model, other, max_new_tokens=9, draft_depth=d, draft_length=3, **options).events)
    assert {Accept, Reject, Flush} <= {type(event) for events in traces for event in events}
    assert refusals(traces) == [None] * len(traces)


def behind_one_token(events: Sequence[Event]) -> list[Event]:
    """Gives a run as it would stand behind a prompt of one token: to the models all positions of a prompt are alike."""
    start = events[0]
    assert isinstance(start, Start)
    gone = start.prompt_length - 1
    moved = []
    for line in trace.to_jsonl(events).splitlines():
        event = json.loads(line)
        for name in {"prompt_length", "context_length", "position"} & set(event):
            event[name] -= gone
        for name in {"positions"} & set(event):
            event[name] = [position - gone for position in event[name]]
        for name in {"lanes"} & set(event):
            event[name] = [[position - gone, *rest] for position, *rest in event[name]]
        moved.append(json.dumps(event))
    return trace.from_jsonl("\n".join(moved))


def test_a_run_that_is_moved_keeps_everything_but_its_positions() -> None:
    moved = behind_one_token(wfd_trace())
    assert [type(event) for event in moved] == [type(event) for event in wfd_trace()]
    before, after = ([event for event in events if isinstance(event, Advance)] for events in (wfd_trace(), moved))
    for one, other in zip(before, after, strict=True):
        assert [replace(lane, position=lane.position - 1) for lane in one.lanes] == list(other.lanes)
    flushed = [event.positions for event in moved if isinstance(event, Flush)]
    assert flushed == [tuple(at - 1 for at in event.positions) for event in wfd_trace() if isinstance(event, Flush)]


@pytest.mark.spec("CONF-07", "NOT-03", "WFD-05", "DTV-06")
@pytest.mark.parametrize("name,depths", [("tiny-ouro", (1, 2)), ("tiny-huginn", (2, 4))])
def test_traces_of_the_shipped_models_on_every_flavour_are_behaviours_of_the_models(
    name: str, depths: tuple[int, int]
) -> None:
    model, tokenizer = models.load(name), load_tokenizer(name)
    assert tokenizer is not None
    traces = []
    for number, text in enumerate(default_prompts().values()):
        prompt, d = tokenizer.encode(text).ids, depths[number % 2]
        traces += [
            wfd.generate(model, prompt, max_new_tokens=10, draft_depth=d).events,
            dtv.generate(model, prompt, max_new_tokens=10, draft_depth=d, draft_length=3).events,
        ]
    assert len(traces) == 12
    assert refusals([behind_one_token(events) for events in traces]) == [None] * len(traces)


def wfd_trace() -> list[Event]:
    """Gives a run with accepted and rejected drafts."""
    return wfd.generate(scripted(3), [1, 2], max_new_tokens=9, eos_token_id=None, draft_depth=2).events


def dtv_trace() -> list[Event]:
    """Gives a run with accepted and rejected drafts."""
    return dtv.generate(scripted(3), [1, 2], max_new_tokens=9, eos_token_id=None, draft_depth=2, draft_length=4).events


def first(events: Sequence[Event], kind: type[Event], after: int = 0) -> int:
    """Gives the index of the first event of a kind."""
    return next(index for index, event in enumerate(events) if index >= after and isinstance(event, kind))


def dropped(kind: type[Event]) -> Callable[[list[Event]], tuple[list[Event], int]]:
    """Gives a corruption that loses the first event of a kind; the event that now stands there is wrong."""

    def corrupt(events: list[Event]) -> tuple[list[Event], int]:
        index = first(events, kind, after=4)
        return events[:index] + events[index + 1 :], index

    return corrupt


def later_lane(events: list[Event]) -> tuple[list[Event], int]:
    """Corrupts a tick: one of its rows is one recurrence ahead."""
    index = first(events, Advance, after=8)
    event = events[index]
    assert isinstance(event, Advance)
    lane = event.lanes[-1]
    lanes = (*event.lanes[:-1], Lane(lane.position, lane.token, lane.depth + 1))
    return [*events[:index], replace(event, lanes=lanes), *events[index + 1 :]], index


def other_commit(events: list[Event]) -> tuple[list[Event], int]:
    """Corrupts an accepted token: it commits another one and still claims that the draft was right."""
    index = first(events, Accept)
    event = events[index - 1]
    assert isinstance(event, Commit)
    return [*events[: index - 1], replace(event, token=(event.token + 1) % 11), *events[index:]], index


def kept_lane(events: list[Event]) -> tuple[list[Event], int]:
    """Corrupts a flush: it claims to drop one lane less."""
    index = first(events, Flush)
    event = events[index]
    assert isinstance(event, Flush)
    return [*events[:index], replace(event, positions=event.positions[:-1]), *events[index + 1 :]], index


def early_end(events: list[Event]) -> tuple[list[Event], int]:
    """Corrupts the end: the run stops without `Finish`."""
    return events[:-1], len(events) - 1


def one_more(events: list[Event]) -> tuple[list[Event], int]:
    """Corrupts the end: something follows `Finish`."""
    return [*events, events[-1]], len(events)


CORRUPTIONS = (
    *(dropped(kind) for kind in (Advance, Draft, Commit, Accept, Reject, Flush, Inject)),
    *(later_lane, other_commit, kept_lane, early_end, one_more),
)


@pytest.mark.spec("CONF-07")
@pytest.mark.parametrize("make", [wfd_trace, dtv_trace])
def test_a_corrupted_trace_is_refused_at_the_wrong_event(make: Callable[[], list[Event]]) -> None:
    corrupted = [corrupt(make()) for corrupt in CORRUPTIONS]
    expected = [Refusal(index + 1, events[index] if index < len(events) else None) for events, index in corrupted]
    assert refusals([events for events, _ in corrupted]) == expected

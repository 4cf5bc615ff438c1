"""The strategies reach what the laws are about. A law over cases that never meet a rejection would prove little."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import find

from reference.engine import Arithmetic, Output
from reference.models import Huginn, Ouro
from reference.schedule import Accept, Flush, Inject, Reject
from tests.driving import Case, Play, finish_of, make_dtv, make_wfd, play
from tests.runs import Job, decode
from tests.strategies import SEARCH, cases, jobs


def _lanes_when_it_ended(run: Play) -> int:
    return len(run.steps[-1].before.lanes) if run.steps else 0


def _rejects_at_the_finish(run: Play) -> bool:
    return bool(run.steps) and any(isinstance(event, Reject) for event in run.steps[-1].events)


def _drops_a_draft_whose_source_is_flushed(run: Play) -> bool:
    return any(
        len(step.tick.readouts) == 2 and any(isinstance(event, Flush) for event in step.events) for step in run.steps
    )


WAVES: dict[str, Callable[[Play], bool]] = {
    "an empty output": lambda run: run.case.max_new_tokens == 0,
    "a stop id as the first token": lambda run: run.finish_reason == "eos" and len(run.token_ids) == 1,
    "a stop id in a wave of three lanes or more": (
        lambda run: run.finish_reason == "eos" and _lanes_when_it_ended(run) >= 3
    ),
    "a stop id where the budget ends": lambda run: run.finish_reason == "eos" and len(run.sequence) == run.case.end,
    "a stop id that was drafted wrongly": (
        lambda run: any(event.draft_token in run.case.stop_ids for event in run.of(Reject))
    ),
    "lanes abandoned at the finish": lambda run: len(finish_of(run.events).abandoned) >= 2,
    "a rejection in the last tick": _rejects_at_the_finish,
    "a draft dropped with its source": _drops_a_draft_whose_source_is_flushed,
    "an end of context below the budget": lambda run: run.finish_reason == "context" and run.ticks > 20,
    "budget and context ending together": (
        lambda run: (
            run.finish_reason == "length" and run.case.context_length + 1 == len(run.case.prompt) + len(run.token_ids)
        )
    ),
    "acceptances and rejections in one run": lambda run: len(run.of(Accept)) >= 3 and len(run.of(Reject)) >= 3,
    "every draft of a long run right": lambda run: len(run.of(Accept)) >= 12 and not run.of(Reject),
    "no draft of a long run right": lambda run: len(run.of(Reject)) >= 8 and not run.of(Accept),
    "a draft depth that does not divide T": (
        lambda run: run.case.recurrence_depth % run.case.draft_depth > 0 and run.ticks > 20
    ),
    "a draft depth of T": lambda run: run.case.recurrence_depth == run.case.draft_depth > 1 and run.ticks > 20,
}
"""What a run of WFD should meet."""


@pytest.mark.parametrize("feature", WAVES)
def test_cases_reach(feature: str) -> None:
    find(cases(), lambda case: WAVES[feature](play(make_wfd, case)), settings=SEARCH)


@pytest.mark.parametrize("size", range(1, 6))
def test_cases_reach_flushes_of_every_size(size: int) -> None:
    def has_such_a_flush(case: Case) -> bool:
        return any(len(flush.positions) == size for flush in play(make_wfd, case).of(Flush))

    find(cases(), has_such_a_flush, settings=SEARCH)


ROUNDS: dict[str, Callable[[Play], bool]] = {
    "a bonus token": lambda run: any(
        isinstance(event, Inject) and step.events[-2:-1] and not any(isinstance(it, Reject) for it in step.events)
        for step in run.steps
        if len(step.before.lanes) > 2
        for event in step.events[-1:]
    ),
    "a round cut by the end": lambda run: run.case.draft_length > run.case.max_new_tokens > 3,
    "a stop id in mid-round": lambda run: run.finish_reason == "eos" and _lanes_when_it_ended(run) >= 3,
    "several rejections": lambda run: len(run.of(Reject)) >= 3,
    "a finish with lanes left": lambda run: bool(finish_of(run.events).abandoned),
}
"""What a run of DtV should meet."""


@pytest.mark.parametrize("feature", ROUNDS)
def test_cases_reach_in_rounds(feature: str) -> None:
    find(cases(), lambda case: ROUNDS[feature](play(make_dtv, case)), settings=SEARCH)


def test_cases_shrink_to_the_plainest() -> None:
    case = find(cases(), lambda _: True)
    assert (case.recurrence_depth, case.draft_depth, case.draft_length, case.max_new_tokens) == (1, 1, 1, 0)
    assert len(case.prompt) == 1
    assert case.stop_ids == frozenset()


NETWORKS: dict[str, Callable[[Job, Output], bool]] = {
    "accepting and rejecting": lambda _, output: output.counts.accepted >= 2 and output.counts.rejected >= 2,
    "flushing three lanes at once": (
        lambda _, output: any(isinstance(event, Flush) and len(event.positions) >= 3 for event in output.events)
    ),
    "an Ouro with a draft depth that does not divide T": (
        lambda job, output: (
            isinstance(job.model, Ouro)
            and job.recurrence_depth % job.draft_depth > 0
            and min(output.counts.accepted, output.counts.rejected) > 0
        )
    ),
    "a Huginn with a draft depth that does not divide T": (
        lambda job, output: (
            isinstance(job.model, Huginn)
            and job.recurrence_depth % job.draft_depth > 0
            and min(output.counts.accepted, output.counts.rejected) > 0
        )
    ),
    "a stop id in mid-wave": (
        lambda _, output: output.finish_reason == "eos" and output.counts.accepted + output.counts.rejected > 1
    ),
    "an end of context": lambda _, output: output.finish_reason == "context" and output.counts.ticks > 0,
    "an empty output": lambda _, output: not output.token_ids,
}
"""What a run of WFD on a small network should meet."""


@pytest.mark.parametrize("feature", NETWORKS)
def test_jobs_reach(feature: str) -> None:
    strategy = jobs(arithmetic=Arithmetic.BATCHED, dtypes=(torch.float64,))
    find(strategy, lambda job: NETWORKS[feature](job, decode(job, "wfd", provenance=False).output()), settings=SEARCH)

"""The suite for an engine of one's own: a right engine passes, every mistake fails with its clause."""

import re
from dataclasses import asdict
from pathlib import Path
from textwrap import indent

import pytest

from reference import ar, trace, wfd
from reference.oracle.answers import Judge, Request
from reference.oracle.requests import CASES, NothingToAskError, Questions
from reference.oracle.suite import Answer, EngineSuite
from reference.schedule import Reject
from tests.cases.decoders import lap_model

pytest_plugins = ["pytester"]

LAP = lap_model()


class TestWavefrontThatTellsAll(EngineSuite):
    """The suite as a user runs it, on our own wavefront."""

    model = LAP
    decoder = "wfd"
    max_new_tokens = 12
    draft_depths = (1, 3)

    def decode(self, request: Request) -> Answer:
        """Decodes, and tells all that can be judged."""
        run = wfd.generate(
            LAP,
            request.prompt_ids,
            max_new_tokens=request.max_new_tokens,
            eos_token_id=request.eos_token_ids,
            draft_depth=request.draft_depth,
            keep_logits=True,
        )
        assert run.logits is not None
        chosen = run.logits.double().log_softmax(-1).amax(-1).tolist()
        return Answer(
            token_ids=run.token_ids,
            finish_reason=run.finish_reason,
            logprobs=chosen,
            trace=trace.to_jsonl(run.events),
            counts=asdict(run.counts),
        )


ENGINE = """
from dataclasses import asdict, replace
from reference import trace, wfd
from reference.oracle.suite import Answer, EngineSuite, Request
from tests.cases.decoders import lap_model

MODEL = lap_model()
SEEN = []


class TestEngine(EngineSuite):
    model = MODEL
    draft_depths = (1,)
    max_new_tokens = 12

    def decode(self, request: Request) -> Answer:
        stop_ids, budget = request.eos_token_ids, request.max_new_tokens
{before}
        run = wfd.generate(MODEL, request.prompt_ids, max_new_tokens=budget, eos_token_id=stop_ids, draft_depth=1)
        ids, reason, logprobs = run.token_ids, str(run.finish_reason), None
        events, counts = trace.to_jsonl(run.events), asdict(run.counts)
{after}
        return Answer(token_ids=ids, finish_reason=reason, logprobs=logprobs, trace=events, counts=counts)
"""


def run_engine(pytester: pytest.Pytester, *words: str, before: str = "", after: str = "") -> pytest.RunResult:
    pytester.makepyfile(test_engine=ENGINE.format(before=indent(before, " " * 8), after=indent(after, " " * 8)))
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)


@pytest.mark.spec("SMP-14", "SMP-10", "AR-03", "CONF-03", "CONF-06", "NOT-03", "COST-03")
@pytest.mark.parametrize(
    "before,after,test,complaint",
    [
        ("stop_ids = []", "", "test_tokens", "SMP-14: new token 1: 11 more tokens although decoding ends before them"),
        ("budget = max(budget, 1)", "", "test_tokens", "SMP-10: new token 0: 1 more tokens although"),
        ("", "ids = ids[:-1]", "test_tokens", "SMP-14: new token 11: the text ends although nothing ends it"),
        ("", "reason = 'length'", "test_tokens", "SMP-14: new token 1: the finish reason is eos, not length"),
        ("", "ids = [(one + 1) % 8 for one in ids]", "test_tokens", "AR-03: new token 0: token *"),
        ("", "logprobs = [-9.0] * len(ids)", "test_tokens", "CONF-03: new token 0: the log-probability is off by *"),
        (
            "",
            "SEEN.append(request.prompt_ids); ids = ids[:-1] if SEEN.count(request.prompt_ids) > 1 else ids",
            "test_asked_again",
            "CONF-06: asked again, the engine gives *",
        ),
        ("", "events = events.replace('\"accept\"', '\"flush\"')", "test_trace", "*is not an event of trace format*"),
        (
            "",
            "events = events.replace('\"draft_depth\": 1', '\"draft_depth\": 2')",
            "test_trace",
            "WFD-04: event *",
        ),
        (
            "",
            "events = trace.to_jsonl(wfd.generate(MODEL, [1, 2], max_new_tokens=3, draft_depth=1).events)",
            "test_trace",
            "NOT-03: event 0: the trace is one of prompt_length=2, but * was asked for",
        ),
        ("", "counts['accepted'] += 1", "test_counts", "COST-03: accepted is *, should be *"),
    ],
)
def test_a_mistake_fails_with_the_clause_in_front(
    pytester: pytest.Pytester, before: str, after: str, test: str, complaint: str
) -> None:
    result = run_engine(pytester, "-k", test, before=before, after=after)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"{complaint}*"])
    result.stdout.fnmatch_lines(["*asked: Request(prompt_ids=*"] if "format" not in complaint else ["*"])


def test_what_an_engine_does_not_tell_is_not_judged_and_said_to_be(pytester: pytest.Pytester) -> None:
    result = run_engine(pytester, "-rs", after="reason, events, counts = None, None, None")
    assert result.ret == pytest.ExitCode.OK
    number = len(CASES) + 3
    result.stdout.fnmatch_lines(
        [
            f"SKIPPED [[]{number}[]] *: not judged: the engine gives no trace",
            f"SKIPPED [[]{number}[]] *: not judged: the engine gives no counts",
        ]
    )
    for part in ("finish_reason", "logprobs", "trace", "counts"):
        result.stdout.fnmatch_lines([f"SKIPPED [[]1[]] *: not judged: the engine gives no {part}"])


@pytest.mark.spec("WFD-12")
@pytest.mark.parametrize("after,right", [("", True), ("counts['ticks'] += 1", False)])
def test_counts_are_judged_by_the_closed_forms_where_there_is_no_trace(
    pytester: pytest.Pytester, after: str, *, right: bool
) -> None:
    result = run_engine(pytester, "-k", "test_counts", after=f"{after}\nevents = None")
    number = len(CASES) + 3
    if right:
        result.assert_outcomes(passed=number, deselected=number * 2 + 5)
    else:
        result.assert_outcomes(failed=number, deselected=number * 2 + 5)
        result.stdout.fnmatch_lines(["WFD-12: ticks is *, should be *"])


def test_an_engine_may_give_ids_alone_and_choose_prompts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from reference import ar
        from reference.oracle.suite import EngineSuite
        from tests.cases.decoders import lap_model

        class TestMine(EngineSuite):
            model = lap_model()
            max_new_tokens = 6
            longest_prompt = 8

            def prompts(self):
                return {"mine": [3, 1]}

            def decode(self, request):
                asked = {"max_new_tokens": request.max_new_tokens, "eos_token_id": request.eos_token_ids}
                return ar.generate(self.model, request.prompt_ids, **asked).token_ids
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-v", "-rs", "-k", "tokens or again")
    assert result.ret == pytest.ExitCode.OK
    asked = re.findall(r"test_asked_again\[d(\d)\] PASSED", result.stdout.str())
    assert asked == ["1", "3", "4"]
    assert result.stdout.str().count("-mine] PASSED") == 3
    result.stdout.fnmatch_lines(["SKIPPED [[]3[]] *: not judged: a prompt of 61 tokens is not made: longest_prompt=8"])


def test_an_engine_that_is_not_said_how_to_run_is_told_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("from reference.oracle.suite import EngineSuite\nclass TestMine(EngineSuite):\n    pass\n")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-k", "told and counts")
    result.stdout.fnmatch_lines(["*NotImplementedError: TestMine has no decode(self, request)"])


def test_what_was_a_near_tie_is_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from reference.models.scripted import ScriptedModel
        from reference.oracle.suite import EngineSuite

        class TestEngine(EngineSuite):
            model = ScriptedModel(table=lambda _prefix, _depth: [1.0, 0.99, 0.0], vocab_size=3, recurrence_depth=2)
            tolerance = 0.02

            def decode(self, request):
                return [1] * request.max_new_tokens
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--junit-xml=out.xml", "-k", "tokens and flushes")
    result.assert_outcomes(passed=2)
    text = Path(pytester.path / "out.xml").read_text(encoding="utf-8")
    assert text.count('name="verdict" value="near_tie"') == 2
    assert 'name="near_ties" value="24"' in text


def questions(**options: int) -> Questions:
    judge = Judge(model=LAP, recurrence_depth=4)
    return Questions(judge, {"mine": [3, 1]}, **{"max_new_tokens": 12, "longest_prompt": 64} | options)


@pytest.mark.parametrize("case", CASES)
def test_every_request_can_be_answered(case: str) -> None:
    request = questions().ask(case, draft_depth=2)
    assert request.draft_depth == 2
    assert request.eos_token_ids == sorted(set(request.eos_token_ids))
    run = ar.generate(
        LAP, request.prompt_ids, max_new_tokens=request.max_new_tokens, eos_token_id=request.eos_token_ids
    )
    expected = {
        "end of context": ("context", 4),
        "a prompt as long as the context": ("context", 1),
        "stop at the first token": ("eos", 1),
        "budget 0": ("length", 0),
        "budget 1": ("length", 1),
        "a stop id that never comes": ("length", 12),
    }
    if case in expected:
        assert (run.finish_reason, len(run.token_ids)) == expected[case]


def test_a_wrongly_drafted_stop_id_is_drafted_before_it_is_committed() -> None:
    request = questions().ask("a stop id that is drafted wrongly", draft_depth=1)
    (stop_id,) = request.eos_token_ids
    run = wfd.generate(LAP, request.prompt_ids, max_new_tokens=12, eos_token_id=[stop_id], draft_depth=1)
    rejected = [event for event in run.events if isinstance(event, Reject)]
    assert stop_id in {event.draft_token for event in rejected}
    assert run.token_ids.index(stop_id) == len(run.token_ids) - 1


def test_a_case_that_a_model_does_not_have_is_named() -> None:
    with pytest.raises(NothingToAskError, match="longest_prompt=8"):
        questions(longest_prompt=8).ask("end of context", draft_depth=1)

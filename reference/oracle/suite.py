"""A pytest suite for an engine of your own: subclass `EngineSuite`, say how your engine is called, run pytest.

    from engine import generate
    from reference.oracle.suite import Answer, EngineSuite, Request

    class TestMyEngine(EngineSuite):
        model = "tiny-ouro"  # or a folder with your weights

        def decode(self, request: Request) -> Answer:
            return Answer(token_ids=generate(request.prompt_ids, request.max_new_tokens, request.eos_token_ids))

Every failure opens with the clause of the specification that is broken. What an answer does not tell is not judged, and
is reported as skipped. This module alone needs pytest: install `looped-reference[suite]`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import pytest
import torch

from reference.models import LoopedModel, load
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.oracle.answers import Answer, Judge, Request, complaint
from reference.oracle.requests import CASES, NothingToAskError, Questions, noise
from reference.oracle.verdicts import Verdict
from reference.schedule import default_draft_depth

__all__ = ["Answer", "EngineSuite", "Request"]

_PARTS: Final = ("finish_reason", "logprobs", "trace", "counts")
"""What an answer may leave out."""


class Bench:
    """What the tests of one class share: the judge, the questions, and the answers so far."""

    def __init__(self, judge: Judge, questions: Questions) -> None:
        """Starts without answers."""
        self.judge = judge
        self.questions = questions
        self.answers: dict[tuple[str, int], Answer] = {}


class EngineSuite:
    """Judges an engine. A subclass, whose name begins with `Test`, sets what differs and defines `decode`."""

    model: ClassVar[str | Path | LoopedModel] = "tiny-ouro"
    """The engine's weights: a shipped name, a folder in the official format, or a model of `reference`."""
    recurrence_depth: ClassVar[int | None] = None
    """T; None is the model's own."""
    draft_depths: ClassVar[Sequence[int] | None] = None
    """The d that are asked for; None picks up to four, 1 and T among them, and one that does not divide T."""
    decoder: ClassVar[str | None] = None
    """`ar`, `dtv` or `wfd`, which traces must be one of; None is what a trace says, and `wfd` where there is none."""
    dtype: ClassVar[torch.dtype | None] = None
    """Type in which the engine computes; it sets what is a near tie. None is the model's."""
    tolerance: ClassVar[float | None] = None
    """Distance of two logits that is a near tie, instead of that of CONF-05."""
    state_seed: ClassVar[int] = 0
    """Seed of Huginn's random initial state."""
    state_scale: ClassVar[float] = 1.0
    """Scale of that state; an engine that draws other noise is compared at 0."""
    max_new_tokens: ClassVar[int] = 24
    """The budget of most requests."""
    longest_prompt: ClassVar[int] = 4096
    """The end of the context is tested where the context is not longer than this."""
    _loaded_model: ClassVar[LoopedModel]
    _bench: ClassVar[Bench]

    def decode(self, request: Request) -> Answer | Sequence[int]:
        """Runs the engine: the one method that a subclass must define.

        Args:
            request: What to decode.

        Returns:
            The new token ids, or an `Answer` with as much as the engine tells.
        """
        raise NotImplementedError(f"{type(self).__name__} has no decode(self, request)")

    def prompts(self) -> Mapping[str, Sequence[int]]:
        """Gives the prompts, by name: one of each flavour of the shipped models, or noise without a tokenizer."""
        tokenizer = None if isinstance(self.model, LoopedModel) else load_tokenizer(self.model)
        if tokenizer is None:
            vocab_size = self._loaded().vocab_size
            return {f"noise {number}": noise(vocab_size, number=number) for number in range(1, 4)}
        return {flavour: tokenizer.encode(text).ids for flavour, text in default_prompts().items()}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Asks every case at every draft depth."""
        if "draft_depth" in metafunc.fixturenames:
            depths = self._depths()
            metafunc.parametrize("draft_depth", depths, ids=[f"d{depth}" for depth in depths])
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", [*self.prompts(), *CASES])

    def test_tokens(self, request: pytest.FixtureRequest, case: str, draft_depth: int) -> None:
        """Judges tokens, their end, and finish reason and log-probabilities as far as they are told.

        The verdict becomes a property of the test in a JUnit XML report, so that near ties are seen there.
        """
        asked, answer = self._answer(case, draft_depth)
        verdict = self._shared().judge.tokens(asked, answer)
        request.node.user_properties.append(("verdict", str(verdict.verdict)))
        if verdict.verdict is Verdict.NEAR_TIE:
            request.node.user_properties.append(("near_ties", len(verdict.near_ties)))
        _hold(complaint(verdict), asked)

    def test_trace(self, case: str, draft_depth: int) -> None:
        """Judges the trace."""
        request, answer = self._answer(case, draft_depth)
        if answer.trace is None:
            pytest.skip("not judged: the engine gives no trace")
        _hold(complaint(self._shared().judge.trace(request, answer)), request)

    def test_counts(self, case: str, draft_depth: int) -> None:
        """Judges the counts."""
        request, answer = self._answer(case, draft_depth)
        if answer.counts is None:
            pytest.skip("not judged: the engine gives no counts")
        _hold(complaint(self._shared().judge.counts(request, answer)), request)

    def test_asked_again(self, draft_depth: int) -> None:
        """Asks again after other requests (CONF-06)."""
        request, before = self._answer("many flushes", draft_depth)
        self._ask(self._shared().questions.ask("a prompt of one token", draft_depth=draft_depth))
        self._ask(self._shared().questions.ask("budget 0", draft_depth=draft_depth))
        again = self._ask(request)
        if list(again.token_ids) != list(before.token_ids):
            what = f"CONF-06: asked again, the engine gives {list(again.token_ids)}, not {list(before.token_ids)}"
            _hold(what, request)

    @pytest.mark.parametrize("part", _PARTS)
    def test_told(self, part: str) -> None:
        """Reports, as skipped, each part of an answer that is missing and so not judged."""
        _, answer = self._answer("many flushes", self._depths()[0])
        if getattr(answer, part) is None:
            pytest.skip(f"not judged: the engine gives no {part}")

    def _answer(self, case: str, draft_depth: int) -> tuple[Request, Answer]:
        """Gives the request of a case and the engine's answer, which is asked for once."""
        bench = self._shared()
        try:
            request = bench.questions.ask(case, draft_depth=draft_depth)
        except NothingToAskError as error:
            pytest.skip(f"not judged: {error}")
        key = (case, draft_depth)
        if key not in bench.answers:
            bench.answers[key] = self._ask(request)
        return request, bench.answers[key]

    def _ask(self, request: Request) -> Answer:
        """Runs the engine on a copy of a request: an engine may write into what it is given."""
        copied = replace(request, prompt_ids=list(request.prompt_ids), eos_token_ids=list(request.eos_token_ids))
        given = self.decode(copied)
        return given if isinstance(given, Answer) else Answer(token_ids=given)

    def _shared(self) -> Bench:
        """Gives what the tests of a class share; it is made by the first of them."""
        cls = type(self)
        if "_bench" not in vars(cls):
            judge = Judge(
                model=self._loaded(),
                recurrence_depth=self._full_depth(),
                decoder=self.decoder,
                state_seed=self.state_seed,
                state_scale=self.state_scale,
                dtype=self.dtype,
                tolerance=self.tolerance,
            )
            questions = Questions(
                judge, self.prompts(), max_new_tokens=self.max_new_tokens, longest_prompt=self.longest_prompt
            )
            cls._bench = Bench(judge, questions)
        return cls._bench

    @classmethod
    def _loaded(cls) -> LoopedModel:
        """Gives the model; each class loads its own once, since collecting asks for it too."""
        if "_loaded_model" not in vars(cls):
            cls._loaded_model = cls.model if isinstance(cls.model, LoopedModel) else load(cls.model)
        return cls._loaded_model

    def _depths(self) -> Sequence[int]:
        if self.draft_depths is not None:
            return self.draft_depths
        full = self._full_depth()
        return sorted({1, default_draft_depth(full), full // 2 + 1, full})

    def _full_depth(self) -> int:
        return self.recurrence_depth or self._loaded().recurrence_depth


def _hold(broken: str | None, request: Request) -> None:
    """Fails a test with a complaint and with what was asked."""
    if broken is not None:
        pytest.fail(f"{broken}\n\nasked: {request}", pytrace=False)

"""What the suite asks of an engine: prompts of every kind, budgets, stop ids and the end of the context.

Where a request needs to know how a text goes on (a stop id in the middle of it, a draft that is wrong) the reference
decodes it first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType
from typing import Final

from reference import wfd
from reference.engine import Output
from reference.oracle.answers import Judge, Request
from reference.schedule import Reject

_CONTEXT_LEFT: Final = 3
"""Positions that the long prompt leaves free: few enough for a wave to run into the end."""


class NothingToAskError(Exception):
    """A case cannot be made for a model; the message says why."""


def noise(vocab_size: int, *, number: int, length: int = 8) -> list[int]:
    """Gives a prompt that says nothing. After such prompts drafts are often wrong, so that waves are flushed.

    Args:
        vocab_size: Ids are below it.
        number: Which prompt, from 1.
        length: Tokens in it.
    """
    return [(number * (31 * k * k + 3) + 17 * k) % vocab_size for k in range(length)]


class Questions:
    """Makes the requests for one model."""

    def __init__(
        self, judge: Judge, prompts: Mapping[str, Sequence[int]], *, max_new_tokens: int, longest_prompt: int
    ) -> None:
        """Takes what requests are made from.

        Args:
            judge: Knows the model and how it is run.
            prompts: At least one prompt, by name.
            max_new_tokens: The budget of most requests.
            longest_prompt: A context longer than this is not filled.
        """
        self._judge = judge
        self._prompts = {name: list(prompt) for name, prompt in prompts.items()}
        self._budget = max_new_tokens
        self._longest_prompt = longest_prompt

    def ask(self, case: str, *, draft_depth: int) -> Request:
        """Gives the request of a case.

        Args:
            case: The name of a prompt, or one of `CASES`.
            draft_depth: d.

        Raises:
            NothingToAskError: If this model has no such case.
        """
        if case in self._prompts:
            stop_ids = sorted(self._judge.model.eos_token_ids)
            asked = _Asked(self._prompts[case], self._budget, stop_ids)
        else:
            asked = CASES[case](self)
        return Request(
            prompt_ids=list(asked.prompt),
            max_new_tokens=asked.max_new_tokens,
            eos_token_ids=sorted(set(asked.stop_ids)),
            draft_depth=draft_depth,
        )

    @property
    def budget(self) -> int:
        """The budget of most requests."""
        return self._budget

    @property
    def first_prompt(self) -> list[int]:
        """The first of the prompts."""
        return next(iter(self._prompts.values()))

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""
        return self._judge.model.vocab_size

    @cached_property
    def most_flushed(self) -> tuple[list[int], Output]:
        """The prompt after which the reference flushes most, with what it decodes there."""
        candidates = [*self._prompts.values(), *(noise(self.vocab_size, number=number) for number in range(1, 6))]
        outputs = [self._decoded(prompt) for prompt in candidates]
        return max(zip(candidates, outputs, strict=True), key=lambda pair: pair[1].counts.rejected)

    def full_prompt(self, *, left: int) -> list[int]:
        """Gives a prompt that leaves so many positions of the context free.

        Raises:
            NothingToAskError: If the context is too long to be filled.
        """
        length = self._judge.model.context_length - left
        if not 0 < length <= self._longest_prompt:
            raise NothingToAskError(f"a prompt of {length} tokens is not made: longest_prompt={self._longest_prompt}")
        repeated = self.first_prompt * (length // len(self.first_prompt) + 1)
        return repeated[:length]

    def _decoded(self, prompt: Sequence[int]) -> Output:
        judge = self._judge
        return wfd.generate(
            judge.model,
            list(prompt),
            max_new_tokens=min(self._budget, judge.model.context_length - len(prompt)),
            draft_depth=1,
            recurrence_depth=judge.recurrence_depth,
            eos_token_id=None,
            state_seed=judge.state_seed,
            state_scale=judge.state_scale,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request without its draft depth."""

    prompt: Sequence[int]
    """Token ids."""
    max_new_tokens: int
    """The budget."""
    stop_ids: Sequence[int] = ()
    """Stop ids."""


def _flushed(questions: Questions) -> _Asked:
    return _Asked(questions.most_flushed[0], questions.budget)


def _stop_at(questions: Questions, place: int) -> _Asked:
    """Stops at the token whose first occurrence is nearest to a place, not before it if possible."""
    prompt, output = questions.most_flushed
    ids = output.token_ids
    firsts = [k for k, token in enumerate(ids) if token not in ids[:k]]
    chosen = next((k for k in firsts if k >= place), firsts[-1])
    return _Asked(prompt, questions.budget, [ids[chosen]])


def _stop_at_one_of_two(questions: Questions) -> _Asked:
    early, late = _stop_at(questions, 2), _stop_at(questions, questions.budget // 2)
    return _Asked(early.prompt, questions.budget, [*early.stop_ids, *late.stop_ids])


def _drafted_stop(questions: Questions) -> _Asked:
    """Stops at an id that is drafted wrongly before it is committed, if it ever is: the draft must not end the text."""
    prompt, output = questions.most_flushed
    first = len(prompt)
    rejected = [event for event in output.events if isinstance(event, Reject)]
    for event in rejected:
        if event.draft_token not in output.token_ids[: event.position - first + 1]:
            return _Asked(prompt, questions.budget, [event.draft_token])
    raise NothingToAskError("the reference drafts nothing wrong after any prompt")


def _unused_stop(questions: Questions) -> _Asked:
    """Stops at an id that never comes."""
    prompt, output = questions.most_flushed
    used = set(output.token_ids)
    unused = sum(1 for _ in takewhile(used.__contains__, range(questions.vocab_size)))
    return _Asked(prompt, questions.budget, [unused] if unused < questions.vocab_size else [])


CASES: Final[Mapping[str, Callable[[Questions], _Asked]]] = MappingProxyType(
    {
        "many flushes": _flushed,
        "budget 0": lambda questions: _Asked(questions.first_prompt, 0),
        "budget 1": lambda questions: _Asked(questions.first_prompt, 1),
        "budget 2": lambda questions: _Asked(questions.first_prompt, 2),
        "budget 3": lambda questions: _Asked(questions.most_flushed[0], 3),
        "no stop id": lambda questions: _Asked(questions.first_prompt, 2 * questions.budget),
        "stop at the first token": lambda questions: _stop_at(questions, 0),
        "stop in mid-wave": lambda questions: _stop_at(questions, questions.budget // 2),
        "one of two stop ids": _stop_at_one_of_two,
        "a stop id that is drafted wrongly": _drafted_stop,
        "a stop id that never comes": _unused_stop,
        "a prompt of one token": lambda questions: _Asked([1 % questions.vocab_size], questions.budget),
        "a prompt of one token, id 0": lambda questions: _Asked([0], questions.budget),
        "a prompt of two tokens": lambda questions: _Asked(
            noise(questions.vocab_size, number=2, length=2), questions.budget
        ),
        "end of context": lambda questions: _Asked(questions.full_prompt(left=_CONTEXT_LEFT), questions.budget),
        "a prompt as long as the context": lambda questions: _Asked(questions.full_prompt(left=0), questions.budget),
    }
)
"""Every case that is not a prompt of its own, by name."""

"""Asks a server for tokens: the common `/v1/completions`, with token ids in and token ids out.

Most servers answer with text, from which ids cannot be had back. Each of the common ways to get them is asked for at
once, and any is understood: `return_token_ids` (vLLM), which gives `choices[0].token_ids`; `return_tokens` (llama.cpp),
which gives `tokens`; and `return_tokens_as_token_ids` (vLLM), which writes `token_id:7` in `logprobs.tokens`.
"""

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import Request as HTTPRequest
from urllib.request import urlopen

from reference.oracle.answers import Answer, Request
from reference.stopping import FinishReason

_PATH: Final = "/v1/completions"
_ID_AS_TEXT: Final = re.compile(r"token_id:(\d+)")
"""How `return_tokens_as_token_ids` writes an id."""
_DETAIL: Final = 300
"""Characters of a server's own words that are passed on."""


class ServerError(OSError):
    """A server cannot be reached, refuses, or answers something that cannot be judged; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that completes prompts.

    Raises:
        ServerError: If `url` is no address.
    """

    url: str
    """Its address; without a path, `/v1/completions` is meant."""
    served_model: str | None = None
    """The model's name on the server; None leaves it out."""
    timeout: float = 60.0
    """Seconds to wait for an answer."""
    with_logprobs: bool = False
    """Whether to ask for log-probabilities."""

    def __post_init__(self) -> None:
        """Refuses an address that no server can have."""
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ServerError(f"url={self.url!r} is not an address of the form http://host:port")
        if not 0 < self.timeout < math.inf:
            raise ServerError(f"timeout={self.timeout:g} is not a positive number of seconds")

    @property
    def endpoint(self) -> str:
        """The full address."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        return urlunsplit(parts._replace(path=_PATH if path in {"", "/v1"} else path))

    def decode(self, request: Request) -> Answer:
        """Answers a request, so that an `EngineSuite` can judge a server. The draft depth is the server's own affair.

        Raises:
            ServerError: If there is no answer that can be judged.
        """
        return self.complete(
            request.prompt_ids, max_new_tokens=request.max_new_tokens, eos_token_ids=request.eos_token_ids
        )

    def complete(
        self, prompt_ids: list[int], *, max_new_tokens: int, eos_token_ids: Collection[int] | None = None
    ) -> Answer:
        """Asks for a greedy completion.

        Args:
            prompt_ids: The prompt.
            max_new_tokens: The budget.
            eos_token_ids: Stop ids, sent as `stop_token_ids` with `ignore_eos`; None leaves them to the server.

        Raises:
            ServerError: If there is no answer that can be judged.
        """
        body: dict[str, object] = {"prompt": prompt_ids, "max_tokens": max_new_tokens, "temperature": 0}
        body |= {"return_token_ids": True, "return_tokens": True, "return_tokens_as_token_ids": True}
        if self.served_model is not None:
            body["model"] = self.served_model
        if self.with_logprobs:
            body["logprobs"] = 1
        if eos_token_ids is not None:
            body |= {"stop_token_ids": sorted(eos_token_ids), "ignore_eos": True}
        answer = self._understood(self._sent(json.dumps(body).encode()))
        choice = self._first_choice(answer)
        self._check_prompt(prompt_ids, answer, choice)
        token_ids = self._token_ids(answer, choice)
        return Answer(
            token_ids=token_ids,
            finish_reason=_finish_reason(choice.get("finish_reason"), is_short=len(token_ids) < max_new_tokens),
            logprobs=_logprobs(choice),
        )

    def _sent(self, body: bytes) -> bytes:
        """Sends a body and gives the answer's."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = HTTPRequest(self.endpoint, body, headers)  # noqa: S310 - http or https, see `__post_init__`
        try:
            with urlopen(request, timeout=self.timeout) as response:  # noqa: S310 - the same
                text: bytes = response.read()
                return text
        except HTTPError as error:
            with error:
                said = _one_line(error.read(2 * _DETAIL).decode(errors="replace"))
            raise ServerError(f"{self.endpoint} answered {error.code} {error.reason}: {said}") from error
        except TimeoutError as error:
            raise self._late() from error
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._late() from error
            raise ServerError(f"{self.endpoint}: {_one_line(str(error.reason))}") from error
        except (OSError, HTTPException) as error:
            raise ServerError(f"{self.endpoint}: {type(error).__name__}: {_one_line(str(error))}") from error

    def _late(self) -> ServerError:
        return ServerError(f"{self.endpoint} gave no answer in {self.timeout:g} seconds")

    def _understood(self, text: bytes) -> dict[str, object]:
        try:
            answer = json.loads(text)
        except ValueError as error:
            start = _one_line(text[:_DETAIL].decode(errors="replace"))
            raise ServerError(f"{self.endpoint} answered something that is not JSON: {start}") from error
        if not isinstance(answer, dict):
            raise ServerError(f"{self.endpoint} answered JSON that is not an object")
        return answer

    def _first_choice(self, answer: dict[str, object]) -> dict[str, object]:
        match answer.get("choices"):
            case [dict() as choice, *_]:
                return choice
            case _:
                found = ", ".join(sorted(answer)) or "nothing"
                raise ServerError(f"{self.endpoint}: the answer has no choices[0]; it has {_one_line(found)}")

    def _check_prompt(self, sent: list[int], answer: dict[str, object], choice: dict[str, object]) -> None:
        """Holds that the server decoded the prompt that was sent, if it says which it did."""
        for place in (choice, answer):
            seen = place.get("prompt_token_ids")
            if seen is not None and seen != sent:
                what = f"the server decoded another prompt: prompt_token_ids={seen}, sent were {sent}"
                raise ServerError(f"{self.endpoint}: {_one_line(what)}")

    def _token_ids(self, answer: dict[str, object], choice: dict[str, object]) -> list[int]:
        for ids in (choice.get("token_ids"), choice.get("tokens"), answer.get("tokens"), _ids_from_texts(choice)):
            if isinstance(ids, list) and all(type(one) is int for one in ids):
                return list(ids)
        what = (
            "the answer has no token ids, which text cannot replace: none of choices[0].token_ids (return_token_ids), "
            "tokens (return_tokens) and choices[0].logprobs.tokens as token_id:7 (return_tokens_as_token_ids)"
        )
        raise ServerError(f"{self.endpoint}: {what}")


def _ids_from_texts(choice: dict[str, object]) -> list[int] | None:
    """Reads ids that are written as `token_id:7`; None if there are none, or if anything else is among them."""
    match choice.get("logprobs"):
        case {"tokens": [*texts]} if texts:
            found = [_ID_AS_TEXT.fullmatch(str(text)) for text in texts]
            return [int(one[1]) for one in found if one] if all(found) else None
        case _:
            return None


def _logprobs(choice: dict[str, object]) -> list[float] | None:
    match choice.get("logprobs"):
        case {"token_logprobs": [*numbers]} if numbers and all(isinstance(one, int | float) for one in numbers):
            return [float(one) for one in numbers]
        case _:
            return None


def _finish_reason(said: object, *, is_short: bool) -> str | None:
    """Gives our word for a server's: `stop` is a stop id, `length` within the budget is the end of the context."""
    match said:
        case "stop":
            return FinishReason.EOS
        case "length":
            return FinishReason.CONTEXT if is_short else FinishReason.LENGTH
        case None:
            return None
        case _:
            return str(said)


def _one_line(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _DETAIL else shown[:_DETAIL] + " ..."

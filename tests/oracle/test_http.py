"""The way in over HTTP, against a small server on this machine."""

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reference import models, wfd
from reference.models.protocol import LoopedModel
from reference.oracle.answers import Request
from reference.oracle.http import Server, ServerError
from tests.cases.decoders import lap_model
from tests.commands import Run

FORMS: dict[str, Callable[[list[int]], dict[str, object]]] = {
    "token_ids": lambda ids: {"token_ids": ids},
    "tokens": lambda ids: {"tokens": ids},
    "logprobs.tokens": lambda ids: {"logprobs": {"tokens": [f"token_id:{one}" for one in ids]}},
}
"""The ways in which servers return ids."""


@dataclass
class Local:
    """A server on this machine: it decodes the lap, in the form and with the mistakes that a test asks for."""

    form: str = "token_ids"
    """How ids are returned; anything else returns text alone."""
    status: int = 200
    """The status of every answer."""
    raw: bytes | None = None
    """What to answer instead of a completion."""
    delay: float = 0.0
    """Seconds before the answer."""
    shift: int = 0
    """Added to every id."""
    more: dict[str, object] = field(default_factory=dict)
    """Further fields of the choice."""
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The paths and bodies that came."""
    url: str = ""
    """Where it listens."""

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        """Gives the body of an answer."""
        self.seen.append((path, body))
        if self.raw is not None:
            return self.raw
        stop_ids = body.get("stop_token_ids", "model")
        run = wfd.generate(
            lap_model(), body["prompt"], max_new_tokens=body["max_tokens"], eos_token_id=stop_ids, draft_depth=1
        )
        ids = [token + self.shift for token in run.token_ids]
        reason = {"eos": "stop"}.get(run.finish_reason, "length")
        choice: dict[str, object] = {"index": 0, "text": "", "finish_reason": reason}
        choice |= FORMS[self.form](ids) if self.form in FORMS else {}
        return json.dumps({"object": "text_completion", "choices": [choice | self.more]}).encode()


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """Runs a server until the test is over."""
    monkeypatch.setenv("no_proxy", "*")
    behaviour = Local()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(behaviour.delay)
            text = behaviour.answer(self.path, body)
            self.send_response(behaviour.status)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Says nothing of clients that have left."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        behaviour.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield behaviour
        server.shutdown()
        thread.join()


@pytest.fixture
def lap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the scripted model behind every name."""

    def load(_: str) -> LoopedModel:
        return lap_model()

    monkeypatch.setattr(models, "load", load)


@pytest.mark.parametrize("form", FORMS)
def test_ids_are_understood_in_every_form_in_which_servers_return_them(local: Local, form: str) -> None:
    local.form = form
    answer = Server(url=local.url).complete([0], max_new_tokens=3)
    assert (answer.token_ids, answer.finish_reason, answer.logprobs) == ([1, 2, 3], "length", None)


def test_ids_beside_the_choices_are_understood(local: Local) -> None:
    local.raw = json.dumps({"choices": [{"text": "b"}], "tokens": [1]}).encode()
    answer = Server(url=local.url).complete([0], max_new_tokens=1)
    assert (answer.token_ids, answer.finish_reason) == ([1], None)


def test_a_server_is_asked_greedily_for_ids_at_the_usual_place(local: Local) -> None:
    Server(url=local.url + "/").complete([0], max_new_tokens=3)
    Server(url=local.url + "/v1", served_model="lap", with_logprobs=True).complete([0], max_new_tokens=3)
    Server(url=local.url + "/mine").decode(Request(prompt_ids=[0], max_new_tokens=9, eos_token_ids=[2], draft_depth=1))
    assert [path for path, _ in local.seen] == ["/v1/completions", "/v1/completions", "/mine"]
    plain, named, stopped = (body for _, body in local.seen)
    asked = {"prompt": [0], "max_tokens": 3, "temperature": 0}
    asks = {"return_token_ids": True, "return_tokens": True, "return_tokens_as_token_ids": True}
    assert plain == asked | asks
    assert named == plain | {"model": "lap", "logprobs": 1}
    assert stopped == plain | {"max_tokens": 9, "stop_token_ids": [2], "ignore_eos": True}


@pytest.mark.parametrize(
    "said,num_tokens,meant",
    [("stop", 3, "eos"), ("length", 3, "length"), ("length", 2, "context"), ("abort", 3, "abort")],
)
def test_finish_reasons_are_translated(local: Local, said: str, num_tokens: int, meant: str) -> None:
    local.more = {"finish_reason": said, "token_ids": [1, 2, 3][:num_tokens]}
    assert Server(url=local.url).complete([0], max_new_tokens=3).finish_reason == meant


def test_log_probabilities_are_passed_on(local: Local) -> None:
    local.more = {"logprobs": {"tokens": ["b"], "token_logprobs": [-0.5]}}
    assert Server(url=local.url).complete([0], max_new_tokens=1).logprobs == [-0.5]
    local.more = {"logprobs": {"tokens": ["b"], "token_logprobs": [None]}}
    assert Server(url=local.url).complete([0], max_new_tokens=1).logprobs is None


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        ({"form": "text"}, "the answer has no token ids, which text cannot replace: none of choices[0].token_ids"),
        ({"more": {"token_ids": ["1"]}}, "the answer has no token ids"),
        ({"more": {"token_ids": None, "logprobs": {"tokens": ["b", "token_id:2"]}}}, "the answer has no token ids"),
        ({"raw": b"oops\n<html>"}, "answered something that is not JSON: oops <html>"),
        ({"raw": b"[]"}, "answered JSON that is not an object"),
        ({"raw": b'{"choices": []}'}, "the answer has no choices[0]; it has choices"),
        ({"raw": b"{}"}, "the answer has no choices[0]; it has nothing"),
        ({"status": 503, "raw": b"out of\n memory"}, "/v1/completions answered 503 Service Unavailable: out of memory"),
        ({"status": 400, "raw": b"x" * 999}, "answered 400 Bad Request: " + "x" * 300),
        ({"more": {"prompt_token_ids": [1, 0]}}, "the server decoded another prompt: prompt_token_ids=[1, 0], sent"),
        ({"delay": 1.0}, "gave no answer in 0.2 seconds"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_answer_that_cannot_be_judged_is_one_line(local: Local, wrong: dict[str, Any], complaint: str) -> None:
    for name, value in wrong.items():
        setattr(local, name, value)
    with pytest.raises(ServerError) as caught:
        Server(url=local.url, timeout=0.2 if local.delay else 60.0).complete([0], max_new_tokens=3)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nobody_at_the_address_is_one_line(local: Local) -> None:
    with pytest.raises(ServerError, match=r"^http://127.0.0.1:1/v1/completions: .*refused"):
        Server(url="http://127.0.0.1:1").complete([0], max_new_tokens=1)
    local.status, local.raw = 200, b""
    with pytest.raises(ServerError, match="not JSON"):
        Server(url=local.url).complete([0], max_new_tokens=1)


@pytest.mark.parametrize("url", ["", "localhost:8000", "file:///etc/hosts", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ServerError, match="is not an address"):
        Server(url=url)


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan, math.inf])
def test_a_timeout_is_a_positive_number(timeout: float) -> None:
    with pytest.raises(ServerError, match="is not a positive number of seconds"):
        Server(url="http://localhost", timeout=timeout)


@pytest.mark.usefixtures("lap")
def test_a_server_is_judged_from_the_command_line(wfd: Run, local: Local, tmp_path: Path) -> None:
    prompts = '{"prompt_ids": [0], "id": "a"}\n{"prompt_ids": [3], "max_new_tokens": 9, "eos_token_id": 2}\n'
    words = ("check", "tokens", "-", "--url", local.url, "--max-new-tokens", "5")
    code, out, err = wfd(*words, stdin=prompts)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "case a: exact: 5 tokens judged, 0 near ties",
        "case 2: exact: 7 tokens judged, 0 near ties",
        "2 cases: 2 exact, 0 near_tie, 0 wrong",
    ]
    assert "stop_token_ids" not in local.seen[0][1]
    local.shift = 1
    code, out, _ = wfd(*words, "--junit", str(tmp_path / "out.xml"), stdin=prompts)
    assert code == 1
    assert "token 2 where the full depth says 1" in out
    local.form = "text"
    code, out, err = wfd(*words, stdin=prompts)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no token ids" in err


def test_without_a_file_a_server_gets_one_prompt_of_each_kind(wfd: Run, local: Local) -> None:
    local.raw = json.dumps({"choices": [{"token_ids": [5], "finish_reason": "length"}]}).encode()
    code, out, _ = wfd("check", "tokens", "--url", local.url, "--max-new-tokens", "1")
    assert code == 1
    assert len(local.seen) == 6
    assert out.splitlines()[-1].startswith("6 cases: ")


def test_a_model_without_a_tokenizer_needs_a_file(wfd: Run, tmp_path: Path) -> None:
    code, _, err = wfd("check", "tokens", "--url", "http://127.0.0.1:1", "--model", str(tmp_path))
    assert code == 2
    assert "has no tokenizer.json: give prompts as a FILE" in err

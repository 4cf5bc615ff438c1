"""With a GPU: real captures and replays. Elsewhere skipped; `test_capture_safety` says what is shown there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
import torch

from reference.graphs import attention
from reference.graphs.capture import captured
from tests.graphs.problems import PROMPTS, eager, same, small, static
from tests.graphs.test_capture_safety import KINDS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: graphs are captured and replayed"),
]

CUDA: Final = torch.device("cuda")


@contextmanager
def no_waiting() -> Iterator[None]:
    """Makes every call that waits for the device raise."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("kind", ["ar", "wfd", "dtv"])
def test_captured_graphs_decode_every_prompt_as_the_engine_does(kind: str, family: str) -> None:
    """Case 27; in float64, where near ties do not happen."""
    model = small(family, device="cuda")
    options = KINDS[kind]
    static_decoder = static(model, **options)
    for prompt in PROMPTS:
        for budget, stop_ids in ((13, ()), (9, (5,))):
            expected = eager(
                model,
                prompt,
                kind,
                depth=4,
                draft_depth=options["draft_depth"],
                draft_length=options.get("draft_length", 3),
                max_new_tokens=budget,
                stop_ids=stop_ids,
            )
            assert same(static_decoder.decode(prompt, max_new_tokens=budget, eos_token_id=stop_ids), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_neither_a_step_nor_its_replay_waits_for_the_host(kind: str) -> None:
    """Case 28."""
    static_decoder = static(small("huginn", dtype=torch.bfloat16, device="cuda"), **KINDS[kind])
    calls = dict.fromkeys(static_decoder.step.cycle)
    for call in calls:
        captured(call, CUDA)()
    with no_waiting(), torch.no_grad():
        for call in calls:
            call()
        for replay in static_decoder.calls:
            replay()


def test_a_replay_allocates_nothing() -> None:
    static_decoder = static(small("ouro", device="cuda"), **KINDS["wfd"])
    static_decoder.decode(PROMPTS[1], max_new_tokens=9)
    before = torch.cuda.memory_allocated()
    for _ in range(20):
        for replay in static_decoder.calls:
            replay()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("kv_slots", [None, 1, 2])
def test_the_flash_kernel_computes_what_the_masked_way_does(
    kv_slots: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bfloat16 tokens may part at a near tie, so what is compared are the states after one macro step."""
    model = small("ouro", dtype=torch.bfloat16, device="cuda")
    model_states = []
    for is_flash in (True, False):
        monkeypatch.setattr(attention, "has_varlen", lambda _, answer=is_flash: answer)
        static_decoder = static(model, "wfd", depth=4, draft_depth=1, kv_slots=kv_slots)
        step = static_decoder.step
        with torch.no_grad():
            stop_ids = torch.empty(0, dtype=torch.int64, device=CUDA)
            step.ledger.open(frontier=9, end=30, stop_ids=stop_ids)
            step.prefill(torch.tensor(PROMPTS[1], device=CUDA))
            step.begin(torch.tensor([3], device=CUDA), torch.tensor([8], device=CUDA))
            static_decoder.calls[0]()
        model_states.append(step.states[-2:].float())
    flash, masked = model_states
    assert torch.allclose(flash, masked, atol=0.0625, rtol=0.0625)

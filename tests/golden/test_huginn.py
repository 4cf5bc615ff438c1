"""Huginn computes what the official network computes: the golden data of `huginn-tiny`.

Of the golden runs under a KV strategy, only `full` is matched here: the one without sharing between recurrences.
"""

from typing import Any, Final

import pytest
import torch
from safetensors.torch import load_file

from reference import ar
from reference.models import Huginn
from reference.models.rope import InterleavedRotary
from tests.golden.data import PROMPTS, assert_near, checkpoint, golden
from tests.running import Running

pytestmark = pytest.mark.spec("MOD-12")

LOGITS: Final = 2e-4
"""Tolerance on logits, up to 35 in size. The golden float32 logits are up to 1.2e-4 from what float64 gives."""
STATES: Final = 2e-5
"""Tolerance on states."""
LAST: Final = 8
"""The checkpoint's depth."""

GOLDEN: Final = golden("huginn")

any_prompt = pytest.mark.parametrize("prompt", PROMPTS)
any_long_prompt = pytest.mark.parametrize("prompt", [1, 2, 3, 4])
any_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def load(dtype: torch.dtype = torch.float32) -> Huginn:
    model = checkpoint("huginn", dtype)
    assert isinstance(model, Huginn)
    return model


@any_prompt
@any_dtype
def test_prelude_states_latents_and_logits_equal_the_official_ones_at_every_depth(
    prompt: int, dtype: torch.dtype
) -> None:
    model, tokens = load(dtype), GOLDEN.prompt(prompt)
    running = Running(model, num_positions=len(tokens))
    injected_input, (_, *states) = running.extend(tokens)
    assert_near(injected_input, GOLDEN.tensor(prompt, "prelude"), STATES)
    assert len(states) == LAST
    for depth, state in enumerate(states, start=1):
        assert_near(state, GOLDEN.tensor(prompt, f"state.t{depth}"), STATES)
        assert_near(model.latent(state), GOLDEN.tensor(prompt, f"latent.t{depth}"), STATES)
        logits = running.read_out(state, depth=depth)
        assert_near(logits, GOLDEN.tensor(prompt, f"logits.t{depth}"), LOGITS)


@any_prompt
def test_logits_from_explicit_initial_states_equal_the_official_ones(prompt: int) -> None:
    tokens = GOLDEN.prompt(prompt)
    running = Running(load(), num_positions=len(tokens))
    _, by_depth = running.extend(tokens, states=GOLDEN.tensor(prompt, "input_states"))
    for depth in (1, 2, 4, 8):
        logits = running.read_out(by_depth[depth], depth=depth)
        assert_near(logits, GOLDEN.tensor(prompt, f"from_states.logits.t{depth}"), LOGITS)


@any_prompt
@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_each_token_of_an_official_greedy_continuation_is_the_largest_logit(prompt: int, depth: int) -> None:
    tokens, continuation = GOLDEN.prompt(prompt), GOLDEN.greedy(prompt, f".t{depth}")
    seen = (*tokens, *continuation[:-1])
    logits = Running(load(), num_positions=len(seen), recurrence_depth=depth, provenance=False).logits(seen)
    assert logits[len(tokens) - 1 :].argmax(dim=-1).tolist() == continuation


@pytest.mark.spec("MOD-02")
@any_prompt
@pytest.mark.parametrize("depth", [1, LAST])
def test_greedy_decoding_gives_the_official_continuation(prompt: int, depth: int) -> None:
    out = ar.generate(
        load(),
        GOLDEN.prompt(prompt),
        max_new_tokens=32,
        recurrence_depth=depth,
        eos_token_id=None,
        state_scale=0.0,
    )
    assert out.token_ids == GOLDEN.greedy(prompt, f".t{depth}")
    noted: dict[str, Any] = GOLDEN.notes["prompts"][prompt]["greedy"][f"t{depth}"]
    assert min(out.margins) == pytest.approx(noted["min_margin"], abs=2 * LOGITS)


@any_prompt
def test_the_official_greedy_run_on_its_full_cache_is_the_uncached_one(prompt: int) -> None:
    assert GOLDEN.greedy(prompt, "_kv.full") == GOLDEN.greedy(prompt, ".t8")


@pytest.mark.spec("AR-03")
@any_long_prompt
def test_cached_logits_equal_the_official_cached_ones(prompt: int) -> None:
    tokens = GOLDEN.prompt(prompt)
    running = Running(load(), num_positions=len(tokens))
    logits = [running.logits(tokens[:-3]), *(running.logits([token]) for token in tokens[-3:])]
    assert_near(torch.cat(logits), GOLDEN.tensor(prompt, "cached_logits.full"), LOGITS)


@pytest.mark.spec("AR-03")
@any_long_prompt
def test_logits_of_several_positions_behind_a_cache_equal_the_official_ones(prompt: int) -> None:
    tokens = GOLDEN.prompt(prompt)
    running = Running(load(), num_positions=len(tokens))
    running.logits(tokens[:-3])
    assert_near(running.logits(tokens[-3:]), GOLDEN.tensor(prompt, "multi_logits.full"), LOGITS)


def test_the_rotary_table_equals_the_stored_one_bit_for_bit() -> None:
    config = load().config
    table = InterleavedRotary.of(config.rotary_shape, dtype=torch.float32, device=torch.device("cpu")).table
    stored = load_file(GOLDEN.folder / "model.safetensors")["freqs_cis"]
    assert torch.equal(torch.view_as_real(table), stored[0])


@pytest.mark.spec("CONF-04")
@any_prompt
def test_logits_in_bfloat16_stay_near_the_official_float32_ones(prompt: int) -> None:
    """Rounding the weights alone moves these logits by up to 0.04 of their size, and computing by 0.05 more."""
    tokens, expected = GOLDEN.prompt(prompt), GOLDEN.tensor(prompt, "logits.t8")
    error = Running(load(torch.bfloat16), num_positions=len(tokens)).logits(tokens).float() - expected
    assert float(error.square().mean().sqrt() / expected.square().mean().sqrt()) < 0.08

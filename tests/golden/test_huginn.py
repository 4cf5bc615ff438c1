"""Huginn computes what the official network computes: the golden data of `huginn-tiny`."""

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


SHARED: Final = ("latest-m4-compress-s4", "latest-m4-compress-s8", "compress-s1", "compress-r4")
"""Strategies under which the logits of single steps are recorded."""


@pytest.mark.spec("SHR-02", "SHR-04", "SHR-07")
@any_long_prompt
@pytest.mark.parametrize("strategy", SHARED)
def test_cached_logits_with_shared_slots_equal_the_official_ones(prompt: int, strategy: str) -> None:
    tokens = GOLDEN.prompt(prompt)
    running = Running(load(), num_positions=len(tokens), kv_slots=strategy)
    logits = [running.logits(tokens[:-3]), *(running.logits([token]) for token in tokens[-3:])]
    assert_near(torch.cat(logits), GOLDEN.tensor(prompt, f"cached_logits.{strategy}"), LOGITS)


@pytest.mark.spec("SHR-05")
@any_long_prompt
@pytest.mark.parametrize("strategy", SHARED)
def test_positions_that_run_together_see_each_other_at_the_running_step(prompt: int, strategy: str) -> None:
    """As the official network's do; and what single steps give lies further away than the tolerance can bridge."""
    tokens = GOLDEN.prompt(prompt)
    running = Running(load(), num_positions=len(tokens), kv_slots=strategy)
    running.logits(tokens[:-3])
    logits = running.logits(tokens[-3:])
    assert_near(logits, GOLDEN.tensor(prompt, f"multi_logits.{strategy}"), LOGITS)
    alone = GOLDEN.tensor(prompt, f"cached_logits.{strategy}")[-3:]
    assert float((logits - alone).abs().max()) > 2 * LOGITS


STRATEGIES: Final = sorted(GOLDEN.notes["prompts"][0]["greedy_kv"])


@pytest.mark.spec("SHR-01", "SHR-02", "SHR-04", "SHR-05", "SHR-06", "SHR-07")
@any_prompt
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ar_under_a_strategy_of_the_official_code_gives_its_continuation(prompt: int, strategy: str) -> None:
    noted: dict[str, Any] = GOLDEN.notes["prompts"][prompt]["greedy_kv"][strategy]
    out = ar.generate(
        load(), GOLDEN.prompt(prompt), max_new_tokens=32, eos_token_id=None, state_scale=0.0, kv_slots=strategy
    )
    assert out.token_ids == GOLDEN.greedy(prompt, f"_kv.{strategy}") == noted["tokens"]
    assert min(out.margins) == pytest.approx(noted["min_margin"], abs=2 * LOGITS)


def test_every_kind_of_strategy_is_among_them() -> None:
    assert {name.partition("compress")[1] for name in STRATEGIES} == {"", "compress"}
    assert {name.split("-")[-1] for name in STRATEGIES} >= {
        "s1",
        "s4",
        "s8",
        "s16",
        "r4",
        "r8",
        "anchor",
        "full",
        "skip",
    }


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

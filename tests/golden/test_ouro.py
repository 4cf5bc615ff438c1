"""Ouro computes what the official network computes: everything in the golden data of `ouro-tiny`."""

from functools import cache
from typing import Any, Final

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from reference import ar
from reference.kv import KVCache
from reference.models import Ouro
from reference.models.exits import cumulative, exit_depths, exit_probabilities, weighted_logits
from reference.models.layers import RMSNorm
from reference.provenance import Part
from tests.golden.data import PROMPTS, assert_near, checkpoint, golden
from tests.running import Running

pytestmark = pytest.mark.spec("MOD-12")

LOGITS: Final = 1e-4
"""Tolerance on logits. The official code's own attention kernels differ by 2e-5."""
STATES: Final = 1e-5
"""Tolerance on states, gates and keys and values."""
LAST: Final = 4
"""The checkpoint's depth."""
THRESHOLDS: Final = ("0.2", "0.4", "0.6", "0.8", "0.95", "1.0")

GOLDEN: Final = golden("ouro")

any_prompt = pytest.mark.parametrize("prompt", PROMPTS)
any_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def load(dtype: torch.dtype = torch.float32) -> Ouro:
    model = checkpoint("ouro", dtype)
    assert isinstance(model, Ouro)
    return model


@cache
def states_by_depth(prompt: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Gives our states of a prompt at depths 1 to T."""
    tokens = GOLDEN.prompt(prompt)
    return Running(load(dtype), num_positions=len(tokens)).extend(tokens)[1][1:]


@any_prompt
@any_dtype
def test_states_equal_the_official_ones_at_every_depth(prompt: int, dtype: torch.dtype) -> None:
    states = states_by_depth(prompt, dtype)
    assert len(states) == LAST
    for depth, state in enumerate(states, start=1):
        assert_near(state, GOLDEN.tensor(prompt, f"hidden.t{depth}"), STATES)


@any_prompt
@torch.inference_mode()
def test_states_before_the_final_norm_equal_the_official_ones(prompt: int) -> None:
    model, tokens = load(), GOLDEN.prompt(prompt)
    positions = range(len(tokens))
    cache = KVCache(
        model.kv_shapes, recurrence_depth=LAST, num_positions=len(tokens), dtype=model.dtype, device=model.device
    )
    weight = load_file(GOLDEN.folder / "model.safetensors")["model.norm.weight"]
    norm = RMSNorm.of(weight, model.config.eps)
    states = model.prelude(torch.tensor(tokens), cache.rows(Part.PRELUDE, positions, [0] * len(tokens)))
    for recurrence in range(LAST):
        before = model.stack(states, cache.rows(Part.RECURRENT, positions, [recurrence] * len(tokens)))
        states = GOLDEN.tensor(prompt, f"hidden.t{recurrence + 1}")
        assert_near(before, GOLDEN.tensor(prompt, f"hidden_prenorm.t{recurrence + 1}"), 2 * STATES)
        assert_near(norm(before), states, STATES)


@any_prompt
@any_dtype
def test_logits_equal_the_official_ones_at_every_depth(prompt: int, dtype: torch.dtype) -> None:
    model = load(dtype)
    for depth, state in enumerate(states_by_depth(prompt, dtype), start=1):
        assert_near(model.head(state), GOLDEN.tensor(prompt, f"logits.t{depth}"), LOGITS)


@any_prompt
def test_exit_gates_and_their_distribution_equal_the_official_ones(prompt: int) -> None:
    model = load()
    gates = torch.stack([model.gate_logits(state) for state in states_by_depth(prompt)], dim=-1)
    probabilities = exit_probabilities(gates)
    assert_near(gates, GOLDEN.tensor(prompt, "gate_logits"), STATES)
    assert_near(torch.sigmoid(gates), GOLDEN.tensor(prompt, "gate_lambda"), STATES)
    assert_near(probabilities, GOLDEN.tensor(prompt, "exit_pdf"), STATES)
    assert_near(cumulative(probabilities), GOLDEN.tensor(prompt, "exit_cdf"), STATES)


@any_prompt
def test_the_distribution_follows_from_the_gates_bit_for_bit(prompt: int) -> None:
    probabilities = exit_probabilities(GOLDEN.tensor(prompt, "gate_logits"))
    assert torch.equal(probabilities, GOLDEN.tensor(prompt, "exit_pdf"))
    assert torch.equal(cumulative(probabilities), GOLDEN.tensor(prompt, "exit_cdf"))


@any_prompt
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_position_exits_where_the_official_code_lets_it(prompt: int, threshold: str) -> None:
    expected = GOLDEN.tensor(prompt, f"exit_step.q{threshold}") + 1
    assert torch.equal(exit_depths(GOLDEN.tensor(prompt, "exit_cdf"), float(threshold)), expected)
    model = load()
    gates = torch.stack([model.gate_logits(state) for state in states_by_depth(prompt)], dim=-1)
    assert torch.equal(exit_depths(cumulative(exit_probabilities(gates)), float(threshold)), expected)


@any_prompt
def test_weighted_logits_equal_the_official_ones(prompt: int) -> None:
    model = load()
    states = states_by_depth(prompt)
    probabilities = exit_probabilities(torch.stack([model.gate_logits(state) for state in states], dim=-1))
    logits = torch.stack([model.head(state) for state in states], dim=1)
    assert_near(weighted_logits(probabilities, logits), GOLDEN.tensor(prompt, "logits.weighted"), LOGITS)


@any_prompt
def test_a_saturated_gate_exits_at_depth_one_even_at_threshold_one(prompt: int) -> None:
    assert GOLDEN.notes["saturated_gate_case"]["equals_logits_of_loop_1"]
    tensors = load_file(GOLDEN.folder / "model.safetensors")
    tensors["model.early_exit_gate.bias"] = torch.full((1,), 40.0)
    model = Ouro(load().config, tensors, dtype=torch.float32, device=torch.device("cpu"))
    tokens = GOLDEN.prompt(prompt)
    _, (_, *states) = Running(model, num_positions=len(tokens)).extend(tokens)
    gates = torch.stack([model.gate_logits(state) for state in states], dim=-1)
    assert exit_depths(cumulative(exit_probabilities(gates)), 1.0).tolist() == [1] * len(tokens)


@any_prompt
@pytest.mark.parametrize("depth", range(1, LAST + 1))
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
    )
    assert out.token_ids == GOLDEN.greedy(prompt, f".t{depth}")
    noted: dict[str, Any] = GOLDEN.notes["prompts"][prompt]["greedy"][f"t{depth}"]
    assert min(out.margins) == pytest.approx(noted["min_margin"], abs=2 * LOGITS)


@any_prompt
@pytest.mark.parametrize("threshold", ["0.4", "0.6", "0.8", "1.0"])
def test_greedy_continuations_by_exit_threshold_equal_the_official_ones(prompt: int, threshold: str) -> None:
    model, tokens = load(), GOLDEN.prompt(prompt)
    running = Running(model, num_positions=len(tokens) + 32, provenance=False)
    new: list[int] = []
    for _ in range(32):
        # All depths are computed for every token, whichever is read out, as in the official code.
        _, (_, *states) = running.extend(new[-1:] or tokens)
        gates = torch.stack([model.gate_logits(state[-1:]) for state in states], dim=-1)
        depth = int(exit_depths(cumulative(exit_probabilities(gates)), float(threshold)))
        new.append(int(model.head(states[depth - 1][-1:]).argmax()))
    assert new == GOLDEN.greedy(prompt, f".q{threshold}")


@pytest.mark.spec("AR-03")
@pytest.mark.parametrize("prompt", [1, 2, 3, 4])
def test_cached_logits_equal_the_official_uncached_ones(prompt: int) -> None:
    tokens = GOLDEN.prompt(prompt)
    running = Running(load(), num_positions=len(tokens))
    logits = [running.logits(tokens[:-3]), *(running.logits([token]) for token in tokens[-3:])]
    assert_near(torch.cat(logits), GOLDEN.tensor(prompt, "logits.t4"), LOGITS)


@pytest.mark.spec("KV-01")
def test_kv_cells_equal_the_official_cache_slot_for_slot() -> None:
    model, tokens = load(), GOLDEN.prompt(2)
    running = Running(model, num_positions=len(tokens))
    running.extend(tokens)
    assert model.kv_shapes.num_slots(LAST) == sum("p2.cache.k." in name for name in GOLDEN.tensors)
    for recurrence in range(LAST):
        keys, values = running.cache.cells(Part.RECURRENT, slice(0, len(tokens)), recurrence=recurrence)
        for layer in range(model.config.num_layers):
            slot = recurrence * model.config.num_layers + layer
            assert_near(keys[layer], GOLDEN.tensor(2, f"cache.k.{slot}"), STATES)
            assert_near(values[layer], GOLDEN.tensor(2, f"cache.v.{slot}"), STATES)


@pytest.mark.spec("CONF-04")
@any_prompt
def test_logits_in_bfloat16_stay_near_the_official_float32_ones(prompt: int) -> None:
    expected = GOLDEN.tensor(prompt, "logits.t4")
    error = load(torch.bfloat16).head(states_by_depth(prompt, torch.bfloat16)[-1]).float() - expected
    assert float(error.square().mean().sqrt() / expected.square().mean().sqrt()) < 0.02

"""What is peculiar to Ouro."""

import pytest
import torch
from torch import Tensor

from reference.models import Ouro
from reference.models.protocol import LoopedModel
from reference.provenance import Part
from tests.models_for_tests import ouro_config, random_ouro, random_tensors
from tests.running import Running

TOKENS = (5, 2, 7, 7)


class NoRows:
    """Rows that must not be used."""

    positions = torch.tensor([-1])

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
        """Refuses."""
        raise AssertionError(layer, query, key, value, scale)


def test_prelude_is_the_embedding_and_coda_nothing_and_neither_attends() -> None:
    model = random_ouro(dtype=torch.float32)
    embedding = random_tensors(ouro_config())["model.embed_tokens.weight"]
    rows = NoRows()
    injected = model.prelude(torch.tensor(TOKENS), rows)
    assert torch.equal(injected, embedding[list(TOKENS)])
    assert model.coda(injected, rows) is injected
    assert (model.kv_shapes.prelude_layers, model.kv_shapes.coda_layers) == (0, 0)


@pytest.mark.spec("MOD-05", "MOD-07")
def test_the_initial_state_is_the_embedding_whatever_the_seed_and_the_scale() -> None:
    model: LoopedModel = random_ouro()
    for seed, scale in ((0, 1.0), (7, 0.0)):
        assert model.initial_states([3, 4], seed=seed, scale=scale) is None


def test_later_loops_do_not_see_the_embedding() -> None:
    model = random_ouro()
    steps = Running(model, num_positions=4)
    injected, states = steps.extend(TOKENS)
    fresh = Running(model, num_positions=4)
    fresh.cache.begin(range(4))
    with torch.inference_mode():
        state = states[0]
        for recurrence in range(model.recurrence_depth):
            rows = fresh.cache.rows(Part.RECURRENT, range(4), [recurrence] * 4)
            state = model.recur(state, torch.full_like(injected, torch.nan), rows)
    assert torch.equal(state, states[-1])


def test_every_state_is_normed() -> None:
    model = random_ouro()
    _, (_, *states) = Running(model, num_positions=4).extend(TOKENS)
    weight = random_tensors(ouro_config())["model.norm.weight"].double()
    for state in states:
        mean_squares = (state / weight).square().mean(-1)
        torch.testing.assert_close(mean_squares, torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-5)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_query_heads_share_key_heads_in_groups_of_neighbours(num_kv_heads: int) -> None:
    shared = random_tensors(ouro_config(num_heads=4, num_kv_heads=num_kv_heads), seed=3)
    repeated = dict(shared)
    for name, tensor in shared.items():
        if "k_proj" in name or "v_proj" in name:
            heads = tensor.view(num_kv_heads, 4, -1)
            repeated[name] = heads.repeat_interleave(4 // num_kv_heads, dim=0).flatten(0, 1)
    cpu = torch.device("cpu")
    grouped = Ouro(ouro_config(num_heads=4, num_kv_heads=num_kv_heads), shared, dtype=torch.float64, device=cpu)
    plain = Ouro(ouro_config(num_heads=4, num_kv_heads=4), repeated, dtype=torch.float64, device=cpu)
    one, other = Running(grouped, num_positions=4), Running(plain, num_positions=4)
    for tokens in (TOKENS[:3], TOKENS[3:]):
        torch.testing.assert_close(one.logits(tokens), other.logits(tokens), rtol=0, atol=1e-12)


def test_the_gate_reads_a_state_and_is_one_number_a_row() -> None:
    model = random_ouro(dtype=torch.float32)
    tensors = random_tensors(ouro_config())
    _, states = Running(model, num_positions=4).extend(TOKENS)
    expected = states[-1] @ tensors["model.early_exit_gate.weight"][0] + tensors["model.early_exit_gate.bias"]
    torch.testing.assert_close(model.gate_logits(states[-1]), expected)

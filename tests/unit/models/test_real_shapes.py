"""The published checkpoints: their tensors, parameters and KV bytes, without their weights."""

import math
from typing import Final

import pytest
import torch
from torch import Tensor

from reference.models import Huginn, HuginnConfig, Ouro, OuroConfig

META: Final = torch.device("meta")


def ouro(num_layers: int) -> OuroConfig:
    """Gives the configuration of Ouro-1.4B (24 layers) or 2.6B (48)."""
    return OuroConfig.read(
        {
            "model_type": "ouro",
            "hidden_act": "silu",
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": num_layers,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "vocab_size": 49152,
            "max_position_embeddings": 65536,
            "rope_theta": 1000000.0,
            "rope_scaling": None,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False,
            "total_ut_steps": 4,
            "early_exit_threshold": 1.0,
            "use_sliding_window": False,
            "layer_types": ["full_attention"] * num_layers,
            "torch_dtype": "bfloat16",
            "bos_token_id": 0,
            "eos_token_id": 0,
        }
    )


def huginn() -> HuginnConfig:
    """Gives the configuration of huginn-0125, with the values that its file derives."""
    return HuginnConfig.read(
        {
            "model_type": "huginn_raven",
            "architecture_class_name": "RecurrentGPT",
            "n_embd": 5280,
            "n_heads": 55,
            "num_attention_heads": 55,
            "num_key_value_heads": 55,
            "head_dim": 96,
            "intermediate_size": 17920,
            "vocab_size": 65536,
            "padded_vocab_size": 65536,
            "padding_multiple": 4096,
            "n_layers": 8,
            "n_layers_in_prelude": 2,
            "n_layers_in_recurrent_block": 4,
            "n_layers_in_coda": 2,
            "mean_recurrence": 32,
            "mean_backprop_depth": 8,
            "effective_expected_depth": 132,
            "block_size": 4096,
            "rope_base": 50000,
            "norm_eps": 1e-6,
            "qk_bias": True,
            "bias": False,
            "tie_embeddings": True,
            "injection_type": "linear",
            "state_init": "like-init",
            "init_strategy": "takase",
            "norm_class_name": "RMSNorm_llama",
            "block_class_name": "SandwichBlock",
            "mlp_class_name": "GatedMLP",
            "nonlin_name": "SiLU",
            "sampling_scheme": "poisson-lognormal-filling",
            "activation_checkpoint_impl": "per-iteration",
            "torch_dtype": "float32",
        }
    )


def num_elements(shapes: dict[str, tuple[int, ...]]) -> int:
    return sum(map(math.prod, shapes.values()))


def on_meta(shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    return {name: torch.empty(shape, device=META) for name, shape in shapes.items()}


@pytest.mark.spec("MOD-09")
@pytest.mark.parametrize("num_layers,parameters", [(24, 1_434_652_673), (48, 2_667_974_657)])
def test_ouro_has_the_published_number_of_parameters(num_layers: int, parameters: int) -> None:
    shapes = ouro(num_layers).tensor_shapes()
    assert num_elements(shapes) == parameters
    assert len(shapes) == 5 + 11 * num_layers  # 269 tensors in Ouro-1.4B


@pytest.mark.spec("MOD-09")
def test_huginn_has_the_published_size() -> None:
    config = huginn()
    stored = config.tensor_shapes() | config.redundant_tensor_shapes()
    assert 4 * num_elements(stored) == pytest.approx(15.65e9, rel=1e-3)
    assert len(stored) == 5 + 9 * 8


@pytest.mark.spec("MOD-09")
def test_the_names_of_the_published_tensors() -> None:
    assert ouro(24).tensor_shapes()["model.layers.23.self_attn.k_proj.weight"] == (2048, 2048)
    assert ouro(24).tensor_shapes()["model.early_exit_gate.weight"] == (1, 2048)
    assert huginn().tensor_shapes()["transformer.core_block.3.attn.qk_bias"] == (2, 1, 55, 96)
    assert huginn().tensor_shapes()["transformer.coda.1.mlp.fc.weight"] == (2 * 17920, 5280)
    assert huginn().redundant_tensor_shapes()["freqs_cis"] == (1, 4096, 1, 48, 2)


@pytest.mark.spec("KV-01")
@pytest.mark.parametrize("num_layers,slots,num_bytes", [(24, 96, 786_432), (48, 192, 1_572_864)])
def test_kv_bytes_of_an_ouro_position(num_layers: int, slots: int, num_bytes: int) -> None:
    model = Ouro(ouro(num_layers), on_meta(ouro(num_layers).tensor_shapes()), dtype=torch.bfloat16, device=META)
    assert model.kv_shapes.num_slots(model.recurrence_depth) == slots
    assert model.kv_shapes.bytes_per_position(model.recurrence_depth, bytes_per_element=2) == num_bytes


@pytest.mark.spec("KV-01")
def test_kv_bytes_of_a_huginn_position() -> None:
    model = Huginn(huginn(), on_meta(huginn().tensor_shapes()), dtype=torch.bfloat16, device=META)
    assert model.kv_shapes.num_slots(model.recurrence_depth) == 2 + 4 * 32 + 2
    assert model.kv_shapes.bytes_per_position(model.recurrence_depth, bytes_per_element=2) == 2_787_840

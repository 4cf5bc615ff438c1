"""Builds tiny random models of both families, and model folders in the official format.

Weights come from a generator of their own. They are drawn so that depth matters: successive recurrences often choose
different tokens, so that drafts are sometimes right and sometimes wrong.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from reference.models import Huginn, HuginnConfig, Ouro, OuroConfig

CPU = torch.device("cpu")


def ouro_config(
    *,
    recurrence_depth: int = 3,
    num_layers: int = 2,
    num_heads: int = 2,
    num_kv_heads: int = 1,
    vocab_size: int = 13,
    context_length: int = 64,
    eos_token_ids: frozenset[int] = frozenset(),
) -> OuroConfig:
    """Gives the sizes of a tiny Ouro; by default two query heads share one key/value head."""
    return OuroConfig(
        vocab_size=vocab_size,
        hidden_size=12,
        intermediate_size=20,
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=4,
        context_length=context_length,
        rope_theta=1000.0,
        eps=1e-6,
        recurrence_depth=recurrence_depth,
        eos_token_ids=eos_token_ids,
        dtype=torch.float32,
    )


def huginn_config(
    *,
    recurrence_depth: int = 4,
    prelude_layers: int = 1,
    core_layers: int = 2,
    coda_layers: int = 1,
    num_heads: int = 2,
    vocab_size: int = 13,
    context_length: int = 64,
    eos_token_ids: frozenset[int] = frozenset(),
) -> HuginnConfig:
    """Gives the sizes of a tiny Huginn."""
    return HuginnConfig(
        vocab_size=vocab_size,
        hidden_size=4 * num_heads,
        intermediate_size=20,
        num_heads=num_heads,
        prelude_layers=prelude_layers,
        core_layers=core_layers,
        coda_layers=coda_layers,
        context_length=context_length,
        rope_base=1000.0,
        eps=1e-6,
        recurrence_depth=recurrence_depth,
        eos_token_ids=eos_token_ids,
        dtype=torch.float32,
    )


def random_tensors(config: OuroConfig | HuginnConfig, seed: int = 0) -> dict[str, Tensor]:
    """Draws float32 weights under their official names."""
    generator = torch.Generator().manual_seed(seed)

    def draw(name: str, shape: tuple[int, ...]) -> Tensor:
        noise = torch.randn(shape, generator=generator)
        if "norm" in name or "ln_f" in name:
            return 1 + 0.2 * noise
        if len(shape) == 2 and "wte" not in name and "embed" not in name:
            return noise * (1.5 / math.sqrt(shape[1]))
        return noise * 0.5

    return {name: draw(name, shape) for name, shape in config.tensor_shapes().items()}


def random_ouro(
    config: OuroConfig | None = None, *, seed: int = 0, dtype: torch.dtype = torch.float64, device: torch.device = CPU
) -> Ouro:
    """Gives an Ouro with random weights."""
    config = config or ouro_config()
    return Ouro(config, random_tensors(config, seed), dtype=dtype, device=device)


def random_huginn(
    config: HuginnConfig | None = None,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device = CPU,
) -> Huginn:
    """Gives a Huginn with random weights."""
    config = config or huginn_config()
    return Huginn(config, random_tensors(config, seed), dtype=dtype, device=device)


def random_model(family: str, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> Ouro | Huginn:
    """Gives a random model of a family, `"ouro"` or `"huginn"`."""
    return random_ouro(seed=seed, dtype=dtype) if family == "ouro" else random_huginn(seed=seed, dtype=dtype)


def ouro_values(config: OuroConfig) -> dict[str, object]:
    """Gives the content of an official `config.json`."""
    return {
        "architectures": ["OuroForCausalLM"],
        "auto_map": {"AutoConfig": "configuration_ouro.OuroConfig"},
        "early_exit_threshold": config.exit_threshold,
        "eos_token_id": sorted(config.eos_token_ids) or None,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "layer_types": ["full_attention"] * config.num_layers,
        "max_position_embeddings": config.context_length,
        "model_type": "ouro",
        "num_attention_heads": config.num_heads,
        "num_hidden_layers": config.num_layers,
        "num_key_value_heads": config.num_kv_heads,
        "rms_norm_eps": config.eps,
        "rope_scaling": None,
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "total_ut_steps": config.recurrence_depth,
        "use_sliding_window": False,
        "vocab_size": config.vocab_size,
    }


def huginn_values(config: HuginnConfig) -> dict[str, object]:
    """Gives the content of an official `config.json`."""
    return {
        "architectures": ["RavenForCausalLM"],
        "auto_map": {"AutoConfig": "raven_config_minimal.RavenConfig"},
        "architecture_class_name": "RecurrentGPT",
        "bias": False,
        "block_class_name": "SandwichBlock",
        "block_size": config.context_length,
        "eos_token_id": sorted(config.eos_token_ids) or None,
        "init_strategy": "takase",
        "injection_type": "linear",
        "intermediate_size": config.intermediate_size,
        "mean_recurrence": config.recurrence_depth,
        "mlp_class_name": "GatedMLP",
        "model_type": "huginn_raven",
        "n_embd": config.hidden_size,
        "n_heads": config.num_heads,
        "n_layers": config.prelude_layers + config.core_layers + config.coda_layers,
        "n_layers_in_coda": config.coda_layers,
        "n_layers_in_prelude": config.prelude_layers,
        "n_layers_in_recurrent_block": config.core_layers,
        "nonlin_name": "SiLU",
        "norm_class_name": "RMSNorm_llama",
        "norm_eps": config.eps,
        "num_key_value_heads": config.num_heads,
        "padding_multiple": 1,
        "qk_bias": True,
        "rope_base": config.rope_base,
        "state_init": "like-init",
        "tie_embeddings": True,
        "torch_dtype": "float32",
        "vocab_size": config.vocab_size,
    }


def write_json(path: Path, values: object) -> None:
    """Writes a JSON file."""
    path.write_text(json.dumps(values), encoding="utf-8")


def write_folder(folder: Path, values: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Path:
    """Writes a model folder in the official format, its tensors in one file, and gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", values)
    save_file(dict(tensors), folder / "model.safetensors")
    return folder

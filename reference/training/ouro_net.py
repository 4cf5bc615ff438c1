"""Computes the Ouro architecture for training and evaluation: one stack of layers, looped."""

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

from reference.training.memory import MOST_POSITIONS, Memory
from reference.training.nets import Parameters, attend, normal, rms_norm, split_heads


@dataclass(frozen=True, slots=True)
class OuroShape:
    """Sizes of a tiny Ouro model."""

    hidden_size: int = 128
    """Width of the state."""
    num_heads: int = 4
    """Query heads."""
    num_kv_heads: int = 4
    """Key-value heads; divides `num_heads`. Fewer of them leave fewer bytes to read for every row in flight."""
    intermediate_size: int = 384
    """Width inside the MLP."""
    num_layers: int = 1
    """Layers of the looped stack."""
    num_loops: int = 4
    """Recurrence depth T (`total_ut_steps`)."""
    vocab_size: int = 1024
    """Rows of the embedding and of the head."""
    rope_theta: float = 1_000_000.0
    """Base of the rotary angles."""
    eps: float = 1e-6
    """Inside every RMS norm."""

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.hidden_size // self.num_heads


EMBEDDING: Final = "model.embed_tokens.weight"
HEAD: Final = "lm_head.weight"
GATE_WEIGHT: Final = "model.early_exit_gate.weight"
GATE_BIAS: Final = "model.early_exit_gate.bias"

_NORMS: Final = (
    "input_layernorm",
    "input_layernorm_2",
    "post_attention_layernorm",
    "post_attention_layernorm_2",
)


def ouro_parameters(shape: OuroShape, generator: torch.Generator) -> dict[str, Tensor]:
    """Gives fresh parameters under their official names.

    Embedding and head are two tensors, as in the official releases. That lets the embedding be large beside what the
    layers add to it, so that later loops can still read which token a state began as, and the first logits small.

    Args:
        shape: Sizes.
        generator: Source of randomness.

    Returns:
        fp32 tensors; linear weights are [out, in].
    """
    hidden, inner, keys = shape.hidden_size, shape.intermediate_size, shape.num_kv_heads * shape.head_dim
    parameters = {
        EMBEDDING: normal((shape.vocab_size, hidden), 0.5, generator),
        HEAD: normal((shape.vocab_size, hidden), 0.02, generator),
        "model.norm.weight": torch.ones(hidden),
    }
    for layer in range(shape.num_layers):
        prefix = f"model.layers.{layer}."
        for name, rows in (("q", hidden), ("k", keys), ("v", keys), ("o", hidden)):
            parameters[f"{prefix}self_attn.{name}_proj.weight"] = normal((rows, hidden), hidden**-0.5, generator)
        parameters[f"{prefix}mlp.gate_proj.weight"] = normal((inner, hidden), hidden**-0.5, generator)
        parameters[f"{prefix}mlp.up_proj.weight"] = normal((inner, hidden), hidden**-0.5, generator)
        parameters[f"{prefix}mlp.down_proj.weight"] = normal((hidden, inner), inner**-0.5, generator)
        parameters |= {f"{prefix}{norm}.weight": torch.ones(hidden) for norm in _NORMS}
    return parameters | {GATE_WEIGHT: torch.zeros(1, hidden), GATE_BIAS: torch.zeros(1)}


def _rotary(shape: OuroShape, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Gives cosines and sines, [batch or 1, 1, seq, head_dim], the half repeated."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = positions[:, None, :, None].float() * (shape.rope_theta**-exponents)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def _rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotates the first half of each head against its second half."""
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


def _layer(
    parameters: Parameters,
    shape: OuroShape,
    x: Tensor,
    rotary: tuple[Tensor, Tensor],
    *,
    layer: int,
    memory: Memory | None,
    slot: int,
) -> Tensor:
    """Runs one layer: attention and MLP, each normed before and after, then added."""
    prefix = f"model.layers.{layer}."

    def linear(value: Tensor, name: str) -> Tensor:
        return F.linear(value, parameters[f"{prefix}{name}.weight"])

    def norm(value: Tensor, name: str) -> Tensor:
        return rms_norm(value, parameters[f"{prefix}{name}.weight"], shape.eps)

    normed = norm(x, "input_layernorm")
    queries, keys, values = (split_heads(linear(normed, f"self_attn.{name}_proj"), shape.head_dim) for name in "qkv")
    cosines, sines = (table.to(queries.dtype) for table in rotary)
    mixed = attend(_rotate(queries, cosines, sines), _rotate(keys, cosines, sines), values, memory=memory, slot=slot)
    x = x + norm(linear(mixed, "self_attn.o_proj"), "input_layernorm_2")
    normed = norm(x, "post_attention_layernorm")
    inner = F.silu(linear(normed, "mlp.gate_proj")) * linear(normed, "mlp.up_proj")
    return x + norm(linear(inner, "mlp.down_proj"), "post_attention_layernorm_2")


def ouro_loop(
    parameters: Parameters,
    shape: OuroShape,
    state: Tensor,
    positions: Tensor,
    *,
    loop: int = 0,
    memory: Memory | None = None,
) -> Tensor:
    """Runs the whole stack once, and the norm behind it.

    Args:
        parameters: Tensors under their official names.
        shape: Sizes.
        state: [batch, seq, hidden]: embedded tokens, or what the loop before gave.
        positions: Absolute positions, [batch or 1, seq].
        loop: Index of this loop; it names the slots of the memory.
        memory: Earlier keys and values; None when the call holds the whole sequence.

    Returns:
        The normed state, which is read out and feeds the next loop.
    """
    rotary = _rotary(shape, positions)
    for layer in range(shape.num_layers):
        slot = loop * shape.num_layers + layer
        state = _layer(parameters, shape, state, rotary, layer=layer, memory=memory, slot=slot)
    return rms_norm(state, parameters["model.norm.weight"], shape.eps)


def ouro_states(parameters: Parameters, shape: OuroShape, ids: Tensor, memory: Memory | None = None) -> list[Tensor]:
    """Embeds tokens, runs every loop and gives the normed state after each.

    Args:
        parameters: Tensors under their official names.
        shape: Sizes.
        ids: Tokens, [batch, seq].
        memory: Earlier keys and values; None when `ids` starts at position 0.

    Returns:
        `num_loops` states, [batch, seq, hidden]; the one at index d - 1 is read out at depth d.
    """
    positions = torch.arange(ids.shape[1])[None] if memory is None else memory.positions
    state = F.embedding(ids, parameters[EMBEDDING])
    states = []
    for loop in range(shape.num_loops):
        state = ouro_loop(parameters, shape, state, positions, loop=loop, memory=memory)
        states.append(state)
    return states


def ouro_config(shape: OuroShape, *, bos_token_id: int, eos_token_id: int) -> dict[str, object]:
    """Gives the content of `config.json` with the keys of the official releases."""
    return {
        "architectures": ["OuroForCausalLM"],
        "attention_dropout": 0.0,
        "auto_map": {
            "AutoConfig": "configuration_ouro.OuroConfig",
            "AutoModel": "modeling_ouro.OuroModel",
            "AutoModelForCausalLM": "modeling_ouro.OuroForCausalLM",
        },
        "bos_token_id": bos_token_id,
        "early_exit_threshold": 1.0,
        "eos_token_id": eos_token_id,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate_size,
        "layer_types": ["full_attention"] * shape.num_layers,
        "max_position_embeddings": MOST_POSITIONS,
        "max_window_layers": shape.num_layers,
        "model_type": "ouro",
        "num_attention_heads": shape.num_heads,
        "num_hidden_layers": shape.num_layers,
        "num_key_value_heads": shape.num_kv_heads,
        "rms_norm_eps": shape.eps,
        "rope_scaling": None,
        "rope_theta": shape.rope_theta,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "total_ut_steps": shape.num_loops,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": shape.vocab_size,
    }

"""Computes the Huginn architecture for training and evaluation: prelude, recurrent core, coda."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

from reference.training.memory import MOST_POSITIONS, Memory
from reference.training.nets import Parameters, attend, normal, rms_norm


@dataclass(frozen=True, slots=True)
class HuginnShape:
    """Sizes of a tiny Huginn model."""

    hidden_size: int = 128
    """Width of the state (`n_embd`)."""
    num_heads: int = 4
    """Attention heads."""
    intermediate_size: int = 384
    """Width inside the MLP."""
    num_prelude: int = 1
    """Blocks before the recurrence."""
    num_core: int = 2
    """Blocks of the recurrent core."""
    num_coda: int = 1
    """Blocks after the recurrence."""
    recurrence_depth: int = 16
    """Recurrence depth T at evaluation (`mean_recurrence`)."""
    backprop_depth: int = 4
    """Recurrences through which training sends gradients (`mean_backprop_depth`)."""
    vocab_size: int = 1024
    """Rows of the embedding, which is the head as well."""
    rope_base: int = 50_000
    """Base of the rotary angles."""
    eps: float = 1e-6
    """Inside every RMS norm."""

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.hidden_size // self.num_heads


EMBEDDING: Final = "transformer.wte.weight"
HEAD: Final = "lm_head.weight"
ADAPTER: Final = "transformer.adapter.weight"
FINAL_NORM: Final = "transformer.ln_f.weight"
FREQUENCIES: Final = "freqs_cis"

_EMBEDDING_STD: Final = 0.1
_BRANCH: Final = 0.3
"""How small the outputs of attention and MLP start, beside what they are added to; the official scheme has 1/16."""

_STATE_CUT: Final = 3.0
"""The initial state is cut at this many standard deviations."""


def huginn_parameters(shape: HuginnShape, generator: torch.Generator) -> dict[str, Tensor]:
    """Gives fresh parameters under their official names; the head is the very tensor of the embedding.

    Blocks start close to the identity and the adapter as a plain sum, so that at first the recurrences are a deep
    residual network in one basis. Started at random they would turn the state anew at every recurrence, and norms
    after each sum would halve what is left of the input.

    Args:
        shape: Sizes.
        generator: Source of randomness.

    Returns:
        fp32 tensors, the rotary table `freqs_cis` among them; linear weights are [out, in].
    """
    hidden, inner = shape.hidden_size, shape.intermediate_size
    embedding = normal((shape.vocab_size, hidden), _EMBEDDING_STD, generator)
    parameters = {
        EMBEDDING: embedding,
        HEAD: embedding,
        ADAPTER: torch.eye(hidden).repeat(1, 2) * 0.5**0.5,
        FINAL_NORM: torch.ones(hidden),
        FREQUENCIES: _frequencies(shape),
    }
    parts = (("prelude", shape.num_prelude), ("core_block", shape.num_core), ("coda", shape.num_coda))
    for prefix in (f"transformer.{part}.{index}." for part, count in parts for index in range(count)):
        parameters |= {f"{prefix}norm_{number}.weight": torch.ones(hidden) for number in (1, 2, 3, 4)}
        parameters[f"{prefix}attn.Wqkv.weight"] = normal((3 * hidden, hidden), hidden**-0.5, generator)
        parameters[f"{prefix}attn.qk_bias"] = torch.zeros(2, 1, shape.num_heads, shape.head_dim)
        parameters[f"{prefix}attn.proj.weight"] = normal((hidden, hidden), _BRANCH * hidden**-0.5, generator)
        parameters[f"{prefix}mlp.fc.weight"] = normal((2 * inner, hidden), hidden**-0.5, generator)
        parameters[f"{prefix}mlp.proj.weight"] = normal((hidden, inner), _BRANCH * inner**-0.5, generator)
    return parameters


def _frequencies(shape: HuginnShape) -> Tensor:
    """Gives cosine and sine of every position and pair, [1, positions, 1, head_dim / 2, 2]."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = torch.outer(torch.arange(MOST_POSITIONS, dtype=torch.float32), 1.0 / (shape.rope_base**exponents))
    return torch.stack((angles.cos(), angles.sin()), dim=-1)[None, :, None]


def initial_state(shape: HuginnShape, size: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Gives the random state that the recurrence starts from, as the official model draws it.

    A truncated normal of standard deviation sqrt(2 / 5) (before the cut), since sqrt(2 / (5 hidden)) meets the
    embedding scale sqrt(hidden).

    Args:
        shape: Sizes.
        size: Batch and sequence length.
        generator: Source of randomness.

    Returns:
        [batch, seq, hidden].
    """
    std = (2 / 5) ** 0.5
    state = torch.empty(*size, shape.hidden_size)
    return torch.nn.init.trunc_normal_(state, std=std, a=-_STATE_CUT * std, b=_STATE_CUT * std, generator=generator)


def _rotate(x: Tensor, table: Tensor) -> Tensor:
    """Rotates neighbouring pairs in fp32.

    Args:
        x: [batch, seq, head, head_dim].
        table: Cosines and sines, [batch or 1, seq, 1, head_dim / 2, 2].

    Returns:
        A tensor like `x`.
    """
    first, second = torch.unflatten(x.float(), -1, (-1, 2)).unbind(-1)
    cosines, sines = table.unbind(-1)
    turned = torch.stack((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
    return turned.flatten(-2).to(x.dtype)


RunBlock: TypeAlias = Callable[[Parameters, HuginnShape, Tensor, Tensor, Memory | None, int], Tensor]
"""Runs one block, as `huginn_block` does; training puts a compiled one in its place."""


def huginn_block(
    weights: Parameters, shape: HuginnShape, x: Tensor, table: Tensor, memory: Memory | None, slot: int
) -> Tensor:
    """Runs one block: attention and MLP, normed before each and after each sum.

    Args:
        weights: The block's own tensors, under their names within the block.
        shape: Sizes.
        x: [batch, seq, hidden].
        table: Cosines and sines of the running positions.
        memory: Earlier keys and values; None when the call holds the whole sequence.
        slot: Where in the memory this block and recurrence keep theirs.

    Returns:
        A tensor like `x`.
    """

    def linear(value: Tensor, name: str) -> Tensor:
        return F.linear(value, weights[f"{name}.weight"])

    def norm(value: Tensor, number: int) -> Tensor:
        return rms_norm(value, weights[f"norm_{number}.weight"], shape.eps)

    queries, keys, values = torch.unflatten(linear(norm(x, 1), "attn.Wqkv"), -1, (3, shape.num_heads, -1)).unbind(2)
    query_bias, key_bias = weights["attn.qk_bias"].to(queries.dtype).unbind(0)
    queries = _rotate(queries + query_bias, table).transpose(1, 2)
    keys = _rotate(keys + key_bias, table).transpose(1, 2)
    mixed = attend(queries, keys, values.transpose(1, 2), memory=memory, slot=slot)
    x = norm(linear(mixed, "attn.proj") + x, 2)
    gate, value = linear(norm(x, 3), "mlp.fc").chunk(2, dim=-1)
    return norm(linear(F.silu(gate) * value, "mlp.proj") + x, 4)


_BLOCK_PARTS: Final = (
    *(f"norm_{number}.weight" for number in (1, 2, 3, 4)),
    "attn.Wqkv.weight",
    "attn.qk_bias",
    "attn.proj.weight",
    "mlp.fc.weight",
    "mlp.proj.weight",
)
"""Names of a block's tensors within it."""


def block_weights(parameters: Parameters, block: str) -> dict[str, Tensor]:
    """Gives the tensors of one block, for example `core_block.0`, under their names within it."""
    return {part: parameters[f"transformer.{block}.{part}"] for part in _BLOCK_PARTS}


def _table(parameters: Parameters, length: int, memory: Memory | None) -> Tensor:
    """Gives the rotary table of the running positions."""
    table = parameters[FREQUENCIES]
    return table[:, :length] if memory is None else table[0][memory.positions]


def huginn_prelude(
    parameters: Parameters,
    shape: HuginnShape,
    ids: Tensor,
    memory: Memory | None = None,
    run_block: RunBlock = huginn_block,
) -> Tensor:
    """Embeds tokens and runs the prelude.

    Args:
        parameters: Tensors under their official names.
        shape: Sizes.
        ids: Tokens, [batch, seq].
        memory: Earlier keys and values; None when `ids` starts at position 0.
        run_block: Runs each block.

    Returns:
        The injected input of every recurrence, [batch, seq, hidden].
    """
    table = _table(parameters, ids.shape[1], memory)
    x: Tensor = F.embedding(ids, parameters[EMBEDDING]) * shape.hidden_size**0.5
    for index in range(shape.num_prelude):
        x = run_block(block_weights(parameters, f"prelude.{index}"), shape, x, table, memory, index)
    return x


def huginn_recur(
    parameters: Parameters,
    shape: HuginnShape,
    state: Tensor,
    injected: Tensor,
    *,
    recurrence: int = 0,
    memory: Memory | None = None,
    run_block: RunBlock = huginn_block,
) -> Tensor:
    """Runs one recurrence.

    Args:
        parameters: Tensors under their official names.
        shape: Sizes.
        state: [batch, seq, hidden].
        injected: What `huginn_prelude` gave, of the same shape.
        recurrence: Index of this recurrence; it names the slots of the memory.
        memory: Earlier keys and values; None when the call holds the whole sequence.
        run_block: Runs each block.

    Returns:
        The next state.
    """
    table = _table(parameters, state.shape[1], memory)
    x = F.linear(torch.cat((state, injected), dim=-1), parameters[ADAPTER])
    for index in range(shape.num_core):
        slot = shape.num_prelude + shape.num_core * recurrence + index
        x = run_block(block_weights(parameters, f"core_block.{index}"), shape, x, table, memory, slot)
    return x


def huginn_readout(
    parameters: Parameters,
    shape: HuginnShape,
    state: Tensor,
    memory: Memory | None = None,
    run_block: RunBlock = huginn_block,
) -> Tensor:
    """Reads a state out: final norm, coda, the same norm again, head.

    Args:
        parameters: Tensors under their official names.
        shape: Sizes.
        state: [batch, seq, hidden], after any number of recurrences.
        memory: Earlier keys and values; the coda overwrites its own at the running positions.
        run_block: Runs each block.

    Returns:
        Logits, [batch, seq, vocab].
    """
    table = _table(parameters, state.shape[1], memory)
    x = rms_norm(state, parameters[FINAL_NORM], shape.eps)
    for index in range(shape.num_coda):
        x = run_block(block_weights(parameters, f"coda.{index}"), shape, x, table, memory, -1 - index)
    return F.linear(rms_norm(x, parameters[FINAL_NORM], shape.eps), parameters[HEAD])


def huginn_config(shape: HuginnShape, *, bos_token_id: int, eos_token_id: int) -> dict[str, object]:
    """Gives the content of `config.json` with the keys of the official release."""
    return {
        "architecture_class_name": "RecurrentGPT",
        "architectures": ["RavenForCausalLM"],
        "auto_map": {
            "AutoConfig": "raven_config_minimal.RavenConfig",
            "AutoModelForCausalLM": "raven_modeling_minimal.RavenForCausalLM",
        },
        "bias": False,
        "block_class_name": "SandwichBlock",
        "block_size": MOST_POSITIONS,
        "bos_token_id": bos_token_id,
        "eos_token_id": eos_token_id,
        "init_orthogonal": False,
        "init_strategy": "takase",
        "injection_type": "linear",
        "intermediate_size": shape.intermediate_size,
        "mean_backprop_depth": shape.backprop_depth,
        "mean_recurrence": shape.recurrence_depth,
        "mlp_class_name": "GatedMLP",
        "model_type": "huginn_raven",
        "n_embd": shape.hidden_size,
        "n_heads": shape.num_heads,
        "n_layers": shape.num_prelude + shape.num_core + shape.num_coda,
        "n_layers_in_coda": shape.num_coda,
        "n_layers_in_prelude": shape.num_prelude,
        "n_layers_in_recurrent_block": shape.num_core,
        "nonlin_name": "SiLU",
        "norm_class_name": "RMSNorm_llama",
        "norm_eps": shape.eps,
        "num_key_value_heads": shape.num_heads,
        "padding_multiple": 64,
        "qk_bias": True,
        "rope_base": shape.rope_base,
        "sampling_scheme": "poisson-lognormal-filling",
        "state_init": "like-init",
        "tie_embeddings": True,
        "torch_dtype": "float32",
        "vocab_size": shape.vocab_size,
    }

"""The same two networks written the straightforward way: `torch.nn` modules, a preallocated cache, one row a step.

This is the yardstick for the speed of our AR, not a second reference: it knows no lanes, no drafts and no depth
but the full one. Modules carry the official parameter names, so that a checkpoint's tensors load as they are.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from safetensors.torch import load_file
from torch import Tensor, nn

Config: TypeAlias = Mapping[str, Any]
"""A checkpoint's `config.json` as it is read; `reference.models` is where it is checked."""


class Cache:
    """Keys and values of every attention call of a token, in the order in which the calls are made."""

    def __init__(self, num_slots: int, kv_heads: int, length: int, head_dim: int) -> None:
        """Allocates zeroed cells for one sequence."""
        self._keys = torch.zeros(num_slots, 1, kv_heads, length, head_dim)
        self._values = torch.zeros_like(self._keys)
        self._slot = 0
        self.start = 0

    def begin(self, start: int) -> None:
        """Begins a forward pass whose first token stands at position `start`."""
        self._slot = 0
        self.start = start

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Appends keys and values to the next slot and attends to it causally; shapes are `1 heads seq head_dim`."""
        end = self.start + key.shape[2]
        keys, values = self._keys[self._slot], self._values[self._slot]
        keys[:, :, self.start : end] = key
        values[:, :, self.start : end] = value
        self._slot += 1
        return F.scaled_dot_product_attention(
            query, keys[:, :, :end], values[:, :, :end], is_causal=key.shape[2] > 1, enable_gqa=True
        )


class Baseline:
    """A network and its loop."""

    def __init__(self, folder: Path) -> None:
        """Reads a checkpoint in the official format, one file of weights."""
        config = json.loads((folder / "config.json").read_text())
        make: Callable[[Config], OuroNetwork | HuginnNetwork]
        make = OuroNetwork if config["model_type"] == "ouro" else HuginnNetwork
        with torch.device("meta"):  # no weights are drawn: those of the file are put in their place
            self._network = make(config)
        tensors = load_file(folder / "model.safetensors")
        tensors.pop("freqs_cis", None)  # recomputed
        if config["model_type"] != "ouro":  # a tied head may be left out
            tensors.setdefault("lm_head.weight", tensors["transformer.wte.weight"])
        self._network.load_state_dict(tensors, assign=True)

    @torch.inference_mode()
    def generate(self, prompt_ids: Sequence[int], *, max_new_tokens: int, on_token: Callable[[], None]) -> list[int]:
        """Decodes greedily, one token a forward pass after the prompt's.

        Args:
            prompt_ids: Token ids of the prompt.
            max_new_tokens: How many tokens to decode.
            on_token: Called when a token is known.
        """
        network = self._network
        cache = Cache(network.num_slots, network.kv_heads, len(prompt_ids) + max_new_tokens, network.head_dim)
        tokens: list[int] = []
        step, position = list(prompt_ids), 0
        while len(tokens) < max_new_tokens:
            cache.begin(position)
            logits = network(torch.tensor([step]), cache)
            position += len(step)
            step = [int(logits.argmax(-1))]
            tokens += step
            on_token()
        return tokens


class OuroNetwork(nn.Module):
    """Ouro: the whole stack and its final norm, T times."""

    def __init__(self, config: Config) -> None:
        """Makes the modules of a configuration, with the official names."""
        super().__init__()
        self.head_dim, self.kv_heads = config["head_dim"], config["num_key_value_heads"]
        self._num_recurrences = config["total_ut_steps"]
        self.num_slots = self._num_recurrences * config["num_hidden_layers"]
        self.model = _OuroModel(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        angles = _angles(float(config["rope_theta"]), self.head_dim, config["max_position_embeddings"]).repeat(1, 2)
        self._cos, self._sin = angles.cos(), angles.sin()

    def forward(self, token_ids: Tensor, cache: Cache) -> Tensor:
        """Gives the logits behind the last token."""
        here = slice(cache.start, cache.start + token_ids.shape[1])
        rotation = self._cos[here], self._sin[here]
        x: Tensor = self.model.embed_tokens(token_ids)
        for _ in range(self._num_recurrences):
            for layer in self.model.layers:
                x = layer(x, rotation, cache)
            x = self.model.norm(x)
        logits: Tensor = self.lm_head(x[:, -1])
        return logits


class _OuroModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(_OuroLayer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.RMSNorm(width, config["rms_norm_eps"])
        self.early_exit_gate = nn.Linear(width, 1)


class _OuroLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn = _OuroAttention(config)
        self.mlp = _OuroMLP(config)
        self.input_layernorm = nn.RMSNorm(width, eps)
        self.input_layernorm_2 = nn.RMSNorm(width, eps)
        self.post_attention_layernorm = nn.RMSNorm(width, eps)
        self.post_attention_layernorm_2 = nn.RMSNorm(width, eps)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor], cache: Cache) -> Tensor:
        x = x + self.input_layernorm_2(self.self_attn(self.input_layernorm(x), rotation, cache))
        output: Tensor = x + self.post_attention_layernorm_2(self.mlp(self.post_attention_layernorm(x)))
        return output


class _OuroAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self._head_dim = config["hidden_size"], config["head_dim"]
        queries, keys = (config[name] * self._head_dim for name in ("num_attention_heads", "num_key_value_heads"))
        self.q_proj = nn.Linear(width, queries, bias=False)
        self.k_proj = nn.Linear(width, keys, bias=False)
        self.v_proj = nn.Linear(width, keys, bias=False)
        self.o_proj = nn.Linear(queries, width, bias=False)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor], cache: Cache) -> Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (-1, self._head_dim)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        attended = cache.attend(_rotate_halves(query, rotation), _rotate_halves(key, rotation), value)
        output: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return output


class _OuroMLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return output


class HuginnNetwork(nn.Module):
    """Huginn: prelude, a recurrent block that is fed the prelude's output each time, coda."""

    def __init__(self, config: Config) -> None:
        """Makes the modules of a configuration, with the official names."""
        super().__init__()
        width, self.kv_heads = config["n_embd"], config["n_heads"]
        self.head_dim = width // self.kv_heads
        self._num_recurrences = config["mean_recurrence"]
        self.num_slots = (
            config["n_layers_in_prelude"]
            + self._num_recurrences * config["n_layers_in_recurrent_block"]
            + config["n_layers_in_coda"]
        )
        self.transformer = _HuginnModel(config)
        self.lm_head = nn.Linear(width, config["vocab_size"], bias=False)
        angles = _angles(float(config["rope_base"]), self.head_dim, config["block_size"])
        self._cos, self._sin = angles.cos(), angles.sin()

    def forward(self, token_ids: Tensor, cache: Cache) -> Tensor:
        """Gives the logits behind the last token; the initial state is zero (state scale 0)."""
        here = slice(cache.start, cache.start + token_ids.shape[1])
        rotation = self._cos[here], self._sin[here]
        parts = self.transformer
        injected: Tensor = parts.wte(token_ids) * parts.wte.embedding_dim**0.5
        for block in parts.prelude:
            injected = block(injected, rotation, cache)
        x = torch.zeros_like(injected)
        for _ in range(self._num_recurrences):
            x = parts.adapter(torch.cat((x, injected), dim=-1))
            for block in parts.core_block:
                x = block(x, rotation, cache)
        x = parts.ln_f(x)
        for block in parts.coda:
            x = block(x, rotation, cache)
        logits: Tensor = self.lm_head(parts.ln_f(x[:, -1]))
        return logits


class _HuginnModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["n_embd"]
        self.wte = nn.Embedding(config["vocab_size"], width)
        self.prelude = nn.ModuleList(_HuginnBlock(config) for _ in range(config["n_layers_in_prelude"]))
        self.adapter = nn.Linear(2 * width, width, bias=False)
        self.core_block = nn.ModuleList(_HuginnBlock(config) for _ in range(config["n_layers_in_recurrent_block"]))
        self.coda = nn.ModuleList(_HuginnBlock(config) for _ in range(config["n_layers_in_coda"]))
        self.ln_f = nn.RMSNorm(width, config["norm_eps"])


class _HuginnBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, eps = config["n_embd"], config["norm_eps"]
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)
        self.norm_3, self.norm_4 = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)
        self.attn = _HuginnAttention(config)
        self.mlp = _HuginnMLP(config)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor], cache: Cache) -> Tensor:
        x = self.norm_2(self.attn(self.norm_1(x), rotation, cache) + x)
        output: Tensor = self.norm_4(self.mlp(self.norm_3(x)) + x)
        return output


class _HuginnAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self._num_heads = config["n_embd"], config["n_heads"]
        self.Wqkv = nn.Linear(width, 3 * width, bias=False)
        self.qk_bias = nn.Parameter(torch.zeros(2, 1, self._num_heads, width // self._num_heads))
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor], cache: Cache) -> Tensor:
        query, key, value = self.Wqkv(x).unflatten(-1, (3, self._num_heads, -1)).unbind(2)
        query, key, value = (heads.transpose(1, 2) for heads in (query + self.qk_bias[0], key + self.qk_bias[1], value))
        attended = cache.attend(_rotate_pairs(query, rotation), _rotate_pairs(key, rotation), value)
        output: Tensor = self.proj(attended.transpose(1, 2).flatten(2))
        return output


class _HuginnMLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.fc = nn.Linear(config["n_embd"], 2 * config["intermediate_size"], bias=False)
        self.proj = nn.Linear(config["intermediate_size"], config["n_embd"], bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.fc(x).chunk(2, dim=-1)
        output: Tensor = self.proj(F.silu(gate) * up)
        return output


def _angles(theta: float, head_dim: int, length: int) -> Tensor:
    frequencies = theta ** (-torch.arange(0, head_dim, 2, device="cpu") / head_dim)
    return torch.outer(torch.arange(length, device="cpu"), frequencies)


def _rotate_halves(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def _rotate_pairs(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotation
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)

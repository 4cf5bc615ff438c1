"""Ouro: the full-stack looped model. One stack of layers, run T times; every loop ends with the final norm.

The prelude is the embedding alone, the coda nothing, the head one product, so a state of any depth can be read out.
Written from the behaviour of the official network (`OuroForCausalLM`), whose numbers it computes (MOD-12).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from reference.axes import Hidden, Logits, TokenIds
from reference.models.configuration import ConfigReader
from reference.models.layers import RMSNorm, gated_mlp, transposed
from reference.models.protocol import AttentionRows, KVShapes
from reference.models.rope import HalfSplitRotary, RotaryShape

MODEL_TYPE: Final = "ouro"
"""What the configuration calls the family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OuroConfig:
    """What a checkpoint's configuration says, under our names."""

    vocab_size: int
    """Number of token ids."""
    hidden_size: int
    """Width of a state."""
    intermediate_size: int
    """Width inside the MLP."""
    num_layers: int
    """Layers of the stack, L."""
    num_heads: int
    """Query heads."""
    num_kv_heads: int
    """Key/value heads; divides `num_heads`."""
    head_dim: int
    """Size of one head."""
    context_length: int
    """Positions that the model can compute (`max_position_embeddings`)."""
    rope_theta: float
    """Base of the rotary angles."""
    eps: float
    """Added to the mean square in every norm."""
    recurrence_depth: int
    """The model's own number of loops, T (`total_ut_steps`)."""
    exit_threshold: float = 1.0
    """Cumulative exit probability at which the official default call stops (`early_exit_threshold`)."""
    eos_token_ids: frozenset[int] = frozenset()
    """Stop ids."""
    dtype: torch.dtype | None = None
    """Type of the stored weights, as far as the configuration says."""

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Gives the official name and shape of every tensor; linear weights are `[out, in]`."""
        hidden, inner = self.hidden_size, self.intermediate_size
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocab_size, hidden)}
        for layer in range(self.num_layers):
            shapes |= {
                f"model.layers.{layer}.{name}.weight": shape
                for name, shape in (
                    ("self_attn.q_proj", (queries, hidden)),
                    ("self_attn.k_proj", (keys, hidden)),
                    ("self_attn.v_proj", (keys, hidden)),
                    ("self_attn.o_proj", (hidden, queries)),
                    ("mlp.gate_proj", (inner, hidden)),
                    ("mlp.up_proj", (inner, hidden)),
                    ("mlp.down_proj", (hidden, inner)),
                    ("input_layernorm", (hidden,)),
                    ("input_layernorm_2", (hidden,)),
                    ("post_attention_layernorm", (hidden,)),
                    ("post_attention_layernorm_2", (hidden,)),
                )
            }
        return shapes | {
            "model.norm.weight": (hidden,),
            "model.early_exit_gate.weight": (1, hidden),
            "model.early_exit_gate.bias": (1,),
            "lm_head.weight": (self.vocab_size, hidden),
        }

    @classmethod
    def read(cls, values: Mapping[str, object], *, source: str = "config.json") -> "OuroConfig":
        """Reads the content of an official `config.json`.

        The defaults are those of the official configuration class. Settings that would change what is computed in a way
        that this library does not follow must be absent or off.

        Raises:
            CheckpointError: If keys are missing, of a wrong type, contradictory or unsupported; lists all (MOD-11).
        """
        read = ConfigReader(values, source=source)
        read.fixed({"model_type": MODEL_TYPE, "hidden_act": "silu", "tie_word_embeddings": False})
        off: dict[str, object] = {"rope_scaling": None, "rope_parameters": None, "early_exit_step": None}
        off |= {"use_sliding_window": False, "attention_bias": False, "mlp_bias": False}
        read.fixed(off, required=False)
        vocab_size = read.whole("vocab_size", default=151_936)
        hidden_size = read.whole("hidden_size", default=4096)
        num_layers = read.whole("num_hidden_layers", default=32)
        num_heads = read.whole("num_attention_heads", default=32)
        num_kv_heads = read.whole("num_key_value_heads", default=32)
        if read.has("head_dim"):
            head_dim = read.whole("head_dim")
        else:
            head_dim = hidden_size // num_heads
            if read.is_sound("hidden_size", "num_attention_heads") and hidden_size % num_heads:
                read.fault(
                    "head_dim",
                    f"hidden_size={hidden_size} is not divisible by num_attention_heads={num_heads}, and without "
                    "head_dim it must be",
                )
        if read.is_sound("head_dim") and head_dim % 2:
            read.fault("head_dim", f"head_dim={head_dim} is odd, but RoPE turns pairs")
        if read.is_sound("num_attention_heads", "num_key_value_heads") and num_heads % num_kv_heads:
            read.fault(
                "num_key_value_heads",
                f"num_attention_heads={num_heads} is not divisible by num_key_value_heads={num_kv_heads}",
            )
        if read.is_sound("num_hidden_layers"):
            read.agree("layer_types", ["full_attention"] * num_layers, because="since every layer sees all positions")
        config = cls(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            intermediate_size=read.whole("intermediate_size", default=22_016),
            num_layers=num_layers,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            context_length=read.whole("max_position_embeddings", default=32_768),
            rope_theta=read.positive("rope_theta", default=10_000.0),
            eps=read.positive("rms_norm_eps", default=1e-6),
            recurrence_depth=read.whole("total_ut_steps", default=4),
            exit_threshold=read.positive("early_exit_threshold", default=1.0),
            eos_token_ids=read.token_ids("eos_token_id", vocab_size=vocab_size),
            dtype=read.dtype(),
        )
        read.finish()
        return config


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer, joined and transposed for few rows."""

    before_attention: RMSNorm
    """`input_layernorm`."""
    queries_keys_values: Float[Tensor, "hidden qkv"]
    """All query heads, then all key heads, then all value heads."""
    attention_output: Float[Tensor, "width hidden"]
    """`o_proj`."""
    after_attention: RMSNorm
    """`input_layernorm_2`, on the attention output before it is added."""
    before_mlp: RMSNorm
    """`post_attention_layernorm`."""
    gate_and_up: Float[Tensor, "hidden twice_intermediate"]
    """Gate, then up."""
    down: Float[Tensor, "intermediate hidden"]
    """`down_proj`."""
    after_mlp: RMSNorm
    """`post_attention_layernorm_2`, on the MLP output before it is added."""


class Ouro:
    """An Ouro network as a `LoopedModel`. Holds weights and tables, nothing that changes."""

    def __init__(
        self, config: OuroConfig, tensors: Mapping[str, Tensor], *, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Lays the weights out.

        Args:
            config: The sizes.
            tensors: Tensors under their official names, of the shapes of `config.tensor_shapes()`; each is read once.
            dtype: Type to compute in.
            device: Where to compute.
        """
        self.config = config
        self.dtype = dtype
        self.device = device

        def get(name: str) -> Tensor:
            return tensors[name].to(device=device, dtype=dtype)

        def norm(name: str) -> RMSNorm:
            return RMSNorm.of(get(f"{name}.weight"), config.eps)

        def joined(prefix: str, *names: str) -> Tensor:
            return transposed(*(get(f"{prefix}.{name}_proj.weight") for name in names))

        self._embedding = get("model.embed_tokens.weight").clone()
        self._layers = tuple(
            _Layer(
                before_attention=norm(f"{prefix}.input_layernorm"),
                queries_keys_values=joined(f"{prefix}.self_attn", "q", "k", "v"),
                attention_output=joined(f"{prefix}.self_attn", "o"),
                after_attention=norm(f"{prefix}.input_layernorm_2"),
                before_mlp=norm(f"{prefix}.post_attention_layernorm"),
                gate_and_up=joined(f"{prefix}.mlp", "gate", "up"),
                down=joined(f"{prefix}.mlp", "down"),
                after_mlp=norm(f"{prefix}.post_attention_layernorm_2"),
            )
            for prefix in (f"model.layers.{layer}" for layer in range(config.num_layers))
        )
        self._norm = norm("model.norm")
        self._gate_weight = transposed(get("model.early_exit_gate.weight"))
        self._gate_bias = get("model.early_exit_gate.bias").clone()
        self._head = transposed(get("lm_head.weight"))
        self._rotary = HalfSplitRotary.of(
            RotaryShape(base=config.rope_theta, head_dim=config.head_dim, num_positions=config.context_length),
            dtype=dtype,
            device=device,
        )

    @property
    def recurrence_depth(self) -> int:
        """T: `total_ut_steps`."""
        return self.config.recurrence_depth

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""
        return self.config.vocab_size

    @property
    def hidden_size(self) -> int:
        """Width of a row's state."""
        return self.config.hidden_size

    @property
    def context_length(self) -> int:
        """Number of positions that the model can compute."""
        return self.config.context_length

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Stop ids that the checkpoint declares."""
        return self.config.eos_token_ids

    @property
    def kv_shapes(self) -> KVShapes:
        """Every layer is recurrent; prelude and coda attend to nothing."""
        return KVShapes(
            prelude_layers=0,
            recurrent_layers=self.config.num_layers,
            coda_layers=0,
            kv_heads=self.config.num_kv_heads,
            head_dim=self.config.head_dim,
        )

    def prelude(self, token_ids: TokenIds, rows: AttentionRows) -> Hidden:
        """Gives the embeddings, unscaled."""
        del rows
        return self._embedding.index_select(0, token_ids)

    def initial_states(self, positions: Sequence[int], *, seed: int, scale: float) -> None:
        """Gives None: the first loop starts from the embedding, which no later loop sees again. Nothing is random."""
        del positions, seed, scale

    def recur(self, states: Hidden, injected_input: Hidden, rows: AttentionRows) -> Hidden:
        """Runs one loop: all layers, then the final norm. The normed state feeds head, gate and the next loop alike."""
        del injected_input
        return self._norm(self.stack(states, rows))

    def stack(self, states: Hidden, rows: AttentionRows) -> Hidden:
        """Runs all layers once, without the final norm. Norms stand before and after each part, inside the residual."""
        config = self.config
        num_rows, num_kv_heads = states.shape[0], config.num_kv_heads
        num_rotated = config.num_heads + num_kv_heads
        turn = self._rotary.at(rows.positions)
        x = states
        for index, layer in enumerate(self._layers):
            heads = (layer.before_attention(x) @ layer.queries_keys_values).view(num_rows, -1, config.head_dim)
            rotated, values = heads.split_with_sizes((num_rotated, num_kv_heads), 1)
            rotated = self._rotary.rotate(rotated, turn)
            queries, keys = rotated.split_with_sizes((config.num_heads, num_kv_heads), 1)
            attended = rows.attend(index, queries, keys, values, scale=config.head_dim**-0.5)
            x = x + layer.after_attention(attended @ layer.attention_output)
            x = x + layer.after_mlp(gated_mlp(layer.before_mlp(x), layer.gate_and_up) @ layer.down)
        return x

    def coda(self, states: Hidden, rows: AttentionRows) -> Hidden:
        """Gives the states: they are normed already, at every depth."""
        del rows
        return states

    def head(self, coda_output: Hidden) -> Logits:
        """Gives the logits, in the model's type."""
        return coda_output @ self._head

    def gate_logits(self, states: Hidden) -> Float[Tensor, " rows"]:
        """Gives the exit gate's value for states of one depth; its sigmoid is the chance to exit there."""
        return torch.addmm(self._gate_bias, states, self._gate_weight).squeeze(-1)

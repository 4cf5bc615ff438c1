"""Huginn: the looped model with prelude, recurrent core and coda.

The prelude's output e is injected into every recurrence: `x <- core(adapter([x ; e]))`, starting from a random x. A
readout at any depth is `head(ln_f(coda(ln_f(x))))`. Written from the behaviour of the official network
(`RavenForCausalLM`), whose numbers it computes (MOD-12).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from reference import sampling
from reference.axes import Hidden, Logits, TokenIds
from reference.models.configuration import ConfigReader
from reference.models.layers import RMSNorm, gated_mlp, transposed
from reference.models.protocol import AttentionRows, KVShapes
from reference.models.rope import InterleavedRotary, RotaryShape

MODEL_TYPE: Final = "huginn_raven"
"""What the configuration calls the family."""

_HEAD: Final = "lm_head.weight"
_EMBEDDING: Final = "transformer.wte.weight"
_ROTARY_TABLE: Final = "freqs_cis"
_TABLE_TOLERANCE: Final = 1e-2
"""Largest difference of a stored rotary table that 16-bit storage explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HuginnConfig:
    """What a checkpoint's configuration says, under our names."""

    vocab_size: int
    """Number of token ids."""
    hidden_size: int
    """Width of a state (`n_embd`)."""
    intermediate_size: int
    """Width inside the MLP."""
    num_heads: int
    """Attention heads (`n_heads`); as many for keys and values."""
    prelude_layers: int
    """Blocks before the recurrence."""
    core_layers: int
    """Blocks of the recurrent core."""
    coda_layers: int
    """Blocks after the recurrence."""
    context_length: int
    """Positions that the model can compute (`block_size`)."""
    rope_base: float
    """Base of the rotary angles."""
    eps: float
    """Added to the mean square in every norm."""
    recurrence_depth: int
    """The model's own number of recurrences, T (`mean_recurrence`)."""
    eos_token_ids: frozenset[int] = frozenset()
    """Stop ids."""
    dtype: torch.dtype | None = None
    """Type of the stored weights, as far as the configuration says."""

    @property
    def head_dim(self) -> int:
        """Size of one head."""
        return self.hidden_size // self.num_heads

    @property
    def rotary_shape(self) -> RotaryShape:
        """What the rotary table depends on."""
        return RotaryShape(base=self.rope_base, head_dim=self.head_dim, num_positions=self.context_length)

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Gives the official name and shape of every tensor that must be there; linear weights are `[out, in]`."""
        hidden, inner = self.hidden_size, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            _EMBEDDING: (self.vocab_size, hidden),
            "transformer.adapter.weight": (hidden, 2 * hidden),
            "transformer.ln_f.weight": (hidden,),
        }
        parts = (("prelude", self.prelude_layers), ("core_block", self.core_layers), ("coda", self.coda_layers))
        for block in (f"transformer.{part}.{index}" for part, count in parts for index in range(count)):
            shapes |= {f"{block}.norm_{number}.weight": (hidden,) for number in (1, 2, 3, 4)}
            shapes[f"{block}.attn.Wqkv.weight"] = (3 * hidden, hidden)
            shapes[f"{block}.attn.qk_bias"] = (2, 1, self.num_heads, self.head_dim)
            shapes[f"{block}.attn.proj.weight"] = (hidden, hidden)
            shapes[f"{block}.mlp.fc.weight"] = (2 * inner, hidden)
            shapes[f"{block}.mlp.proj.weight"] = (hidden, inner)
        return shapes

    def redundant_tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Gives the tensors that some official files hold although they follow from the rest."""
        return {
            _HEAD: (self.vocab_size, self.hidden_size),
            _ROTARY_TABLE: (1, self.context_length, 1, self.head_dim // 2, 2),
        }

    def contradictions(self, tensors: Mapping[str, Tensor]) -> list[str]:
        """Lists the redundant tensors that do not say what follows from the rest."""
        faults = []
        if _HEAD in tensors and not torch.equal(tensors[_HEAD], tensors[_EMBEDDING]):
            faults.append(f"{_HEAD}: differs from {_EMBEDDING}, to which it is tied")
        if _ROTARY_TABLE in tensors:
            stored = tensors[_ROTARY_TABLE].double()
            angles = self.rotary_shape.angles(dtype=torch.float64, device=stored.device)
            table = torch.stack((angles.cos(), angles.sin()), dim=-1)[None, :, None]
            # Written so that NaN is a difference too.
            if not bool(((stored - table).abs() <= _TABLE_TOLERANCE).all()):
                faults.append(f"{_ROTARY_TABLE}: is not the rotary table of rope_base={self.rope_base}")
        return faults

    @classmethod
    def read(cls, values: Mapping[str, object], *, source: str = "config.json") -> "HuginnConfig":
        """Reads the content of an official `config.json`.

        The names of the template (`n_embd`, `n_heads`, `n_layers`) and those that the official class maps to them
        (`hidden_size`, `num_attention_heads`, `num_hidden_layers`) are both accepted. Values that the official class
        derives itself are not read, but must not contradict. Settings that would change what is computed in a way that
        this library does not follow must be absent or off.

        Raises:
            CheckpointError: If keys are missing, of a wrong type, contradictory or unsupported; lists all (MOD-11).
        """
        read = ConfigReader(values, source=source)
        read.fixed(
            {
                "model_type": MODEL_TYPE,
                "block_class_name": "SandwichBlock",
                "norm_class_name": "RMSNorm_llama",
                "mlp_class_name": "GatedMLP",
                "nonlin_name": "SiLU",
                "injection_type": "linear",
                "state_init": "like-init",
                "init_strategy": "takase",
                "qk_bias": True,
                "bias": False,
                "tie_embeddings": True,
            }
        )
        unless_absent = {"architecture_class_name": "RecurrentGPT", "tie_word_embeddings": True, "test_time_noise": 0}
        read.fixed(unless_absent, required=False)

        def aliased(name: str, alias: str) -> int:
            if not read.has(name) and read.has(alias):
                return read.whole(alias)
            value = read.whole(name)
            read.agree(alias, value, because=f"as {name} says")
            return value

        vocab_size = read.whole("vocab_size")
        hidden_size = aliased("n_embd", "hidden_size")
        num_heads = aliased("n_heads", "num_attention_heads")
        num_layers = aliased("n_layers", "num_hidden_layers")
        config = cls(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            intermediate_size=read.whole("intermediate_size"),
            num_heads=num_heads,
            prelude_layers=read.whole("n_layers_in_prelude", minimum=0),
            core_layers=read.whole("n_layers_in_recurrent_block"),
            coda_layers=read.whole("n_layers_in_coda", minimum=0),
            context_length=read.whole("block_size"),
            rope_base=read.positive("rope_base"),
            eps=read.positive("norm_eps"),
            recurrence_depth=read.whole("mean_recurrence"),
            eos_token_ids=read.token_ids("eos_token_id", vocab_size=vocab_size),
            dtype=read.dtype(),
        )
        parts = ("n_layers_in_prelude", "n_layers_in_recurrent_block", "n_layers_in_coda")
        total = config.prelude_layers + config.core_layers + config.coda_layers
        if read.is_sound("n_layers", "num_hidden_layers", *parts) and num_layers != total:
            read.fault("n_layers", f"n_layers: expected {total}, the sum of {', '.join(parts)}, found {num_layers}")
        if read.is_sound("n_embd", "hidden_size", "n_heads", "num_attention_heads"):
            if hidden_size % (2 * num_heads):
                read.fault("n_embd", f"n_embd={hidden_size} does not split into n_heads={num_heads} heads of even size")
            read.agree("num_key_value_heads", num_heads, because="the number of heads")
            read.agree("head_dim", config.head_dim, because="n_embd / n_heads")
        if read.has("padding_multiple"):
            multiple = read.whole("padding_multiple")
            if read.is_sound("vocab_size", "padding_multiple") and vocab_size % multiple:
                what = f"vocab_size={vocab_size} is not divisible by padding_multiple={multiple}"
                read.fault("padding_multiple", what)
        read.agree("padded_vocab_size", vocab_size, because="as vocab_size says")
        read.finish()
        return config


@dataclass(frozen=True, slots=True)
class _Block:
    """Weights of one block, joined and transposed for few rows."""

    before_attention: RMSNorm
    """`norm_1`."""
    queries_keys_values: Float[Tensor, "hidden qkv"]
    """`Wqkv`: queries, then keys, then values."""
    bias: Float[Tensor, " qkv"]
    """`qk_bias` on queries and keys; zero on values."""
    attention_output: Float[Tensor, "hidden hidden"]
    """`attn.proj`."""
    after_attention: RMSNorm
    """`norm_2`, on the residual sum."""
    before_mlp: RMSNorm
    """`norm_3`."""
    gate_and_up: Float[Tensor, "hidden twice_intermediate"]
    """`mlp.fc`: gate, then up."""
    down: Float[Tensor, "intermediate hidden"]
    """`mlp.proj`."""
    after_mlp: RMSNorm
    """`norm_4`, on the residual sum."""


class Huginn:
    """A Huginn network as a `LoopedModel`. Holds weights and tables, nothing that changes."""

    def __init__(
        self, config: HuginnConfig, tensors: Mapping[str, Tensor], *, dtype: torch.dtype, device: torch.device
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

        def blocks(part: str, count: int) -> tuple[_Block, ...]:
            return tuple(
                _Block(
                    before_attention=norm(f"{prefix}.norm_1"),
                    queries_keys_values=transposed(get(f"{prefix}.attn.Wqkv.weight")),
                    bias=torch.nn.functional.pad(get(f"{prefix}.attn.qk_bias").flatten(), (0, config.hidden_size)),
                    attention_output=transposed(get(f"{prefix}.attn.proj.weight")),
                    after_attention=norm(f"{prefix}.norm_2"),
                    before_mlp=norm(f"{prefix}.norm_3"),
                    gate_and_up=transposed(get(f"{prefix}.mlp.fc.weight")),
                    down=transposed(get(f"{prefix}.mlp.proj.weight")),
                    after_mlp=norm(f"{prefix}.norm_4"),
                )
                for prefix in (f"transformer.{part}.{index}" for index in range(count))
            )

        # The head is tied to the embedding but laid out for products, which read it row by row the other way.
        self._embedding = get(_EMBEDDING).clone()
        self._head = transposed(self._embedding)
        self._prelude = blocks("prelude", config.prelude_layers)
        self._adapter = transposed(get("transformer.adapter.weight"))
        self._core = blocks("core_block", config.core_layers)
        self._coda = blocks("coda", config.coda_layers)
        self._norm = norm("transformer.ln_f")
        self._rotary = InterleavedRotary.of(config.rotary_shape, dtype=dtype, device=device)

    @property
    def recurrence_depth(self) -> int:
        """T: `mean_recurrence`."""
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
        """All three parts attend."""
        return KVShapes(
            prelude_layers=self.config.prelude_layers,
            recurrent_layers=self.config.core_layers,
            coda_layers=self.config.coda_layers,
            kv_heads=self.config.num_heads,
            head_dim=self.config.head_dim,
        )

    def prelude(self, token_ids: TokenIds, rows: AttentionRows) -> Hidden:
        """Scales the embeddings by the square root of their width and runs the prelude blocks."""
        embedded = self._embedding.index_select(0, token_ids) * math.sqrt(self.hidden_size)
        return self._run(self._prelude, embedded, rows)

    def initial_states(self, positions: Sequence[int], *, seed: int, scale: float) -> Hidden:
        """Draws the states at depth 0: normal noise of standard deviation `scale * sqrt(2 / 5)`, cut at three of them.

        The official network draws with standard deviation `sqrt(2 / (5 * hidden_size))` and scales as the embeddings
        are scaled, by `sqrt(hidden_size)`. It draws anew at every call; here the draw is a function of seed and
        position, so that a position restarts from the same state after a flush.
        """
        if scale == 0:
            return torch.zeros(len(positions), self.hidden_size, dtype=self.dtype, device=self.device)
        noise = sampling.initial_noise(seed, positions, self.hidden_size)
        return (noise * (scale * math.sqrt(2 / 5))).to(dtype=self.dtype, device=self.device)

    def recur(self, states: Hidden, injected_input: Hidden, rows: AttentionRows) -> Hidden:
        """Runs the core once on `adapter([state ; e])`; no norm stands between recurrences."""
        mixed = torch.cat((states, injected_input), dim=-1) @ self._adapter
        return self._run(self._core, mixed, rows)

    def coda(self, states: Hidden, rows: AttentionRows) -> Hidden:
        """Runs the coda blocks between two applications of the same final norm."""
        return self._norm(self._run(self._coda, self.latent(states), rows))

    def latent(self, states: Hidden) -> Hidden:
        """Gives the normed states, which the coda starts from; the official network calls them `latent_states`."""
        return self._norm(states)

    def head(self, coda_output: Hidden) -> Logits:
        """Gives the logits, in the model's type; the official network casts them to float32 afterwards."""
        return coda_output @ self._head

    def _run(self, blocks: tuple[_Block, ...], states: Hidden, rows: AttentionRows) -> Hidden:
        """Runs blocks one after the other. Norms stand before each part and on each residual sum."""
        num_heads, head_dim = self.config.num_heads, self.config.head_dim
        turn = self._rotary.at(rows.positions)
        x = states
        for index, block in enumerate(blocks):
            joined = block.before_attention(x) @ block.queries_keys_values + block.bias
            rotated, values = joined.view(-1, 3 * num_heads, head_dim).split_with_sizes((2 * num_heads, num_heads), 1)
            queries, keys = self._rotary.rotate(rotated, turn).split_with_sizes((num_heads, num_heads), 1)
            attended = rows.attend(index, queries, keys, values, scale=head_dim**-0.5)
            x = block.after_attention(torch.addmm(x, attended, block.attention_output))
            x = block.after_mlp(torch.addmm(x, gated_mlp(block.before_mlp(x), block.gate_and_up), block.down))
        return x

"""How large a looped model is: the few integers that all bytes and operations follow from."""

from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from reference.errors import ParameterError


class Part(Enum):
    """The part of a model that a call runs."""

    PRELUDE = "prelude"
    """Embedding and prelude layers: once for every position that starts."""
    RECURRENT = "recurrent"
    """One recurrence: once in every tick."""
    READOUT = "readout"
    """Coda and head: once in every tick after which something is read out."""


class Family(Enum):
    """What the parameters outside the layers are, and which part they belong to."""

    OURO = "ouro"
    """The whole stack is the loop. Each recurrence ends with the final norm; the head is a matrix of its own."""
    HUGINN = "huginn_raven"
    """Prelude, core, coda. A recurrence begins with an adapter; the readout has the norm; the head is the embedding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopedShape:
    """Sizes of a looped model."""

    name: str
    """What reports call it."""
    family: Family
    """Which of the two families it belongs to."""
    vocab_size: int
    """Token ids."""
    hidden_size: int
    """Width of a state, C."""
    intermediate_size: int
    """Width inside the gated MLP, I."""
    num_heads: int
    """Query heads, H."""
    num_kv_heads: int
    """Key/value heads."""
    head_dim: int
    """Size of one head, D."""
    prelude_layers: int
    """Layers before the loop."""
    recurrent_layers: int
    """Layers of one recurrence."""
    coda_layers: int
    """Layers after the loop."""
    recurrence_depth: int
    """T: recurrences of a finished position."""

    @property
    def qkv_size(self) -> int:
        """Width of a row's queries, keys and values together."""
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim

    @property
    def kv_size(self) -> int:
        """Elements of one cell: a key and a value."""
        return 2 * self.num_kv_heads * self.head_dim

    @property
    def layer_matrices(self) -> tuple[tuple[int, int], ...]:
        """The matrices of one layer as (fan in, fan out): queries/keys/values, output, gate/up, down."""
        hidden, inner, width = self.hidden_size, self.intermediate_size, self.num_heads * self.head_dim
        return ((hidden, self.qkv_size), (width, hidden), (hidden, 2 * inner), (inner, hidden))

    @property
    def layer_vector_elements(self) -> int:
        """Elements of one layer's norms and biases."""
        bias = (self.num_heads + self.num_kv_heads) * self.head_dim if self.family is Family.HUGINN else 0
        return 4 * self.hidden_size + bias

    def outer_matrices(self, part: Part) -> tuple[tuple[int, int], ...]:
        """Gives the matrices of a part that are in none of its layers, as (fan in, fan out)."""
        match part:
            case Part.READOUT:
                return ((self.hidden_size, self.vocab_size),)
            case Part.RECURRENT if self.family is Family.HUGINN:
                return ((2 * self.hidden_size, self.hidden_size),)
            case _:
                return ()

    def outer_vector_elements(self, part: Part) -> int:
        """Gives the elements of a part's norm that is in none of its layers."""
        normed = Part.RECURRENT if self.family is Family.OURO else Part.READOUT
        return self.hidden_size if part is normed else 0

    def num_layers(self, part: Part) -> int:
        """Counts the layers that a call of `part` runs."""
        match part:
            case Part.PRELUDE:
                return self.prelude_layers
            case Part.RECURRENT:
                return self.recurrent_layers
            case Part.READOUT:
                return self.coda_layers

    def num_slots(self, recurrence_slots: int | None = None) -> int:
        """Counts the KV slots of a position; the recurrent layers have one for each of `recurrence_slots` (None: T)."""
        slots = self.recurrence_depth if recurrence_slots is None else recurrence_slots
        return self.prelude_layers + slots * self.recurrent_layers + self.coda_layers

    @property
    def num_parameters(self) -> int:
        """Counts the parameters of the whole model, tied ones once."""
        layers = sum(self.num_layers(part) for part in Part)
        layer = sum(fan_in * fan_out for fan_in, fan_out in self.layer_matrices) + self.layer_vector_elements
        outside = sum(
            sum(fan_in * fan_out for fan_in, fan_out in self.outer_matrices(part)) + self.outer_vector_elements(part)
            for part in Part
        )
        # Ouro has an embedding beside its head, and an exit gate with a bias, which decoding at full depth never runs.
        own = self.vocab_size * self.hidden_size + self.hidden_size + 1 if self.family is Family.OURO else 0
        return layers * layer + outside + own

    def with_depth(self, recurrence_depth: int) -> "LoopedShape":
        """Gives the same model run at another depth."""
        return replace(self, recurrence_depth=recurrence_depth)


_OURO: Final = LoopedShape(
    name="ouro-2.6b",
    family=Family.OURO,
    vocab_size=49_152,
    hidden_size=2048,
    intermediate_size=5632,
    num_heads=16,
    num_kv_heads=16,
    head_dim=128,
    prelude_layers=0,
    recurrent_layers=48,
    coda_layers=0,
    recurrence_depth=4,
)

_HUGINN: Final = LoopedShape(
    name="huginn-3.5b",
    family=Family.HUGINN,
    vocab_size=65_536,
    hidden_size=5280,
    intermediate_size=17_920,
    num_heads=55,
    num_kv_heads=55,
    head_dim=96,
    prelude_layers=2,
    recurrent_layers=4,
    coda_layers=2,
    recurrence_depth=32,
)

PRESETS: Final = MappingProxyType(
    {shape.name: shape for shape in (replace(_OURO, name="ouro-1.4b", recurrent_layers=24), _OURO, _HUGINN)}
)
"""The published models by name. Source: their `config.json`."""


def preset(name: str) -> LoopedShape:
    """Gives a published model's shape.

    Raises:
        ParameterError: If there is none of this name.
    """
    if name not in PRESETS:
        raise ParameterError(f"model={name!r} is none of {', '.join(PRESETS)}")
    return PRESETS[name]

"""What a decoder may know of a looped model.

Engines, the oracle and the benchmark see a model only through `LoopedModel`; nothing here knows how a model computes.
A model works on *rows*: row k of a call is one position at one recurrence, and a call may mix positions and recurrences
freely, because all rows share the weights and differ only in the KV slot they read and write (MOD-03).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from reference.axes import Attended, Hidden, KeysOrValues, Logits, Positions, Queries, TokenIds


@dataclass(frozen=True, slots=True, kw_only=True)
class KVShapes:
    """Shape of a model's KV cells: enough to allocate them and to count their bytes."""

    prelude_layers: int
    """Attention layers of the prelude; each has one slot per position."""
    recurrent_layers: int
    """Attention layers of the recurrent block; each has one slot per position and recurrence."""
    coda_layers: int
    """Attention layers of the coda; each has one slot per position."""
    kv_heads: int
    """Key/value heads of every layer."""
    head_dim: int
    """Size of one head's key, and of its value."""

    def num_slots(self, recurrence_depth: int) -> int:
        """Counts the KV slots of one position at `recurrence_depth` recurrences (KV-01)."""
        return self.prelude_layers + recurrence_depth * self.recurrent_layers + self.coda_layers

    def bytes_per_position(self, recurrence_depth: int, *, bytes_per_element: int) -> int:
        """Counts the bytes that one position occupies: a key and a value in every slot (KV-01)."""
        return self.num_slots(recurrence_depth) * 2 * self.kv_heads * self.head_dim * bytes_per_element


@runtime_checkable  # for the tests, which check annotations at run time
class AttentionRows(Protocol):
    """The rows of one call as an attention layer sees them; made by `reference.kv`."""

    @property
    def positions(self) -> Positions:
        """Absolute positions of the rows, on the model's device; what RoPE rotates by."""

    def attend(self, layer: int, query: Queries, key: KeysOrValues, value: KeysOrValues, *, scale: float) -> Attended:
        """Writes every row's cell of `layer`, then attends each row to its slot at positions up to its own.

        Args:
            layer: Index of the layer within its part (prelude, recurrent block or coda), from 0.
            query: Rotated queries.
            key: Rotated keys to be written.
            value: Values to be written.
            scale: Factor on the dot products, usually `head_dim ** -0.5`.

        Returns:
            The attention outputs, heads concatenated.
        """


@runtime_checkable  # for the tests, which check annotations at run time
class LoopedModel(Protocol):
    """A looped language model: prelude, a recurrent block applied `recurrence_depth` times, coda and head.

    All methods are pure but for the KV cells they write through `rows.attend`. Rows are independent of each other
    except through these cells.
    """

    @property
    def recurrence_depth(self) -> int:
        """The model's own number of recurrences T; a call may use another (MOD-02)."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""

    @property
    def hidden_size(self) -> int:
        """Width of a row's state."""

    @property
    def context_length(self) -> int:
        """Number of positions that the model can compute."""

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Stop ids that the checkpoint declares; may be empty."""

    @property
    def kv_shapes(self) -> KVShapes:
        """Shape of the KV cells."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of weights, states and logits."""

    @property
    def device(self) -> torch.device:
        """Where weights, states and logits live."""

    def prelude(self, token_ids: TokenIds, rows: AttentionRows) -> Hidden:
        """Embeds tokens and runs the prelude; its output is the injected input of every recurrence."""

    def initial_states(self, positions: Sequence[int], *, seed: int, scale: float) -> Hidden | None:
        """Gives the states at depth 0, a function of seed and position alone (MOD-05).

        Returns:
            One row per position; None if this model starts from the injected input instead.
        """

    def recur(self, states: Hidden, injected_input: Hidden, rows: AttentionRows) -> Hidden:
        """Runs the recurrent block once on every row, from its depth r to r + 1."""

    def coda(self, states: Hidden, rows: AttentionRows) -> Hidden:
        """Turns states of any depth into what the head reads (MOD-04); writes the coda's KV cells."""

    def head(self, coda_output: Hidden) -> Logits:
        """Gives the logits of the token that follows each row's position."""

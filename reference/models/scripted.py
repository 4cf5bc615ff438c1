"""A table-driven model: any function from (tokens seen, depth) to logits, seen through real KV cells.

For tests of decoders free of arithmetic. It does not take the prefix from its caller: at every recurrence each row
reads the tokens of all earlier positions out of the KV slot of that recurrence, by attention. A decoder or a cache that
serves a wrong cell changes what the table is asked; if a row's recurrences disagree on the prefix, its logits are NaN.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from reference.axes import Hidden, Logits, TokenIds
from reference.models.protocol import AttentionRows, KVShapes


@dataclass(frozen=True, kw_only=True)
class ScriptedModel:
    """A looped model of full-stack type whose readouts come from a function.

    A state holds `token + 1` at the index of every position seen so far, zero elsewhere, and the depth in its last
    element. Values in the KV cells hold a row's own token at its own index; with equal keys attention is their mean.
    """

    table: Callable[[tuple[int, ...], int], Sequence[float]]
    """Gives the logits after the tokens of a prefix, read out at a depth."""
    vocab_size: int
    """Number of token ids."""
    recurrence_depth: int
    """The model's own T."""
    context_length: int = 64
    """Number of positions that the model can compute."""
    eos_token_ids: frozenset[int] = frozenset()
    """Stop ids that the model declares."""
    dtype: torch.dtype = torch.float64
    """Type of states and logits."""
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    """Where states and logits live."""

    @property
    def hidden_size(self) -> int:
        """One element per position, one for the depth."""
        return self.context_length + 1

    @property
    def kv_shapes(self) -> KVShapes:
        """One recurrent layer with one head as wide as the context."""
        return KVShapes(prelude_layers=0, recurrent_layers=1, coda_layers=0, kv_heads=1, head_dim=self.context_length)

    def prelude(self, token_ids: TokenIds, rows: AttentionRows) -> Hidden:
        """Gives each row its own token at its own index."""
        index = torch.nn.functional.one_hot(rows.positions, self.context_length + 1)
        return (index * (token_ids + 1).unsqueeze(-1)).to(self.dtype)

    def initial_states(self, positions: Sequence[int], *, seed: int, scale: float) -> None:
        """Gives None: recurrences start from the injected input, and there is no randomness."""
        del positions, seed, scale

    def recur(self, states: Hidden, injected_input: Hidden, rows: AttentionRows) -> Hidden:
        """Reads the tokens of all positions up to each row's own from its slot."""
        own = injected_input[:, :-1].unsqueeze(1)
        mean = rows.attend(0, torch.zeros_like(own), torch.zeros_like(own), own, scale=1.0)
        seen = (mean * (rows.positions + 1).unsqueeze(-1)).round()
        before, depth = states[:, :-1], states[:, -1:]
        same = ((before == seen) | (depth == 0)).all(dim=-1, keepdim=True)
        return torch.cat((torch.where(same, seen, torch.nan), depth + 1), dim=-1)

    def coda(self, states: Hidden, rows: AttentionRows) -> Hidden:
        """Gives the states."""
        del rows
        return states

    def head(self, coda_output: Hidden) -> Logits:
        """Asks the table."""
        logits = [self._logits(row) for row in coda_output.tolist()]
        return torch.tensor(logits, dtype=self.dtype, device=self.device)

    def _logits(self, row: Sequence[float]) -> Sequence[float]:
        *seen, depth = row
        if any(number != number for number in seen):  # noqa: PLR0124 - NaN
            return [torch.nan] * self.vocab_size
        # Positions are seen without gaps, so the nonzero elements come first.
        return self.table(tuple(round(number) - 1 for number in seen if number), round(depth))

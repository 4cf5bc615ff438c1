"""An Ouro network in NumPy with a cache that only grows for every recurrence of every layer.

A row appends its key and value and attends to all that is there. The rows of a wavefront's call are in different
recurrences, so no mask is needed. The price is that a flush must cut the caches back; `PLANTED_BUG=stale-cells` forgets
it.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

FORGETS_TO_CUT = os.environ.get("PLANTED_BUG") == "stale-cells"

Array = NDArray[np.float32]


@dataclass
class Lane:
    """A position in flight."""

    position: int
    token: int
    state: Array
    incarnation: int  # how many lanes were started at the position before this one
    depth: int = 0


class Network:
    """Weights and caches."""

    def __init__(self, folder: Path) -> None:
        """Loads a folder in the official format."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.weights = {
            name: array.astype(np.float32) for name, array in load_file(folder / "model.safetensors").items()
        }
        self.depth, self.layers = int(config["total_ut_steps"]), int(config["num_hidden_layers"])
        self.heads, self.size = int(config["num_key_value_heads"]), int(config["head_dim"])  # queries come in groups
        self.context, self.eps = int(config["max_position_embeddings"]), float(config["rms_norm_eps"])
        self.turn = config["rope_theta"] ** -(np.arange(0, self.size, 2) / self.size)
        self.clear()

    def clear(self) -> None:
        """Empties the caches."""
        empty = np.zeros((0, self.heads, self.size), np.float32)
        self.keys = [[empty] * self.layers for _ in range(self.depth)]
        self.values = [[empty] * self.layers for _ in range(self.depth)]
        self.owners: list[list[tuple[int, int]]] = [[] for _ in range(self.depth)]  # position, incarnation

    def cut(self, length: int) -> None:
        """Takes back all cells at positions from `length` on."""
        if FORGETS_TO_CUT:
            return
        for slot in range(self.depth):
            self.owners[slot] = self.owners[slot][:length]
            self.keys[slot] = [keys[:length] for keys in self.keys[slot]]
            self.values[slot] = [values[:length] for values in self.values[slot]]

    def advance(self, rows: list[Lane]) -> list[list[list[int]]]:
        """Runs one recurrence on every row; says of each which cells it read."""
        states = np.stack([row.state for row in rows])
        for layer in range(self.layers):
            states = self.block(layer, states, rows)
        states = self.norm("model.norm", states)
        reads = []
        for row, state in zip(rows, states, strict=True):
            self.owners[row.depth].append((row.position, row.incarnation))
            reads.append(runs_of(self.owners[row.depth], row.depth))
            row.state = state
            row.depth += 1
        return reads

    def block(self, layer: int, x: Array, rows: list[Lane]) -> Array:
        """Runs one layer."""
        name = f"model.layers.{layer}"
        normed = self.norm(f"{name}.input_layernorm", x)
        split = (len(rows), -1, self.size)
        query, key, value = (self.linear(f"{name}.self_attn.{part}_proj", normed).reshape(split) for part in "qkv")
        where = np.array([row.position for row in rows])
        query, key = self.rotated(query, where), self.rotated(key, where)
        for slot in {row.depth for row in rows}:  # in a wavefront every row has its own, in a prefill all have one
            mine = [row.depth == slot for row in rows]
            self.keys[slot][layer] = np.concatenate((self.keys[slot][layer], key[mine]))
            self.values[slot][layer] = np.concatenate((self.values[slot][layer], value[mine]))
        behind = Counter(row.depth for row in rows)  # rows behind this one whose cells it must not see
        attended = []
        for row, one in zip(rows, query, strict=True):
            behind[row.depth] -= 1
            cells = slice(len(self.keys[row.depth][layer]) - behind[row.depth])
            groups = one.reshape(self.heads, -1, self.size)
            scores = np.einsum("hgd,nhd->hgn", groups, self.keys[row.depth][layer][cells]) * self.size**-0.5
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            attended.append(np.einsum("hgn,nhd->hgd", weights, self.values[row.depth][layer][cells]).ravel())
        output = self.linear(f"{name}.self_attn.o_proj", np.stack(attended))
        x = x + self.norm(f"{name}.input_layernorm_2", output)
        normed = self.norm(f"{name}.post_attention_layernorm", x)
        gate, up = self.linear(f"{name}.mlp.gate_proj", normed), self.linear(f"{name}.mlp.up_proj", normed)
        output = self.linear(f"{name}.mlp.down_proj", gate / (1 + np.exp(-gate)) * up)
        return x + self.norm(f"{name}.post_attention_layernorm_2", output)

    def rotated(self, heads: Array, positions: NDArray[np.int64]) -> Array:
        """Turns the first half of every head against the second."""
        angles = np.outer(positions, self.turn)[:, None]
        cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        first, second = np.split(heads, 2, axis=-1)
        return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)

    def embed(self, token: int) -> Array:
        """Looks a token up."""
        embedding: Array = self.weights["model.embed_tokens.weight"][token]
        return embedding

    def read_out(self, lane: Lane) -> int:
        """Gives the token that a lane says."""
        return int(np.argmax(self.linear("lm_head", lane.state)))

    def linear(self, name: str, x: Array) -> Array:
        """Multiplies by a matrix."""
        return x @ self.weights[f"{name}.weight"].T

    def norm(self, name: str, x: Array) -> Array:
        """Scales rows to unit root mean square."""
        scaled: Array = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps)
        return scaled * self.weights[f"{name}.weight"]


def runs_of(owners: list[tuple[int, int]], recurrence: int) -> list[list[int]]:
    """Gives the cells of one recurrence, neighbours of one kind together: start, stop, recurrence, incarnation."""
    runs = []
    for (_, incarnation), group in groupby(enumerate(owners), key=lambda pair: (pair[1][0] - pair[0], pair[1][1])):
        positions = [position for _, (position, _) in group]
        runs.append([positions[0], positions[-1] + 1, recurrence, incarnation])
    return runs

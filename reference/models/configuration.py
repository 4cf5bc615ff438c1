"""Reading a `config.json`: typed values, and one error that lists all that is wrong with them.

Nothing is guessed. A key without a default in the official configuration class must be there, and a key that would
switch on what this library does not compute must be absent or off (MOD-11).
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import torch

from reference.errors import CheckpointError

_DTYPES: Final = MappingProxyType(
    {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
)


class ConfigReader:
    """Takes values out of a configuration and collects faults until `finish`.

    A reader method that finds a fault gives a stand-in, so that all other keys get checked too.
    """

    def __init__(self, values: Mapping[str, object], *, source: str) -> None:
        """Starts without faults.

        Args:
            values: The configuration.
            source: What errors call it.
        """
        self._values = values
        self._source = source
        self._faults: dict[str, str] = {}

    def has(self, key: str) -> bool:
        """Tells whether the key is there, were it as null."""
        return key in self._values

    def is_sound(self, *keys: str) -> bool:
        """Tells whether no fault was found in any of the keys, so that they can be compared with each other."""
        return not self._faults.keys() & set(keys)

    def fault(self, key: str, what: str) -> None:
        """Notes the first fault of a key."""
        self._faults.setdefault(key, what)

    def whole(self, key: str, *, default: int | None = None, minimum: int = 1) -> int:
        """Gives a whole number of at least `minimum`; without a default the key is required."""
        value = self._values.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= minimum:
            return value
        self._wrong(key, f"a whole number of at least {minimum}")
        return max(minimum, 1)

    def positive(self, key: str, *, default: float | None = None) -> float:
        """Gives a finite number above 0; without a default the key is required."""
        value = self._values.get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
            return float(value)
        self._wrong(key, "a finite number above 0")
        return 1.0

    def fixed(self, expected: Mapping[str, object], *, required: bool = True) -> None:
        """Holds that keys have the one value that this library computes; where not `required`, absence will do."""
        for key, good in expected.items():
            found = self._values.get(key)
            if key not in self._values and not required:
                continue
            if key not in self._values or found != good or isinstance(found, bool) != isinstance(good, bool):
                self._wrong(key, _shown(good))

    def agree(self, key: str, value: object, *, because: str) -> None:
        """Holds that a redundant key, if it is there, says what follows from others."""
        if key in self._values and self._values[key] != value:
            self._wrong(key, f"{_shown(value)}, {because}")

    def token_ids(self, key: str, *, vocab_size: int) -> frozenset[int]:
        """Gives one token id, several or none; absent and null both mean none."""
        value = self._values.get(key)
        ids = () if value is None else value if isinstance(value, list) else (value,)
        if all(isinstance(i, int) and not isinstance(i, bool) and 0 <= i < vocab_size for i in ids):
            return frozenset(ids)
        self._wrong(key, f"null, one token id below vocab_size={vocab_size}, or a list of them")
        return frozenset()

    def dtype(self) -> torch.dtype | None:
        """Gives the type of the weights: `torch_dtype`, or `dtype` in newer files; None where neither is there."""
        named = {key: self._values[key] for key in ("torch_dtype", "dtype") if self._values.get(key) is not None}
        for key, name in named.items():
            if not (isinstance(name, str) and name in _DTYPES):
                self._wrong(key, " or ".join(_shown(name) for name in _DTYPES))
            elif len(set(map(str, named.values()))) > 1:
                self._wrong(key, "the same in torch_dtype and dtype")
        return next((_DTYPES[name] for name in named.values() if isinstance(name, str) and name in _DTYPES), None)

    def finish(self) -> None:
        """Ends the reading.

        Raises:
            CheckpointError: If there was any fault; lists all of them (MOD-11).
        """
        raise_if(self._faults.values(), f"{self._source} does not describe a model that can be computed here (MOD-11)")

    def _wrong(self, key: str, expected: str) -> None:
        found = f"found {_shown(self._values[key])}" if key in self._values else "but it is missing"
        self.fault(key, f"{key}: expected {expected}, {found}")


def _shown(value: object) -> str:
    """Shows a value as a JSON file has it."""
    return json.dumps(value)


def read_json(path: Path) -> dict[str, object]:
    """Reads a JSON object, refusing what is no JSON and keys that occur twice."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise_if([f"{name}: given more than once" for name in twice], f"{path} contradicts itself (MOD-11)")
        return dict(pairs)

    try:
        values = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except FileNotFoundError:
        message = f"{path} does not exist (MOD-11)"
        raise CheckpointError(message) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        message = f"{path} is not JSON: {error} (MOD-11)"
        raise CheckpointError(message) from error
    if not isinstance(values, dict):
        message = f"{path} holds no JSON object (MOD-11)"
        raise CheckpointError(message)
    return values


def raise_if(faults: Iterable[str], what: str) -> None:
    """Raises one error for all faults, if there are any.

    Raises:
        CheckpointError: See above.
    """
    lines = "".join(f"\n  {fault}" for fault in faults)
    if lines:
        message = f"{what}:{lines}"
        raise CheckpointError(message)

"""The tensors of a model folder: one safetensors file, or several with an index. Never a pickle.

`model.safetensors` holds all, or `model.safetensors.index.json` says which file holds which. Reading a pickle can
execute code, so other formats are refused (MOD-10).
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from safetensors import SafetensorError, safe_open
from torch import Tensor

from reference.errors import CheckpointError
from reference.models.configuration import raise_if, read_json

_TENSORS: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_PICKLE_ENDINGS: Final = frozenset({".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"})
_FLOATING: Final = frozenset({"F64", "F32", "F16", "BF16"})
"""Names that safetensors gives the types from which weights can be converted."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a file says of one tensor, without its data."""

    file: Path
    """Where it is."""
    shape: tuple[int, ...]
    """Its shape."""
    dtype: str
    """Its type, by the name that safetensors gives it."""


class TensorFiles(Mapping[str, Tensor]):
    """The tensors of a folder by name, each read when it is asked for.

    So a model that joins and converts its weights one by one never holds more than one of them twice.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """Opens the files.

        Args:
            folder: Where they are.
            stack: Closes them.

        Raises:
            CheckpointError: If a file is missing, no safetensors file, or not what the index says.
        """
        self._folder = folder
        self._files: dict[Path, safe_open] = {}
        self._stored: dict[str, _Stored] = {}
        faults = []
        for path, names in _tensor_files(folder).items():
            try:
                file = stack.enter_context(safe_open(path, framework="pt"))
            except (SafetensorError, OSError) as error:
                faults.append(f"{path.name}: cannot be read as safetensors: {error}")
                continue
            self._files[path] = file
            present = set(file.keys())
            listed = present if names is None else names
            faults += [f"{name}: listed in {_INDEX} but not in {path.name}" for name in sorted(listed - present)]
            faults += [f"{name}: in {path.name} but {_INDEX} does not say so" for name in sorted(present - listed)]
            for name in present:
                piece = file.get_slice(name)
                self._stored[name] = _Stored(path, tuple(piece.get_shape()), piece.get_dtype())
        raise_if(faults, f"{folder}: files and index do not fit together (MOD-09)")

    def __getitem__(self, name: str) -> Tensor:
        """Reads one tensor."""
        tensor: Tensor = self._files[self._stored[name].file].get_tensor(name)  # type: ignore[no-untyped-call]
        return tensor

    def __iter__(self) -> Iterator[str]:
        """Gives the names."""
        return iter(self._stored)

    def __len__(self) -> int:
        """Counts the tensors."""
        return len(self._stored)

    def check(
        self, expected: Mapping[str, tuple[int, ...]], *, optional: Mapping[str, tuple[int, ...]] | None = None
    ) -> None:
        """Holds that names, shapes and types are those expected.

        Args:
            expected: Shape of every tensor that must be there.
            optional: Shape of every tensor that may be there.

        Raises:
            CheckpointError: If not; lists every offending tensor with both shapes (MOD-09).
        """
        allowed = {**expected, **(optional or {})}
        faults = []
        for name in sorted(expected.keys() | self.keys()):
            stored = self._stored.get(name)
            if stored is None:
                faults.append(f"{name}: expected {list(expected[name])}, but it is missing")
            elif name not in allowed:
                faults.append(f"{name}: not expected, found {list(stored.shape)}")
            elif stored.shape != allowed[name]:
                faults.append(f"{name}: expected {list(allowed[name])}, found {list(stored.shape)}")
            elif stored.dtype not in _FLOATING:
                faults.append(f"{name}: expected floating-point numbers, found {stored.dtype}")
        raise_if(faults, f"{self._folder}: tensors do not fit the configuration (MOD-09)")


@contextmanager
def open_tensors(folder: Path) -> Iterator[TensorFiles]:
    """Opens a folder's tensors for the duration of a `with` statement."""
    with ExitStack() as stack:
        yield TensorFiles(folder, stack)


def _tensor_files(folder: Path) -> dict[Path, set[str] | None]:
    """Finds the safetensors files of a folder, each with the tensors that an index says it holds.

    Raises:
        CheckpointError: If there are none, or two answers to where they are.
    """
    single, index = folder / _TENSORS, folder / _INDEX
    if single.exists() and index.exists():
        message = f"{folder} holds both {_TENSORS} and {_INDEX}; which one counts is not guessed (MOD-09)"
        raise CheckpointError(message)
    if index.exists():
        return _read_index(index)
    if single.exists():
        return {single: None}
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLE_ENDINGS)
    message = f"{folder} holds neither {_TENSORS} nor {_INDEX} (MOD-09)"
    if pickles:
        message = (
            f"{folder} holds its tensors as {', '.join(pickles)} only; reading a pickle can execute code, so it is "
            "refused: convert it to safetensors (MOD-10)"
        )
    raise CheckpointError(message)


def _read_index(index: Path) -> dict[Path, set[str] | None]:
    """Gives the files that an index names, with their tensors."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict):
        message = f"{index} has no weight_map (MOD-09)"
        raise CheckpointError(message)
    faults = []
    files: dict[Path, set[str] | None] = {}
    for name, file in weight_map.items():
        # A plain name only: an index must not lead out of its folder.
        if not (isinstance(file, str) and file.endswith(".safetensors") and Path(file).name == file):
            faults.append(f"{name}: expected the name of a safetensors file in the same folder, found {file!r}")
            continue
        names = files.setdefault(index.parent / file, set())
        assert names is not None
        names.add(name)
    faults += [f"{path.name}: listed in {index.name} but missing" for path in files if not path.exists()]
    raise_if(faults, f"{index} cannot be followed (MOD-09)")
    return files

"""Loading a model folder in the official on-disk format, strictly and without running anything from it.

A folder holds `config.json`, its tensors (see `tensor_files`) and perhaps `generation_config.json`. All else in it is
ignored, Python files above all (MOD-10).
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import torch

from reference.errors import CheckpointError, ParameterError
from reference.models import huginn, ouro
from reference.models.configuration import ConfigReader, raise_if, read_json
from reference.models.huginn import Huginn, HuginnConfig
from reference.models.layers import SUPPORTED_DTYPES
from reference.models.ouro import Ouro, OuroConfig
from reference.models.shipped import SHIPPED, folder_of
from reference.models.tensor_files import open_tensors

_CONFIG: Final = "config.json"
_GENERATION_CONFIG: Final = "generation_config.json"


def load(
    name_or_folder: str | Path, *, dtype: torch.dtype | None = None, device: torch.device | str = "cpu"
) -> Ouro | Huginn:
    """Loads a looped model.

    Args:
        name_or_folder: A shipped name (see `SHIPPED`), or a folder in the official format. A shipped name wins over a
            folder of the same name in the working directory; write `./tiny-ouro` for that one.
        dtype: Type to compute in: float64, float32 or bfloat16. None is the type that the checkpoint's
            configuration names.
        device: Where the model computes.

    Returns:
        The model.

    Raises:
        CheckpointError: If the folder is incomplete, contradictory, or in a format that could execute code.
        ParameterError: If `dtype` is of another type.

    Spec: MOD-09, MOD-10, MOD-11.
    """
    if dtype is not None and dtype not in SUPPORTED_DTYPES:
        message = f"dtype={dtype} is none of {', '.join(map(str, SUPPORTED_DTYPES))} (CONF-04)"
        raise ParameterError(message)
    folder = folder_of(name_or_folder)
    if not folder.is_dir():
        message = f"{name_or_folder} is neither a folder nor a shipped model ({', '.join(SHIPPED)}) (MOD-09)"
        raise CheckpointError(message)
    return _load_folder(folder, dtype=dtype, device=torch.device(device))


def _load_folder(folder: Path, *, dtype: torch.dtype | None, device: torch.device) -> Ouro | Huginn:
    """Loads a folder; see `load`."""
    config = read_config(folder)
    computed = config.dtype if dtype is None else dtype
    if computed is None:
        message = f"{folder / _CONFIG} names no torch_dtype; give load(..., dtype=...) (MOD-11)"
        raise CheckpointError(message)
    if computed not in SUPPORTED_DTYPES:
        message = f"{folder / _CONFIG} names {computed}, which is not supported; give load(..., dtype=...) (MOD-11)"
        raise CheckpointError(message)
    config = replace(config, eos_token_ids=config.eos_token_ids | _further_stop_ids(folder, config.vocab_size))
    with open_tensors(folder) as tensors:
        if isinstance(config, OuroConfig):
            tensors.check(config.tensor_shapes())
            return Ouro(config, tensors, dtype=computed, device=device)
        tensors.check(config.tensor_shapes(), optional=config.redundant_tensor_shapes())
        raise_if(config.contradictions(tensors), f"{folder}: tensors contradict each other (MOD-09)")
        return Huginn(config, tensors, dtype=computed, device=device)


def read_config(folder: Path) -> OuroConfig | HuginnConfig:
    """Reads the `config.json` of a folder; no tensors are needed.

    Raises:
        CheckpointError: If it is missing, or describes no model that can be computed here.
    """
    source = str(folder / _CONFIG)
    values = read_json(folder / _CONFIG)
    match values.get("model_type"):
        case ouro.MODEL_TYPE:
            return OuroConfig.read(values, source=source)
        case huginn.MODEL_TYPE:
            return HuginnConfig.read(values, source=source)
        case _:
            known = f"{ouro.MODEL_TYPE} or {huginn.MODEL_TYPE}"
            message = f"{source}: model_type: expected {known}, found {values.get('model_type')} (MOD-11)"
            raise CheckpointError(message)


def _further_stop_ids(folder: Path, vocab_size: int) -> frozenset[int]:
    """Gives the stop ids of `generation_config.json`, where there is one; they count beside those of `config.json`.

    This is the place where further sources of stop ids (a tokenizer's) would be read and compared.
    """
    path = folder / _GENERATION_CONFIG
    if not path.exists():
        return frozenset()
    read = ConfigReader(read_json(path), source=str(path))
    ids = read.token_ids("eos_token_id", vocab_size=vocab_size)
    read.finish()
    return ids

"""The shape of a model, from its configuration: where the cost model, which knows no model, meets the real ones."""

from pathlib import Path

from reference.cost.shapes import PRESETS, Family, LoopedShape
from reference.models import HuginnConfig, OuroConfig
from reference.models.checkpoint import read_config
from reference.models.shipped import folder_of


def shape_of(config: OuroConfig | HuginnConfig, *, name: str) -> LoopedShape:
    """Gives the shape of a configuration."""
    if isinstance(config, OuroConfig):
        return LoopedShape(
            name=name,
            family=Family.OURO,
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_heads=config.num_heads,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            prelude_layers=0,
            recurrent_layers=config.num_layers,
            coda_layers=0,
            recurrence_depth=config.recurrence_depth,
        )
    return LoopedShape(
        name=name,
        family=Family.HUGINN,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_heads=config.num_heads,
        num_kv_heads=config.num_heads,
        head_dim=config.head_dim,
        prelude_layers=config.prelude_layers,
        recurrent_layers=config.core_layers,
        coda_layers=config.coda_layers,
        recurrence_depth=config.recurrence_depth,
    )


def config_of(shape: LoopedShape, *, context_length: int) -> OuroConfig | HuginnConfig:
    """Gives a configuration of a shape: the inverse of `shape_of`; the rest is as the published models have it.

    Args:
        shape: Sizes.
        context_length: Positions that the model can compute.
    """
    if shape.family is Family.OURO:
        return OuroConfig(
            vocab_size=shape.vocab_size,
            hidden_size=shape.hidden_size,
            intermediate_size=shape.intermediate_size,
            num_layers=shape.recurrent_layers,
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            context_length=context_length,
            rope_theta=1e6,
            eps=1e-6,
            recurrence_depth=shape.recurrence_depth,
        )
    return HuginnConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_heads=shape.num_heads,
        prelude_layers=shape.prelude_layers,
        core_layers=shape.recurrent_layers,
        coda_layers=shape.coda_layers,
        context_length=context_length,
        rope_base=50_000.0,
        eps=1e-6,
        recurrence_depth=shape.recurrence_depth,
    )


def read_shape(name_or_folder: str | Path) -> LoopedShape:
    """Gives the shape of a published model, a shipped one, or a folder with an official `config.json`.

    Weights are neither needed nor read.

    Raises:
        CheckpointError: If the configuration is missing or at fault.
    """
    if name_or_folder in PRESETS:
        return PRESETS[str(name_or_folder)]
    return shape_of(read_config(folder_of(name_or_folder)), name=Path(name_or_folder).name)

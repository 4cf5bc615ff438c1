"""Settings that the tests of the cost model share."""

from dataclasses import replace

from reference.cost.latency import RESEARCH, Setting
from reference.cost.machines import machine
from reference.cost.shapes import LoopedShape, preset
from reference.cost.work import precision_of


def setting(model: str = "ouro-2.6b", *, context: int = 500, batch: int = 1, slots: int | None = None) -> Setting:
    """Gives a published model on an RTX A6000, run by research code."""
    return Setting(
        shape=preset(model),
        machine=machine("a6000"),
        precision=precision_of("bf16"),
        software=RESEARCH,
        context=context,
        batch=batch,
        recurrence_slots=slots,
    )


def resized(one: Setting, *, recurrence_depth: int) -> Setting:
    """Gives the setting at another depth."""
    shape: LoopedShape = one.shape.with_depth(recurrence_depth)
    return replace(one, shape=shape)

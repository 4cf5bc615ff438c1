"""Looped models: the two official families, how to load them, and the protocol that decoders see.

`load` takes the name of a shipped model or a folder in the official on-disk format.
"""

from reference.models.checkpoint import load
from reference.models.huginn import Huginn, HuginnConfig
from reference.models.ouro import Ouro, OuroConfig
from reference.models.protocol import LoopedModel
from reference.models.shipped import SHIPPED

__all__ = ["SHIPPED", "Huginn", "HuginnConfig", "LoopedModel", "Ouro", "OuroConfig", "load"]

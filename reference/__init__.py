"""The reference for decoding looped language models: AR, DtV and WFD on shipped weights or a model of yours.

Start with `reference.wfd`: its `generate` decodes, its `WFD` is the algorithm.
"""

from reference import ar, dtv, models, trace, wfd

__all__ = ["ar", "dtv", "models", "trace", "wfd"]

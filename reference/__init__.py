"""The reference for decoding looped language models: AR, DtV and WFD on shipped weights or a model of yours.

Start with `reference.wfd`: its `generate` decodes, its `WFD` is the algorithm. Nothing is imported here, so that
schedules and traces can be used without loading a tensor library.
"""

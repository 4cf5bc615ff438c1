"""What decoding costs: bytes and operations of every call, seconds on a machine, and what a decoder gains by them.

Nothing here holds a model or a tensor of one: shapes are a few integers, machines a few figures with their sources.
Read `work` first, then `latency`, then `decoding`, where AR, DtV and WFD become seconds per token.
"""

"""The static path: a wavefront whose every step is the same sequence of kernels, so that one CUDA graph holds it."""

from reference.graphs.decoder import StaticDecoder, StaticOutput, generate

__all__ = ["StaticDecoder", "StaticOutput", "generate"]

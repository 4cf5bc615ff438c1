"""Conformance vectors: problems with their solutions as JSON, and a judge of other people's answers.

    from reference.oracle import vectors

    for vector in vectors.load("schedule"):
        ...                                  # run your engine on vector.input
    print(vectors.check(lines))              # one JSON object a line: {"id": ..., ...}

The files lie in `FOLDER` and need no Python to be used. `python -m reference.oracle.vectors` writes them.
"""

from reference.oracle.vectors.check import Outcome, VectorsVerdict, VectorVerdict, check
from reference.oracle.vectors.form import FLAGS, FOLDER, Vector
from reference.oracle.vectors.kind import Kind
from reference.oracle.vectors.kinds import KINDS, load

__all__ = ["FLAGS", "FOLDER", "KINDS", "Kind", "Outcome", "Vector", "VectorVerdict", "VectorsVerdict", "check", "load"]

"""`python -m reference.oracle.vectors`: writes all vectors again."""

from reference.oracle.vectors.kinds import main

main()

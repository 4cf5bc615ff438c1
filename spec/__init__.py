"""The machinery behind the clauses: TLA+ models with a runner, proofs, and the check of traces against the models."""

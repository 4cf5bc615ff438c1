"""The machinery behind the clauses: TLA+ models with a runner, proofs, a check of traces, a table of clauses."""

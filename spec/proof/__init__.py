"""Proofs for all sizes: invariants of WFD and DtV that every tick keeps, and what follows from them, held by Z3."""

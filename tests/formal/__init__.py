"""Tests of the formal part: models, proofs, and how both hang together with the code."""

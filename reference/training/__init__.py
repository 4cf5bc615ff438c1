"""Trains the two small models that the package ships; `python -m reference.training` runs all of it."""

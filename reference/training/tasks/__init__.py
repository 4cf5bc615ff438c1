"""Gives the makers of training items, one module for each flavour of text."""

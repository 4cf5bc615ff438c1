"""The oracle: what it must accept, and a gallery of what it must catch."""

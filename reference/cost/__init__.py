"""What decoding costs: closed forms of what a run counts."""

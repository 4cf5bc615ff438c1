"""Laws over generated cases."""

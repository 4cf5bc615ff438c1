"""Wrong decoders, each caught by a law that the right ones are held to."""

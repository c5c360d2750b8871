"""Trees to IR."""

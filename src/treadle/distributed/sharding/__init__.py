"""Models whose parameters are divided among the ranks, and their checkpoints."""

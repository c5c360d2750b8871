"""Layers whose work is shared out among ranks: divided weights, sequences and stages."""

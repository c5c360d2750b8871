"""Lazy values: what tensor operations build, and how a graph of them becomes few kernels."""

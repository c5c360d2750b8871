"""Quantized matrices: ggml's block formats, and products straight from the blocks."""

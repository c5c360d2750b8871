"""The functions that CUDA declares for kernels."""

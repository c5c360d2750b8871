"""What CUDA declares for kernels."""

"""CUDA C++ kernels on any device."""

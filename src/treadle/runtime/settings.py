"""Switches that environment variables set, read once; tests and programs may change them here."""

from __future__ import annotations

from treadle.core.environment import choice, is_on

check: bool = is_on("TREADLE_CHECK")  # report accesses outside arrays and failed asserts
eager: bool = is_on("TREADLE_EAGER")  # compute every array operation at once, without fusion
check_compiled: bool = is_on("TREADLE_COMPILE_CHECK")  # compare each replay with Python's results
disk_cache: bool = not is_on("TREADLE_NO_CACHE")  # keep compiled code on disk
no_cublas: bool = is_on("TREADLE_NO_CUBLAS")  # multiply by treadle's kernels alone
# How float32 matrices are multiplied: "highest" as they are, "high" and "medium" rounded to TF32
# where the device has instructions for that.
float32_products: str = "highest"
# The language of kernels for CUDA devices: "ptx", which needs only the driver, or "cuda", which
# NVIDIA's run-time compiler (nvidia-cuda-nvrtc) compiles.
cuda_language: str = choice("TREADLE_CUDA_LANGUAGE", ("ptx", "cuda"))
# Which of several kernels computes a product: "found", what `treadle tune` or treadle's makers have
# measured; "0", the tables' first guess; "1", also what is measured when it first comes up.
tune: str = choice("TREADLE_TUNE", ("found", "0", "1"))

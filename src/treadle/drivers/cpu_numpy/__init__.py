"""The CPU through NumPy alone: for browsers and other places without LLVM. All threads of many
blocks go through a kernel together, as vectors."""

from treadle.drivers.cpu_numpy.device import cpu_backend, numpy_backend

__all__ = ["cpu_backend", "numpy_backend"]

"""The CPU as a device: kernels become machine code in this process, through LLVM."""

from treadle.drivers.cpu.device import backend

__all__ = ["backend"]

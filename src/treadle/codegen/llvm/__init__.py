"""LLVM assembly, for the CPU driver: IR in, text out, no LLVM needed to print it."""

from treadle.codegen.llvm.emitter import VECTORIZED
from treadle.codegen.llvm.printer import LlvmOptions, print_kernel

__all__ = ["VECTORIZED", "LlvmOptions", "print_kernel"]

"""Trees to IR."""

from treadle.cuda_cpp.lower.program import load, read

__all__ = ["load", "read"]

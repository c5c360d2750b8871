"""Trees to IR."""

from treadle.cuda_cpp.lower.program import load

__all__ = ["load"]

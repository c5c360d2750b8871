"""Trees to IR."""

from treadle.cuda_cpp.lower import expressions  # says what lowers each kind of expression
from treadle.cuda_cpp.lower.program import load

__all__ = ["expressions", "load"]

"""`td.compile`: functions of tensors, traced once and replayed. See `docs/design/compile.md`."""

from treadle.tensor.compiled.decorator import compile
from treadle.tensor.compiled.function import Compiled

__all__ = ["Compiled", "compile"]

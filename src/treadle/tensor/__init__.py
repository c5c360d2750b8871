"""The `Tensor` that people hold, and the functions that make one."""

from treadle.tensor.creation import arange, asarray, empty, from_dlpack, full, ones, zeros
from treadle.tensor.elementwise import elementwise
from treadle.tensor.tensor import Tensor

__all__ = [
    "Tensor",
    "arange",
    "asarray",
    "elementwise",
    "empty",
    "from_dlpack",
    "full",
    "ones",
    "zeros",
]

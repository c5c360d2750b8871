"""The dtype that a function of layers computes in."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor

_HALVES = (float16, bfloat16)


def wide(x: Any) -> tuple[Tensor, DType]:
    """An operand as a tensor to compute with, and the dtype of the result."""
    tensor = x if type(x) is Tensor else asarray(x)
    own = tensor.dtype
    if own in _HALVES or own.kind in ("int", "uint"):
        return tensor.to(float32), own if own.kind == "float" else float32
    return tensor, own

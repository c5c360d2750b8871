"""Special functions: `digamma`, made of elementwise operations, and by `special` those that the
math library has for arrays alone."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import DtypeError
from treadle.graph.node import Node
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.manipulation import broadcast_arrays
from treadle.tensor.operands import operand
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["digamma"]

_where, _round, _square = FUNCTIONS["where"], FUNCTIONS["round"], FUNCTIONS["square"]
_reciprocal, _log = FUNCTIONS["reciprocal"], FUNCTIONS["log"]

# B(2k) / 2k, the coefficients of the asymptotic series of digamma in 1 / x**2 (DLMF 5.11.2).
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFT = 10  # from here on the series is exact to 1e-16


def digamma(x: ArrayLike, /) -> Tensor:
    """The derivative of the logarithm of the gamma function, element by element, made of operations
    that have all derivatives themselves. At 0 it is -inf, and NaN at the other poles, as PyTorch's.
    Integers become float32; DtypeError for complex numbers.

    >>> import treadle as td
    >>> print(f"{td.digamma(td.asarray(1.0, device='cpu')).item():.4f}")  # minus Euler's constant
    -0.5772
    """
    x = operand("digamma", x)
    if not isinstance(x.dtype, DType) or x.dtype.kind == "complex":
        raise DtypeError(f"digamma takes real numbers, not {x.dtype}")
    result = x.dtype if x.dtype.kind == "float" else float32
    if result is not x.dtype or result in (float16, bfloat16):
        return _digamma(x.to(float32)).to(result)
    return _digamma(x)


def _digamma(x: Any) -> Tensor:
    """Below 1/2 it is reflected (DLMF 5.5.4), and moved up by its recurrence (5.5.2) to where the
    asymptotic series holds."""
    low: Any = x < 0.5
    z: Any = _where(low, 1 - x, x)
    steps = _reciprocal(z)
    for step in range(1, _SHIFT):
        steps = steps + _reciprocal(z + step)
    z = z + _SHIFT
    square = _reciprocal(_square(z))
    series = square * _SERIES[-1]
    for coefficient in reversed(_SERIES[:-1]):
        series = square * (series + coefficient)
    value = _log(z) - 0.5 / z - series - steps
    inside: Any = _where(low, x, 0.25)
    turned = FUNCTIONS["tan"]((inside - _round(inside)) * math.pi)
    found = _where(low, value - math.pi / turned, value)
    return _where((x < 0) & (x == FUNCTIONS["floor"](x)), math.nan, found)


def special(name: str, *operands: Tensor) -> Tensor:
    """A function of `lang.math.array_functions`, of tensors of one floating dtype and device, which
    broadcast. DtypeError for other dtypes."""
    dtype = operands[0].dtype
    if dtype.kind != "float":
        raise DtypeError(f"{name} takes floating dtypes, not {dtype}: cast with x.to(td.float32)")
    wide = float32 if dtype in (float16, bfloat16) else dtype
    given = tuple([each.to(wide)._node for each in broadcast_arrays(*operands)])
    found = from_node(Node(name, given, given[0].shape, wide, given[0].device))
    return found.to(dtype)

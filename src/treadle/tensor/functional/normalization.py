"""Rows made comparable: softmax, and layers that give them mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.errors import ShapeError
from treadle.tensor.axes import takes_dim
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.wide import wide
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["layer_norm", "log_softmax", "softmax"]

_exp, _log, _rsqrt, _square = (FUNCTIONS[name] for name in ("exp", "log", "rsqrt", "square"))


@takes_dim
def softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """exp(x), divided by its sum along an axis. `dtype` casts x before.

    >>> import treadle as td
    >>> td.nn.functional.softmax(td.zeros((2, 4), device="cpu"), dim=1)[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    x, given = wide(input if dtype is None else asarray(input).to(dtype=dtype))
    powers = _exp(x - largest(x, axis=axis, keepdims=True))
    return (powers / total(powers, axis=axis, keepdims=True)).to(given)


@takes_dim
def log_softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, precise where that is near 0."""
    x, given = wide(input if dtype is None else asarray(input).to(dtype=dtype))
    below = x - largest(x, axis=axis, keepdims=True)
    return (below - _log(total(_exp(below), axis=axis, keepdims=True))).to(given)


def layer_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Tensor:
    """Give x mean 0 and variance 1 over its last axes, whose extents are `normalized_shape`; then
    multiply by `weight` and add `bias`, which have that shape.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 3.0], [5.0, 5.0]], device="cpu")
    >>> td.nn.functional.layer_norm(x, 2, eps=0.0)[0].tolist()
    [-1.0, 1.0]
    """
    x, dtype = wide(input)
    one = isinstance(normalized_shape, int)
    wanted = (normalized_shape,) if one else tuple(normalized_shape)  # type: ignore[arg-type]
    if not wanted or x.shape[-len(wanted) :] != wanted:
        raise ShapeError(
            f"layer_norm: normalized_shape is {wanted}, which the last axes of a tensor of shape "
            f"{x.shape} do not have"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != wanted:
            raise ShapeError(f"layer_norm: {name} has shape {tuple(value.shape)}, not {wanted}")
    axes = tuple(range(-len(wanted), 0))
    centered = x - mean(x, axis=axes, keepdims=True)
    result = centered * _rsqrt(mean(_square(centered), axis=axes, keepdims=True) + eps)
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(dtype)

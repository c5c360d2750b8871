"""Norms of vectors, and distances between vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.axes import takes_dim
from treadle.tensor.composites import composite
from treadle.tensor.conversions import common_shape
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import promote
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.precision import cast_by_name
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import min as least
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import take
from treadle.tensor.tensor import Tensor

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]

_abs, _maximum, _pow = FUNCTIONS["abs"], FUNCTIONS["maximum"], FUNCTIONS["pow"]
_imag, _real = FUNCTIONS["imag"], FUNCTIONS["real"]
_sqrt, _square = FUNCTIONS["sqrt"], FUNCTIONS["square"]


@composite
def lengths(x: Tensor, p: float, axis: int, keepdims: bool) -> Tensor:
    """The p-norm along an axis, (sum of |x|**p)**(1/p): for p=0 the number of nonzero elements, for
    infinities the greatest or the least magnitude. Real for complex numbers."""
    if p == 2:
        squares = _square(x)
        if x.dtype.kind == "complex":
            squares = _square(_real(x)) + _square(_imag(x))
        return _sqrt(total(squares, axis=axis, keepdims=keepdims))
    size = _abs(x)
    if p == 1:
        return total(size, axis=axis, keepdims=keepdims)
    if p == 0:
        return total((x != 0).to(size.dtype), axis=axis, keepdims=keepdims)
    if math.isinf(p):
        return (largest if p > 0 else least)(size, axis=axis, keepdims=keepdims)
    return _pow(total(_pow(size, p), axis=axis, keepdims=keepdims), 1 / p)


@cast_by_name
@takes_dim
def normalize(input: ArrayLike, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """x, divided along an axis by its p-norm (or by eps, where that is greater).

    >>> import treadle as td
    >>> td.nn.functional.normalize(td.asarray([[3.0, 1.0]], device="cpu"), p=1).tolist()
    [[0.75, 0.25]]
    """
    x = input if type(input) is Tensor else asarray(input)
    if p == 2 and x.dtype.kind == "float":
        return scaled_to_length_one(x, axis, eps)
    x, dtype = widened(x)
    return (x / _maximum(lengths(x, p, axis, True), eps)).to(dtype)


@composite
def scaled_to_length_one(input: Tensor, axis: int, eps: float) -> Tensor:
    """X, divided by its length along an axis, or by eps."""
    x, dtype = widened(input)
    return (x / _maximum(lengths(x, 2, axis, True), eps)).to(dtype)


@cast_by_name
@takes_dim
def cosine_similarity(x1: ArrayLike, x2: ArrayLike, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis; the arrays broadcast. Lengths below
    eps count as eps.

    >>> import treadle as td
    >>> x = td.asarray([3.0, 4.0], device="cpu")
    >>> td.nn.functional.cosine_similarity(x, x * 2, dim=0).item()
    1.0
    """
    a, b, dtype = _pair("cosine_similarity", x1, x2)
    one, other = (_maximum(lengths(x, 2, axis, True), eps) for x in (a, b))
    return total(a / one * (b / other), axis=axis).to(dtype)


def pairwise_distance(
    x1: ArrayLike, x2: ArrayLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis; the arrays broadcast.

    >>> import treadle as td
    >>> a, b = td.zeros((1, 2), device="cpu"), td.asarray([[3.0, 4.0]], device="cpu")
    >>> td.nn.functional.pairwise_distance(a, b, eps=0.0).tolist()
    [5.0]
    """
    a, b, dtype = _pair("pairwise_distance", x1, x2)
    return lengths(a - b + eps, p, -1, keepdim).to(dtype.component)


@cast_by_name
def pdist(input: ArrayLike, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order (0, 1), (0, 2), …, (1, 2),
    …

    >>> import treadle as td
    >>> rows = td.asarray([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], device="cpu")
    >>> td.nn.functional.pdist(rows, p=1).tolist()
    [7.0, 1.0, 6.0]
    """
    x, dtype = widened(input)
    if x.ndim != 2:
        raise ShapeError(f"pdist takes the rows of a matrix, not a tensor of shape {x.shape}")
    if p < 0:
        raise ValueError(f"pdist: p must not be negative, as {p} is")
    one, other = np.triu_indices(x.shape[0], 1)
    apart = take(x, one, axis=0) - take(x, other, axis=0)
    return lengths(apart, p, -1, False).to(dtype.component)


def _pair(name: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor, DType]:
    """Two operands in the dtype to compute in, broadcast to one shape, and the dtype of the
    result."""
    (a, one), (b, other) = widened(x1), widened(x2)
    shape = common_shape(name, (a.shape, b.shape))
    return broadcast_to(a, shape), broadcast_to(b, shape), promote(one, other)

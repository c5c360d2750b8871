"""Norms of vectors and matrices: reductions, fused with the operations before them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike, Axes
from treadle.tensor.axes import one_axis, some_axes, takes_dim
from treadle.tensor.composites import composite
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.linalg.operations import svdvals
from treadle.tensor.linalg.stacks import floating, in_compute_dtype, stacked, warn_where_on_host
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.operands import operand
from treadle.tensor.precision import cast_by_name
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import min as smallest
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["matrix_norm", "norm", "vector_norm"]

_abs, _sqrt, _square = (FUNCTIONS[name] for name in ("abs", "sqrt", "square"))


@cast_by_name
@takes_dim
def vector_norm(
    x: ArrayLike, /, *, axis: Axes | None = None, keepdims: bool = False, ord: Any = 2
) -> Tensor:
    """The norm of the vectors along one axis, several or all: sum(|x| ** ord) ** (1 / ord). For
    orders inf and -inf the largest and smallest magnitude, for order 0 the number of nonzero
    elements.

    >>> import treadle as td
    >>> x = td.asarray([[3.0, -4.0], [0.0, 2.0]], device="cpu")
    >>> td.linalg.vector_norm(x, axis=1).tolist(), td.linalg.vector_norm(x, ord=1).item()
    ([5.0, 2.0], 9.0)
    """
    if not isinstance(ord, (int, float)):
        raise ValueError(f"vector_norm: ord is a number, not {ord!r}; matrices have other norms")
    x = floating("vector_norm", operand("vector_norm", x))
    axes = some_axes("vector_norm", axis, x.ndim)
    return norm_along(in_compute_dtype(x), axes, keepdims, ord).to(x.dtype.component)


@composite
def norm_along(x: Tensor, axes: tuple[int, ...], keepdims: bool, ord: float) -> Tensor:
    """`vector_norm` along checked axes."""
    if ord == 2:
        return _sqrt(total(_squares(x), axis=axes, keepdims=keepdims))
    sizes = _abs(x)
    if ord == math.inf:
        return largest(sizes, axis=axes, keepdims=keepdims)
    if ord == -math.inf:
        return smallest(sizes, axis=axes, keepdims=keepdims)
    if ord == 0:
        return total((x != 0).to(sizes.dtype), axis=axes, keepdims=keepdims)
    if ord == 1:
        return total(sizes, axis=axes, keepdims=keepdims)
    return total(sizes ** float(ord), axis=axes, keepdims=keepdims) ** (1.0 / ord)


def _squares(x: Tensor) -> Tensor:
    """The squares of the magnitudes."""
    if x.dtype.kind == "complex":
        return _square(FUNCTIONS["real"](x)) + _square(FUNCTIONS["imag"](x))
    return _square(x)


@takes_dim
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro", axis: tuple[int, int] = (-2, -1)
) -> Tensor:
    """The norm of each matrix: "fro" (the root of the sum of squares), "nuc" (the sum of singular
    values), 2 and -2 (the largest and smallest of them), 1 and -1 (the largest and smallest sum of
    a column's magnitudes), inf and -inf (the same of rows). Singular values are computed as by
    `svd`.

    >>> import treadle as td
    >>> x = td.asarray([[3.0, 0.0], [4.0, 1.0]], device="cpu")
    >>> td.linalg.matrix_norm(x, ord=1).item(), td.linalg.matrix_norm(x, ord=float("inf")).item()
    (7.0, 5.0)
    """
    return _norm_of_axes("matrix_norm", x, ord, axis, keepdims)


def _norm_of_axes(name: str, x: Any, ord: Any, axis: tuple[int, int], keepdims: bool) -> Tensor:
    x = floating(name, operand(name, x))
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices, and not an array of shape {x.shape}")
    axes = some_axes(name, axis, x.ndim)
    if len(axes) != 2:
        raise ValueError(f"{name}: a matrix has two axes, and axis={axis} names {len(axes)}")
    _check_order(ord)
    if ord in _BY_SINGULAR_VALUES:
        warn_where_on_host(name, x, 6)
    moved = moveaxis(in_compute_dtype(x), axes, (-2, -1))
    found = norm_of_matrices(moved, ord).to(x.dtype.component)
    kept = tuple([1 if axis in axes else extent for axis, extent in enumerate(x.shape)])
    return found.reshape(kept) if keepdims else found


@takes_dim
def norm(
    x: ArrayLike, /, ord: Any = None, axis: Axes | None = None, keepdims: bool = False
) -> Tensor:
    """NumPy's norm: of vectors along one axis, of matrices for two axes. Without axes the norm of
    all elements as one vector, or with an order the norm of x, which must be a vector or a matrix.

    >>> import treadle as td
    >>> td.linalg.norm(td.asarray([[3.0, 0.0], [4.0, 0.0]], device="cpu")).item()
    5.0
    """
    x = floating("norm", operand("norm", x))
    if axis is None:
        if ord is None or x.ndim == 1:
            return vector_norm(x, ord=2 if ord is None else ord, keepdims=keepdims)
        if x.ndim != 2:
            raise ShapeError(
                f"norm of order {ord!r}: an array of shape {x.shape} is neither a vector nor a "
                "matrix: name axes"
            )
        axis = (0, 1)
    axes = (
        tuple(axis) if isinstance(axis, (tuple, list)) else (one_axis("norm", axis, x.ndim or 1),)
    )
    if len(axes) == 2:
        return _norm_of_axes("norm", x, "fro" if ord is None else ord, axes, keepdims)
    if len(axes) != 1:
        raise ValueError(f"norm: axis={axis} names {len(axes)} axes: one of vectors, or two")
    return vector_norm(x, ord=2 if ord is None else ord, axis=axes, keepdims=keepdims)


# --- matrices ------------------------------------------------------------------------------------


def _sums(axis: int, extreme: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: extreme(total(_abs(x), axis=axis), axis=-1)


def _of_values(reduce: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    def norms(x: Tensor) -> Tensor:
        return reduce(svdvals(stacked(x)), axis=-1).reshape(x.shape[:-2])

    return norms


_BY_SINGULAR_VALUES = ("nuc", 2, -2)
_MATRIX_NORMS: dict[Any, Callable[[Tensor], Tensor]] = {
    "fro": lambda x: norm_along(x, (x.ndim - 2, x.ndim - 1), False, 2),
    "nuc": _of_values(total),
    2: _of_values(largest),
    -2: _of_values(smallest),
    1: _sums(-2, largest),
    -1: _sums(-2, smallest),
    math.inf: _sums(-1, largest),
    -math.inf: _sums(-1, smallest),
}


def _check_order(ord: Any) -> None:
    if isinstance(ord, (bool, Tensor)) or ord not in _MATRIX_NORMS:
        raise ValueError(
            f"matrix norms have the orders {', '.join(map(repr, _MATRIX_NORMS))}, not {ord!r}"
        )


def norm_of_matrices(x: Tensor, ord: Any) -> Tensor:
    """The norms of the matrices in the last two axes."""
    _check_order(ord)
    return _MATRIX_NORMS[ord](x)

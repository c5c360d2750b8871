"""Chained products, powers and exponentials of matrices; cross products, diagonals and traces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.assembly import stack as stack_along
from treadle.tensor.axes import integer, one_axis, takes_dim
from treadle.tensor.composites import composite
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.linalg.norms import norm_of_matrices
from treadle.tensor.linalg.stacks import stack_of
from treadle.tensor.linalg.systems import inv, solve
from treadle.tensor.manipulation import broadcast_arrays, broadcast_to, moveaxis
from treadle.tensor.manipulation import diagonal as diagonal_of
from treadle.tensor.operands import operand
from treadle.tensor.products import matmul
from treadle.tensor.ranges import eye
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["cross", "diagonal", "matrix_exp", "matrix_power", "multi_dot", "trace"]


@takes_dim
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis; the other axes broadcast.

    >>> import treadle as td
    >>> x, y = td.asarray([1, 0, 0], device="cpu"), td.asarray([0, 1, 0], device="cpu")
    >>> td.linalg.cross(x, y).tolist()
    [0, 0, 1]
    """
    a, b = (operand("cross", x) for x in (x1, x2))
    for x in (a, b):
        if type(x.dtype) is not DType or x.dtype.kind == "bool":
            raise DtypeError(f"cross takes numbers, not {x.dtype}: cast with x.to(td.float32)")
    least = min(a.ndim, b.ndim)
    at = one_axis("cross", axis, max(a.ndim, b.ndim)) - max(a.ndim, b.ndim)
    if -at > least or a.shape[at] != 3 or b.shape[at] != 3:
        raise ShapeError(
            f"cross: both operands have three elements along axis {axis}, and these have the "
            f"shapes {a.shape} and {b.shape}"
        )
    a, b = (moveaxis(x, at, -1) for x in broadcast_arrays(a, b))
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack_along(parts, axis=at)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonal of each matrix, above the main one if `offset` is positive.

    >>> import treadle as td
    >>> td.linalg.diagonal(td.asarray([[1, 2], [3, 4]], device="cpu"), offset=1).tolist()
    [2]
    """
    x = operand("diagonal", x)
    if x.ndim < 2:
        raise ShapeError(f"diagonal takes matrices, and not an array of shape {x.shape}")
    return diagonal_of(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the diagonal of each matrix, with the dtypes of `td.sum`.

    >>> import treadle as td
    >>> td.linalg.trace(td.asarray([[1, 2], [3, 4]], device="cpu")).item()
    5
    """
    found: Tensor = total(diagonal(x, offset=offset), axis=-1, dtype=dtype)
    return found


def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """The n-th power of each square matrix; for a negative n that of its inverse. Matrices of
    integers need n >= 0.

    LinAlgError if n is negative and a matrix is singular.

    >>> import treadle as td
    >>> td.linalg.matrix_power(td.asarray([[1, 1], [0, 1]], device="cpu"), 5).tolist()
    [[1, 5], [0, 1]]
    """
    x = operand("matrix_power", x)
    if type(x.dtype) is not DType or x.dtype.kind == "bool":
        raise DtypeError(f"matrix_power takes numbers, not {x.dtype}: cast with x.to(td.float32)")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power takes square matrices, not an array of shape {x.shape}")
    left = integer("matrix_power", n, "n")
    if left == 0:
        one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        identity: Tensor = where(True, broadcast_to(one, x.shape), x)
        return identity
    if left < 0:
        x, left = inv(x), -left
    found: Tensor = x
    for bit in f"{left:b}"[1:]:  # square for each bit; times x for a 1
        found = matmul(found, found).realize()
        if bit == "1":
            found = matmul(found, x).realize()
    return found.copied() if found is x else found


def multi_dot(arrays: Sequence[Any], /) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications. The
    first and the last may be vectors.

    >>> import treadle as td
    >>> x, y = td.ones((2, 3), device="cpu"), td.ones(3, device="cpu")
    >>> td.linalg.multi_dot([x, x.T, x, y]).tolist()
    [18.0, 18.0]
    """
    tensors = [operand("multi_dot", array) for array in arrays]
    if len(tensors) < 2:
        raise ValueError("multi_dot multiplies at least two arrays")
    last = len(tensors) - 1
    for place, x in enumerate(tensors):
        if x.ndim != 2 and not (x.ndim == 1 and place in (0, last)):
            raise ShapeError(
                f"multi_dot takes matrices, and vectors at the ends, and not an array of shape "
                f"{x.shape} at place {place}"
            )
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if row:
        tensors[0] = tensors[0].reshape((1, -1))
    if column:
        tensors[-1] = tensors[-1].reshape((-1, 1))
    for one, other in pairwise(tensors):
        if one.shape[1] != other.shape[0]:
            raise ShapeError(f"multi_dot: {one.shape} and {other.shape} cannot be multiplied")
    found = _product(tensors, _splits([x.shape[0] for x in tensors] + [tensors[-1].shape[1]]))
    found = found[0] if row else found
    return found[..., 0] if column else found


def _splits(extents: list[int]) -> dict[tuple[int, int], int]:
    """The best split of each part of the chain (T. H. Cormen et al., "Introduction to Algorithms",
    section on matrix chains)."""
    count = len(extents) - 1
    cost = {(i, i): 0 for i in range(count)}
    where_best: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], where_best[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            )
    return where_best


def _product(tensors: list[Tensor], splits: dict[tuple[int, int], int]) -> Tensor:
    def of(first: int, last: int) -> Tensor:
        if first == last:
            return tensors[first]
        middle = splits[first, last]
        return matmul(of(first, middle), of(middle + 1, last))

    return of(0, len(tensors) - 1)


# The numerator of the Padé approximant of order 13 to the exponential, and the norm up to which it
# is precise in float64 (N. J. Higham, "The scaling and squaring method for the matrix exponential
# revisited", 2005).
_PADE = tuple(
    math.factorial(26 - k) * math.factorial(13)
    / (math.factorial(26) * math.factorial(k) * math.factorial(13 - k))
    for k in range(14)
)  # fmt: skip
_MOST_NORM = 5.37


def matrix_exp(x: ArrayLike, /) -> Tensor:
    """The exponential of each square matrix. It waits for the largest norm, which decides how often
    the exponential of a scaled matrix is squared.

    >>> import treadle as td
    >>> td.linalg.matrix_exp(td.asarray([[0.0, 1.0], [0.0, 0.0]], device="cpu")).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    stack = stack_of("matrix_exp", x, square=True)
    a = stack.matrices
    return stack.unstacked(exponential(a) if a.size else a.copied())


@composite
def exponential(a: Tensor) -> Tensor:
    """The exponentials of a stack of matrices."""
    count, rows, _ = a.shape
    sizes = norm_of_matrices(a, 1)
    most = float(largest(sizes).item())
    times = max(math.ceil(math.log2(most / _MOST_NORM)), 0) if 0 < most < math.inf else 0
    # The number of squarings of each: those of a small norm would lose precision by more.
    own = FUNCTIONS["ceil"](FUNCTIONS["log2"](FUNCTIONS["maximum"](sizes / _MOST_NORM, 1.0)))
    own = own.reshape((count, 1, 1)).realize()
    a = (a * FUNCTIONS["exp2"](-own)).realize()
    one = eye(rows, dtype=a.dtype, device=a.device)
    powers = [one, matmul(a, a).realize()]
    powers += [matmul(powers[1], powers[1]).realize()]
    powers += [matmul(powers[1], powers[2]).realize()]
    c = _PADE
    odd = matmul(powers[3], powers[3] * c[13] + powers[2] * c[11] + powers[1] * c[9])
    odd = odd + powers[3] * c[7] + powers[2] * c[5] + powers[1] * c[3] + one * c[1]
    odd = matmul(a, odd)
    even = matmul(powers[3], powers[3] * c[12] + powers[2] * c[10] + powers[1] * c[8])
    even = even + powers[3] * c[6] + powers[2] * c[4] + powers[1] * c[2] + one * c[0]
    found = solve(even - odd, even + odd)
    for turn in range(times):
        found = where(own > float(turn), matmul(found, found), found).realize()
    return found

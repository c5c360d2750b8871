"""Linear systems: solving them, inverses, least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.linalg import LinAlgError

from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import common_shape, device_of
from treadle.tensor.creation import empty
from treadle.tensor.dtypes import check_dtype, default_integer, finfo, promote
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.factors import qr
from treadle.tensor.linalg.stacks import (
    Stack,
    adjoint,
    checked_result,
    floating,
    in_compute_dtype,
    is_recording,
    stack_of,
    stacked,
)
from treadle.tensor.manipulation import broadcast_to, diagonal, matrix_transpose, moveaxis
from treadle.tensor.operands import operand
from treadle.tensor.products import matmul
from treadle.tensor.reductions import any as any_of
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["LstsqResult", "inv", "lstsq", "solve", "solve_triangular"]


class LstsqResult(NamedTuple):
    """The result of `lstsq`, with PyTorch's names."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The solution x of x1 @ x = x2 for square matrices x1. x2 is one vector, an array of one axis,
    or matrices; leading axes broadcast.

    LinAlgError if a matrix is singular, for which this waits for the device.

    >>> import treadle as td
    >>> a = td.asarray([[0.0, 2.0], [4.0, 0.0]], device="cpu")
    >>> td.linalg.solve(a, td.asarray([2.0, 8.0], device="cpu")).tolist()
    [2.0, 1.0]
    """
    a, b = _pair("solve", x1, x2)
    rows, columns = a.shape[-2:]
    if rows != columns:
        raise ShapeError(
            f"solve takes square matrices, not {rows} × {columns} ones: shape {a.shape}"
        )
    return _solved("solve", a, b, _solve_stack)


def inv(x: ArrayLike, /) -> Tensor:
    """The inverse of each matrix. To solve a system, `solve` is faster and more precise.

    LinAlgError if a matrix is singular, for which this waits for the device.

    >>> import treadle as td
    >>> td.linalg.inv(td.asarray([[0.0, 2.0], [4.0, 0.0]], device="cpu")).tolist()
    [[0.0, 0.25], [0.5, 0.0]]
    """
    stack = stack_of("inv", x, square=True)
    found, status = operations.inverse(stack.matrices)
    return stack.unstacked(checked_result("inv", "singular", stack, found, status))


def solve_triangular(
    A: ArrayLike, B: ArrayLike, /, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solution X of A @ X = B for triangular matrices A, of which the other triangle is not
    read; with left=False of X @ A = B. With `unitriangular` the diagonal is taken as ones. Stacks
    broadcast; B may be one vector. As in PyTorch a zero on the diagonal raises no error, but gives
    infinity or NaN.

    >>> import treadle as td
    >>> a = td.asarray([[2.0, 9.0], [1.0, 4.0]], device="cpu")
    >>> td.linalg.solve_triangular(a, td.asarray([2.0, 9.0], device="cpu"), upper=False).tolist()
    [1.0, 2.0]
    """
    a, b = _pair("solve_triangular", A, B)
    if a.shape[-2] != a.shape[-1]:
        raise ShapeError(f"solve_triangular takes square matrices, not ones of shape {a.shape}")
    if not left:
        if b.ndim < 2:
            raise ShapeError(
                f"solve_triangular: with left=False, B has rows to solve for: shape {b.shape} has "
                "one axis alone"
            )
        a, b, upper = matrix_transpose(a), matrix_transpose(b), not upper

    def through(name: str, a: Stack, b: Tensor) -> Tensor:
        return operations.solve_triangular(a.matrices, b, not upper, unitriangular)

    found = _solved("solve_triangular", a, b, through)
    return found if left else matrix_transpose(found).copied()


def lstsq(a: ArrayLike, b: ArrayLike, /) -> LstsqResult:
    """Least squares: the x that minimizes the sum of squares of a @ x - b, by QR, for matrices `a`
    of full rank: (solution, residuals, rank, singular_values). If there are more unknowns than
    equations, it is the solution with the least norm. b is one vector, or matrices whose stacks
    broadcast.

    As with PyTorch's driver "gels", `residuals` are the sums of squares of each column if there are
    more equations than unknowns, else empty, and `rank` and `singular_values` are empty.
    LinAlgError if a matrix does not have full rank, for which this waits for the device; `pinv(a) @
    b` works for any matrix.

    >>> import treadle as td
    >>> a = td.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], device="cpu")
    >>> found = td.linalg.lstsq(a, td.asarray([1.0, 3.0, 5.0], device="cpu"))
    >>> [round(value, 4) for value in found.solution.tolist()]
    [1.0, 2.0]
    """
    matrix, right = _pair("lstsq", a, b)
    dtype = matrix.dtype
    matrix, right = in_compute_dtype(matrix), in_compute_dtype(right)
    rows, columns = matrix.shape[-2:]
    vector = right.ndim == 1
    if right.shape[-1 if vector else -2] != rows:
        raise _unequal("lstsq", matrix.shape, right.shape)
    right = right.reshape((rows, 1)) if vector else right
    tall = rows >= columns
    q, r = qr(matrix if tall else adjoint(matrix))
    r = _of_full_rank(r, max(rows, columns))
    if tall:
        x = solve_triangular(r, matmul(adjoint(q), right), upper=True)
    else:
        x = matmul(q, solve_triangular(adjoint(r), right, upper=False))
    device = x.device
    residuals = empty((0,), dtype=dtype.component, device=device)
    if rows > columns:
        error = FUNCTIONS["abs"](matmul(matrix, x) - right)
        residuals = total(FUNCTIONS["square"](error), axis=-2).to(dtype.component)
        residuals = residuals[..., 0] if vector else residuals
    return LstsqResult(
        (x[..., 0] if vector else x).to(dtype),
        residuals,
        empty((0,), dtype=default_integer(device), device=device),
        empty((0,), dtype=dtype.component, device=device),
    )


def _of_full_rank(r: Tensor, extent: int) -> Tensor:
    """A triangular factor, checked: LinAlgError if an element of its diagonal is 0 up to
    rounding."""
    sizes = FUNCTIONS["abs"](diagonal(r, axis1=-2, axis2=-1))
    if not sizes.size:
        return r
    least = largest(sizes, axis=-1, keepdims=True) * (finfo(r.dtype).eps * extent)
    lacks = any_of(sizes <= least, axis=-1)
    if is_recording(r.device):
        return where(lacks.reshape((*lacks.shape, 1, 1)), float("nan"), r)
    if any_of(lacks):
        raise LinAlgError(
            "lstsq: a matrix does not have full rank, and QR finds no least solution then: use "
            "td.linalg.pinv(a) @ b"
        )
    return r


# --- shared parts --------------------------------------------------------------------


def _pair(name: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Both operands in their common dtype."""
    device = device_of(name, (x1, x2))
    a, b = (floating(name, operand(name, x)) for x in (x1, x2))
    if a.device is not device or b.device is not device:
        a, b = (x if x.device is device else x.to(device) for x in (a, b))
    if a.ndim < 2:
        raise ShapeError(
            f"{name} takes matrices, stacked or not, and not an array of shape {a.shape}"
        )
    if b.ndim < 1:
        raise ShapeError(f"{name}: the right side is a vector or matrices, not one number")
    dtype = promote(a.dtype, b.dtype)
    check_dtype(dtype, device)
    return a.to(dtype), b.to(dtype)


def _solved(
    name: str, a: Tensor, b: Tensor, solver: Callable[[str, Stack, Tensor], Tensor]
) -> Tensor:
    """Solve for vectors and for stacks of matrices: `solver` takes two stacks of one length."""
    dtype, n = a.dtype, a.shape[-1]
    a, b = in_compute_dtype(a), in_compute_dtype(b)
    vector = b.ndim == 1
    if b.shape[-1 if vector else -2] != n:
        raise _unequal(name, a.shape, b.shape)
    matrix = b.reshape((n, 1)) if vector else b
    front = common_shape(name, (a.shape[:-2], matrix.shape[:-2]))
    columns = matrix.shape[-1]
    if math.prod(a.shape[:-2]) == 1:  # for one matrix all right sides become its columns
        matrix = broadcast_to(matrix, (*front, n, columns))
        side = moveaxis(matrix, -2, 0).reshape((1, n, math.prod(front) * columns))
        x = solver(name, Stack(stacked(a), (), dtype), side)
        x = x.reshape((n, *front, columns))
        if math.prod(front) != 1:  # else its elements are in this order
            x = moveaxis(x, 0, -2).copied()
        x = x.reshape((*front, n, columns))
    else:
        stack = Stack(stacked(broadcast_to(a, (*front, n, n))), front, dtype)
        x = solver(name, stack, stacked(broadcast_to(matrix, (*front, n, columns))))
        x = x.reshape((*front, n, columns))
    return (x[..., 0] if vector else x).to(dtype)


def _solve_stack(name: str, a: Stack, b: Tensor) -> Tensor:
    found, status = operations.solve(a.matrices, b)
    return checked_result(name, "singular", a, found, status)


def _unequal(name: str, one: tuple[int, ...], other: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"{name}: matrices of shape {one} have {one[-2]} rows, which the right side of shape "
        f"{other} does not have"
    )

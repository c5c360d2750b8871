"""Matrix factorizations: Cholesky and QR, and determinants by LU."""

from __future__ import annotations

from typing import NamedTuple

from treadle.tensor.annotations import ArrayLike
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.stacks import adjoint, checked_result, stack_of
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["QRResult", "SlogdetResult", "cholesky", "det", "qr", "slogdet"]


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of each positive definite matrix: the lower triangular L with L @ L^H =
    x, where only the lower triangle of x is read; with `upper` U with U^H @ U = x, from the upper
    triangle.

    LinAlgError if a matrix is not positive definite, for which this waits for the device.

    >>> import treadle as td
    >>> td.linalg.cholesky(td.asarray([[4.0, 2.0], [2.0, 5.0]], device="cpu")).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    stack = stack_of("cholesky", x, square=True)
    a = adjoint(stack.matrices) if upper else stack.matrices
    found, status = operations.cholesky(a)
    found = checked_result("cholesky", "not positive definite", stack, found, status)
    return stack.unstacked(adjoint(found) if upper else found)


def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """The QR decomposition Q @ R = x of each matrix of shape (m, n): Q has orthonormal columns, and
    R is upper triangular. Their shapes are (m, k) and (k, n) with k = min(m, n), or with
    mode="complete" (m, m) and (m, n). The signs are LAPACK's.

    >>> import treadle as td
    >>> q, r = td.linalg.qr(td.asarray([[3.0], [4.0]], device="cpu"))
    >>> r.tolist()
    [[-5.0]]
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: mode is "reduced" or "complete", not {mode!r}')
    stack = stack_of("qr", x)
    return QRResult(*map(stack.unstacked, operations.qr(stack.matrices, mode == "complete")))


def det(x: ArrayLike, /) -> Tensor:
    """The determinant of each matrix; 0 for a singular matrix, 1 for one without elements.

    >>> import treadle as td
    >>> td.linalg.det(td.asarray([[0.0, 2.0], [4.0, 0.0]], device="cpu")).item()
    -8.0
    """
    stack = stack_of("det", x, square=True)
    a = stack.matrices
    return stack.unstacked(operations.det(a) if stack.rows else _nothing(a) + 1)


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The determinant of each matrix as its sign (for complex matrices a number of magnitude 1) and
    the logarithm of its magnitude, which does not overflow; 0 and -inf for a singular matrix.

    >>> import treadle as td
    >>> sign, log = td.linalg.slogdet(td.asarray([[0.0, 1.0], [1.0, 0.0]], device="cpu"))
    >>> sign.item(), log.item()
    (-1.0, 0.0)
    """
    stack = stack_of("slogdet", x, square=True)
    a, real = stack.matrices, stack.dtype.component
    if stack.rows:
        sign, logs = operations.slogdet(a)
    else:
        sign, logs = _nothing(a) + 1, FUNCTIONS["real"](_nothing(a))
    return SlogdetResult(stack.unstacked(sign), stack.unstacked(logs, real))


def _nothing(a: Tensor) -> Tensor:
    """0 for each matrix without elements."""
    found: Tensor = total(a, axis=(1, 2))
    return found

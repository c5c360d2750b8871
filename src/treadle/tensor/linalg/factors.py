"""Factors of matrices: Cholesky and QR, and the determinants that LU gives."""

from __future__ import annotations

from typing import NamedTuple

from treadle.tensor.annotations import ArrayLike
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.stacks import adjoint, regular, stack_of
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["QRResult", "SlogdetResult", "cholesky", "det", "qr", "slogdet"]


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The lower triangle L with L @ L^H = x of each positive definite matrix, of which only the
    lower triangle is read; with `upper` U with U^H @ U = x, from the upper one.

    LinAlgError if a matrix is not positive definite, for which this waits for the device.

    >>> import treadle as td
    >>> td.linalg.cholesky(td.asarray([[4.0, 2.0], [2.0, 5.0]], device="cpu")).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    stack = stack_of("cholesky", x, square=True)
    a = adjoint(stack.matrices) if upper else stack.matrices
    found, status = operations.cholesky(a)
    found = regular("cholesky", "not positive definite", stack, found, status)
    return stack.unstacked(adjoint(found) if upper else found)


def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and the upper triangle R with Q @ R = x, for each matrix of shape
    (m, n): (m, k) and (k, n) with k the lesser of both, or, with mode="complete", (m, m) and
    (m, n). The signs are LAPACK's.

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
    """The determinant of each matrix; 0 for a singular one, 1 for one without elements.

    >>> import treadle as td
    >>> td.linalg.det(td.asarray([[0.0, 2.0], [4.0, 0.0]], device="cpu")).item()
    -8.0
    """
    stack = stack_of("det", x, square=True)
    a = stack.matrices
    return stack.unstacked(operations.det(a) if stack.rows else _nothing(a) + 1)


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The determinant of each matrix as its sign (of complex ones a number of magnitude 1) and the
    logarithm of its magnitude, which does not overflow; 0 and -inf for a singular one.

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

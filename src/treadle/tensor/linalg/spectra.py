"""Singular values and eigenvalues, and functions that use them.

Singular values, and eigenvalues of symmetric matrices, are computed on the device, on a CPU by
LAPACK. LAPACK computes what else there is (complex matrices, those without symmetry) on the host:
for another device each function warns of that once, by a HostWarning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import composite
from treadle.tensor.creation import asarray, full
from treadle.tensor.dtypes import finfo
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.norms import norm_of_matrices
from treadle.tensor.linalg.stacks import Stack, adjoint, stack_of, warn_of_host, warn_where_on_host
from treadle.tensor.products import matmul
from treadle.tensor.reductions import count_nonzero
from treadle.tensor.reductions import max as largest
from treadle.tensor.tensor import Tensor

__all__ = [
    "EigResult", "EighResult", "SVDResult", "cond", "eig", "eigh", "eigvals", "eigvalsh",
    "matrix_rank", "pinv", "svd", "svdvals",
]  # fmt: skip


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """U, S and Vh with x = U @ diag(S) @ Vh, for each matrix of shape (m, n): columns of U and rows
    of Vh are orthonormal, S is in descending order. U is (m, m) and Vh (n, n); without
    `full_matrices` (m, k) and (k, n), with k = min(m, n).

    Computed on the device; of complex matrices on the host. The results of a matrix that is not
    finite are NaN; on the host they are NumPy's: a LinAlgError, or NaN too.

    >>> import treadle as td
    >>> td.linalg.svd(td.asarray([[0.0, 2.0], [3.0, 0.0]], device="cpu")).S.tolist()
    [3.0, 2.0]
    """
    stack = stack_of("svd", x)
    warn_where_on_host("svd", stack.matrices)
    u, s, vh = operations.svd(stack.matrices, full_matrices)
    real = stack.dtype.component
    return SVDResult(stack.unstacked(u), stack.unstacked(s, real), stack.unstacked(vh))


def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values of each matrix, in descending order. Computed as by `svd`.

    >>> import treadle as td
    >>> td.linalg.svdvals(td.asarray([[0.0, 2.0], [3.0, 0.0]], device="cpu")).tolist()
    [3.0, 2.0]
    """
    stack = stack_of("svdvals", x)
    warn_where_on_host("svdvals", stack.matrices)
    return stack.unstacked(operations.svdvals(stack.matrices), stack.dtype.component)


def eigh(x: ArrayLike, /) -> EighResult:
    """The eigenvalues of each symmetric (or Hermitian) matrix, in ascending order, and its
    eigenvectors, the columns of an orthogonal matrix. Only the lower triangle is read.

    Computed on the device; of complex matrices on the host. The results of a matrix that is not
    finite are NaN; on the host they are NumPy's: a LinAlgError, or NaN too.

    >>> import treadle as td
    >>> td.linalg.eigh(td.asarray([[3.0, 0.0], [0.0, 2.0]], device="cpu")).eigenvalues.tolist()
    [2.0, 3.0]
    """
    stack = stack_of("eigh", x, square=True)
    warn_where_on_host("eigh", stack.matrices)
    values, vectors = operations.eigh(stack.matrices)
    return EighResult(stack.unstacked(values, stack.dtype.component), stack.unstacked(vectors))


def eigvalsh(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of each symmetric (or Hermitian) matrix, in ascending order, of which only
    the lower triangle is read. Computed as by `eigh`."""
    stack = stack_of("eigvalsh", x, square=True)
    warn_where_on_host("eigvalsh", stack.matrices)
    return stack.unstacked(operations.eigvalsh(stack.matrices), stack.dtype.component)


def eig(x: ArrayLike, /) -> EigResult:
    """The eigenvalues of each square matrix, in no order, and its eigenvectors, columns of norm 1;
    both complex. Computed on the host, when one of the results is needed. For symmetric or
    Hermitian matrices, whose eigenvalues are real, use `eigh`.

    >>> import treadle as td
    >>> values, _ = td.linalg.eig(td.asarray([[2.0, 1.0], [0.0, 3.0]], device="cpu"))
    >>> values.tolist()
    [(2+0j), (3+0j)]
    """
    stack = stack_of("eig", x, square=True)
    warn_of_host("eig", stack.matrices.device)
    values, vectors = operations.eig(stack.matrices)
    return EigResult(*[stack.unstacked(x, x.dtype) for x in (values, vectors)])


def eigvals(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of each square matrix, in no order, as complex numbers. Computed on the
    host."""
    stack = stack_of("eigvals", x, square=True)
    warn_of_host("eigvals", stack.matrices.device)
    found = operations.eigvals(stack.matrices)
    return stack.unstacked(found, found.dtype)


def matrix_rank(x: ArrayLike, /, *, rtol: Any = None, atol: Any = None) -> Tensor:
    """The number of singular values of each matrix that are greater than `rtol` times the largest,
    and than `atol`; these are numbers, or have one for each matrix. By default `rtol` is the larger
    extent times the dtype's epsilon, or 0 if `atol` is given. Singular values are computed as
    by `svd`.

    >>> import treadle as td
    >>> td.linalg.matrix_rank(td.asarray([[1.0, 2.0], [2.0, 4.0]], device="cpu")).item()
    1
    """
    stack = stack_of("matrix_rank", x)
    warn_where_on_host("matrix_rank", stack.matrices)
    s = stack.unstacked(operations.svdvals(stack.matrices), stack.work.component)
    return count_nonzero(_counts(stack, s, rtol, atol), axis=-1)


def pinv(x: ArrayLike, /, *, rtol: Any = None, atol: Any = None) -> Tensor:
    """The pseudo-inverse of each matrix, by its singular values, of which those that `matrix_rank`
    does not count with `rtol` and `atol` are taken as 0. Computed as by `svd`.

    >>> import treadle as td
    >>> td.linalg.pinv(td.asarray([[2.0], [0.0]], device="cpu")).tolist()
    [[0.5, 0.0]]
    """
    stack = stack_of("pinv", x)
    warn_where_on_host("pinv", stack.matrices)

    def counted(s: Tensor) -> Tensor:
        return _counts(stack, stack.unstacked(s, s.dtype), rtol, atol).reshape(s.shape)

    return stack.unstacked(pseudo_inverse(stack.matrices, counted))


@composite
def pseudo_inverse(a: Tensor, counted: Callable[[Tensor], Tensor]) -> Tensor:
    """The pseudo-inverses of a stack of matrices; `counted` says which singular values are not
    0."""
    u, s, vh = operations.svd(a, False)
    counts = counted(s)
    inverse = where(counts, 1.0 / where(counts, s, 1.0), 0.0)
    scaled = adjoint(vh) * inverse.reshape((s.shape[0], 1, s.shape[1]))
    return matmul(scaled, adjoint(u))


def cond(x: ArrayLike, /, p: Any = None) -> Tensor:
    """The condition number of each matrix: its norm times that of its inverse, infinite for a
    singular matrix. `p` is an order of `matrix_norm`; None is 2. For orders that need singular
    values (None, 2, -2, "nuc") these are computed as by `svd`.

    >>> import treadle as td
    >>> td.linalg.cond(td.asarray([[1.0, 0.0], [0.0, 4.0]], device="cpu")).item()
    4.0
    """
    if p in (None, 2, -2):
        stack = stack_of("cond", x)
        warn_where_on_host("cond", stack.matrices)
        s = operations.svdvals(stack.matrices)
        if not s.shape[-1]:
            found = full((stack.count,), 0.0, dtype=s.dtype, device=s.device)
        else:
            found = s[:, -1] / s[:, 0] if p == -2 else s[:, 0] / s[:, -1]
    else:
        stack = stack_of("cond", x, square=True)
        if p == "nuc":
            warn_where_on_host("cond", stack.matrices)
        inverse, status = operations.inverse(stack.matrices)
        if p == "nuc":  # singular values need finite numbers
            is_regular = FUNCTIONS["equal"](status, 0).reshape((stack.count, 1, 1))
            inverse = where(is_regular, inverse, 0.0)
        found = norm_of_matrices(stack.matrices, p) * norm_of_matrices(inverse, p)
        found = where(FUNCTIONS["equal"](status, 0), found, math.inf)
    return stack.unstacked(found, stack.dtype.component)


def _counts(stack: Stack, s: Tensor, rtol: Any, atol: Any) -> Tensor:
    """Which singular values are greater than their limit."""
    if not s.shape[-1]:
        return s > 0.0
    default = max(stack.rows, stack.columns) * finfo(stack.work).eps
    least = 0.0 if atol is None else _by_matrix(atol, s)
    if rtol is not None:
        factor = _by_matrix(rtol, s)
    elif isinstance(least, Tensor):
        factor = where(least > 0.0, 0.0, default)
    else:
        factor = 0.0 if least > 0.0 else default
    limit = largest(s, axis=-1, keepdims=True) * factor
    counts: Tensor = s > (limit if atol is None else FUNCTIONS["maximum"](limit, least))
    return counts


def _by_matrix(limit: Any, s: Tensor) -> Any:
    """A limit that broadcasts with singular values: a number, or a tensor of one for each
    matrix."""
    if isinstance(limit, (int, float)):
        return float(limit)
    found = (limit if type(limit) is Tensor else asarray(limit, device=s.device)).to(s.dtype)
    return found.reshape((*found.shape, 1))

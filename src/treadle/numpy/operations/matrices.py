"""`np.linalg`: factorizations, systems, norms. Integers are computed in float64; the results of
float32 are float32, as in NumPy; float16 is refused, as there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations import products, reductions
from treadle.numpy.operations.operands import array, axes_of, axis_of, common, floats
from treadle.numpy.operations.products import cross as _cross
from treadle.numpy.operations.products import matmul as _matmul
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.stacks import stack_of
from treadle.tensor.tensor import Tensor as Inner

LinAlgError = np.linalg.LinAlgError


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """The same of symmetric matrices."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """A matrix with orthogonal columns, and a triangular one."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Singular vectors, singular values, and the other vectors as rows."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


def _numbers(value: Any) -> Inner:
    x = floats(value)
    if x.dtype.itemsize == 2:
        raise TypeError(f"array type {x.dtype} is unsupported in linalg")
    return x


def _matrix(value: Any, is_square: bool = False) -> Inner:
    x = array(value)
    if len(x.shape) < 2:
        raise LinAlgError(
            f"{len(x.shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    if is_square and x.shape[-1] != x.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return _numbers(x)


def _square(value: Any) -> Inner:
    return _matrix(value, True)


def _finite(x: Inner) -> Inner:
    if x.size and not bool(td.all(td.isfinite(x))):
        raise LinAlgError("Array must not contain infs or NaNs")
    return x


def solve(a: Any, b: Any) -> Inner:
    """X for which a @ x = b. LinAlgError for singular matrices."""
    one, other = (each for each in common(_square(a), floats(b)))
    if not other.shape:
        raise LinAlgError("0-dimensional array given. Array must be at least one-dimensional")
    if other.shape[-1 if len(other.shape) == 1 else -2] != one.shape[-1]:
        raise ValueError("solve: Input operand 1 has a mismatch in its core dimension 0")
    if len(other.shape) == 1:
        return _checked(one, td.linalg.solve(one, td.expand_dims(other, axis=-1)))[..., 0]
    return _checked(one, td.linalg.solve(one, other))


def _checked(matrix: Inner, made: Inner) -> Inner:
    """LinAlgError for singular matrices, whose solutions are not finite."""
    if not made.size or bool(td.all(td.isfinite(made))) or not bool(td.all(td.isfinite(matrix))):
        return made
    if bool(td.any(td.linalg.det(matrix) == 0)):
        raise LinAlgError("Singular matrix")
    return made


def inv(a: Any) -> Inner:
    """The inverse. LinAlgError for singular matrices."""
    x = _square(a)
    return _checked(x, td.linalg.inv(x))


def det(a: Any) -> Inner:
    """The determinant."""
    return td.linalg.det(_square(a))


def slogdet(a: Any) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its size."""
    found = td.linalg.slogdet(_square(a))
    return SlogdetResult(found.sign, found.logabsdet)


def cholesky(a: Any, /, *, upper: bool = False) -> Inner:
    """The triangular root of a positive definite matrix. LinAlgError for others."""
    return td.linalg.cholesky(_square(a), upper=upper)


def qr(a: Any, mode: str = "reduced") -> Any:
    """A matrix with orthogonal columns times a triangular one."""
    x = _matrix(a)
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    if mode == "raw":
        raise NotImplementedError('qr(mode="raw") is in the form of LAPACK: use mode="reduced"')
    if mode == "r":
        return td.linalg.qr(x).R
    found = td.linalg.qr(x, mode=mode)
    return QRResult(found.Q, found.R)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Singular values and vectors."""
    x = _matrix(a)
    if not compute_uv:
        return td.linalg.svdvals(x)
    found = td.linalg.svd(x, full_matrices=full_matrices)
    return SVDResult(found.U, found.S, found.Vh)


def svdvals(x: Any, /) -> Inner:
    """Singular values."""
    return td.linalg.svdvals(_matrix(x))


def eig(a: Any) -> EigResult:
    """Eigenvalues and eigenvectors; real ones if all of them are."""
    x = _finite(_square(a))
    values, vectors = td.linalg.eig(x)
    if x.dtype.kind != "complex" and not bool(td.any(td.imag(values) != 0)):
        return EigResult(td.real(values), td.real(vectors))
    return EigResult(values, vectors)


def eigvals(a: Any) -> Inner:
    """Eigenvalues; real ones if all of them are."""
    x = _finite(_square(a))
    values = td.linalg.eigvals(x)
    is_real = x.dtype.kind != "complex" and not bool(td.any(td.imag(values) != 0))
    return td.real(values) if is_real else values


def _triangle(a: Any, UPLO: str) -> Inner:
    x = _square(a)
    side = UPLO.upper()
    if side not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    half = td.tril(x) if side == "L" else td.triu(x)
    rest = td.tril(x, k=-1) if side == "L" else td.triu(x, k=1)
    other = td.matrix_transpose(rest)
    return half + (td.conj(other) if x.dtype.kind == "complex" else other)


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric matrix, of which one triangle is read."""
    found = td.linalg.eigh(_triangle(a, UPLO))
    return EighResult(found.eigenvalues, found.eigenvectors)


def eigvalsh(a: Any, UPLO: str = "L") -> Inner:
    """Eigenvalues of a symmetric matrix."""
    return td.linalg.eigvalsh(_triangle(a, UPLO))


def pinv(
    a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = reductions.MISSING
) -> Inner:
    """The pseudoinverse: singular values up to `rcond` times the greatest count as 0."""
    x = _matrix(a)
    limit = rcond if rcond is not None else None if rtol is reductions.MISSING else rtol
    if limit is None:
        limit = (
            1e-15
            if rtol is reductions.MISSING
            else max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
        )
    limit = limit.item() if isinstance(limit, (Inner, np.generic)) and not limit.shape else limit
    if not x.size:
        return td.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype, device=x.device)
    return td.linalg.pinv(x, rtol=limit)


def matrix_power(a: Any, n: int) -> Inner:
    """A matrix to an integer power."""
    x = array(a)
    if len(x.shape) < 2:
        raise LinAlgError(
            f"{len(x.shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    if x.shape[-1] != x.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    try:
        power = n.__index__()
    except AttributeError:
        raise TypeError("exponent must be an integer") from None
    if power < 0:
        x, power = inv(x), -power
    if power == 0:
        eye = td.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return td.broadcast_to(eye, x.shape).copied()
    made: Inner | None = None
    while power:
        if power & 1:
            made = x if made is None else _matmul(made, x)
        power >>= 1
        x = _matmul(x, x) if power else x
    assert made is not None
    return made


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Inner:
    """The number of singular values that are not 0."""
    x = array(A)
    index = promotion.default_integer(x.device)
    if len(x.shape) < 2:
        return td.any(x != 0).to(index)
    values = td.linalg.svdvals(_matrix(x))
    if tol is None:
        factor = (
            max(x.shape[-2:]) * float(np.finfo(values.dtype.numpy).eps) if rtol is None else rtol
        )
        limit = td.max(values, axis=-1, keepdims=True) * factor if values.shape[-1] else 0.0
    else:
        limit = (
            td.expand_dims(array(tol, like=values), axis=-1)
            if not isinstance(tol, (int, float))
            else tol
        )
    return td.sum(values > limit, axis=-1).to(index)


def cond(x: Any, p: Any = None) -> Inner:
    """The condition number."""
    made = _matrix(x)
    if not made.size:
        raise LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        values = td.linalg.svdvals(made)
        first, last = values[..., 0], values[..., -1]
        value = last / first if p == -2 else first / last
    else:
        value = norm(_square(made), p, (-2, -1)) * norm(_inverse_or_nan(made), p, (-2, -1))
    # What is not a number is infinite, but where an element was none.
    missing = td.any(td.isnan(made), axis=(-2, -1))
    return td.where(td.isnan(value) & ~missing, np.inf, value).to(value.dtype)


def _inverse_or_nan(x: Inner) -> Inner:
    """The inverses of matrices; NaN for those that are singular."""
    stack = stack_of("inv", x, square=True)
    found, status = operations.inverse(stack.matrices)
    is_regular = (status == 0).reshape((-1, 1, 1))
    return stack.unstacked(td.where(is_regular, found, np.nan).to(found.dtype))


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Inner, Inner, Any, Inner]:
    """The x for which a @ x is nearest to b; residuals, the rank, singular values."""
    one, other = common(_matrix(a), floats(b))
    if len(one.shape) != 2:
        raise LinAlgError(
            f"{len(one.shape)}-dimensional array given. Array must be two-dimensional"
        )
    is_vector = len(other.shape) == 1
    right = other.reshape((-1, 1)) if is_vector else other
    if right.shape[0] != one.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    m, n = one.shape
    factor = float(np.finfo(one.dtype.numpy).eps) * max(m, n) if rcond is None else float(rcond)
    u, s, vh = td.linalg.svd(one, full_matrices=False)
    kept = s > factor * (s[0] if s.size else 0.0)
    rank = int(td.sum(kept).item())
    inverse = td.where(kept, 1 / td.where(kept, s, 1), 0).to(s.dtype)
    turned = (
        td.conj(td.matrix_transpose(u)) if one.dtype.kind == "complex" else td.matrix_transpose(u)
    )
    back = (
        td.conj(td.matrix_transpose(vh)) if one.dtype.kind == "complex" else td.matrix_transpose(vh)
    )
    made = td.matmul(back, inverse.reshape((-1, 1)).to(one.dtype) * td.matmul(turned, right))
    if rank == n and m > n:
        rest = td.matmul(one, made) - right
        left = td.sum(
            td.real(rest * td.conj(rest)) if one.dtype.kind == "complex" else rest * rest, axis=0
        )
    else:
        left = td.zeros((0,), dtype=one.dtype.component, device=one.device)
    return made[:, 0] if is_vector else made, left, np.int32(rank), s


def multi_dot(arrays: Any) -> Inner:
    """The product of several matrices, in the order that costs least."""
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    given = common(*arrays)
    for each in given[1:-1]:
        if len(each.shape) != 2:
            raise LinAlgError(
                f"{len(each.shape)}-dimensional array given. Array must be two-dimensional"
            )
    return (
        td.linalg.multi_dot(given)
        if given[0].dtype.kind in ("float", "complex")
        else _in_order(given)
    )


def _in_order(given: list[Inner]) -> Inner:
    made = given[0]
    for each in given[1:]:
        made = products.dot(made, each)
    return made


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Inner:
    """X for which tensordot(a, x, x.ndim) = b."""
    one, other = common(floats(a), floats(b))
    if axes is not None:
        order = list(range(len(one.shape)))
        for each in axes:
            order.remove(each)
            order.append(each)
        one = td.permute_dims(one, order)
    rest = one.shape[len(other.shape) :]
    count = int(np.prod(rest, dtype=object)) if rest else 1
    if one.size != count**2:
        raise LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == "
            "prod(a.shape[:b.ndim])"
        )
    return solve(one.reshape((-1, count)), other.reshape(-1)).reshape(rest)


def tensorinv(a: Any, ind: int = 2) -> Inner:
    """The inverse for tensordot(…, ind)."""
    x = floats(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = x.shape[ind:] + x.shape[:ind]
    count = int(np.prod(x.shape[ind:], dtype=object)) if x.shape[ind:] else 1
    return inv(x.reshape((count, -1))).reshape(shape)


# --- norms ----------------------------------------------------------------------------------------


def _sizes(x: Inner) -> Inner:
    return td.abs(x)


def _vector_norm(x: Inner, order: Any, axes: Any, keepdims: bool) -> Inner:
    size = _sizes(x)
    if order == np.inf:
        return reductions.amax(size, axes, keepdims=keepdims)
    if order == -np.inf:
        return reductions.amin(size, axes, keepdims=keepdims)
    if order == 0:
        return reductions.sum((size != 0).to(size.dtype), axes, keepdims=keepdims)
    if order == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if order is None or order == 2:
        return td.sqrt(reductions.sum(size * size, axes, keepdims=keepdims))
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    made: Inner = reductions.sum(size**order, axes, keepdims=keepdims) ** (1.0 / order)
    return made


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Inner:
    """The norm of vectors or of matrices."""
    made = floats(x)
    count = len(made.shape)
    if axis is None:
        if ord is None or (ord in ("f", "fro") and count == 2) or (ord == 2 and count == 1):
            flat = made.reshape(-1)
            found = _vector_norm(flat, 2, None, False)
            return found.reshape((1,) * count) if keepdims else found
        axes: Any = tuple(range(count))
    else:
        axes = axes_of(axis, count)
        if isinstance(axis, (tuple, list)):
            axes = tuple(axis_of(each, count) for each in axis)
    if len(axes) == 1:
        return _vector_norm(made, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    found = _matrix_norm(td.moveaxis(made, axes, (-2, -1)), ord)
    return (
        found.reshape(tuple(1 if at in axes else e for at, e in enumerate(made.shape)))
        if keepdims
        else found
    )


def _matrix_norm(x: Inner, order: Any) -> Inner:
    size = _sizes(x)
    if order in (None, "fro", "f"):
        return td.sqrt(td.sum(size * size, axis=(-2, -1)))
    if order in (np.inf, -np.inf, 1, -1):
        sums = td.sum(size, axis=-1 if abs(order) == np.inf else -2)
        return reductions.amax(sums, -1) if order > 0 else reductions.amin(sums, -1)
    if order in (2, -2, "nuc"):
        values = td.linalg.svdvals(_numbers(x))
        if order == "nuc":
            return td.sum(values, axis=-1)
        return reductions.amax(values, -1) if order == 2 else reductions.amin(values, -1)
    raise ValueError("Invalid norm order for matrices.")


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Inner:
    """The norm of matrices, the last two axes."""
    made = floats(x)
    found = _matrix_norm(made, ord)
    return found.reshape((*found.shape, 1, 1)) if keepdims else found


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Inner:
    """The norm of vectors along axes; of all elements without."""
    made = floats(x)
    axes = axes_of(axis, len(made.shape))
    return _vector_norm(made, ord, axes, keepdims) if axes else td.abs(made)


# --- the standard's forms -------------------------------------------------------------------------


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Inner:
    """The vectors that are perpendicular to pairs of vectors of 3 components."""
    one, other = common(x1, x2)
    if one.shape[axis] != 3 or other.shape[axis] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return _cross(one, other, axis=axis)


def matmul(x1: Any, x2: Any, /) -> Inner:
    """The matrix product."""
    return _matmul(x1, x2)


def outer(x1: Any, x2: Any, /) -> Inner:
    """The products of all pairs of elements of two vectors."""
    one, other = common(x1, x2)
    if len(one.shape) != 1 or len(other.shape) != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={len(one.shape)} and "
            f"x2.ndim={len(other.shape)}."
        )
    return products.outer(one, other)


def diagonal(x: Any, /, *, offset: int = 0) -> Inner:
    """The diagonals of matrices: a view."""
    return products._diagonal(array(x), offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Inner:
    """The sums of diagonals."""
    return products.trace(x, offset, -2, -1, dtype)

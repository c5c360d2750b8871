"""`torch.linalg`: norms, factors, systems, eigenvalues."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.stacks import stack_of
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers, result_type
from treadle.torch.operations import shapes
from treadle.torch.operations.axes import long, reduced, several
from treadle.torch.operations.operands import cast

CholeskyEx = namedtuple("CholeskyEx", "L info")
Eig = namedtuple("Eig", "eigenvalues eigenvectors")
InvEx = namedtuple("InvEx", "inverse info")
Lstsq = namedtuple("Lstsq", "solution residuals rank singular_values")
QR = namedtuple("QR", "Q R")
SVD = namedtuple("SVD", "U S Vh")
Slogdet = namedtuple("Slogdet", "sign logabsdet")
SolveEx = namedtuple("SolveEx", "result info")


def _floats(name: str, input: Inner) -> Inner:
    if input.dtype.kind not in ("float", "complex"):
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype}"
        )
    return input


def matrices_of(name: str, input: Inner, *, square: bool = False) -> Inner:
    """An operand of a function of matrices. RuntimeError for other shapes and dtypes."""
    if len(input.shape) < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if square and input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are "
            f"{input.shape[-2]} by {input.shape[-1]} matrices"
        )
    return _floats(name, input)


# --- norms ---------------------------------------------------------------------------------------


def vector_norm(
    x: Inner, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The norm of vectors along axes, or of all elements."""
    x = _floats("vector_norm", x if dtype is None else x.to(dtype))
    if not x.shape:  # its one axis is the number's own
        reduced(dim, 0)
        return td.linalg.vector_norm(x, ord=ord)
    axes = reduced(dim, len(x.shape))
    reached = range(len(x.shape)) if axes is None else axes
    if (ord < 0 or ord == math.inf) and not math.prod(x.shape[axis] for axis in reached):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the "
            "operation does not have an identity"
        )
    return td.linalg.vector_norm(x, axis=axes, keepdims=keepdim, ord=ord)


def matrix_norm(
    A: Inner, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Inner:  # fmt: skip
    """The norm of matrices."""
    A = _floats("matrix_norm", A if dtype is None else A.to(dtype))
    axes = several(dim, len(A.shape))
    if len(axes) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(dim)}")
    if len(A.shape) < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    if not A.size and ord in (1, 2, math.inf):
        return td.sum(td.abs(A), axis=axes, keepdims=keepdim)
    return td.linalg.matrix_norm(A, ord=ord, axis=axes, keepdims=keepdim)


def norm(
    A: Inner, ord: Any = None, dim: Any = None, keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Inner:  # fmt: skip
    """The norm of vectors or matrices, by the number of axes."""
    axes = None if dim is None else several(dim, len(A.shape))
    if ord is None:
        return vector_norm(A, 2, axes, keepdim, dtype=dtype)
    if axes is None:
        if len(A.shape) not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{len(A.shape)}D."
            )
        axes = tuple(range(len(A.shape)))
    if len(axes) == 2:
        return matrix_norm(A, ord, axes, keepdim, dtype=dtype)
    return vector_norm(A, ord, axes, keepdim, dtype=dtype)


def cond(A: Inner, p: Any = None) -> Inner:
    """The condition number of matrices."""
    return td.linalg.cond(matrices_of("cond", A), p)


# --- factors -------------------------------------------------------------------------------------


def cholesky(input: Inner, *, upper: bool = False) -> Inner:
    """The Cholesky factor of positive definite matrices."""
    return td.linalg.cholesky(matrices_of("cholesky", input, square=True), upper=upper)


def cholesky_ex(input: Inner, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and where it is not one (0: it is)."""
    stack = stack_of("cholesky", matrices_of("cholesky_ex", input, square=True), square=True)
    a = shapes.adjoint(stack.matrices) if upper else stack.matrices
    found, status = operations.cholesky(a)
    info = _status("linalg.cholesky_ex", status, stack.front, check_errors)
    return CholeskyEx(stack.unstacked(shapes.adjoint(found) if upper else found), info)


def _status(name: str, status: Inner, front: tuple[int, ...], checks: bool) -> Inner:
    found = status.reshape(front).to(td.int32)
    if checks and bool(td.any(found != 0)):
        raise td.linalg.LinAlgError(f"{name}: a matrix of the input is singular or not definite")
    return found


def qr(A: Inner, mode: str = "reduced") -> Any:
    """An orthogonal and an upper triangular factor: "reduced", "complete", or the second alone
    ("r")."""
    matrices_of("qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    found = td.linalg.qr(A, mode="reduced" if mode == "r" else mode)
    if mode == "r":
        return QR(td.zeros((0,), dtype=A.dtype, device=A.device), found.R)
    return QR(*found)


def svd(A: Inner, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Singular values with their vectors."""
    return SVD(*td.linalg.svd(matrices_of("svd", A), full_matrices=full_matrices))


def svdvals(A: Inner, *, driver: str | None = None) -> Inner:
    """Singular values."""
    return td.linalg.svdvals(matrices_of("svdvals", A))


def eig(A: Inner) -> Any:
    """Eigenvalues and eigenvectors, complex."""
    return Eig(*td.linalg.eig(matrices_of("eig", A, square=True)))


def eigvals(A: Inner) -> Inner:
    """Eigenvalues, complex."""
    return td.linalg.eigvals(matrices_of("eigvals", A, square=True))


def eigh(A: Inner, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, of which one triangle is
    read."""
    return Eig(*td.linalg.eigh(_lower("eigh", A, UPLO)))


def eigvalsh(A: Inner, UPLO: str = "L") -> Inner:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return td.linalg.eigvalsh(_lower("eigvalsh", A, UPLO))


def _lower(name: str, A: Inner, UPLO: str) -> Inner:
    matrices_of(name, A, square=True)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return A if UPLO.upper() == "L" else shapes.adjoint(A)


def det(A: Inner) -> Inner:
    """Determinants."""
    return td.linalg.det(matrices_of("det", A, square=True))


def slogdet(A: Inner) -> Any:
    """The signs of determinants, and the logarithms of their magnitudes."""
    return Slogdet(*td.linalg.slogdet(matrices_of("slogdet", A, square=True)))


def logdet(input: Inner) -> Inner:
    """The logarithms of determinants: NaN for negative ones."""
    sign, logs = slogdet(input)
    if input.dtype.kind == "complex":
        return td.log(sign) + logs
    return td.where(sign < 0, math.nan, logs)


def matrix_rank(
    A: Inner, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Inner:
    """The number of singular values that are not 0 up to rounding."""
    if tol is not None:
        atol, rtol = tol, 0.0
    matrices_of("matrix_rank", A)
    return long(td.linalg.matrix_rank(_symmetric(A, hermitian), atol=atol, rtol=rtol))


def _symmetric(A: Inner, hermitian: bool) -> Inner:
    """What a function of the lower triangles means; the upper ones are not read."""
    if not hermitian:
        return A
    below = td.tril(A, k=-1)
    return td.tril(A) + shapes.adjoint(below)


def pinv(
    A: Inner, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Inner:
    """Pseudo-inverses."""
    rtol = rcond if rtol is None else rtol
    matrices_of("pinv", A)
    if not A.size:
        return td.matrix_transpose(A).copied()
    return td.linalg.pinv(_symmetric(A, hermitian), atol=atol, rtol=rtol)


def pinverse(input: Inner, rcond: float = 1e-15) -> Inner:
    """Pseudo-inverses."""
    return pinv(input, rcond)


# --- systems -------------------------------------------------------------------------------------


def inv(A: Inner) -> Inner:
    """Inverses; RuntimeError for singular matrices."""
    return td.linalg.inv(matrices_of("inv", A, square=True))


def inverse(input: Inner) -> Inner:
    """Inverses; RuntimeError for singular matrices."""
    return inv(input)


def inv_ex(A: Inner, *, check_errors: bool = False) -> Any:
    """Inverses, and which matrices have none (not 0)."""
    stack = stack_of("inv", matrices_of("inv_ex", A, square=True), square=True)
    found, status = operations.inverse(stack.matrices)
    info = _status("linalg.inv_ex", status, stack.front, check_errors)
    return InvEx(stack.unstacked(found), info)


def is_vector(A: Inner, B: Inner) -> bool:
    """Whether a right side is vectors and not matrices, to PyTorch."""
    return len(B.shape) == 1 or (
        len(A.shape) - 1 == len(B.shape) and tuple(B.shape) == tuple(A.shape[:-1])
    )


def solve(A: Inner, B: Inner, *, left: bool = True) -> Inner:
    """The X with A @ X = B, or X @ A = B; RuntimeError for singular matrices."""
    A, B = _pair("solve", A, B)
    if is_vector(A, B):
        if not left:
            raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not "
                               "supported for left=False")  # fmt: skip
        if len(B.shape) == 1:
            return td.linalg.solve(A, B)
        return td.squeeze(td.linalg.solve(A, td.expand_dims(B, axis=-1)), axis=-1)
    if left:
        return td.linalg.solve(A, B)
    return td.matrix_transpose(td.linalg.solve(td.matrix_transpose(A), td.matrix_transpose(B)))


def _pair(name: str, A: Inner, B: Inner) -> tuple[Inner, Inner]:
    matrices_of(name, A, square=True)
    dtype = result_type(A, B)
    return cast(A, dtype), cast(B, dtype)


def solve_ex(A: Inner, B: Inner, *, left: bool = True, check_errors: bool = False) -> Any:
    """The X with A @ X = B, or X @ A = B, and which matrices are singular (not 0)."""
    A, B = _pair("solve_ex", A, B)
    _, info = inv_ex(A.detach(), check_errors=check_errors)
    good = (info == 0).reshape((*info.shape, 1, 1))
    one_ = td.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    found = solve(td.where(good, A, one_), B, left=left)
    is_bad = bool(td.any(info != 0))
    if is_bad:
        vector = is_vector(A, B)
        mask = good.reshape(good.shape[:-1]) if vector else good
        found = td.where(mask, found, math.nan)
    return SolveEx(found, info)


def solve_triangular(
    A: Inner, B: Inner, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Inner:
    """The X with A @ X = B, or X @ A = B, for triangular matrices A."""
    A, B = _pair("solve_triangular", A, B)
    return td.linalg.solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


def triangular_solve(
    b: Inner, A: Inner, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The X with A @ X = b for triangular matrices A, and A."""
    matrix = td.matrix_transpose(A) if transpose else A
    found = td.linalg.solve_triangular(
        matrix, b, upper=upper != transpose, unitriangular=unitriangular
    )
    front = found.shape[:-2]
    return TriangularSolve(found, td.broadcast_to(A, (*front, *A.shape[-2:])).copied())


TriangularSolve = namedtuple("TriangularSolve", "solution cloned_coefficient")


def lstsq(A: Inner, B: Inner, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Least squares: by QR, for matrices of full rank ("gels"), or by singular values, the solution
    of least norm. The default is any rank on the CPU, and "gels" elsewhere."""
    matrices_of("lstsq", A)
    dtype = result_type(A, B)
    A, B = cast(A, dtype), cast(B, dtype)
    rows, columns = A.shape[-2:]
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = is_vector(A, B)
    right = td.expand_dims(B, axis=-1) if vector else B
    none = td.zeros((0,), dtype=dtype.component, device=A.device)
    # The default is PyTorch's: on the CPU any rank will do.
    chosen = driver or ("gelsy" if A.device.traits.host_memory else "gels")
    counts: dict[str, Any] = {"dtype": integers(A.device), "device": A.device}
    values, rank, residuals = none, td.zeros((0,), **counts), none
    is_full = True
    if chosen == "gels":
        found = td.linalg.lstsq(A, right).solution
    else:
        tolerance = max(rows, columns) * td.finfo(dtype).eps if rcond is None else rcond
        rank = matrix_rank(A.detach(), atol=0.0, rtol=tolerance)
        found = td.matmul(pinv(A, rtol=tolerance), right)
        if chosen != "gelsy":
            values = svdvals(A.detach())
            is_full = bool(td.all(rank == min(rows, columns)).item())
    if rows > columns and chosen != "gelsy" and is_full:
        error = td.abs(td.matmul(A, found) - right)
        residuals = td.sum(error * error, axis=-2)
    return Lstsq(td.squeeze(found, axis=-1) if vector else found, residuals, rank, values)


# --- powers, products ----------------------------------------------------------------------------


def matrix_power(A: Inner, n: int) -> Inner:
    """Powers of square matrices; of their inverses for negative n."""
    if len(A.shape) < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError("linalg.matrix_power: A must be batches of square matrices")
    return td.linalg.matrix_power(A, n)


def matrix_exp(input: Inner) -> Inner:
    """Exponentials of square matrices."""
    return td.linalg.matrix_exp(matrices_of("matrix_exp", input, square=True))


def multi_dot(tensors: Sequence[Inner]) -> Inner:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    return td.linalg.multi_dot(list(tensors))


def chain_matmul(*matrices: Any) -> Inner:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    return multi_dot(matrices) if len(matrices) > 1 else matrices[0]


def cross(input: Inner, other: Inner, *, dim: int = -1) -> Inner:
    """Cross products along an axis of three elements."""
    dtype = result_type(input, other)
    if len(input.shape) != len(other.shape):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    return td.linalg.cross(cast(input, dtype), cast(other, dtype), axis=dim)


def cross_of(input: Inner, other: Inner, dim: int | None = None) -> Inner:
    """`torch.cross`, along the first axis of three elements if none is named."""
    if dim is None:
        found = [at for at, extent in enumerate(input.shape) if extent == 3]
        if not found:
            raise RuntimeError("no dimension of size 3 in input")
        dim = found[0]
    return cross(input, other, dim=dim)


def vecdot(x: Inner, y: Inner, *, dim: int = -1) -> Inner:
    """The sums of conj(x) * y along an axis."""
    return td.vecdot(x, y, axis=dim)


def diagonal(A: Inner, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Inner:
    """A view of the diagonals of matrices."""
    return shapes.diagonal(A, offset, dim1, dim2)


def vander(x: Inner, N: int | None = None) -> Inner:
    """Matrices of powers, from 0 to N - 1."""
    x = x if x.shape else x.reshape(1)
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise RuntimeError(f"N must be greater than 1.  Got {N}")
    if x.dtype.kind == "bool":
        x = long(x)
    columns = [td.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return td.stack(columns, axis=-1)


def vander_of(x: Inner, N: int | None = None, increasing: bool = False) -> Inner:
    """`torch.vander`, whose powers descend unless `increasing`."""
    count = x.shape[-1] if N is None else N
    if not count:
        return td.zeros((*x.shape, 0), dtype=x.dtype, device=x.device)
    found = vander(x, count) if count > 1 else td.expand_dims(td.ones_like(x), axis=-1)
    if found.dtype.kind != "complex" and x.dtype.is_integer:
        found = long(found)
    return found if increasing else td.flip(found, axis=-1).copied()


def tensorinv(A: Inner, ind: int = 2) -> Inner:
    """The inverse of a tensor as a matrix of its first `ind` axes and its others."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    front, back = A.shape[:ind], A.shape[ind:]
    if math.prod(front) != math.prod(back):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(back)} != {math.prod(front)}"
        )
    found = inv(A.reshape(math.prod(front), math.prod(back)))
    return found.reshape((*back, *front))


def tensorsolve(A: Inner, B: Inner, dims: Any = None) -> Inner:
    """The X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        A = shapes.movedim(A, tuple(dims), tuple(range(len(A.shape) - len(dims), len(A.shape))))
    shape = A.shape[len(B.shape) :]
    found = solve(A.reshape(B.size, math.prod(shape)), B.reshape(B.size))
    return found.reshape(shape)


def cholesky_inverse(L: Inner, upper: bool = False) -> Inner:
    """The inverse of a matrix whose Cholesky factor is known."""
    one_ = td.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    return cholesky_solve(one_, L, upper)


def cholesky_solve(B: Inner, L: Inner, upper: bool = False) -> Inner:
    """The X with A @ X = B, by the Cholesky factor of A."""
    lower = shapes.adjoint(L) if upper else L
    inner = td.linalg.solve_triangular(lower, B, upper=False)
    return td.linalg.solve_triangular(shapes.adjoint(lower), inner, upper=True)


def svd_of(input: Inner, some: bool = True, compute_uv: bool = True) -> Any:
    """`torch.svd`: the second vectors are columns, too."""
    if not compute_uv:
        rows, columns = input.shape[-2:]
        zeros = [
            td.zeros((*input.shape[:-2], n, n), dtype=input.dtype, device=input.device)
            for n in (rows, columns)
        ]
        return SVDOf(zeros[0], svdvals(input), zeros[1])
    u, s, vh = svd(input, not some)
    return SVDOf(u, s, shapes.adjoint(vh))


SVDOf = namedtuple("SVDOf", "U S V")


def qr_of(input: Inner, some: bool = True) -> Any:
    """`torch.qr`: reduced if `some`, else complete."""
    return qr(input, "reduced" if some else "complete")


def cholesky_of(input: Inner, upper: bool = False) -> Inner:
    """`torch.cholesky`."""
    return cholesky(input, upper=upper)


# --- by random projections -----------------------------------------------------------------------


def svd_lowrank(A: Inner, q: int = 6, niter: int = 2, M: Inner | None = None) -> Any:
    """About the q largest singular values with their vectors, by random projections."""
    A = A if M is None else A - M
    is_wide = A.shape[-2] < A.shape[-1]
    tall = shapes.adjoint(A) if is_wide else A
    draw = td.random.normal((tall.shape[-1], q), dtype=A.dtype.component, device=A.device).to(
        A.dtype
    )
    basis = td.linalg.qr(td.matmul(tall, draw)).Q
    for _ in range(niter):
        basis = td.linalg.qr(td.matmul(shapes.adjoint(tall), basis)).Q
        basis = td.linalg.qr(td.matmul(tall, basis)).Q
    u, s, vh = td.linalg.svd(td.matmul(shapes.adjoint(basis), tall), full_matrices=False)
    u, v = td.matmul(basis, u), shapes.adjoint(vh)
    return SVDOf(v, s, u) if is_wide else SVDOf(u, s, v)


def pca_lowrank(A: Inner, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """About the q largest principal components of rows, by random projections."""
    count = min(6, *A.shape[-2:]) if q is None else q
    A = A - td.mean(A, axis=-2, keepdims=True) if center else A
    return svd_lowrank(A, count, niter)

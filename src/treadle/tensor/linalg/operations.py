"""The operations on stacks of matrices that kernels or LAPACK compute. Each is recorded as one for
derivatives.

Stacks have one axis in front of the matrices, and a dtype to compute in. An operation that can fail
returns statuses, too: a number for each matrix, which is 0 for success.
"""

from __future__ import annotations

from treadle.core.dtypes import DType, complex64, complex128, float32, i32
from treadle.graph import history
from treadle.graph.calls import call
from treadle.kernels import decompose, eigen, lapack, singular, triangular
from treadle.tensor.composites import composite
from treadle.tensor.linalg.stacks import call_several
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.ranges import eye
from treadle.tensor.tensor import Tensor, from_node

Pair = tuple[Tensor, Tensor]


@composite
def cholesky(a: Tensor) -> Pair:
    """Lower Cholesky factors, and statuses."""
    factors, status = call_several(decompose.cholesky, [a], [(a.shape, a.dtype), _status(a)])
    return factors, status


@composite
def qr(a: Tensor, complete: bool) -> Pair:
    """Q and R."""
    count, rows, columns = a.shape
    inner = rows if complete else min(rows, columns)
    shapes = (count, rows, inner), (count, inner, columns)
    q, r = call_several(decompose.qr, [a], [(shape, a.dtype) for shape in shapes], complete)
    return q, r


@composite
def lu(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L and U in one array, the rows that were exchanged in turn, where each row of L @ U was, and
    statuses."""
    count, rows, columns = a.shape
    results = [
        (a.shape, a.dtype), ((count, min(rows, columns)), i32), ((count, rows), i32), _status(a),
    ]  # fmt: skip
    factors, pivots, order, status = call_several(decompose.lu_factors, [a], results)
    return factors, pivots, order, status


@composite
def det(a: Tensor) -> Tensor:
    """Determinants."""
    return from_node(call(decompose.det, [a._node], a.shape[:1], a.dtype))


@composite
def slogdet(a: Tensor) -> Pair:
    """Signs of determinants, and the logarithms of their magnitudes."""
    results = (a.shape[:1], a.dtype), (a.shape[:1], a.dtype.component)
    sign, logs = call_several(decompose.slogdet, [a], results)
    return sign, logs


@composite
def solve(a: Tensor, b: Tensor) -> Pair:
    """Solutions, and statuses."""
    found, status = call_several(decompose.solve, [a, b], [(b.shape, a.dtype), _status(a)])
    return found, status


@composite
def inverse(a: Tensor) -> Pair:
    """Inverses, and statuses."""
    one = broadcast_to(eye(a.shape[-1], dtype=a.dtype, device=a.device), a.shape)
    found, status = call_several(decompose.solve, [a, one], [(a.shape, a.dtype), _status(a)])
    return found, status


@composite
def solve_triangular(a: Tensor, b: Tensor, lower: bool, unitriangular: bool) -> Tensor:
    """Solutions for triangular matrices."""
    options = (lower, unitriangular)
    nodes = [a._node, b._node]
    return from_node(call(triangular.solve_triangular, nodes, b.shape, a.dtype, options))


@composite
def svd(a: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Left singular vectors, singular values, right singular vectors."""
    count, rows, columns = a.shape
    least = min(rows, columns)
    wide, high = (rows, columns) if full_matrices else (least, least)
    results = [
        ((count, rows, wide), a.dtype),
        ((count, least), a.dtype.component),
        ((count, high, columns), a.dtype),
    ]
    u, s, vh = call_several(singular.svd, [a], results, full_matrices)
    return u, s, vh


def svdvals(a: Tensor) -> Tensor:
    """Singular values. Their gradients need the vectors."""
    if _is_recorded(a):
        return svd(a, False)[1]
    shape = (a.shape[0], min(a.shape[1:]))
    return from_node(call(singular.svdvals, [a._node], shape, a.dtype.component))


@composite
def eigh(a: Tensor) -> Pair:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    results = (a.shape[:2], a.dtype.component), (a.shape, a.dtype)
    values, vectors = call_several(eigen.eigh, [a], results)
    return values, vectors


def eigvalsh(a: Tensor) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices."""
    if _is_recorded(a):
        return eigh(a)[0]
    return from_node(call(eigen.eigvalsh, [a._node], a.shape[:2], a.dtype.component))


@composite
def eig(a: Tensor) -> Pair:
    """Eigenvalues and eigenvectors, complex."""
    dtype = _complex_of(a)
    values, vectors = call_several(lapack.eig, [a], [(a.shape[:2], dtype), (a.shape, dtype)])
    return values, vectors


def eigvals(a: Tensor) -> Tensor:
    """Eigenvalues, complex."""
    if _is_recorded(a):
        return eig(a)[0]
    return from_node(call(lapack.eigvals, [a._node], a.shape[:2], _complex_of(a)))


def _status(a: Tensor) -> tuple[tuple[int, ...], DType]:
    return a.shape[:1], i32


def _is_recorded(a: Tensor) -> bool:
    return a._history is not None and history.recording.get()


def _complex_of(a: Tensor) -> DType:
    """The complex dtype whose parts have the precision of a dtype."""
    return complex64 if a.dtype.component is float32 else complex128

# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.linalg`: factors, systems, eigenvalues and norms of matrices."""

import builtins
from typing import Any

from treadle.core.dtypes import DType
from treadle.torch.errors import LinAlgError as LinAlgError
from treadle.torch.tensors import Tensor

def cholesky(input: Tensor, *, upper: builtins.bool = ..., out: Any = ...) -> Tensor: ...
def cholesky_ex(
    input: Tensor, *, upper: builtins.bool = ..., check_errors: builtins.bool = ..., out: Any = ...
) -> Any: ...
def cond(A: Tensor, p: Any = ..., *, out: Any = ...) -> Tensor: ...
def cross(input: Tensor, other: Tensor, *, dim: builtins.int = ..., out: Any = ...) -> Tensor: ...
def det(A: Tensor, *, out: Any = ...) -> Tensor: ...
def diagonal(
    A: Tensor, *, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...
) -> Tensor: ...
def eig(A: Tensor, *, out: Any = ...) -> Any: ...
def eigh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> Any: ...
def eigvals(A: Tensor, *, out: Any = ...) -> Tensor: ...
def eigvalsh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> Tensor: ...
def householder_product(A: Tensor, tau: Tensor, *, out: Any = ...) -> Tensor: ...
def inv(A: Tensor, *, out: Any = ...) -> Tensor: ...
def inv_ex(A: Tensor, *, check_errors: builtins.bool = ..., out: Any = ...) -> Any: ...
def lstsq(A: Tensor, B: Tensor, rcond: Any = ..., *, driver: builtins.str | None = ...) -> Any: ...
def lu(A: Tensor, *, pivot: builtins.bool = ..., out: Any = ...) -> Any: ...
def lu_factor(A: Tensor, *, pivot: builtins.bool = ..., out: Any = ...) -> Any: ...
def lu_factor_ex(
    A: Tensor, *, pivot: builtins.bool = ..., check_errors: builtins.bool = ..., out: Any = ...
) -> Any: ...
def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: builtins.bool = ...,
    adjoint: builtins.bool = ...,
    out: Any = ...,
) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def matrix_exp(input: Tensor) -> Tensor: ...
def matrix_norm(
    A: Tensor,
    ord: Any = ...,
    dim: Any = ...,
    keepdim: builtins.bool = ...,
    *,
    dtype: DType | None = ...,
    out: Any = ...,
) -> Tensor: ...
def matrix_power(A: Tensor, n: builtins.int, *, out: Any = ...) -> Tensor: ...
def matrix_rank(
    A: Tensor,
    tol: Any = ...,
    hermitian: builtins.bool = ...,
    *,
    atol: Any = ...,
    rtol: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def multi_dot(tensors: Any, *, out: Any = ...) -> Tensor: ...
def norm(
    A: Tensor,
    ord: Any = ...,
    dim: Any = ...,
    keepdim: builtins.bool = ...,
    *,
    dtype: DType | None = ...,
    out: Any = ...,
) -> Tensor: ...
def pinv(
    A: Tensor,
    rcond: Any = ...,
    hermitian: builtins.bool = ...,
    *,
    atol: Any = ...,
    rtol: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def qr(A: Tensor, mode: builtins.str = ..., *, out: Any = ...) -> Any: ...
def slogdet(A: Tensor, *, out: Any = ...) -> Any: ...
def solve(A: Tensor, B: Tensor, *, left: builtins.bool = ..., out: Any = ...) -> Tensor: ...
def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: builtins.bool = ...,
    check_errors: builtins.bool = ...,
    out: Any = ...,
) -> Any: ...
def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: builtins.bool,
    left: builtins.bool = ...,
    unitriangular: builtins.bool = ...,
    out: Any = ...,
) -> Tensor: ...
def svd(
    A: Tensor,
    full_matrices: builtins.bool = ...,
    *,
    driver: builtins.str | None = ...,
    out: Any = ...,
) -> Any: ...
def svdvals(A: Tensor, *, driver: builtins.str | None = ..., out: Any = ...) -> Tensor: ...
def tensorinv(A: Tensor, ind: builtins.int = ..., *, out: Any = ...) -> Tensor: ...
def tensorsolve(A: Tensor, B: Tensor, dims: Any = ..., *, out: Any = ...) -> Tensor: ...
def vander(x: Tensor, N: builtins.int | None = ...) -> Tensor: ...
def vecdot(x: Tensor, y: Tensor, *, dim: builtins.int = ..., out: Any = ...) -> Tensor: ...
def vector_norm(
    x: Tensor,
    ord: Any = ...,
    dim: Any = ...,
    keepdim: builtins.bool = ...,
    *,
    dtype: DType | None = ...,
    out: Any = ...,
) -> Tensor: ...

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

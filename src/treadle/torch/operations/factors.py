"""`torch.linalg`'s LU factors and products of reflections, and what is solved by them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.stacks import stack_of
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers
from treadle.torch.operations import shapes
from treadle.torch.operations.axes import long
from treadle.torch.operations.linear_algebra import matrices_of

# --- LU ------------------------------------------------------------------------------------------


LUFactor = namedtuple("LUFactor", "LU pivots")
LUFactorEx = namedtuple("LUFactorEx", "LU pivots info")
LUParts = namedtuple("LUParts", "P L U")


def lu_factor_ex(A: Inner, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one matrix, the rows that were exchanged, counted from 1, and the first pivot that
    is 0."""
    factors, pivots, _, info = _lu(A, pivot)
    if check_errors and bool(td.any(info != 0)):
        raise td.linalg.LinAlgError("torch.linalg.lu_factor_ex: U is exactly singular")
    return LUFactorEx(factors, pivots, info)


def _lu(A: Inner, pivot: bool) -> tuple[Inner, ...]:
    """The factors, pivots, where rows were, and the first pivot that is 0."""
    matrices_of("lu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented here")
    stack = stack_of("lu", A)
    factors, pivots, order, info = operations.lu(stack.matrices)
    front = stack.front
    return (
        stack.unstacked(factors), (pivots + 1).reshape((*front, pivots.shape[1])),
        order.reshape((*front, order.shape[1])), info.reshape(front),
    )  # fmt: skip


def lu_factor(A: Inner, *, pivot: bool = True) -> Any:
    """L and U in one matrix, and the rows that were exchanged, counted from 1."""
    return LUFactor(*_lu(A, pivot)[:2])


def lu(A: Inner, *, pivot: bool = True) -> Any:
    """P, L and U, whose product a matrix is."""
    factors, _, order, _ = _lu(A, pivot)
    return LUParts(_permutation(order, A.dtype), *_triangles(factors))


def _triangles(factors: Inner) -> tuple[Inner, Inner]:
    rows, columns = factors.shape[-2:]
    least = min(rows, columns)
    one_ = td.eye(rows, least, dtype=factors.dtype, device=factors.device)
    return td.tril(factors[..., :least], k=-1) + one_, td.triu(factors[..., :least, :])


def _permutation(order: Inner, dtype: DType) -> Inner:
    """The matrix P of which row order[i] is the i-th unit vector."""
    rows = td.arange(order.shape[-1], dtype=order.dtype, device=order.device)
    return (td.expand_dims(rows, axis=1) == td.expand_dims(order, axis=-2)).to(dtype)


def _order_of(pivots: Inner, rows: int) -> Inner:
    """Where each row was before rows were exchanged in turn."""
    order = td.arange(rows, dtype=integers(pivots.device), device=pivots.device)
    order = td.broadcast_to(order, (*pivots.shape[:-1], rows)).copied()
    for at in range(pivots.shape[-1]):
        other = long(pivots[..., at : at + 1]) - 1
        mine = order[..., at : at + 1].copied()
        theirs = td.take_along_axis(order, other, axis=-1)
        order = td.scatter(order, len(order.shape) - 1, other, mine)
        order[..., at : at + 1] = theirs
    return order


def lu_of(A: Inner, pivot: bool = True, get_infos: bool = False) -> Any:
    """`torch.lu`: as `lu_factor`, or `lu_factor_ex` with `get_infos`."""
    found = lu_factor_ex(A, pivot=pivot)
    return tuple(found) if get_infos else (found.LU, found.pivots)


def lu_unpack(
    LU_data: Inner, LU_pivots: Inner, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U of what `lu_factor` returns."""
    none = td.zeros((0,), dtype=LU_data.dtype, device=LU_data.device)
    p = none
    if unpack_pivots:
        p = _permutation(_order_of(LU_pivots, LU_data.shape[-2]), LU_data.dtype)
    lower, upper = _triangles(LU_data) if unpack_data else (none, none)
    return LUParts(p, lower, upper)


def lu_solve(
    LU: Inner, pivots: Inner, B: Inner, *, left: bool = True, adjoint: bool = False
) -> Inner:
    """The X with A @ X = B, or X @ A = B, by what `lu_factor` returns of A."""
    if not left:  # A^H X^H = B^H
        turned = lu_solve(LU, pivots, shapes.adjoint(B), adjoint=not adjoint)
        return shapes.adjoint(turned)
    order = _order_of(pivots, LU.shape[-1])
    front = broadcast_of(LU.shape[:-2], B.shape[:-2])
    B = td.broadcast_to(B, (*front, *B.shape[-2:]))
    order = td.broadcast_to(order, (*front, order.shape[-1]))
    if adjoint:
        turned = shapes.adjoint(LU)
        found = td.linalg.solve_triangular(turned, B, upper=False)
        found = td.linalg.solve_triangular(turned, found, upper=True, unitriangular=True)
        order = td.argsort(order, axis=-1)
    places = td.broadcast_to(td.expand_dims(order, axis=-1), B.shape)
    if adjoint:
        return td.take_along_axis(found, places, axis=-2)
    found = td.take_along_axis(B, places, axis=-2)
    found = td.linalg.solve_triangular(LU, found, upper=False, unitriangular=True)
    return td.linalg.solve_triangular(LU, found, upper=True)


def broadcast_of(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """The common shape of two."""
    return tuple(np.broadcast_shapes(tuple(one), tuple(other)))


def lu_solve_of(b: Inner, LU_data: Inner, LU_pivots: Inner) -> Inner:
    """`torch.lu_solve`: the X with A @ X = b."""
    return lu_solve(LU_data, LU_pivots, b)


# --- reflections -------------------------------------------------------------------------------


def householder_product(A: Inner, tau: Inner) -> Inner:
    """The first columns of the product of reflections whose vectors are below A's diagonal."""
    matrices_of("householder_product", A)
    rows, columns = A.shape[-2:]
    vectors = td.tril(A, k=-1)
    one_ = td.eye(rows, columns, dtype=A.dtype, device=A.device)
    vectors = vectors + one_
    found: Inner = td.broadcast_to(one_, A.shape)
    for at in reversed(range(tau.shape[-1])):
        found = _reflected(vectors, tau, at, found)
    return found


def _reflected(vectors: Inner, tau: Inner, at: int, x: Inner, *, turned: bool = False) -> Inner:
    """(I - tau v v^H) x for one of the vectors; `turned`: by its conjugate transpose."""
    v = vectors[..., at : at + 1]
    factor = tau[..., at].reshape((*tau.shape[:-1], 1, 1))
    factor = td.conj(factor) if turned and tau.dtype.kind == "complex" else factor
    return x - v * factor * td.matmul(shapes.adjoint(v), x)


def ormqr(
    input: Inner, tau: Inner, other: Inner, left: bool = True, transpose: bool = False
) -> Inner:
    """A matrix times the orthogonal matrix of `geqrf`."""
    rows, columns = input.shape[-2:]
    vectors = td.tril(input, k=-1) + td.eye(rows, columns, dtype=input.dtype, device=input.device)
    count = tau.shape[-1]
    if not left:  # x Q = (Q^H x^H)^H
        turned = ormqr(input, tau, shapes.adjoint(other), True, not transpose)
        return shapes.adjoint(turned)
    for at in range(count) if transpose else reversed(range(count)):
        other = _reflected(vectors, tau, at, other, turned=transpose)
    return other


def geqrf(input: Inner) -> Any:
    """The upper triangle R, below it the vectors of the reflections that Q is the product of, and
    their factors tau."""
    rows, columns = input.shape[-2:]
    work, taus = input, []
    for at in range(min(rows, columns)):
        below = work[..., at:, at]
        head, rest = below[..., :1], below[..., 1:]
        square = td.sum(td.abs(rest) ** 2, axis=-1, keepdims=True)
        length = td.sqrt(td.abs(head) ** 2 + square)
        plain = square == 0
        beta = td.where(td.real(head) >= 0, -length, length).to(input.dtype)
        tau = td.where(plain, 0, (beta - head) / td.where(beta == 0, 1, beta))
        vector = td.where(plain, 0, rest / td.where(plain, 1, head - beta))
        one_ = td.ones_like(head)
        v = td.expand_dims(td.concat([one_, vector], axis=-1), axis=-1)
        part = work[..., at:, at + 1 :]
        factor = td.expand_dims(td.conj(tau) if tau.dtype.kind == "complex" else tau, axis=-1)
        part = part - v * factor * td.matmul(shapes.adjoint(v), part)
        made = work.copied()
        made[..., at, at] = td.where(plain, head, beta)[..., 0]
        made[..., at + 1 :, at] = vector
        made[..., at:, at + 1 :] = part
        work = made
        taus.append(tau)
    none = td.zeros((*input.shape[:-2], 0), dtype=input.dtype, device=input.device)
    found = td.concat(taus, axis=-1) if taus else none
    return Geqrf(work, found)


Geqrf = namedtuple("Geqrf", "a tau")

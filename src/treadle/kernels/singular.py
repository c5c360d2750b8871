"""Singular values and vectors, on the device.

A matrix is scaled and made bidiagonal (`condensing`). B's elements, off the diagonal of a
symmetric tridiagonal matrix of twice the size, give it B's singular values as eigenvalues, positive
and negative, and eigenvectors in which elements of right and left singular vectors take turns.
Those of very small singular values may have both mixed up, and are not orthogonal then.
Householder's QR decomposition makes them so: in the order of descending values it changes a vector
by no more than rounding errors of the matrix do. Nothing waits for the host.

On the CPU and for complex numbers LAPACK computes (`lapack`).
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.kernels import decompose, lapack
from treadle.kernels.device_code import condensing
from treadle.kernels.device_code import singular_vectors as vectors
from treadle.kernels.device_code.condensing import COLUMNS, LANES
from treadle.kernels.device_code.matrix_blocks import IDENTITY, UPPER
from treadle.kernels.eigen import (
    bisect,
    blocks_of,
    check_size,
    checked,
    copy_scaled,
    finish_vectors,
    grid_step,
    reflect,
    route,
    rows_for,
    scales_of,
    spectrum,
    steps_for,
    threads_for,
)
from treadle.kernels.launching import Steps, flat, new, zeros
from treadle.kernels.triangular import Part, fill, multiply, whole
from treadle.runtime.arrays import DeviceArray

_MANY = 256  # threads of a block
_HIGH = 2  # times as many rows as columns: then a QR decomposition first saves time


def svd(a: DeviceArray, full: bool) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """U, the singular values in descending order and V^H of each matrix, with `full` square ones.
    But for the host's, all are NaN for a matrix that is not
    finite.

    >>> import treadle as td
    >>> a = td.asarray([[[0.0, 2.0], [3.0, 0.0]]], device="cpu")
    >>> svd(a._array, False)[1].to_host().tolist()
    [[3.0, 2.0]]
    """
    count, rows, dtype = checked(a)
    if route(a.device, dtype, max(a.shape[1:])) == "host":
        return lapack.svd(a, full)
    columns = a.shape[2]
    least = min(rows, columns)
    wide, high = (rows, columns) if full else (least, least)
    check_size(count * max(rows * wide, high * columns))
    u, s = new(a, dtype, count, rows, wide), new(a, dtype, count, least)
    vh = new(a, dtype, count, high, columns)
    if not a.size:
        for each in (u, vh):
            if each.size:
                fill(whole(each), IDENTITY)
        return u, s, vh
    is_high = rows >= columns
    tall = whole(a) if is_high else whole(a).transposed()
    scales = scales_of(a, lower=False)
    q, core = _core(tall, scales, full)
    left, right, found, bounds = _vectors(core, core.shape[1] if full else least)
    vectors.value_finisher(dtype).launch(
        s.size, flat(found), bounds, scales, flat(s), least, found.shape[1]
    )
    first = whole(u) if is_high else whole(vh).transposed()
    second = whole(vh).transposed() if is_high else whole(u)
    finish_vectors(whole(right), scales, second)
    if q is None:
        finish_vectors(whole(left), scales, first)
    else:
        finish_vectors(whole(q), scales, first)
        inner = new(a, dtype, *left.shape)
        finish_vectors(whole(left), scales, whole(inner))
        known = whole(q).part(0, first.rows, 0, least)
        multiply(known, whole(inner), first.part(0, first.rows, 0, least))
    return u, s, vh


def svdvals(a: DeviceArray) -> DeviceArray:
    """The singular values of each matrix, as `svd` has them.

    >>> import treadle as td
    >>> svdvals(td.asarray([[[0.0, 2.0], [3.0, 0.0]]], device="cpu")._array).to_host().tolist()
    [[3.0, 2.0]]
    """
    count, rows, dtype = checked(a)
    if route(a.device, dtype, max(a.shape[1:])) == "host":
        return lapack.svdvals(a)
    least = min(rows, a.shape[2])
    s = new(a, dtype, count, least)
    if a.size:
        tall = whole(a) if rows >= a.shape[2] else whole(a).transposed()
        scales = scales_of(a, lower=False)
        both = _bidiagonal(_core(tall, scales, False)[1])
        bisect(both.diagonal, both.off_diagonal, scales, s, 2 * least, doubled=True)
    return s


def _core(a: Part, scales: DeviceArray, full: bool) -> tuple[DeviceArray | None, DeviceArray]:
    """Matrices divided by their scales; or if they have many more rows than columns, Q and R of
    their QR decomposition, with `full` a square Q."""
    work = new(a.array, a.dtype, a.matrices, a.rows, a.columns)
    copy_scaled(a, scales, work)
    if a.rows < _HIGH * a.columns:
        return None, work
    q, r = decompose.qr(work, full)
    core = new(a.array, a.dtype, a.matrices, a.columns, a.columns)
    fill(whole(core), UPPER, whole(r).part(0, a.columns, 0, a.columns))
    return q, core


def _vectors(
    work: DeviceArray, length: int
) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
    """So many left singular vectors of matrices, which are overwritten, and the right ones, the
    columns of matrices; and eigenvalues and bounds as `spectrum` has them."""
    count, rows, n = work.shape
    both = _bidiagonal(work)
    found, eigenvectors, bounds = spectrum(both.diagonal, both.off_diagonal, 2 * n, doubled=True)
    halves = new(work, both.dtype, 2 * count, n, n)
    vectors.vector_splitter(both.dtype).launch(
        halves.size, eigenvectors, flat(halves), n, found.shape[1]
    )
    q, r = decompose.qr(halves)
    left = new(work, both.dtype, count, rows, length)
    right = new(work, both.dtype, count, n, n)
    taker = vectors.vector_taker(both.dtype)
    for side, out in enumerate((left, right)):
        taker.launch(out.size, flat(q), flat(r), flat(out), n, *out.shape[1:], side)
    reflect(both.left, both.left_taus, whole(left))
    reflect(both.right, both.right_taus, whole(right))
    return left, right, found, bounds


class Bidiagonal(NamedTuple):
    """Matrices as P B Q^T: B, and the reflections of which P and Q are the products."""

    diagonal: DeviceArray  # (matrices, columns)
    off_diagonal: DeviceArray  # (matrices, columns), the last one is not used
    left: DeviceArray  # (matrices, steps, rows), a vector in each row
    left_taus: DeviceArray  # (matrices, steps)
    right: DeviceArray  # (matrices, steps, columns)
    right_taus: DeviceArray

    @property
    def dtype(self) -> DType:
        """Of all of them."""
        assert isinstance(self.diagonal.dtype, DType)
        return self.diagonal.dtype


def _bidiagonal(work: DeviceArray) -> Bidiagonal:
    """Upper bidiagonal matrices from others that have no more columns than rows, and are
    overwritten."""
    count, rows, columns = work.shape
    dtype = work.dtype
    assert isinstance(dtype, DType)
    steps = steps_for(columns)
    check_size(count * steps * rows)
    left, right = (zeros(work, dtype, count, steps, length) for length in (rows, columns))
    left_taus, right_taus = (zeros(work, dtype, count, steps) for _ in range(2))
    diagonal, off_diagonal = (new(work, dtype, count, columns) for _ in range(2))
    x, y = new(work, dtype, count * rows), new(work, dtype, count * columns)
    column = new(work, dtype, count * rows)
    condensing.first_column_copier().launch(column.size, flat(work), column, columns)
    a_flat, u, v = map(flat, (work, left, right))
    threads, side = threads_for(columns), rows_for(count * rows)
    column_step = Steps(condensing.column_step(dtype, _MANY), _MANY)
    row_step = Steps(condensing.row_step(dtype, threads, side), threads)
    arrays, sizes = (a_flat, column, u, y, x, v), (rows, columns, steps)
    by_columns = *arrays, flat(left_taus), flat(diagonal)
    by_rows = *arrays, flat(right_taus), flat(off_diagonal)
    for k in range(columns):
        known = grid_step(k, columns)
        blocks = blocks_of(columns - known, COLUMNS)
        column_step.launch(count * blocks, by_columns, *sizes, blocks, k)
        if k + 1 < columns:
            blocks = blocks_of(rows - known, threads // LANES * side)
            row_step.launch(count * blocks, by_rows, *sizes, blocks, k)
    return Bidiagonal(diagonal, off_diagonal, left, left_taus, right, right_taus)

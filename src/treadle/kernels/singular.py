"""Singular values and vectors, on the device.

A matrix is scaled and made bidiagonal (`condensing`). A bidiagonal matrix B is the symmetric one
that has 0 in its diagonal and B's elements beside it, of twice the size: its eigenvalues are B's
singular values, positive and negative, and in an eigenvector right and left singular vectors take
turns. Those of very small singular values may have both mixed up, and are not orthogonal then.
Householder's QR decomposition makes them so: in the order of descending values it changes a vector
by no more than rounding errors of the matrix do. Nothing waits for the host.

On the CPU and for complex numbers LAPACK computes (`lapack`).
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.kernels import decompose, lapack
from treadle.kernels.device_code import condensing, singular_vectors
from treadle.kernels.device_code.condensing import LANES
from treadle.kernels.device_code.matrix_blocks import IDENTITY
from treadle.kernels.eigen import (
    bisect,
    check_size,
    checked,
    copy_scaled,
    finish_values,
    finish_vectors,
    reflect,
    route,
    scales_of,
    spectrum,
    steps_for,
)
from treadle.kernels.launching import flat, new, zeros
from treadle.kernels.triangular import Part, fill, whole
from treadle.runtime.arrays import DeviceArray

_MANY = 256  # threads of a block
_STRETCH = 128  # rows that a block sums at least
_MOST_STRETCHES = 64


def svd(a: DeviceArray, full: bool) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """U, the singular values in descending order and V^H of each matrix, with `full` square ones.
    On a device, all are NaN for a matrix that is not finite.

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
    both = _bidiagonal(tall, scales)
    found, vectors, bounds = spectrum(both.diagonal, both.beside, 2 * least, doubled=True)
    padded = found.shape[1]
    halves = new(a, dtype, 2 * count, least, least)
    singular_vectors.vector_splitter(dtype).launch(
        halves.size, vectors, flat(halves), least, padded
    )
    q, r = decompose.qr(halves)
    length = tall.rows if full else least
    left = new(a, dtype, count, tall.rows, length)
    right = new(a, dtype, count, least, least)
    taker = singular_vectors.vector_taker(dtype)
    for side, out in enumerate((left, right)):
        taker.launch(out.size, flat(q), flat(r), flat(out), least, *out.shape[1:], side)
    reflect(both.left, both.left_taus, whole(left))
    reflect(both.right, both.right_taus, whole(right))
    singular_vectors.value_finisher(dtype).launch(
        s.size, flat(found), bounds, scales, flat(s), least, padded
    )
    first, second = (left, right) if is_high else (right, left)
    finish_vectors(whole(first), scales, u)
    finish_vectors(whole(second).transposed(), scales, vh)
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
        both = _bidiagonal(tall, scales)
        bisect(both.diagonal, both.beside, scales, s, 2 * least, doubled=True)
    return s


class Bidiagonal(NamedTuple):
    """Matrices as P B Q^T: B, and the reflections of which P and Q are the products."""

    diagonal: DeviceArray  # (matrices, columns)
    beside: DeviceArray  # (matrices, columns), the last one is not used
    left: DeviceArray  # (matrices, steps, rows), a vector in each row
    left_taus: DeviceArray  # (matrices, steps)
    right: DeviceArray  # (matrices, steps, columns)
    right_taus: DeviceArray


def _bidiagonal(a: Part, scales: DeviceArray) -> Bidiagonal:
    """Upper bidiagonal matrices from others, divided by scales, that have no more columns than
    rows."""
    count, rows, columns, dtype = a.matrices, a.rows, a.columns, a.dtype
    steps = steps_for(columns)
    check_size(count * steps * rows)
    work = new(a.array, dtype, count, rows, columns)
    copy_scaled(a, scales, work)
    left, right = (zeros(a.array, dtype, count, steps, length) for length in (rows, columns))
    left_taus, right_taus = (zeros(a.array, dtype, count, steps) for _ in range(2))
    diagonal, beside = (new(a.array, dtype, count, columns) for _ in range(2))
    x, y = new(a.array, dtype, count * rows), new(a.array, dtype, count * columns)
    length = max(_STRETCH, -(-rows // _MOST_STRETCHES))
    parts = -(-rows // length)
    sums = new(a.array, dtype, count * parts * columns)
    a_flat, u, v, u_taus, v_taus = map(flat, (work, left, right, left_taus, right_taus))
    d, e = flat(diagonal), flat(beside)
    groups = _MANY // LANES
    reflect_column = condensing.column_reflector(dtype, _MANY)[count, _MANY]
    reflect_row = condensing.remaining_row_reflector(dtype, _MANY)[count, _MANY]
    by_columns = condensing.column_multiplier(dtype, _MANY)
    by_rows = condensing.row_multiplier(dtype, _MANY)
    sizes = rows, columns, steps, steps
    for k in range(columns):
        reflect_column(a_flat, u, y, x, v, u_taus, d, *sizes, k)
        remaining = columns - k - 1
        if remaining:
            blocks = count * parts * -(-remaining // LANES)
            by_columns[blocks, _MANY](a_flat, u, y, x, v, sums, *sizes, length, k)
            reflect_row(a_flat, sums, y, v, u_taus, v_taus, e, *sizes, parts, k)
            if rows - k - 1:
                blocks = count * -(-(rows - k - 1) // groups)
                by_rows[blocks, _MANY](a_flat, u, y, v, v_taus, x, *sizes, k)
    return Bidiagonal(diagonal, beside, left, left_taus, right, right_taus)

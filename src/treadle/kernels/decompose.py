"""Factorizations of stacks of matrices: Cholesky, LU with partial pivoting, QR; and their uses.

All functions take arrays of three axes, (matrices, rows, columns). Sizes may be 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels import cholesky as cholesky_steps
from treadle.kernels import lapack, lu, triangular
from treadle.kernels import qr as qr_steps
from treadle.kernels.device_code import batched_factors, panels
from treadle.kernels.device_code.matrix_blocks import IDENTITY, UPPER
from treadle.kernels.launching import flat, new, serial_threads, zeros
from treadle.kernels.triangular import (
    Part,
    copy_of,
    fill,
    multiply,
    solve_through,
    stretches,
    whole,
)
from treadle.lang.decorators import Kernel
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

Route = Literal["each", "panels", "host"]

_PANEL = 16  # columns that a block of threads factors at a time
_FEW_THREADS = 256
_PIVOT_THREADS = 64  # that read the pivots of a matrix
_SHARED_BYTES = 16384  # that every device has
# Up to so many rows, of at least so many matrices: a thread does a whole matrix.
_SMALL, _MANY = 16, 256
_SMALL_SERIAL, _MANY_SERIAL = 32, 32

forced: Route | None = None
"""For tests, which run every route on every device that has it."""


def route(device: Device, rows: int, count: int) -> Route:
    """How matrices are factored: a thread for each, panel by panel, or on the CPU by LAPACK."""
    if forced is not None:
        return forced
    serial = serial_threads(device)
    small, many = (_SMALL_SERIAL, _MANY_SERIAL) if serial else (_SMALL, _MANY)
    if rows <= small and count >= many:
        return "each"
    return "host" if serial else "panels"


# --- Cholesky ------------------------------------------------------------------------------------


def cholesky(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The lower factor of each matrix, of which only the lower triangle is read, and for each a
    number, which is 0 if it is positive definite.

    >>> import treadle as td
    >>> a = td.asarray([[[4.0, 2.0], [2.0, 5.0]]], device="cpu")
    >>> [found.to_host().tolist() for found in cholesky(a._array)]
    [[[[2.0, 0.0], [1.0, 2.0]]], [0]]
    """
    count, n, dtype = _checked(a)
    out, status = new(a, dtype, *a.shape), zeros(a, i32, count)
    if not a.size:
        return out, status
    chosen = route(a.device, n, count)
    if chosen == "host":
        lapack.cholesky(a, out, status)
    elif chosen == "each":
        work = new(a, dtype, n, n, count)
        kernel = batched_factors.cholesky_of_each(dtype)
        kernel.launch(count, _in_columns(a), work, _in_columns(out), status, n)
    else:
        cholesky_steps.factor(a, out, status)
    return out, status


# --- LU ------------------------------------------------------------------------------------------


def solve(a: DeviceArray, b: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The x with a @ x = b for each matrix, and for each a number, which is 0 if it is regular.

    >>> import treadle as td
    >>> a = td.asarray([[[0.0, 2.0], [4.0, 0.0]]], device="cpu")
    >>> b = td.asarray([[[2.0], [8.0]]], device="cpu")
    >>> [found.to_host().tolist() for found in solve(a._array, b._array)]
    [[[[2.0], [1.0]]], [0]]
    """
    count, n, dtype = _checked(a)
    _checked(b)
    x, status = new(b, dtype, *b.shape), zeros(a, i32, count)
    if not a.size:
        return x, status
    chosen = route(a.device, n, count)
    columns = b.shape[2]
    if chosen == "host":
        lapack.solve(a, b, x, status)
    elif chosen == "each":
        each, pivots = _lu_of_each(a, status, dtype)
        work = new(b, dtype, n, columns, count)
        kernel = batched_factors.solve_each(dtype)
        if b.size:
            views = _in_columns(b), work, _in_columns(x)
            kernel.launch(count, each, pivots, *views, n, columns)
    elif lu.fits(a, columns) and b.size:
        lu.solve(a, b, x, status)
    else:
        factors, pivots = _lu_by_panels(a, status)
        if b.size:
            order, right = new(a, i32, count, n), whole(x)
            panels.write_order.launch(count, pivots, order)
            panels.permute_rows.launch(x.shape, b, order, x)
            solve_through(factors, right, unit=True)
            solve_through(factors, right, lower=False)
    return x, status


def det(a: DeviceArray) -> DeviceArray:
    """The determinant of each matrix.

    >>> import treadle as td
    >>> det(td.asarray([[[0.0, 2.0], [4.0, 0.0]]], device="cpu")._array).to_host().tolist()
    [-8.0]
    """
    count, n, dtype = _checked(a)
    out = new(a, dtype, count)
    if count and route(a.device, n, count) == "host":
        lapack.det(a, out)
    elif count:
        work, pivots = _lu(a, dtype)
        _of_pivots(panels.determinants, dtype, count, n)(*work.arguments, pivots, out)
    return out


def slogdet(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The determinant of each matrix as a number of magnitude 1 and the logarithm of its magnitude;
    0 and -inf for a singular one.

    >>> import treadle as td
    >>> a = td.asarray([[[0.0, 1.0], [1.0, 0.0]]], device="cpu")
    >>> [found.to_host().tolist() for found in slogdet(a._array)]
    [[-1.0], [0.0]]
    """
    count, n, dtype = _checked(a)
    sign, logs = new(a, dtype, count), new(a, dtype.component, count)
    if count and route(a.device, n, count) == "host":
        lapack.slogdet(a, sign, logs)
    elif count:
        work, pivots = _lu(a, dtype)
        _of_pivots(panels.log_determinants, dtype, count, n)(*work.arguments, pivots, sign, logs)
    return sign, logs


def _of_pivots(
    kernel: Callable[[DType, int], Kernel], dtype: DType, count: int, n: int
) -> Callable[..., None]:
    """A launch of a kernel that reads the pivots of all matrices: a block for each of them, or a
    thread if they have few rows."""
    if n > _SMALL_SERIAL:
        return kernel(dtype, _PIVOT_THREADS)[count, _PIVOT_THREADS]
    return functools.partial(kernel(dtype, 1).launch, count)


def lu_factors(a: DeviceArray) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
    """For each matrix, of any shape: the factors L and U in one array, but for L's diagonal of
    ones; the row that each was exchanged with in turn; where each row of their product was; and 0,
    or the first pivot, counted from 1, that is 0.

    >>> import treadle as td
    >>> found = lu_factors(td.asarray([[[0.0, 2.0], [4.0, 0.0]]], device="cpu")._array)
    >>> [each.to_host().tolist() for each in found]
    [[[[4.0, 0.0], [0.0, 2.0]]], [[1, 1]], [[1, 0]], [0]]
    """
    count, rows, dtype = _checked(a)
    status, order = zeros(a, i32, count), new(a, i32, count, rows)
    if a.size:
        work, pivots = _lu_by_panels(a, status)
        factors = work.array.view(a.shape, (work.step, work.down, work.along), work.at)
    else:
        factors, pivots = new(a, dtype, *a.shape), new(a, i32, count, min(a.shape[1:]))
    if order.size:
        panels.write_order.launch(count, pivots, order)
    return factors, pivots, order, status


def _lu(a: DeviceArray, dtype: DType) -> tuple[Part, DeviceArray]:
    """Both factors in one array, and the rows that were exchanged for each matrix."""
    count, n, _ = a.shape
    status = zeros(a, i32, count)
    if route(a.device, n, count) == "each":
        factors, pivots = _lu_of_each(a, status, dtype)
        work = Part(flat(factors), count, 0, 1, n * count, count, n, n)
        return work, pivots.view((count, n), (1, count), 0)
    if lu.fits(a, 0):
        return lu.upper_factor(a, status)
    return _lu_by_panels(a, status)


def _lu_of_each(
    a: DeviceArray, status: DeviceArray, dtype: DType
) -> tuple[DeviceArray, DeviceArray]:
    """The factors and the exchanged rows, with the matrices last."""
    count, n, _ = a.shape
    work, pivots = new(a, dtype, n, n, count), new(a, i32, n, count)
    kernel = batched_factors.lu_of_each(dtype)
    kernel.launch(count, _in_columns(a), work, pivots, status, n)
    return work, pivots


def _lu_by_panels(a: DeviceArray, status: DeviceArray) -> tuple[Part, DeviceArray]:
    work = whole(copy_of(a))
    steps, columns = min(work.rows, work.columns), work.columns
    pivots = new(a, i32, work.matrices, steps)
    threads = _threads(work)
    panel = panels.lu_panel(work.dtype, _PANEL, threads // _PANEL)[work.matrices, threads]
    for start, stop in stretches(0, steps, triangular.WIDE):
        for at, end in stretches(start, stop, _PANEL):
            part = work.part(at, work.rows, at, end)
            panel(*part.arguments, pivots, status, at)
            _exchange_outside(work.part(0, work.rows, start, stop), pivots, at, end, at - start)
            _eliminate(work, at, end, stop)
        _exchange_outside(work, pivots, start, stop, start)
        _eliminate(work, start, stop, columns)
    return work, pivots


def _exchange_outside(a: Part, pivots: DeviceArray, first: int, last: int, gap: int) -> None:
    """Exchange rows as a panel did that is as many columns of this, from `gap` on."""
    count = last - first
    if a.columns > count:
        threads = a.matrices * (a.columns - count)
        panels.exchange_rows.launch(threads, *a.arguments, pivots, first, count, gap, count)


def _eliminate(a: Part, first: int, last: int, end: int) -> None:
    """Update the columns up to `end` that follow those whose factors are known."""
    if last < end:
        above = a.part(first, last, last, end)
        solve_through(a.part(first, last, first, last), above, unit=True)
        if last < a.rows:
            below = a.part(last, a.rows, first, last)
            multiply(below, above, a.part(last, a.rows, last, end), subtract=True)


# --- QR ------------------------------------------------------------------------------------------


def qr(a: DeviceArray, complete: bool = False) -> tuple[DeviceArray, DeviceArray]:
    """A matrix with orthonormal columns and an upper triangle whose product is `a`, for each; with
    `complete` the first one is square.

    >>> import treadle as td
    >>> q, r = qr(td.asarray([[[3.0], [4.0]]], device="cpu")._array)
    >>> r.to_host().tolist()
    [[[-5.0]]]
    """
    count, rows, dtype = _checked(a)
    columns = a.shape[2]
    steps = min(rows, columns)
    wide = rows if complete else steps
    q, r = new(a, dtype, count, rows, wide), new(a, dtype, count, wide, columns)
    if not a.size:
        if q.size:
            fill(whole(q), IDENTITY)
        return q, r
    chosen = route(a.device, max(rows, columns), count)
    if chosen == "host":
        lapack.qr(a, q, r, complete)
    elif chosen == "each":
        work, taus = new(a, dtype, rows, columns, count), new(a, dtype, steps, count)
        q_work = new(a, dtype, rows, wide, count)
        batched_factors.qr_of_each(dtype).launch(
            count, _in_columns(a), work, taus, _in_columns(q), q_work, _in_columns(r),
            rows, columns, steps, wide, wide,
        )  # fmt: skip
    elif qr_steps.fits(a):
        qr_steps.factor(a, q, r)
    else:
        factors, product = whole(copy_of(a)), whole(q)
        vectors = whole(new(a, dtype, count, rows, steps))
        triangles = whole(new(a, dtype, count, steps, _PANEL))
        _qr_by_panels(factors, vectors, triangles)
        fill(whole(r), UPPER, factors)
        fill(product, IDENTITY)
        for at in reversed(range(0, steps, _PANEL)):
            _reflect(vectors, triangles, at, product.part(at, rows, at, wide), back=False)
    return q, r


def _qr_by_panels(a: Part, vectors: Part, triangles: Part) -> None:
    steps = min(a.rows, a.columns)
    threads = _threads(a)
    panel = panels.qr_panel(a.dtype, _PANEL, threads // _PANEL)[a.matrices, threads]
    for at, end in stretches(0, steps, _PANEL):
        part, v = a.part(at, a.rows, at, end), vectors.part(at, a.rows, at, end)
        t = triangles.part(at, end, 0, end - at)
        panel(*part.arguments, *v.arguments, *t.arguments)
        if end < a.columns:
            _reflect(vectors, triangles, at, a.part(at, a.rows, end, a.columns), back=True)


def _reflect(vectors: Part, triangles: Part, at: int, c: Part, *, back: bool) -> None:
    """Replace c by (I - v t v^H) c, of the panel at a column, or by (I - v t^H v^H) c."""
    end = min(at + _PANEL, vectors.columns)
    v, t = vectors.part(at, vectors.rows, at, end), triangles.part(at, end, 0, end - at)
    shape = (c.matrices, end - at, c.columns)
    first, second = whole(new(c.array, c.dtype, *shape)), whole(new(c.array, c.dtype, *shape))
    multiply(v.transposed(), c, first, conj=True)
    multiply(t.transposed() if back else t, first, second, conj=back)
    multiply(v, second, c, subtract=True)


def _in_columns(a: DeviceArray) -> DeviceArray:
    """The matrices along the last axis."""
    count, rows, columns = a.shape
    return a.view((rows, columns, count), (columns, 1, rows * columns), a.offset)


# --- for all of them -----------------------------------------------------------------------------


def _checked(a: DeviceArray) -> tuple[int, int, DType]:
    """How many matrices, with how many rows, of which dtype."""
    assert isinstance(a.dtype, DType)
    if a.size >= MOST_NARROW:
        raise ShapeError(f"{a.size} elements are too many to be factored at once: do it in parts")
    return a.shape[0], a.shape[1], a.dtype


def _threads(a: Part) -> int:
    """Of a block that factors a panel: one for four elements, as many as the device and 16 KiB of
    shared memory have."""
    item, real = a.dtype.itemsize, a.dtype.component.itemsize
    room = (_SHARED_BYTES - _PANEL * _PANEL * item) // (item + real)
    limits = a.array.device.limits
    most = min(limits.max_threads_per_block, limits.max_block.x, room)
    traits = a.array.device.traits
    if traits.software or traits.serial_threads:  # the threads of a block run one after the other
        most = min(most, _FEW_THREADS)
    wanted = max(2 * _PANEL, 1 << (4 * a.rows - 1).bit_length())
    return min(wanted, 1 << (most.bit_length() - 1))

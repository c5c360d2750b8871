"""LU of matrices with partial pivoting, a launch for each panel; and systems solved by it.

What a launch does stands in `device_code.lu_steps`. Right sides are columns behind those of the
matrix, so that the substitution through L is part of the factorization; L itself is not kept.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.dtypes import DType, i32
from treadle.core.limits import MOST_NARROW
from treadle.kernels import triangular
from treadle.kernels.device_code.lu_steps import WIDEST, Step, lu_step, system_joiner
from treadle.kernels.launching import flat, new
from treadle.kernels.triangular import Part
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_MOST_ROWS = 4096
_NARROWEST = 4  # columns of a panel at least
# By the most rows: threads of the panel's block, if there is shared memory for them.
_THREADS = {32: 32, 64: 64, 128: 128, 512: 256, 2048: 512, _MOST_ROWS: 1024}
_REGISTERS = {256: 128, 512: 64, 1024: 32}  # of 32 bits, for the elements of a thread
_SOFTWARE = 64, 4  # threads, columns: code that is compiled quickly


def fits(a: DeviceArray, columns: int) -> bool:
    """Whether the matrices, with so many columns of right sides, can be factored here."""
    count, n, _ = a.shape
    assert isinstance(a.dtype, DType)
    return is_seen(a, count * n * max(n + columns, 2 * WIDEST)) and has_room(a.device, a.dtype, n)


def is_seen(like: DeviceArray, size: int) -> bool:
    """Whether kernels see an array of so many elements of that dtype, and count them in 32 bits."""
    assert isinstance(like.dtype, DType)
    limits = like.device.limits
    most = min(limits.max_binding_size, limits.max_buffer_size) // like.dtype.itemsize
    return size < MOST_NARROW and size <= most


def has_room(device: Device, dtype: DType, rows: int) -> bool:
    """Whether the registers of one block have room for so many rows of a panel."""
    return rows <= _MOST_ROWS and block_of(device, dtype, rows, rows)[2] >= _NARROWEST


def solve(a: DeviceArray, b: DeviceArray, x: DeviceArray, status: DeviceArray) -> None:
    """Write the solutions for all columns of b, and to `status` the first pivot that is 0."""
    found = _factored(a, b, status)
    n = a.shape[1]
    right = found.u.part(0, n, n, found.u.columns)
    triangular.substitute(found.u.part(0, n, 0, n), right, triangular.whole(x), lower=False)


def upper_factor(a: DeviceArray, status: DeviceArray) -> tuple[Part, DeviceArray]:
    """U, of which only the upper triangle is written, and the row that each was exchanged with."""
    found = _factored(a, None, status)
    return found.u, found.pivots


class _Factored(NamedTuple):
    u: Part  # with the right sides behind it, after their substitution through L
    pivots: DeviceArray


def _factored(a: DeviceArray, b: DeviceArray | None, status: DeviceArray) -> _Factored:
    dtype = a.dtype
    assert isinstance(dtype, DType)
    count, n, _ = a.shape
    m = n if b is None else n + b.shape[2]
    work, u = new(a, dtype, count * n * m), new(a, dtype, count * n * m)
    lower, order = new(a, dtype, 2 * count * WIDEST * n), new(a, i32, 4 * count * n)
    pivots = new(a, i32, count, n)
    right = flat(a if b is None else b)
    system_joiner(dtype).launch(work.size, flat(a), right, work, order, count, n, m)
    first = known = at = parity = before = 0
    while at < n or (known and at < m):
        what = step_of(a.device, dtype, n, n - at, before)
        columns = min(what.width, n - at)
        after = at + columns
        blocks = count if columns else 0
        if known:
            high = max(1, -(-(n - at) // what.tile))
            blocks += count * high * -(-(m - after) // what.tile)
        lu_step(what)[blocks, what.threads](
            work, u, lower, order, pivots, status, count, n, m, first, known, at, columns, parity
        )
        first, known, before = at, columns, what.width
        at, parity = after, 1 - parity
    return _Factored(Part(u, count, 0, n * m, m, 1, n, m), pivots)


def width_of(dtype: DType) -> int:
    """The columns of a panel at most, a row of which is in 128 bytes."""
    return min(WIDEST, 128 // dtype.itemsize)


def block_of(
    device: Device, dtype: DType, n: int, rows: int, *, few: bool = False
) -> tuple[int, int, int]:
    """Threads of the block that factors a panel of so many rows of a matrix of n rows, the rows of
    each of them, and the columns of the panel that their registers have room for. With `few`,
    threads have four rows where that leaves room for as many columns."""
    limits, traits = device.limits, device.traits
    warp = limits.subgroup_size
    most = min(limits.max_threads_per_block, limits.max_block.x, warp * warp or 256)
    threads = _THREADS[min(room for room in _THREADS if room >= max(rows, min(n, 256)))]
    if few and rows <= 4 * 256:
        threads = min(threads, 256)
    widest = width_of(dtype)
    if traits.software or traits.serial_threads:
        threads, widest = _SOFTWARE
    threads = max(min(threads, 1 << (most.bit_length() - 1)), warp)
    while True:
        width, each = min(widest, threads), 1
        while each * threads < rows:
            each *= 2
        while width > 1 and each * width * dtype.itemsize > 4 * _REGISTERS.get(threads, 128):
            width //= 2
        # The rows of all threads, one of each at a time, go through shared memory.
        shared = threads * (width + 2) * dtype.itemsize
        if shared <= limits.max_shared_memory * 7 // 8 or threads <= max(warp, _SOFTWARE[0]):
            return threads, each, width
        threads //= 2


def step_of(device: Device, dtype: DType, n: int, rows: int, before: int) -> Step:
    """How a panel of so many rows of matrices of n rows is factored, behind one of `before`
    columns (0 for the first)."""
    threads, each, width = block_of(device, dtype, n, rows)
    warp, room = device.limits.subgroup_size, device.limits.max_shared_memory
    # Narrow panels of tall matrices come with large tiles, since few multiplications of an element
    # pay for reading it.
    tile = 128 if threads >= 512 and dtype.itemsize <= 4 else 64 if threads >= 256 else 32
    while (what := Step(dtype, threads, warp, each, width, before or width, tile)).shared_bytes > (
        room
    ):
        if before > width and tile > 16:
            tile //= 2
        else:
            width //= 2
    return what

"""Exclusive scans of int32 counts, which other kernels of the library use."""

from __future__ import annotations

from treadle.core.dtypes import i32
from treadle.kernels.device_code import block_scan
from treadle.kernels.launching import new, serial_threads
from treadle.runtime.arrays import DeviceArray

_SERIAL = (1, 4096)  # threads of a block, elements of a thread: on the CPU
_PARALLEL = (256, 8)


def exclusive_sum(x: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The sums of the int32 elements before each one, and the sum of all, as an array of one.

    >>> import treadle as td
    >>> sums, total = exclusive_sum(td.asarray([3, 1, 4], dtype=td.int32, device="cpu")._array)
    >>> sums.to_host().tolist(), total.to_host().tolist()
    ([0, 3, 4], [8])
    """
    sums, totals, size = sums_of_stretches(x)
    if totals.size == 1:
        return sums, totals
    before, total = exclusive_sum(totals)
    block_scan.add_totals.launch(x.size, sums, before, size)
    return sums, total


def sums_of_stretches(x: DeviceArray) -> tuple[DeviceArray, DeviceArray, int]:
    """The sums of the elements before each one in its stretch of some length, the sums of whole
    stretches (at least one), and that length.

    >>> import treadle as td
    >>> x = td.asarray([3, 1, 4], dtype=td.int32, device="cpu")._array
    >>> sums, totals, length = sums_of_stretches(x)
    >>> sums.to_host().tolist(), totals.to_host().tolist(), length
    ([0, 3, 4], [8], 4096)
    """
    threads, items = _SERIAL if serial_threads(x.device) else _PARALLEL
    threads = min(threads, x.device.limits.max_threads_per_block)
    size = threads * items
    blocks = max(-(-x.size // size), 1)
    sums = new(x, i32, x.size)
    totals = new(x, i32, blocks)
    scanner = block_scan.block_scanner(threads, items)
    scanner[blocks, threads](x, sums, totals, x.size)
    return sums, totals, size

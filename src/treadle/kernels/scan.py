"""Running sums of int32 counts, of which the other kernels of the library are made."""

from __future__ import annotations

from treadle.core.dtypes import i32
from treadle.kernels.device_code import scanning
from treadle.kernels.launching import alone, new
from treadle.runtime.arrays import DeviceArray

_ALONE = (1, 4096)  # threads of a block, elements of a thread: on the CPU
_TOGETHER = (256, 8)


def exclusive_sum(x: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The sums of the int32 elements before each one, and the sum of all, as an array of one.

    >>> import treadle as td
    >>> sums, total = exclusive_sum(td.asarray([3, 1, 4], dtype=td.int32, device="cpu")._array)
    >>> sums.to_host().tolist(), total.to_host().tolist()
    ([0, 3, 4], [8])
    """
    threads, items = _ALONE if alone(x.device) else _TOGETHER
    threads = min(threads, x.device.limits.max_threads_per_block)
    size = threads * items
    blocks = max(-(-x.size // size), 1)
    sums = new(x, i32, x.size)
    totals = new(x, i32, blocks)
    scanner = scanning.block_scanner(threads, items)
    scanner[blocks, threads](x, sums, totals, x.size)
    if blocks == 1:
        return sums, totals
    before, total = exclusive_sum(totals)
    scanning.add_totals.launch(x.size, sums, before, size)
    return sums, total

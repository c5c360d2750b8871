"""Which elements of a mask are true. Their number is read, once: results are as long as that."""

from __future__ import annotations

from treadle.core.dtypes import DType, i32
from treadle.kernels.device_code import compaction
from treadle.kernels.launching import flat, new, serial_threads, start
from treadle.kernels.scan import exclusive_sum
from treadle.runtime.arrays import DeviceArray

_RUN = 16  # elements of a thread
_RUN_SERIAL = 4096


def positions(mask: DeviceArray, dtype: DType = i32) -> DeviceArray:
    """The places of the true elements, in order, counted through all rows. Waits for their number.

    >>> import treadle as td
    >>> mask = td.asarray([[True, False], [False, True]], device="cpu")
    >>> positions(mask._array).to_host()
    array([0, 3], dtype=int32)
    """
    before, total, run = _counted(mask)
    found = new(mask, dtype, int(total.to_host()[0]))
    if found.size:
        writer = compaction.position_writer(dtype)
        start(writer, before.size, mask.device, flat(mask), before, found, run)
    return found


def _counted(mask: DeviceArray) -> tuple[DeviceArray, DeviceArray, int]:
    """How many are true before each run of elements, and in all; and the length of a run."""
    run = _RUN_SERIAL if serial_threads(mask.device) else _RUN
    counts = new(mask, i32, -(-mask.size // run))
    if mask.size:
        start(compaction.count_runs, counts.size, mask.device, flat(mask), counts, run)
    return *exclusive_sum(counts), run

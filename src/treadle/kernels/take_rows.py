"""Rows of a table by their indices, where a kernel may not see the whole table at once.

Gathers in fused kernels bind the table as one array. A table that is larger than a binding may be
is read window by window here: each launch writes the rows that lie in its window.
"""

from __future__ import annotations

from treadle.kernels.device_code.row_windows import taker
from treadle.kernels.launching import flat, new
from treadle.runtime.arrays import DeviceArray


def take_rows(table: DeviceArray, index: DeviceArray) -> DeviceArray:
    """The rows of a contiguous table at indices (int32), which must be inside; axes after the
    first are those of a row.

    >>> import treadle as td
    >>> table = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")._array
    >>> index = td.asarray([1, 0], dtype=td.int32, device="cpu")._array
    >>> take_rows(table, index).to_host().tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    rows, *inner = table.shape
    out = new(table, table.dtype, *index.shape, *inner)  # type: ignore[arg-type]
    columns = table.size // max(rows, 1)
    item = table.dtype.itemsize
    step = max(table.device.limits.max_binding_size // max(columns * item, 1), 1)
    for start in range(0, rows if out.size else 0, step):
        count = min(step, rows - start)
        window = table.view((count * columns,), (1,), table.offset + start * columns)
        taker.launch(out.size, window, flat(index), flat(out), start, count, columns)
    return out

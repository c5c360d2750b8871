"""Rows added at indices: the gradient of a table whose rows were gathered."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.kernels.device_code import row_sums, scattering
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, start, zeros
from treadle.runtime.arrays import DeviceArray

_FEW = 4096  # elements that one thread of the CPU adds by itself


@for_any_sizes
def add_rows(values: DeviceArray, index: DeviceArray, rows: int) -> DeviceArray:
    """An array of so many rows: each is the sum of the rows of values that have its index. Indices
    outside of the array are skipped. float16 and bfloat16 are summed in float32.

    On the CPU sums have the order of the values. On GPUs they have that of the threads, so that
    rounding may differ from run to run.

    >>> import treadle as td
    >>> values = td.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device="cpu")._array
    >>> index = td.asarray([2, -1, 2], dtype=td.int32, device="cpu")._array
    >>> add_rows(values, index, 3).to_host().tolist()
    [[0.0, 0.0], [0.0, 0.0], [6.0, 8.0]]
    """
    assert isinstance(values.dtype, DType)
    items, columns = values.shape
    dtype, form = values.dtype, wide(values.dtype)
    given = flat(values), flat(index)
    if not serial_threads(values.device):
        sums = zeros(values, form, rows, columns)
        if values.size and sums.size:
            kernel = row_sums.adder(form)
            kernel.launch((items, columns), *given, flat(sums), items, columns, rows)
    else:
        sums = new(values, form, rows, columns)
        if sums.size:
            threads: int = values.device.handle.threads
            threads = threads if max(values.size, sums.size) > _FEW else 1
            share = -(-rows // threads)
            kernel = row_sums.adder_serial(form)
            start(kernel, threads, values.device, *given, flat(sums), items, columns, rows, share)
    if form == dtype:
        return sums
    out = new(values, dtype, rows, columns)
    if out.size:
        scattering.caster(dtype).launch(out.size, flat(out), flat(sums))
    return out

"""Rows added up where an array of indices says: the gradient of a table that rows are taken of."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.kernels.device_code import adding_rows, scattering
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import alone, flat, new, start, zeros
from treadle.runtime.arrays import DeviceArray

_FEW = 4096  # elements that one thread of the CPU adds by itself


def add_rows(values: DeviceArray, index: DeviceArray, rows: int) -> DeviceArray:
    """So many rows, each the sum of the rows of values whose index it is; those with an index of no
    row are left out. float16 and bfloat16 are added up in float32.

    On the CPU the order of sums is that of the values. On GPUs it is that of threads, which may
    round otherwise at every run.

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
    if not alone(values.device):
        sums = zeros(values, form, rows, columns)
        if values.size and sums.size:
            kernel = adding_rows.adder(form)
            kernel.launch((items, columns), *given, flat(sums), items, columns, rows)
    else:
        sums = new(values, form, rows, columns)
        if sums.size:
            threads: int = values.device.handle.threads
            threads = threads if max(values.size, sums.size) > _FEW else 1
            share = -(-rows // threads)
            kernel = adding_rows.adder_alone(form)
            start(kernel, threads, values.device, *given, flat(sums), items, columns, rows, share)
    if form == dtype:
        return sums
    out = new(values, dtype, rows, columns)
    if out.size:
        scattering.caster(dtype).launch(out.size, flat(out), flat(sums))
    return out

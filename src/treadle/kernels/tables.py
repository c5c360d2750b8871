"""Arrays of numbers that kernels need again and again, as roots of unity: a device keeps them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_MOST_BYTES = 1 << 28  # that a device keeps


def table_of(
    device: Device,
    name: Hashable,
    dtype: DType,
    compute: Callable[[], np.ndarray[Any, Any]],
) -> DeviceArray:
    """The table of a name on a device, of a single axis, computed by the host if the device has it
    no more. What was used last is forgotten last.

    While launches are captured nothing is uploaded but by a replay, so a table that comes then is
    that recording's alone.
    """
    key = (name, dtype)
    table: DeviceArray | None = device.tables.pop(key, None)
    if table is not None:
        device.tables[key] = table  # last: those that were not used for longest are first
        return table
    values = compute()
    table = DeviceArray.allocate(device, dtype, (values.size,))
    table.upload(values)
    if device.default_stream.keeping is not None:
        return table
    device.tables[key] = table
    kept = list(device.tables.items())  # at once: other threads may add theirs
    held = sum(each.size * each.dtype.itemsize for _, each in kept)
    for oldest, each in kept[:-1]:
        if held <= _MOST_BYTES:
            break
        device.tables.pop(oldest, None)
        held -= each.size * each.dtype.itemsize
    return table

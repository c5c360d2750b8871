"""A cache of constant arrays on each device, such as roots of unity."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_MOST_BYTES = 1 << 28  # of a device's cache


def table_of(
    device: Device,
    name: Hashable,
    dtype: DType,
    compute: Callable[[], np.ndarray[Any, Any]],
) -> DeviceArray:
    """The table of a name on a device, as an array of one axis. If it is not in the cache, the host
    computes it. The least recently used tables are dropped first.

    While launches are captured, an upload happens only at replays. A table that is made then
    belongs to that recording and is not cached.
    """
    key = (name, dtype)
    table: DeviceArray | None = device.tables.pop(key, None)
    if table is not None:
        device.tables[key] = table  # reinserted last: the order is that of the last use
        return table
    values = compute()
    table = DeviceArray.allocate(device, dtype, (values.size,))
    table.upload(values)
    if device.default_stream.capturing is not None:
        return table
    device.tables[key] = table
    kept = list(device.tables.items())  # a copy: other threads may insert at the same time
    held = sum(each.size * each.dtype.itemsize for _, each in kept)
    for oldest, each in kept[:-1]:
        if held <= _MOST_BYTES:
            break
        device.tables.pop(oldest, None)
        held -= each.size * each.dtype.itemsize
    return table

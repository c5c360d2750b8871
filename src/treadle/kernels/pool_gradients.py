"""The gradients of pooling with respect to the images."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import pooling_gradients
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, start
from treadle.kernels.pool import Windows, passed
from treadle.kernels.tables import table_of
from treadle.runtime.arrays import DeviceArray


@for_any_sizes
def give_to_places(
    given: DeviceArray, places: DeviceArray, windows: Windows, shape: tuple[int, ...]
) -> DeviceArray:
    """An array of a shape whose elements are the sums of what those windows were given that name
    them as their places, as `max_pool_with_places` does.

    >>> import treadle as td
    >>> given = td.asarray([[3.0, 4.0]], device="cpu")._array
    >>> places = td.asarray([[2, 2]], dtype=td.int32, device="cpu")._array
    >>> triples = Windows(1, (1, 1, 5), (1, 1, 2), (1, 1, 3), (1, 1, 2))
    >>> give_to_places(given, places, triples, (1, 5)).to_host().tolist()
    [[0.0, 0.0, 7.0, 0.0, 0.0]]
    """
    dtype = _check(given, shape)
    out = new(given, dtype, *shape)
    if serial_threads(given.device) and wide(dtype) == dtype and out.size:
        size, count = math.prod(windows.extents), math.prod(windows.counts)
        images, threads = out.size // size, given.device.handle.threads
        each = -(-images // threads)
        start(
            pooling_gradients.scatter_images, min(threads, images), given.device, flat(given),
            flat(places), flat(out), images, size, count, each,
        )  # fmt: skip
    elif out.size:
        _give(given, places, windows, out, _table_of(given, windows, True))
    return out


@for_any_sizes
def share_equally(
    given: DeviceArray, windows: Windows, include: bool, divisor: int, shape: tuple[int, ...]
) -> DeviceArray:
    """An array of a shape whose elements are the sums of what the windows that have them were
    given, each divided as `mean_pool` divides."""
    dtype = _check(given, shape)
    out = new(given, dtype, *shape)
    if out.size:
        table = _table_of(given, windows, include)
        parts = new(given, wide(dtype), *given.shape)
        rows, columns = given.size // windows.counts[2], windows.counts[2]
        pooling_gradients.divider(dtype).launch(
            (rows, columns), flat(given), table, flat(parts), rows, passed(windows), divisor
        )
        _give(parts, None, windows, out, table)
    return out


def _check(given: DeviceArray, shape: tuple[int, ...]) -> DType:
    assert isinstance(given.dtype, DType)
    if max(math.prod(shape), given.size) >= MOST_NARROW:
        raise ShapeError(
            f"the gradient of pooling from shape {shape} to {given.shape}: {MOST_NARROW} elements "
            "or more are too many at once; pool parts of the batch"
        )
    return given.dtype


def _give(
    given: DeviceArray, places: DeviceArray | None, windows: Windows, out: DeviceArray,
    table: DeviceArray,
) -> None:  # fmt: skip
    assert isinstance(out.dtype, DType)
    rows, width = out.size // windows.extents[2], windows.extents[2]
    named = 0 if places is None else flat(places)
    kernel = pooling_gradients.giver(out.dtype, places is not None)
    kernel.launch((rows, width), flat(given), named, table, flat(out), rows, passed(windows))


def _table_of(given: DeviceArray, windows: Windows, include: bool) -> DeviceArray:
    name = ("windows of pooling", windows, include)
    return table_of(given.device, name, i32, functools.partial(_table, windows, include))


def _table(windows: Windows, include: bool) -> np.ndarray[Any, Any]:
    """The table of `pooling_gradients.giver`, followed by that of `divider`."""
    ranges, numbers = [], []
    for axis in range(3):
        extent, count = windows.extents[axis], windows.counts[axis]
        index, number = np.arange(extent, dtype=np.int64), np.arange(count, dtype=np.int64)
        if windows.adaptive:
            start, end = number * extent // count, -(-(number + 1) * extent // count)
            first, last = index * count // extent, -(-(index + 1) * count // extent)
            inside = end - start
        else:
            stride, padding = windows.stride[axis], windows.padding[axis]
            reach = (windows.kernel[axis] - 1) * windows.dilation[axis] + 1
            first = np.maximum(-(-(index + padding - reach + 1) // stride), 0)
            last = np.minimum((index + padding) // stride + 1, count)
            start = number * stride - padding
            inside = np.minimum(start + reach, extent) - np.maximum(start, 0)
            if include:
                inside = np.minimum(reach, extent + padding - start)
        ranges.append(np.stack([first, np.maximum(first, last)], axis=1).ravel())
        numbers.append(np.maximum(inside, 1))
    return np.concatenate([*ranges, *numbers]).astype(np.int32)

"""Windows: the parts of a buffer that a launch needs, where a device cannot bind the whole
buffer."""

from __future__ import annotations

import math
from typing import Any

from treadle.runtime.arrays import DeviceArray, as_array
from treadle.runtime.devices import Device

LEAST = 16  # the smallest window and its step in bytes: kernels may bind it as vec4


def window(array: DeviceArray, start: int, size: int) -> DeviceArray:
    """`size` bytes of an array's buffer from byte `start` on, as an array."""
    part = DeviceArray(array.device, array.storage, array.dtype, (size // array.dtype.itemsize,))
    part.buffer = array.device.handle.window(array.buffer, start, size)
    return part


def narrow(arguments: tuple[Any, ...], device: Device) -> tuple[Any, ...] | None:
    """A launch's arguments with windows in place of buffers that the device can't bind as a whole.
    All arrays of a buffer share one window, since a kernel binds a buffer once. None if that window
    is too large."""
    limits = device.limits
    found = [as_array(argument) for argument in arguments]
    wide: dict[Any, list[DeviceArray]] = {}
    for array in found:
        if array is not None and array.buffer.size > limits.max_binding_size:
            wide.setdefault(array.buffer, []).append(array)
    places: dict[Any, tuple[int, int]] = {}
    for buffer, arrays in wide.items():
        step = math.lcm(limits.buffer_alignment, *(array.dtype.itemsize for array in arrays))
        bounds = [byte_bounds(array) for array in arrays if array.size] or [(0, 4)]
        start = min(low for low, _ in bounds) // step * step
        start = min(start, (buffer.size - LEAST) // step * step)
        size = -(-(max(high for _, high in bounds) - start) // LEAST) * LEAST
        size = min(max(size, LEAST), buffer.size - start)
        if size > limits.max_binding_size:
            return None
        places[buffer] = start, size
    return tuple(
        [
            argument if array is None or array.buffer not in places
            else _moved(array, *places[array.buffer])
            for argument, array in zip(arguments, found, strict=True)
        ]
    )  # fmt: skip


def byte_bounds(array: DeviceArray) -> tuple[int, int]:
    """The first byte of an array's elements in its buffer, and the one after the last."""
    moves = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low = array.offset + sum(move for move in moves if move < 0)
    high = array.offset + sum(move for move in moves if move > 0) + 1
    item = array.dtype.itemsize
    return low * item, high * item


def _moved(array: DeviceArray, start: int, size: int) -> DeviceArray:
    """An array with its offset counted from the start of a window."""
    moved = DeviceArray(
        array.device,
        array.storage,
        array.dtype,
        array.shape,
        array.strides,
        array.offset - start // array.dtype.itemsize if array.size else 0,
        array.key.read_only,
    )
    moved.buffer = array.device.handle.window(array.buffer, start, size)
    return moved

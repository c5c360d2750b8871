"""What all launches of the library use."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel
from treadle.lang.types import VectorType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device


def flat(array: DeviceArray) -> DeviceArray:
    """A contiguous array as one of a single axis."""
    if len(array.shape) == 1:
        return array
    return array.view((array.size,), (1,), array.offset)


def new(like: DeviceArray, dtype: DType, *shape: int) -> DeviceArray:
    """New memory on the device of another array, contents undefined; imagined like that one."""
    if like.key.imagined:
        return DeviceArray.imagined(like.device, dtype, shape)
    return DeviceArray.allocate(like.device, dtype, shape)


def zeros(like: DeviceArray, dtype: DType, *shape: int) -> DeviceArray:
    """New memory on the device of another array, filled with zeros."""
    made = new(like, dtype, *shape)
    if made.size and not made.key.imagined:
        made.device.default_stream.handle.fill_zero(made.buffer, 0, made.buffer.size)
    return made


def packed(kind: Any, *numbers: Any) -> Packed:
    """A vector or a struct as a launch takes it without looking at it again. Of structs in it the
    fields are tuples."""
    if isinstance(kind, VectorType):
        return Packed(kind.ir, np.array(numbers, kind.dtype.numpy))
    return Packed(kind.__treadle_struct__, np.array(numbers, kind.dtype))


def serial_threads(device: Device) -> bool:
    """Whether the threads of a block run one after the other (on the CPU). Then a thread does best
    with much work of its own, and without barriers."""
    return device.traits.serial_threads


def start(kernel: Kernel, threads: int, device: Device, *arguments: Any) -> None:
    """Run so many threads which do not wait for each other. On the CPU each is a block: a block's
    threads become the lanes of vectors, which is slow where their loops differ in length."""
    if serial_threads(device):
        kernel[threads, 1](*arguments)
    else:
        kernel.launch(threads, *arguments)

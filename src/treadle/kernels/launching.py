"""What all launches of the library use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.dtypes import DType
from treadle.core.sizes import has_sizes
from treadle.lang.decorators import Kernel
from treadle.lang.types import VectorType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device
from treadle.runtime.launch import Repeat
from treadle.runtime.varying import Components, varying

F = TypeVar("F", bound=Callable[..., Any])


def for_any_sizes(function: F) -> F:
    """Mark a function whose launches may be recorded for sizes that vary (`runtime.varying`): it
    compiles nothing for sizes, keeps none in tables, and asks for what it decides by comparisons
    or as integers."""
    function.any_sizes = True  # type: ignore[attr-defined]
    return function


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
    if varying.get() is not None and has_sizes(numbers):
        is_vector = isinstance(kind, VectorType)
        return Packed(kind.ir if is_vector else kind.__treadle_struct__, Components(numbers))
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


class Steps:
    """Launches of one kernel in a row, with arrays and numbers of the same kinds: after the first
    one nothing is looked up. All that it writes is memory of the caller's own, which no pending
    value reads."""

    __slots__ = ("_blocks", "_kernel", "_repeat", "_threads")

    def __init__(self, kernel: Kernel, threads: int) -> None:
        self._kernel = kernel
        self._threads = Dim3(threads)
        self._blocks = 0
        self._repeat: Repeat | None = None

    def launch(self, blocks: int, arrays: Sequence[DeviceArray], *numbers: int) -> None:
        """Run so many blocks."""
        if self._repeat is not None and blocks == self._blocks:
            self._repeat([*arrays, *numbers], len(arrays))
            return
        launch = self._kernel._launcher.bound(Dim3(blocks), self._threads)
        self._repeat = launch((*arrays, *numbers))
        self._blocks = blocks

"""Arguments that are not treadle's own: NumPy arrays, arrays that speak DLPack, struct values."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib import array_utils

from treadle.core.errors import LaunchError
from treadle.ir.types import Type
from treadle.runtime.arguments import NUMBER_TYPES
from treadle.runtime.arrays import DeviceArray, array_dtype
from treadle.runtime.definition import KernelDefinition
from treadle.runtime.devices import Device, device
from treadle.runtime.memory import Storage

_DLPACK_CPU = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """A struct or vector value: its IR type, and its fields or components as a NumPy record. For
    what no kernel takes, its Python type."""

    key: Any
    data: Any


@dataclass(frozen=True, slots=True)
class Taken:
    """Arguments as a launch wants them, and which host arrays they were copied from."""

    arguments: list[Any]  # numbers, tensors, DeviceArrays, Packed
    copied: dict[int, np.ndarray[Any, Any]]

    def give_back(self, written: frozenset[int]) -> None:
        """Copy what the kernel wrote back into the host arrays it came from."""
        for position in written & self.copied.keys():
            array = self.arguments[position]
            target, raw, offset = array.host_target()
            if array.size:
                array.device.default_stream.handle.read(array.buffer, offset, raw)
            np.copyto(self.copied[position], target)


def own_device(arguments: tuple[Any, ...]) -> Device | None:
    """The device that arguments of other libraries are on, if one of them is on any."""
    for value in arguments:
        foreign = not isinstance(value, (np.ndarray, np.generic))
        if foreign and hasattr(value, "__dlpack_device__"):
            kind = value.__dlpack_device__()[0]
            if kind == _DLPACK_CPU:
                return device("cpu")
    return None


def take_in(definition: KernelDefinition, arguments: tuple[Any, ...], where: Device) -> Taken:
    """Every argument as a number, a DeviceArray on `where`, or a struct value.

    LaunchError names the argument that cannot be used there.
    """
    taken = Taken(list(arguments), {})
    borrowed: dict[int, np.ndarray[Any, Any]] = {}
    for position, value in enumerate(arguments):
        if type(value) in NUMBER_TYPES or hasattr(value, "_array"):
            continue
        name = definition.parameters[position].name
        what = f"argument {position + 1} ({name}) of kernel {definition.name}"
        if isinstance(value, np.ndarray):
            taken.arguments[position] = _copied_in(value, where)
            taken.copied[position] = value
        elif hasattr(value, "__dlpack_device__"):
            borrowed[position] = _checked_foreign(value, where, what)
        else:
            taken.arguments[position] = Packed(*_class_of(value))
    for position, array in zip(borrowed, borrow_host(list(borrowed.values()), where), strict=True):
        taken.arguments[position] = array
    return taken


def describe(value: Any) -> tuple[Any, Any]:
    """The class of an argument and the argument, without any device: for printing source."""
    array = getattr(value, "_array", None)
    if array is not None:
        return array.key, array
    if isinstance(value, np.ndarray):
        described = DeviceArray(None, None, array_dtype(value.dtype), value.shape)
        return described.key, described
    return _class_of(value)


def _class_of(value: Any) -> tuple[Type | type, Any]:
    """A number's type and the number; or the IR type that a struct or vector value says it has,
    and its fields or components as a NumPy record."""
    kind: Type | None = getattr(type(value), "__treadle_struct__", None)
    if kind is None and type(value) not in NUMBER_TYPES:
        kind = getattr(getattr(value, "type", None), "ir", None)
    return (type(value), value) if kind is None else (kind, np.asarray(value))


def _copied_in(value: np.ndarray[Any, Any], where: Device) -> DeviceArray:
    array = DeviceArray.allocate(where, array_dtype(value.dtype), value.shape)
    array.upload(value)
    return array


def _checked_foreign(value: Any, where: Device, what: str) -> np.ndarray[Any, Any]:
    """Another library's host memory as a NumPy array, for the CPU device."""
    kind = value.__dlpack_device__()[0]
    if kind != _DLPACK_CPU or where.backend != "cpu":
        raise LaunchError(
            f"{what} is memory of {type(value).__module__.partition('.')[0]} on "
            f"{'the CPU' if kind == _DLPACK_CPU else 'another device'}; the launch is on "
            f'{where.id}. Launch on device "cpu", or copy it with td.asarray(…, device=…)'
        )
    return np.from_dlpack(value)


def borrow_host(arrays: list[np.ndarray[Any, Any]], where: Device) -> list[DeviceArray]:
    """NumPy arrays' memory as arrays of the CPU device, without copies.

    Arrays that overlap become views of one buffer, as compiled code takes different buffers for
    different memory.
    """
    bounds = [array_utils.byte_bounds(array) for array in arrays]
    storages: dict[tuple[int, int], Storage] = {}
    return [
        _borrowed(array, where, _stretch_around(low, high, bounds), storages)
        for array, (low, high) in zip(arrays, bounds, strict=True)
    ]


def _stretch_around(low: int, high: int, bounds: list[tuple[int, int]]) -> tuple[int, int]:
    """The bytes of one array and of all that overlap it, directly or through others."""
    while True:
        touching = [(a, b) for a, b in bounds if a < high and low < b] + [(low, high)]
        wider = min(a for a, _ in touching), max(b for _, b in touching)
        if wider == (low, high):
            return wider
        low, high = wider


def _borrowed(
    data: np.ndarray[Any, Any],
    where: Device,
    stretch: tuple[int, int],
    storages: dict[tuple[int, int], Storage],
) -> DeviceArray:
    item = data.dtype.itemsize
    low, high = stretch
    start = data.ctypes.data - low
    if data.size == 0:
        return DeviceArray.allocate(where, array_dtype(data.dtype), data.shape)
    if start % item or data.ctypes.data % item or any(s % item for s in data.strides):
        raise LaunchError(
            f"an array of {data.dtype} whose elements do not lie at multiples of their size cannot "
            "be used without a copy: copy it first"
        )
    storage = storages.get(stretch)
    if storage is None:
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
        storage = Storage.borrowed(where.handle.borrow(memory), high - low, data)
        storages[stretch] = storage
    strides = tuple(stride // item for stride in data.strides)
    return DeviceArray(where, storage, array_dtype(data.dtype), data.shape, strides, start // item)

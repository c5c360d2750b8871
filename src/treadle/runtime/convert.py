"""Arguments that are not treadle's own: NumPy arrays, arrays that speak DLPack, struct values."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib import array_utils

from treadle.core.errors import LaunchError
from treadle.ir.types import SCALARS, Type
from treadle.runtime.arguments import NUMBER_TYPES
from treadle.runtime.arrays import (
    ArrayClass,
    DeviceArray,
    array_class,
    array_dtype,
    element_type,
    is_contiguous,
    packed_strides,
)
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
class Described:
    """What a compiler wants to know of an array, without memory: for printing source."""

    key: ArrayClass
    shape: tuple[int, ...]
    size: int
    offset: int = 0


@dataclass(slots=True)
class Taken:
    """Arguments as a launch wants them, and which host memory they were copied from."""

    arguments: list[Any]  # numbers, tensors, DeviceArrays, Packed
    # Host arrays and their copies, with the positions of the arguments that are (parts of) them.
    copied: list[tuple[frozenset[int], np.ndarray[Any, Any], DeviceArray]] = field(
        default_factory=list
    )
    read_only: dict[int, str] = field(default_factory=dict)  # and how to call them

    def check(self, written: frozenset[int]) -> None:
        """LaunchError if the kernel writes to memory that may not be written."""
        for position in sorted(written & self.read_only.keys()):
            raise LaunchError(
                f"{self.read_only[position]} is written by the kernel, but it is read-only: pass a "
                "copy (x.copy()), or make it writable"
            )

    def give_back(self, written: frozenset[int]) -> None:
        """Copy what the kernel wrote back into the host memory it came from."""
        for positions, host, array in self.copied:
            if written & positions and array.size:
                target, raw, offset = array.host_target()
                array.device.default_stream.handle.read(array.buffer, offset, raw)
                np.copyto(host, target)


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
    taken = Taken(list(arguments))
    copied: dict[int, np.ndarray[Any, Any]] = {}
    borrowed: dict[int, np.ndarray[Any, Any]] = {}
    for position, value in enumerate(arguments):
        if type(value) in NUMBER_TYPES or hasattr(value, "_array") or _is_new_number(value):
            continue
        name = definition.parameters[position].name
        what = f"argument {position + 1} ({name}) of kernel {definition.name}"
        if isinstance(value, np.ndarray):
            host = copied[position] = value
        elif hasattr(value, "__dlpack_device__"):
            host = borrowed[position] = _checked_foreign(value, where, what)
        else:
            taken.arguments[position] = Packed(*_class_of(value))
            continue
        if not host.flags.writeable:
            taken.read_only[position] = what
    for position, array in zip(borrowed, borrow_host(list(borrowed.values()), where), strict=True):
        taken.arguments[position] = array
    _copy_in(copied, where, taken)
    return taken


def _is_new_number(value: Any) -> bool:
    """Whether a value is the first bfloat16 number, whose type NumPy does not know by itself."""
    if isinstance(value, np.generic) and value.dtype.name == "bfloat16":
        NUMBER_TYPES[type(value)] = SCALARS["bf16"]
        return True
    return False


def describe(value: Any) -> tuple[Any, Any]:
    """The class of an argument and the argument, without any device: for printing source."""
    array = getattr(value, "_array", None)
    if array is not None:
        return array.key, array
    if hasattr(value, "__dlpack_device__"):
        array = value if isinstance(value, np.ndarray) else as_numpy(value, "the argument")
        item, packed = array.dtype.itemsize, packed_strides(array.shape)
        strides = tuple(s // item for s in array.strides)
        # NumPy arrays are copied to a device row by row; others are used as they lie.
        plain = array is value or is_contiguous(array.shape, strides) or array.size == 0
        key = array_class(
            None, array_dtype(array.dtype), array.shape, packed if plain else strides, 0
        )
        return key, Described(key, array.shape, array.size)
    _is_new_number(value)
    return _class_of(value)


def _class_of(value: Any) -> tuple[Type | type, Any]:
    """A number's type and the number; or the IR type that a struct or vector value says it has,
    and its fields or components as a NumPy record."""
    if isinstance(value, np.void) and value.dtype.names is not None:
        return element_type(value.dtype), np.asarray(value)
    kind: Type | None = getattr(type(value), "__treadle_struct__", None)
    if kind is None and type(value) not in NUMBER_TYPES:
        kind = getattr(getattr(value, "type", None), "ir", None)
    return (type(value), value) if kind is None else (kind, np.asarray(value))


def _copy_in(arrays: dict[int, np.ndarray[Any, Any]], where: Device, taken: Taken) -> None:
    """Copies of NumPy arrays on a device. Those that overlap become views of one copy."""
    bounds = [array_utils.byte_bounds(array) if array.size else (0, 0) for array in arrays.values()]
    together: dict[tuple[int, int], list[int]] = {}
    for (position, array), (low, high) in zip(arrays.items(), bounds, strict=True):
        stretch = _stretch_around(low, high, bounds) if array.size else (-position, 0)
        together.setdefault(stretch, []).append(position)
    for (low, high), positions in together.items():
        if not _any_shares([arrays[position] for position in positions]):
            for position in positions:
                copy = taken.arguments[position] = _copied_in(arrays[position], where)
                taken.copied.append((frozenset({position}), arrays[position], copy))
            continue
        host = _host_bytes(low, high)
        whole = _copied_in(host, where)
        for position in positions:
            taken.arguments[position] = _view(arrays[position], where, whole.storage, low)
        taken.copied.append((frozenset(positions), host, whole))


def _any_shares(arrays: list[np.ndarray[Any, Any]]) -> bool:
    """Whether two arrays have an element in common (or it is too hard to say)."""
    try:
        pairs = itertools.combinations(arrays, 2)
        return any(np.shares_memory(a, b, 10_000) for a, b in pairs)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


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
    return as_numpy(value, what)


def as_numpy(value: Any, what: str) -> np.ndarray[Any, Any]:
    """Another library's host memory as a NumPy array, not copied; LaunchError where that library
    or NumPy refuses."""
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise LaunchError(f"{what} cannot be used without a copy: {error}") from None


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
    low, high = stretch
    if data.size == 0:
        return DeviceArray.allocate(where, array_dtype(data.dtype), data.shape)
    storage = storages.get(stretch)
    if storage is None:
        buffer = where.handle.borrow_address(low, high - low, data)
        storage = storages[stretch] = Storage.borrowed(buffer, high - low, data)
    return _view(data, where, storage, low)


def _host_bytes(low: int, high: int) -> np.ndarray[Any, Any]:
    """The memory between two addresses."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


def _view(data: np.ndarray[Any, Any], where: Device, storage: Storage, low: int) -> DeviceArray:
    """An array in a storage that holds the host memory from address `low` on."""
    if not data.dtype.isnative:
        raise LaunchError(
            f"an array of {data.dtype} has another byte order than this machine and cannot be used "
            "without a copy: copy it with x.astype(x.dtype.newbyteorder('='))"
        )
    item = data.dtype.itemsize
    start = data.ctypes.data - low
    if start % item or data.ctypes.data % item or any(s % item for s in data.strides):
        raise LaunchError(
            f"an array of {data.dtype} whose elements do not lie at multiples of their size cannot "
            "be used without a copy: copy it first"
        )
    strides = tuple(stride // item for stride in data.strides)
    return DeviceArray(where, storage, array_dtype(data.dtype), data.shape, strides, start // item)

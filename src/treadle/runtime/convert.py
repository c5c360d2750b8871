"""Converts arguments that are not treadle's arrays: NumPy's, other libraries', struct values."""

from __future__ import annotations

import ctypes
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import array_utils

from treadle.core.dtypes import DType
from treadle.core.errors import LaunchError
from treadle.ir.definition import KernelDefinition
from treadle.ir.types import SCALARS, Type
from treadle.runtime.arguments import NUMBER_TYPES
from treadle.runtime.arrays import (
    ArrayClass,
    DeviceArray,
    array_class,
    array_dtype,
    as_array,
    check_unmasked,
    element_type,
    packed_strides,
)
from treadle.runtime.devices import Device
from treadle.runtime.foreign import kind_of, read
from treadle.runtime.memory import Storage
from treadle.runtime.sharing import (
    Order,
    Placed,
    are_disjoint,
    borrow,
    device_of,
    overlapping_range,
    place,
)

if TYPE_CHECKING:
    from treadle.runtime.devices import Stream


@dataclass(frozen=True, slots=True)
class Packed:
    """A struct or vector value: its IR type, and its fields or components as a NumPy record. Of a
    value that kernels do not take, the key is its Python type."""

    key: Any
    data: Any


@dataclass(frozen=True, slots=True)
class ArrayDescription:
    """An array as a compiler sees it, without memory, for printing source."""

    key: ArrayClass
    shape: tuple[int, ...]
    size: int
    offset: int = 0


@dataclass(slots=True)
class ConvertedArguments:
    """Arguments in the form that a launch takes, and the host memory that they were copied from."""

    arguments: list[Any]  # numbers, tensors, DeviceArrays, Packed
    order: Order  # the context to launch in
    # Host arrays and their copies, with the positions of the arguments that lie in them.
    copied: list[tuple[frozenset[int], np.ndarray[Any, Any], DeviceArray]] = field(
        default_factory=list
    )

    def copy_back(self, written: frozenset[int]) -> None:
        """Copy the arrays that the kernel wrote back to the host."""
        for positions, host, array in self.copied:
            if written & positions and array.size:
                target, raw, offset = array.host_target()
                array.device.default_stream.handle.read(array.buffer, offset, raw)
                np.copyto(host, target)


def device_of_arguments(arguments: tuple[Any, ...]) -> Device | None:
    """The device of the arguments: of treadle's tensors, else of other libraries' arrays."""
    theirs = None
    for value in arguments:
        if type(value) in NUMBER_TYPES:
            continue
        if kind_of(value) is not None:
            theirs = theirs or device_of(value, "an argument")
        elif (array := as_array(value)) is not None:
            return array.device
    return theirs


def convert_arguments(
    definition: KernelDefinition, arguments: tuple[Any, ...], stream: Stream
) -> ConvertedArguments:
    """Every argument as a number, a DeviceArray on the stream's device, or a struct value.

    The LaunchError names the argument that cannot be used there.
    """
    where = stream.device
    taken = ConvertedArguments(list(arguments), Order(stream))
    copied: dict[int, np.ndarray[Any, Any]] = {}
    placed: dict[int, Placed] = {}
    own: list[DeviceArray] = []
    for position, value in enumerate(arguments):
        if type(value) in NUMBER_TYPES or type(value) is Packed:
            continue
        kind = kind_of(value)
        if kind is not None:
            one = placed[position] = place(kind, value, definition, position, taken.order)
            taken.arguments[position] = one.array
        elif isinstance(value, np.ndarray):
            check_unmasked(value)
            copied[position] = value
        elif (array := as_array(value)) is not None:
            own.append(array)
        elif not _is_new_number(value):
            taken.arguments[position] = Packed(*_class_of(value))
    if placed and not are_disjoint(list(placed.values()), own, where):
        arrays = borrow([read(arguments[at], "an argument") for at in placed], own, where)
        for position, array in zip(placed, arrays, strict=True):
            taken.arguments[position] = array
    if copied:
        _copy_in(copied, where, taken)
    return taken


def _is_new_number(value: Any) -> bool:
    """Whether a value is the first bfloat16 number seen, whose type is not one of NumPy's own."""
    if isinstance(value, np.generic) and value.dtype.name == "bfloat16":
        NUMBER_TYPES[type(value)] = SCALARS["bf16"]
        return True
    return False


def describe(value: Any) -> tuple[Any, Any]:
    """The class of an argument and the argument, without a device, for printing source."""
    array = as_array(value)
    if array is not None:
        return array.key, array
    if isinstance(value, np.ndarray):  # a launch copies it, in row-major order
        return _described(array_dtype(value.dtype), value.shape, packed_strides(value.shape))
    if kind_of(value) is not None:  # used without a copy
        foreign = read(value, "the argument")
        return _described(foreign.dtype, foreign.shape, foreign.strides)
    _is_new_number(value)
    return _class_of(value)


def _described(
    dtype: DType | np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[ArrayClass, ArrayDescription]:
    size = math.prod(shape)
    key = array_class(None, dtype, shape, strides if size else packed_strides(shape), 0)
    return key, ArrayDescription(key, shape, size)


def _class_of(value: Any) -> tuple[Type | type, Any]:
    """A number's type and the number; or a struct or vector value's IR type, and its fields or
    components as a NumPy record."""
    if isinstance(value, np.void) and value.dtype.names is not None:
        return element_type(value.dtype), np.asarray(value)
    kind: Type | None = getattr(type(value), "__treadle_struct__", None)
    if kind is None:
        if type(value) not in NUMBER_TYPES:
            kind = getattr(getattr(value, "type", None), "ir", None)
        return (type(value), value) if kind is None else (kind, np.asarray(value))
    return kind, value.__treadle_record__()


def _copy_in(
    arrays: dict[int, np.ndarray[Any, Any]], where: Device, taken: ConvertedArguments
) -> None:
    """Copy NumPy arrays to a device. Those that overlap become views of one copy."""
    bounds = [array_utils.byte_bounds(array) if array.size else (0, 0) for array in arrays.values()]
    together: dict[tuple[int, int], list[int]] = {}
    for (position, array), (low, high) in zip(arrays.items(), bounds, strict=True):
        stretch = overlapping_range(low, high, bounds) if array.size else (-position, 0)
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
    """Whether two of the arrays share an element, or NumPy gives up finding out."""
    try:
        pairs = itertools.combinations(arrays, 2)
        return any(np.shares_memory(a, b, 10_000) for a, b in pairs)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _copied_in(value: np.ndarray[Any, Any], where: Device) -> DeviceArray:
    array = DeviceArray.allocate(where, array_dtype(value.dtype), value.shape)
    array.upload(value)
    if not value.flags.writeable:
        return DeviceArray(where, array.storage, array.dtype, array.shape, read_only=True)
    return array


def as_numpy(value: Any, what: str) -> np.ndarray[Any, Any]:
    """Another library's host memory as a NumPy array, without a copy; LaunchError where that
    library or NumPy refuses."""
    try:
        return np.from_dlpack(value)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise LaunchError(f"{what} cannot be used without a copy: {error}") from None


def _host_bytes(low: int, high: int) -> np.ndarray[Any, Any]:
    """The memory between two addresses."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


def _view(data: np.ndarray[Any, Any], where: Device, storage: Storage, low: int) -> DeviceArray:
    """An array in a storage that holds the host memory from address `low` on."""
    if not data.dtype.isnative:
        raise LaunchError(
            f"an array of {data.dtype} is not in this machine's byte order and overlaps "
            "another argument: copy it with x.astype(x.dtype.newbyteorder('='))"
        )
    item = data.dtype.itemsize
    start = data.ctypes.data - low
    if start % item or any(s % item for s in data.strides):
        raise LaunchError(
            f"an array of {data.dtype} whose elements are not aligned to their size overlaps "
            "another argument: copy it first"
        )
    strides = tuple(stride // item for stride in data.strides)
    dtype, locked = array_dtype(data.dtype), not data.flags.writeable
    return DeviceArray(where, storage, dtype, data.shape, strides, start // item, locked)

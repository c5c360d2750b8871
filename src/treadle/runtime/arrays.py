"""Device memory as arrays: the arguments of launches, and the memory of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError
from treadle.core.limits import MOST_NARROW
from treadle.drivers.pending_read import PendingRead, finished_read
from treadle.ir.types import (
    PADDING,
    SCALARS,
    Array,
    Field,
    Scalar,
    Struct,
    Type,
    Vector,
    align_of,
    field_offset,
    padding,
    size_of,
)
from treadle.runtime import profiler
from treadle.runtime.devices import Device
from treadle.runtime.memory import Storage

_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayClass:
    """The properties of an array that compiled code depends on. Interned: compared and hashed by
    identity."""

    device: Device | None
    dtype: DType | np.dtype[Any]
    element: Type
    ndim: int
    contiguous: bool
    has_offset: bool
    big: bool
    read_only: bool = False  # refused where a kernel writes it
    imagined: bool = False  # without memory: launches only have their kernels compiled

    @property
    def of_memory(self) -> ArrayClass:
        """The class of an array in memory that is as this one is imagined."""
        facts = (
            self.device, self.dtype, self.ndim, self.contiguous, self.has_offset, self.big,
            self.read_only, False,
        )  # fmt: skip
        return _class_of(facts, self.element)


_classes: dict[tuple[Any, ...], ArrayClass] = {}


def array_class(
    device: Device | None,
    dtype: DType | np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    read_only: bool = False,
    imagined: bool = False,
) -> ArrayClass:
    """The class of an array. Without a device, the kernel's source is only printed."""
    contiguous = is_contiguous(shape, strides)
    reach = offset + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n)
    big = reach >= MOST_NARROW or math.prod(shape) >= MOST_NARROW
    facts = (device, dtype, len(shape), contiguous, offset != 0, big, read_only, imagined)
    return _classes.get(facts) or _class_of(facts, element_type(dtype, padded=True))


def _class_of(facts: tuple[Any, ...], element: Type) -> ArrayClass:
    key = _classes.get(facts)
    if key is None:
        device, dtype, *rest = facts
        key = _classes.setdefault(facts, ArrayClass(device, dtype, element, *rest))
    return key


class ImaginedBuffer:
    """The buffer of imagined arrays, which tells those apart that share no memory. Whatever is done
    with it other than a launch fails before anything happens."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise TypeError("this array is imagined: it has no memory")


class Imagined:
    """The storage of imagined arrays."""

    __slots__ = ("buffer",)

    readers = None
    shared = False
    pool = None

    def __init__(self) -> None:
        self.buffer = ImaginedBuffer()


class LaunchArray(Protocol):
    """An array of treadle's as the argument of a launch: a `DeviceArray`, or a lazy array."""

    def __treadle_array__(self, kernel: str | None = None) -> DeviceArray:
        """The elements in memory, computed if they are pending. `kernel` is the name of the kernel
        that is launched with them; an error if that kernel may not use them."""

    def __treadle_written__(self) -> None:
        """Called when a kernel writes the elements. Not called for a `DeviceArray`."""


def as_array(value: Any) -> DeviceArray | None:
    """The elements of an array of treadle's; None for any other value."""
    return value.__treadle_array__() if is_array_type(type(value)) else None


def is_array_type(kind: type) -> bool:
    """Whether values of a type are arrays of treadle's."""
    return hasattr(kind, "__treadle_array__")


@dataclass(frozen=True, eq=False)
class PendingHost:
    """Elements on their way to the host: `pick` selects them from what is read."""

    read: PendingRead
    target: np.ndarray[Any, Any]
    pick: Callable[..., np.ndarray[Any, Any]]

    def wait(self) -> np.ndarray[Any, Any]:
        """The elements. Waits for them."""
        self.read.wait()
        return self.pick(self.target)

    async def wait_async(self) -> np.ndarray[Any, Any]:
        """`wait`, awaiting instead of blocking."""
        await self.read.wait_async()
        return self.pick(self.target)


class DeviceArray:
    """Elements in a storage, addressed by strides and an offset, both in elements.

    (Without a device and a storage it only describes an array, for printing source.)
    """

    __slots__ = (
        "buffer",
        "device",
        "dtype",
        "key",
        "offset",
        "shape",
        "size",
        "storage",
        "strides",
    )

    def __init__(
        self,
        device: Any,
        storage: Any,
        dtype: DType | np.dtype[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        read_only: bool = False,
    ) -> None:
        size = math.prod(shape)
        if strides is None or size == 0:
            strides = packed_strides(shape)
        self.device: Device = device
        self.storage: Storage = storage
        self.buffer: Any = storage.buffer if storage is not None else None
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.size = size
        imagined = type(storage) is Imagined
        self.key = array_class(device, dtype, shape, strides, offset, read_only, imagined)

    @classmethod
    def allocate(
        cls, device: Device, dtype: DType | np.dtype[Any], shape: tuple[int, ...]
    ) -> DeviceArray:
        """New memory, contents undefined."""
        count = 1
        for extent in shape:
            count *= extent
        return cls(device, Storage(device.pool, count * dtype.itemsize), dtype, shape)

    @classmethod
    def described(
        cls, device: Device, dtype: DType | np.dtype[Any], shape: tuple[int, ...]
    ) -> DeviceArray:
        """A template for `another`: an array without memory."""
        return cls(device, None, dtype, shape)

    @classmethod
    def imagined(
        cls, device: Device, dtype: DType | np.dtype[Any], shape: tuple[int, ...]
    ) -> DeviceArray:
        """An array without memory, for which a launch only has its kernel compiled."""
        return cls(device, Imagined(), dtype, shape)

    def another(self) -> DeviceArray:
        """A new array like this contiguous one, contents undefined."""
        return self.with_storage(Storage(self.device.pool, self.size * self.dtype.itemsize))

    def with_storage(self, storage: Storage) -> DeviceArray:
        """An array like this one in other memory."""
        made = DeviceArray.__new__(DeviceArray)
        made.device = self.device
        made.dtype = self.dtype
        made.shape = self.shape
        made.strides = self.strides
        made.offset = self.offset
        made.size = self.size
        made.key = self.key
        made.storage = storage
        made.buffer = storage.buffer
        return made

    def __treadle_array__(self, kernel: str | None = None) -> DeviceArray:
        """A launch asks its arguments for this (see `LaunchArray`)."""
        return self

    @property
    def contiguous(self) -> bool:
        """Whether the elements are in row-major order without gaps."""
        return self.key.contiguous

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> DeviceArray:
        """Another view of the same storage."""
        read_only = self.key.read_only
        return DeviceArray(self.device, self.storage, self.dtype, shape, strides, offset, read_only)

    def upload(self, data: np.ndarray[Any, Any]) -> None:
        """Copy a NumPy array of this dtype and shape into this contiguous array. ValueError if this
        is read-only."""
        self._need_memory()
        if self.key.read_only:
            raise ValueError("this tensor is read-only: copy it first")
        if self.size:
            stream = self.device.default_stream.handle
            native = np.asarray(data, _stored(self.dtype))  # not the other byte order
            stream.write(self.buffer, self.offset * self.dtype.itemsize, bytes_of(native))

    def to_host(self) -> np.ndarray[Any, Any]:
        """The elements as a new NumPy array. Waits for the work that computes them."""
        self._need_memory()
        if not self.contiguous:
            whole, pick = self.span()
            return pick(whole.to_host())
        target, raw, offset = self.host_target()
        if self.size:
            self.device.default_stream.handle.read(self.buffer, offset, raw)
        return target

    def begin_host(self) -> PendingHost:
        """Start to copy the elements to the host, as they are after all work so far. Work that is
        launched before that is finished goes on."""
        self._need_memory()
        source, pick = self.span()
        target, raw, offset = source.host_target()
        if not self.size:
            return PendingHost(finished_read(), target, pick)
        stream = self.device.default_stream.handle
        return PendingHost(stream.begin_read(source.buffer, offset, raw), target, pick)

    def _need_memory(self) -> None:
        if self.key.imagined:
            raise TypeError("this array is imagined: it has no memory")

    def assign(self, data: np.ndarray[Any, Any]) -> None:
        """Write NumPy data, broadcast and cast, to the elements."""
        check_cast(data.dtype, self.dtype)
        if self.contiguous:
            target = np.empty(self.shape, numpy_dtype(self.dtype))
            target[...] = data
            self.upload(target)
            return
        whole, pick = self.span()
        host = whole.to_host()
        pick(host, copy=False)[...] = data
        whole.upload(host)

    def copy_to(self, where: Device) -> DeviceArray:
        """A contiguous copy on a device, through the host's memory only where the devices cannot
        copy directly."""
        if self.key.imagined:
            return DeviceArray.imagined(where, self.dtype, self.shape)
        copy = DeviceArray.allocate(where, self.dtype, self.shape)
        if self.size and not (self.contiguous and self._copied(copy)):
            copy.upload(self.to_host())
        return copy

    def _copied(self, target: DeviceArray) -> bool:
        """Copy directly between devices, without waiting; False if they cannot."""
        item = self.dtype.itemsize
        places = self.buffer, self.offset * item, target.buffer, 0, self.size * item
        if target.device is self.device:
            self.device.default_stream.handle.copy(*places)
            return True
        if not target.device.shares_backend(self.device):
            return False
        copy = target.device.handle.copy_from
        if (active := profiler.active) is not None:
            return active.copy_across(target.device.default_stream.handle, copy, places)
        return copy(*places)

    def copy_elements_to(self, target: DeviceArray) -> None:
        """Copy all elements to an array of the same dtype on the device; both are contiguous."""
        if self.size:
            item = self.dtype.itemsize
            source, place, size = self.buffer, self.offset * item, self.size * item
            copy = self.device.default_stream.handle.copy
            copy(source, place, target.buffer, target.offset * item, size)

    def span(self) -> tuple[DeviceArray, Callable[..., np.ndarray[Any, Any]]]:
        """The contiguous range of the storage that holds the elements, and a function that selects
        the elements from its data."""
        if self.contiguous:
            return self, lambda data, copy=True: data
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = sum(r for r in reach if r < 0)
        high = sum(r for r in reach if r > 0)
        whole = self.view((high - low + 1,), (1,), self.offset + low)

        def pick(data: np.ndarray[Any, Any], copy: bool = True) -> np.ndarray[Any, Any]:
            steps = tuple(s * data.itemsize for s in self.strides)
            view = np.lib.stride_tricks.as_strided(data[-low:], self.shape, steps)
            return view.copy() if copy else view

        return whole, pick

    def host_target(self) -> tuple[np.ndarray[Any, Any], memoryview, int]:
        """For a read: an uninitialized NumPy array, its bytes, and their offset in the buffer."""
        target = np.empty(self.shape, numpy_dtype(self.dtype))
        return target, target.reshape(-1).view(_BYTE).data, self.offset * self.dtype.itemsize


def check_unmasked(data: np.ndarray[Any, Any]) -> None:
    """DtypeError for one of NumPy's masked arrays if an element is masked: without the mask, it
    would be taken for a value."""
    if type(data) is np.ndarray or not isinstance(data, np.ma.MaskedArray):
        return
    if np.ma.is_masked(data):
        raise DtypeError(
            "the array has masked elements, and tensors have no masks: replace these elements with "
            "array.filled(value), or drop them with array.compressed()"
        )


def bytes_of(data: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of a NumPy array; those of a copy if it is not contiguous."""
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8).data


def packed_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements.

    >>> packed_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether these strides are row-major without gaps; axes of extent 1 do not matter."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def _stored(dtype: DType | np.dtype[Any]) -> np.dtype[Any]:
    return dtype.stored if isinstance(dtype, DType) else dtype


def numpy_dtype(dtype: DType | np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's dtype for an array's dtype."""
    return dtype.numpy if isinstance(dtype, DType) else dtype


def array_dtype(dtype: np.dtype[Any]) -> DType | np.dtype[Any]:
    """The dtype of an array made of NumPy data: a DType, or the structured dtype itself.

    DtypeError for what kernels cannot hold (objects, strings, long double).
    """
    if dtype.names is not None:
        if dtype == dtypes.BFLOAT16_BITS and not dtypes.has_bfloat16_arrays():
            return dtypes.bfloat16
        native = dtype.newbyteorder("=")
        element_type(native, padded=True)
        return dtype if native == dtype else native
    return dtypes.as_dtype(dtype)


def check_cast(source: np.dtype[Any], target: DType | np.dtype[Any]) -> None:
    """DtypeError if a cast of elements would drop imaginary parts."""
    if source.kind == "c" and numpy_dtype(target).kind not in "cb":
        raise DtypeError(
            f"{source} does not become {target}, which would drop the imaginary parts: take the "
            "real parts, the imaginary parts or the absolute values first"
        )


_structs: dict[np.dtype[Any], Struct] = {}


def remember_struct(dtype: np.dtype[Any], struct: Struct) -> None:
    """Record the element type of a structured dtype. NumPy may not express its alignment (vectors
    of two and four align to their size)."""
    _structs.setdefault(dtype, struct)


def element_type(dtype: DType | np.dtype[Any], padded: bool = False) -> Type:
    """The IR type of one element. Of a complex dtype it is a vector of two.

    A structured dtype becomes a struct; its layout must be C's, as `np.dtype(…, align=True)` and
    `@td.struct` make it; or, if the type may be `padded`, with room between the fields and behind
    them, which needs no fields. DtypeError otherwise.
    """
    if isinstance(dtype, DType):
        part = SCALARS[dtype.component.short]
        return Vector(part, 2) if dtype.is_complex else part
    # A small subarray may be a vector, which aligns to its size, or an array, which does not.
    for vectors in (False, True):
        type = _structured(dtype, vectors, padded)
        if _lies_as(type, dtype):
            return type
    multiple = "a multiple" if padded else "the next multiple"
    raise DtypeError(
        f"the structured dtype {dtype} does not have C's layout, in which each field comes after "
        f"the one before it, at {multiple} of its alignment: make it with np.dtype(…, align=True), "
        "or use the .dtype of a @td.struct class"
    )


def _structured(dtype: np.dtype[Any], vectors: bool, padded: bool) -> Type:
    known = _structs.get(dtype)
    if known is not None:
        return known
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        element = _structured(base, vectors, padded)
        if vectors and len(shape) == 1 and 2 <= shape[0] <= 4 and isinstance(element, Scalar):
            return Vector(element, shape[0])
        for extent in reversed(shape):
            element = Array(element, extent)
        return element
    if dtype.names is None:
        return SCALARS[dtypes.as_number_dtype(dtype).short]
    assert dtype.fields is not None
    fields: list[Field] = []
    for name in dtype.names:
        inner, offset = dtype.fields[name][:2]
        type = _structured(inner, vectors, padded)
        if padded:
            fields += _room(fields, offset, align_of(type))
        fields.append(Field(name, type))
    if padded:
        alignment = max((align_of(field.type) for field in fields), default=1)
        fields += _room(fields, dtype.itemsize, alignment)
    return Struct("record", tuple(fields))


def _room(fields: list[Field], until: int, alignment: int) -> list[Field]:
    """The padding before a byte that is further than the alignment there alone demands."""
    end = 0
    if fields:
        end = field_offset(Struct("record", tuple(fields)), fields[-1].name)
        end += size_of(fields[-1].type)
    natural = -(-end // alignment) * alignment
    return padding(len(fields), end, until) if until > natural else []


def _lies_as(type: Type, dtype: np.dtype[Any]) -> bool:
    """Whether an IR type has the memory layout of a NumPy dtype."""
    if size_of(type) != dtype.itemsize:
        return False
    if isinstance(type, Struct):
        assert dtype.fields is not None
        named = [field for field in type.fields if not field.name.startswith(PADDING)]
        parts = ((field, dtype.fields[field.name]) for field in named)
        return all(
            field_offset(type, field.name) == offset and _lies_as(field.type, inner)
            for field, (inner, offset, *_) in parts
        )
    return True

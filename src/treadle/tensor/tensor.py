"""`Tensor`: an array on a device. Plain and eager: it holds, views, copies and moves data."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import DeviceNotFound, DtypeError, ShapeError
from treadle.runtime.arrays import (
    DeviceArray,
    array_dtype,
    check_cast,
    numpy_dtype,
    packed_strides,
)
from treadle.runtime.devices import Device, restored_device
from treadle.runtime.devices import device as find_device
from treadle.runtime.export import Exported
from treadle.tensor.dtypes import check_dtype


class Tensor(Exported):
    """An array on a device; make one with `td.asarray`, `td.zeros`, …

    Basic slices and `reshape` of contiguous tensors are views: writing through one writes the
    other, as in NumPy.
    """

    __slots__ = ("__weakref__", "_array")
    __array_priority__ = 1000
    _array: DeviceArray

    def __init__(self, array: DeviceArray) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return self._array.shape

    @property
    def dtype(self) -> DType | np.dtype[Any]:
        """The elements' dtype; NumPy's structured dtype for an array of structs."""
        return self._array.dtype

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self._array.device

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements (not bytes) between neighbours along each axis."""
        return self._array.strides

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._array.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return self._array.size * self._array.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        values = np.array2string(self.numpy(), separator=", ", prefix="tensor(")
        return f'tensor({values}, dtype={self.dtype}, device="{self.device.id}")'

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth value of a tensor of shape {self.shape} is ambiguous: it has "
                f"{self.size} elements; use x.numpy().any() or x.numpy().all()"
            )
        return bool(self.item())

    def __index__(self) -> int:
        kind = self.dtype.kind if isinstance(self.dtype, DType) else ""
        if self.shape or kind not in ("int", "uint"):
            raise TypeError(
                "only a tensor of integers without axes is an index; this one has dtype "
                f"{self.dtype} and shape {self.shape}"
            )
        return int(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __eq__(self, other: object) -> bool:
        # Object identity would be a silent trap for people who know NumPy.
        raise TypeError("tensors are not compared yet: compare x.numpy() with y.numpy()")

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.numpy(), self.device.id, self.device.info.api)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copied()

    # --- reading ---------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a new NumPy array. Waits for the work that makes them."""
        return self._array.to_host()

    async def numpy_async(self) -> np.ndarray[Any, Any]:
        """`numpy`, awaiting instead of blocking."""
        source, span = self._array.span()
        target, raw, offset = source.host_target()
        if source.size:
            await source.device.default_stream.handle.read_async(source.buffer, offset, raw)
        picked: np.ndarray[Any, Any] = span(target)
        return picked

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            shared = self.device.backend == "cpu"
            raise ValueError(
                f"np.asarray copies a tensor on {self.device.id}: "
                + ("np.from_dlpack(x) shares its memory" if shared else "leave copy=False out")
            )
        data = self.numpy()
        return data if dtype is None else data.astype(dtype, copy=False)

    def item(self) -> Any:
        """The one element as a Python number; ShapeError if there is not exactly one."""
        if self.size != 1:
            raise ShapeError(f"item() needs one element; this tensor has shape {self.shape}")
        return self.numpy().reshape(-1)[0].item()

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.numpy().tolist()

    # --- views -----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        """A view: integers, slices (any step), `...` and None (a new axis)."""
        shape, strides, offset = _slice(self._array, index)
        return Tensor(self._array.view(shape, strides, offset))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write numbers or an array into a part of the tensor; they broadcast and are cast."""
        part = self._array.view(*_slice(self._array, index))
        if part.size == 0:
            return
        data = np.asarray(value.numpy() if isinstance(value, Tensor) else value)
        try:
            np.broadcast_to(data, part.shape)
        except ValueError:
            raise ShapeError(
                f"an array of shape {data.shape} does not fit a part of shape {part.shape}"
            ) from None
        part.assign(data)

    def reshape(self, *shape: int | tuple[int, ...]) -> Tensor:
        """The same elements with another shape; one extent may be -1. A view of a contiguous
        tensor, a copy of another. ShapeError if the number of elements differs.

        >>> import treadle as td
        >>> td.arange(6, device="cpu").reshape(2, -1).shape
        (2, 3)
        """
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        extents = _complete(tuple(wanted), self)  # type: ignore[arg-type]
        array = self._array if self._array.contiguous else self.copied()._array
        return Tensor(array.view(extents, packed_strides(extents), array.offset))

    def copied(self) -> Tensor:
        """The same elements in memory of their own, on the same device."""
        return Tensor(self._array.copy_to(self.device))

    # --- moving ----------------------------------------------------------------------------------

    def to(
        self, target: DType | Device | str | None = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """The tensor on another device, or with another dtype, or both; itself if nothing changes.

        `target` is a device (or its id) or a dtype (or its name).
        """
        if target is not None:
            try:
                dtype = as_device_dtype(target)
            except DtypeError:
                device = target
        to_device = self.device if device is None else find_device(device)
        to_dtype = self.dtype if dtype is None else as_device_dtype(dtype)
        if to_device is self.device and to_dtype == self.dtype:
            return self
        if to_dtype != self.dtype:
            return from_numpy(cast(self.numpy(), to_dtype), to_device)
        check_dtype(to_dtype, to_device)
        return Tensor(self._array.copy_to(to_device))


def _restored(data: np.ndarray[Any, Any], device: str, api: str) -> Tensor:
    """A pickled tensor, on its own device if there is one like it here, else on the CPU."""
    try:
        where = restored_device(device, api)
    except DeviceNotFound:
        where = find_device("cpu")
    return from_numpy(data, where)


def as_device_dtype(value: Any) -> DType | np.dtype[Any]:
    """A DType from anything that names one, or a structured dtype with C's layout."""
    from treadle.core.dtypes import as_dtype

    structured = getattr(value, "dtype", value)  # a @td.struct class has one
    if isinstance(structured, np.dtype) and structured.names is not None:
        return array_dtype(structured)
    return as_dtype(value)


def cast(data: np.ndarray[Any, Any], dtype: DType | np.dtype[Any]) -> np.ndarray[Any, Any]:
    """NumPy data as another dtype, by the kernel language's rules: floats to integers saturate
    and NaN becomes 0. DtypeError if imaginary parts would be dropped."""
    target = numpy_dtype(dtype)
    check_cast(data.dtype, dtype)
    if data.dtype.kind != "f" or target.kind not in "iu":
        return data.astype(target)
    limits = np.iinfo(target)
    whole = np.nan_to_num(np.trunc(data.astype(np.float64)), nan=0.0)
    low, high = float(limits.min), float(limits.max)
    inside = np.clip(whole, low, np.nextafter(high, 0) if limits.bits == 64 else high)
    result: np.ndarray[Any, Any] = inside.astype(target)
    result[whole >= high] = limits.max
    return result


def from_numpy(data: np.ndarray[Any, Any], device: Device) -> Tensor:
    """A new tensor with a NumPy array's elements. DtypeError if the device lacks the dtype."""
    dtype = array_dtype(data.dtype)
    check_dtype(dtype, device)
    array = DeviceArray.allocate(device, dtype, data.shape)
    array.upload(data)
    return Tensor(array)


def _complete(shape: tuple[int, ...], tensor: Tensor) -> tuple[int, ...]:
    known = 1
    for extent in shape:
        known *= extent if extent != -1 else 1
    extents = tuple(shape)
    if shape.count(-1) == 1 and known > 0 and tensor.size % known == 0:
        extents = tuple(tensor.size // known if extent == -1 else extent for extent in shape)
    elif -1 in shape or known != tensor.size:
        raise ShapeError(f"a tensor of shape {tensor.shape} cannot be reshaped to {shape}")
    return extents


def _slice(array: DeviceArray, index: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset of a basic slice."""
    parts = index if isinstance(index, tuple) else (index,)
    taken = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if taken > len(array.shape):
        raise IndexError(f"too many indices ({taken}) for a tensor of shape {array.shape}")
    dots = [at for at, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("only one ... may appear in an index")
    fill = (slice(None),) * (len(array.shape) - taken)
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + fill + parts[at + 1 :]
    shape: list[int] = []
    strides: list[int] = []
    offset = array.offset
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = array.shape[axis], array.strides[axis]
        if isinstance(part, slice):
            start, stop, step = part.indices(extent)
            count = max((stop - start + step - (1 if step > 0 else -1)) // step, 0)
            shape.append(count)
            strides.append(stride * step)
            offset += start * stride if count else 0
        elif isinstance(part, (np.ndarray, list)) or (isinstance(part, Tensor) and part.shape):
            raise TypeError(
                "a tensor is indexed by integers, slices, ... and None; index x.numpy() for masks "
                "and integer arrays"
            )
        elif hasattr(part, "__index__") and not isinstance(part, bool):
            position = part.__index__()
            if not -extent <= position < extent:
                raise IndexError(f"index {position} is outside axis {axis} of extent {extent}")
            offset += (position % extent) * stride
        else:
            raise TypeError(
                f"a tensor is indexed by integers, slices, ... and None, not {type(part).__name__}"
            )
        axis += 1
    return tuple(shape), tuple(strides), offset

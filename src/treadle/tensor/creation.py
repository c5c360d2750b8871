"""Functions that make tensors. `device` is a Device or an id; None is the default device."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, float32, int32, int64
from treadle.core.errors import DtypeError, ShapeError
from treadle.runtime.arrays import DeviceArray, numpy_dtype
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.tensor import Tensor, as_device_dtype, cast, check_dtype, from_numpy

Shape = int | tuple[int, ...]


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | Device | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor with the elements of `obj`: a number, nested lists, a NumPy array, a Tensor.

    Python floats become float32, Python integers the device's default integer (int64 on cpu,
    int32 on webgpu); NumPy arrays keep their dtype. A Tensor that already fits is returned as it
    is unless `copy` is True. DtypeError if the device lacks the dtype.

    >>> asarray([1.0, 2.0], device="cpu").dtype
    treadle.float32
    """
    if isinstance(obj, Tensor):
        moved = obj.to(dtype=dtype, device=device if device is not None else obj.device)
        return Tensor(moved._copy()) if copy and moved is obj else moved
    where = find_device(device)
    wanted = None if dtype is None else as_device_dtype(dtype)
    if isinstance(obj, (np.ndarray, np.generic)) or hasattr(obj, "__array__"):
        data = np.asarray(obj)
        if wanted is not None and data.dtype != numpy_dtype(wanted):
            data = cast(data, wanted)
    else:
        data = _from_python(obj, wanted, where)
    if copy is False:
        raise ValueError("copy=False: the elements must be copied to the device; leave copy out")
    return from_numpy(data, where)


def _from_python(obj: Any, wanted: Any, where: Device) -> np.ndarray[Any, Any]:
    try:
        data = np.asarray(obj)
    except ValueError:
        raise ShapeError("nested lists of different lengths have no shape") from None
    if wanted is None:
        if data.dtype.kind == "f":
            wanted = float32
        elif data.dtype.kind in "iu":
            wanted = default_integer(where)
        else:
            return data
    if data.dtype.kind in "iu" and isinstance(wanted, DType) and wanted.is_integer:
        return np.asarray(obj, dtype=wanted.numpy)  # OverflowError for what does not fit
    return cast(data, wanted)


def default_integer(device: Device) -> DType:
    """The dtype of Python integers: int64 on cpu and cuda, int32 on webgpu."""
    return int32 if device.backend == "webgpu" else int64


def empty(shape: Shape, *, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """A tensor whose contents are undefined; float32 unless `dtype` says otherwise."""
    where = find_device(device)
    kind = float32 if dtype is None else as_device_dtype(dtype)
    check_dtype(kind, where)
    return Tensor(DeviceArray.allocate(where, kind, _extents(shape)))


def zeros(shape: Shape, *, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """A tensor of zeros; float32 unless `dtype` says otherwise.

    >>> zeros((2, 3), device="cpu").shape
    (2, 3)
    """
    made = empty(shape, dtype=dtype, device=device)
    if made.size:
        stream = made.device.default_stream.handle
        stream.fill_zero(made._array.buffer, 0, made._array.buffer.size)
    return made


def ones(shape: Shape, *, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """A tensor of ones; float32 unless `dtype` says otherwise."""
    return full(shape, 1, dtype=float32 if dtype is None else dtype, device=device)


def full(
    shape: Shape, fill_value: Any, *, dtype: Any = None, device: str | Device | None = None
) -> Tensor:
    """A tensor that holds one value everywhere; its dtype is the value's unless given."""
    where = find_device(device)
    if dtype is None:
        one = asarray(fill_value, device="cpu")
        if not isinstance(one.dtype, DType):
            raise DtypeError("full: give dtype= for this value")
        kind: Any = (
            default_integer(where)
            if isinstance(fill_value, int) and not isinstance(fill_value, bool)
            else one.dtype
        )
    else:
        kind = as_device_dtype(dtype)
    data = np.empty(_extents(shape), numpy_dtype(kind))
    data[...] = fill_value
    return from_numpy(data, where)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Tensor:
    """Numbers from start (0 if only stop is given) to below stop, by step.

    Integers give the device's default integer, floats float32, unless `dtype` says otherwise.

    >>> arange(2, 8, 3, device="cpu").tolist()
    [2, 5]
    """
    where = find_device(device)
    if step == 0:
        raise ValueError("arange: the step must not be 0")
    if stop is None:
        start, stop = 0, start
    data = np.arange(start, stop, step)
    kind = as_device_dtype(dtype) if dtype is not None else None
    if kind is None:
        kind = float32 if data.dtype.kind == "f" else default_integer(where)
    return from_numpy(cast(data, kind), where)


def _extents(shape: Shape) -> tuple[int, ...]:
    parts = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if not all(hasattr(part, "__index__") for part in parts):
        raise ShapeError(f"a shape is an integer or a tuple of integers, not {shape!r}")
    extents = tuple(part.__index__() for part in parts)
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"an extent cannot be negative: {shape}")
    return extents

"""Functions that make tensors. `device` is a Device or an id; None is the default device."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, complex64, float32
from treadle.core.errors import DtypeError, LaunchError, ShapeError
from treadle.runtime.arrays import DeviceArray, check_cast, numpy_dtype
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.runtime.foreign import kind_of
from treadle.runtime.sharing import share
from treadle.tensor.dtypes import check_dtype, default_integer
from treadle.tensor.tensor import Tensor, as_device_dtype, cast, from_cell, from_numpy

Shape = int | tuple[int, ...]


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | Device | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor with the elements of `obj`: a number, nested lists, a NumPy array, a Tensor, or an
    array of another library.

    Python floats become float32, complex numbers complex64, integers the device's default integer
    (int64 on cpu and cuda, int32 on webgpu); arrays keep their dtype. Lists and NumPy arrays are
    copied: nobody expects a later write into a NumPy array to change a tensor. With `copy=False`
    NumPy arrays are shared on the CPU, and each sees what is written into the other. Tensors, and
    other libraries' arrays that are on the device already, are used without a copy unless `copy` is
    True; a GPU's arrays stay there where no device is named. ValueError if `copy` is False and
    there is no other way; DtypeError if the device lacks the dtype.

    >>> asarray([1.0, 2.0], device="cpu").dtype
    treadle.float32
    """
    if isinstance(obj, Tensor):
        return _fitting(obj, dtype, device if device is not None else obj.device, copy)
    if isinstance(obj, np.ndarray):
        if copy is False:
            try:
                return _fitting(from_dlpack(obj), dtype, device, copy)
            except BufferError as error:
                raise ValueError(f"copy=False: {error}") from None
    elif kind_of(obj) is not None:
        shared = from_dlpack(obj)
        if device is None and shared.device.backend != "cpu":
            device = shared.device
        return _fitting(shared, dtype, device, copy)
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


def _fitting(tensor: Tensor, dtype: Any, device: str | Device | None, copy: bool | None) -> Tensor:
    """A tensor with a dtype on a device, copied only if it must be or `copy` is True."""
    moved = tensor.to(dtype=dtype, device=find_device(device))
    if moved is tensor:
        return tensor.copied() if copy else tensor
    if copy is False:
        raise ValueError(
            f"copy=False: the {tensor.dtype} elements on {tensor.device.id} must be copied to be "
            f"{moved.dtype} on {moved.device.id}; leave copy out"
        )
    return moved


def from_dlpack(
    x: Any, /, *, device: str | Device | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor that shares the memory of another library's array: on the CPU, or on CUDA.

    It takes what speaks DLPack or `__cuda_array_interface__`, and stays on that device unless
    `device` names another one, to which it is copied. Memory that may only be read makes a tensor
    that kernels may only read. BufferError if the library does not hand it over, DtypeError for
    elements that no tensor has, ValueError if `copy` is False and a copy is needed.

    >>> import numpy as np
    >>> data = np.zeros(3, np.float32)
    >>> x = from_dlpack(data)
    >>> data[1] = 5
    >>> x.tolist()
    [0.0, 5.0, 0.0]
    """
    if isinstance(x, Tensor):
        tensor = from_cell(x._cell, x._view)
    elif kind_of(x) is None and not isinstance(x, np.ndarray):
        raise TypeError(f"from_dlpack takes an array that speaks DLPack, not {type(x).__name__}")
    else:
        try:
            tensor = Tensor(share(x, "the array"))
        except LaunchError as error:
            raise BufferError(str(error)) from None
    return _fitting(tensor, None, tensor.device if device is None else device, copy)


def _from_python(obj: Any, wanted: Any, where: Device) -> np.ndarray[Any, Any]:
    try:
        data = np.asarray(obj)
    except ValueError:
        raise ShapeError("nested lists of different lengths have no shape") from None
    if wanted is None:
        if data.dtype.kind == "f":
            wanted = float32
        elif data.dtype.kind == "c":
            wanted = complex64
        elif data.dtype.kind in "iu":
            wanted = default_integer(where)
        else:
            return data
    if data.dtype.kind in "iu" and isinstance(wanted, DType) and wanted.is_integer:
        return np.asarray(obj, dtype=wanted.numpy)  # OverflowError for what does not fit
    return cast(data, wanted)


def empty(shape: Shape, *, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """A tensor whose contents are undefined; float32 unless `dtype` says otherwise."""
    where = find_device(device)
    kind = float32 if dtype is None else as_device_dtype(dtype)
    check_dtype(kind, where)
    return Tensor(DeviceArray.allocate(where, kind, extents_of(shape)))


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
    data = np.empty(extents_of(shape), numpy_dtype(kind))
    check_cast(np.asarray(fill_value).dtype, kind)
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


def extents_of(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple of extents. ShapeError for what is none."""
    parts = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if not all(hasattr(part, "__index__") for part in parts):
        raise ShapeError(f"a shape is an integer or a tuple of integers, not {shape!r}")
    extents = tuple(part.__index__() for part in parts)
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"an extent cannot be negative: {shape}")
    return extents

"""Functions that make tensors. `device` is a Device or an id; None is the default device.

Tensors of one value take no memory until they are materialized; `ranges.py` has those whose
elements are computed from their indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, bfloat16, cast_number, float32, has_bfloat16_arrays
from treadle.core.errors import LaunchError, ShapeError
from treadle.core.sizes import index
from treadle.graph import views
from treadle.graph.node import constant
from treadle.runtime.arrays import DeviceArray, check_unmasked
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.runtime.foreign import kind_of
from treadle.runtime.sharing import share
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.dtypes import (
    check_dtype,
    check_fits,
    default_dtype,
    is_number,
    python_number,
    result_type,
)
from treadle.tensor.from_python import from_array, from_python
from treadle.tensor.joining import stacked
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node, from_numpy

Shape = int | tuple[int, ...]


def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor with the elements of `obj`: a number, nested lists, a NumPy array, a Tensor, or an
    array of another library. Nested lists may contain tensors: these are stacked, and keep their
    (common) dtype, their device and their gradients.

    Python floats become float32, complex numbers complex64, integers the device's default integer
    (int64 on cpu and cuda, int32 on webgpu); arrays keep their dtype. Lists and NumPy arrays are
    copied: a later write into a NumPy array should not change a tensor. With `copy=False` tensors
    on the CPU share the NumPy array's memory, and each sees writes into the other. Tensors, and
    other libraries' arrays that are on the device already, are used without a copy unless `copy` is
    True; a GPU's arrays stay there if no device is named. ValueError if `copy` is False and a copy
    is needed; DtypeError for values that are not numbers, and if the device lacks the dtype;
    OverflowError for integers that do not fit.

    >>> import treadle as td
    >>> td.asarray([1.0, 2.0], device="cpu").dtype
    treadle.float32
    """
    if isinstance(obj, Tensor):
        return _converted(obj, dtype, device if device is not None else obj.device, copy)
    if isinstance(obj, np.ndarray):
        check_unmasked(obj)
        if obj.dtype.kind == "O":  # whose dtype says nothing
            obj = obj.tolist()
        elif copy is False:
            try:
                return _converted(from_dlpack(obj), dtype, device, copy)
            except BufferError as error:
                raise ValueError(f"copy=False: {error}") from None
    elif kind_of(obj) is not None:
        shared = from_dlpack(obj)
        if device is None and not shared.device.traits.host_memory:
            device = shared.device
        return _converted(shared, dtype, device, copy)
    if isinstance(obj, (list, tuple)) and _has_tensors(obj):
        made = _stacked(obj)
        if copy is False:
            raise ValueError("copy=False: the tensors must be copied to be one; leave copy out")
        return _converted(made, dtype, made.device if device is None else device, copy)
    where = find_device(device)
    wanted = None if dtype is None else as_device_dtype(dtype, where)
    if wanted == bfloat16 and not has_bfloat16_arrays() and copy is not False:
        return asarray(obj, dtype=float32, device=where).to(bfloat16)
    if isinstance(obj, (np.ndarray, np.generic)) or hasattr(obj, "__array__"):
        data = from_array(obj, wanted)
    else:
        data = from_python(obj, wanted, where)
    if copy is False:
        raise ValueError("copy=False: the elements must be copied to the device; leave copy out")
    return from_numpy(data, where)


def _converted(
    tensor: Tensor, dtype: Any, device: str | Device | None, copy: bool | None
) -> Tensor:
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
    x: ArrayLike, /, *, device: str | Device | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor that shares the memory of another library's array: on the CPU, or on CUDA.

    It takes arrays with DLPack or `__cuda_array_interface__`. The tensor is on the array's device
    unless `device` names another one, to which it is copied. Kernels may only read a tensor of
    read-only memory. BufferError if the library does not export the array, DtypeError for elements
    of a dtype that tensors do not have, ValueError if `copy` is False and a copy is needed.

    >>> import treadle as td
    >>> import numpy as np
    >>> data = np.zeros(3, np.float32)
    >>> x = td.from_dlpack(data)
    >>> data[1] = 5
    >>> x.tolist()
    [0.0, 5.0, 0.0]
    """
    if isinstance(x, Tensor):
        tensor = x._seen_through(x._where)
    elif kind_of(x) is None and not isinstance(x, np.ndarray):
        raise TypeError(f"from_dlpack takes an array that speaks DLPack, not {type(x).__name__}")
    else:
        try:
            tensor = Tensor(share(x, "the array"))
        except LaunchError as error:
            raise BufferError(str(error)) from None
    return _converted(tensor, None, tensor.device if device is None else device, copy)


def _has_tensors(obj: list[Any] | tuple[Any, ...]) -> bool:
    """Whether there is a tensor in nested lists. (DtypeError for elements that are masked.)"""
    types = set(map(type, obj))  # fast for many numbers
    if Tensor in types:
        return True
    for one in types:
        if issubclass(one, np.ma.MaskedArray):
            for each in obj:
                check_unmasked(each)
        elif issubclass(one, (list, tuple)) and any(
            _has_tensors(each) for each in obj if type(each) is one
        ):
            return True
    return False


def _stacked(obj: list[Any] | tuple[Any, ...]) -> Tensor:
    """Nested lists of tensors, arrays and numbers as one tensor. Numbers take the tensors' dtype
    and device."""
    leaves = list(_leaves(obj))
    tensors = [leaf for leaf in leaves if type(leaf) is Tensor]
    where = tensors[0].device
    dtype = result_type(*leaves)

    def made(part: Any) -> Tensor:
        if isinstance(part, (list, tuple)):
            parts = [made(each) for each in part]
            if len({each.shape for each in parts}) > 1:
                raise ShapeError("nested lists of different lengths have no shape")
            return stacked(parts, 0) if parts else empty((0,), dtype=dtype, device=where)
        if type(part) is Tensor:
            return part.to(dtype)
        return asarray(part, dtype=dtype, device=where)

    return made(obj)


def _leaves(obj: Any) -> Iterator[Any]:
    for each in obj:
        if isinstance(each, (list, tuple)):
            yield from _leaves(each)
        else:
            yield each if type(each) is Tensor or is_number(each) else asarray(each)


def empty(
    shape: Shape, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """A tensor whose contents are undefined; float32 unless `dtype` says otherwise.

    >>> import treadle as td
    >>> td.empty((2, 3), device="cpu").shape
    (2, 3)
    """
    where = find_device(device)
    kind = float32 if dtype is None else as_device_dtype(dtype, where)
    check_dtype(kind, where)
    return Tensor(DeviceArray.allocate(where, kind, extents_of(shape)))


def zeros(
    shape: Shape, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """A tensor of zeros; float32 unless `dtype` says otherwise.

    >>> import treadle as td
    >>> td.zeros((2, 3), device="cpu").shape
    (2, 3)
    """
    if dtype is not None and not isinstance(as_device_dtype(dtype), DType):
        made = empty(shape, dtype=dtype, device=device)
        if made.size:
            stream = made.device.default_stream.handle
            stream.fill_zero(made._array.buffer, 0, made._array.buffer.size)
        return made
    return full(shape, 0, dtype=float32 if dtype is None else dtype, device=device)


def ones(
    shape: Shape, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """A tensor of ones; float32 unless `dtype` says otherwise.

    >>> import treadle as td
    >>> td.ones((2, 2), device="cpu").tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return full(shape, 1, dtype=float32 if dtype is None else dtype, device=device)


def full(
    shape: Shape,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """A tensor that holds one value everywhere; its dtype is the value's unless given.

    The value is a number, or an array that broadcasts to the shape. OverflowError for an integer
    that the dtype does not hold, DtypeError for a complex number in a dtype that is not.

    >>> import treadle as td
    >>> td.full(2, 7, device="cpu", dtype="float32").tolist()
    [7.0, 7.0]
    """
    extents = extents_of(shape)
    where = find_device(device)
    kind = None if dtype is None else as_device_dtype(dtype, where)
    if kind is not None and not isinstance(kind, DType):
        check_dtype(kind, where)
        data = np.empty(extents, kind)
        data[...] = fill_value
        return from_numpy(data, where)
    if not is_number(fill_value):
        values = asarray(fill_value, dtype=kind, device=where)
        return values._seen_through(views.expand(values._where, extents)).copied()
    number = python_number(fill_value)
    if kind is None:
        kind = default_dtype(number, where)
    check_dtype(kind, where)
    return from_node(constant(fitted(number, kind), extents, kind, where))


def fitted(number: Any, dtype: DType) -> Any:
    """A Python number converted to a dtype's kind. OverflowError for an integer that does not
    fit."""
    if isinstance(number, int):
        check_fits(number, dtype)
    return cast_number(number, dtype).item()


def zeros_like(
    x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """Zeros with a tensor's shape; its dtype and device are the tensor's unless given.

    >>> import treadle as td
    >>> td.zeros_like(td.ones((2, 3), device="cpu"), dtype="int8")
    tensor([[0, 0, 0],
            [0, 0, 0]], dtype=int8, device="cpu")
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(
    x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """Ones with a tensor's shape; its dtype and device are the tensor's unless given.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.ones_like(x).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return full_like(x, 1, dtype=dtype, device=device)


def full_like(
    x: ArrayLike,
    /,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """One value with a tensor's shape; its dtype and device are the tensor's unless given.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.full_like(x, 7).tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    like = asarray(x)
    return full(like.shape, fill_value, dtype=dtype or like.dtype, device=device or like.device)


def empty_like(
    x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """Undefined contents with a tensor's shape; its dtype and device are the tensor's unless
    given.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.empty_like(x, dtype=td.int32).dtype
    treadle.int32
    """
    like = asarray(x)
    return empty(like.shape, dtype=dtype or like.dtype, device=device or like.device)


def astype(
    x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: str | Device | None = None
) -> Tensor:
    """The elements as another dtype: a new tensor, or the tensor itself with `copy=False` if it has
    that dtype.

    Floats become integers by truncation and saturate, and NaN becomes 0; every number but 0 becomes
    True. DtypeError where imaginary parts would be dropped.

    >>> import treadle as td
    >>> td.astype(td.asarray([-1.5, 300.0], device="cpu"), td.uint8).tolist()
    [0, 255]
    """
    return _converted(x, dtype, x.device if device is None else device, copy or None)


def extents_of(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple. ShapeError for anything else."""
    parts = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if isinstance(shape, (set, frozenset)) or not all(hasattr(p, "__index__") for p in parts):
        raise ShapeError(f"a shape is an integer or a tuple of integers, not {shape!r}")
    extents = tuple(index(part) for part in parts)
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"an extent cannot be negative: {shape}")
    return extents

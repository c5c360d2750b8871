"""Arguments of NumPy's functions as tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.numpy import promotion
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor as Inner

_SCALARS = (bool, int, float, complex, np.generic)
_NUMBERS = frozenset(_SCALARS[:4])


def array(
    value: Any, dtype: Any = None, device: Device | None = None, like: Inner | None = None
) -> Inner:
    """What NumPy makes an array of, as a tensor on a device: on `like`'s, or the default one. A
    dtype that no one named is the one that the device has for it. A tensor is returned as it is."""
    if type(value) is Inner:
        if dtype is None:
            return value
        return converted(value, promotion.named(dtype, value.device))
    where = device or (default_device_of(value) if like is None else like.device)
    wanted = None if dtype is None else promotion.named(dtype, where)
    if type(value) in _NUMBERS:
        data = np.asarray(value, None if wanted is None else wanted.host)
        if data.dtype.kind in "biufc":
            wanted = promotion.held(data.dtype, where) if wanted is None else wanted
            return td.full((), data.item(), dtype=wanted, device=where)
    if isinstance(value, (list, tuple)) and _has_tensors(value):
        return _stacked(value, wanted)
    exported = getattr(value, "__array__", None) or hasattr(value, "__cuda_array_interface__")
    if (
        exported
        and not isinstance(value, (np.ndarray, np.generic))
        and hasattr(value, "__dlpack__")
    ):
        made = td.asarray(value)
        return made if wanted is None else converted(made, wanted)
    data = np.asarray(value) if wanted is None else np.asarray(value, _host(wanted))
    if data.dtype.kind not in "biufc":
        data = _refused(value, data)
    if wanted is None:
        # Numbers of Python's have the device's default dtypes; arrays of NumPy keep theirs.
        own = isinstance(value, (np.ndarray, np.generic))
        wanted = promotion.named(data.dtype, where) if own else promotion.held(data.dtype, where)
    return td.asarray(data, dtype=wanted, device=where, copy=True)


def _host(dtype: DType) -> Any:
    return dtype.host


def default_device_of(value: Any) -> Device:
    """Where a value is, or the default device."""
    found = getattr(value, "device", None)
    return found if isinstance(found, Device) else promotion.place()


def _refused(value: Any, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if data.dtype.kind == "O":
        numbers = data.ravel().tolist()
        if all(isinstance(each, int) for each in numbers):
            raise OverflowError("Python integer too large: arrays hold integers of 64 bits")
    raise TypeError(
        f"arrays on devices hold numbers, not {data.dtype}: strings, dates and objects stay in "
        "NumPy's own arrays"
    )


def _has_tensors(value: Any) -> bool:
    return any(
        type(each) is Inner or (isinstance(each, (list, tuple)) and _has_tensors(each))
        for each in value
    )


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    for each in value:
        found += _leaves(each) if isinstance(each, (list, tuple)) else [each]
    return found


def _stacked(value: Any, wanted: DType | None) -> Inner:
    leaves = _leaves(value)
    where = promotion.device_of(leaves)
    if wanted is None:
        kinds = [each if type(each) is Inner else np.asarray(each).dtype for each in leaves]
        wanted = promotion.held(promotion.result_type(*kinds), where)
    return _joined(value, wanted, where)


def _joined(value: Any, wanted: DType, where: Device) -> Inner:
    parts = [
        _joined(each, wanted, where)
        if isinstance(each, (list, tuple)) and _has_tensors(each)
        else converted(array(each, device=where), wanted)
        for each in value
    ]
    if len({each.shape for each in parts}) > 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous "
            "shape"
        )
    return td.stack(parts)


def converted(value: Inner, dtype: DType) -> Inner:
    """A tensor in a dtype; of complex numbers the real parts, where NumPy drops the others."""
    if value.dtype is dtype:
        return value
    if value.dtype.kind == "complex" and dtype.kind not in ("complex", "bool"):
        value = td.real(value)
    return value.to(dtype)


def arrays(*values: Any) -> list[Inner]:
    """Several arguments as tensors on one device."""
    if all(type(each) is Inner for each in values):
        return list(values)
    where = promotion.device_of(values)
    return [array(each, device=where) for each in values]


def common(*values: Any) -> list[Inner]:
    """Several arguments as tensors of their common dtype; numbers of Python's take the others'."""
    first = values[0]
    if type(first) is Inner and all(
        type(each) is Inner and each.dtype is first.dtype for each in values
    ):
        return list(values)
    where = promotion.device_of(values)
    kinds = [
        each if type(each) is Inner or type(each) in _SCALARS[:4] or isinstance(each, np.generic)
        else array(each, device=where)
        for each in values
    ]  # fmt: skip
    dtype = promotion.held(promotion.result_type(*kinds), where)
    return [
        converted(each, dtype) if type(each) is Inner else array(each, dtype, where)
        for each in kinds
    ]


def floats(value: Any) -> Inner:
    """An argument in a floating or complex dtype: integers and bools are the default one."""
    made = array(value)
    if made.dtype.kind in ("float", "complex"):
        return made
    return made.to(promotion.default_float(made.device))


def common_floats(*values: Any) -> list[Inner]:
    """Several arguments in their common floating or complex dtype."""
    made = common(*values)
    return [floats(each) for each in made]


def axis_of(axis: Any, ndim: int) -> int:
    """An axis, counted from the front. AxisError if there is none."""
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise np.exceptions.AxisError(at, ndim)
    return at % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """One axis, several, or all for None. AxisError if one is missing, ValueError if one is named
    twice."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(axis_of(each, ndim) for each in given)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The same for reductions, which take axis 0 and -1 of an array without axes, too."""
    if not ndim and axis is not None and not isinstance(axis, (tuple, list)):
        axis_of(axis, 1)
        return ()
    return axes_of(axis, ndim)


def locked(view: Inner) -> Inner:
    """A view through which nothing is written."""
    view._locked = True
    return view


def integer(value: Any) -> int:
    """An integer argument. TypeError for others."""
    return operator.index(value)


def host(value: Any) -> np.ndarray[Any, Any]:
    """An argument as an array of NumPy's in the host's memory."""
    return value.numpy() if type(value) is Inner else np.asarray(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """A shape that is given as an integer or a sequence of them. TypeError for others, ValueError
    for negative extents."""
    if type(value) is int and value >= 0:
        return (value,)
    if type(value) is tuple and all(type(each) is int and each >= 0 for each in value):
        return value
    if isinstance(value, (Inner, np.ndarray)):
        value = host(value).tolist()
    parts: Sequence[Any] = value if isinstance(value, (tuple, list)) else (
        tuple(value) if hasattr(value, "__iter__") else (value,)
    )  # fmt: skip
    if any(isinstance(each, (bool, np.bool)) for each in parts):
        raise TypeError("a shape has integers, not bools")
    found = tuple(operator.index(each) for each in parts)
    if any(each < 0 for each in found):
        raise ValueError("negative dimensions are not allowed")
    return found


def check_order(order: Any, allowed: str = "CAK") -> None:
    """NotImplementedError for Fortran's order: arrays on devices are in C's."""
    if order is not None and order not in allowed:
        if order not in ("C", "F", "A", "K"):
            raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
        raise NotImplementedError(
            "arrays of treadle.numpy are in C's order: use .T, or leave order= out"
        )

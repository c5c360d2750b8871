"""Dtypes: promotion, limits, and which ones a device supports.

Arrays and dtypes are promoted first, by the Array API's tables. Where the standard leaves a pair
undefined, a number wins over bool and a floating dtype over an integer one, whatever their widths;
float16 with bfloat16 is float32. Python numbers and NumPy scalars can then only raise the kind of
the result: they take the width of the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np

from treadle.core.dtypes import (
    ALL_DTYPES,
    DType,
    as_dtype,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int16,
    int32,
    int64,
    integer_range,
)
from treadle.core.errors import DtypeError
from treadle.core.sizes import Size, is_size
from treadle.runtime.devices import Device, default_device

# --- promotion -----------------------------------------------------------------------------------

# Kinds of dtypes and of Python numbers: the highest one is the kind of the result.
RANK = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
_SIGNED = {2: int16, 4: int32, 8: int64}  # by bytes


def _common(a: DType, b: DType) -> DType | None:
    """The dtype that holds the values of both, or None."""
    low, high = sorted((a, b), key=lambda dtype: (RANK[dtype.kind], dtype.itemsize))
    if a is b:
        return a
    if RANK[low.kind] < RANK[high.kind]:
        return complex128 if high is complex64 and low is float64 else high
    if low.kind == high.kind:
        return high if low.itemsize < high.itemsize else float32  # float16 with bfloat16
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    return _SIGNED.get(max(signed.itemsize, 2 * unsigned.itemsize))


# By both names, since every operation looks it up and a dtype's own hash is slow. Pairs without a
# common dtype are missing.
_COMMON: dict[str, dict[str, DType]] = {
    a.name: {b.name: found for b in ALL_DTYPES if (found := _common(a, b)) is not None}
    for a in ALL_DTYPES
}


def promote(a: DType, b: DType) -> DType:
    """The dtype of an operation on arrays of two dtypes. DtypeError if no dtype holds both.

    >>> from treadle.core.dtypes import float16, int8, uint8
    >>> promote(int8, uint8), promote(int64, float16), promote(float64, complex64)
    (treadle.int16, treadle.float16, treadle.complex128)
    """
    if a is b:
        return a
    try:
        return _COMMON[a.name][b.name]
    except KeyError:
        raise _no_common(a, b) from None


def _no_common(a: Any, b: Any) -> DtypeError:
    for one in (a, b):
        if not isinstance(one, DType):
            return DtypeError(f"elements of {one} are structs, and there is no arithmetic on them")
    return DtypeError(
        f"no dtype holds every {a} and every {b}: cast one side first, with td.astype(x, td.int64) "
        "or td.astype(x, td.uint64)"
    )


def promote_scalar(dtype: DType, value: Any, device: Device | None = None) -> DType:
    """The dtype of an operation on an array and a Python number.

    The number has the array's width. If it is of a higher kind than the array, the result has that
    kind's default: float32, complex64 (complex128 with float64), and for bool arrays the device's
    default integer. OverflowError for an integer that does not fit.

    >>> from treadle.core.dtypes import float16, uint8
    >>> promote_scalar(float16, 2), promote_scalar(uint8, 0.5), promote_scalar(float32, 1j)
    (treadle.float16, treadle.float32, treadle.complex64)
    >>> promote_scalar(uint8, 256)
    Traceback (most recent call last):
    OverflowError: 256 does not fit into uint8, which holds 0 to 255
    """
    kind = type(value)
    if kind is float:
        return dtype if dtype.kind == "float" or dtype.kind == "complex" else float32
    if kind is int or kind is Size:
        bounds = _BOUNDS.get(dtype.name)
        if bounds is None:
            if dtype.kind != "bool":
                return dtype
            dtype = default_integer(device)
            bounds = _BOUNDS[dtype.name]
        if not bounds[0] <= value <= bounds[1]:
            check_fits(value, dtype)
        return dtype
    if kind is bool:
        return dtype
    if kind is complex:
        if dtype.kind == "complex":
            return dtype
        return complex128 if dtype is float64 else complex64
    return promote_scalar(dtype, python_number(value), device)


def check_fits(value: int, dtype: DType) -> None:
    """OverflowError if an integer dtype does not hold `value`; other dtypes take any."""
    bounds = _BOUNDS.get(dtype.name)
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        shown = value if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
        raise OverflowError(
            f"{shown} does not fit into {dtype}, which holds {bounds[0]} to {bounds[1]}"
        )


_BOUNDS = {dtype.name: integer_range(dtype) for dtype in ALL_DTYPES if dtype.is_integer}


def is_number(value: Any) -> bool:
    """Whether `value` is a Python number or a NumPy scalar, whose width does not count."""
    return isinstance(value, (bool, int, float, complex, np.generic))


def python_number(value: Any) -> bool | int | float | complex:
    """The Python number for a NumPy scalar or a subclass's number. DtypeError for others."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, (bool, int)):
        return number if type(number) is bool or is_size(number) else int(number)
    if isinstance(number, (float, np.floating)):  # float() of NumPy's long double stays one
        return float(number)
    if isinstance(number, (complex, np.complexfloating)):
        return complex(number)
    raise DtypeError(f"{value!r} is a {type(value).__name__}, not a number")


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of an operation on these arrays, dtypes and Python numbers, in any order.

    DtypeError if no dtype holds them all, or the arrays' device lacks it. At least one must be an
    array or a dtype.

    >>> import treadle as td
    >>> td.result_type(td.int8, td.uint8, 1), td.result_type(td.zeros(3, device="cpu"), td.int64, 2)
    (treadle.int16, treadle.float32)
    """
    numbers = [value for value in arrays_and_dtypes if is_number(value)]
    others = [value for value in arrays_and_dtypes if not is_number(value)]
    if not others:
        raise ValueError("result_type needs an array or a dtype: numbers alone have no width")
    device = _device_of(others)
    # Floating dtypes first: with one, it does not matter that two integer dtypes have no common
    # one.
    found = (dtype_of(value, device) for value in others)
    dtypes = sorted(found, key=lambda dtype: -RANK[dtype.kind])
    result = reduce(promote, dtypes)
    # The highest kind first, so that an integer is checked against the dtype that it becomes.
    for number in sorted((python_number(n) for n in numbers), key=_kind_of_number, reverse=True):
        result = promote_scalar(result, number, device)
    if device is not None:
        check_dtype(result, device)
    return result


def _kind_of_number(number: bool | int | float | complex) -> int:
    return RANK[type(number).__name__]


def _device_of(values: Iterable[Any]) -> Device | None:
    found = (getattr(value, "device", None) for value in values)
    return next((device for device in found if isinstance(device, Device)), None)


def named_dtype(value: Any, device: Device | None = None) -> DType:
    """The DType that `value` names, as for `as_dtype`; Python's int, float and complex name the
    default dtypes of the device (of the default device, if none is given)."""
    if value is int or value is float or value is complex:
        return default_dtype(value(), device)
    return as_dtype(value)


def dtype_of(value: Any, device: Device | None = None) -> DType:
    """The dtype of `value`, an array or a dtype."""
    if isinstance(value, DType):
        return value
    if not isinstance(value, (type, str)):
        own = getattr(value, "dtype", None)
        if isinstance(own, (DType, np.dtype)):
            return as_dtype(own)
    return named_dtype(value, device)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion converts a dtype, or an array's dtype, to another one.

    For an array its device must have the dtype too.

    >>> import treadle as td
    >>> td.can_cast(td.int8, td.int16), td.can_cast(td.int16, td.int8)
    (True, False)
    """
    device = _device_of([from_])
    source, target = dtype_of(from_, device), named_dtype(to, device)
    if device is not None and not supports(device, target):
        return False
    return _COMMON[source.name].get(target.name) is target


# --- kinds and limits -----------------------------------------------------------------------------

_ATOMIC_KINDS = {
    "bool": "bool",
    "signed integer": "int",
    "unsigned integer": "uint",
    "real floating": "float",
    "complex floating": "complex",
}
_KINDS: dict[str, frozenset[str]] = {
    **{name: frozenset({kind}) for name, kind in _ATOMIC_KINDS.items()},
    "integral": frozenset({"int", "uint"}),
    "numeric": frozenset({"int", "uint", "float", "complex"}),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: another dtype, a kind's name, or one of a tuple of them.

    Kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating" (float16
    and bfloat16 too), "complex floating" and "numeric".

    >>> import treadle as td
    >>> td.isdtype(td.int8, "integral"), td.isdtype(td.float32, ("bool", td.float64))
    (True, False)
    """
    own = named_dtype(dtype)
    if isinstance(kind, tuple):
        matches = [isdtype(own, one) for one in kind]  # all of them, to refuse an unknown kind
        return True in matches
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is not a kind of dtypes; there are {', '.join(_KINDS)}")
        return own.kind in _KINDS[kind]
    return own is named_dtype(kind)


@dataclass(frozen=True)
class FloatInfo:
    """The result of `finfo`: the limits of a floating dtype, or of a complex dtype's parts."""

    bits: int
    eps: float  # from 1 to the next larger number
    max: float
    min: float
    smallest_normal: float  # the smallest positive number with full precision
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """The result of `iinfo`: the limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype, of an array's, or of a complex dtype's parts.

    >>> import treadle as td
    >>> td.finfo(td.float16).max, td.finfo(td.complex64).dtype
    (65504.0, treadle.float32)
    """
    dtype = dtype_of(type)
    if dtype.kind not in ("float", "complex"):
        raise DtypeError(f"finfo takes floating and complex dtypes; for {dtype} use td.iinfo")
    return _finfo(dtype.component)


@cache
def _finfo(dtype: DType) -> FloatInfo:
    if dtype.name == "bfloat16":  # eight digits, and the exponents of float32
        most = (2 - 2**-7) * 2.0**127
        return FloatInfo(16, 2.0**-7, most, -most, 2.0**-126, dtype)
    limits = np.finfo(dtype.numpy)
    eps, least = float(limits.eps), float(limits.smallest_normal)
    return FloatInfo(dtype.bits, eps, float(limits.max), float(limits.min), least, dtype)


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of an array's.

    >>> import treadle as td
    >>> td.iinfo(td.int8).min, td.iinfo(td.uint16).max
    (-128, 65535)
    """
    dtype = dtype_of(type)
    if not dtype.is_integer:
        raise DtypeError(f"iinfo takes integer dtypes, not {dtype}")
    low, high = integer_range(dtype)
    return IntegerInfo(dtype.bits, high, low, dtype)


# --- support by devices ---------------------------------------------------------------------------

# A dtype that a device may lack, the feature it needs, and what to use without it.
_FEATURE_OF = {
    "int64": ("int64", "int32"),
    "uint64": ("int64", "uint32"),
    "float64": ("float64", "float32"),
    "complex128": ("float64", "complex64"),
}


def supports(device: Device, dtype: DType) -> bool:
    """Whether a device can compute with a dtype."""
    need = _FEATURE_OF.get(dtype.name)
    if need is None:
        return True
    _ = device.handle  # features are exact once the device is open
    return need[0] in device.features


def check_dtype(dtype: DType | np.dtype[Any], device: Device) -> None:
    """DtypeError if the device cannot compute with a dtype; it says what to use instead."""
    if isinstance(dtype, DType) and not supports(device, dtype):
        raise DtypeError(
            f"{device.id} ({device.name}) has no {dtype.name}: use "
            f'dtype=td.{_FEATURE_OF[dtype.name][1]}, or the device "cpu"'
        )


def default_integer(device: Device | None = None) -> DType:
    """The dtype of Python integers: int64 on cpu and cuda, int32 on webgpu."""
    where = default_device() if device is None else device
    return where.traits.default_integer


def default_dtype(number: bool | int | float | complex, device: Device | None = None) -> DType:
    """The dtype of a Python number on a device: bool, the default integer, float32 or complex64."""
    if isinstance(number, bool):
        return bool_
    if isinstance(number, int):
        return default_integer(device)
    return float32 if isinstance(number, float) else complex64

"""Python objects as NumPy data for tensors, with messages for those that are not numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, complex64, float32, float64
from treadle.core.errors import DtypeError, ShapeError
from treadle.runtime.arrays import numpy_dtype
from treadle.runtime.devices import Device
from treadle.tensor.conversions import float_as
from treadle.tensor.dtypes import check_fits, default_integer, is_number
from treadle.tensor.tensor import cast

_MADE_OF = "a tensor is made of numbers, nested lists of them, and arrays"
_FIRST_LARGE = 2.0**63


def from_array(obj: Any, wanted: Any) -> np.ndarray[Any, Any]:
    """The elements of a NumPy array or scalar, or of an object with `__array__`."""
    data = np.asarray(obj)
    if data.dtype.kind in _NAMES:
        data = _as_numbers(data, obj, wanted)
    if wanted is not None and data.dtype != numpy_dtype(wanted):
        data = cast(data, wanted)
    return data


def from_python(obj: Any, wanted: Any, where: Device) -> np.ndarray[Any, Any]:
    """The elements of a number or of nested lists. DtypeError for elements that are not numbers,
    ShapeError for lists of different lengths, OverflowError for integers that do not fit."""
    try:
        data = np.asarray(obj)
    except ValueError:
        raise ShapeError("nested lists of different lengths have no shape") from None
    if wanted is not None and not isinstance(wanted, DType):  # structs
        return cast(data, wanted)
    if data.dtype.kind in "fO" and _are_integers(data, obj):
        kind = default_integer(where) if wanted is None else wanted
        if kind.is_integer:
            return _integers(obj, kind)
        data = np.asarray(obj, dtype=object)
    if data.dtype.kind in _NAMES:
        data = _as_numbers(data, obj, wanted)
    if wanted is None:
        if data.dtype.kind == "f":
            wanted = float32
        elif data.dtype.kind == "c":
            wanted = complex64
        elif data.dtype.kind in "iu":
            wanted = default_integer(where)
        else:
            return data
    if data.dtype.kind in "iu" and wanted.is_integer:
        return _integers(obj, wanted)
    return cast(data, wanted)


def _integers(obj: Any, dtype: DType) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(obj, dtype=dtype.numpy)
    except OverflowError:
        for value in np.asarray(obj, dtype=object).flat:
            check_fits(int(value), dtype)
        raise


def _are_integers(data: np.ndarray[Any, Any], obj: Any) -> bool:
    """Whether NumPy found integers without a common dtype, and made floats or objects of them.

    The elements are checked only if one is large.
    """
    if data.dtype.kind == "f" and not (np.abs(data) >= _FIRST_LARGE).any():
        return False
    each = np.asarray(obj, dtype=object)
    return all(isinstance(value, int) for value in each.flat)


# --- NumPy's objects, and other elements that are not numbers ------------------------------

# The kinds of NumPy's dtypes that tensors do not have, and names for their elements.
_NAMES = {"O": "objects", "U": "text", "S": "bytes", "T": "text", "M": "dates", "m": "durations"}


def _as_numbers(data: np.ndarray[Any, Any], obj: Any, wanted: Any) -> np.ndarray[Any, Any]:
    """Objects that are numbers as floats or complex numbers. DtypeError for others."""
    if data.dtype.kind != "O":
        raise DtypeError(f"{_MADE_OF}, not of {_described(data, obj)}")
    values = list(data.flat)
    if not all(is_number(value) for value in values):
        if not all(map(_converts, values)):
            raise DtypeError(f"{_MADE_OF}, not of {_described(data, obj)}")
        if wanted is None:
            other = next(value for value in values if not is_number(value))
            raise DtypeError(
                f"a {type(other).__name__} has no dtype: name one, as in dtype=td.float32"
            )
        if wanted.is_integer or wanted.kind == "bool":
            return data  # NumPy converts each by its `__int__` or `__bool__`
    if any(isinstance(value, (complex, np.complexfloating)) for value in values):
        numbers: list[Any] = [complex(value) for value in values]
        return np.array(numbers, np.complex128).reshape(data.shape)
    numbers = [float_as(value, float64.itemsize) for value in values]
    return np.array(numbers, np.float64).reshape(data.shape)


def _converts(value: Any) -> bool:
    """Whether an object converts itself to a number, as decimals and fractions do."""
    return not isinstance(value, type) and any(
        hasattr(value, name) for name in ("__float__", "__index__", "__complex__")
    )


def _described(data: np.ndarray[Any, Any], obj: Any) -> str:
    """A description of an object, or of its first element that is not a number, and where possible
    what to write instead."""
    if isinstance(obj, np.ndarray):
        way = ": write x.astype(np.int64)" if data.dtype.kind in "Mm" else ""
        return f"{_NAMES[data.dtype.kind]} (NumPy's dtype {data.dtype}){way}"
    for place, value in _leaves(obj, ""):
        name = type(value).__name__
        if isinstance(value, (bytes, str)):
            shown = repr(value) if len(value) <= 40 else f"{value[:40]!r}…"
            text = f"the {'text' if isinstance(value, str) else 'bytes'} {shown}"
        elif is_number(value) and data.dtype.kind != "O":
            continue
        elif value is None or value is ...:
            text = repr(value)
        elif isinstance(value, type):
            text = f"the type {value.__name__}"
        elif _converts(value):
            continue
        else:
            text = f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
        way = ""
        if isinstance(value, dict):
            way = ": write list(x.values())"
        elif isinstance(value, Iterable) and not isinstance(value, (bytes, str, type)):
            way = ": write list(x)"
        return f"{text}{f', which is at {place}' if place else ''}{way}"
    return _NAMES[data.dtype.kind]


def _leaves(obj: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, (list, tuple)):
        for index, each in enumerate(obj):
            yield from _leaves(each, f"{place}[{index}]")
    else:
        yield place, obj

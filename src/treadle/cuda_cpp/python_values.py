"""Values of Python as values of C++: numbers, vectors and structs, checked and never guessed.

C++ converts between all kinds of numbers, and silently loses what does not fit. Here a number
arrives as it is, rounded at most: a fraction for an integer, or one out of its range, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, integer_range
from treadle.core.errors import DtypeError
from treadle.cuda_cpp.semantics.types import PADDING, UNION_WORDS
from treadle.ir.types import COMPONENTS, Array, Field, Scalar, Struct, Type, Vector, leaves, size_of
from treadle.lang.types import numpy_dtype
from treadle.runtime.arrays import element_type


class Mismatch(Exception):
    """A value that a type does not take; the text says why, behind "but …"."""


class OutOfRange(Mismatch):
    """A number that a type has no room for."""


def number_of(type: Scalar, value: Any) -> Any:
    """A number as a Python number that the type holds; Unfit if it is none, or does not fit."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not _is_number(value):
        raise Mismatch(f"{described(value)} came")
    if type.kind == "bool":
        return bool(value != 0)
    if type.is_float:
        return float(value)
    whole = _whole(value)
    low, high = integer_range(BY_SHORT_NAME[type.name])
    if not low <= whole <= high:
        raise OutOfRange(f"{value} does not fit it (from {low} to {high})")
    return whole


def _is_number(value: Any) -> bool:
    if isinstance(value, (complex, np.complexfloating, np.void, np.str_, np.bytes_)):
        return False
    if isinstance(value, (int, float, np.generic)):
        return True
    return hasattr(value, "__index__") and not hasattr(value, "shape")  # arrays have one, too


def _whole(value: Any) -> int:
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        number = float(value)
    if not number.is_integer():  # NaN and infinities are none
        raise Mismatch(f"{value} came, which is no whole number: round it")
    return int(number)


def record_of(type: Type, value: Any) -> np.ndarray[Any, Any]:
    """A vector or struct as an array of no dimensions that lies as C++ has it (a vector: of one).

    It may come as a tuple, list or array of its parts, a dictionary of them by name, a `@td.struct`
    or `td.vec3` value, or a record of NumPy's. Unfit says what is wrong.
    """
    made = np.zeros((), numpy_dtype(type))
    _fill(made, (), type, value, "")
    return made


def _fill(target: np.ndarray[Any, Any], index: Any, type: Type, value: Any, where: str) -> None:
    """Put a value at `target[index]`; `where` is the path to it, for messages."""
    try:
        if isinstance(type, Scalar):
            target[index] = number_of(type, value)
            return
        if isinstance(type, Struct) and (record := _same_record(type, value)) is not None:
            target[index] = record
            return
        if isinstance(type, Array) and isinstance(value, np.ndarray):
            numbers = _numbers(type, value)
            if numbers is not None:
                target[index] = numbers
                return
        if isinstance(type, Struct) and _is_union(type):
            raise Mismatch(
                f"{described(value)} came for a union of {size_of(type)} bytes: give a number of "
                "NumPy's that has so many (np.float32(…)), or bytes"
            )
        parts = _parts(type, value)
    except Mismatch as error:
        if not where:
            raise
        raise error.__class__(f"for {where.lstrip('.')} {error}") from None
    for name, part_type, part in parts:
        if isinstance(type, Struct):
            _fill(target[name], index, part_type, part, f"{where}.{name}")
        else:
            label = f".{COMPONENTS[name]}" if isinstance(type, Vector) else f"[{name}]"
            _fill(target, (*index, name), part_type, part, where + label)


def _numbers(type: Array, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """An array of numbers that a type of this shape takes as it is, for which they need not be
    looked at one by one. None for others."""
    shape: list[int] = []
    inner: Type = type
    while isinstance(inner, Array):
        shape.append(inner.length)
        inner = inner.element
    same = isinstance(inner, Scalar) and value.dtype == BY_SHORT_NAME[inner.name].numpy
    return value if same and value.shape == tuple(shape) else None


def _parts(type: Type, value: Any) -> list[tuple[Any, Type, Any]]:
    """The parts of a vector, array or struct type (name or number, type) with their values."""
    if isinstance(type, Struct):
        fields = [field for field in type.fields if not is_gap(field)]
        names: list[Any] = [field.name for field in fields]
        types: list[Type] = [field.type for field in fields]
        labels = names
    else:
        assert isinstance(type, (Vector, Array))
        count = type.count if isinstance(type, Vector) else type.length
        names, types = list(range(count)), [type.element] * count
        labels = list(COMPONENTS[:count]) if isinstance(type, Vector) else names
    named = _by_name(value)
    if named is not None:
        if set(named) != set(labels):
            raise Mismatch(
                f"the names {', '.join(map(str, named))} came, where there are "
                f"{', '.join(map(str, labels))}"
            )
        values = [named[label] for label in labels]
    elif _is_sequence(value):
        values = list(value)
        if len(values) != len(names):
            raise Mismatch(f"{len(values)} parts came, where there are {len(names)}")
    else:
        raise Mismatch(f"{described(value)} came")
    return list(zip(names, types, values, strict=True))


def is_gap(field: Field) -> bool:
    """Whether a field is none of the file's: what an alignment leaves free, or an empty struct."""
    return field.name.startswith(PADDING)


def _is_union(type: Struct) -> bool:
    """Whether a struct stands for a union, of which only the bytes are known."""
    return [field.name for field in type.fields] == [UNION_WORDS]


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 1) == 0:
        return False
    return isinstance(value, (Sequence, np.ndarray)) or hasattr(type(value), "__len__")


def _by_name(value: Any) -> Mapping[Any, Any] | None:
    """The parts of a value whose parts have names; None for other values."""
    if isinstance(value, Mapping):
        return value
    if (fields := getattr(value, "__treadle_fields__", None)) is not None:
        return {name: getattr(value, name) for name in fields}
    if isinstance(value, np.void) and value.dtype.names is not None:
        return {name: value[name] for name in value.dtype.names}
    return None


def _same_record(type: Struct, value: Any) -> Any:
    """A struct value that lies as the type does, as a record of it; None for other values."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if _is_union(type) and isinstance(value, (bytes, np.generic)):
        raw = value if isinstance(value, bytes) else value.tobytes()
        return np.frombuffer(raw, numpy_dtype(type))[0] if len(raw) == size_of(type) else None
    known = getattr(value, "__treadle_struct__", None)
    if isinstance(value, np.void) and value.dtype.names is not None:
        try:
            known = element_type(value.dtype)
        except DtypeError:  # not C's layout, but it may have the names
            return None
    if known is None or leaves(known) != leaves(type) or size_of(known) != size_of(type):
        return None
    return np.frombuffer(np.asarray(value).tobytes(), numpy_dtype(type))[0]


def described(value: Any) -> str:
    """What somebody gave, in words."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(value, (int, float, complex, np.number, np.bool_)):
        return f"the number {value}"
    if dtype is not None and shape is not None:
        return f"an array of {dtype} and shape {tuple(shape)}"
    return "None" if value is None else f"a {type(value).__name__}"

"""Python values as C++ values: numbers, vectors and structs, each checked.

C++ converts between all kinds of numbers, and silently truncates what does not fit. Here a number
keeps its value but for the rounding of floats: a fraction for an integer, or an integer out of
range, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, integer_range
from treadle.core.errors import DtypeError
from treadle.cuda_cpp.semantics.types import PADDING, UNION_WORDS
from treadle.ir.arithmetic import round_float
from treadle.ir.types import COMPONENTS, Array, Field, Scalar, Struct, Type, Vector, leaves, size_of
from treadle.lang.types import numpy_dtype
from treadle.runtime.arrays import element_type

_FLOATS = {"f32": "float", "f16": "half", "bf16": "bfloat16"}


class Mismatch(Exception):
    """A value that a type does not take; the text says why, to follow "but …"."""


class OutOfRange(Mismatch):
    """A number out of the range of a type."""


def number_of(type: Scalar, value: Any) -> Any:
    """A number as a Python number of the type; Mismatch for other values, and out of range."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not _is_number(value):
        raise Mismatch(f"{described(value)} was given{_as_number(value)}")
    if type.kind == "bool":
        return bool(value != 0)
    if type.is_float:
        number = float(value)
        if type.bits < 64 and math.isfinite(number) and math.isinf(round_float(number, type)):
            raise OutOfRange(f"{value} is too large for a {_FLOATS[type.name]}")
        return number
    whole = _whole(value)
    low, high = integer_range(BY_SHORT_NAME[type.name])
    if not low <= whole <= high:
        raise OutOfRange(f"{value} does not fit it (from {low} to {high})")
    return whole


def _as_number(value: Any) -> str:
    """How to make a number of another value, to follow a message."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        size = math.prod(shape)
        return ": pass x.item()" if size == 1 else ": pass a number, or one of its elements"
    return ": pass its real part" if isinstance(value, complex) else ""


def _is_number(value: Any) -> bool:
    if isinstance(value, (complex, np.complexfloating, np.void, np.str_, np.bytes_)):
        return False
    if isinstance(value, (int, float, np.generic)):
        return True
    return hasattr(value, "__index__") and not hasattr(value, "shape")  # arrays have __index__, too


def _whole(value: Any) -> int:
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        number = float(value)
    if not number.is_integer():  # nor are NaN and infinities
        raise Mismatch(f"{value} was given, which is not a whole number: round it")
    return int(number)


def record_of(type: Type, value: Any) -> np.ndarray[Any, Any]:
    """A vector or struct in C++'s memory layout: an array of no dimensions (of one for a vector).

    The value may be a tuple, list or array of its parts, a dictionary of them by name, a
    `@td.struct` or `td.vec3` value, or a NumPy record. Mismatch says what is wrong.
    """
    made = np.zeros((), numpy_dtype(type))
    _fill(made, (), type, value, "")
    return made


def _fill(target: np.ndarray[Any, Any], index: Any, type: Type, value: Any, where: str) -> None:
    """Write a value to `target[index]`; `where` is the path to it, for messages."""
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
        if isinstance(type, Struct) and is_union(type):
            raise Mismatch(
                f"{described(value)} was given for a union of {size_of(type)} bytes: pass a NumPy "
                "number of that size (np.float32(…)), or bytes"
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
    """An array of numbers that has the type's shape and dtype already, so that its elements need
    not be converted one by one. None for other arrays."""
    shape: list[int] = []
    inner: Type = type
    while isinstance(inner, Array):
        shape.append(inner.length)
        inner = inner.element
    same = isinstance(inner, Scalar) and value.dtype == BY_SHORT_NAME[inner.name].numpy
    return value if same and value.shape == tuple(shape) else None


def _parts(type: Type, value: Any) -> list[tuple[Any, Type, Any]]:
    """The name or index, the type and the value of each part of a vector, array or struct."""
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
    if named is None and isinstance(type, Struct) and not _is_sequence(value):
        named = _attributes(value, names)
    if named is not None:
        _check_names(named, labels)
        values = [named[label] for label in labels]
    elif _is_sequence(value):
        values = list(value)
        if len(values) != len(names):
            raise Mismatch(f"{len(values)} parts were given, where there are {len(names)}")
    elif isinstance(type, Struct):
        raise Mismatch(
            f"{described(value)} was given: pass a dictionary of its fields, a tuple of them, or "
            f"an object that has {', '.join(names)}"
        )
    else:
        raise Mismatch(f"{described(value)} was given")
    return list(zip(names, types, values, strict=True))


def _attributes(value: Any, names: list[Any]) -> Mapping[Any, Any] | None:
    """The fields of an object that has them as attributes; None of one that has no field."""
    missing = [name for name in names if not hasattr(value, name)]
    if len(missing) == len(names):
        return None
    if missing:
        raise Mismatch(f"{described(value)} was given, which has no {', '.join(missing)}")
    return {name: getattr(value, name) for name in names}


def _check_names(given: Mapping[Any, Any], wanted: Sequence[Any]) -> None:
    """Mismatch unless the names of parts are those that there are."""
    missing = [str(one) for one in wanted if one not in given]
    others = [str(one) for one in given if one not in wanted]
    if missing or others:
        listed = ", ".join(map(str, wanted))
        what = [f"{', '.join(missing)} is missing"] if missing else []
        what += [f"{', '.join(others)} is none of its parts"] if others else []
        raise Mismatch(f"{' and '.join(what)} (there are {listed})")


def is_gap(field: Field) -> bool:
    """Whether the file does not declare a field: padding, or the byte of an empty struct."""
    return field.name.startswith(PADDING)


def is_union(type: Struct) -> bool:
    """Whether a struct is the bytes of a union."""
    return [field.name for field in type.fields] == [UNION_WORDS]


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 1) == 0:
        return False
    return isinstance(value, (Sequence, np.ndarray)) or hasattr(type(value), "__len__")


def _by_name(value: Any) -> Mapping[Any, Any] | None:
    """The parts of a value by name; None for a value whose parts have no names."""
    if isinstance(value, Mapping):
        return value
    if (fields := getattr(value, "__treadle_fields__", None)) is not None:
        return {name: getattr(value, name) for name in fields}
    if isinstance(value, np.void) and value.dtype.names is not None:
        return {name: value[name] for name in value.dtype.names}
    return None


def _same_record(type: Struct, value: Any) -> Any:
    """A struct value that has the type's layout, as a record of it; None for other values."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_union(type) and isinstance(value, (bytes, np.generic)):
        raw = value if isinstance(value, bytes) else value.tobytes()
        return np.frombuffer(raw, numpy_dtype(type))[0] if len(raw) == size_of(type) else None
    known = getattr(value, "__treadle_struct__", None)
    if isinstance(value, np.void) and value.dtype.names is not None:
        try:
            known = element_type(value.dtype)
        except DtypeError:  # its layout is not C's, but it may have the names
            return None
    if known is None or leaves(known) != leaves(type) or size_of(known) != size_of(type):
        return None
    return np.frombuffer(np.asarray(value).tobytes(), numpy_dtype(type))[0]


def described(value: Any) -> str:
    """A value that the caller passed, in words for a message."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(value, (int, float, complex, np.number, np.bool_)):
        return f"the number {value}"
    if dtype is not None and shape is not None:
        return f"an array of {dtype} and shape {tuple(shape)}"
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{len(value)} bytes" if name == "bytes" else f"{article(name)} {name}"


def article(name: str) -> str:
    """The article before the name of a Python type."""
    return "an" if name[:1].lower() in "aeio" else "a"


def fields_of(value: Any, names: list[Any]) -> list[Any]:
    """The fields of a struct with pointers in it, in the order of their names: of a dictionary or
    object that has them, or of a tuple or list of them. Mismatch for other values."""
    listed = ", ".join(names)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, np.void) and value.dtype.names is not None:
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, Mapping):
        _check_names(value, names)
        return [value[name] for name in names]
    if isinstance(value, (list, tuple)):
        if len(value) != len(names):
            raise Mismatch(f"{len(value)} parts were given, where there are {len(names)}: {listed}")
        return list(value)
    missing = [name for name in names if not hasattr(value, name)]
    if len(missing) == len(names) or isinstance(value, np.ndarray):
        raise Mismatch(
            f"{described(value)} was given: pass a dictionary of its fields, a tuple of them, or "
            f"an object that has {listed}"
        )
    if missing:
        raise Mismatch(f"{described(value)} was given, which has no {', '.join(missing)}")
    return [getattr(value, name) for name in names]

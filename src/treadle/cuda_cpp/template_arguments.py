"""Template arguments that are given from Python, as C++ text."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import as_dtype
from treadle.core.errors import DtypeError
from treadle.lang.types import VectorType, is_struct

_SCALARS = {
    "bool": "bool", "i8": "signed char", "u8": "unsigned char", "i16": "short",
    "u16": "unsigned short", "i32": "int", "u32": "unsigned int", "i64": "long long",
    "u64": "unsigned long long", "f16": "__half", "bf16": "__nv_bfloat16", "f32": "float",
    "f64": "double",
}  # fmt: skip
# The vectors that CUDA has names for, without their number.
_VECTORS = {
    "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint",
    "i64": "longlong", "u64": "ulonglong", "f32": "float", "f64": "double",
}  # fmt: skip
_PAIRS = {"f16": "__half2", "bf16": "__nv_bfloat162"}
_PYTHON = {bool: "bool", int: "int", float: "float"}


def as_written(argument: Any) -> str:
    """A template argument in C++: a dtype, vector type, struct class or Python type is a type, a
    number or bool a value, and a string is C++ already. DtypeError for anything else.

    >>> from treadle.core.dtypes import f32
    >>> as_written(f32), as_written(256), as_written(True), as_written("unsigned int")
    ('float', '256', 'true', 'unsigned int')
    """
    if isinstance(argument, str):
        return argument.strip()
    if isinstance(argument, (bool, np.bool_)):
        return "true" if argument else "false"
    if isinstance(argument, (int, np.integer)):
        return str(int(argument))
    if isinstance(argument, type) and argument in _PYTHON:
        return _PYTHON[argument]
    if is_struct(argument):
        name: str = argument.__treadle_struct__.name
        return name
    if isinstance(argument, VectorType):
        return _vector(argument)
    try:
        dtype = as_dtype(argument)
    except DtypeError:
        dtype = None
    if dtype is None or dtype.short not in _SCALARS:
        raise DtypeError(
            f"{argument!r} is not a template argument: pass a dtype (td.f32), a vector type, a "
            '@td.struct class, an int, a bool, or C++ as a string ("unsigned char", "Particle")'
        )
    return _SCALARS[dtype.short]


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
    """A kernel's name and the template arguments after it, as C++ writes them.

    >>> split_name("ns::reduce<A<float, 2>, 5>")
    ('ns::reduce', ('A<float, 2>', '5'))
    >>> split_name("scale(float*)")
    ('scale(float*)', ())
    """
    plain, opened, rest = name.strip().partition("<")
    if not opened or not rest.endswith(">"):
        return name, ()
    found, depth, start = [], 0, 0
    rest = rest[:-1]
    for at, sign in enumerate(rest):
        depth += (sign in "<([") - (sign in ">)]")
        if sign == "," and not depth:
            found.append(rest[start:at].strip())
            start = at + 1
    found.append(rest[start:].strip())
    return plain.rstrip(), tuple(one for one in found if one)


def _vector(type: VectorType) -> str:
    name = _VECTORS.get(type.dtype.short)
    if name is not None:
        return f"{name}{type.count}"
    if type.count == 2 and type.dtype.short in _PAIRS:
        return _PAIRS[type.dtype.short]
    raise DtypeError(f"CUDA has no vector {type!r}: use a struct of the file, by its name")

"""How types, constants and names are written in LLVM's assembly language.

A *width* of 1 is one number; a greater width is that many lanes of a parallel loop in one LLVM
vector. bf16 is held as a float that a bf16 can represent: arithmetic rounds back to such a float,
loads and stores shift its upper half in and out. bool is i1 as a value and i8 in memory.
"""

from __future__ import annotations

import re
import struct

from treadle.ir.types import Scalar

_VALUE_TYPES: dict[str, str] = {
    "bool": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32",
    "i64": "i64", "u64": "i64", "f16": "half", "bf16": "float", "f32": "float", "f64": "double",
}  # fmt: skip
_STORED_TYPES = _VALUE_TYPES | {"bool": "i8", "bf16": "i16"}
# The suffix of overloaded intrinsics.
_SUFFIXES: dict[str, str] = {"half": "f16", "float": "f32", "double": "f64"}
_PLAIN_NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*").fullmatch


def widened(element: str, width: int) -> str:
    """`width` of an LLVM type: itself, or a vector."""
    return element if width == 1 else f"<{width} x {element}>"


def value_type(type: Scalar, width: int = 1) -> str:
    """The LLVM type of a scalar while it is computed with."""
    return widened(_VALUE_TYPES[type.name], width)


def stored_type(type: Scalar, width: int = 1) -> str:
    """The LLVM type of a scalar in memory."""
    return widened(_STORED_TYPES[type.name], width)


def suffix(type: str) -> str:
    """The name of an LLVM type inside an intrinsic's name: v16f32 for <16 x float>."""
    if type.startswith("<"):
        count, element = type[1:-1].split(" x ")
        return f"v{count}{suffix(element)}"
    return "p0" if type == "ptr" else _SUFFIXES.get(type, type)


def splat(element: str, constant: str, width: int) -> str:
    """A constant of an LLVM element type in every lane."""
    if width == 1 or constant in ("zeroinitializer", "poison"):
        return constant
    return f"splat ({element} {constant})"


def constant(type: Scalar, value: bool | int | float, width: int = 1) -> str:
    """A constant of a scalar type."""
    return splat(_VALUE_TYPES[type.name], _constant(type, value), width)


def _constant(type: Scalar, value: bool | int | float) -> str:
    if type.kind == "bool":
        return "true" if value else "false"
    if type.is_integer:
        value = int(value) & ((1 << type.bits) - 1)
        return str(value - (1 << type.bits) if value >> (type.bits - 1) else value)
    if type.name == "f16":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if type.name != "f64":
        # A float is written as the double of the same value, which must be exact.
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def global_name(name: str) -> str:
    """A function's name with its sigil, quoted where it has to be."""
    return f"@{name}" if _PLAIN_NAME(name) else '@"' + _escaped(name) + '"'


def _escaped(name: str) -> str:
    return "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\' else _hex(c) for c in name
    )


def _hex(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())

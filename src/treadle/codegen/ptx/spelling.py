"""How types, constants and names are written in PTX.

A scalar has three spellings: the *register* that holds it (`b32`), the *kind* that instructions
compute it as (`s32`), and the type that it is *stored* as (`s8`). Integers of 8 and 16 bits are
held and computed in 32, sign or zero extended; a bf16 is a float32 whose low half is zero; a bool
is a predicate, and a byte in memory.
"""

from __future__ import annotations

import re
import struct

from treadle.ir.types import Scalar

REGISTERS: dict[str, str] = {
    "bool": "pred", "i8": "b32", "u8": "b32", "i16": "b32", "u16": "b32", "i32": "b32",
    "u32": "b32", "i64": "b64", "u64": "b64", "f16": "b16", "bf16": "f32", "f32": "f32",
    "f64": "f64",
}  # fmt: skip
"""The type of register that holds a scalar."""

PREFIXES: dict[str, str] = {
    "pred": "%p", "b16": "%h", "b32": "%r", "b64": "%rd", "f32": "%f", "f64": "%fd",
}  # fmt: skip
"""What the names of numbered registers begin with."""

KINDS: dict[str, str] = {
    "bool": "pred", "i8": "s32", "u8": "u32", "i16": "s32", "u16": "u32", "i32": "s32",
    "u32": "u32", "i64": "s64", "u64": "u64", "f16": "f16", "bf16": "f32", "f32": "f32",
    "f64": "f64",
}  # fmt: skip
"""The type that instructions compute a scalar as."""

LOADED: dict[str, str] = {
    "bool": "u8", "i8": "s8", "u8": "u8", "i16": "s16", "u16": "u16", "i32": "u32", "u32": "u32",
    "i64": "u64", "u64": "u64", "f16": "b16", "bf16": "u16", "f32": "f32", "f64": "f64",
}  # fmt: skip
"""The type that a scalar is loaded as."""

STORED: dict[str, str] = LOADED | {"i8": "u8", "i16": "u16"}
"""The type that a scalar is stored as."""

RAW: dict[str, str] = REGISTERS | {"bool": "b32", "bf16": "b32"}
"""The type of register that holds a scalar as it lies in memory."""

MOVES: dict[str, str] = {
    "pred": "mov.pred", "b16": "mov.b16", "b32": "mov.u32", "b64": "mov.u64", "f32": "mov.f32",
    "f64": "mov.f64",
}  # fmt: skip
"""The instruction that copies a register."""

ZEROS: dict[str, str] = {
    "pred": "0", "b16": "0x0", "b32": "0", "b64": "0", "f32": "0f00000000",
    "f64": "0d0000000000000000",
}  # fmt: skip
"""The zero of each type of register."""


def is_literal(operand: str) -> bool:
    """Whether an operand is a number, rather than a register or a memory's name."""
    return operand[0] in "-0123456789"


def constant(type: Scalar, value: bool | int | float) -> str:
    """A number as an operand (of a bool: for mov.pred only)."""
    if not type.is_float:
        return str(int(value))
    if type.bits == 64:
        return f"0d{_float_bits(value, '<d', '<Q'):016X}"
    if type.name == "f16":
        return f"0x{_float_bits(value, '<e', '<H'):X}"
    return f"0f{_float_bits(value, '<f', '<I'):08X}"


def _float_bits(value: float, form: str, integer: str) -> int:
    return int(struct.unpack(integer, struct.pack(form, value))[0])


_FOREIGN = re.compile(r"[^A-Za-z0-9_]")
_RESERVED = frozenset({"WARP_SZ", "_"})
# Numbered registers, and PTX's own.
_SPECIAL = re.compile(
    r"(p|h|r|rd|f|fd|envreg|pm)\d+(_64)?|n?(tid|ctaid|warpid|smid)|laneid|gridid|lanemask_..|clock.*"
    r"|globaltimer.*|cluster.*|is_.*|reserved_.*|.*_smem_size|current_.*"
).fullmatch


def identifier(name: str) -> str:
    """A name as PTX allows it: other letters by their number, dots and the like as `_`."""

    def spell(match: re.Match[str]) -> str:
        letter = match[0]
        return f"_u{ord(letter):x}" if ord(letter) > 127 else "_"

    plain = _FOREIGN.sub(spell, name)
    if not plain or plain[0].isdigit() or plain[0] == "_":
        plain = f"k{plain}"
    return f"{plain}_" if plain in _RESERVED else plain


def register_name(name: str) -> str:
    """A name as a register's, unlike those that PTX or the printer have."""
    plain = identifier(name)
    return f"{plain}_" if _SPECIAL(plain) else plain


class Names:
    """Names of one kind in a module: each given out once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """The name, with a number if it is used already."""
        plain = candidate = identifier(name)
        while candidate in self._taken:
            self._counts[plain] = count = self._counts.get(plain, 1) + 1
            candidate = f"{plain}_{count}"
        self._taken.add(candidate)
        return candidate

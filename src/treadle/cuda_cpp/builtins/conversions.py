"""Bit casts, and conversions between numbers with a rounding mode in their names."""

from __future__ import annotations

from collections.abc import Callable

from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import (
    INTEGERS,
    Recipe,
    Table,
    binary,
    bits_as,
    cast,
    merged,
    of_bits,
)
from treadle.cuda_cpp.builtins.rounding import (
    narrowed,
    rounded_to_integer,
    widened_integer,
)
from treadle.ir import nodes as n
from treadle.ir import types as t

MODES = ("rn", "rz", "ru", "rd")
Conversion = Callable[[Maker, n.Expression, t.Scalar, str], n.Expression]


def in_mode(conversion: Conversion, type: t.Scalar, mode: str) -> Recipe:
    """A conversion to `type` in one rounding mode."""
    return lambda maker, value: conversion(maker, value, type, mode)


def _high_word(maker: Maker, value: n.Expression) -> n.Expression:
    return cast(binary("shr", bits_as(value, t.I64), 32), t.I32)


def _low_word(maker: Maker, value: n.Expression) -> n.Expression:
    return cast(bits_as(value, t.I64), t.I32)


def _from_words(maker: Maker, high: n.Expression, low: n.Expression) -> n.Expression:
    upper = binary("shl", cast(cast(high, t.U32), t.U64), 32)
    return bits_as(binary("or", upper, cast(cast(low, t.U32), t.U64)), t.F64)


_CASTS: Table = {
    name: (Overload((source,), target, of_bits(target)),)
    for name, source, target in (
        ("__float_as_int", t.F32, t.I32), ("__int_as_float", t.I32, t.F32),
        ("__float_as_uint", t.F32, t.U32), ("__uint_as_float", t.U32, t.F32),
        ("__double_as_longlong", t.F64, t.I64), ("__longlong_as_double", t.I64, t.F64),
    )
}  # fmt: skip
_WORDS: Table = {
    "__double2hiint": (Overload((t.F64,), t.I32, _high_word),),
    "__double2loint": (Overload((t.F64,), t.I32, _low_word),),
    "__hiloint2double": (Overload((t.I32, t.I32), t.F64, _from_words),),
}

_FLOATS = {"float": t.F32, "double": t.F64}
_INTEGERS = {"int": t.I32, "uint": t.U32, "ll": t.I64, "ull": t.U64}


def _between_floats_and_integers() -> Table:
    table: Table = {}
    for floating, float_type in _FLOATS.items():
        for integer, integer_type in _INTEGERS.items():
            for mode in MODES:
                to_integer = in_mode(rounded_to_integer, integer_type, mode)
                table[f"__{floating}2{integer}_{mode}"] = (
                    Overload((float_type,), integer_type, to_integer),
                )
                to_float = in_mode(widened_integer, float_type, mode)
                note = INTEGERS if mode != "rn" else ""
                table[f"__{integer}2{floating}_{mode}"] = (
                    Overload((integer_type,), float_type, to_float, note),
                )
    # A double holds every int, so CUDA has one rounding of these only.
    for name in ("__int2double", "__uint2double"):
        for mode in ("rz", "ru", "rd"):
            del table[f"{name}_{mode}"]
    return table


def _between_floats() -> Table:
    return {
        f"__double2float_{mode}": (
            Overload(
                (t.F64,), t.F32, in_mode(narrowed, t.F32, mode), "" if mode == "rn" else INTEGERS
            ),
        )
        for mode in MODES
    }


FUNCTIONS: Table = merged(_CASTS, _WORDS, _between_floats_and_integers(), _between_floats())

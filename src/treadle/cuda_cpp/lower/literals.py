"""Numbers as they are written."""

from __future__ import annotations

from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.values import (
    Rvalue,
    Value,
)
from treadle.cuda_cpp.meaning.types import (
    ARITHMETIC,
    BOOL,
    CHAR,
    FLOAT,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_INTEGER_TYPES = {
    "": ("int", "long", "long long"),
    "u": ("unsigned int", "unsigned long", "unsigned long long"),
    "l": ("long", "long long"),
    "ul": ("unsigned long", "unsigned long long"),
    "ll": ("long long",),
    "ull": ("unsigned long long",),
}


def lower_integer(cx: Context, node: tree.IntegerLiteral) -> Value:
    candidates = list(_INTEGER_TYPES[node.suffix])
    if not node.decimal and "u" not in node.suffix:
        candidates = [name for signed in candidates for name in (signed, _unsigned_name(signed))]
    for name in candidates:
        type = ARITHMETIC[name]
        if node.value < 1 << (type.scalar.bits - type.scalar.is_signed):
            made = n.Constant(node.value, type.scalar, node.span)
            return Rvalue(made, type, literal_zero=node.value == 0)
    raise cx.error(f"{node.value} fits no integer type", node.span)


def _unsigned_name(name: str) -> str:
    return "unsigned int" if name == "int" else f"unsigned {name}"


def lower_float(cx: Context, node: tree.FloatLiteral) -> Value:
    type = FLOAT if node.suffix == "f" else ARITHMETIC["double"]
    return Rvalue(constant(node.value, type.scalar, node.span), type)


def lower_character(cx: Context, node: tree.CharacterLiteral) -> Value:
    return Rvalue(constant(node.value, CHAR.scalar, node.span), CHAR)


def lower_bool(cx: Context, node: tree.BoolLiteral) -> Value:
    return Rvalue(n.Constant(node.value, ir.BOOL, node.span), BOOL)

"""Workarounds for ptxas: operations that it compiles wrongly, as others that it compiles correctly.

`codegen.faults` lists the faults and the versions. Both need a constant that only ptxas finds,
after it has fused operations. So the printed text does not show whether a kernel triggers them, and
every operation that could is replaced. Each function returns the operand that holds the result, or
"" where the plain instruction is correct.
"""

from __future__ import annotations

from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.spelling import REGISTERS, is_literal
from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import Scalar

FUSES_ADDITIONS = range(90, 120)
"""The architectures that add and choose the larger in one instruction (VIADDMNMX)."""

_LARGEST = (1 << 31) - 1
_SIGN = str(-1 << 31)
_WHOLE = frozenset({"add", "sub", "mul"})  # of 64 bits: what ptxas folds in time


def _word(operand: str) -> int | None:
    """A literal as 32 bits."""
    return int(operand) % (1 << 32) if is_literal(operand) else None


def binary(e: Emitter, op: str, type: Scalar, a: str, b: str) -> str:
    """An addition, subtraction or exclusive or of 32-bit registers."""
    if REGISTERS[type.name] != "b32" or (is_literal(a) and is_literal(b)):
        return ""
    if op in ("add", "xor") and is_literal(a):
        a, b = b, a
    if (op, _word(b)) in (("add", _LARGEST), ("sub", -_LARGEST % (1 << 32))):
        return e.op("b32", "add.s32", e.op("b32", "xor.b32", a, _SIGN), "-1")
    if (op, _word(b)) == ("xor", _LARGEST):
        return e.op("b32", "sub.s32", "-1", e.op("b32", "xor.b32", a, _SIGN))
    if (op, _word(a)) == ("sub", _LARGEST):
        return e.op("b32", "add.s32", e.op("b32", "sub.s32", _SIGN, b), "-1")
    if op == "sub" and e.module.keeps_negations and not (is_literal(a) or is_literal(b)):
        sum = e.op("b32", "add.s32", e.op("b32", "not.b32", a), b)
        return e.op("b32", "not.b32", sum)
    return ""


def negation(e: Emitter, type: Scalar, a: str) -> str:
    """The negative of a 32-bit register."""
    if REGISTERS[type.name] != "b32" or not e.module.keeps_negations or is_literal(a):
        return ""
    return e.op("b32", "add.s32", e.op("b32", "not.b32", a), "1")


def finds_constants_late(kernel: n.Kernel) -> bool:
    """Whether a kernel computes with 64-bit integers what ptxas splits into halves before it looks
    for constants: bits, shifts, the smaller and the larger of two."""
    for body in (kernel.body, *(function.body for function in kernel.functions)):
        for node in walk(body):
            match node:
                case n.Binary(op=op, type=Scalar(bits=64, is_integer=True)) if op not in _WHOLE:
                    return True
                case n.Unary(type=Scalar(bits=64, is_integer=True)):
                    return True
                case n.Intrinsic(type=Scalar(bits=64, is_integer=True)):
                    return True
    return False

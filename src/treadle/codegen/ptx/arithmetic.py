"""Unary and binary operations on scalars.

Every function appends to an emitter and returns the operand that holds the result. What PTX leaves
undefined (a zero divisor), or does in another width, is given the IR's meaning here.
"""

from __future__ import annotations

from treadle.codegen.ptx import casts, ptxas_workarounds
from treadle.codegen.ptx.division import divide
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.spelling import KINDS, REGISTERS, constant, is_literal
from treadle.ir.intervals import Interval
from treadle.ir.types import BF16, F16, F32, SCALARS, Scalar

_PLAIN = {"add": "add", "sub": "sub", "mul": "mul.lo"}
_FLOAT_TESTS = {"ne": "neu"}  # true for NaN, as the IR's is
DIVISIONS = frozenset({"div", "rem", "floordiv", "mod"})


def binary(
    e: Emitter,
    op: str,
    type: Scalar,
    a: str,
    b: str,
    bounds: tuple[Interval | None, Interval | None] = (None, None),
) -> str:
    """An arithmetic or bitwise operation; both operands and the result have one type. `bounds` is
    what is known of integer operands."""
    if type.is_float:
        return _float_binary(e, op, type, a, b)
    if op in _PLAIN:
        around = ptxas_workarounds.binary(e, op, type, a, b)
        if around:
            return casts.wrapped(e, type, around)
        result = e.op(REGISTERS[type.name], f"{_PLAIN[op]}.{KINDS[type.name]}", a, b)
        return casts.wrapped(e, type, result)
    if op in ("and", "or", "xor"):
        kind = REGISTERS[type.name]
        return ptxas_workarounds.binary(e, op, type, a, b) or e.op(kind, f"{op}.{kind}", a, b)
    if op in DIVISIONS:
        return divide(e, op, type, a, b, bounds)
    return _shift(e, op, type, a, b)


def compare(e: Emitter, op: str, type: Scalar, a: str, b: str) -> str:
    """A comparison, giving a predicate."""
    if type.name == "bool":
        differ = e.op("pred", "xor.pred", a, b)
        return differ if op == "ne" else e.op("pred", "not.pred", differ)
    if type.is_float:
        op = _FLOAT_TESTS.get(op, op)
    return e.op("pred", f"setp.{op}.{KINDS[type.name]}", a, b)


def unary(e: Emitter, op: str, type: Scalar, a: str) -> str:
    """neg, not (of a bool) or invert (of an integer's bits)."""
    kind = REGISTERS[type.name]
    if op == "not":
        return e.op("pred", "not.pred", a)
    if op == "invert":
        return casts.wrapped(e, type, e.op(kind, f"not.{kind}", a))
    if type == F16:
        return e.op("b16", "xor.b16", a, "0x8000")
    if type.is_float:
        return e.op(kind, f"neg.{kind}", a)
    negated = ptxas_workarounds.negation(e, type, a) or e.op(kind, f"neg.s{kind[1:]}", a)
    return casts.wrapped(e, type, negated)


def select(e: Emitter, type: Scalar, condition: str, a: str, b: str) -> str:
    """`a` where the condition holds, else `b`."""
    kind = REGISTERS[type.name]
    if a == b:
        return a
    if kind != "pred":
        return e.op(kind, f"selp.{kind}", a, b, condition)
    yes = e.op("pred", "and.pred", condition, a)
    otherwise = e.op("pred", "not.pred", condition)
    no = e.op("pred", "and.pred", otherwise, b)
    return e.op("pred", "or.pred", yes, no)


# --- floats ---------------------------------------------------------------------------------------


def _float_binary(e: Emitter, op: str, type: Scalar, a: str, b: str) -> str:
    if op == "div":
        return _float_divide(e, type, a, b)
    result = e.op(REGISTERS[type.name], f"{op}.{KINDS[type.name]}", a, b)
    return casts.to_bfloat(e, result) if type == BF16 else result


def _float_divide(e: Emitter, type: Scalar, a: str, b: str) -> str:
    """Halves are divided in float32, whose quotient rounds to theirs."""
    if type.bits == 16:
        wide = (casts.cast(e, type, F32, operand) for operand in (a, b))
        return casts.cast(e, F32, type, _float_divide(e, F32, *wide))
    kind = REGISTERS[type.name]
    if e.module.fast and kind == "f32":
        return e.op(kind, "div.full.f32", a, b)
    if a == constant(type, 1.0):
        return e.op(kind, f"rcp.rn.{kind}", b)
    return e.op(kind, f"div.rn.{kind}", a, b)


# --- integers -------------------------------------------------------------------------------------


def _shift(e: Emitter, op: str, type: Scalar, a: str, b: str) -> str:
    """A shift. PTX takes the amount as an unsigned 32-bit number, and by the width or more it
    shifts everything out, as it should."""
    kind = REGISTERS[type.name]
    if type.bits == 64:
        if is_literal(b):
            b = str(min(int(b) % (1 << 64), 64))
        else:
            b = e.op("b32", "cvt.u32.u64", e.op("b64", "min.u64", b, "64"))
    elif is_literal(b):
        b = str(int(b) % (1 << 32))
    if op == "shl":
        return casts.wrapped(e, type, e.op(kind, f"shl.{kind}", a, b))
    return e.op(kind, f"shr.{KINDS[type.name]}", a, b)


def multiply_high(e: Emitter, type: Scalar, a: str, b: str) -> str:
    """The upper half of a product."""
    kind, compute = REGISTERS[type.name], KINDS[type.name]
    if type.bits >= 32:
        return e.op(kind, f"mul.hi.{compute}", a, b)
    product = e.op(kind, f"mul.lo.{compute}", a, b)
    return e.op(kind, f"shr.{compute}", product, str(type.bits))


def count_bits(e: Emitter, op: str, type: Scalar, a: str) -> str:
    """popcount, clz or ctz of an integer of any width, as an i32."""
    kind = REGISTERS[type.name]
    if type.bits < 32 and type.is_signed:
        a = casts.cast(e, type, SCALARS[f"u{type.bits}"], a)
    if op == "popcount":
        return e.op("b32", f"popc.{kind}", a)
    if op == "clz":
        zeros = e.op("b32", f"clz.{kind}", a)
        return zeros if type.bits >= 32 else e.op("b32", "sub.s32", zeros, str(32 - type.bits))
    if type.bits < 32:  # a bit above the number stops the count there
        a = e.op("b32", "or.b32", a, str(1 << type.bits))
    return e.op("b32", f"clz.{kind}", e.op(kind, f"brev.{kind}", a))


def reverse_bits(e: Emitter, type: Scalar, a: str) -> str:
    """An integer's bits in the opposite order."""
    kind = REGISTERS[type.name]
    turned = e.op(kind, f"brev.{kind}", a)
    if type.bits >= 32:
        return turned
    return e.op(kind, f"shr.{KINDS[type.name]}", turned, str(32 - type.bits))

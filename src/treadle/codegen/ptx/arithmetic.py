"""Unary and binary operations on scalars.

Every function appends to an emitter and returns the operand that holds the result. What PTX leaves
undefined (a zero divisor), or does in another width, is given the IR's meaning here.
"""

from __future__ import annotations

from treadle.codegen.intervals import Interval
from treadle.codegen.ptx import casts
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.spelling import KINDS, REGISTERS, constant, is_literal
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
        result = e.op(REGISTERS[type.name], f"{_PLAIN[op]}.{KINDS[type.name]}", a, b)
        return casts.wrapped(e, type, result)
    if op in ("and", "or", "xor"):
        kind = REGISTERS[type.name]
        return e.op(kind, f"{op}.{kind}", a, b)
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
    return casts.wrapped(e, type, e.op(kind, f"neg.s{kind[1:]}", a))


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


def divide(
    e: Emitter,
    op: str,
    type: Scalar,
    a: str,
    b: str,
    bounds: tuple[Interval | None, Interval | None] = (None, None),
) -> str:
    """A quotient or remainder; a divisor of 0 gives 0, and the lowest number by -1 wraps."""
    kind, compute = REGISTERS[type.name], KINDS[type.name]
    of_a, of_b = bounds
    if is_literal(b) and int(b) == 0:
        return "0"
    never_zero = is_literal(b) or (of_b is not None and (of_b[0] > 0 or of_b[1] < 0))
    positive = (is_literal(b) and int(b) > 0) or (of_b is not None and of_b[0] > 0)
    if type.is_signed and of_a is not None and of_a[0] >= 0 and positive:
        compute = f"u{kind[1:]}"  # without signs, truncating and flooring are one
    floors = op in ("floordiv", "mod") or compute[0] == "u"
    if floors and is_literal(b) and positive and int(b) & (int(b) - 1) == 0:
        if op in ("floordiv", "div"):
            return e.op(kind, f"shr.{compute}", a, str(int(b).bit_length() - 1))
        return e.op(kind, f"and.{kind}", a, str(int(b) - 1))
    signed = compute[0] == "s"
    if not signed and op in ("rem", "mod"):
        result = e.op(kind, f"rem.{compute}", a, b)
        return _unless_zero(e, type, b, result, never_zero)
    quotient = e.op(kind, f"div.{compute}", a, b)
    if op == "div" or not signed:
        return _unless_zero(e, type, b, casts.wrapped(e, type, quotient), never_zero)
    product = e.op(kind, f"mul.lo.{compute}", quotient, b)
    rest = e.op(kind, f"sub.{compute}", a, product)
    if op != "rem":
        rest = _floored(e, op, kind, quotient, rest, b, positive)
    return _unless_zero(e, type, b, casts.wrapped(e, type, rest), never_zero)


def _floored(
    e: Emitter, op: str, kind: str, quotient: str, rest: str, b: str, positive: bool
) -> str:
    """The quotient or remainder of a flooring division, from those of a truncating one: one lower
    where the remainder is not zero and has not the divisor's sign."""
    last, compute = str(int(kind[1:]) - 1), f"s{kind[1:]}"
    if positive:
        move = e.op(kind, f"shr.{compute}", rest, last)  # -1 or 0
    else:
        differ = e.op("pred", f"setp.lt.{compute}", e.op(kind, f"xor.{kind}", rest, b), "0")
        inexact = e.op("pred", f"setp.ne.{compute}", rest, "0")
        wrong = e.op("pred", "and.pred", differ, inexact)
        move = e.op(kind, f"selp.{kind}", "-1", "0", wrong)
    if op == "floordiv":
        return e.op(kind, f"add.{compute}", quotient, move)
    return e.op(kind, f"add.{compute}", rest, e.op(kind, f"and.{kind}", move, b))


def _unless_zero(e: Emitter, type: Scalar, divisor: str, result: str, never_zero: bool) -> str:
    if never_zero:
        return result
    kind = REGISTERS[type.name]
    by_zero = e.op("pred", f"setp.eq.{KINDS[type.name]}", divisor, "0")
    return e.op(kind, f"selp.{kind}", "0", result, by_zero)


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

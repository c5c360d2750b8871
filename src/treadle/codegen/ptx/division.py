"""Quotients and remainders of integers.

PTX leaves a divisor of 0 undefined, has no flooring division, and ptxas divides by numbers as it
does by anything else: slowly. So a division by a number becomes a multiplication here (Granlund
and Montgomery, "Division by invariant integers using multiplication", 1994), and one of 64 bits
looks first whether 32 are enough.
"""

from __future__ import annotations

from treadle.codegen.ptx import casts
from treadle.codegen.ptx.emitter import Emitter, when
from treadle.codegen.ptx.spelling import KINDS, REGISTERS, is_literal
from treadle.ir.intervals import Interval
from treadle.ir.types import Scalar


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
    number = int(b) if is_literal(b) else None
    if number == 0:
        return "0"
    positive = number > 0 if number is not None else of_b is not None and of_b[0] > 0
    never_zero = number is not None or (of_b is not None and (of_b[0] > 0 or of_b[1] < 0))
    if type.is_signed and of_a is not None and of_a[0] >= 0 and positive:
        compute = f"u{kind[1:]}"  # without signs, truncating and flooring are one
    floors = op in ("floordiv", "mod")
    if number is not None and number > 0:
        most = of_a[1] if of_a is not None and compute[0] == "u" else (1 << type.bits) - 1
        quotient = _by_number(e, compute, a, number, most, floors)
        if op in ("mod", "rem") and number & (number - 1) == 0 and (floors or compute[0] == "u"):
            return e.op(kind, f"and.{kind}", a, str(number - 1))
        return quotient if op in ("div", "floordiv") else _rest(e, compute, a, quotient, b)
    quotient = _quotient(e, compute, a, b)
    if op == "div" or (op == "floordiv" and compute[0] == "u"):
        result = quotient
    else:
        result = _rest(e, compute, a, quotient, b)
        if floors and compute[0] == "s":
            result = _floored(e, op, compute, quotient, result, b, positive)
    result = casts.wrapped(e, type, result)
    if never_zero:
        return result
    by_zero = e.op("pred", f"setp.eq.{KINDS[type.name]}", b, "0")
    return e.op(kind, f"selp.{kind}", "0", result, by_zero)


def _rest(e: Emitter, compute: str, a: str, quotient: str, b: str) -> str:
    kind = f"b{compute[1:]}"
    return e.op(kind, f"sub.{compute}", a, e.op(kind, f"mul.lo.{compute}", quotient, b))


def _floored(
    e: Emitter, op: str, compute: str, quotient: str, remainder: str, b: str, positive: bool
) -> str:
    """The quotient or remainder of a flooring division, from those of a truncating one: one lower
    where the remainder is not zero and its sign is not the divisor's."""
    kind = f"b{compute[1:]}"
    if positive:
        move = e.op(kind, f"shr.{compute}", remainder, str(int(kind[1:]) - 1))  # -1 or 0
    else:
        differ = e.op("pred", f"setp.lt.{compute}", e.op(kind, f"xor.{kind}", remainder, b), "0")
        inexact = e.op("pred", f"setp.ne.{compute}", remainder, "0")
        wrong = e.op("pred", "and.pred", differ, inexact)
        move = e.op(kind, f"selp.{kind}", "-1", "0", wrong)
    if op == "floordiv":
        return e.op(kind, f"add.{compute}", quotient, move)
    return e.op(kind, f"add.{compute}", remainder, e.op(kind, f"and.{kind}", move, b))


def _quotient(e: Emitter, compute: str, a: str, b: str) -> str:
    """The truncated quotient by an unknown divisor."""
    if compute[1:] == "32":
        return e.op("b32", f"div.{compute}", a, b)
    result = e.register("b64")
    short, end = e.new_label("short"), e.new_label("end")
    either = e.op("b64", "or.b64", a, b)
    e.jump(short, when(e.op("pred", "setp.lt.u64", either, str(1 << 32))))
    e.ops([result], f"div.{compute}", a, b)
    e.jump(end)
    e.place(short)
    low = [e.op("b32", "cvt.u32.u64", operand) for operand in (a, b)]
    e.ops([result], "cvt.u64.u32", e.op("b32", "div.u32", *low))
    e.place(end)
    return result


# --- divisors that are numbers --------------------------------------------------------------------


def _by_number(e: Emitter, compute: str, a: str, divisor: int, most: int, floors: bool) -> str:
    """The quotient by a positive number, truncated or floored. `most`: the largest dividend."""
    kind, bits = f"b{compute[1:]}", int(compute[1:])
    if compute[0] == "u":
        return _unsigned(e, kind, a, divisor, most)
    exponent = divisor.bit_length() - 1
    power = divisor == 1 << exponent
    if power and floors:
        return e.op(kind, f"shr.{compute}", a, str(exponent))
    sign = e.op(kind, f"shr.{compute}", a, str(bits - 1))  # -1 or 0
    if power:  # move negative numbers up, so that the shift rounds to zero
        up = e.op(kind, f"and.{kind}", sign, str(divisor - 1))
        return e.op(kind, f"shr.{compute}", e.op(kind, f"add.{compute}", a, up), str(exponent))
    # For a negative a: the floor is ~(~a / d), truncated it is -(-a / d); both as numbers >= 0.
    size = e.op(kind, f"xor.{kind}", a, sign)
    if not floors:
        size = e.op(kind, f"sub.{compute}", size, sign)
    quotient = _unsigned(e, kind, size, divisor, (1 << bits - 1) - floors)
    quotient = e.op(kind, f"xor.{kind}", quotient, sign)
    return quotient if floors else e.op(kind, f"sub.{compute}", quotient, sign)


def _unsigned(e: Emitter, kind: str, a: str, divisor: int, most: int) -> str:
    """The quotient of numbers that are not negative."""
    bits = int(kind[1:])
    exponent = divisor.bit_length() - 1
    if divisor == 1 << exponent:
        return e.op(kind, f"shr.u{bits}", a, str(exponent))
    found = multiplier(divisor, bits, most)
    if found is None and divisor % 2 == 0:
        zeros = (divisor & -divisor).bit_length() - 1
        a = e.op(kind, f"shr.u{bits}", a, str(zeros))
        found = multiplier(divisor >> zeros, bits, most >> zeros)
    if found is not None:
        factor, shift = found
        high = e.op(kind, f"mul.hi.u{bits}", a, str(factor))
        return e.op(kind, f"shr.u{bits}", high, str(shift)) if shift else high
    # The factor has one bit more than a register: that bit is the dividend itself, added in halves.
    shift = exponent + 1
    factor = -(-(1 << bits + shift) // divisor) - (1 << bits)
    high = e.op(kind, f"mul.hi.u{bits}", a, str(factor))
    half = e.op(kind, f"shr.u{bits}", e.op(kind, f"sub.u{bits}", a, high), "1")
    return e.op(kind, f"shr.u{bits}", e.op(kind, f"add.u{bits}", half, high), str(shift - 1))


def multiplier(divisor: int, bits: int, most: int) -> tuple[int, int] | None:
    """A factor of that many bits and a shift: a // divisor is (a * factor) >> (bits + shift) for
    every 0 <= a <= most. None if there is none."""
    for shift in range(divisor.bit_length() + 1):
        factor = -(-(1 << bits + shift) // divisor)
        if factor >= 1 << bits:
            return None
        # What the factor is too large by must not carry the largest dividend over an integer.
        if (factor * divisor - (1 << bits + shift)) * most < 1 << bits + shift:
            return factor, shift
    return None

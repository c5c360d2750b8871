"""Shorthands for IR expressions, and recipes that many functions of CUDA share.

A recipe uses `maker.let` for an operand that it uses more than once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as t

Recipe = Callable[..., n.Expression]
Table = dict[str, tuple[Overload, ...]]

LIBRARY = "treadle's own mathematics"
INTEGERS = "a few integer operations"
UNFUSED = "a select that keeps it from being fused"

# --- expressions ---------------------------------------------------------------------------------


def number(value: float, type: t.Type) -> n.Constant:
    """A constant of a scalar type, rounded to it."""
    assert isinstance(type, t.Scalar)
    if type.is_float:
        return n.Constant(arithmetic.round_float(float(value), type), type)
    return n.Constant(int(value), type)


def _operand(value: n.Expression | float, like: n.Expression) -> n.Expression:
    return value if not isinstance(value, (int, float)) else number(value, like.type)


def binary(op: str, left: n.Expression, right: n.Expression | float) -> n.Expression:
    """An arithmetic or bitwise operation; a number has the left operand's type."""
    return n.Binary(op, left, _operand(right, left), left.type)


def compare(op: str, left: n.Expression, right: n.Expression | float) -> n.Expression:
    return n.Binary(op, left, _operand(right, left), t.BOOL)


def both(left: n.Expression, right: n.Expression) -> n.Expression:
    return n.Binary("logical_and", left, right, t.BOOL)


def either(left: n.Expression, right: n.Expression) -> n.Expression:
    return n.Binary("logical_or", left, right, t.BOOL)


def negated(condition: n.Expression) -> n.Expression:
    return n.Unary("not", condition, t.BOOL)


def negative(value: n.Expression) -> n.Expression:
    return n.Unary("neg", value, value.type)


def choose(
    condition: n.Expression, if_true: n.Expression, if_false: n.Expression | float
) -> n.Expression:
    return n.Select(condition, if_true, _operand(if_false, if_true), if_true.type)


def cast(value: n.Expression, type: t.Type) -> n.Expression:
    return value if value.type == type else n.Cast(value, type)


def bits_as(value: n.Expression, type: t.Type) -> n.Expression:
    return value if value.type == type else n.Bitcast(value, type)


def intrinsic(op: str, *operands: n.Expression) -> n.Expression:
    """An intrinsic whose result has the type of its operand."""
    return n.Intrinsic(op, operands, operands[0].type)


def test(op: str, value: n.Expression) -> n.Expression:
    return n.Intrinsic(op, (value,), t.BOOL)


def count(op: str, value: n.Expression) -> n.Expression:
    return n.Intrinsic(op, (value,), t.I32)


def part(value: n.Expression, name: str) -> n.Expression:
    assert isinstance(value.type, t.Vector)
    return n.Extract(value, name, value.type.element)


def pair(x: n.Expression, y: n.Expression) -> n.Expression:
    assert isinstance(x.type, t.Scalar)
    return n.Construct((x, y), t.Vector(x.type, 2))


# --- recipes -------------------------------------------------------------------------------------


def of_library(name: str) -> Recipe:
    """A function of `treadle.lang.math`."""
    return lambda maker, *operands: maker.library(name, *operands)


def of_library_or_fast(name: str, fast: str) -> Recipe:
    """A function of the library; for float in a fastmath kernel the hardware's own."""

    def build(maker: Maker, *operands: n.Expression) -> n.Expression:
        if maker.fastmath and operands[0].type == t.F32:
            return intrinsic(fast, *operands)
        return maker.library(name, *operands)

    return build


def of_intrinsic(op: str) -> Recipe:
    return lambda maker, *operands: intrinsic(op, *operands)


def of_binary(op: str) -> Recipe:
    return lambda maker, left, right: binary(op, left, right)


def of_cast(type: t.Type) -> Recipe:
    return lambda maker, value: cast(value, type)


def of_bits(type: t.Type) -> Recipe:
    return lambda maker, value: bits_as(value, type)


def unfused(maker: Maker, value: n.Expression) -> n.Expression:
    """A value that is rounded by itself, as the `_rn` functions guarantee: it is neither fused with
    another operation nor simplified together with one. (The IR lets targets contract, and drivers
    simplify a + b - a to b, but not through a select.)"""
    value = maker.let(value)
    return choose(test("isnan", value), number(math.nan, value.type), value)


def unfused_binary(op: str) -> Recipe:
    """A sum, difference or product that is not fused with other operations."""

    def build(maker: Maker, left: n.Expression, right: n.Expression) -> n.Expression:
        operands = (
            unfused(maker, operand)
            if isinstance(operand, n.Binary) and operand.op == "mul" and op != "mul"
            else operand
            for operand in (left, right)
        )
        return unfused(maker, binary(op, *operands))

    return build


def least(maker: Maker, a: n.Expression, b: n.Expression) -> n.Expression:
    """C's fmin: if one operand is NaN, the other one. (The IR's `min` would give NaN.)"""
    return _extreme(maker, "min", a, b)


def greatest(maker: Maker, a: n.Expression, b: n.Expression) -> n.Expression:
    """C's fmax: if one operand is NaN, the other one."""
    return _extreme(maker, "max", a, b)


def _extreme(maker: Maker, op: str, a: n.Expression, b: n.Expression) -> n.Expression:
    if maker.fastmath:  # which guarantees nothing for NaN
        return intrinsic(op, a, b)
    if isinstance(a, n.Constant):
        a, b = b, a
    a = maker.let(a)
    if isinstance(b, n.Constant) and _decides(op, float(b.value)):
        # A comparison with NaN is false, and of equal numbers either is right.
        return choose(compare("gt" if op == "max" else "lt", a, b), a, b)
    b = maker.let(b)
    ordinary = intrinsic(op, a, b)
    return choose(test("isnan", a), b, choose(test("isnan", b), a, ordinary))


UNSIGNED: dict[t.Type, t.Scalar] = {t.F16: t.U16, t.BF16: t.U16, t.F32: t.U32, t.F64: t.U64}


def sign_mask(type: t.Scalar) -> n.Constant:
    """The sign bit of a float, in the unsigned integer of its size."""
    return number(1 << (type.bits - 1), UNSIGNED[type])


def with_sign(magnitude: n.Expression, sign: n.Expression) -> n.Expression:
    """C's copysign: a number with the sign bit of another."""
    type = magnitude.type
    assert isinstance(type, t.Scalar)
    unsigned = UNSIGNED[type]
    mask = sign_mask(type)
    taken = binary("and", bits_as(sign, unsigned), mask)
    size = bits_as(intrinsic("abs", magnitude), unsigned)
    return bits_as(binary("or", size, taken), type)


def _decides(op: str, constant: float) -> bool:
    """Whether a constant can be the result if the other operand is equal to it: not if that may be
    the zero of the other sign."""
    if constant == 0:
        return math.copysign(1, constant) == (1 if op == "max" else -1)
    return not math.isnan(constant)


def saturated(maker: Maker, value: n.Expression) -> n.Expression:
    """A number clamped between 0 and 1; NaN becomes 0."""
    value = maker.let(value)
    zero, one = number(0, value.type), number(1, value.type)
    above = compare("gt", value, 0.0)  # false for NaN
    return choose(above, choose(compare("lt", value, 1.0), value, one), zero)


def overloads(
    types: tuple[t.Scalar, ...], arity: int, build: Recipe, note: str = ""
) -> tuple[Overload, ...]:
    """Overloads whose parameters and result are of one type, for each type."""
    return tuple(Overload((type,) * arity, type, build, note) for type in types)


def merged(*tables: Table) -> Table:
    """Several tables as one; a name in two of them has the overloads of both."""
    result: Table = {}
    for table in tables:
        for name, found in table.items():
            result[name] = (*result.get(name, ()), *found)
    return result

"""Conversions between numbers in the rounding modes of CUDA's names: _rn _rz _ru _rd.

`n.Cast` rounds to nearest (from floats to integers: towards zero). The other modes correct its
result to the neighbour if it is on the wrong side: floats of one sign are ordered like their bits.
Nothing here depends on how a target computes with floats.
"""

from __future__ import annotations

from treadle.cuda_cpp.builtins.overload import Maker
from treadle.cuda_cpp.builtins.recipes import (
    UNSIGNED,
    binary,
    bits_as,
    both,
    cast,
    choose,
    compare,
    intrinsic,
    negated,
    negative,
    number,
    sign_mask,
    test,
)
from treadle.ir import nodes as n
from treadle.ir import types as t

# The rounding to a whole number of each mode. ("rna", that of C's round, is in `mathematics`.)
WHOLE = {"rn": "rint", "rz": "trunc", "ru": "ceil", "rd": "floor"}
_PRECISION = {t.F16: 11, t.BF16: 8, t.F32: 24, t.F64: 53}  # bits of a significand


def whole_number(maker: Maker, value: n.Expression, type: t.Scalar) -> n.Expression:
    """A float as an integer, truncated and clamped to the type's range, as by a cast on CUDA.

    NaN becomes 0, but from or to 64 bits the integer with only the highest bit set.
    """
    if type.bits != 64 and value.type != t.F64:
        return cast(value, type)
    value = maker.let(value)
    top = -(1 << (type.bits - 1)) if type.kind == "int" else 1 << (type.bits - 1)
    return choose(test("isnan", value), number(top, type), cast(value, type))


def rounded_to_integer(
    maker: Maker, value: n.Expression, type: t.Scalar, mode: str
) -> n.Expression:
    """A float as an integer, rounded in a direction."""
    whole = value if mode == "rz" else intrinsic(WHOLE[mode], value)
    return whole_number(maker, whole, type)


def narrowed(maker: Maker, value: n.Expression, type: t.Scalar, mode: str) -> n.Expression:
    """A float as a narrower float, rounded in a direction."""
    if mode == "rn":
        return cast(value, type)
    value = maker.let(value)
    near = maker.let(cast(value, type))
    back = maker.let(cast(near, value.type))
    unsigned = UNSIGNED[type]
    bits = maker.let(bits_as(near, unsigned))
    out, inwards = binary("add", bits, 1), binary("sub", bits, 1)
    below = compare("ne", binary("and", bits, sign_mask(type)), 0)
    match mode:
        case "rz":
            wrong = compare("gt", intrinsic("abs", back), intrinsic("abs", value))
            step = inwards
        case "ru":
            wrong = compare("lt", back, value)
            step = choose(below, inwards, out)
        case _:
            wrong = compare("gt", back, value)
            step = choose(below, out, inwards)
    return bits_as(choose(wrong, step, bits), type)


def widened_integer(maker: Maker, value: n.Expression, type: t.Scalar, mode: str) -> n.Expression:
    """An integer as a float or double, rounded in a direction."""
    source = value.type
    assert isinstance(source, t.Scalar)
    if mode == "rn" or source.bits <= _PRECISION[type]:
        return cast(value, type)
    value = maker.let(value)
    cut, lost = _cut(maker, value, type)
    below = compare("lt", value, 0)
    match mode:
        case "rz":
            away = None
        case "ru":
            away = both(lost, negated(below)) if source.is_signed else lost
        case _:
            away = both(lost, below) if source.is_signed else None
    if away is None:
        return _signed(maker, value, cast(cut, type))
    unsigned = UNSIGNED[type]
    bits = maker.let(bits_as(cast(cut, type), unsigned))
    return _signed(maker, value, bits_as(choose(away, binary("add", bits, 1), bits), type))


def integer_to_half(maker: Maker, value: n.Expression, type: t.Scalar, mode: str) -> n.Expression:
    """An integer as a half or bfloat16, rounded once in a direction: through a float that is
    rounded to odd (truncated, with a sticky last bit), so that it is on the right side."""
    source = value.type
    assert isinstance(source, t.Scalar)
    if source.bits <= _PRECISION[t.F32]:
        return narrowed(maker, cast(value, t.F32), type, mode)
    value = maker.let(value)
    cut, lost = _cut(maker, value, t.F32)
    bits = maker.let(bits_as(cast(cut, t.F32), t.U32))
    odd = bits_as(choose(lost, binary("or", bits, 1), bits), t.F32)
    return narrowed(maker, _signed(maker, value, odd), type, mode)


def _cut(maker: Maker, value: n.Expression, type: t.Scalar) -> tuple[n.Expression, n.Expression]:
    """An integer's magnitude truncated to the precision of a float type; whether it is inexact."""
    source = value.type
    assert isinstance(source, t.Scalar)
    unsigned = t.U64 if source.bits == 64 else t.U32
    size = value
    if source.is_signed:
        size = choose(compare("lt", value, 0), negative(value), value)
    size = maker.let(bits_as(size, unsigned))
    zeros = n.Intrinsic("clz", (size,), t.I32)
    surplus = binary("sub", number(unsigned.bits - _PRECISION[type], t.I32), zeros)
    surplus = cast(intrinsic("max", surplus, number(0, t.I32)), unsigned)
    ones = binary("sub", binary("shl", number(1, unsigned), surplus), 1)
    rest = maker.let(binary("and", size, ones))
    return binary("sub", size, rest), compare("ne", rest, 0)


def _signed(maker: Maker, value: n.Expression, magnitude: n.Expression) -> n.Expression:
    source = value.type
    assert isinstance(source, t.Scalar)
    if not source.is_signed:
        return magnitude
    magnitude = maker.let(magnitude)
    return choose(compare("lt", value, 0), negative(magnitude), magnitude)

"""Small functions in IR that replace operations which a target lacks.

Each entry of a table makes one function for one scalar type. Their bodies may use the very
operations they replace (`prelude.div_i32` divides), but only on operands on which every target
agrees: a divisor that is not zero, a shift that is in range, a float that fits the integer. So
printers print their bodies unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from treadle.ir import nodes as n
from treadle.ir.prelude_names import prelude_name
from treadle.ir.types import BOOL, F64, I32, U32, U64, Scalar, Type, Vector

# --- spelling ------------------------------------------------------------------------------------


def _number(value: bool | int | float, type: Type) -> n.Constant:
    assert isinstance(type, Scalar)
    return n.Constant(float(value) if type.is_float else value, type)


def _binary(op: str, left: n.Expression, right: n.Expression | int | float) -> n.Binary:
    if isinstance(right, int | float):
        right = _number(right, left.type)
    boolean = op in n.COMPARISONS or op in n.LOGICAL
    return n.Binary(op, left, right, BOOL if boolean else left.type)


def _both(left: n.Expression, right: n.Expression) -> n.Binary:
    return _binary("logical_and", left, right)


def _either(*conditions: n.Expression) -> n.Expression:
    result = conditions[0]
    for condition in conditions[1:]:
        result = _binary("logical_or", result, condition)
    return result


def _select(condition: n.Expression, yes: n.Expression, no: n.Expression) -> n.Select:
    return n.Select(condition, yes, no, yes.type)


def _call(operation: str, *arguments: n.Expression) -> n.Call:
    """A call of the prelude's function for the type of the first argument, with that result."""
    type = arguments[0].type
    return n.Call(prelude_name(operation, type), arguments, type)


def _is_nan(value: n.Expression) -> n.Intrinsic:
    return n.Intrinsic("isnan", (value,), BOOL)


def _function(
    name: str, parameters: tuple[n.Variable, ...], result: Type, body: n.Block
) -> n.Function:
    return n.Function(name, parameters, result, body)


def _three(type: Type) -> tuple[n.Variable, n.Variable, n.Variable]:
    return n.Variable("a", type), n.Variable("b", type), n.Variable("c", type)


def _two(type: Type) -> tuple[n.Variable, n.Variable]:
    return _three(type)[:2]


# Without branches: NVIDIA's Vulkan driver gets some of them wrong in loops (`codegen.faults`). The
# divisor is 1 where it is 0, and the result then chosen to be 0.
# --- division ------------------------------------------------------------------------------------


def _divisor(type: Scalar) -> tuple[n.Variable, n.Declare]:
    """The divisor to divide by, and its declaration."""
    _, b = _two(type)
    divisor = n.Variable("divisor", type)
    return divisor, n.Declare(divisor, _select(_binary("eq", b, 0), _number(1, type), b))


def _unless_by_zero(value: n.Expression) -> n.Return:
    _, b = _two(value.type)
    return n.Return(_select(_binary("eq", b, 0), _number(0, value.type), value))


def _div(type: Scalar) -> n.Block:
    a, _ = _two(type)
    divisor, declared = _divisor(type)
    return (declared, _unless_by_zero(_binary("div", a, divisor)))


def _rem(type: Scalar) -> n.Block:
    if type.is_float:
        return _float_rem(type)
    a, _ = _two(type)
    divisor, declared = _divisor(type)
    return (declared, _unless_by_zero(_integer_rem(a, divisor)))


def _div_words(type: Scalar) -> n.Block:
    """By halves: the dividend's upper 31 bits first. `a >> 1` has all its bits on every driver."""
    a, _ = _two(type)
    divisor, declared = _divisor(type)
    quotient, rest = n.Variable("quotient", type), n.Variable("rest", type)
    half = _binary("div", _binary("shr", a, 1), divisor)
    one_more = _select(_binary("ge", rest, divisor), _number(1, type), _number(0, type))
    return (
        declared,
        n.Declare(quotient, _binary("shl", half, 1)),
        n.Declare(rest, _binary("sub", a, _binary("mul", quotient, divisor))),
        _unless_by_zero(_binary("add", quotient, one_more)),
    )


def _rem_words(type: Scalar) -> n.Block:
    a, _ = _two(type)
    divisor, declared = _divisor(type)
    half, rest = n.Variable("half", type), n.Variable("rest", type)
    return (
        declared,
        n.Declare(half, _binary("div", _binary("shr", a, 1), divisor)),
        n.Declare(rest, _binary("sub", a, _binary("mul", _binary("shl", half, 1), divisor))),
        _unless_by_zero(_select(_binary("ge", rest, divisor), _binary("sub", rest, divisor), rest)),
    )


def _integer_rem(a: n.Variable, b: n.Variable) -> n.Expression:
    """The remainder of a truncating division. SPIR-V leaves a signed one undefined where an
    operand is negative, and NVIDIA's driver then gives the unsigned one: so from the quotient."""
    assert isinstance(a.type, Scalar)
    if not a.type.is_signed:
        return _binary("rem", a, b)
    return _binary("sub", a, _binary("mul", _binary("div", a, b), b))


def _floordiv(type: Scalar) -> n.Block:
    if type.is_float:
        return _float_floordiv(type)
    a, _ = _two(type)
    divisor, declared = _divisor(type)
    quotient = n.Variable("quotient", type)
    # Truncation rounds towards zero: one too high if there is a remainder and the signs differ.
    # Signs are compared as bits: of widened operands, Mesa gets `a < 0 != b < 0` wrong.
    inexact = _binary("ne", _binary("mul", quotient, divisor), a)
    differ = _binary("lt", _binary("xor", a, divisor), 0)
    return (
        declared,
        n.Declare(quotient, _binary("div", a, divisor)),
        _unless_by_zero(
            _select(_binary("and", inexact, differ), _binary("sub", quotient, 1), quotient)
        ),
    )


def _mod(type: Scalar) -> n.Block:
    a, b = _two(type)
    remainder = n.Variable("remainder", type)
    if type.is_float:
        differ = _binary("ne", _binary("lt", remainder, 0), _binary("lt", b, 0))
        # The remainder of the sign of the divisor, zeros included, as Python and NumPy give it.
        zero = _zero_signed_as(b, type)
        return (
            n.Declare(remainder, _call("rem", a, b)),
            n.If(_binary("eq", remainder, 0), (n.Return(zero),)),
            n.Return(_select(differ, _binary("add", remainder, b), remainder)),
        )
    divisor, declared = _divisor(type)
    differ = _binary("lt", _binary("xor", remainder, divisor), 0)
    wrong = _binary("and", _binary("ne", remainder, 0), differ)
    return (
        declared,
        n.Declare(remainder, _integer_rem(a, divisor)),
        _unless_by_zero(_select(wrong, _binary("add", remainder, divisor), remainder)),
    )


def _zero_signed_as(value: n.Expression, type: Scalar) -> n.Expression:
    """0 with the sign of a value. It is made of bits, as graphics drivers take one zero for the
    other when they choose between the two."""
    if type.bits < 32:
        zero = _number(0, type)
        negative = n.Intrinsic("signbit", (value,), BOOL)
        return _select(negative, n.Unary("neg", zero, type), zero)
    bits = U64 if type == F64 else U32
    return n.Bitcast(_binary("and", n.Bitcast(value, bits), 1 << type.bits - 1), type)


def _float_floordiv(type: Scalar) -> n.Block:
    a, b = _two(type)
    remainder, quotient, whole = (
        n.Variable(name, type) for name in ("remainder", "quotient", "whole")
    )
    differ = _binary("ne", _binary("lt", remainder, 0), _binary("lt", b, 0))
    wrong = _both(_binary("ne", remainder, 0), differ)
    # Exact up to rounding: what is divided is a multiple of the divisor.
    exact = _binary("div", _binary("sub", a, remainder), b)
    infinite = n.Intrinsic("isinf", (a,), BOOL)
    return (
        n.If(_binary("eq", b, 0), (n.Return(_binary("div", a, b)),)),
        n.If(infinite, (n.Return(_number(math.nan, type)),)),
        n.Declare(remainder, _call("rem", a, b)),
        n.Declare(quotient, _select(wrong, _binary("sub", exact, 1), exact)),
        n.If(
            _binary("eq", quotient, 0),
            (n.Return(_zero_signed_as(_binary("div", a, b), type)),),
        ),
        n.Declare(whole, n.Intrinsic("floor", (quotient,), type)),
        n.If(
            _binary("gt", _binary("sub", quotient, whole), 0.5),
            (n.Assign(whole, _binary("add", whole, 1)),),
        ),
        n.Return(whole),
    )


def _float_rem(type: Scalar) -> n.Block:
    """Long division of the mantissas, bit by bit: exact for every quotient."""
    bits, mantissa_bits = (U64, 52) if type == F64 else (U32, 23)
    hidden = 1 << mantissa_bits
    infinity = ((1 << bits.bits - 1 - mantissa_bits) - 1) << mantissa_bits
    a, b = _two(type)
    sign, ma, mb, ea, eb = (n.Variable(f"{v}", bits) for v in ("sign", "ma", "mb", "ea", "eb"))

    def bits_of(value: n.Expression) -> n.Expression:
        return n.Bitcast(value, bits)

    def exponent(magnitude: n.Expression) -> n.Expression:  # of a denormal: as if it were 1
        raw = _binary("shr", magnitude, mantissa_bits)
        return _select(_binary("eq", raw, 0), _number(1, bits), raw)

    def mantissa(magnitude: n.Expression) -> n.Expression:
        fraction = _binary("and", magnitude, hidden - 1)
        normal = _binary("ge", magnitude, hidden)
        return _select(normal, _binary("or", fraction, hidden), fraction)

    signless = (1 << bits.bits - 1) - 1
    undefined = _either(
        _binary("eq", mb, 0), _binary("ge", ma, infinity), _binary("gt", mb, infinity)
    )
    step = (
        n.Assign(ma, _binary("shl", ma, 1)),
        n.If(_binary("ge", ma, mb), (n.Assign(ma, _binary("sub", ma, mb)),)),
    )
    normalize = (n.Assign(ma, _binary("shl", ma, 1)),)
    denormal = _binary("lt", ma, hidden)
    packed = _binary("add", _binary("shl", eb, mantissa_bits), _binary("sub", ma, hidden))
    result = _binary("or", sign, _select(denormal, ma, packed))
    return (
        n.Declare(sign, _binary("and", bits_of(a), signless + 1)),
        n.Declare(ma, _binary("and", bits_of(a), signless)),
        n.Declare(mb, _binary("and", bits_of(b), signless)),
        n.If(undefined, (n.Return(_number(math.nan, type)),)),
        n.If(_binary("lt", ma, mb), (n.Return(a),)),
        n.Declare(ea, exponent(ma)),
        n.Declare(eb, exponent(mb)),
        n.Assign(ma, mantissa(ma)),
        n.Assign(mb, mantissa(mb)),
        n.Assign(ma, _binary("rem", ma, mb)),
        n.While(_binary("gt", ea, eb), step, (n.Assign(ea, _binary("sub", ea, 1)),)),
        n.If(_binary("eq", ma, 0), (n.Return(n.Bitcast(sign, type)),)),
        n.While(
            _both(_binary("lt", ma, hidden), _binary("gt", eb, 1)),
            normalize,
            (n.Assign(eb, _binary("sub", eb, 1)),),
        ),
        n.Return(n.Bitcast(result, type)),
    )


# --- shifts, minimum and maximum -----------------------------------------------------------------


def _shl(type: Scalar) -> n.Block:
    a, b = _two(type)
    in_range = _binary("lt", _unsigned(b), type.bits)
    shifted = _binary("shl", a, _binary("and", b, type.bits - 1))
    return (n.Return(_select(in_range, shifted, _number(0, type))),)


def _shr(type: Scalar) -> n.Block:
    a, b = _two(type)
    last = _number(type.bits - 1, type)
    in_range = _binary("lt", _unsigned(b), type.bits)
    beyond: n.Expression = _binary("shr", a, last) if type.is_signed else _number(0, type)
    shifted = _binary("shr", a, _binary("and", b, type.bits - 1))
    return (n.Return(_select(in_range, shifted, beyond)),)


def _unsigned(value: n.Variable) -> n.Expression:
    assert isinstance(value.type, Scalar)
    if not value.type.is_signed:
        return value
    return n.Bitcast(value, Scalar(f"u{value.type.bits}", "uint", value.type.bits))


def _extreme(op: str) -> Callable[[Scalar], n.Block]:
    def body(type: Scalar) -> n.Block:
        a, b = _two(type)
        either = _either(_is_nan(a), _is_nan(b))
        return (n.Return(_select(either, _binary("add", a, b), n.Intrinsic(op, (a, b), type))),)

    return body


def _odd_fma(type: Scalar) -> n.Block:
    """A product, which is exact, and a sum, rounded to odd: what the sum loses says whether its
    last bit must become 1, and which way. Mesa takes `(a + b) - a` for b: it does not see that
    through what holds a number to finite ones."""

    def held(value: n.Expression) -> n.Expression:
        most = _number(float.fromhex("0x1.fffffep127"), type)
        least = n.Intrinsic("max", (value, n.Unary("neg", most, type)), type)
        return n.Intrinsic("min", (least, most), type)

    a, b, c = _three(type)
    product, sum, added, lost = (
        n.Variable(name, type) for name in ("product", "sum", "added", "lost")
    )
    bits = n.Variable("bits", U32)
    of_product = _binary("sub", product, _binary("sub", sum, added))
    odd = _binary("ne", _binary("and", bits, 1), 0)
    further = _binary("eq", _binary("gt", lost, 0), _binary("gt", sum, 0))
    leaned = _select(further, _binary("add", bits, 1), _binary("sub", bits, 1))
    finite = n.Intrinsic("isfinite", (sum,), BOOL)
    stays = _either(_binary("eq", lost, 0), n.Unary("not", finite, BOOL), odd)
    return (
        n.Declare(product, _binary("mul", a, b)),
        n.Declare(sum, _binary("add", product, c)),
        n.Declare(added, held(_binary("sub", held(sum), product))),
        n.Declare(lost, _binary("add", of_product, _binary("sub", c, added))),
        n.Declare(bits, n.Bitcast(sum, U32)),
        n.Return(n.Bitcast(_select(stays, bits, leaned), type)),
    )


# --- bits ----------------------------------------------------------------------------------------


def _mul_high(type: Scalar) -> n.Block:
    """The upper half of a product from the products of halves."""
    half = type.bits // 2
    mask = (1 << half) - 1
    unsigned = Scalar(f"u{type.bits}", "uint", type.bits)
    a, b = _two(type)
    ua, ub, carry, middle, high = (
        n.Variable(name, unsigned) for name in ("ua", "ub", "carry", "middle", "high")
    )

    def low(value: n.Expression) -> n.Expression:
        return _binary("and", value, mask)

    def upper(value: n.Expression) -> n.Expression:
        return _binary("shr", value, half)

    body: n.Block = (
        n.Declare(ua, n.Bitcast(a, unsigned) if type.is_signed else a),
        n.Declare(ub, n.Bitcast(b, unsigned) if type.is_signed else b),
        n.Declare(
            carry,
            _binary(
                "add", _binary("mul", upper(ua), low(ub)), upper(_binary("mul", low(ua), low(ub)))
            ),
        ),
        n.Declare(middle, _binary("add", _binary("mul", low(ua), upper(ub)), low(carry))),
        n.Declare(
            high,
            _binary(
                "add",
                _binary("add", _binary("mul", upper(ua), upper(ub)), upper(carry)),
                upper(middle),
            ),
        ),
    )
    if not type.is_signed:
        return (*body, n.Return(high))
    zero = _number(0, unsigned)
    # A negative factor counts 2**bits too much as an unsigned one: take the other factor off.
    return (
        *body,
        n.Assign(high, _binary("sub", high, _select(_binary("lt", a, 0), ub, zero))),
        n.Assign(high, _binary("sub", high, _select(_binary("lt", b, 0), ua, zero))),
        n.Return(n.Bitcast(high, type)),
    )


def _dot4(left_is_signed: bool, right_is_signed: bool) -> Callable[[Scalar], n.Block]:
    """A number and the sum of the products of the bytes of two words."""

    def byte(word: n.Expression, at: int, signed: bool) -> n.Expression:
        if signed:
            return _binary("shr", _binary("shl", word, 24 - 8 * at) if at < 3 else word, 24)
        return _binary("and", _binary("shr", word, 8 * at) if at else word, 255)

    def body(type: Scalar) -> n.Block:
        a, b, total = _three(type)
        result: n.Expression = total
        for at in range(4):
            product = _binary("mul", byte(a, at, left_is_signed), byte(b, at, right_is_signed))
            result = _binary("add", result, product)
        return (n.Return(result),)

    return body


def _halves(value: n.Variable) -> tuple[n.Expression, n.Expression]:
    return n.Cast(value, U32), n.Cast(_binary("shr", value, 32), U32)


def _count(op: str, value: n.Expression) -> n.Intrinsic:
    return n.Intrinsic(op, (value,), I32)


def _popcount(type: Scalar) -> n.Block:
    low, high = _halves(n.Variable("a", type))
    return (n.Return(_binary("add", _count("popcount", low), _count("popcount", high))),)


def _clz(type: Scalar) -> n.Block:
    low, high = _halves(n.Variable("a", type))
    beyond = _binary("add", _count("clz", low), 32)
    return (n.Return(_select(_binary("eq", high, 0), beyond, _count("clz", high))),)


def _ctz(type: Scalar) -> n.Block:
    low, high = _halves(n.Variable("a", type))
    beyond = _binary("add", _count("ctz", high), 32)
    return (n.Return(_select(_binary("eq", low, 0), beyond, _count("ctz", low))),)


def _reverse_bits(type: Scalar) -> n.Block:
    low, high = _halves(n.Variable("a", type))
    new_high = _binary("shl", n.Cast(n.Intrinsic("reverse_bits", (low,), U32), type), 32)
    new_low = n.Cast(n.Intrinsic("reverse_bits", (high,), U32), type)
    return (n.Return(_binary("or", new_high, new_low)),)


# --- casts ---------------------------------------------------------------------------------------


def _in_two_words(a: n.Variable, target: Scalar) -> n.Block:
    """A float that fits, as 64 bits, from two conversions to 32: a driver that sees that fewer bits
    of one to 64 are needed may convert to fewer, which saturates there."""
    assert isinstance(a.type, Scalar)
    size, high, low = n.Variable("size", a.type), n.Variable("high", U32), n.Variable("low", U32)
    whole = n.Variable("whole", U64)
    above = _binary("mul", n.Cast(high, a.type), 2.0**32)  # exact: not more digits than `a` has
    words = _binary("or", _binary("shl", n.Cast(high, U64), 32), n.Cast(low, U64))
    body: n.Block = (
        n.Declare(size, n.Intrinsic("abs", (a,), a.type)),
        n.Declare(high, n.Cast(_binary("mul", size, 2.0**-32), U32)),
        n.Declare(low, n.Cast(_binary("sub", size, above), U32)),
        n.Declare(whole, words),
    )
    if not target.is_signed:
        return (*body, n.Return(whole))
    signed = n.Bitcast(whole, target)
    negative = _binary("lt", a, 0.0)
    return (*body, n.Return(_select(negative, n.Unary("neg", signed, target), signed)))


def float_to_integer(source: Scalar, target: Scalar) -> n.Function:
    """A cast that truncates, saturates, and turns NaN into 0."""
    a = n.Variable("a", source)
    low = -(1 << target.bits - 1) if target.is_signed else 0
    high = (1 << target.bits - target.is_signed) - 1
    # The float bounds are exact: powers of two (one above the highest integer), or 0.
    above = _binary("ge", a, float(high + 1))
    below = _binary("le", a, float(low))
    body = (
        n.If(_is_nan(a), (n.Return(_number(0, target)),)),
        n.If(above, (n.Return(_number(high, target)),)),
        n.If(below, (n.Return(_number(low, target)),)),
        *(_in_two_words(a, target) if target.bits == 64 else (n.Return(n.Cast(a, target)),)),
    )
    return _function(prelude_name("cast", source, target), (a,), target, body)


# operation: its body, and the number of its operands
_BODIES: dict[str, tuple[Callable[[Scalar], n.Block], int]] = {
    "div": (_div, 2), "rem": (_rem, 2), "div_words": (_div_words, 2), "rem_words": (_rem_words, 2),
    "floordiv": (_floordiv, 2), "mod": (_mod, 2),
    "shl": (_shl, 2), "shr": (_shr, 2),
    "min": (_extreme("min"), 2), "max": (_extreme("max"), 2), "mul_high": (_mul_high, 2),
    "dot4_i8": (_dot4(True, True), 3), "dot4_u8": (_dot4(False, False), 3),
    "dot4_u8i8": (_dot4(False, True), 3), "popcount": (_popcount, 1),
    "clz": (_clz, 1), "ctz": (_ctz, 1),
    "reverse_bits": (_reverse_bits, 1), "odd_fma": (_odd_fma, 3),
}  # fmt: skip
_COUNTS = frozenset({"popcount", "clz", "ctz"})


@cache
def operation(op: str, type: Scalar) -> n.Function:
    """The function for an operation on one scalar type."""
    body, operands = _BODIES[op]
    parameters = _three(type)[:operands]
    result = I32 if op in _COUNTS else type
    return _function(prelude_name(op, type), parameters, result, body(type))


@cache
def vector_operation(op: str, type: Vector) -> n.Function:
    """The function that applies an operation to each component of its operands."""
    _, operands = _BODIES[op]
    parameters = _three(type)[:operands]
    scalar = prelude_name(op, type.element)
    components = tuple(
        n.Call(
            scalar,
            tuple(n.Extract(operand, "xyzw"[i], type.element) for operand in parameters),
            type.element,
        )
        for i in range(type.count)
    )
    body = (n.Return(n.Construct(components, type)),)
    return _function(prelude_name(op, type), parameters, type, body)


def vector_float_to_integer(source: Vector, target: Vector) -> n.Function:
    """The saturating cast of each component."""
    a = n.Variable("a", source)
    scalar = prelude_name("cast", source.element, target.element)
    components = tuple(
        n.Call(scalar, (n.Extract(a, "xyzw"[i], source.element),), target.element)
        for i in range(source.count)
    )
    body = (n.Return(n.Construct(components, target)),)
    return _function(prelude_name("cast", source, target), (a,), target, body)

"""The IR's intrinsics on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from treadle.codegen.ptx import arithmetic
from treadle.codegen.ptx.casts import cast, wrapped
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.spelling import KINDS, REGISTERS, constant
from treadle.ir.types import F16, F32, F64, Scalar

Rule = Callable[[Emitter, Scalar, Sequence[str]], str]


def intrinsic(e: Emitter, op: str, type: Scalar, operands: Sequence[str]) -> str:
    """An intrinsic on operands of one scalar type (`dot` is not one of these)."""
    return _RULES[op](e, type, operands)


def _in_single(e: Emitter, type: Scalar, operands: Sequence[str], rule: Rule) -> str:
    """Apply a rule for float32 to another float."""
    if type == F32:
        return rule(e, F32, operands)
    wide = [cast(e, type, F32, operand) for operand in operands]
    return cast(e, F32, type, rule(e, F32, wide))


def _wide(rule: Rule) -> Rule:
    """A rule for float32 and float64, for all floats."""

    def widened(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
        return rule(e, type, operands) if type == F64 else _in_single(e, type, operands, rule)

    return widened


def _single(rule: Rule) -> Rule:
    """A rule for float32, for all floats."""
    return lambda e, type, operands: _in_single(e, type, operands, rule)


def _rounding(mode: str) -> Rule:
    def rule(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
        kind = KINDS[type.name]
        return e.op(kind, f"cvt.{mode}.{kind}.{kind}", operands[0])

    return _wide(rule)


def _sqrt(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    kind = KINDS[type.name]
    approximate = e.module.fast and kind == "f32"
    return e.op(kind, f"sqrt.{'approx' if approximate else 'rn'}.{kind}", operands[0])


def _fma(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    if type == F16:
        return e.op("b16", "fma.rn.f16", *operands)
    return _wide(_fused)(e, type, operands)


def _fused(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    kind = KINDS[type.name]
    return e.op(kind, f"fma.rn.{kind}", *operands)


def _abs(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    kind, (a,) = KINDS[type.name], operands
    if type == F16:
        return e.op("b16", "and.b16", a, "0x7FFF")
    if not type.is_signed:
        return a
    if type.is_float:
        return e.op(REGISTERS[type.name], f"abs.{kind}", a)
    # ptxas takes the result of `abs` for not negative, and that of the lowest number is negative.
    register = REGISTERS[type.name]
    return wrapped(e, type, e.op(register, f"max.{kind}", a, e.op(register, f"neg.{kind}", a)))


def _extreme(op: str) -> Rule:
    """Min or max. On floats PTX gives the other operand for NaN, without the modifier `.NaN`."""

    def on_floats(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
        kind = KINDS[type.name]
        if e.module.fast:
            return e.op(kind, f"{op}.{kind}", *operands)
        if kind == "f32" and e.module.has(80, (7, 0)):
            return e.op(kind, f"{op}.NaN.f32", *operands)
        result = e.op(kind, f"{op}.{kind}", *operands)
        nan = e.op("pred", f"setp.nan.{kind}", *operands)
        return e.op(kind, f"selp.{kind}", constant(type, math.nan), result, nan)

    def rule(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
        if type.is_float:
            return _wide(on_floats)(e, type, operands)
        return e.op(REGISTERS[type.name], f"{op}.{KINDS[type.name]}", *operands)

    return rule


# --- tests of floats ------------------------------------------------------------------------------


def _test(comparison: str, bound: float | None) -> Rule:
    """A test of a float's magnitude against a bound, or of the float against itself."""

    def rule(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
        (a,) = operands
        if type.bits == 16:
            a, type = cast(e, type, F32, a), F32
        kind = KINDS[type.name]
        if bound is None:
            return e.op("pred", f"setp.{comparison}.{kind}", a, a)
        size = e.op(kind, f"abs.{kind}", a)
        return e.op("pred", f"setp.{comparison}.{kind}", size, constant(type, bound))

    return rule


def _signbit(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    (a,) = operands
    if type == F16:
        return e.op("pred", "setp.lt.s32", e.op("b32", "cvt.s32.s16", a), "0")
    bits = "64" if type == F64 else "32"
    return e.op("pred", f"setp.lt.s{bits}", e.op(f"b{bits}", f"mov.b{bits}", a), "0")


# --- approximations (fastmath) --------------------------------------------------------------------

# The instruction itself, which gives 0 for results below the normal numbers; to have those takes
# two multiplications and a comparison more.
_EXP2 = "ex2.approx.ftz.f32"


def _approximate(name: str, how: str = "approx") -> Rule:
    return _single(lambda e, _, operands: e.op("f32", f"{name}.{how}.f32", *operands))


def _scaled(e: Emitter, a: str, factor: float) -> str:
    return e.op("f32", "mul.f32", a, constant(F32, factor))


def _exponential(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    return e.op("f32", _EXP2, _scaled(e, operands[0], math.log2(math.e)))


def _logarithm(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    return _scaled(e, e.op("f32", "lg2.approx.f32", operands[0]), math.log(2.0))


def _tangent(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    sine, cosine = (e.op("f32", f"{name}.approx.f32", operands[0]) for name in ("sin", "cos"))
    return e.op("f32", "div.full.f32", sine, cosine)


def _hyperbolic_tangent(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    """1 - 2 / (exp(2x) + 1) where there is no instruction: right at both ends."""
    if e.module.has(75, (7, 0)):
        return e.op("f32", "tanh.approx.f32", operands[0])
    one = constant(F32, 1.0)
    grown = e.op("f32", _EXP2, _scaled(e, operands[0], 2 * math.log2(math.e)))
    part = e.op("f32", "div.full.f32", constant(F32, 2.0), e.op("f32", "add.f32", grown, one))
    return e.op("f32", "sub.f32", one, part)


def _power(e: Emitter, type: Scalar, operands: Sequence[str]) -> str:
    exponent = e.op("f32", "lg2.approx.f32", operands[0])
    return e.op("f32", _EXP2, e.op("f32", "mul.f32", exponent, operands[1]))


def _dot4(left: str, right: str) -> Rule:
    """A sum of products of four bytes, of which the low 32 bits are kept."""
    return lambda e, type, operands: e.op("b32", f"dp4a.{left}.{right}", *operands)


def _count(op: str) -> Rule:
    return lambda e, type, operands: arithmetic.count_bits(e, op, type, operands[0])


_RULES: dict[str, Rule] = {
    "abs": _abs,
    "sqrt": _wide(_sqrt),
    "floor": _rounding("rmi"),
    "ceil": _rounding("rpi"),
    "trunc": _rounding("rzi"),
    "rint": _rounding("rni"),
    "fma": _fma,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "isnan": _test("nan", None),
    "isinf": _test("eq", math.inf),
    "isfinite": _test("lt", math.inf),
    "signbit": _signbit,
    "popcount": _count("popcount"),
    "clz": _count("clz"),
    "ctz": _count("ctz"),
    "reverse_bits": lambda e, type, operands: arithmetic.reverse_bits(e, type, operands[0]),
    "dot4_i8": _dot4("s32", "s32"),
    "dot4_u8": _dot4("u32", "u32"),
    "dot4_u8i8": _dot4("u32", "s32"),
    "mul_high": lambda e, type, operands: arithmetic.multiply_high(e, type, *operands),
    "fast_rsqrt": _approximate("rsqrt"),
    "fast_exp": _single(_exponential),
    "fast_exp2": _single(lambda e, _, operands: e.op("f32", _EXP2, *operands)),
    "near_exp2": _approximate("ex2", "approx.ftz"),  # a denormal operand gives 1 all the same
    "near_reciprocal": _approximate("rcp", "approx.ftz"),
    "fast_log": _single(_logarithm),
    "fast_log2": _approximate("lg2"),
    "fast_sin": _approximate("sin"),
    "fast_cos": _approximate("cos"),
    "fast_tan": _single(_tangent),
    "fast_tanh": _single(_hyperbolic_tangent),
    "fast_pow": _single(_power),
}

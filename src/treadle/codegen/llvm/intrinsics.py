"""The IR's intrinsics on scalars, or on that many lanes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.codegen.llvm import fast_math
from treadle.codegen.llvm.arithmetic import binary, compare, rounded, select
from treadle.codegen.llvm.byte_dots import dot4
from treadle.codegen.llvm.casts import bitcast, cast
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import constant, value_type, widened
from treadle.ir.rules import BYTE_DOTS
from treadle.ir.types import BOOL, F32, I32, SCALARS, Scalar

Operands = Sequence[str]
Rule = Callable[[Emitter, Scalar, Operands, int], str]


def intrinsic(e: Emitter, op: str, type: Scalar, operands: Operands, width: int) -> str:
    """An intrinsic on operands of one scalar type (`dot` is not one of these)."""
    if op.startswith("fast_"):
        return _in_single(e, type, operands, width, fast_math.RULES[op])
    if op in BYTE_DOTS:
        return dot4(e, op, type, operands, width)
    return _RULES[op](e, type, operands, width)


def _in_single(e: Emitter, type: Scalar, operands: Operands, width: int, rule: Rule) -> str:
    """Apply a rule for f32 and f64 to any float: the narrow ones are computed in f32."""
    if type.name not in ("f16", "bf16"):
        return rule(e, type, operands, width)
    wide = [cast(e, type, F32, operand, width) for operand in operands]
    return cast(e, F32, type, rule(e, F32, wide, width), width)


def _native(name: str) -> Rule:
    """An LLVM intrinsic on f32 and f64, with operands and result of one type."""

    def rule(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
        llvm = value_type(type, width)
        return e.intrinsic(name, llvm, [(llvm, operand) for operand in operands], [llvm])

    return lambda e, type, operands, width: _in_single(e, type, operands, width, rule)


def _rounding(name: str) -> Rule:
    def rule(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
        return operands[0] if not type.is_float else rounded(e, name, type, operands[0], width)

    return rule


def _extreme(floats: str, comparison: str) -> Rule:
    """Min or max: an LLVM intrinsic that hands on NaN, or a comparison of integers."""
    on_floats = _native(floats)

    def rule(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
        a, b = operands
        if type.is_float:
            return on_floats(e, type, operands, width)
        first = compare(e, comparison, type, a, b, width)
        return select(e, first, value_type(type, width), a, b, width)

    return rule


def _abs(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
    llvm = value_type(type, width)
    if type.is_float:
        return e.intrinsic("fabs", llvm, [(llvm, operands[0])], [llvm])
    if not type.is_signed:
        return operands[0]
    return e.intrinsic("abs", llvm, [(llvm, operands[0]), ("i1", "false")], [llvm])


def _fma(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
    if type.is_float:
        return _native("fma")(e, type, operands, width)
    product = binary(e, "mul", type, operands[0], operands[1], width)
    return binary(e, "add", type, product, operands[2], width)


def _float_test(comparison: str, bound: float | None) -> Rule:
    """A test of a float's magnitude against a bound, or of the float against itself."""

    def rule(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
        if not type.is_float:
            return constant(BOOL, comparison == "one", width)
        llvm, a = value_type(type, width), operands[0]
        if bound is None:
            return e.op(f"fcmp {comparison} {llvm} {a}, {a}")
        size = _abs(e, type, operands, width)
        return e.op(f"fcmp {comparison} {llvm} {size}, {constant(type, bound, width)}")

    return rule


def _signbit(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
    integer = type
    if type.is_float:
        integer = SCALARS[f"i{type.bits}"]
        operands = [bitcast(e, type, integer, operands[0], width)]
    elif not type.is_signed:
        return constant(BOOL, False, width)
    return compare(e, "lt", integer, operands[0], constant(integer, 0, width), width)


def _count(name: str) -> Rule:
    """A count of bits, as an i32."""

    def rule(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
        llvm = value_type(type, width)
        arguments = [(llvm, operands[0])]
        if name != "ctpop":
            arguments.append(("i1", "false"))  # zero is a fine operand
        counted = e.intrinsic(name, llvm, arguments, [llvm])
        # A count is never negative: widen it as an unsigned number.
        return cast(e, SCALARS[f"u{type.bits}"], I32, counted, width)

    return rule


def _mul_high(e: Emitter, type: Scalar, operands: Operands, width: int) -> str:
    """The upper half of the product of two integers."""
    llvm, wide = value_type(type, width), widened(f"i{type.bits * 2}", width)
    extend = "sext" if type.is_signed else "zext"
    a, b = (e.op(f"{extend} {llvm} {operand} to {wide}") for operand in operands)
    product = e.op(f"mul {wide} {a}, {b}")
    amount = str(type.bits) if width == 1 else f"splat (i{type.bits * 2} {type.bits})"
    upper = e.op(f"lshr {wide} {product}, {amount}")
    return e.op(f"trunc {wide} {upper} to {llvm}")


_INFINITY = float("inf")
_RULES: dict[str, Rule] = {
    "abs": _abs,
    "sqrt": _native("sqrt"),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "rint": _rounding("rint"),
    "fma": _fma,
    "min": _extreme("minimum", "lt"),
    "max": _extreme("maximum", "gt"),
    "isnan": _float_test("uno", None),
    "isinf": _float_test("oeq", _INFINITY),
    "isfinite": _float_test("one", _INFINITY),
    "signbit": _signbit,
    "popcount": _count("ctpop"),
    "clz": _count("ctlz"),
    "ctz": _count("cttz"),
    "reverse_bits": _native("bitreverse"),
    "mul_high": _mul_high,
}

"""Mathematics: exact operations as intrinsics, others from the library `treadle.lang.math`.

Integers are converted to f32; f16 and bf16 are computed in f32 and rounded. A kernel with
`fastmath` uses the target's own functions where it has them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang import rules
from treadle.lang.definitions import DeviceFunction
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import cast, condition, constant, number, typed, with_type
from treadle.lang.lower.functions import call_with
from treadle.lang.lower.operators import binary, compare, invert_condition, operand, unary
from treadle.lang.lower.values import Value, describe
from treadle.lang.math import library
from treadle.lang.math.powers import integer_power
from treadle.lang.rules import Literal
from treadle.lang.source import source_of

FAST: dict[str, str] = {
    "exp": "fast_exp", "exp2": "fast_exp2", "log": "fast_log", "log2": "fast_log2",
    "sin": "fast_sin", "cos": "fast_cos", "tan": "fast_tan", "tanh": "fast_tanh",
    "pow": "fast_pow", "rsqrt": "fast_rsqrt",
}  # fmt: skip
_NARROW = (t.F16, t.BF16)


def lower_math(cx: Context, name: str, values: Sequence[Value], node: ast.AST) -> Value:
    """A mathematical function of numbers, or of vectors component by component."""
    found = [number(cx, value, node) for value in values]
    vectors = [v for v in found if not isinstance(v, Literal) and isinstance(v.type, t.Vector)]
    if vectors and name not in _OPERATORS:
        return _componentwise(cx, name, found, vectors[0], node)
    for value in found:
        if not isinstance(value, Literal) and isinstance(value.type, t.Struct):
            raise cx.error(f"td.{name} takes numbers, not {describe(value)}", node)
    if name in _OPERATORS:
        return _OPERATORS[name](cx, *found, node)
    if name in ("minimum", "maximum"):
        return _extreme(cx, name, found, node)
    if name in _EXACT:
        return _EXACT[name](cx, *found, node)
    return library_call(cx, name, found, node)


def _componentwise(
    cx: Context,
    name: str,
    values: Sequence[n.Expression | Literal],
    like: n.Expression,
    node: ast.AST,
) -> n.Expression:
    assert isinstance(like.type, t.Vector)
    kept = [value if isinstance(value, Literal) else cx.spill(value) for value in values]
    parts = []
    for component in t.COMPONENTS[: like.type.count]:
        operands: list[Value] = []
        for value in kept:
            if isinstance(value, Literal) or not isinstance(value.type, t.Vector):
                operands.append(value)
            else:
                if value.type.count != like.type.count:
                    raise cx.error(f"td.{name}: the vectors differ in length", node)
                operands.append(n.Extract(value, component, value.type.element, cx.span(node)))
        parts.append(typed(cx, lower_math(cx, name, operands, node), node))
    element = parts[0].type
    if element == t.BOOL or not isinstance(element, t.Scalar):
        raise cx.error(f"td.{name} takes one component at a time", node)
    return n.Construct(tuple(parts), t.Vector(element, like.type.count), cx.span(node))


# --- exact operations ----------------------------------------------------------------------------

Handler = Callable[..., Value]


def _intrinsic(
    op: str, operands: Sequence[n.Expression], type: t.Type, cx: Context, node: ast.AST
) -> n.Expression:
    return n.Intrinsic(op, tuple(operands), type, cx.span(node))


def common(
    cx: Context, values: Sequence[n.Expression | Literal], node: ast.AST
) -> list[n.Expression]:
    """Numbers in their common type (bools count as i32)."""
    kind: rules.Operand = operand(values[0])
    for value in values[1:]:
        kind = rules.common_type(kind, operand(value))
    if isinstance(kind, Literal):
        kind = rules.default_type(kind.value)
    if kind == t.BOOL:
        kind = t.I32
    return [with_type(value, kind, cx, node) for value in values]


def floats(
    cx: Context, values: Sequence[n.Expression | Literal], node: ast.AST
) -> list[n.Expression]:
    """Numbers in their common floating point type: f32 if they are integers."""
    found = common(cx, values, node)
    type = found[0].type
    assert isinstance(type, t.Scalar)
    if not type.is_float:
        return [
            with_type(value, t.F32, cx, node)
            if isinstance(value, Literal)
            else cast(cx, value, t.F32, node)
            for value in values
        ]
    return found


def _is_float(value: n.Expression) -> bool:
    return isinstance(value.type, t.Scalar) and value.type.is_float


def _abs(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
    if isinstance(x, Literal):
        return Literal(abs(x.value))
    (value,) = common(cx, [x], node)
    assert isinstance(value.type, t.Scalar)
    if value.type.kind == "uint":
        return value
    return _intrinsic("abs", [value], value.type, cx, node)


def root(cx: Context, value: n.Expression, node: ast.AST) -> n.Expression:
    """The square root of an f32 or f64."""
    return _intrinsic("sqrt", [value], value.type, cx, node)


def _sqrt(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
    (value,) = floats(cx, [x], node)
    type = value.type
    wide = cast(cx, value, t.F32, node) if type in _NARROW else value
    return cast(cx, root(cx, wide, node), type, node)


def _rounding(op: str) -> Handler:
    def lower(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
        (value,) = common(cx, [x], node)
        return _intrinsic(op, [value], value.type, cx, node) if _is_float(value) else value

    return lower


def _test(op: str, of_integer: bool) -> Handler:
    def lower(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
        (value,) = common(cx, [x], node)
        if _is_float(value):
            return _intrinsic(op, [value], t.BOOL, cx, node)
        return Literal(of_integer)

    return lower


def _signbit(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
    (value,) = common(cx, [x], node)
    if _is_float(value):
        return _intrinsic("signbit", [value], t.BOOL, cx, node)
    return compare(cx, "<", value, Literal(0), node)


def _fma(
    cx: Context,
    a: n.Expression | Literal,
    b: n.Expression | Literal,
    c: n.Expression | Literal,
    node: ast.AST,
) -> Value:
    x, y, z = common(cx, [a, b, c], node)
    if not _is_float(x):
        return binary(cx, "+", binary(cx, "*", x, y, node), z, node)
    return _intrinsic("fma", [x, y, z], x.type, cx, node)


def _extreme(
    cx: Context, name: str, values: Sequence[n.Expression | Literal], node: ast.AST
) -> Value:
    if len(values) < 2:
        raise cx.error("min and max take two numbers or more", node)
    if all(isinstance(value, Literal) for value in values):
        numbers = [value.value for value in values if isinstance(value, Literal)]
        return Literal(min(numbers) if name == "minimum" else max(numbers))
    result, *others = common(cx, values, node)
    for value in others:
        result = _intrinsic(name[:3], [result, value], result.type, cx, node)
    return result


def _clip(
    cx: Context,
    x: n.Expression | Literal,
    low: n.Expression | Literal,
    high: n.Expression | Literal,
    node: ast.AST,
) -> Value:
    value, least, most = common(cx, [x, low, high], node)
    above = _intrinsic("max", [value, least], value.type, cx, node)
    return _intrinsic("min", [above, most], value.type, cx, node)


def _select(
    cx: Context, test: Value, one: Value, other: Value, type: t.Type, node: ast.AST
) -> n.Expression:
    return n.Select(
        typed(cx, test, node), typed(cx, one, node), typed(cx, other, node), type, cx.span(node)
    )


def _sign(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
    value = cx.spill(common(cx, [x], node)[0])
    type = value.type
    assert isinstance(type, t.Scalar)
    # For floats it is selected as an integer, since the sign of -0 is 0. Some drivers take a select
    # of floats for their own sign function, which gives -0.
    chosen = t.I32 if type.is_float else type
    plus, none = constant(1, chosen, cx, node), constant(0, chosen, cx, node)
    zero = constant(0, type, cx, node)
    positive = compare(cx, ">", value, zero, node)
    if type.kind == "uint":
        return _select(cx, positive, plus, none, type, node)
    negative = compare(cx, "<", value, zero, node)
    lower = _select(cx, negative, constant(-1, chosen, cx, node), none, chosen, node)
    result = _select(cx, positive, plus, lower, chosen, node)
    if type.is_float:
        nan = _intrinsic("isnan", [value], t.BOOL, cx, node)
        result = _select(cx, nan, value, cast(cx, result, type, node), type, node)
    return result


def _copysign(
    cx: Context, x: n.Expression | Literal, y: n.Expression | Literal, node: ast.AST
) -> Value:
    magnitude, sign = floats(cx, [x, y], node)
    size = cx.spill(_intrinsic("abs", [magnitude], magnitude.type, cx, node))
    negative = _intrinsic("signbit", [sign], t.BOOL, cx, node)
    return _select(cx, negative, unary(cx, ast.USub, size, node), size, size.type, node)


def _square(cx: Context, x: n.Expression | Literal, node: ast.AST) -> Value:
    value = cx.spill(common(cx, [x], node)[0])
    return binary(cx, "*", value, value, node)


def _bits(op: str, counts: bool) -> Handler:
    def lower(cx: Context, *values: Any) -> Value:
        *operands, node = values
        found = common(cx, operands, node)
        if _is_float(found[0]):
            raise cx.error(f"td.{op} works on integers, not on {found[0].type}", node)
        return _intrinsic(op, found, t.I32 if counts else found[0].type, cx, node)

    return lower


def _dot4(op: str) -> Handler:
    """Words are i32 or u32, of which only the bits matter; the sum is an i32."""

    def lower(cx: Context, *values: Any) -> Value:
        *operands, node = values
        words = []
        for value in operands:
            word = typed(cx, value, node)
            if word.type == t.U32:
                word = n.Bitcast(word, t.I32, cx.span(node))
            if word.type != t.I32:
                raise cx.error(f"td.{op} takes words of type i32 or u32, not {word.type}", node)
            words.append(word)
        return _intrinsic(op, words, t.I32, cx, node)

    return lower


_EXACT: dict[str, Handler] = {
    "abs": _abs,
    "sqrt": _sqrt,
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "round": _rounding("rint"),
    "fma": _fma,
    "clip": _clip,
    "isnan": _test("isnan", False),
    "isinf": _test("isinf", False),
    "isfinite": _test("isfinite", True),
    "signbit": _signbit,
    "has_near_functions": _test("has_near_functions", False),
    "near_exp2": _rounding("near_exp2"),
    "near_reciprocal": _rounding("near_reciprocal"),
    "sign": _sign,
    "copysign": _copysign,
    "square": _square,
    "popcount": _bits("popcount", True),
    "clz": _bits("clz", True),
    "ctz": _bits("ctz", True),
    "reverse_bits": _bits("reverse_bits", False),
    "mul_high": _bits("mul_high", False),
    "dot4_i8": _dot4("dot4_i8"),
    "dot4_u8": _dot4("dot4_u8"),
    "dot4_u8i8": _dot4("dot4_u8i8"),
}


# --- operators by name ---------------------------------------------------------------------------


def _operator(symbol: str) -> Handler:
    return lambda cx, a, b, node: binary(cx, symbol, a, b, node)


def _comparison(symbol: str) -> Handler:
    return lambda cx, a, b, node: compare(cx, symbol, a, b, node)


def _logic(op: str) -> Handler:
    def lower(cx: Context, a: Value, b: Value, node: ast.AST) -> Value:
        one = typed(cx, condition(cx, a, node), node)
        other = typed(cx, condition(cx, b, node), node)
        return n.Binary(op, one, other, t.BOOL, cx.span(node))

    return lower


def _not(cx: Context, x: Value, node: ast.AST) -> Value:
    return invert_condition(condition(cx, x, node), cx, node)


_OPERATORS: dict[str, Handler] = {
    "add": _operator("+"),
    "subtract": _operator("-"),
    "multiply": _operator("*"),
    "divide": _operator("/"),
    "floor_divide": _operator("//"),
    "remainder": _operator("%"),
    "bitwise_and": _operator("&"),
    "bitwise_or": _operator("|"),
    "bitwise_xor": _operator("^"),
    "bitwise_left_shift": _operator("<<"),
    "bitwise_right_shift": _operator(">>"),
    "equal": _comparison("=="),
    "not_equal": _comparison("!="),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "logical_and": _logic("and"),
    "logical_or": _logic("or"),
    "logical_xor": _logic("xor"),
    "logical_not": _not,
    "negative": lambda cx, x, node: unary(cx, ast.USub, x, node),
    "positive": lambda cx, x, node: unary(cx, ast.UAdd, x, node),
    "bitwise_invert": lambda cx, x, node: unary(cx, ast.Invert, x, node),
    "reciprocal": lambda cx, x, node: binary(cx, "/", Literal(1), x, node),
}


# --- the library ---------------------------------------------------------------------------------


def library_call(
    cx: Context, name: str, values: Sequence[n.Expression | Literal], node: ast.AST
) -> Value:
    """A call of a library function, in the version for the operands' type."""
    definitions = library()
    if name in definitions:  # one version only: seeds and counters of any integer type
        operands = [_as_counter(cx, value, node) for value in values]
        return _call(cx, definitions[name], operands, node)
    operands = floats(cx, values, node)
    type = operands[0].type
    work = t.F32 if type in _NARROW else type
    operands = [cast(cx, value, work, node) for value in operands]
    if cx.lowering.fastmath and name in FAST and work == t.F32:
        return cast(cx, _intrinsic(FAST[name], operands, work, cx, node), type, node)
    definition = definitions.get(f"{name}_{type}") or definitions.get(f"{name}_{work}")
    if definition is None:
        if name == "rsqrt":
            root = _intrinsic("sqrt", operands, work, cx, node)
            return cast(cx, binary(cx, "/", Literal(1), root, node), type, node)
        has = sorted(
            key.removeprefix(f"{name}_") for key in definitions if key.startswith(f"{name}_")
        )
        there = f"it exists for {', '.join(has)}" if has else "it is not implemented"
        raise cx.error(f"td.{name} does not work on {type}: {there}", node)
    return cast(cx, _call(cx, definition, operands, node), type, node)


def _as_counter(cx: Context, value: n.Expression | Literal, node: ast.AST) -> n.Expression:
    (found,) = common(cx, [value], node)
    if _is_float(found):
        raise cx.error("seeds and counters are integers", node)
    return cast(cx, found, t.U32, node)


def _call(cx: Context, definition: Any, values: Sequence[Value], node: ast.AST) -> Value:
    function: FunctionType = (
        definition.definition if isinstance(definition, DeviceFunction) else definition
    )
    return call_with(cx, function, source_of(function), list(values), node)


# --- powers --------------------------------------------------------------------------------------

_UNROLLED_POWER = 64  # the largest literal exponent of an integer that is unrolled into products
NEGATIVE_POWER = "an integer has a negative exponent"  # the message in check mode
EXACT_POWER = 4  # the largest of a float, since each multiplication rounds


def power(
    cx: Context, base: n.Expression | Literal, exponent: n.Expression | Literal, node: ast.AST
) -> Value:
    """`base ** exponent`."""
    kind = rules.common_type(operand(base), operand(exponent))
    if isinstance(exponent, n.Constant) and not isinstance(exponent.value, float):
        exponent = Literal(exponent.value)  # for example td.i32(2)
    whole = isinstance(exponent, Literal) and not isinstance(exponent.value, float)
    if isinstance(exponent, Literal) and whole and not isinstance(base, Literal):
        times = int(exponent.value)
        if kind.is_float and 0 <= times <= EXACT_POWER:
            return _multiplied(cx, base, times, node)
        if not kind.is_float:
            if times < 0:
                raise cx.refusal("negative_power", node, times=times)
            if times <= _UNROLLED_POWER:
                return _multiplied(cx, base, times, node)
    if kind.is_float:
        return lower_math(cx, "pow", [base, exponent], node)
    of, by = common(cx, [base, exponent], node)
    if kind.kind == "int" and cx.lowering.asserts:
        by = cx.spill(by)
        zero = n.Constant(0, kind, cx.span(node))
        known = n.Binary("ge", by, zero, t.BOOL, cx.span(node))
        cx.emit(n.Assert(known, f"{ast.unparse(node)}: {NEGATIVE_POWER}", span=cx.span(node)))
    return _call(cx, integer_power, [of, by], node)


def _multiplied(cx: Context, base: n.Expression, times: int, node: ast.AST) -> Value:
    """A power by squaring."""
    (base,) = common(cx, [base], node)
    assert isinstance(base.type, t.Scalar)
    if times == 0:
        return constant(1, base.type, cx, node)
    square = cx.spill(base)
    result: n.Expression | None = None
    while True:
        if times & 1:
            result = (
                square if result is None else typed(cx, binary(cx, "*", result, square, node), node)
            )
        times >>= 1
        if not times:
            assert result is not None
            return result
        square = cx.spill(typed(cx, binary(cx, "*", square, square, node), node), "square")

"""Arithmetic, comparisons and logic in IR, by the typing rules."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang import rules
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import (
    broadcast,
    cast,
    constant,
    literal,
    number,
    scalar,
    typed,
    with_type,
)
from treadle.lang.lower.values import PythonObject, TupleValue, Value, describe, spelled
from treadle.lang.rules import Literal

# Python's operator: the IR's operation, and the function for two literals.
ARITHMETIC: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("add", operator.add),
    "-": ("sub", operator.sub),
    "*": ("mul", operator.mul),
    "/": ("div", operator.truediv),
    "//": ("floordiv", operator.floordiv),
    "%": ("mod", operator.mod),
}
BITWISE: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "&": ("and", operator.and_),
    "|": ("or", operator.or_),
    "^": ("xor", operator.xor),
}
SHIFTS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "<<": ("shl", operator.lshift),
    ">>": ("shr", operator.rshift),
}
COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "==": ("eq", operator.eq),
    "!=": ("ne", operator.ne),
    "<": ("lt", operator.lt),
    "<=": ("le", operator.le),
    ">": ("gt", operator.gt),
    ">=": ("ge", operator.ge),
}
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=",
}  # fmt: skip


def operand(value: n.Expression | Literal) -> rules.Operand:
    """A value as the typing rules take it."""
    if isinstance(value, Literal):
        return value
    assert isinstance(value.type, t.Scalar)
    return value.type


def binary(cx: Context, op: str, left: Value, right: Value, node: ast.AST) -> Value:
    """`left op right` for an arithmetic, bitwise or shift operator."""
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and op == "+":
        return TupleValue(left.items + right.items)
    first, second = number(cx, left, node), number(cx, right, node)
    if isinstance(first, Literal) and isinstance(second, Literal):
        return _fold(cx, op, first, second, node)
    if _is_struct(first) or _is_struct(second):
        raise cx.error(f"{op} does not work on structs: use their fields", node)
    if _is_vector(first) or _is_vector(second):
        return _vectors(cx, op, first, second, node)
    if op == "**":
        return cx.rules.power(cx, first, second, node)
    if op in ARITHMETIC:
        name = ARITHMETIC[op][0]
        wanted = rules.arithmetic_type(op, operand(first), operand(second))
    elif op in BITWISE:
        name = BITWISE[op][0]
        wanted = rules.bitwise_type(op, operand(first), operand(second))
    else:
        name = SHIFTS[op][0]
        wanted = rules.shift_type(op, operand(first), operand(second))
    return n.Binary(
        name,
        with_type(first, wanted, cx, node),
        with_type(second, wanted, cx, node),
        wanted,
        cx.span(node),
    )


def _fold(cx: Context, op: str, left: Literal, right: Literal, node: ast.AST) -> Literal:
    functions = ARITHMETIC | BITWISE | SHIFTS | {"**": ("pow", operator.pow)}
    if isinstance(left.value, int) and isinstance(right.value, int) and right.value > 0:
        # A lower bound of the result's bits, since Python would compute integers of any length.
        bits = {"<<": left.value.bit_length() + right.value if left.value else 0}
        bits["**"] = (abs(left.value).bit_length() - 1) * right.value
        if bits.get(op, 0) > rules.MOST_BITS:
            raise cx.refusal("wide_integer", node, bits=f"at least {bits[op]:,}")
    try:
        result = functions[op][1](left.value, right.value)
    except ZeroDivisionError:
        raise cx.refusal("no_value", node, what=f"{left} {op} {right}") from None
    except OverflowError:
        raise cx.error(
            f"{left} {op} {right} is too large for a float: write td.inf, or smaller numbers", node
        ) from None
    except ValueError:
        raise cx.error(f"{left} {op} {right} shifts by a negative number", node) from None
    except TypeError:
        raise cx.error(f"{op} works on integers, not on {left} and {right}", node) from None
    if isinstance(result, complex):
        raise cx.refusal("complex", node)
    return literal(cx, result, node)


def _is_struct(value: n.Expression | Literal) -> bool:
    return not isinstance(value, Literal) and isinstance(value.type, t.Struct)


def _is_vector(value: n.Expression | Literal) -> bool:
    return not isinstance(value, Literal) and isinstance(value.type, t.Vector)


def _vectors(
    cx: Context, op: str, left: n.Expression | Literal, right: n.Expression | Literal, node: ast.AST
) -> n.Expression:
    """A componentwise operation; a scalar on one side is broadcast."""
    if op == "**":
        raise cx.error("** does not work on vectors: write it for each component", node)
    shapes = [v.type for v in (left, right) if not isinstance(v, Literal)]
    vectors = [shape for shape in shapes if isinstance(shape, t.Vector)]
    count = vectors[0].count
    if any(vector.count != count for vector in vectors):
        raise cx.error(
            f"{op} needs two vectors of one length, not {' and '.join(map(spelled, shapes))}", node
        )
    elements = [
        value
        if isinstance(value, Literal)
        else value.type.element
        if isinstance(value.type, t.Vector)
        else value.type
        for value in (left, right)
    ]
    a, b = elements
    assert isinstance(a, (Literal, t.Scalar))
    assert isinstance(b, (Literal, t.Scalar))
    rule = (
        rules.arithmetic_type
        if op in ARITHMETIC
        else rules.bitwise_type
        if op in BITWISE
        else rules.shift_type
    )
    element = rule(op, a, b)
    wanted = t.Vector(element, count)
    sides = []
    for value in (left, right):
        if _is_vector(value):
            sides.append(cast(cx, value, wanted, node))
        else:
            sides.append(broadcast(cx, with_type(value, element, cx, node), wanted))
    name = (ARITHMETIC | BITWISE | SHIFTS)[op][0]
    return n.Binary(name, sides[0], sides[1], wanted, cx.span(node))


def unary(cx: Context, op: type[ast.unaryop], value: Value, node: ast.AST) -> Value:
    """`-x`, `+x`, `~x`. (`not x` is a condition.)"""
    found = number(cx, value, node)
    if isinstance(found, Literal):
        if op is ast.Invert:
            if isinstance(found.value, float):
                raise cx.error("~ works on integers, not on floats", node)
            return Literal(~found.value)
        return Literal(-found.value if op is ast.USub else +found.value)
    element = found.type.element if isinstance(found.type, t.Vector) else found.type
    if not isinstance(element, t.Scalar):
        raise cx.error(f"{describe(found)} has no sign: use its fields", node)
    if element == t.BOOL:
        if op is ast.Invert:
            raise cx.error("~ works on integers: write not for a condition", node)
        found = cast(cx, found, t.I32, node)
    if op is ast.UAdd:
        return found
    if op is ast.Invert:
        if element.is_float:
            raise cx.error(f"~ works on integers, not on {element}", node)
        return n.Unary("invert", found, found.type, cx.span(node))
    if isinstance(found, n.Constant):
        assert isinstance(found.type, t.Scalar)
        return constant(-found.value, found.type, cx, node)
    return n.Unary("neg", found, found.type, cx.span(node))


def compare(cx: Context, op: str, left: Value, right: Value, node: ast.AST) -> Value:
    """One comparison of a chain."""
    if isinstance(left, (PythonObject, TupleValue)) or isinstance(
        right, (PythonObject, TupleValue)
    ):
        return _compare_objects(cx, op, left, right, node)
    first, second = number(cx, left, node), number(cx, right, node)
    for value in (first, second):
        if not isinstance(value, Literal) and not isinstance(value.type, t.Scalar):
            raise cx.error(
                f"{op} compares numbers, not {spelled(value.type)}: compare the parts", node
            )
    if isinstance(first, Literal) and isinstance(second, Literal):
        return Literal(COMPARISONS[op][1](first.value, second.value))
    wanted = rules.common_type(operand(first), operand(second))
    return n.Binary(
        COMPARISONS[op][0],
        with_type(first, wanted, cx, node),
        with_type(second, wanted, cx, node),
        t.BOOL,
        cx.span(node),
    )


def is_known(value: Value) -> bool:
    """Whether a value is known when the kernel is compiled."""
    if isinstance(value, TupleValue):
        return all(map(is_known, value.items))
    return isinstance(value, (PythonObject, Literal))


def _compare_objects(cx: Context, op: str, left: Value, right: Value, node: ast.AST) -> Value:
    if op not in ("==", "!="):
        raise cx.error(f"{describe(left)} and {describe(right)} have no order", node)
    if not (is_known(left) and is_known(right)):
        if any(isinstance(plain(each), str) for each in (left, right)):
            raise cx.refusal("string", node)
        if isinstance(left, TupleValue) and isinstance(right, TupleValue):
            same = _equal_items(cx, left, right, node)
            return same if op == "==" else invert_condition(same, cx, node)
        raise cx.error(
            f"{describe(left)} and {describe(right)} are never equal: compare numbers", node
        )
    is_same = plain(left) == plain(right)
    return Literal(is_same if op == "==" else not is_same)


def _equal_items(
    cx: Context, left: TupleValue, right: TupleValue, node: ast.AST
) -> n.Expression | Literal:
    """Whether tuples are equal, as `a.shape == b.shape`."""
    if len(left.items) != len(right.items):
        return Literal(False)
    result: n.Expression | Literal = Literal(True)
    for one, other in zip(left.items, right.items, strict=True):
        each: Any = compare(cx, "==", one, other, node)
        if isinstance(each, Literal):
            if not each.value:
                return each
        elif isinstance(result, Literal):
            result = each
        else:
            result = n.Binary("logical_and", result, each, t.BOOL, cx.span(node))
    return result


def plain(value: Value) -> Any:
    """The Python object of a compile-time value, for comparisons."""
    if isinstance(value, TupleValue):
        return tuple(plain(item) for item in value.items)
    return value.value if isinstance(value, (PythonObject, Literal)) else value


def invert_condition(value: n.Expression | Literal, cx: Context, node: ast.AST) -> Value:
    """`not` of a condition."""
    if isinstance(value, Literal):
        return Literal(not value.value)
    return n.Unary("not", value, t.BOOL, cx.span(node))


def join(
    cx: Context, left: Value, right: Value, node: ast.AST, what: str
) -> tuple[n.Expression, n.Expression]:
    """Two values that must have the same type (the sides of a choice), in that type."""
    first, second = number(cx, left, node), number(cx, right, node)
    vectors_or_structs = [
        v
        for v in (first, second)
        if not isinstance(v, Literal) and not isinstance(v.type, t.Scalar)
    ]
    if vectors_or_structs:
        one, other = typed(cx, first, node), typed(cx, second, node)
        if one.type != other.type:
            raise cx.error(
                f"{what} must have one type, not {spelled(one.type)} and {spelled(other.type)}",
                node,
            )
        return one, other
    scalar(cx, first, node, what)
    common = rules.common_type(operand(first), operand(second))
    return with_type(first, common, cx, node), with_type(second, common, cx, node)

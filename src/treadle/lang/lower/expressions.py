"""Expressions: names, constants, operators, attributes, indexing, choices."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dtypes import BY_SHORT_NAME, DType
from treadle.core.errors import CompileError, DtypeError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import walk
from treadle.lang.builtins import BuiltinFunction, BuiltinVariable
from treadle.lang.fragments import METHODS, FragmentKind
from treadle.lang.lower import matrices, positions
from treadle.lang.lower.arrays import (
    copy_parts,
    load,
    memory_variable,
    part_of,
    place_of,
    static_number,
)
from treadle.lang.lower.context import Context, is_movable
from treadle.lang.lower.conversions import condition, literal, number, typed
from treadle.lang.lower.names import attribute_of_object, outside_value
from treadle.lang.lower.operators import (
    SYMBOLS,
    compare,
    invert_condition,
    is_known,
    join,
)
from treadle.lang.lower.values import (
    EXPRESSIONS,
    ArrayView,
    FixedArrayPlace,
    FragmentMethod,
    Position,
    PositionMethod,
    PythonObject,
    ShiftedPosition,
    TupleValue,
    Value,
    contains_array,
    describe,
    is_expression,
    spelled,
)
from treadle.lang.lower.variable_items import item_of_tuple, item_of_vector
from treadle.lang.rules import Literal
from treadle.lang.types import TypeFamily, VectorType, is_struct


def lower_expression(cx: Context, node: ast.expr) -> Value:
    """The value of an expression. Its statements are emitted to the current block."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise cx.refusal(type(node).__name__, node)
    try:
        return handler(cx, node)
    except DtypeError as error:
        raise cx.error(str(error), node) from None


def in_order(cx: Context, nodes: Sequence[ast.expr]) -> list[Value]:
    """The values of expressions, evaluated from left to right.

    A value that an earlier one loaded is put into a variable if a later one has an effect.
    """
    values: list[Value] = []
    for node in nodes:
        mark = len(cx.statements)
        value = lower_expression(cx, node)
        values = cx.protect(values, mark)
        values.append(value)
    return values


def positional(cx: Context, node: ast.Call) -> list[Value]:
    """The arguments of a call that has no keywords."""
    if node.keywords:
        raise cx.error(f"{ast.unparse(node.func)} takes its arguments by position", node)
    return in_order(cx, node.args)


def one_argument(cx: Context, node: ast.Call, name: str) -> Value:
    """The only argument of a call."""
    values = positional(cx, node)
    if len(values) != 1:
        raise cx.error(f"{name}(x) takes one argument, not {len(values)}", node)
    return values[0]


def lower_condition(cx: Context, node: ast.expr) -> n.Expression | Literal:
    """The truth of an expression."""
    return condition(cx, lower_expression(cx, node), node)


# --- names and constants -------------------------------------------------------------------------


def _constant(cx: Context, node: ast.Constant) -> Value:
    value = node.value
    if isinstance(value, (bool, int, float)):
        return literal(cx, value, node)
    if value is None or value is Ellipsis or isinstance(value, str):
        return PythonObject(value, repr(value))
    raise cx.refusal("complex" if isinstance(value, complex) else "bytes", node)


def _name(cx: Context, node: ast.Name) -> Value:
    binding = cx.bindings.get(node.id)
    if binding is not None:
        return binding.value
    if node.id in cx.scope.stores:
        raise cx.refusal("unassigned", node, name=node.id)
    return outside_value(cx, node)


def _tuple(cx: Context, node: ast.Tuple) -> Value:
    return TupleValue(tuple(in_order(cx, node.elts)))


# --- operators -----------------------------------------------------------------------------------


def _binary(cx: Context, node: ast.BinOp) -> Value:
    left, right = in_order(cx, (node.left, node.right))
    return matrices.binary(cx, SYMBOLS[type(node.op)], left, right, node)


def _unary(cx: Context, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return invert_condition(lower_condition(cx, node.operand), cx, node)
    return matrices.unary(cx, type(node.op), lower_expression(cx, node.operand), node)


def _logical(cx: Context, node: ast.BoolOp) -> Value:
    """`and` and `or`: the remaining operands are evaluated only if they are needed."""
    is_and = isinstance(node.op, ast.And)
    result = _bool_operand(cx, node.values[0])
    for part in node.values[1:]:
        if isinstance(result, Literal):
            if bool(result.value) != is_and:
                return result  # known at compile time: the others are not lowered
            result = _bool_operand(cx, part)
            continue
        with cx.block() as inner:
            right = _bool_operand(cx, part)
        if all(is_movable(statement) for statement in inner):
            cx.statements.extend(inner)
            op = "logical_and" if is_and else "logical_or"
            if isinstance(right, Literal):
                right = n.Constant(bool(right.value), t.BOOL, cx.span(part))
            result = n.Binary(op, result, right, t.BOOL, cx.span(node))
            continue
        holder = cx.temporary(t.BOOL, cx.span(node), "c")
        cx.emit(n.Assign(holder, result, cx.span(node)))
        value = typed(cx, right, part)
        inner.append(n.Assign(holder, value, cx.span(part)))
        test: n.Expression = holder
        if not is_and:
            test = n.Unary("not", holder, t.BOOL, cx.span(node))
        cx.emit(n.If(test, tuple(inner), (), cx.span(node)))
        result = holder
    return result


def _bool_operand(cx: Context, node: ast.expr) -> n.Expression | Literal:
    value = number(cx, lower_expression(cx, node), node)
    kind = type(value.value) if isinstance(value, Literal) else value.type
    if kind is not bool and kind != t.BOOL:
        raise cx.refusal("condition", node, given=describe(value))
    return value


def _compare(cx: Context, node: ast.Compare) -> Value:
    for op in node.ops:
        if isinstance(op, (ast.In, ast.NotIn)):
            raise cx.refusal("membership", node)
    if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return _identity(cx, node)
    values = in_order(cx, (node.left, *node.comparators))
    if len(values) > 2:
        values = [_repeatable(cx, value) for value in values]
    result: Value = Literal(True)
    for op, left, right in zip(node.ops, values, values[1:], strict=False):
        if type(op) not in SYMBOLS:
            raise cx.refusal("identity", node)
        each = compare(cx, SYMBOLS[type(op)], left, right, node)
        if isinstance(result, Literal):
            result = each if result.value else result
        elif isinstance(each, Literal):
            result = result if each.value else each
        else:
            assert is_expression(result)
            result = n.Binary("logical_and", result, each, t.BOOL, cx.span(node))  # type: ignore[arg-type]
    return result


def _repeatable(cx: Context, value: Value) -> Value:
    return cx.spill(value) if is_expression(value) else value  # type: ignore[arg-type]


def _identity(cx: Context, node: ast.Compare) -> Value:
    """`is` and `is not`, for compile-time values, as in `x is None` for an argument of a function
    that may be left out. What a kernel reads is never one of Python's objects."""
    left, right = in_order(cx, (node.left, node.comparators[0]))
    if len(node.ops) > 1 or not (isinstance(left, PythonObject) or isinstance(right, PythonObject)):
        raise cx.refusal("identity", node)
    if cx.is_kernel and not (is_known(left) and is_known(right)):
        raise cx.refusal("identity", node)
    same = (
        isinstance(left, PythonObject)
        and isinstance(right, PythonObject)
        and left.value is right.value
    )
    return Literal(same if isinstance(node.ops[0], ast.Is) else not same)


def _choice(cx: Context, node: ast.IfExp) -> Value:
    """`a if c else b`: only one side is evaluated, unless both are cheap."""
    test = lower_condition(cx, node.test)
    if isinstance(test, Literal):
        return lower_expression(cx, node.body if test.value else node.orelse)
    mark = len(cx.statements)
    with cx.block() as then:
        left = number(cx, lower_expression(cx, node.body), node.body)
    with cx.block() as otherwise:
        right = number(cx, lower_expression(cx, node.orelse), node.orelse)
    if not any(map(_keeps_a_choice, (left, right))) and all(map(is_movable, [*then, *otherwise])):
        cx.statements.extend([*then, *otherwise])
        one, other = join(cx, left, right, node, "the two sides of a choice")
        return n.Select(test, one, other, one.type, cx.span(node))
    del mark
    with cx.block():
        one, other = join(cx, left, right, node, "the two sides of a choice")
    if contains_array(one.type):
        return choose_in_memory(cx, test, (then, one), (otherwise, other), node)
    span = cx.span(node)
    holder = cx.temporary(one.type, span, "choice")
    then.append(n.Assign(holder, one, span))
    otherwise.append(n.Assign(holder, other, span))
    cx.emit(n.If(test, tuple(then), tuple(otherwise), span))
    return holder


def choose_in_memory(
    cx: Context,
    test: n.Expression,
    then: tuple[list[n.Statement], n.Expression],
    otherwise: tuple[list[n.Statement], n.Expression],
    node: ast.AST,
) -> n.Load:
    """One of two structs that hold arrays, copied; only its own statements run."""
    span = cx.span(node)
    holder = memory_variable(cx, then[1].type, "choice", span)
    sides: list[tuple[n.Statement, ...]] = []
    for statements, value in (then, otherwise):
        assert isinstance(value, n.Load)
        with cx.block() as copying:
            copy_parts(cx, holder.place, value.place, span)
        sides.append((*statements, *copying))
    cx.emit(n.If(test, sides[0], sides[1], span))
    return holder


def _keeps_a_choice(value: n.Expression | Literal) -> bool:
    """Whether a side is too expensive, or not safe, to speculate."""
    return not isinstance(value, Literal) and not is_cheap(value)


def is_cheap(value: n.Expression) -> bool:
    """Whether an expression is only a few operations, without memory or calls."""
    nodes = list(walk(value))
    return len(nodes) <= 10 and not any(isinstance(each, (n.Load, n.Call)) for each in nodes)


# --- attributes ----------------------------------------------------------------------------------


def _attribute(cx: Context, node: ast.Attribute) -> Value:
    return attribute(cx, lower_expression(cx, node.value), node.attr, node)


def attribute(cx: Context, owner: Value, name: str, node: ast.AST) -> Value:
    """`owner.name`."""
    match owner:
        case ArrayView():
            return _array_attribute(cx, owner, name, node)
        case Position():
            return positions.attribute(cx, owner, name, node)
        case FixedArrayPlace():
            if name in ("size", "shape"):
                length = Literal(owner.type.length)
                return length if name == "size" else TupleValue((length,))
            raise _no_attribute(cx, "an array", name, ("size", "shape"), node)
        case PythonObject(value=BuiltinVariable()):
            if name not in ("x", "y", "z"):
                raise _no_attribute(cx, owner.name, name, ("x", "y", "z"), node)
            return n.Builtin(owner.value.name, "xyz".index(name), t.I32, cx.span(node))
        case PythonObject():
            return attribute_of_object(cx, owner, name, node)
        case TupleValue() | Literal() | PositionMethod() | ShiftedPosition() | FragmentMethod():
            raise cx.refusal("number_attribute", node, owner=describe(owner), name=name)
    value = number(cx, owner, node)
    assert not isinstance(value, Literal)
    if matrices.shape_of(value) is not None:
        found = matrices.attribute(cx, value, name, node)
        if found is not None:
            return found
    if isinstance(value.type, t.Struct):
        names = tuple(field.name for field in value.type.fields)
        if name not in names:
            raise _no_attribute(cx, str(value.type), name, names, node)
        return part_of(cx, value, name, value.type.field_type(name), node)
    if isinstance(value.type, t.Vector):
        return _components(cx, value, name, node)
    raise cx.refusal("number_attribute", node, owner=describe(value), name=name)


def _components(cx: Context, value: n.Expression, name: str, node: ast.AST) -> Value:
    assert isinstance(value.type, t.Vector)
    known = t.COMPONENTS[: value.type.count]
    if not name or len(name) > 4 or any(c not in known for c in name):
        raise _no_attribute(cx, spelled(value.type), name, known, node)
    element = value.type.element
    if len(name) == 1:
        return part_of(cx, value, name, element, node)
    kept = cx.spill(value)
    parts = tuple(n.Extract(kept, component, element, cx.span(node)) for component in name)
    return n.Construct(parts, t.Vector(element, len(name)), cx.span(node))


def _array_attribute(cx: Context, array: ArrayView, name: str, node: ast.AST) -> Value:
    if array.fragment is not None:
        return _fragment_attribute(cx, array, array.fragment, name, node)
    if name == "size":
        return array.size
    if name == "shape":
        return TupleValue(tuple(array.extents))
    if name == "ndim":
        return Literal(array.ndim)
    if name == "dtype":
        if isinstance(array.element, t.Scalar):
            dtype = BY_SHORT_NAME[array.element.name]
            return PythonObject(dtype, f"td.{dtype.short}")
        raise cx.error(f"an array of {array.element} has no dtype that a kernel can use", node)
    raise _no_attribute(cx, "an array", name, ("size", "shape", "ndim", "dtype"), node)


def _fragment_attribute(
    cx: Context, array: ArrayView, kind: FragmentKind, name: str, node: ast.AST
) -> Value:
    if name not in METHODS:
        raise _no_attribute(cx, "a fragment", name, METHODS, node)
    if name == "shape":
        return TupleValue((Literal(kind.rows), Literal(kind.columns)))
    if name == "dtype":
        return PythonObject(kind.element, f"td.{kind.dtype}")
    if name == "size" and not kind.indexed:
        raise cx.error(f"{kind} has no size in a thread: store it to td.shared", node)
    if name == "size":
        return Literal(kind.words)
    return FragmentMethod(array, name)


def _no_attribute(
    cx: Context, owner: str, name: str, choices: Sequence[str], node: ast.AST
) -> CompileError:
    shown = ", ".join(choices) or "none"
    return cx.refusal("unknown_attribute", node, owner=owner, name=name, choices=shown)


def items_of(cx: Context, value: Value, node: ast.AST) -> list[Value]:
    """The parts of a tuple or vector."""
    if isinstance(value, TupleValue):
        return list(value.items)
    if isinstance(value, EXPRESSIONS) and isinstance(value.type, t.Vector):
        kept = cx.spill(value)
        return [
            n.Extract(kept, c, value.type.element, cx.span(node))
            for c in t.COMPONENTS[: value.type.count]
        ]
    if isinstance(value, Position):
        raise cx.error("a position can't be unpacked: its indices are pos.index", node)
    raise cx.error(f"{describe(value)} can't be unpacked: give it one name", node)


# --- indexing ------------------------------------------------------------------------------------


def _subscript(cx: Context, node: ast.Subscript) -> Value:
    owner, index = in_order_with_index(cx, node)
    if isinstance(index, (Position, ShiftedPosition)):
        return positions.item(cx, owner, index, node)
    if positions.is_stack(owner, index):
        assert isinstance(owner, ArrayView)
        return positions.grid_of_stack(cx, owner, index, node)
    if isinstance(owner, (ArrayView, FixedArrayPlace)):
        return load(cx, place_of(cx, owner, index, node), node)
    if isinstance(owner, TupleValue):
        at = static_number(cx, index)
        if at is None:
            return item_of_tuple(cx, owner.items, index, node)
        if isinstance(at, float) or not -len(owner.items) <= at < len(owner.items):
            count = len(owner.items)
            items = f"{count} item{'' if count == 1 else 's'}"
            raise cx.error(f"this tuple has {items}, from index 0, and the index is {at}", node)
        return owner.items[at]
    if isinstance(owner, PythonObject):
        return _python_item(cx, owner, index, node)
    value = number(cx, owner, node)
    if not isinstance(value, Literal) and matrices.shape_of(value) is not None:
        return matrices.item(cx, value, index, node)
    if not isinstance(value, Literal) and isinstance(value.type, t.Vector):
        if static_number(cx, index) is None:
            return item_of_vector(cx, value, index, node)
        name = component(cx, value.type, index, node)
        return part_of(cx, value, name, value.type.element, node)
    raise cx.refusal("number_index", node, given=describe(value))


def component(cx: Context, type: t.Vector, index: Value, node: ast.AST) -> str:
    """The name of a vector's component at a constant index."""
    at = static_number(cx, index)
    if at is None or isinstance(at, float) or not 0 <= at < type.count:
        last, names = type.count - 1, ", v.".join(t.COMPONENTS[: type.count])
        raise cx.refusal("component", node, type=spelled(type), last=last, at=at, names=names)
    return t.COMPONENTS[at]


def in_order_with_index(cx: Context, node: ast.Subscript) -> tuple[Value, Value]:
    """The indexed value and the index, evaluated in order."""
    if isinstance(node.slice, ast.Slice) or (
        isinstance(node.slice, ast.Tuple)
        and any(isinstance(each, ast.Slice) for each in node.slice.elts)
    ):
        raise cx.refusal("Slice", node.slice)
    owner, index = in_order(cx, (node.value, node.slice))
    return owner, index


def _python_item(cx: Context, owner: PythonObject, index: Value, node: ast.AST) -> Value:
    """Types such as `td.vec3[td.f32]` and `td.f32[4]` inside a kernel."""
    if isinstance(owner.value, (TypeFamily, DType, VectorType)) or is_struct(owner.value):
        key = index.value if isinstance(index, (PythonObject, Literal)) else None
        return PythonObject(owner.value[key], owner.name)
    if isinstance(owner.value, BuiltinVariable):
        raise cx.refusal("whole_variable", node, name=owner.name)
    if isinstance(owner.value, BuiltinFunction):
        raise cx.refusal("uncalled", node, name=owner.name, usage=owner.value.usage)
    raise cx.error(f"{owner.name} can't be indexed in a kernel", node)


def _call(cx: Context, node: ast.Call) -> Value:
    return cx.rules.call(cx, node)


def _string(cx: Context, node: ast.JoinedStr) -> Value:
    raise cx.refusal("JoinedStr", node)


_HANDLERS: dict[type[ast.expr], Callable[[Context, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logical,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.JoinedStr: _string,
}

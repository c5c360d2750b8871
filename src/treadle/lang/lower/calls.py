"""Calls: casts, structs, vectors, td's functions, some of Python's, and device functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_number_dtype
from treadle.core.errors import DtypeError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.rules import subgroup_type
from treadle.lang.builtins import SUBGROUP_OPERATIONS, BuiltinFunction
from treadle.lang.definitions import DeviceFunction, KernelFunction
from treadle.lang.equivalents import equivalent
from treadle.lang.lower import fragments, mathematics, matrices, positions, stages
from treadle.lang.lower.arrays import fill_with_zeros, memory_variable, own_array, place_of, store
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import (
    cast,
    condition,
    convert,
    convert_for_store,
    number,
    scalar,
    text,
    typed,
)
from treadle.lang.lower.expressions import (
    attribute,
    choose_in_memory,
    in_order,
    lower_condition,
    lower_expression,
    one_argument,
    positional,
)
from treadle.lang.lower.functions import call_function
from treadle.lang.lower.names import (
    PYTHON_CASTS,
    hides_function,
    is_of_arrays,
)
from treadle.lang.lower.operators import binary, join
from treadle.lang.lower.python_functions import OF_ITEMS, equivalent_call, iteration
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    FragmentMethod,
    Position,
    PositionMethod,
    PythonObject,
    Range,
    TupleValue,
    Value,
    contains_array,
    describe,
    spelled,
)
from treadle.lang.matrices import FUNCTIONS, METHODS, is_matrix_class
from treadle.lang.positions import CellRules, Tile
from treadle.lang.rules import Literal
from treadle.lang.source import source_of
from treadle.lang.types import TypeFamily, VectorType, ir_type, is_struct


def lower_call(cx: Context, node: ast.Call, name: str = "", *, unused: bool = False) -> Value:
    """The value of a call. `name` is the variable that it is assigned to, `unused` whether the
    value is discarded."""
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            raise cx.refusal("Starred", argument)
    for keyword in node.keywords:
        if keyword.arg is None:
            raise cx.refusal("Starred", keyword.value)
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        owner = lower_expression(cx, node.func.value)
        if matrices.shape_of(owner) is not None:
            return matrices.call_method(cx, owner, node.func.attr, node)  # type: ignore[arg-type]
        callee = attribute(cx, owner, node.func.attr, node.func)
    else:
        callee = lower_expression(cx, node.func)
    if isinstance(callee, PositionMethod):
        return positions.call_method(cx, callee, positional(cx, node), node)
    if isinstance(callee, FragmentMethod):
        return fragments.call_method(cx, callee, node)
    if not isinstance(callee, PythonObject):
        raise cx.refusal("not_callable", node.func, name=ast.unparse(node.func))
    target = callee.value
    if isinstance(target, BuiltinFunction):
        return _builtin(cx, target, node, name, unused)
    if isinstance(target, DType):
        if target.is_complex:
            raise cx.refusal("complex", node)
        return cast(cx, one_argument(cx, node, callee.name), t.SCALARS[target.short], node)
    if isinstance(target, VectorType):
        return make_vector(cx, target.ir, node)
    if is_matrix_class(target):
        return matrices.make(cx, target, positional(cx, node), node)
    if isinstance(target, TypeFamily):
        raise cx.error(f"{callee.name} needs a dtype, as in {target.example}(…)", node)
    if is_struct(target):
        return make_struct(cx, target, node)
    return _python_call(cx, callee, node, unused)


def _python_call(cx: Context, callee: PythonObject, node: ast.Call, unused: bool) -> Value:
    target = callee.value
    if isinstance(target, CellRules):
        found = [typed(cx, value, node) for value in positional(cx, node)]
        indices = tuple(cx.spill(index, "cell") for index in found[: target.ndim])
        return Position(target, indices, tuple(found[target.ndim :]))
    if isinstance(target, Tile):
        return positions.tile(cx, target, positional(cx, node), node)
    if target is range:
        return _range(cx, node, unrolled=False)
    if target is print:
        return _print(cx, node)
    if target is enumerate or target is zip:
        return iteration(cx, callee, node)
    if target is len:
        return _length(cx, node)
    if isinstance(target, KernelFunction):
        if isinstance(node.func, ast.Name) and hides_function(node.func.id):
            raise cx.refusal("hidden_function", node.func, name=node.func.id, kind="kernel")
        raise cx.refusal("kernel_call", node.func, name=callee.name)
    if isinstance(target, DeviceFunction):
        return call_function(cx, target.definition, target.source_code, node, unused)
    if isinstance(target, FunctionType) and _is_library_function(target):
        return call_function(cx, target, source_of(target), node, unused)
    try:
        cast_to = PYTHON_CASTS.get(target)
        of_items = OF_ITEMS.get(target)
        method = FUNCTIONS.get(target)
    except TypeError:
        cast_to = of_items = method = None
    if method is not None:
        return matrices.call_function(cx, callee, method, positional(cx, node), node)
    if cast_to is not None:
        if any(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in node.args):
            raise cx.refusal("number_text", node)
        return cast(cx, one_argument(cx, node, callee.name), cast_to, node)
    if of_items is not None:
        return of_items(cx, callee, positional(cx, node), node)
    meant = equivalent(target, len(node.args))
    if isinstance(meant, BuiltinFunction) and meant.group == "value":
        return _builtin(cx, meant, node, "", unused)
    if meant is not None:
        return equivalent_call(cx, callee, meant, node)
    if callable(target):
        key = "foreign_call" if isinstance(target, FunctionType) else "foreign_builtin"
        if is_of_arrays(target):
            key = "array_function"
        raise cx.refusal(key, node.func, name=callee.name)
    raise cx.refusal("not_callable", node.func, name=describe(callee))


def _is_library_function(function: FunctionType) -> bool:
    return function.__module__.startswith(("treadle.lang.math", "treadle.lang.fragment_methods"))


# --- values --------------------------------------------------------------------------------------


def make_vector(cx: Context, type: t.Vector, node: ast.Call) -> Value:
    """A vector from numbers and vectors, one number for all components, or nothing for zero."""
    parts: list[Value] = []
    for value in positional(cx, node):
        for item in value.items if isinstance(value, TupleValue) else (value,):
            found = number(cx, item, node)
            if not isinstance(found, Literal) and isinstance(found.type, t.Vector):
                vector = cx.spill(found)
                element = found.type.element
                parts += [
                    n.Extract(vector, c, element, cx.span(node))
                    for c in t.COMPONENTS[: found.type.count]
                ]
            else:
                parts.append(found)
    if len(parts) in (0, 1):
        one = cast(cx, parts[0] if parts else Literal(0), type.element, node)
        return n.Construct((cx.spill(one),) * type.count, type, cx.span(node))
    if len(parts) != type.count:
        given = f"{spelled(type)} has {type.count} components, but {len(parts)} are given"
        raise cx.error(f"{given}: give each, or one number for all", node)
    return n.Construct(tuple(cast(cx, p, type.element, node) for p in parts), type, cx.span(node))


def make_struct(cx: Context, target: Any, node: ast.Call) -> Value:
    """A struct from its fields, by position or name; an omitted field is its default, or zero."""
    type = ir_type(target)
    assert isinstance(type, t.Struct)
    names = [field.name for field in type.fields]
    if len(node.args) > len(names):
        raise cx.error(f"{type.name} has {len(names)} fields, not {len(node.args)}", node)
    given: dict[str, ast.expr] = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg not in names:
            raise cx.refusal(
                "unknown_attribute",
                keyword.value,
                owner=type.name,
                name=keyword.arg,
                choices=", ".join(names),
            )
        if keyword.arg in given:
            raise cx.error(f"field {keyword.arg} is given twice", keyword.value)
        given[keyword.arg] = keyword.value
    values = dict(zip(given, in_order(cx, list(given.values())), strict=True))
    if contains_array(type):
        return _struct_in_memory(cx, target, type, values, node)
    operands = []
    for field in type.fields:
        what = f"field {field.name} of {type.name}"
        if field.name in values:
            operands.append(convert(cx, values[field.name], field.type, node, what))
        else:
            operands.append(_default(cx, target, field, node))
    return n.Construct(tuple(operands), type, cx.span(node))


def _struct_in_memory(
    cx: Context, target: Any, type: t.Struct, values: dict[str, Value], node: ast.Call
) -> n.Load:
    """A struct that holds arrays: its fields are stored one by one."""
    span = cx.span(node)
    made = memory_variable(cx, type, type.name.lower(), span)
    for field in type.fields:
        place = n.Member(made.place, field.name, field.type, span)
        value = values.get(field.name)
        default = getattr(target, field.name, None)
        if value is None and isinstance(field.type, t.Array) and default is not None:
            items = np.broadcast_to(np.asarray(default), (field.type.length,)).tolist()
            value = TupleValue(tuple(Literal(item) for item in items))
        if value is not None:
            store(cx, place, value, node, f"field {field.name} of {type.name}")
        elif contains_array(field.type):
            fill_with_zeros(cx, place, span)
        else:
            cx.emit(n.Assign(place, _default(cx, target, field, node), span))
    return made


def _default(cx: Context, target: Any, field: t.Field, node: ast.AST) -> n.Expression:
    value = getattr(target, field.name, 0)
    if isinstance(value, (bool, int, float)) and isinstance(field.type, t.Scalar):
        return cast(cx, Literal(value), field.type, node)
    return zero(cx, field.type, node)


def zero(cx: Context, type: t.Type, node: ast.AST) -> n.Expression:
    """A value of zeros."""
    match type:
        case t.Scalar():
            return cast(cx, Literal(0), type, node)
        case t.Vector():
            parts = (zero(cx, type.element, node),) * type.count
            return n.Construct(parts, type, cx.span(node))
        case t.Struct():
            fields = tuple(zero(cx, field.type, node) for field in type.fields)
            return n.Construct(fields, type, cx.span(node))
    raise AssertionError(type)


def _length(cx: Context, node: ast.Call) -> Value:
    value = one_argument(cx, node, "len")
    if isinstance(value, TupleValue):
        return Literal(len(value.items))
    if isinstance(value, ArrayView) and value.ndim:
        return value.extents[0]
    if isinstance(value, FixedArrayPlace):
        return Literal(value.type.length)
    raise cx.error(f"{describe(value)} has no length: len takes arrays and tuples", node)


def _range(cx: Context, node: ast.Call, *, unrolled: bool) -> Value:
    values = positional(cx, node)
    if not 1 <= len(values) <= 3:
        raise cx.error(f"range takes one to three arguments, not {len(values)}", node)
    for value in values:
        found = scalar(cx, value, node, "a bound of range")
        kind = found.value if isinstance(found, Literal) else found.type
        if isinstance(kind, float) or (isinstance(kind, t.Scalar) and not kind.is_integer):
            raise cx.error(
                f"range counts integers, not {describe(found)}: write td.i32(…), or // for /",
                node,
            )
    start = values[0] if len(values) > 1 else Literal(0)
    stop = values[1] if len(values) > 1 else values[0]
    return Range(start, stop, values[2] if len(values) > 2 else Literal(1), unrolled)


# --- print ---------------------------------------------------------------------------------------


def _print(cx: Context, node: ast.Call) -> Value:
    if node.keywords:
        raise cx.error("print in a kernel takes no keywords: it writes one line", node)
    parts: list[str | n.Expression] = []
    for at, argument in enumerate(node.args):
        if at:
            parts.append(" ")
        if isinstance(argument, ast.JoinedStr):
            for piece in argument.values:
                if isinstance(piece, ast.FormattedValue):
                    if piece.format_spec is not None or piece.conversion != -1:
                        raise cx.refusal("JoinedStr", argument)
                    parts += _printed(cx, lower_expression(cx, piece.value), argument)
                elif isinstance(piece, ast.Constant):
                    parts.append(text(cx, str(piece.value), argument))
        else:
            parts += _printed(cx, lower_expression(cx, argument), argument)
    cx.emit(n.Print(_merged(parts), span=cx.span(node)))
    return PythonObject(None, "None")


def _printed(cx: Context, value: Value, node: ast.AST) -> list[str | n.Expression]:
    if isinstance(value, PythonObject):
        return [text(cx, str(value.value), node)]
    if isinstance(value, TupleValue):
        return _listed(cx, "(", value.items, ",)" if len(value.items) == 1 else ")", node)
    if isinstance(value, Literal):
        return [str(value.value)]
    found = typed(cx, value, node)
    if isinstance(found.type, t.Vector):
        vector = cx.spill(found)
        parts = [
            n.Extract(vector, c, found.type.element, cx.span(node))
            for c in t.COMPONENTS[: found.type.count]
        ]
        return _listed(cx, "(", parts, ")", node)
    if matrices.shape_of(found) is not None:
        return _listed(cx, "(", matrices.rows_of(cx, found, node), ")", node)
    if not isinstance(found.type, t.Scalar):
        raise cx.error(
            f"print shows numbers and text, not {spelled(found.type)}: print its fields", node
        )
    return [found]


def _listed(
    cx: Context, opening: str, items: Sequence[Value], closing: str, node: ast.AST
) -> list[str | n.Expression]:
    parts: list[str | n.Expression] = [opening]
    for at, item in enumerate(items):
        parts += [", "] if at else []
        parts += _printed(cx, item, node)
    return [*parts, closing]


def _merged(parts: Sequence[str | n.Expression]) -> tuple[str | n.Expression, ...]:
    """The parts with neighbouring texts merged."""
    merged: list[str | n.Expression] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)


# --- td's functions ------------------------------------------------------------------------------


def _builtin(
    cx: Context, function: BuiltinFunction, node: ast.Call, name: str, unused: bool
) -> Value:
    least, most = function.arity
    given = len(node.args) + len(node.keywords)
    if not least <= given <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise cx.error(
            f"{function.usage} takes {wanted} argument{'' if most == 1 else 's'}, not {given}", node
        )
    if function.group == "math":
        return mathematics.lower_math(cx, function.name, positional(cx, node), node)
    if function.group == "atomic":
        return _atomic(cx, function.name.removeprefix("atomic_"), node, unused)
    if function.name in n.MATRIX_OPERATIONS:
        return fragments.exchange(cx, function.name, positional(cx, node), node)
    if function.name in SUBGROUP_OPERATIONS:
        return _subgroup(cx, SUBGROUP_OPERATIONS[function.name], node)
    return _OTHERS[function.name](cx, node, name)


def _grid(cx: Context, node: ast.Call, name: str) -> Value:
    return _per_axis(cx, node, global_index)


def _grid_size(cx: Context, node: ast.Call, name: str) -> Value:
    def extent(cx: Context, axis: int, node: ast.AST) -> n.Expression:
        return _product(cx, "grid_dim", "block_dim", axis, node)

    return _per_axis(cx, node, extent)


def _per_axis(
    cx: Context, node: ast.Call, one: Callable[[Context, int, ast.AST], n.Expression]
) -> Value:
    value = one_argument(cx, node, ast.unparse(node.func))
    if not isinstance(value, Literal) or value.value not in (1, 2, 3):
        raise cx.error("the number of axes is the literal 1, 2 or 3", node)
    axes = int(value.value)
    values = tuple(one(cx, axis, node) for axis in reversed(range(axes)))
    return values[0] if axes == 1 else TupleValue(values)


def global_index(cx: Context, axis: int, node: ast.AST) -> n.Expression:
    """block_idx * block_dim + thread_idx along an axis, in the kernel's index type."""
    type = cx.lowering.index_type
    thread = cast(cx, n.Builtin("thread_idx", axis, t.I32, cx.span(node)), type, node)
    start = _product(cx, "block_idx", "block_dim", axis, node)
    return n.Binary("add", start, thread, type, cx.span(node))


def _product(cx: Context, first: str, second: str, axis: int, node: ast.AST) -> n.Expression:
    type, span = cx.lowering.index_type, cx.span(node)
    one = cast(cx, n.Builtin(first, axis, t.I32, span), type, node)
    other = cast(cx, n.Builtin(second, axis, t.I32, span), type, node)
    return n.Binary("mul", one, other, type, span)


def _array(space: str) -> Callable[[Context, ast.Call, str], Value]:
    def lower(cx: Context, node: ast.Call, name: str) -> Value:
        given: dict[str, ast.expr] = dict(zip(("shape", "dtype"), node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in ("shape", "dtype"):
                raise cx.error(f"td.{space}(shape, dtype) has no argument {keyword.arg}", node)
            given[keyword.arg] = keyword.value
        if len(given) != 2:
            raise cx.error(f"td.{space}(shape, dtype) needs both", node)
        values = in_order(cx, [given["shape"], given["dtype"]])
        return own_array(cx, space, values[0], values[1], name or space, node)

    return lower


def _statement(make: Callable[[Span], n.Statement]) -> Callable[[Context, ast.Call, str], Value]:
    def lower(cx: Context, node: ast.Call, name: str) -> Value:
        cx.emit(make(cx.span(node)))
        return PythonObject(None, ast.unparse(node.func))

    return lower


def _static_range(cx: Context, node: ast.Call, name: str) -> Value:
    return _range(cx, node, unrolled=True)


def _place(builtin: str) -> Callable[[Context, ast.Call, str], Value]:
    return lambda cx, node, name: n.Builtin(builtin, 0, t.I32, cx.span(node))


def _bitcast(cx: Context, node: ast.Call, name: str) -> Value:
    value, dtype = positional(cx, node)
    try:
        wanted = t.SCALARS[
            as_number_dtype(dtype.value if isinstance(dtype, PythonObject) else dtype).short
        ]
    except DtypeError as error:
        raise cx.error(f"td.bitcast(x, dtype): {error}", node) from None
    found = scalar(cx, value, node, "the argument of td.bitcast")
    if isinstance(found, Literal) and not isinstance(found.value, float) and wanted.is_float:
        # The bits of a literal: an unsigned number of the float's width.
        found = cast(cx, found, t.SCALARS[f"u{wanted.bits}"], node)
    found = typed(cx, found, node)
    assert isinstance(found.type, t.Scalar)
    if found.type.bits != wanted.bits:
        raise cx.error(f"td.bitcast keeps the size: {found.type} is not as wide as {wanted}", node)
    return found if found.type == wanted else n.Bitcast(found, wanted, cx.span(node))


def _where(cx: Context, node: ast.Call, name: str) -> Value:
    choice, left, right = positional(cx, node)
    test = condition(cx, choice, node)
    if isinstance(test, Literal):
        return left if test.value else right
    one, other = join(cx, left, right, node, "the two values of td.where")
    if contains_array(one.type):
        return choose_in_memory(cx, test, ([], one), ([], other), node)
    return n.Select(test, one, other, one.type, cx.span(node))


def _dot(cx: Context, node: ast.Call, name: str) -> Value:
    left, right = (typed(cx, value, node) for value in positional(cx, node))
    if left.type != right.type or not isinstance(left.type, t.Vector):
        raise cx.error(
            f"td.dot takes two vectors of one type, not {spelled(left.type)} and "
            f"{spelled(right.type)}: write a loop for arrays, a product for numbers",
            node,
        )
    return n.Intrinsic("dot", (left, right), left.type.element, cx.span(node))


def _cross(cx: Context, node: ast.Call, name: str) -> Value:
    left, right = (typed(cx, value, node) for value in positional(cx, node))
    if left.type != right.type or not isinstance(left.type, t.Vector) or left.type.count != 3:
        raise cx.error(
            f"td.cross takes two vectors of three numbers and of one type, not "
            f"{spelled(left.type)} and {spelled(right.type)}",
            node,
        )
    a, b, element, span = cx.spill(left), cx.spill(right), left.type.element, cx.span(node)
    parts = []
    for one, other in ("yz", "zx", "xy"):
        terms = [
            n.Binary(
                "mul", n.Extract(a, first, element), n.Extract(b, second, element), element, span
            )
            for first, second in ((one, other), (other, one))
        ]
        parts.append(n.Binary("sub", terms[0], terms[1], element, span))
    return n.Construct(tuple(parts), left.type, span)


def _of_length(
    cx: Context, node: ast.Call, function: str
) -> tuple[n.Expression, n.Expression, t.Vector]:
    """A vector in f32, or f64, its length, and the vector type of results."""
    vector = typed(cx, one_argument(cx, node, function), node)
    if not isinstance(vector.type, t.Vector):
        raise cx.error(
            f"{function} takes a vector, not {describe(vector)}: td.abs(x) is the size of a "
            "number, td.hypot(x, y) that of two",
            node,
        )
    element = vector.type.element
    result = t.Vector(element if element.is_float else t.F32, vector.type.count)
    wide = t.Vector(t.F64 if element == t.F64 else t.F32, vector.type.count)
    vector = cx.spill(cast(cx, vector, wide, node))
    squares = n.Intrinsic("dot", (vector, vector), wide.element, cx.span(node))
    return vector, mathematics.root(cx, squares, node), result


def _length_of(cx: Context, node: ast.Call, name: str) -> Value:
    _, length, result = _of_length(cx, node, "td.length")
    return cast(cx, length, result.element, node)


def _normalize(cx: Context, node: ast.Call, name: str) -> Value:
    vector, length, result = _of_length(cx, node, "td.normalize")
    return cast(cx, binary(cx, "/", vector, length, node), result, node)


def _cycles(cx: Context, node: ast.Call, name: str) -> Value:
    span = cx.span(node)
    read = cx.temporary(t.U64, span, "cycles")
    cx.emit(n.Clock(read, span))
    return n.Cast(read, t.I64, span)


def _sixteen_bytes(cx: Context, node: ast.Call, name: str) -> Value:
    array, index = positional(cx, node)
    return fragments.sixteen_bytes(cx, array, index, node)


def _number_at(cx: Context, node: ast.Call, name: str) -> Value:
    array, index = positional(cx, node)
    return fragments.number_at(cx, array, index, node)


def _copy_later(cx: Context, node: ast.Call, name: str) -> Value:
    array, index, value = positional(cx, node)
    if not isinstance(array, ArrayView):
        raise cx.error(f"td.copy_later takes an array, not {describe(array)}", node)
    if isinstance(getattr(value, "type", None), t.Scalar):
        array = fragments.of_numbers(cx, array, node)  # the index counts numbers
    place = place_of(cx, array, index, node, "write")
    copied = convert_for_store(cx, value, place.type, node, "the copy")
    cx.emit(n.Assign(place, copied, cx.span(node), later=True))
    return PythonObject(None, "None")


def _wait_copies(cx: Context, node: ast.Call, name: str) -> Value:
    left = one_argument(cx, node, "td.wait_copies")
    if not isinstance(left, Literal):
        raise cx.error("the groups that td.wait_copies leaves are a constant", node)
    cx.emit(n.Copies(int(left.value), cx.span(node)))
    return PythonObject(None, "None")


_OTHERS: dict[str, Callable[[Context, ast.Call, str], Value]] = {
    "fragment": fragments.new,
    "sixteen_bytes": _sixteen_bytes,
    "number_at": _number_at,
    "copy_later": _copy_later,
    "end_copies": _statement(lambda span: n.Copies(None, span)),
    "wait_copies": _wait_copies,
    **stages.FUNCTIONS,
    "grid": _grid,
    "grid_size": _grid_size,
    "shared": _array("shared"),
    "local": _array("local"),
    "static_range": _static_range,
    "sync_threads": _statement(lambda span: n.Barrier("block", span=span)),
    "sync_subgroup": _statement(lambda span: n.Barrier("subgroup", span=span)),
    "thread_fence": _statement(lambda span: n.Fence("device", span)),
    "thread_fence_block": _statement(lambda span: n.Fence("block", span)),
    "fence_system": _statement(lambda span: n.Fence("system", span)),
    "fence_sequential": _statement(lambda span: n.Fence("system", span, sequential=True)),
    "cycles": _cycles,
    "lane": _place("lane"),
    "subgroup_size": _place("subgroup_size"),
    "bitcast": _bitcast,
    "where": _where,
    "cross": _cross,
    "dot": _dot,
    "length": _length_of,
    "normalize": _normalize,
}


def _atomic(cx: Context, op: str, node: ast.Call, unused: bool) -> Value:
    array, index, *values = positional(cx, node)
    if not isinstance(array, (ArrayView, FixedArrayPlace)):
        raise cx.error(
            f"an atomic works on an array, not on {describe(array)}: give the array and the index, "
            "as in td.atomic_add(a, i, value)",
            node,
        )
    mark = len(cx.statements)
    place = positions.element_of(cx, array, index, node, "atomic")
    values = cx.protect(values, mark)
    type = place.type
    if not isinstance(type, t.Scalar) or type == t.BOOL:
        raise cx.error(f"an atomic works on numbers, not on {spelled(type)}", node)
    if op in ("and", "or", "xor") and type.is_float:
        raise cx.error(f"atomic_{op} works on integers, not on {type}", node)
    what = "the array's element"
    operands = tuple(convert_for_store(cx, value, type, node, what) for value in values)
    result = None if unused else cx.temporary(type, cx.span(node), "old")
    cx.emit(n.Atomic(op, place, operands, result, cx.span(node)))
    return PythonObject(None, "None") if result is None else result


def _subgroup(cx: Context, op: str, node: ast.Call) -> Value:
    if op in ("vote_all", "vote_any", "ballot"):
        test = lower_condition(cx, node.args[0])
        operands: tuple[n.Expression, ...] = (typed(cx, test, node),)
    else:
        values = positional(cx, node)
        value = typed(cx, scalar(cx, values[0], node, "the value that a subgroup exchanges"), node)
        if value.type == t.BOOL and not op.startswith("shuffle"):
            value = cast(cx, value, t.I32, node)
        lanes = []
        for other in values[1:]:
            found = scalar(cx, other, node, "a lane")
            kind = found.value if isinstance(found, Literal) else found.type
            if isinstance(kind, float) or (isinstance(kind, t.Scalar) and kind.is_float):
                raise cx.error("a lane is an integer", node)
            lanes.append(cast(cx, found, t.I32, node))
        operands = (value, *lanes)
    type = subgroup_type(op, operands[0].type)
    result = cx.temporary(type, cx.span(node), op)
    cx.emit(n.Subgroup(op, operands, result, span=cx.span(node)))
    return result

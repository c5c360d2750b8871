"""Indexing: places in memory with their bounds checks, and shared and local arrays."""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from treadle.core.errors import DtypeError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.fragments import FragmentKind
from treadle.lang.lower.context import Access, CellAccess, Context
from treadle.lang.lower.conversions import cast, constant, convert_for_store, number
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    Position,
    PythonObject,
    TupleValue,
    Value,
    contains_array,
    describe,
    spelled,
)
from treadle.lang.rules import Literal, fits, index_problem
from treadle.lang.types import ir_type


def place_of(
    cx: Context,
    array: ArrayView | FixedArrayPlace,
    index: Value,
    node: ast.AST,
    access: Access = "read",
) -> n.MemoryPlace:
    """The place of an element; `index` is a number, or a tuple with one number for each axis."""
    if isinstance(array, ArrayView) and array.origin:
        cx.lowering.accesses.append(
            CellAccess(array.origin, access, None, cx.span(node), array.layer)
        )
    check_writable(cx, array, node, access)
    if isinstance(array, ArrayView) and array.fragment and not array.fragment.indexed:
        raise cx.error(f"{array.fragment} cannot be indexed: store it to td.shared", node)
    if isinstance(array, ArrayView) and array.fragment and array.fragment.use != "accumulator":
        raise cx.error(
            f"{array.fragment} has no numbers to index: only those of accumulators can be", node
        )
    parts: Sequence[Value] = index.items if isinstance(index, TupleValue) else (index,)
    ndim = array.ndim if isinstance(array, ArrayView) else 1
    if len(parts) != ndim:
        raise cx.refusal(
            "axes",
            node,
            ndim=ndim,
            s="" if ndim == 1 else "s",
            given=len(parts),
            example=", ".join("ijklmnop"[:ndim]),
        )
    if isinstance(array, ArrayView) and array.fragment is not None:
        check_number_of(cx, array.fragment, parts[0], node)
    indices = [index_along(cx, part, node) for part in parts]
    if isinstance(array, FixedArrayPlace):
        bound = n.Constant(array.type.length, t.I32)
        checks = checks_of(cx, indices, (bound,), node)
        at = cast(cx, indices[0], t.I32, node)
        return n.Item(array.place, at, array.type.element, checks, cx.span(node))
    checks = checks_of(cx, indices, array.extents, node)
    flat = flat_index(cx, array, indices, node)
    return n.Element(array.memory, flat, array.element, checks, cx.span(node))


def check_number_of(cx: Context, kind: FragmentKind, index: Value, node: ast.AST) -> None:
    """Refuse a constant that counts none of the numbers that a thread has of a fragment."""
    known = static_number(cx, index)
    if isinstance(known, int) and not isinstance(known, bool) and not 0 <= known < kind.words:
        raise cx.error(
            f"a thread has {kind.words} numbers of {kind}, from 0 to {kind.words - 1}, and this is "
            f"number {known}: count them with td.static_range(fragment.size)",
            node,
        )


def check_writable(
    cx: Context, array: ArrayView | FixedArrayPlace, node: ast.AST, access: Access
) -> None:
    """Refuse to write an array from outside."""
    if access != "read" and isinstance(array, ArrayView) and array.constant:
        raise cx.refusal("constant_array", node)


def cell_index(
    cx: Context, array: ArrayView, indices: Sequence[n.Expression], node: ast.AST
) -> n.Expression:
    """The offset of a cell in the array's memory, in the type of the indices."""
    type = _scalar_type(indices[0])
    if type != array.index_type:
        array = replace(
            array,
            extents=tuple(cast(cx, extent, type, node) for extent in array.extents),
            strides=array.strides and tuple(cast(cx, each, type, node) for each in array.strides),
            offset=None if array.offset is None else cast(cx, array.offset, type, node),
            index_type=type,
        )
    return flat_index(cx, array, indices, node)


def cell_array(cx: Context, array: Value, position: Position, node: ast.AST) -> ArrayView:
    """The array that a position indexes; an error for one of another rank."""
    ndim = len(position.indices)
    if not isinstance(array, ArrayView):
        raise cx.error(f"a position indexes arrays, and this is {describe(array)}", node)
    if array.ndim != ndim:
        axes = f"{ndim} {'axis' if ndim == 1 else 'axes'}"
        stack = (
            f"choose one of its grids, as in a[{', '.join('0' * (array.ndim - ndim))}][pos], or "
        )
        raise cx.error(
            f"{position.rules.grid} has {axes}, and this is {describe(array)}: "
            f"{stack if array.ndim > ndim else ''}index it with numbers (pos.index has those of "
            "the cell)",
            node,
        )
    return array


def _scalar_type(value: n.Expression) -> t.Scalar:
    assert isinstance(value.type, t.Scalar)
    return value.type


def index_along(cx: Context, part: Value, node: ast.AST) -> n.Expression:
    """The index along one axis, as an expression that may be repeated."""
    if isinstance(part, PythonObject) and part.value is Ellipsis:
        raise cx.refusal("ellipsis", node)
    if isinstance(part, Position):
        raise cx.error(
            "a position stands alone in its brackets: a grid of a stack is chosen before it, as in "
            "f[q][pos], and numbers are those of pos.index",
            node,
        )
    found = number(cx, part, node)
    kind = found if isinstance(found, Literal) else found.type
    if isinstance(kind, (t.Vector, t.Struct)):
        raise cx.error(f"an index is an integer, not {describe(found)}", node)
    assert isinstance(kind, (Literal, t.Scalar))
    problem = index_problem(kind)
    if problem:
        raise cx.error(problem, node)
    if isinstance(found, Literal):
        value = int(found.value)
        type = t.I32 if fits(value, t.I32) else t.I64
        return constant(value, type, cx, node)
    narrow = found.type
    assert isinstance(narrow, t.Scalar)
    if narrow.bits < 32:
        found = cast(cx, found, t.I32, node)
    return cx.spill(found, "i")


def checks_of(
    cx: Context,
    indices: Sequence[n.Expression],
    extents: Sequence[n.Expression],
    node: ast.AST,
) -> tuple[n.Check, ...]:
    """The tests that indices are inside, in a kernel that is checked."""
    if not cx.lowering.checked:
        return ()
    checks = []
    for axis, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        # Compared in the wider of the two types, so that an index does not wrap into the array.
        wide = t.I64 if t.I64 in (index.type, extent.type) or index.type == t.U64 else t.I32
        inside = cast(cx, index, wide, node), cast(cx, extent, wide, node)
        # A method of a fragment loads zeros outside, and stores nothing there.
        checks.append(n.Check(*inside, axis, expected=not cx.has_places))
    return tuple(checks)


def flat_index(
    cx: Context, array: ArrayView, indices: Sequence[n.Expression], node: ast.AST
) -> n.Expression:
    """The element's offset in its memory."""
    type = array.index_type
    span = cx.span(node)
    flat: n.Expression | None = array.offset
    if array.strides is not None:
        for index, stride in zip(indices, array.strides, strict=True):
            term = _binary("mul", cast(cx, index, type, node), stride, span)
            flat = term if flat is None else _binary("add", flat, term, span)
        return flat if flat is not None else n.Constant(0, type, span)
    position: n.Expression | None = None
    for index, extent in zip(indices, array.extents, strict=True):
        index = cast(cx, index, type, node)
        position = (
            index
            if position is None
            else _binary("add", _binary("mul", position, extent, span), index, span)
        )
    if position is None:
        position = n.Constant(0, type, span)
    return position if flat is None else _binary("add", flat, position, span)


def _binary(op: str, left: n.Expression, right: n.Expression, span: Span) -> n.Expression:
    one = 1 if op == "mul" else 0
    if isinstance(right, n.Constant) and right.value == one:
        return left
    if isinstance(left, n.Constant) and left.value == one:
        return right
    return n.Binary(op, left, right, left.type, span)


def load(cx: Context, place: n.MemoryPlace, node: ast.AST) -> Value:
    """The value at a place. A fixed array is not copied."""
    if isinstance(place.type, t.Array):
        return FixedArrayPlace(place, place.type)
    return n.Load(place, place.type, cx.span(node))


def part_of(cx: Context, value: n.Expression, name: str, type: t.Type, node: ast.AST) -> Value:
    """A field or component. Of a value in memory, only that part is loaded."""
    if isinstance(value, n.Load):
        return load(cx, n.Member(value.place, name, type, cx.span(node)), node)
    return n.Extract(value, name, type, cx.span(node))


def store(cx: Context, place: n.Place, value: Value, node: ast.AST, what: str) -> None:
    """Store a value at a place, converted to its type where that is lossless."""
    if isinstance(place.type, t.Array) and not isinstance(value, (FixedArrayPlace, n.Load)):
        _store_items(cx, place, place.type, value, node, what)
        return
    if contains_array(place.type):
        source = value.place if isinstance(value, FixedArrayPlace) else value
        if isinstance(source, n.Load):
            source = source.place
        if not isinstance(source, (n.Element, n.Member, n.Item)) or source.type != place.type:
            raise cx.error(f"{what} is {spelled(place.type)}, and this is {describe(value)}", node)
        copy_parts(cx, place, source, cx.span(node))
        return
    cx.emit(n.Assign(place, convert_for_store(cx, value, place.type, node, what), cx.span(node)))


def _store_items(
    cx: Context, place: n.Place, type: t.Array, value: Value, node: ast.AST, what: str
) -> None:
    """Fill a fixed array from a tuple of its length, or with one number."""
    span = cx.span(node)
    if not isinstance(value, TupleValue):
        one = cx.spill(convert_for_store(cx, value, type.element, node, f"an item of {what}"))
        with _each_item(cx, type, span) as index:
            cx.emit(n.Assign(n.Item(place, index, type.element, (), span), one, span))
        return
    if len(value.items) != type.length:
        raise cx.error(f"{what} is {spelled(type)}, and this is {describe(value)}", node)
    if contains_array(type.element):
        items: list[Value] = list(value.items)
    else:  # all are evaluated before any is stored
        called = f"an item of {what}"
        items = [
            cx.spill(convert_for_store(cx, item, type.element, node, called))
            for item in value.items
        ]
    for at, item in enumerate(items):
        store(cx, n.Item(place, n.Constant(at, t.I32), type.element, (), span), item, node, what)


@contextmanager
def _each_item(cx: Context, type: t.Array, span: Span) -> Iterator[n.Variable]:
    """A loop over the items of a fixed array; statements emitted inside are its body."""
    index = n.Variable(cx.unique("item.0"), t.I32, span)
    bounds = (n.Constant(0, t.I32), n.Constant(type.length, t.I32))
    with cx.block(loop=True) as body:
        yield index
    cx.emit(n.For(index, *bounds, 1, tuple(body), span=span))


def copy_parts(cx: Context, target: n.Place, source: n.MemoryPlace, span: Span) -> None:
    """Copy a struct that holds arrays, part by part."""
    type = target.type
    if isinstance(type, t.Array):
        with _each_item(cx, type, span) as index:
            copy_parts(
                cx,
                n.Item(target, index, type.element, (), span),
                n.Item(source, index, type.element, (), span),
                span,
            )
    elif isinstance(type, t.Struct) and contains_array(type):
        for field in type.fields:
            copy_parts(
                cx,
                n.Member(target, field.name, field.type, span),
                n.Member(source, field.name, field.type, span),
                span,
            )
    else:
        cx.emit(n.Assign(target, n.Load(source, type, span), span))


def fill_with_zeros(cx: Context, place: n.Place, span: Span) -> None:
    """Store zeros in every part of a place."""
    match place.type:
        case t.Array(element):
            with _each_item(cx, place.type, span) as index:
                fill_with_zeros(cx, n.Item(place, index, element, (), span), span)
        case t.Struct(_, fields):
            for field in fields:
                fill_with_zeros(cx, n.Member(place, field.name, field.type, span), span)
        case t.Vector(element, count):
            zero = n.Constant(0.0 if element.is_float else 0, element, span)
            cx.emit(n.Assign(place, n.Construct((zero,) * count, place.type, span), span))
        case t.Scalar() as scalar:
            zero_of = False if scalar == t.BOOL else 0.0 if scalar.is_float else 0
            cx.emit(n.Assign(place, n.Constant(zero_of, scalar, span), span))


def copied(cx: Context, value: n.Expression, name: str, span: Span) -> n.Load:
    """A copy in a memory variable of a struct that holds arrays."""
    assert isinstance(value, n.Load)
    kept = memory_variable(cx, value.type, name, span)
    copy_parts(cx, kept.place, value.place, span)
    return kept


def memory_variable(cx: Context, type: t.Type, name: str, span: Span) -> n.Load:
    """A local variable that must live in memory, because it holds a fixed array."""
    memory = n.Memory(cx.unique(name), "local", type, 1, span)
    cx.memories.append(memory)
    place = n.Element(memory.name, n.Constant(0, t.I32, span), type, (), span)
    return n.Load(place, type, span)


def own_array(
    cx: Context, space: str, shape: Value, dtype: Value, name: str, node: ast.AST
) -> ArrayView:
    """`td.shared(shape, dtype)` and `td.local(shape, dtype)`."""
    span = cx.span(node)
    if not isinstance(dtype, PythonObject):
        raise cx.error(f"td.{space}(shape, dtype): {describe(dtype)} is not a dtype", node)
    try:
        element = ir_type(dtype.value)
    except DtypeError as error:
        raise cx.error(f"td.{space}(shape, dtype): {error}", node) from None
    memory_name = cx.unique(name)
    if isinstance(shape, PythonObject) and shape.value is None:
        return _dynamic_shared(cx, space, element, memory_name, node)
    sizes = _static_shape(cx, space, shape, node)
    length = 1
    for size in sizes:
        length *= size
    kind: typing.Literal["shared", "local"] = "shared" if space == "shared" else "local"
    cx.memories.append(n.Memory(memory_name, kind, element, length, span))
    extents = tuple(n.Constant(size, t.I32, span) for size in sizes)
    return ArrayView(memory_name, element, extents, n.Constant(length, t.I32, span))


def _dynamic_shared(
    cx: Context, space: str, element: t.Type, name: str, node: ast.AST
) -> ArrayView:
    if space != "shared" or not cx.is_kernel:
        raise cx.error(
            "only td.shared in the kernel itself can leave its size to the launch: give a number",
            node,
        )
    cx.memories.append(n.Memory(name, "shared", element, None, cx.span(node)))
    length = n.Variable(f"{name}.size", t.I32, cx.span(node))
    cx.parameters[length.name] = n.Parameter(length.name, t.I32, ("length", name), cx.span(node))
    return ArrayView(name, element, (length,), length)


def _static_shape(cx: Context, space: str, shape: Value, node: ast.AST) -> list[int]:
    parts = shape.items if isinstance(shape, TupleValue) else (shape,)
    sizes: list[int] = []
    for part in parts:
        size = static_number(cx, part)
        if size is None:
            raise cx.refusal("static", node, what=f"the shape of td.{space}")
        if isinstance(size, (bool, float)) or size < 1:
            raise cx.error(f"the shape of td.{space} is positive integers, not {size!r}", node)
        sizes.append(size)
    return sizes


def static_number(cx: Context, value: Value) -> bool | int | float | None:
    """The number that a value is at compile time; None if it is not known."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, n.Constant):
        return value.value
    if isinstance(value, n.Variable):
        for binding in cx.bindings.values():
            if binding.variable is not None and binding.variable.name == value.name:
                return binding.constant
    return None

"""Positions of stencils: neighbours of a cell, and the rules of what lies outside an array.

A neighbour's offsets are constants. Where a read is known to be inside along an axis, its index is
the cell's plus the offset; elsewhere the axis' rule maps the index into the array, replaces the
value, or calls a function of the user's. A write outside goes around the end where the rule is
"wrap", and is dropped otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.lower.arrays import (
    cell_array,
    cell_index,
    check_writable,
    load,
    place_of,
    static_number,
)
from treadle.lang.lower.context import Access, CellAccess, Context
from treadle.lang.lower.conversions import cast, convert, typed
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    Position,
    PositionMethod,
    ShiftedPosition,
    TupleValue,
    Value,
    contains_array,
    spelled,
)
from treadle.lang.positions import NEIGHBOURS, REPLACING, WRITTEN_OUTSIDE, AxisRule, Tile
from treadle.lang.rules import Literal

_BY_OFFSETS = ("at", "shifted")
_OFFSETS = ("dk", "di", "dj")


def attribute(cx: Context, position: Position, name: str, node: ast.AST) -> Value:
    """`pos.index`, or the method of a neighbour."""
    if name == "index":
        type = t.I64 if position.rules.wide else t.I32
        return TupleValue(tuple(cast(cx, index, type, node) for index in position.indices))
    names = [each for each, (axis, _) in NEIGHBOURS.items() if axis <= len(position.indices)]
    if name in _BY_OFFSETS or name in names:
        return PositionMethod(position, name)
    if name in NEIGHBOURS:
        ndim = len(position.indices)
        raise cx.error(
            f"{position.rules.grid} has {ndim} {'axis' if ndim == 1 else 'axes'}, and pos.{name} "
            f"needs {NEIGHBOURS[name][0]}: the grid has the axes of the arrays that are written; "
            f"its neighbours are {', '.join((*names, *_BY_OFFSETS))}",
            node,
        )
    raise cx.refusal(
        "unknown_attribute", node, owner="a position", name=name,
        choices=", ".join((*names, *_BY_OFFSETS, "index")),
    )  # fmt: skip


def call_method(
    cx: Context, method: PositionMethod, values: Sequence[Value], node: ast.Call
) -> Value:
    """The neighbour that `pos.north(u)` or `pos.at(u, di, dj)` gives, or the place of
    `pos.shifted(di, dj)`."""
    ndim = len(method.position.indices)
    if method.name == "shifted":
        if len(values) != ndim:
            raise cx.error(
                "pos.shifted takes an offset along each axis, as in "
                f"pos.shifted({', '.join(_OFFSETS[3 - ndim :])})",
                node,
            )
        return ShiftedPosition(method.position, tuple(_offset(cx, each, node) for each in values))
    if method.name == "at":
        if len(values) != ndim + 1:
            offsets = ", ".join(_OFFSETS[3 - ndim :])
            raise cx.error(
                f"pos.at takes an array and an offset along each axis, as in pos.at(u, {offsets})",
                node,
            )
        found = [_offset(cx, value, node) for value in values[1:]]
    else:
        if len(values) != 1:
            raise cx.error(f"pos.{method.name} takes an array, as in pos.{method.name}(u)", node)
        axis, step = NEIGHBOURS[method.name]
        found = [0] * ndim
        found[-axis] = step
    return read(cx, method.position, values[0], tuple(found), node)


def item(cx: Context, array: Value, index: Position | ShiftedPosition, node: ast.AST) -> Value:
    """The element of an array at a position."""
    if isinstance(index, ShiftedPosition):
        return read(cx, index.position, array, index.offsets, node)
    return read(cx, index, array, (0,) * len(index.indices), node)


_FARTHEST = 1 << 30  # of a neighbour, so that its index is one of 32 bits


def _offset(cx: Context, value: Value, node: ast.Call) -> int:
    known = static_number(cx, value)
    if known is None or isinstance(known, float):
        raise cx.error(
            "the offsets of a neighbour are constant integers: literals, captured numbers, or "
            "variables of td.static_range (a computed index is read as in u[i, j], with i, j = "
            "pos.index)",
            node,
        )
    if abs(int(known)) >= _FARTHEST:
        raise cx.error(f"no array has a neighbour {known} cells away: the limit is 2**30", node)
    return int(known)


def read(
    cx: Context, position: Position, array: Value, offsets: tuple[int, ...], node: ast.AST
) -> Value:
    """The element of an array at offsets from a position."""
    view = cell_array(cx, array, position, node)
    span = cx.span(node)
    if view.origin:
        cx.lowering.accesses.append(CellAccess(view.origin, "read", offsets, span, view.layer))
    rules = position.rules
    if not view.layer and (view.origin, offsets) in rules.given:
        given = position.values[rules.given.index((view.origin, offsets))]
        return cast(cx, given, t.F32, node) if given.type == rules.storage else given
    indices = [
        _moved(index, offset, span) for index, offset in zip(position.indices, offsets, strict=True)
    ]
    where = _Outside(cx, view, node, rules.wide)
    for axis, rule in enumerate(rules.axes):
        before, behind = rules.sides(axis, offsets[axis])
        if (before or behind) and not (view.wrapped and rule.name == "wrap"):
            where.map_axis(axis, rule, indices, before, behind)
    value = where.load(indices)
    if rules.storage is not None and view.element == rules.storage:
        value = cast(cx, value, t.F32, node)
    return value


def element_of(
    cx: Context,
    array: ArrayView | FixedArrayPlace,
    index: Value,
    node: ast.AST,
    access: Access,
) -> n.MemoryPlace:
    """The place of an element that is written, at numbers or at a position. Where it may be outside
    the array, the context's guard says whether it is inside; an atomic has checks instead."""
    if isinstance(index, Position):
        position, offsets = index, (0,) * len(index.indices)
    elif isinstance(index, ShiftedPosition):
        position, offsets = index.position, index.offsets
    else:
        return place_of(cx, array, index, node, access)
    view, span, rules = cell_array(cx, array, position, node), cx.span(node), position.rules
    check_writable(cx, view, node, access)
    if view.origin:
        cx.lowering.accesses.append(CellAccess(view.origin, access, offsets, span, view.layer))
    indices = [_moved(*each, span) for each in zip(position.indices, offsets, strict=True)]
    where = _Outside(cx, view, node, rules.wide)
    checks: list[n.Check] = []
    for axis, rule in enumerate(rules.axes):
        before, behind = rules.sides(axis, offsets[axis])
        if offsets[axis] and rule.name not in WRITTEN_OUTSIDE:
            raise cx.error(
                f'a write at a neighbour goes with boundary="wrap", "zero", "constant" or "skip" '
                f"along its axis: by {rule.name!r} several cells would write one element",
                node,
            )
        if not before and not behind:
            continue
        if offsets[axis] and rule.name == "wrap":
            where.map_axis(axis, rule, indices, before, behind)
            continue
        index = indices[axis] = indices[axis] if not offsets[axis] else cx.spill(indices[axis])
        checks.append(n.Check(index, cast(cx, view.extents[axis], _scalar(index), node), axis))
        if before and access != "atomic":
            cx.guard = _both(cx.guard, where.compare("ge", index, where.number(0, index)))
    if access != "atomic":
        for check in checks:
            cx.guard = _both(cx.guard, where.compare("lt", check.index, check.bound))
        checks = []
    return n.Element(view.memory, where.offset(indices), view.element, tuple(checks), span)


def _both(one: n.Expression | None, other: n.Expression) -> n.Expression:
    return other if one is None else n.Binary("logical_and", one, other, t.BOOL, other.span)


def is_stack(array: Value, index: Value) -> bool:
    """Whether an index has fewer numbers than a stencil's array has axes, as `f[q]` in
    `f[q][pos]`."""
    parts = len(index.items) if isinstance(index, TupleValue) else 1
    return isinstance(array, ArrayView) and bool(array.origin) and parts < array.ndim


def grid_of_stack(cx: Context, stack: ArrayView, index: Value, node: ast.AST) -> ArrayView:
    """One grid of a stack of grids, by constants along its first axes. That there is such a grid is
    checked by the launch."""
    span, type = cx.span(node), stack.index_type
    layer = []
    for part in index.items if isinstance(index, TupleValue) else (index,):
        known = static_number(cx, part)
        if known is None or isinstance(known, (bool, float)) or known < 0:
            raise cx.error(
                f"an index that chooses one grid of a stack is a constant, from 0 on: a literal, a "
                f"captured number, or a variable of td.static_range (an element has {stack.ndim} "
                "indices, or a position after the constants, as in f[q][pos])",
                node,
            )
        layer.append(int(known))

    def product(one: n.Expression, other: n.Expression) -> n.Expression:
        return n.Binary("mul", one, other, type, span)

    rest = stack.extents[len(layer) :]
    size = rest[0]
    for extent in rest[1:]:
        size = product(size, extent)
    steps = list((stack.strides or ())[: len(layer)])
    if not steps:
        steps = [size]
        for extent in reversed(stack.extents[1 : len(layer)]):
            steps.insert(0, product(steps[0], extent))
    start = stack.offset
    for number, step in zip(layer, steps, strict=True):
        if number:
            term = product(n.Constant(number, type, span), step)
            start = term if start is None else n.Binary("add", start, term, type, span)
    return replace(
        stack,
        extents=rest,
        size=size,
        strides=stack.strides and stack.strides[len(layer) :],
        offset=start if start is None else cx.spill(start, "grid"),
        layer=(*stack.layer, *layer),
    )


def tile(cx: Context, made: Tile, values: Sequence[Value], node: ast.Call) -> ArrayView:
    """A view of a kernel's memory with the extents of an array, part of which it holds."""
    memory, array, offset = values
    assert isinstance(memory, ArrayView)
    assert isinstance(array, ArrayView)
    type, span = memory.index_type, cx.span(node)
    return ArrayView(
        memory.memory,
        memory.element,
        array.extents,
        array.size,
        tuple(n.Constant(stride, type, span) for stride in made.strides),
        cx.spill(cast(cx, typed(cx, offset, node), type, node), "tile"),
        type,
        wrapped=True,
    )


def _moved(index: n.Expression, offset: int, span: Span) -> n.Expression:
    if not offset:
        return index
    assert isinstance(index.type, t.Scalar)
    op = "add" if offset > 0 else "sub"
    return n.Binary(op, index, n.Constant(abs(offset), index.type, span), index.type, span)


@dataclass
class _Replacement:
    """What a read gives where `test` holds: a rule's constant, or its function's result."""

    test: n.Expression
    rule: AxisRule


class _Outside:
    """A read of an array whose indices may be outside."""

    def __init__(self, cx: Context, view: ArrayView, node: ast.AST, wide: bool) -> None:
        self.cx = cx
        self.view = view
        self.node = node
        self.span = cx.span(node)
        self.wide = wide
        self.mapped: dict[int, n.Expression] = {}  # the index inside the array, by axis
        self.moved: dict[int, n.Expression] = {}  # those of them that a rule of the axis gives
        self.replacements: list[_Replacement] = []

    def map_axis(
        self,
        axis: int,
        rule: AxisRule,
        indices: list[n.Expression],
        before: bool,
        behind: bool,
    ) -> None:
        """Take the rule of one axis, along which an index may be before or behind the array."""
        index = indices[axis] = self.cx.spill(indices[axis], "near")
        extent = cast(self.cx, self.view.extents[axis], _scalar(index), self.node)
        zero = self.number(0, index)
        last = self.binary("sub", extent, self.number(1, index))
        if rule.name in REPLACING:
            tests = [self.compare("lt", index, zero)] if before else []
            tests += [self.compare("ge", index, extent)] if behind else []
            test = tests[0]
            if len(tests) > 1:
                test = n.Binary("logical_or", tests[0], tests[1], t.BOOL, self.span)
            self.replacements.append(_Replacement(test, rule))
        if rule.name == "wrap":
            if before:
                test = self.compare("lt", index, zero)
                index = self.choose(test, self.binary("add", index, extent), index)
            if behind:
                test = self.compare("ge", index, extent)
                index = self.choose(test, self.binary("sub", index, extent), index)
        if rule.name == "mirror":
            if before:
                index = self.kept(n.Intrinsic("abs", (index,), index.type, self.span))
            back = self.binary("sub", self.binary("add", last, last), index)
            index = self.kept(self.limit("min", index, back))
            before, behind = True, True  # of an axis with one element
        if behind:
            index = self.limit("min", index, last)
        if before:
            index = self.limit("max", index, zero)
        self.mapped[axis] = self.kept(index)
        if rule.name not in REPLACING:
            self.moved[axis] = self.mapped[axis]

    def offset(self, indices: list[n.Expression]) -> n.Expression:
        """The offset in the memory of what is inside."""
        inside = [self.mapped.get(axis, index) for axis, index in enumerate(indices)]
        return cell_index(self.cx, self.view, inside, self.node)

    def load(self, indices: list[n.Expression]) -> Value:
        """The element, or what replaces it."""
        place = n.Element(self.view.memory, self.offset(indices), self.view.element, (), self.span)
        value = load(self.cx, place, self.node)
        given = [self.moved.get(axis, index) for axis, index in enumerate(indices)]
        for each in reversed(self.replacements):
            value = self.replaced(each, value, given)
        return value

    def replaced(
        self, replacement: _Replacement, value: Value, indices: list[n.Expression]
    ) -> Value:
        cx, element, node = self.cx, self.view.element, self.node
        if contains_array(element):
            raise cx.error(
                f"the boundary {replacement.rule.name!r} gives numbers, vectors and structs, and "
                f'an element here is {spelled(element)}: use "clamp", "wrap", "mirror" or "skip"',
                node,
            )
        assert isinstance(value, n.Load | n.Select | n.Variable)
        if replacement.rule.function is None:
            constant = self.constant(replacement.rule.value, element)
            return n.Select(replacement.test, constant, value, element, self.span)
        holder = cx.temporary(element, self.span, "outside")
        with cx.block() as then:
            outside = replacement.rule.function
            type = t.I64 if self.wide else t.I32
            given: list[Value] = [self.view, *(cast(cx, each, type, node) for each in indices)]
            result = cx.rules.call_device_function(cx, outside, given, node)
            what = f"the boundary {outside.definition.__name__}"
            cx.emit(n.Assign(holder, convert(cx, result, element, node, what), self.span))
        with cx.block() as otherwise:
            cx.emit(n.Assign(holder, value, self.span))
        cx.emit(n.If(replacement.test, tuple(then), tuple(otherwise), self.span))
        return holder

    def constant(self, value: bool | int | float, type: t.Type) -> n.Expression:
        """A number as an element: of a vector all components, of a struct all fields."""
        match type:
            case t.Scalar():
                return cast(self.cx, Literal(value), type, self.node)
            case t.Vector():
                parts = (self.constant(value, type.element),) * type.count
                return n.Construct(parts, type, self.span)
            case t.Struct():
                fields = tuple(self.constant(value, each.type) for each in type.fields)
                return n.Construct(fields, type, self.span)
        raise AssertionError(type)

    # --- arithmetic of indices ---

    def number(self, value: int, like: n.Expression) -> n.Constant:
        return n.Constant(value, _scalar(like), self.span)

    def binary(self, op: str, left: n.Expression, right: n.Expression) -> n.Expression:
        return n.Binary(op, left, right, left.type, self.span)

    def compare(self, op: str, left: n.Expression, right: n.Expression) -> n.Expression:
        return n.Binary(op, left, right, t.BOOL, self.span)

    def choose(self, test: n.Expression, one: n.Expression, other: n.Expression) -> n.Expression:
        return self.kept(n.Select(test, one, other, one.type, self.span))

    def limit(self, op: str, index: n.Expression, bound: n.Expression) -> n.Expression:
        return n.Intrinsic(op, (index, bound), index.type, self.span)

    def kept(self, index: n.Expression) -> n.Expression:
        return self.cx.keep(index, len(self.cx.statements), "near")


def _scalar(value: n.Expression) -> t.Scalar:
    assert isinstance(value.type, t.Scalar)
    return value.type

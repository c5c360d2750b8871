"""Assignments: to local names, to elements and fields, to several targets at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from treadle.core.errors import DtypeError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import root_of
from treadle.lang.lower import matrices, positions
from treadle.lang.lower.arrays import (
    copy_parts,
    fill_with_zeros,
    index_along,
    memory_variable,
    static_number,
    store,
)
from treadle.lang.lower.calls import lower_call
from treadle.lang.lower.context import Access, Binding, Context, Frame
from treadle.lang.lower.conversions import constant, convert, number, type_of, typed
from treadle.lang.lower.expressions import (
    component,
    in_order_with_index,
    items_of,
    lower_expression,
)
from treadle.lang.lower.operators import SYMBOLS
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    Position,
    PythonObject,
    Range,
    ShiftedPosition,
    TupleValue,
    Value,
    Zipped,
    contains_array,
    describe,
    is_expression,
    spelled,
)
from treadle.lang.lower.variable_items import place_in_vector
from treadle.lang.rules import Literal, holds
from treadle.lang.types import ir_type

# --- assignment ----------------------------------------------------------------------------------


def lower_assign(cx: Context, node: ast.Assign) -> None:
    """`a = b`."""
    hint = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
    if isinstance(node.value, ast.Call):
        value = lower_call(cx, node.value, hint)
    else:
        value = lower_expression(cx, node.value)
    if len(node.targets) > 1:
        value = _kept(cx, value, node)
    for target in node.targets:
        assign_to(cx, target, value)


def lower_annotated(cx: Context, node: ast.AnnAssign) -> None:
    """`a: td.f32 = b`."""
    if not isinstance(node.target, ast.Name):
        raise cx.error("only a plain name can be annotated: leave the annotation out", node)
    annotation = lower_expression(cx, node.annotation)
    if isinstance(annotation, PythonObject) and isinstance(annotation.value, str):
        written = ast.parse(annotation.value, mode="eval").body
        annotation = lower_expression(cx, ast.copy_location(written, node.annotation))
    resolved = annotation.value if isinstance(annotation, PythonObject) else annotation
    try:
        type = ir_type(resolved)
    except DtypeError as error:
        raise cx.error(f"annotation of {node.target.id}: {error}", node.annotation) from None
    if node.target.id in cx.bindings and cx.bindings[node.target.id].variable is not None:
        old = cx.bindings[node.target.id].value.type  # type: ignore[union-attr]
        if old != type:
            raise cx.refusal(
                "changed_type",
                node,
                name=node.target.id,
                old=old,
                new=type,
                advice="use another name",
            )
    cx.declared[node.target.id] = type
    if node.value is not None:
        assign_to(cx, node.target, lower_expression(cx, node.value))


def assign_to(cx: Context, target: ast.expr, value: Value) -> None:
    """Assign a value to a target."""
    match target:
        case ast.Name():
            assign_name(cx, target.id, value, target)
        case ast.Tuple() | ast.List():
            _unpack(cx, target, value)
        case ast.Subscript() | ast.Attribute():
            mark = len(cx.statements)
            try:
                place = place_of_target(cx, target, "write")
            except _ChosenRow as chosen:
                kept = _kept(cx, value, target)
                for each in _rows(cx, target, chosen):
                    assign_to(cx, each, kept)
                return
            (value,) = cx.protect([value], mark)
            with cx.guarded(cx.span(target)):
                store(cx, place, value, target, _called(target))
        case ast.Starred():
            raise cx.refusal("Starred", target)
        case _:
            raise cx.error("this can't be assigned to", target)


class _ChosenRow(Exception):
    """A target is in a row of a matrix that is known at run time only."""

    def __init__(self, node: ast.Subscript, index: Value, rows: int) -> None:
        super().__init__()
        self.node = node
        self.index = index
        self.rows = rows


def _rows(cx: Context, target: ast.expr, chosen: _ChosenRow) -> Iterator[ast.expr]:
    """The target with each row in turn. What is lowered for one goes into a branch that is taken
    where the row is chosen; none is outside the matrix."""
    span = cx.span(chosen.node)
    index = index_along(cx, chosen.index, chosen.node)
    assert isinstance(index.type, t.Scalar)
    if cx.lowering.asserts:
        bounds = [constant(each, index.type, cx, chosen.node) for each in (0, chosen.rows)]
        least = n.Binary("ge", index, bounds[0], t.BOOL, span)
        below = n.Binary("lt", index, bounds[1], t.BOOL, span)
        inside = n.Binary("logical_and", least, below, t.BOOL, span)
        text = f"{ast.unparse(chosen.node)}: index outside the matrix"
        cx.emit(n.Assert(inside, text, span=span))
    for row in range(chosen.rows):
        with cx.block() as body:
            yield _with_row(target, chosen.node, row)
        here = n.Binary("eq", index, constant(row, index.type, cx, chosen.node), t.BOOL, span)
        cx.emit(n.If(here, tuple(body), (), span))


def _with_row(node: ast.expr, chosen: ast.Subscript, row: int) -> ast.expr:
    """A target with a number in the place of the index of a row."""
    made: ast.expr
    if node is chosen:
        place: ast.expr = ast.copy_location(ast.Constant(row), chosen.slice)
        if isinstance(chosen.slice, ast.Tuple):
            items = [place, *chosen.slice.elts[1:]]
            place = ast.copy_location(ast.Tuple(items, ast.Load()), chosen.slice)
        made = ast.Subscript(chosen.value, place, chosen.ctx)
    elif isinstance(node, ast.Subscript):
        made = ast.Subscript(_with_row(node.value, chosen, row), node.slice, node.ctx)
    else:
        assert isinstance(node, ast.Attribute)
        made = ast.Attribute(_with_row(node.value, chosen, row), node.attr, node.ctx)
    return ast.copy_location(made, node)


def _called(target: ast.expr) -> str:
    return f"{ast.unparse(target)}"


def _unpack(cx: Context, target: ast.Tuple | ast.List, value: Value) -> None:
    items = items_of(cx, value, target)
    for each in target.elts:
        if isinstance(each, ast.Starred):
            raise cx.refusal("Starred", each)
    if len(items) != len(target.elts):
        raise cx.error(
            f"{len(target.elts)} names for {len(items)} values: give one name for each", target
        )
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    all_new = len(names) == len(target.elts) and not any(name in cx.bindings for name in names)
    if not all_new:  # a, b = b, a: all values are evaluated before any is assigned
        items = [_kept(cx, item, target) for item in items]
    for each, item in zip(target.elts, items, strict=True):
        if not _is_discarded(cx, each):
            assign_to(cx, each, item)


def _is_discarded(cx: Context, target: ast.expr) -> bool:
    """Whether a target is `_` and is never read."""
    return (
        isinstance(target, ast.Name)
        and target.id == "_"
        and not any(
            isinstance(node, ast.Name) and node.id == "_" and isinstance(node.ctx, ast.Load)
            for node in ast.walk(cx.source.tree)
        )
    )


def _kept(cx: Context, value: Value, node: ast.AST) -> Value:
    """The current value, which later assignments do not change."""
    if isinstance(value, TupleValue):
        return TupleValue(tuple(_kept(cx, item, node) for item in value.items))
    if is_expression(value) and not isinstance(value, n.Constant):
        return cx.keep(value, len(cx.statements))  # type: ignore[arg-type]
    return value


def assign_name(cx: Context, name: str, value: Value, node: ast.AST) -> None:
    """Assign to a local name: a variable, or a name for a compile-time value."""
    binding = cx.bindings.get(name)
    if not isinstance(value, Literal) and not is_expression(value):
        _bind_object(cx, name, binding, value, node)
        return
    found = number(cx, value, node)
    if binding is not None:
        if binding.variable is None:
            _assign_memory(cx, name, binding, found, node)
            return
        new = _for_variable(cx, name, binding.variable, found, node)
        binding.constant = None
        cx.emit(n.Assign(binding.variable, new, cx.span(node)))
        return
    wanted = cx.declared.get(name) or type_of(found)
    cx.types[name] = wanted
    if contains_array(wanted):
        place = memory_variable(cx, wanted, name, cx.span(node))
        home = _home(cx, name)
        if home is not cx.frames[-1]:  # zero where it is not assigned, like other variables
            with cx.block() as zeros:
                fill_with_zeros(cx, place.place, cx.span(node))
            home.statements.extend(zeros)
        cx.bindings[name] = Binding(place)
        store(cx, place.place, found, node, name)
        return
    variable = n.Variable(cx.unique(name), wanted, cx.span(node))
    new = convert(cx, found, wanted, node, name)
    constant = None
    if isinstance(found, Literal) and cx.scope.stores.get(name) == 1:
        constant = found.value
    cx.bindings[name] = Binding(variable, variable, constant)
    _declare(cx, name, variable, new, node)


def _declare(
    cx: Context, name: str, variable: n.Variable, value: n.Expression, node: ast.AST
) -> None:
    """Declare a variable in the block that its name belongs to."""
    span = cx.span(node)
    home = _home(cx, name)
    if home is cx.frames[-1]:
        cx.emit(n.Declare(variable, value, span))
        return
    # It is first assigned in an inner block, but used in an outer one. Declared in the outer block,
    # it keeps its value from one iteration of a loop to the next, as in Python.
    home.statements.append(n.Declare(variable, None, span))
    cx.emit(n.Assign(variable, value, span))


def _home(cx: Context, name: str) -> Frame:
    """The block in which to declare a name at its first assignment."""
    owner = cx.owner.get(name)
    depth = next(
        (at for at, frame in enumerate(cx.frames) if frame.body == owner), len(cx.frames) - 1
    )
    if depth < len(cx.frames) - 1:
        loops = [at for at, frame in enumerate(cx.frames[: depth + 1]) if frame.loop]
        if loops:
            depth = loops[0] - 1
        if cx.frames[depth].body is not None:
            cx.owner[name] = cx.frames[depth].body  # type: ignore[assignment]
    return cx.frames[depth]


def _for_variable(
    cx: Context, name: str, variable: n.Variable, value: n.Expression | Literal, node: ast.AST
) -> n.Expression:
    """A value in the type of the variable that it is assigned to."""
    old = variable.type
    if isinstance(value, Literal):
        new: Any = (
            t.F32 if isinstance(value.value, float) else t.BOOL if value.value is True else t.I32
        )
        fitting = (
            isinstance(old, t.Scalar)
            and (old.is_float or not isinstance(value.value, float))
            and (old != t.BOOL or isinstance(value.value, bool))
        )
    else:
        new = value.type
        fitting = old == new or (
            isinstance(old, t.Scalar) and isinstance(new, t.Scalar) and holds(old, new)
        )
    if not fitting:
        advice = "cast the value, or use another name"
        if isinstance(old, t.Scalar) and isinstance(new, t.Scalar) and old.kind != new.kind:
            advice = f"start it with td.{new}(…), or cast this value with td.{old}(…)"
            if old == t.I32 and new == t.F32:
                advice = "start it with a float, as in 0.0, or cast this value with td.i32(…)"
        raise cx.refusal("changed_type", node, name=name, old=old, new=new, advice=advice)
    return convert(cx, value, old, node, name)


def _bind_object(
    cx: Context, name: str, binding: Binding | None, value: Value, node: ast.AST
) -> None:
    """Bind a name to an array, tuple or dtype at compile time. It is assigned only once."""
    if isinstance(value, Range):
        raise cx.error("a range works in a for only: for i in range(…)", node)
    if isinstance(value, Zipped):
        raise cx.error("enumerate and zip work in a for only: for i, v in enumerate(…)", node)
    if isinstance(value, TupleValue) and binding is not None:
        old = binding.value
        if isinstance(old, TupleValue) and len(old.items) == len(value.items):
            kept = _kept(cx, value, node)
            assert isinstance(kept, TupleValue)
            for place, item in zip(old.items, kept.items, strict=True):
                if not isinstance(place, n.Variable):
                    raise cx.refusal("rebound", node, name=name, kind=describe(old))
                new = _for_variable(cx, name, place, number(cx, item, node), node)
                cx.emit(n.Assign(place, new, cx.span(node)))
            return
    if binding is not None or (
        cx.scope.stores.get(name, 0) > 1 and not isinstance(value, TupleValue)
    ):
        what = binding.value if binding is not None else value
        if binding is None and isinstance(value, ArrayView) and value.fragment is not None:
            node = _other_assignment(cx, name, node)
            if isinstance(node, ast.AugAssign) or isinstance(getattr(node, "value", 0), ast.BinOp):
                raise cx.refusal("whole_fragment", node, kind=describe(value))
        raise cx.refusal("rebound", node, name=name, kind=describe(what))
    if isinstance(value, TupleValue):
        value = _tuple_variables(cx, name, value, node)
        cx.types[name] = _types_of(value)
    cx.bindings[name] = Binding(value)


def _other_assignment(cx: Context, name: str, node: ast.AST) -> ast.AST:
    """The statement that assigns a name again, behind the one at `node`; that one if none does."""
    for each in ast.walk(cx.source.tree):
        if not isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)):
            continue
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        names = [one for target in targets for one in ast.walk(target)]
        named = any(isinstance(one, ast.Name) and one.id == name for one in names)
        if named and each.lineno > getattr(node, "lineno", 0):
            return each
    return node


def _types_of(value: Value) -> Any:
    """The types of a tuple's items and its constant numbers, for the interpreter."""
    if isinstance(value, TupleValue):
        return tuple(map(_types_of, value.items))
    if isinstance(value, Literal):
        return value
    return value.type if is_expression(value) else None  # type: ignore[union-attr]


def _tuple_variables(cx: Context, name: str, value: TupleValue, node: ast.AST) -> TupleValue:
    """A tuple with its numbers in variables, except constants."""
    changes = cx.scope.stores.get(name, 0) > 1
    items: list[Value] = []
    for item in value.items:
        if isinstance(item, TupleValue):
            items.append(_tuple_variables(cx, name, item, node))
        elif is_expression(item) or (isinstance(item, Literal) and changes):
            found = typed(cx, item, node)
            variable = n.Variable(cx.unique(f"{name}.0"), found.type, cx.span(node))
            _declare(cx, name, variable, found, node)
            items.append(variable)
        else:
            items.append(item)
    return TupleValue(tuple(items))


def _assign_memory(
    cx: Context, name: str, binding: Binding, value: n.Expression | Literal, node: ast.AST
) -> None:
    """Assign to a variable that lives in memory (a struct that holds arrays)."""
    old = binding.value
    if isinstance(old, n.Load) and isinstance(value, n.Load) and old.type == value.type:
        copy_parts(cx, old.place, value.place, cx.span(node))
        return
    raise cx.refusal("rebound", node, name=name, kind=describe(old))


# --- places --------------------------------------------------------------------------------------


def place_of_target(cx: Context, target: ast.Subscript | ast.Attribute, access: Access) -> n.Place:
    """The place of a target `a[i]`, `p.x` or `a[i].x`."""
    if isinstance(target, ast.Subscript):
        if _is_cell(cx, target.value) or _is_in_matrix(cx, target.value):
            whole = place_of_target(cx, target.value, access)  # type: ignore[arg-type]
            return _item_of(cx, whole, lower_expression(cx, target.slice), target, access)
        owner, index = in_order_with_index(cx, target)
        if isinstance(owner, (ArrayView, FixedArrayPlace)):
            return positions.element_of(cx, owner, index, target, access)
        if isinstance(owner, TupleValue):
            raise cx.error("a tuple's items can't be assigned: assign a new tuple", target)
        return _item_of(cx, _place_of_value(cx, owner, target), index, target, access)
    if _is_cell(cx, target.value) or _is_in_matrix(cx, target.value):
        place = place_of_target(cx, target.value, access)  # type: ignore[arg-type]
    else:
        owner = lower_expression(cx, target.value)
        if isinstance(owner, ArrayView):
            raise cx.refusal("array_assignment", target, name=target.attr)
        place = _place_of_value(cx, owner, target)
    known = (
        [field.name for field in place.type.fields]
        if isinstance(place.type, t.Struct)
        else list(t.COMPONENTS[: place.type.count])
        if isinstance(place.type, t.Vector)
        else []
    )
    if isinstance(place.type, t.Vector) and len(target.attr) > 1 and set(target.attr) <= set(known):
        example = f"{ast.unparse(target.value)}.{target.attr[0]}"
        raise cx.refusal("swizzle_assignment", target, name=ast.unparse(target), example=example)
    if target.attr not in known:
        choices = ", ".join(known) or "none"
        owned = spelled(place.type)
        raise cx.refusal(
            "unknown_attribute", target, owner=owned, name=target.attr, choices=choices
        )
    type = t.member_type(place.type, target.attr)
    return n.Member(place, target.attr, type, cx.span(target))


def _item_of(
    cx: Context, whole: n.Place, index: Value, target: ast.Subscript, access: Access
) -> n.Place:
    """The place of an element of an array in a struct, or of a component of a vector."""
    if isinstance(whole.type, t.Array) and not isinstance(whole, n.Variable):
        return positions.element_of(cx, FixedArrayPlace(whole, whole.type), index, target, access)
    if t.matrix_shape(whole.type) is not None:
        return _item_of_matrix(cx, whole, index, target, access)
    if isinstance(whole.type, t.Vector):
        if static_number(cx, index) is None:
            return place_in_vector(cx, whole, index, target)
        name = component(cx, whole.type, index, target)
        return n.Member(whole, name, whole.type.element, cx.span(target))
    raise cx.refusal("number_index", target, given=spelled(whole.type))


def _item_of_matrix(
    cx: Context, whole: n.Place, index: Value, target: ast.Subscript, access: Access
) -> n.Place:
    """The place of a row of a matrix, or of a number of it."""
    assert isinstance(whole.type, t.Struct)
    first, second = matrices.indices(cx, whole.type, index, target)
    at = static_number(cx, first)
    if at is None:
        raise _ChosenRow(target, first, len(whole.type.fields))
    name = matrices.row_name(cx, whole.type, at, target)
    row = n.Member(whole, name, whole.type.field_type(name), cx.span(target))
    return row if second is None else _item_of(cx, row, second, target, access)


def _is_cell(cx: Context, node: ast.expr) -> bool:
    """Whether an expression is `out[pos]`, or a part of it. (Such a place may be outside an array,
    and then it is not the one that `out[pos]` reads.)"""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and _is_position(cx, node.slice):
            return True
        node = node.value
    return False


def _is_in_matrix(cx: Context, node: ast.expr) -> bool:
    """Whether an expression is a part of something that has matrices, as `m[i]` is, of which the
    place is meant: a row that is read at an index is another value."""
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        return False
    root: ast.expr = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    binding = cx.bindings.get(root.id) if isinstance(root, ast.Name) else None
    value = None if binding is None else binding.value
    type = value.element if isinstance(value, ArrayView) else getattr(value, "type", None)
    return _has_matrix(type)


def _has_matrix(type: Any) -> bool:
    if isinstance(type, t.Array):
        return _has_matrix(type.element)
    if t.matrix_shape(type) is not None:
        return True
    return isinstance(type, t.Struct) and any(_has_matrix(field.type) for field in type.fields)


def _is_position(cx: Context, node: ast.expr) -> bool:
    """Whether an index is `pos` or `pos.shifted(…)`, or a name for them."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "shifted" and _is_position(cx, node.func.value)
    binding = cx.bindings.get(node.id) if isinstance(node, ast.Name) else None
    return binding is not None and isinstance(binding.value, (Position, ShiftedPosition))


def _place_of_value(cx: Context, value: Value, node: ast.AST) -> n.Place:
    """The place that a value was read from."""
    if isinstance(value, n.Load):
        root = root_of(value.place)
        if isinstance(root, n.Element) and root.memory in cx.item_memories:
            raise cx.error("a tuple's items can't be assigned: assign a new tuple", node)
        return value.place
    if isinstance(value, n.Variable):
        return value
    if isinstance(value, n.Extract):
        base = _place_of_value(cx, value.operand, node)
        return n.Member(base, value.name, value.type, value.span)
    raise cx.error(f"a part of {describe(value)} can't be assigned", node)


def lower_augmented(cx: Context, node: ast.AugAssign) -> None:
    """`a += b`."""
    symbol = SYMBOLS[type(node.op)]
    if isinstance(node.target, ast.Name):
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        old = lower_expression(cx, load)
        mark = len(cx.statements)
        right = lower_expression(cx, node.value)
        (old,) = cx.protect([old], mark)
        assign_name(cx, node.target.id, matrices.binary(cx, symbol, old, right, node), node)
        return
    assert isinstance(node.target, (ast.Subscript, ast.Attribute))
    try:
        place = _repeatable_place(cx, place_of_target(cx, node.target, "update"))
    except _ChosenRow as chosen:
        for each in _rows(cx, node.target, chosen):
            assert isinstance(each, (ast.Subscript, ast.Attribute))
            again = ast.AugAssign(each, node.op, node.value)
            lower_augmented(cx, ast.copy_location(again, node))
        return
    if isinstance(place.type, t.Array) or contains_array(place.type):
        raise cx.refusal("whole_array", node)
    with cx.guarded(cx.span(node.target)):
        _update(cx, place, symbol, node)


def _update(cx: Context, place: n.Place, symbol: str, node: ast.AugAssign) -> None:
    """`place op= value` for a place in memory, or a part of a variable."""
    span = cx.span(node.target)
    root: n.Place = place
    while isinstance(root, (n.Member, n.Item)):
        root = root.base
    if isinstance(root, n.Variable) and isinstance(place, n.Member):
        current: n.Expression = _read_variable_part(place)
    else:
        current = n.Load(place, place.type, span)  # type: ignore[arg-type]
    mark = len(cx.statements)
    right = lower_expression(cx, node.value)
    (kept,) = cx.protect([current], mark)
    result = matrices.binary(cx, symbol, kept, right, node)
    store(cx, place, result, node, _called(node.target))


def _read_variable_part(place: n.Place) -> n.Expression:
    if isinstance(place, n.Variable):
        return place
    assert isinstance(place, n.Member)
    return n.Extract(_read_variable_part(place.base), place.name, place.type, place.span)


def _repeatable_place(cx: Context, place: n.Place) -> n.Place:
    """The place, with its indices in variables if evaluating them twice is expensive."""
    from dataclasses import replace

    match place:
        case n.Element():
            if len(place.checks) == 1 and place.checks[0].index == place.index:
                return place  # the index is in a variable already
            return replace(place, index=cx.spill(place.index, "at"))
        case n.Member():
            return replace(place, base=_repeatable_place(cx, place.base))
        case n.Item():
            return replace(place, base=_repeatable_place(cx, place.base))
    return place

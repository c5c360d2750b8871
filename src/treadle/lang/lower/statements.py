"""Statements: assignments, branches, loops, returns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.errors import DtypeError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang import rules
from treadle.lang.lower.arrays import copy_parts, memory_variable, place_of, store
from treadle.lang.lower.calls import lower_call
from treadle.lang.lower.context import Binding, Context
from treadle.lang.lower.conversions import convert, number, type_of, typed, with_type
from treadle.lang.lower.expressions import (
    in_order_with_index,
    lower_condition,
    lower_expression,
)
from treadle.lang.lower.functions import ends, return_value
from treadle.lang.lower.operators import SYMBOLS, binary, operand
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    PythonObject,
    Range,
    TupleValue,
    Value,
    contains_array,
    describe,
    is_expression,
)
from treadle.lang.rules import Literal, holds
from treadle.lang.types import ir_type


def lower_body(cx: Context, body: Sequence[ast.stmt]) -> None:
    """Statements into the current block, up to one after which nothing runs."""
    for statement in body:
        lower_statement(cx, statement)
        if cx.statements and _leaves(cx.statements[-1]):
            break


def _leaves(statement: n.Statement) -> bool:
    if isinstance(statement, (n.Break, n.Continue)):
        return True
    return ends((statement,))


def lower_statement(cx: Context, node: ast.stmt) -> None:
    """One statement."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise cx.refusal(type(node).__name__, node, name=getattr(node, "name", ""))
    try:
        handler(cx, node)
    except DtypeError as error:
        raise cx.error(str(error), node) from None


# --- assignment ----------------------------------------------------------------------------------


def _assign(cx: Context, node: ast.Assign) -> None:
    hint = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
    if isinstance(node.value, ast.Call):
        value = lower_call(cx, node.value, hint)
    else:
        value = lower_expression(cx, node.value)
    if len(node.targets) > 1:
        value = _kept(cx, value, node)
    for target in node.targets:
        assign_to(cx, target, value)


def _annotated(cx: Context, node: ast.AnnAssign) -> None:
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
    """Put a value where a target says."""
    match target:
        case ast.Name():
            assign_name(cx, target.id, value, target)
        case ast.Tuple() | ast.List():
            _unpack(cx, target, value)
        case ast.Subscript() | ast.Attribute():
            mark = len(cx.statements)
            place = place_of_target(cx, target)
            (value,) = cx.protect([value], mark)
            store(cx, place, value, target, _called(target))
        case ast.Starred():
            raise cx.refusal("Starred", target)
        case _:
            raise cx.error("this can't be assigned to", target)


def _called(target: ast.expr) -> str:
    return f"{ast.unparse(target)}"


def _unpack(cx: Context, target: ast.Tuple | ast.List, value: Value) -> None:
    items = _items(cx, value, target)
    for each in target.elts:
        if isinstance(each, ast.Starred):
            raise cx.refusal("Starred", each)
    if len(items) != len(target.elts):
        raise cx.error(
            f"{len(target.elts)} names for {len(items)} values: give one name for each", target
        )
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    all_new = len(names) == len(target.elts) and not any(name in cx.bindings for name in names)
    if not all_new:  # a, b = b, a: every value is taken before any is assigned
        items = [_kept(cx, item, target) for item in items]
    for each, item in zip(target.elts, items, strict=True):
        assign_to(cx, each, item)


def _items(cx: Context, value: Value, node: ast.AST) -> list[Value]:
    if isinstance(value, TupleValue):
        return list(value.items)
    if not isinstance(value, (Literal, ArrayView, FixedArrayPlace, PythonObject, Range)) and (
        isinstance(value.type, t.Vector)
    ):
        kept = cx.spill(value)
        return [
            n.Extract(kept, c, value.type.element, cx.span(node))
            for c in t.COMPONENTS[: value.type.count]
        ]
    raise cx.error(f"{describe(value)} can't be unpacked", node)


def _kept(cx: Context, value: Value, node: ast.AST) -> Value:
    """The value as it is now, whatever is assigned next."""
    if isinstance(value, TupleValue):
        return TupleValue(tuple(_kept(cx, item, node) for item in value.items))
    if is_expression(value) and not isinstance(value, n.Constant):
        if contains_array(value.type):  # type: ignore[union-attr]
            return value
        return cx.keep(value, len(cx.statements))  # type: ignore[arg-type]
    return value


def assign_name(cx: Context, name: str, value: Value, node: ast.AST) -> None:
    """Assign to a local name: a variable, or a name for what exists at compile time."""
    binding = cx.bindings.get(name)
    if isinstance(value, (ArrayView, FixedArrayPlace, PythonObject, TupleValue, Range)):
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
    if contains_array(wanted):
        place = memory_variable(cx, wanted, name, node)
        cx.bindings[name] = Binding(place)
        store(cx, place.place, found, node, name)
        return
    cx.types[name] = wanted
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
    owner = cx.owner.get(name)
    depth = next(
        (at for at, frame in enumerate(cx.frames) if frame.body == owner), len(cx.frames) - 1
    )
    if depth == len(cx.frames) - 1:
        cx.emit(n.Declare(variable, value, span))
        return
    # First assigned deeper than where it is used: a variable there, which keeps its value from
    # one turn of a loop to the next as Python's does.
    loops = [at for at, frame in enumerate(cx.frames[: depth + 1]) if frame.loop]
    if loops:
        depth = loops[0] - 1
    frame = cx.frames[depth]
    if frame.body is not None:
        cx.owner[name] = frame.body
    frame.statements.append(n.Declare(variable, None, span))
    cx.emit(n.Assign(variable, value, span))


def _for_variable(
    cx: Context, name: str, variable: n.Variable, value: n.Expression | Literal, node: ast.AST
) -> n.Expression:
    """A value in the type of the variable it goes to."""
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
    """A name for an array, a tuple, a dtype: bound when it is lowered, assigned nowhere else."""
    if isinstance(value, Range):
        raise cx.error("a range stands in a for: for i in range(…)", node)
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
        raise cx.refusal("rebound", node, name=name, kind=describe(what))
    if isinstance(value, TupleValue):
        value = _tuple_variables(cx, name, value, node)
    cx.bindings[name] = Binding(value)


def _tuple_variables(cx: Context, name: str, value: TupleValue, node: ast.AST) -> TupleValue:
    """A tuple's numbers as variables of their own, unless they are constants."""
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
        copy_parts(cx, old.place, value.place, node)
        return
    raise cx.refusal("rebound", node, name=name, kind=describe(old))


# --- places --------------------------------------------------------------------------------------


def place_of_target(cx: Context, target: ast.Subscript | ast.Attribute) -> n.Place:
    """Where an assignment to `a[i]`, `p.x` or `a[i].x` goes."""
    if isinstance(target, ast.Subscript):
        owner, index = in_order_with_index(cx, target)
        if isinstance(owner, (ArrayView, FixedArrayPlace)):
            return place_of(cx, owner, index, target)
        if isinstance(owner, TupleValue):
            raise cx.error("a tuple's items can't be assigned: assign a new tuple", target)
        place = _place_of_value(cx, owner, target)
        if isinstance(place.type, t.Vector) and isinstance(index, Literal):
            at = int(index.value)
            if 0 <= at < place.type.count:
                name = t.COMPONENTS[at]
                return n.Member(place, name, place.type.element, cx.span(target))
        raise cx.error(f"{describe(owner)} can't be assigned by index", target)
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
    if target.attr not in known:
        choices = ", ".join(known) or "none"
        owned = str(place.type)
        raise cx.refusal(
            "unknown_attribute", target, owner=owned, name=target.attr, choices=choices
        )
    type = t.member_type(place.type, target.attr)
    return n.Member(place, target.attr, type, cx.span(target))


def _place_of_value(cx: Context, value: Value, node: ast.AST) -> n.Place:
    """The place that a value was read from."""
    if isinstance(value, n.Load):
        return value.place
    if isinstance(value, n.Variable):
        return value
    if isinstance(value, n.Extract):
        base = _place_of_value(cx, value.operand, node)
        return n.Member(base, value.name, value.type, value.span)
    raise cx.error(f"a part of {describe(value)} can't be assigned", node)


def _augmented(cx: Context, node: ast.AugAssign) -> None:
    if isinstance(node.op, ast.MatMult):
        raise cx.refusal("MatMult", node)
    symbol = SYMBOLS[type(node.op)]
    if isinstance(node.target, ast.Name):
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        old = lower_expression(cx, load)
        mark = len(cx.statements)
        right = lower_expression(cx, node.value)
        (old,) = cx.protect([old], mark)
        assign_name(cx, node.target.id, binary(cx, symbol, old, right, node), node)
        return
    assert isinstance(node.target, (ast.Subscript, ast.Attribute))
    place = _repeatable_place(cx, place_of_target(cx, node.target))
    if isinstance(place.type, t.Array) or contains_array(place.type):
        raise cx.refusal("whole_array", node)
    span = cx.span(node.target)
    root: n.Place = place
    while isinstance(root, (n.Member, n.Item)):
        root = root.base
    if isinstance(root, n.Variable):
        assert isinstance(place, n.Member)
        current: n.Expression = _read_variable_part(place)
    else:
        current = n.Load(place, place.type, span)  # type: ignore[arg-type]
    mark = len(cx.statements)
    right = lower_expression(cx, node.value)
    (kept,) = cx.protect([current], mark)
    result = binary(cx, symbol, kept, right, node)
    store(cx, place, result, node, _called(node.target))


def _read_variable_part(place: n.Place) -> n.Expression:
    if isinstance(place, n.Variable):
        return place
    assert isinstance(place, n.Member)
    return n.Extract(_read_variable_part(place.base), place.name, place.type, place.span)


def _repeatable_place(cx: Context, place: n.Place) -> n.Place:
    """The place with its indices in variables where evaluating them twice would cost."""
    from dataclasses import replace

    match place:
        case n.Element():
            if len(place.checks) == 1 and place.checks[0].index == place.index:
                return place  # the index was kept already
            return replace(place, index=cx.spill(place.index, "at"))
        case n.Member():
            return replace(place, base=_repeatable_place(cx, place.base))
        case n.Item():
            return replace(place, base=_repeatable_place(cx, place.base))
    return place


# --- branches ------------------------------------------------------------------------------------


def _if(cx: Context, node: ast.If) -> None:
    test = lower_condition(cx, node.test)
    if isinstance(test, Literal):  # decided at compile time: the other side is not even lowered
        chosen = node.body if test.value else node.orelse
        cx.frames.append(type(cx.frames[-1])(cx.statements, id(chosen)))
        lower_body(cx, chosen)
        cx.frames.pop()
        return
    with cx.block(id(node.body)) as then:
        lower_body(cx, node.body)
    with cx.block(id(node.orelse)) as otherwise:
        lower_body(cx, node.orelse)
    cx.emit(n.If(test, tuple(then), tuple(otherwise), cx.span(node)))


# --- loops ---------------------------------------------------------------------------------------


def _while(cx: Context, node: ast.While) -> None:
    if node.orelse:
        raise cx.refusal("loop_else", node.orelse[0])
    before, cx.unrolled = cx.unrolled, 0
    with cx.block(id(node.body), loop=True) as body:
        with cx.block() as head:
            test = lower_condition(cx, node.test)
        if isinstance(test, Literal):
            test = n.TRUE if test.value else n.FALSE
        if head:  # the condition needs statements: it is tested inside
            span = cx.span(node.test)
            body.extend(head)
            body.append(n.If(n.Unary("not", test, t.BOOL, span), (n.Break(span),), (), span))
            test = n.TRUE
        lower_body(cx, node.body)
    cx.unrolled = before
    cx.emit(n.While(test, tuple(body), (), cx.span(node)))


def _for(cx: Context, node: ast.For) -> None:
    if node.orelse:
        raise cx.refusal("loop_else", node.orelse[0])
    found = lower_expression(cx, node.iter)
    if isinstance(found, TupleValue):
        _unroll(cx, node, list(found.items))
        return
    if not isinstance(found, Range):
        raise cx.error(
            f"for runs over range(…), td.static_range(…) or a tuple, not over {describe(found)}: "
            "write for i in range(a.size)",
            node.iter,
        )
    if not isinstance(node.target, ast.Name):
        raise cx.error("the variable of a range is one name", node.target)
    if found.unrolled:
        _unroll(cx, node, _static_items(cx, found, node))
        return
    step = number(cx, found.step, node.iter)
    if not isinstance(step, Literal):
        _for_dynamic(cx, node, found, step)
        return
    if int(step.value) == 0:
        raise cx.error("the step of a range is not 0", node.iter)
    wanted = _range_type(cx, found, node.iter)
    start = with_type(found.start, wanted, cx, node.iter)
    stop = with_type(found.stop, wanted, cx, node.iter)
    variable, copied = _loop_variable(cx, node, wanted)
    with _loop_body(cx, node) as body:
        if copied:
            assign_name(cx, node.target.id, variable, node.target)
        lower_body(cx, node.body)
    if not copied:
        cx.bindings.pop(node.target.id, None)
    cx.emit(n.For(variable, start, stop, int(step.value), tuple(body), span=cx.span(node)))


def _range_type(cx: Context, found: Range, node: ast.AST) -> t.Scalar:
    kind: rules.Operand = operand(number(cx, found.start, node))
    for bound in (found.stop, found.step):
        kind = rules.common_type(kind, operand(number(cx, bound, node)))
    assert isinstance(kind, t.Scalar)
    return t.I32 if kind == t.BOOL else kind


def _loop_variable(cx: Context, node: ast.For, type: t.Scalar) -> tuple[n.Variable, bool]:
    """The counter of a loop, and whether the user's variable is a copy of it: where the body
    assigns the variable, or where it is used outside the loop."""
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    variable = n.Variable(cx.unique(name), type, cx.span(node.target))
    copied = name not in cx.scope.private_loops or name in cx.bindings
    if not copied:
        cx.bindings[name] = Binding(variable, variable)
    return variable, copied


def _loop_body(cx: Context, node: ast.For) -> Any:
    from contextlib import contextmanager

    @contextmanager
    def body() -> Any:
        before, cx.unrolled = cx.unrolled, 0
        with cx.block(id(node.body), loop=True) as statements:
            yield statements
        cx.unrolled = before

    return body()


def _for_dynamic(cx: Context, node: ast.For, found: Range, step: n.Expression) -> None:
    """A range whose step is known when it runs only: a while loop. A step of 0 runs nothing."""
    assert isinstance(node.target, ast.Name)
    span = cx.span(node)
    wanted = _range_type(cx, found, node.iter)
    counter = cx.temporary(wanted, span, node.target.id)
    cx.emit(n.Assign(counter, with_type(found.start, wanted, cx, node.iter), span))
    stop = cx.keep(with_type(found.stop, wanted, cx, node.iter), len(cx.statements), "stop")
    by = cx.keep(with_type(step, wanted, cx, node.iter), len(cx.statements), "step")
    zero = n.Constant(0, wanted, span)

    def both(op: str, bound: str) -> n.Expression:
        return n.Binary(
            "logical_and",
            n.Binary(op, by, zero, t.BOOL, span),
            n.Binary(bound, counter, stop, t.BOOL, span),
            t.BOOL,
            span,
        )

    test = n.Binary("logical_or", both("gt", "lt"), both("lt", "gt"), t.BOOL, span)
    update = n.Assign(counter, n.Binary("add", counter, by, wanted, span), span)
    with _loop_body(cx, node) as body:
        assign_name(cx, node.target.id, counter, node.target)
        lower_body(cx, node.body)
    if node.target.id in cx.scope.private_loops:
        cx.bindings.pop(node.target.id, None)
    cx.emit(n.While(test, tuple(body), (update,), span))


def _static_items(cx: Context, found: Range, node: ast.For) -> list[Value]:
    from treadle.lang.lower.arrays import static_number

    bounds = []
    for bound in (found.start, found.stop, found.step):
        value = static_number(cx, bound)
        if value is None:
            raise cx.refusal("static", node.iter, what="a bound of td.static_range")
        bounds.append(int(value))
    if bounds[2] == 0:
        raise cx.error("the step of a range is not 0", node.iter)
    items = range(*bounds)
    if len(items) > 1024:
        raise cx.error(
            f"td.static_range writes the body out, and {len(items)} times is too many: use range",
            node.iter,
        )
    return [Literal(at) for at in items]


def _unroll(cx: Context, node: ast.For, items: list[Value]) -> None:
    """The body once for each item, with the loop's variable as a constant."""
    names = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
    for name in names:
        if cx.scope.assigned_in.get(id(node), set()) & {name}:
            raise cx.error(f"{name} is a constant in each turn of an unrolled loop", node.target)
    for item in items:
        with cx.unrolled_body(id(node.body)):
            _bind_item(cx, node.target, item)
            lower_body(cx, node.body)
        for name in names:
            cx.bindings.pop(name, None)
        if cx.statements and _leaves(cx.statements[-1]):
            break


def _bind_item(cx: Context, target: ast.expr, item: Value) -> None:
    if isinstance(target, ast.Name):
        cx.bindings[target.id] = Binding(item)
    elif isinstance(target, (ast.Tuple, ast.List)):
        items = _items(cx, item, target)
        if len(items) != len(target.elts):
            raise cx.error(f"{len(target.elts)} names for {len(items)} values", target)
        for each, part in zip(target.elts, items, strict=True):
            _bind_item(cx, each, part)
    else:
        raise cx.error("the variable of a loop is a name", target)


def _break(cx: Context, node: ast.Break) -> None:
    if cx.unrolled:
        raise cx.refusal("unrolled_exit", node)
    cx.emit(n.Break(cx.span(node)))


def _continue(cx: Context, node: ast.Continue) -> None:
    if cx.unrolled:
        raise cx.refusal("unrolled_exit", node)
    cx.emit(n.Continue(cx.span(node)))


# --- the rest ------------------------------------------------------------------------------------


def _return(cx: Context, node: ast.Return) -> None:
    nothing = node.value is None or (
        isinstance(node.value, ast.Constant) and node.value.value is None
    )
    if nothing:
        if not cx.is_kernel and cx.result not in (None, t.VOID):
            raise cx.refusal("missing_return", node, name=cx.function.__name__)
        if not cx.is_kernel:
            cx.result = t.VOID
        cx.emit(n.Return(None, cx.span(node)))
        return
    assert node.value is not None
    if cx.is_kernel:
        raise cx.refusal("kernel_result", node)
    value = lower_expression(cx, node.value)
    if isinstance(value, PythonObject) and value.value is None:
        cx.emit(n.Return(None, cx.span(node)))
        return
    cx.emit(n.Return(return_value(cx, value, node), cx.span(node)))


def _expression(cx: Context, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return  # a docstring
    if isinstance(node.value, ast.Constant) and node.value.value is Ellipsis:
        return
    if isinstance(node.value, ast.Call):
        value = lower_call(cx, node.value, unused=True)
    else:
        value = lower_expression(cx, node.value)
    if isinstance(value, n.Call):
        return  # a function without effects, whose result nobody wants


def _assert(cx: Context, node: ast.Assert) -> None:
    message = ""
    if node.msg is not None:
        text = lower_expression(cx, node.msg) if not isinstance(node.msg, ast.JoinedStr) else None
        if not isinstance(text, PythonObject) or not isinstance(text.value, str):
            raise cx.error("the message of assert is literal text", node.msg)
        message = text.value
    test = lower_condition(cx, node.test)
    if not message:
        message = ast.unparse(node.test)
    cx.emit(n.Assert(typed(cx, test, node.test), message, cx.span(node)))


def _pass(cx: Context, node: ast.Pass) -> None:
    return


_HANDLERS: dict[type[ast.stmt], Callable[[Context, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.Assert: _assert,
    ast.Pass: _pass,
}

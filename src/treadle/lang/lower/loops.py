"""Loops: while, for over a range, and loops that are unrolled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.effects import ends
from treadle.lang import rules
from treadle.lang.lower.arrays import static_number
from treadle.lang.lower.assignments import assign_name, assign_to
from treadle.lang.lower.context import Binding, Context
from treadle.lang.lower.conversions import number, with_type
from treadle.lang.lower.expressions import (
    items_of,
    lower_condition,
    lower_expression,
)
from treadle.lang.lower.iterations import counted_loop, is_unrolled, item_at, known_items
from treadle.lang.lower.operators import operand
from treadle.lang.lower.values import (
    Range,
    Value,
)
from treadle.lang.rules import Literal


def leaves(statement: n.Statement) -> bool:
    """Whether control leaves the block at a statement."""
    return isinstance(statement, (n.Break, n.Continue)) or ends((statement,))


def _body(cx: Context, body: list[ast.stmt]) -> None:
    cx.rules.body(cx, body)


def lower_while(cx: Context, node: ast.While) -> None:
    """`while`."""
    if node.orelse:
        raise cx.refusal("loop_else", node.orelse[0])
    before, cx.unrolled = cx.unrolled, 0
    with cx.block(id(node.body), loop=True) as body:
        with cx.block() as head:
            test = lower_condition(cx, node.test)
        if isinstance(test, Literal):
            test = n.TRUE if test.value else n.FALSE
        if head:  # the condition has statements: it is tested inside the loop
            span = cx.span(node.test)
            body.extend(head)
            body.append(n.If(n.Unary("not", test, t.BOOL, span), (n.Break(span),), (), span))
            test = n.TRUE
        _body(cx, node.body)
    cx.unrolled = before
    cx.emit(n.While(test, tuple(body), (), cx.span(node)))


def lower_for(cx: Context, node: ast.For) -> None:
    """`for … in range(…)`, td.static_range(…), a tuple, an array, `enumerate` or `zip`."""
    if node.orelse:
        raise cx.refusal("loop_else", node.orelse[0])
    found = lower_expression(cx, node.iter)
    if is_unrolled(found):
        _unroll(cx, node, known_items(cx, found, node.iter))
        return
    if not isinstance(found, Range):
        _count_through(cx, node, found)
        return
    if not isinstance(node.target, ast.Name):
        raise cx.error("the variable of a range is one name", node.target)
    if found.unrolled:
        _unroll(cx, node, _static_items(cx, found, node))
        return
    written = number(cx, found.step, node.iter)
    wanted = _range_type(cx, found, node.iter)
    start = with_type(found.start, wanted, cx, node.iter)
    stop = with_type(found.stop, wanted, cx, node.iter)
    step, by = 0, None
    if not isinstance(written, Literal):  # known at run time only; with 0 no iteration runs
        by = with_type(written, wanted, cx, node.iter)
    elif step := int(written.value):
        pass
    else:
        raise cx.error("the step of a range is not 0", node.iter)
    variable, copied = _loop_variable(cx, node, wanted)
    with _loop_body(cx, node) as body:
        if copied:
            assign_name(cx, node.target.id, variable, node.target)
        _body(cx, node.body)
    if not copied:
        cx.bindings.pop(node.target.id, None)
    cx.emit(n.For(variable, start, stop, step, tuple(body), span=cx.span(node), by=by))


def _count_through(cx: Context, node: ast.For, found: Value) -> None:
    """A loop over arrays and ranges, whose variables get the items of each iteration."""
    at, count = counted_loop(cx, found, node)
    with _loop_body(cx, node) as body:
        assign_to(cx, node.target, item_at(cx, found, at, node.iter))
        _body(cx, node.body)
    zero = with_type(Literal(0), at.type, cx, node)  # type: ignore[arg-type]
    cx.emit(n.For(at, zero, count, 1, tuple(body), span=cx.span(node)))


def _range_type(cx: Context, found: Range, node: ast.AST) -> t.Scalar:
    kind: rules.Operand = operand(number(cx, found.start, node))
    for bound in (found.stop, found.step):
        kind = rules.common_type(kind, operand(number(cx, bound, node)))
    assert isinstance(kind, t.Scalar)
    return t.I32 if kind == t.BOOL else kind


def _loop_variable(cx: Context, node: ast.For, type: t.Scalar) -> tuple[n.Variable, bool]:
    """The counter of a loop, and whether the user's variable must be a copy of it: if the body
    assigns the variable, or if it is used outside the loop."""
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    variable = n.Variable(cx.unique(name), type, cx.span(node.target))
    copied = name not in cx.scope.private_loops or name in cx.bindings
    if not copied:
        cx.bindings[name] = Binding(variable, variable)
    return variable, copied


@contextmanager
def _loop_body(cx: Context, node: ast.For) -> Iterator[list[n.Statement]]:
    before, cx.unrolled = cx.unrolled, 0
    with cx.block(id(node.body), loop=True) as statements:
        yield statements
    cx.unrolled = before


def _static_items(cx: Context, found: Range, node: ast.For) -> list[Value]:
    bounds = []
    for bound in (found.start, found.stop, found.step):
        value = static_number(cx, bound)
        if value is None:
            raise cx.refusal("static", node.iter, what="a bound of td.static_range")
        bounds.append(int(value))
    if bounds[2] == 0:
        raise cx.error("the step of a range is not 0", node.iter)
    items = range(*bounds)
    if items[1024:]:
        times = abs(bounds[1] - bounds[0]) // abs(bounds[2])
        raise cx.error(
            f"td.static_range unrolls its body, and {times} iterations are too many: use range",
            node.iter,
        )
    return [Literal(at) for at in items]


def _unroll(cx: Context, node: ast.For, items: list[Value]) -> None:
    """The body once for each item, with the loop's variable as a constant."""
    names = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
    for name in names:
        if cx.scope.assigned_in.get(id(node), set()) & {name}:
            raise cx.error(
                f"{name} is a constant in each iteration of an unrolled loop", node.target
            )
    for item in items:
        with cx.unrolled_body(id(node.body)):
            _bind_item(cx, node.target, item)
            _body(cx, node.body)
        for name in names:
            cx.bindings.pop(name, None)
        if cx.statements and leaves(cx.statements[-1]):
            break


def _bind_item(cx: Context, target: ast.expr, item: Value) -> None:
    if isinstance(target, ast.Name):
        cx.bindings[target.id] = Binding(item)
    elif isinstance(target, (ast.Tuple, ast.List)):
        items = items_of(cx, item, target)
        if len(items) != len(target.elts):
            raise cx.error(f"{len(target.elts)} names for {len(items)} values", target)
        for each, part in zip(target.elts, items, strict=True):
            _bind_item(cx, each, part)
    else:
        raise cx.error("the variable of a loop is a name", target)


def lower_break(cx: Context, node: ast.Break) -> None:
    """`break`."""
    if cx.unrolled:
        raise cx.refusal("unrolled_exit", node)
    cx.emit(n.Break(cx.span(node)))


def lower_continue(cx: Context, node: ast.Continue) -> None:
    """`continue`."""
    if cx.unrolled:
        raise cx.refusal("unrolled_exit", node)
    cx.emit(n.Continue(cx.span(node)))

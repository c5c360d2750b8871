"""Items of tuples and components of vectors at an index that is known at run time only.

As with arrays, an item outside is 0, and an error in check mode. Items of short tuples are selected
one by one, since memory that is indexed by variables is slow on GPUs; longer tuples are put into
memory, those of constants once, at the start of the function.
"""

from __future__ import annotations

import ast

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang import rules
from treadle.lang.lower.arrays import checks_of, index_along, memory_variable, place_of, store
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import constant, number, typed, with_type
from treadle.lang.lower.operators import operand
from treadle.lang.lower.values import FixedArrayPlace, TupleValue, Value, describe
from treadle.lang.rules import Literal

_MOST_SELECTED = 8
MOST_ITEMS = 1024


def item_of_tuple(cx: Context, items: tuple[Value, ...], index: Value, node: ast.AST) -> Value:
    """The item of a tuple at an index. Of a tuple of tuples, which have one length, a tuple."""
    at = index_along(cx, index, node)
    if items and all(isinstance(item, TupleValue) for item in items):
        rows = [item.items for item in items if isinstance(item, TupleValue)]
        if len({len(row) for row in rows}) > 1:
            raise cx.error("tuples in a tuple that is indexed by a variable have one length", node)
        return TupleValue(
            tuple(item_of_tuple(cx, column, at, node) for column in zip(*rows, strict=True))
        )
    numbers = _of_one_type(cx, items, node)
    if len(numbers) > MOST_ITEMS:
        raise cx.refusal("tuple_index", node, items=len(numbers))
    type = numbers[0].type
    if len(numbers) > _MOST_SELECTED or cx.lowering.asserts or not isinstance(type, t.Scalar):
        return _from_memory(cx, numbers, at, node)
    chosen: n.Expression = constant(0, type, cx, node)
    for place, each in reversed(list(enumerate(numbers))):
        assert isinstance(at.type, t.Scalar)
        here = constant(place, at.type, cx, node)
        test = n.Binary("eq", at, here, t.BOOL, cx.span(node))
        chosen = n.Select(test, each, chosen, type, cx.span(node))
    return chosen


def _of_one_type(cx: Context, items: tuple[Value, ...], node: ast.AST) -> list[n.Expression]:
    """The items, which are numbers, in their common type, or vectors of one type."""
    if not items:
        raise cx.error("this tuple has no items", node)
    found = [number(cx, item, node) for item in items]
    if all(isinstance(each, Literal) or isinstance(each.type, t.Scalar) for each in found):
        kind = operand(found[0])
        for each in found[1:]:
            kind = rules.common_type(kind, operand(each))
        wanted = rules.default_type(kind.value) if isinstance(kind, Literal) else kind
        return [cx.spill(with_type(each, wanted, cx, node)) for each in found]
    values = [typed(cx, each, node) for each in found]
    for each in values[1:]:
        if each.type != values[0].type or not isinstance(each.type, t.Vector):
            raise cx.error(
                "a tuple that is indexed by a variable has numbers, or vectors of one type, and "
                f"here are {describe(values[0])} and {describe(each)}",
                node,
            )
    return [cx.spill(each) for each in values]


def _from_memory(cx: Context, items: list[n.Expression], at: n.Expression, node: ast.AST) -> n.Load:
    span = cx.span(node)
    known = all(isinstance(each, n.Constant) for each in items)
    key = tuple((each.type, repr(each.value)) for each in items if isinstance(each, n.Constant))
    place = cx.tables.get(key) if known else None
    if place is None:
        memory = memory_variable(cx, t.Array(items[0].type, len(items)), "table", span)
        assert isinstance(memory.type, t.Array)
        assert isinstance(memory.place, n.Element)
        cx.item_memories.add(memory.place.memory)
        place = FixedArrayPlace(memory.place, memory.type)
        with cx.block() as filling:
            store(cx, place.place, TupleValue(tuple(items)), node, "a tuple")
        if known:
            cx.tables[key] = place
        (cx.prologue if known else cx.statements).extend(filling)
    found = place_of(cx, place, at, node)
    return n.Load(found, found.type, span)


def place_in_vector(cx: Context, base: n.Place, index: Value, node: ast.AST) -> n.Item:
    """The place of a vector's component."""
    assert isinstance(base.type, t.Vector)
    at = index_along(cx, index, node)
    count = constant(base.type.count, t.I32, cx, node)
    checks = checks_of(cx, [at], [count], node)
    if cx.lowering.asserts and checks:  # a variable in registers has no checks that report
        index, extent = checks[0].index, checks[0].bound
        zero = with_type(Literal(0), index.type, cx, node)  # type: ignore[arg-type]
        span = cx.span(node)
        least = n.Binary("ge", index, zero, t.BOOL, span)
        below = n.Binary("lt", index, extent, t.BOOL, span)
        inside = n.Binary("logical_and", least, below, t.BOOL, span)
        cx.emit(n.Assert(inside, f"{ast.unparse(node)}: index outside the vector", span=span))
    return n.Item(base, at, base.type.element, checks, cx.span(node))


def item_of_vector(cx: Context, vector: n.Expression, index: Value, node: ast.AST) -> n.Load:
    """The component of a vector."""
    if isinstance(vector, n.Load):
        base: n.Place = vector.place
    else:
        kept = vector if isinstance(vector, n.Variable) else cx.keep(vector, len(cx.statements))
        assert isinstance(kept, n.Variable)
        base = kept
    place = place_in_vector(cx, base, index, node)
    return n.Load(place, place.type, cx.span(node))

"""Loops over tuples, arrays, `enumerate` and `zip`.

A loop that a tuple or a vector takes part in is unrolled, as over a tuple alone, so that its items
may have several types. Other loops count through the shortest of arrays and ranges.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang import rules
from treadle.lang.lower.arrays import load, place_of, static_number
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import number, with_type
from treadle.lang.lower.expressions import items_of
from treadle.lang.lower.operators import binary, operand
from treadle.lang.lower.values import (
    ArrayView,
    Counter,
    FixedArrayPlace,
    Range,
    TupleValue,
    Value,
    Zipped,
    describe,
    is_expression,
)
from treadle.lang.rules import Literal


def is_unrolled(value: Value) -> bool:
    """Whether a loop over a value is unrolled."""
    if isinstance(value, Zipped):
        return any(map(is_unrolled, value.parts))
    return isinstance(value, TupleValue) or _is_vector(value)


def _is_vector(value: Value) -> bool:
    return is_expression(value) and isinstance(value.type, t.Vector)  # type: ignore[union-attr]


def known_items(cx: Context, value: Value, node: ast.AST) -> list[Value]:
    """The items of an unrolled loop."""
    if isinstance(value, Zipped):
        counted = [part for part in value.parts if not isinstance(part, Counter)]
        columns = iter([known_items(cx, part, node) for part in counted])
        length = min(len(known_items(cx, part, node)) for part in counted)
        found = [
            _counted(cx, part.start, length, node) if isinstance(part, Counter) else next(columns)
            for part in value.parts
        ]
        return [TupleValue(row) for row in zip(*found, strict=False)]
    if isinstance(value, Range):
        bounds = [static_number(cx, each) for each in (value.start, value.stop, value.step)]
        if None not in bounds and bounds[2]:
            return [Literal(at) for at in range(*map(int, bounds))]  # type: ignore[arg-type]
    elif isinstance(value, (ArrayView, FixedArrayPlace)):
        size = static_number(cx, _count(cx, value, node))
        if size is not None:
            return [
                load(cx, place_of(cx, value, Literal(at), node), node) for at in range(int(size))
            ]
    else:
        return items_of(cx, value, node)
    raise cx.error(
        f"a loop over a tuple is unrolled, and the length of {describe(value)} is known at run "
        "time only: loop over range(n), and index both",
        node,
    )


def _counted(cx: Context, start: Value, count: int, node: ast.AST) -> list[Value]:
    return [binary(cx, "+", start, Literal(at), node) for at in range(count)]


def counted_loop(cx: Context, value: Value, node: ast.For) -> tuple[n.Variable, n.Expression]:
    """The hidden variable of a loop over arrays and ranges, and how many iterations there are."""
    counts = [number(cx, each, node.iter) for each in _counts(cx, value, node.iter)]
    kind: rules.Operand = operand(counts[0])
    for each in counts[1:]:
        kind = rules.common_type(kind, operand(each))
    wanted = rules.default_type(kind.value) if isinstance(kind, Literal) else kind
    total, *others = [with_type(each, wanted, cx, node.iter) for each in counts]
    for each in others:
        total = n.Intrinsic("min", (total, each), wanted, cx.span(node.iter))
    return n.Variable(cx.unique("item.0"), wanted, cx.span(node.target)), total


def _counts(cx: Context, value: Value, node: ast.AST) -> Iterator[Value]:
    if isinstance(value, Zipped):
        for part in value.parts:
            yield from _counts(cx, part, node)
    elif not isinstance(value, Counter):
        yield _count(cx, value, node)


def _count(cx: Context, value: Value, node: ast.AST) -> Value:
    if isinstance(value, FixedArrayPlace):
        return Literal(value.type.length)
    if isinstance(value, ArrayView) and value.ndim == 1 and value.fragment is None:
        return value.extents[0]
    if isinstance(value, Range) and static_number(cx, value.step) == 1:
        return binary(cx, "-", value.stop, value.start, node)
    if isinstance(value, Range):
        raise cx.error("a range in enumerate or zip has the step 1", node)
    of_fragment = isinstance(value, ArrayView) and value.fragment is not None
    numbers = "td.static_range(fragment.size)" if of_fragment else "range(a.size)"
    raise cx.error(
        f"for runs over range(…), td.static_range(…), a tuple or an array of one dimension, not "
        f"over {describe(value)}: write for i in {numbers}",
        node,
    )


def item_at(cx: Context, value: Value, at: n.Variable, node: ast.AST) -> Value:
    """The item of an iteration."""
    if isinstance(value, Zipped):
        return TupleValue(tuple(item_at(cx, part, at, node) for part in value.parts))
    if isinstance(value, (Counter, Range)):
        return binary(cx, "+", value.start, at, node)
    assert isinstance(value, (ArrayView, FixedArrayPlace))
    return load(cx, place_of(cx, value, at, node), node)

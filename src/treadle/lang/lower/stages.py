"""The library's functions for tiles in stages of shared memory (`ir.stages`)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.lower.arrays import place_of, static_number
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import cast, scalar, typed
from treadle.lang.lower.expressions import in_order
from treadle.lang.lower.values import ArrayView, PythonObject, TupleValue, Value, describe
from treadle.lang.rules import Literal


def _prepare(cx: Context, node: ast.Call) -> n.Staged:
    """prepare_stages(barriers, count, cluster=1, sharing=1, copiers=0)"""
    barriers, *counts = _given(cx, node)
    counts += [Literal(1), Literal(1), Literal(0)][len(counts) - 1 :]
    place = _element(cx, barriers, Literal(0), node, "write")
    numbers = tuple(_number(cx, each, node) for each in counts)
    return n.Staged("prepare", (place,), (), numbers, cx.span(node))


def _step(op: str, cx: Context, node: ast.Call) -> n.Staged:
    """claim_stage(barriers, stage, parity, bytes), wait_stage(barriers, stage, parity),
    release_stage(barriers, stage), hand_stage(barriers, stage)"""
    barriers, stage, *others = _given(cx, node)
    place = _stage(cx, barriers, stage, node)
    operands = tuple(cast(cx, parity, t.I32, node) for parity in others[:1])
    numbers = tuple(_number(cx, bytes, node) for bytes in others[1:])
    return n.Staged(op, (place,), operands, numbers, cx.span(node))


def _copy(cx: Context, node: ast.Call) -> n.Staged:
    """copy_tile(to, index, barriers, stage, x, start, extents, steps, at, lines,
    shared_by=1, apart=1)"""
    to, index, barriers, stage, x, start, extents, steps, at, *lines = _given(cx, node)
    target = _element(cx, to, index, node, "write")
    source = _element(cx, x, start, node, "read")
    lines += [Literal(1), Literal(1)][len(lines) - 1 :]
    parts = [part for each in (extents, steps, at) for part in _items(cx, each, node)]
    operands = [typed(cx, scalar(cx, part, node, "a number of a tile"), node) for part in parts]
    load = n.Load(source, source.type, cx.span(node))
    places = (target, _stage(cx, barriers, stage, node))
    numbers = tuple(_number(cx, each, node) for each in lines)
    return n.Staged("copy", places, (load, *operands), numbers, cx.span(node))


def _multiply(op: str, cx: Context, node: ast.Call) -> n.Staged:
    """multiply_tiles(sums, left, left_at, right, right_at, left_near, right_near) and
    begin_product(…), which does not add to what the sums were"""
    sums, left, left_at, right, right_at, *near = _given(cx, node)
    tiles = tuple(_read(cx, x, at, node) for x, at in ((left, left_at), (right, right_at)))
    numbers = tuple(_number(cx, each, node) for each in near)
    return n.Staged(op, _sums(cx, sums, node), tiles, numbers, cx.span(node))


def _multiply_held(cx: Context, node: ast.Call) -> n.Staged:
    """multiply_held(sums, words, right, right_at, right_near, lines)"""
    sums, words, right, right_at, *numbers = _given(cx, node)
    if not isinstance(words, ArrayView):
        raise cx.error(f"an array of words is multiplied, not {describe(words)}", node)
    count = _number(cx, words.size, node)
    held = [_read(cx, words, Literal(at), node) for at in range(count)]
    operands = (*held, _read(cx, right, right_at, node))
    given = tuple(_number(cx, each, node) for each in numbers)
    return n.Staged("multiply_held", _sums(cx, sums, node), operands, given, cx.span(node))


def _sums(cx: Context, sums: Value, node: ast.Call) -> tuple[n.Element, ...]:
    if not isinstance(sums, ArrayView):
        raise cx.error(f"a product is added to an array, not to {describe(sums)}", node)
    count = _number(cx, sums.size, node)
    return tuple(_element(cx, sums, Literal(at), node, "write") for at in range(count))


def _read(cx: Context, array: Value, index: Value, node: ast.Call) -> n.Load:
    place = _element(cx, array, index, node, "read")
    return n.Load(place, place.type, cx.span(node))


def _settle(cx: Context, node: ast.Call) -> n.Staged:
    """settle_products(left, …), where numbers of float32 are to be computed before the wait"""
    left, *numbers = _given(cx, node)
    operands = tuple(cast(cx, number, t.F32, node) for number in numbers)
    return n.Staged("settle", (), operands, (_number(cx, left, node),), cx.span(node))


def _meet(cx: Context, node: ast.Call) -> n.Staged:
    """meet_cluster()"""
    return n.Staged("meet", span=cx.span(node))


def _take(cx: Context, node: ast.Call) -> n.Staged:
    """take_elements(to, x, index, rank)"""
    to, x, index, rank = _given(cx, node)
    if not isinstance(to, ArrayView):
        raise cx.error(f"td.take_elements fills an array, not {describe(to)}", node)
    count = _number(cx, to.size, node)
    places = tuple(_element(cx, to, Literal(at), node, "write") for at in range(count))
    source = _element(cx, x, index, node, "read")
    load = n.Load(source, source.type, cx.span(node))
    return n.Staged("take", places, (load, cast(cx, rank, t.I32, node)), (), cx.span(node))


def _leave(cx: Context, node: ast.Call) -> n.Staged:
    """leave_stages()"""
    return n.Staged("leave", span=cx.span(node))


def _given(cx: Context, node: ast.Call) -> list[Value]:
    return in_order(cx, list(node.args))


def _element(cx: Context, array: Value, index: Value, node: ast.AST, access: str) -> n.Element:
    if not isinstance(array, ArrayView):
        raise cx.error(f"an array is needed here, not {describe(array)}", node)
    place = place_of(cx, array, index, node, "write" if access == "write" else "read")
    assert isinstance(place, n.Element)
    return place


def _stage(cx: Context, barriers: Value, stage: Value, node: ast.AST) -> n.Element:
    """The first of the two words of a stage."""
    number = cast(cx, stage, t.I32, node)
    at = n.Binary("mul", number, n.Constant(2, t.I32), t.I32, cx.span(node))
    return _element(cx, barriers, at, node, "write")


def _number(cx: Context, value: Value, node: ast.AST) -> int:
    found = static_number(cx, value)
    if found is None:
        raise cx.error(f"a number that is known here is needed, not {describe(value)}", node)
    return int(found)


def _items(cx: Context, value: Value, node: ast.AST) -> tuple[Value, ...]:
    if not isinstance(value, TupleValue):
        raise cx.error(f"a tuple is needed here, not {describe(value)}", node)
    return value.items


def _lowered(make: Callable[[Context, ast.Call], n.Staged]) -> Callable[..., Value]:
    def lower(cx: Context, node: ast.Call, name: str) -> Value:
        del name
        made = make(cx, node)
        cx.emit(replace(made, span=cx.span(node)))
        return PythonObject(None, "None")

    return lower


FUNCTIONS: dict[str, Callable[[Context, ast.Call, str], Value]] = {
    "prepare_stages": _lowered(_prepare),
    "claim_stage": _lowered(partial(_step, "claim")),
    "copy_tile": _lowered(_copy),
    "wait_stage": _lowered(partial(_step, "wait")),
    "release_stage": _lowered(partial(_step, "release")),
    "hand_stage": _lowered(partial(_step, "hand")),
    "multiply_tiles": _lowered(partial(_multiply, "multiply")),
    "begin_product": _lowered(partial(_multiply, "product")),
    "multiply_held": _lowered(_multiply_held),
    "settle_products": _lowered(_settle),
    "meet_cluster": _lowered(_meet),
    "take_elements": _lowered(_take),
    "leave_stages": _lowered(_leave),
}

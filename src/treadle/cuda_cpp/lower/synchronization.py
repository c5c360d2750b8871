"""Barriers and fences."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.builtin_names import expect, handler
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import condition
from treadle.cuda_cpp.lower.functions import NotPure
from treadle.cuda_cpp.lower.values import Nothing, Rvalue, Value
from treadle.cuda_cpp.lower.variables import new_memory
from treadle.cuda_cpp.lower.warps import named_threads
from treadle.cuda_cpp.meaning.types import INT, VOID
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


@handler("__syncthreads", "__barrier_sync")
def _syncthreads(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.emit(n.Barrier("block", span=cx.span))
    return Nothing(VOID)


@handler("__syncwarp")
def _syncwarp(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__syncwarp", values, 0, 1)
    mask = named_threads(cx, values[0] if values else None)
    cx.emit(n.Barrier("subgroup", mask, cx.span))
    return Nothing(VOID)


@handler("__threadfence_block")
def _fence_block(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.emit(n.Fence("block", cx.span))
    return Nothing(VOID)


@handler("__threadfence", "__threadfence_system")
def _fence(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.emit(n.Fence("device", cx.span))
    return Nothing(VOID)


@handler("__nanosleep")
def _nanosleep(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.note("emulated", "__nanosleep", "threads go on at once", cx.span)
    return Nothing(VOID)


@handler("__syncthreads_count", "__syncthreads_and", "__syncthreads_or")
def _counting_barrier(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """A barrier that also says how many threads came with a condition that held: they are counted
    in shared memory between barriers of their own."""
    assert isinstance(node.function, tree.Name)
    name = node.function.text
    expect(cx, name, values, 1)
    if cx.isolated:
        raise NotPure
    holds = cx.let(condition(cx, values[0], cx.span))
    if name.endswith("_and"):
        holds = n.Unary("not", holds, ir.BOOL, cx.span)
    place = _counter(cx)
    first: n.Expression = n.TRUE
    for axis in range(3):
        test = n.Binary("eq", n.Builtin("thread_idx", axis), constant(0, ir.I32), ir.BOOL)
        first = test if axis == 0 else n.Binary("logical_and", first, test, ir.BOOL)
    barrier = n.Barrier("block", span=cx.span)
    result = n.Variable(cx.lowering.unique("count"), ir.I32, cx.span)
    one = constant(1, ir.I32)
    cx.emit(
        n.If(first, (n.Assign(place, constant(0, ir.I32), cx.span),), (), cx.span),
        barrier,
        n.If(holds, (n.Atomic("add", place, (one,), None, cx.span),), (), cx.span),
        barrier,
        n.Declare(result, n.Load(place, ir.I32), cx.span),
        barrier,
    )
    cx.note("emulated", name, "counted in shared memory", cx.span)
    zero = constant(0, ir.I32)
    if name.endswith("_count"):
        return Rvalue(result, INT)
    op = "ne" if name.endswith("_or") else "eq"
    test = n.Binary(op, result, zero, ir.BOOL, cx.span)
    return Rvalue(n.Cast(test, ir.I32, cx.span), INT)


def _counter(cx: Context) -> n.Element:
    known = cx.lowering.statics.get("counter")
    if known is None:
        target = new_memory(cx, "barrier.count", "shared", ir.I32, 1, cx.span)
        known = cx.lowering.statics["counter"] = n.Element(
            target.memory, constant(0, ir.I32), ir.I32, ()
        )
    place: n.Element = known
    return place

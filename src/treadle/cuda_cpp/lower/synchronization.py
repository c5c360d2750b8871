"""Built-in functions of synchronization: barriers, fences, and operations of a warp, which has 32
threads on every device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.assignment import (
    assign,
)
from treadle.cuda_cpp.lower.builtin_calls import Handler, expect, number_argument
from treadle.cuda_cpp.lower.context import Context, NotPure
from treadle.cuda_cpp.lower.conversions import condition, promoted, rvalue, underlying
from treadle.cuda_cpp.lower.pointers import follow, pointer_of
from treadle.cuda_cpp.lower.storage import new_memory
from treadle.cuda_cpp.lower.values import Rvalue, Value, VoidValue, describe
from treadle.cuda_cpp.semantics.types import INT, UNSIGNED, VOID, Arithmetic, VectorType, ir_type
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.matrices import PRODUCTS
from treadle.ir.rules import subgroup_type


def _syncthreads(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    name = _name(node)
    expect(cx, name, values, *((0,) if name == "__syncthreads" else (0, 1)))
    cx.emit(n.Barrier("block", span=cx.span))
    return VoidValue(VOID)


def _barrier_of(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_barrier_of(number, threads)`: bar.sync of PTX. 0 threads are the whole block."""
    number, threads = (
        cx.let(folded(number_argument(cx, value, ir.U32, cx.span))) for value in values
    )
    if isinstance(threads, n.Constant) and threads.value == 0:
        cx.emit(n.Barrier("block", span=cx.span))
    else:
        cx.emit(n.Barrier("block", span=cx.span, part=(number, threads)))
    return VoidValue(VOID)


def _syncwarp(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__syncwarp", values, 0, 1)
    mask = named_threads(cx, values[0] if values else None)
    cx.emit(n.Barrier("subgroup", mask, cx.span))
    return VoidValue(VOID)


def _fence_block(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, _name(node), values, 0)
    cx.emit(n.Fence("block", cx.span))
    return VoidValue(VOID)


def _fence_with(role: Literal["arrive", "wait"]) -> Handler:
    def build(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
        if cx.isolated:
            raise NotPure
        cx.emit(n.Fence("block", cx.span, role=role))
        return VoidValue(VOID)

    return build


def _fence(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, _name(node), values, 0)
    cx.emit(n.Fence("device", cx.span))
    return VoidValue(VOID)


def _exit(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    if cx.isolated:
        raise NotPure
    if cx.depth or cx.path:
        raise cx.error(
            "exit and ret end a thread in inline PTX of the kernel itself only: return to the "
            "kernel, and return there"
        )
    cx.emit(n.Return(None, cx.span))
    return VoidValue(VOID)


def _grid_barrier(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.emit(n.Barrier("grid", span=cx.span))
    cx.note("emulated", "sync() of a grid", "the kernel is launched in parts", cx.span)
    return VoidValue(VOID)


def _launch_dependency(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """Programmatic dependent launch: kernels of one stream run one after the other here, so there
    is nothing to wait for."""
    expect(cx, _name(node), values, 0)
    cx.note("emulated", _name(node), "nothing: the kernel before has ended", cx.span)
    return VoidValue(VOID)


def _nanosleep(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.note("emulated", "__nanosleep", "does not wait", cx.span)
    return VoidValue(VOID)


def _counting_barrier(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """A barrier that also counts the threads whose condition is true, in shared memory between
    barriers of its own."""
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


# --- warps ---------------------------------------------------------------------------------------


WIDTH = 32


_LANE = n.Builtin("lane")


_SHUFFLES = {
    "__shfl_sync": "shuffle", "__shfl_up_sync": "shuffle_up", "__shfl_down_sync": "shuffle_down",
    "__shfl_xor_sync": "shuffle_xor",
}  # fmt: skip


def named_threads(cx: Context, mask: Value | None) -> n.Expression:
    """The mask of a warp function; all active threads if it has none."""
    if mask is None:
        return constant(0xFFFFFFFF, ir.U32)
    return cx.let(folded(number_argument(cx, mask, ir.U32, cx.span)))


def exchanged(
    cx: Context, op: str, operands: tuple[n.Expression, ...], mask: n.Expression | None
) -> n.Variable:
    """The result of a warp operation."""
    result = cx.variable("exchanged", subgroup_type(op, operands[0].type if operands else ir.U32))
    cx.emit(n.Subgroup(op, operands, result, mask, cx.span))
    return result


def _shuffle(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    name = _name(node)
    expect(cx, name, values, 3, 4)
    op = _SHUFFLES[name]
    mask = named_threads(cx, values[0])
    value = rvalue(cx, values[1], cx.span)
    by = folded(number_argument(cx, values[2], ir.I32, cx.span))
    width = constant(WIDTH, ir.I32)
    if len(values) == 4:
        width = folded(number_argument(cx, values[3], ir.I32, cx.span))  # type: ignore[assignment]
    op, by = _source(cx, op, by, width)
    cx.note("used", name, "", cx.span)
    if isinstance(value.type, VectorType):
        return _shuffle_vector(cx, op, value, by, mask)
    given, type = _given(cx, name, value)
    return Rvalue(exchanged(cx, op, (given, by), mask), type)


def _shuffle_vector(
    cx: Context, op: str, value: Rvalue, by: n.Expression, mask: n.Expression
) -> Rvalue:
    type = ir_type(value.type)
    assert isinstance(type, ir.Vector)
    kept, lane = cx.let(value.expression), cx.let(by)
    parts = tuple(
        exchanged(cx, op, (n.Extract(kept, name, type.element), lane), mask)
        for name in ir.COMPONENTS[: type.count]
    )
    return Rvalue(n.Construct(parts, type, cx.span), value.type)


def _binary(op: str, left: n.Expression, right: n.Expression) -> n.Binary:
    type = ir.BOOL if op in n.COMPARISONS else left.type
    return n.Binary(op, left, right, type)


def _source(
    cx: Context, op: str, by: n.Expression, width: n.Expression
) -> tuple[str, n.Expression]:
    """The shuffle and its operand: with segments of less than a warp, the lane is computed."""
    if isinstance(width, n.Constant) and width.value == WIDTH:
        if op == "shuffle":
            by = folded(_binary("and", by, constant(WIDTH - 1, ir.I32)))
        return op, by
    last = cx.let(folded(_binary("sub", width, constant(1, ir.I32))))
    by = cx.let(by)
    place = _binary("and", _LANE, last)
    if op == "shuffle":
        start = _binary("sub", _LANE, place)
        return "shuffle", _binary("add", start, _binary("and", by, last))
    if op == "shuffle_up":
        source, stays = _binary("sub", _LANE, by), _binary("lt", place, by)
    elif op == "shuffle_down":
        source, stays = _binary("add", _LANE, by), _binary("gt", _binary("add", place, by), last)
    else:
        source = _binary("xor", _LANE, by)
        stays = _binary("gt", source, _binary("or", _LANE, last))
    return "shuffle", n.Select(stays, _LANE, source, ir.I32)


def _vote(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    name = _name(node)
    expect(cx, name, values, 2)
    op = "vote_any" if name == "__any_sync" else "vote_all"
    mask = named_threads(cx, values[0])
    holds = condition(cx, values[1], cx.span)
    cx.note("used", name, "", cx.span)
    return Rvalue(n.Cast(exchanged(cx, op, (holds,), mask), ir.I32, cx.span), INT)


def _ballot(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__ballot_sync", values, 2)
    mask = named_threads(cx, values[0])
    holds = condition(cx, values[1], cx.span)
    cx.note("used", "__ballot_sync", "", cx.span)
    return Rvalue(exchanged(cx, "ballot", (holds,), mask), UNSIGNED)


def _activemask(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__activemask", values, 0)
    cx.note("used", "__activemask", "", cx.span)
    return Rvalue(exchanged(cx, "active", (), None), UNSIGNED)


def _match(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    name = _name(node)
    expect(cx, name, values, 3 if name == "__match_all_sync" else 2)
    mask = named_threads(cx, values[0])
    given, _ = _given(cx, name, values[1])
    cx.note("used", name, "", cx.span)
    if name == "__match_any_sync":
        return Rvalue(exchanged(cx, "match_any", (given,), mask), UNSIGNED)
    lanes = exchanged(cx, "match_all", (given,), mask)
    pointer = pointer_of(cx, values[2])
    if pointer is None:
        raise cx.wrong(f"{name} takes a pointer last, not {describe(values[2])}")
    same = n.Cast(_binary("ne", lanes, constant(0, ir.U32)), ir.I32, cx.span)
    assign(cx, "=", follow(cx, pointer, cx.span), Rvalue(same, INT), cx.span)
    return Rvalue(lanes, UNSIGNED)


_REDUCTIONS = {
    "__reduce_add_sync": "sum", "__reduce_min_sync": "min", "__reduce_max_sync": "max",
    "__reduce_and_sync": "and", "__reduce_or_sync": "or", "__reduce_xor_sync": "xor",
}  # fmt: skip


def _reduce(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    name = _name(node)
    expect(cx, name, values, 2)
    mask = named_threads(cx, values[0])
    given, type = _given(cx, name, values[1])
    if type.scalar not in (ir.I32, ir.U32):
        raise cx.wrong(f"{name} takes an int or an unsigned, not {describe(values[1])}")
    op = _REDUCTIONS[name]
    if op in ("and", "or", "xor"):  # which CUDA has for unsigned only
        given, type = cast(given, ir.U32), UNSIGNED
    cx.note("used", name, "", cx.span)
    return Rvalue(exchanged(cx, op, (given,), mask), type)


# --- products of fragments -----------------------------------------------------------------------


def _multiply(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_multiply_f16(uint4, uint2, float4)`: the sums and a product (ir/matrices.py)."""
    name = _name(node)
    expect(cx, name, values, 3)
    op = name.removeprefix("__treadle_")
    read = [rvalue(cx, value, cx.span) for value in values]
    operands = tuple(cx.let(one.expression) for one in read)
    result = cx.variable("sums", operands[2].type)
    cx.emit(n.Subgroup(op, operands, result, None, cx.span))
    return Rvalue(result, read[2].type)


def _name(node: tree.Call) -> str:
    assert isinstance(node.function, tree.Name)
    return node.function.text


def _given(cx: Context, name: str, value: Value) -> tuple[n.Expression, Arithmetic]:
    """The operand of a warp operation: small integers are promoted to int."""
    read = rvalue(cx, value, cx.span)
    type = underlying(read.type)
    if type is None:
        raise cx.error(f"{name} takes a number, not {describe(value)}: pass its members")
    type = promoted(type)
    return cast(read.expression, type.scalar), type


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("__syncthreads", "__barrier_sync"), _syncthreads),
    "__treadle_barrier_of": _barrier_of,
    "__treadle_exit": _exit,
    "__treadle_fence_arrive": _fence_with("arrive"),
    "__treadle_fence_wait": _fence_with("wait"),
    "__syncwarp": _syncwarp,
    "__treadle_grid_barrier": _grid_barrier,
    "__threadfence_block": _fence_block,
    **dict.fromkeys(("__threadfence", "__threadfence_system"), _fence),
    "__nanosleep": _nanosleep,
    **dict.fromkeys(
        ("cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"),
        _launch_dependency,
    ),
    **dict.fromkeys(
        ("__syncthreads_count", "__syncthreads_and", "__syncthreads_or"), _counting_barrier
    ),
    **dict.fromkeys(_SHUFFLES, _shuffle),
    **dict.fromkeys(("__any_sync", "__all_sync"), _vote),
    "__ballot_sync": _ballot,
    "__activemask": _activemask,
    **dict.fromkeys(("__match_any_sync", "__match_all_sync"), _match),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys((f"__treadle_{op}" for op in PRODUCTS), _multiply),
}

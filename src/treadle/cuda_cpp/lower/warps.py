"""Functions of a warp: 32 threads on every device."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.builtin_names import expect, handler, number_argument
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import condition, promoted, rvalue, underlying
from treadle.cuda_cpp.lower.memory import describe
from treadle.cuda_cpp.lower.values import Rvalue, Value
from treadle.cuda_cpp.meaning.types import INT, UNSIGNED, VectorType, ir_type
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

WIDTH = 32
_LANE = n.Builtin("lane")
_SHUFFLES = {
    "__shfl_sync": "shuffle", "__shfl_up_sync": "shuffle_up", "__shfl_down_sync": "shuffle_down",
    "__shfl_xor_sync": "shuffle_xor",
}  # fmt: skip


def exchanged(cx: Context, op: str, operands: tuple[n.Expression, ...]) -> n.Variable:
    """The result of an operation of the warp."""
    from treadle.ir.rules import subgroup_type

    result = cx.variable("exchanged", subgroup_type(op, operands[0].type))
    cx.emit(n.Subgroup(op, operands, result, span=cx.span))
    return result


@handler(*_SHUFFLES)
def _shuffle(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    assert isinstance(node.function, tree.Name)
    name = node.function.text
    expect(cx, name, values, 3, 4)
    op = _SHUFFLES[name]
    value = rvalue(cx, values[1], cx.span)
    by = folded(number_argument(cx, values[2], ir.I32, cx.span))
    width = constant(WIDTH, ir.I32)
    if len(values) == 4:
        width = folded(number_argument(cx, values[3], ir.I32, cx.span))  # type: ignore[assignment]
    op, by = _source(cx, op, by, width)
    cx.note("used", name, "", cx.span)
    if isinstance(value.type, VectorType):
        return _shuffle_vector(cx, op, value, by)
    type = underlying(value.type)
    if type is None:
        raise cx.error(f"{name} exchanges numbers, not {describe(value)}: exchange its parts")
    type = promoted(type)
    given = cast(value.expression, type.scalar)
    return Rvalue(exchanged(cx, op, (given, by)), type)


def _shuffle_vector(cx: Context, op: str, value: Rvalue, by: n.Expression) -> Rvalue:
    type = ir_type(value.type)
    assert isinstance(type, ir.Vector)
    kept, lane = cx.let(value.expression), cx.let(by)
    parts = tuple(
        exchanged(cx, op, (n.Extract(kept, name, type.element), lane))
        for name in ir.COMPONENTS[: type.count]
    )
    return Rvalue(n.Construct(parts, type, cx.span), value.type)


def _binary(op: str, left: n.Expression, right: n.Expression) -> n.Binary:
    type = ir.BOOL if op in n.COMPARISONS else left.type
    return n.Binary(op, left, right, type)


def _source(
    cx: Context, op: str, by: n.Expression, width: n.Expression
) -> tuple[str, n.Expression]:
    """The operation and its operand: narrower segments compute the lane that they read."""
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


@handler("__any_sync", "__all_sync")
def _vote(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    assert isinstance(node.function, tree.Name)
    name = node.function.text
    expect(cx, name, values, 2)
    op = "vote_any" if name == "__any_sync" else "vote_all"
    holds = condition(cx, values[1], cx.span)
    cx.note("used", name, "", cx.span)
    return Rvalue(n.Cast(exchanged(cx, op, (holds,)), ir.I32, cx.span), INT)


@handler("__ballot_sync")
def _ballot(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__ballot_sync", values, 2)
    mask = number_argument(cx, values[0], ir.U32, cx.span)
    holds = condition(cx, values[1], cx.span)
    cx.note("used", "__ballot_sync", "", cx.span)
    ballot = exchanged(cx, "ballot", (holds,))
    return Rvalue(folded(_binary("and", ballot, mask)), UNSIGNED)


@handler("__activemask")
def _activemask(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__activemask", values, 0)
    return Rvalue(exchanged(cx, "ballot", (n.TRUE,)), UNSIGNED)

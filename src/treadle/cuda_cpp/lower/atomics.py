"""Atomic functions."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.cuda_cpp.lower.arithmetic import cast
from treadle.cuda_cpp.lower.builtin_names import expect, handler
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import number
from treadle.cuda_cpp.lower.objects import for_each_choice, refuse_const, refuse_constant
from treadle.cuda_cpp.lower.pointers import follow, pointer_of
from treadle.cuda_cpp.lower.values import ChoiceLvalue, Lvalue, Nothing, Rvalue, Value, describe
from treadle.cuda_cpp.meaning.types import VOID, Arithmetic, EnumType
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

_OPERATIONS = {
    "atomicAdd": "add", "atomicSub": "sub", "atomicExch": "exchange", "atomicMin": "min",
    "atomicMax": "max", "atomicInc": "inc", "atomicDec": "dec", "atomicCAS": "cas",
    "atomicAnd": "and", "atomicOr": "or", "atomicXor": "xor",
}  # fmt: skip
_ON_FLOATS = frozenset({"add", "exchange"})


@handler(*(f"{name}{scope}" for name in _OPERATIONS for scope in ("", "_block", "_system")))
def _atomic(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    assert isinstance(node.function, tree.Name)
    name = node.function.text
    op = _OPERATIONS[name.removesuffix("_block").removesuffix("_system")]
    expect(cx, name, values, 3 if op == "cas" else 2)
    pointer = pointer_of(cx, values[0])
    if pointer is None:
        raise cx.error(f"{name} takes a pointer first, not {describe(values[0])}")
    place = follow(cx, pointer, cx.span)
    type = getattr(place, "type", None)
    if isinstance(type, EnumType):
        type = type.underlying
    if not isinstance(type, Arithmetic):
        raise cx.error(f"{name} works on numbers, not on {describe(place)}: update its parts")
    if type.scalar.is_float and op not in _ON_FLOATS:
        raise cx.error(
            f"{name} works on integers, not on {type}: exchange its bits by atomicCAS in a loop"
        )
    operands = tuple(
        cx.let(cast(number(cx, value, cx.span)[0], type.scalar)) for value in values[1:]
    )
    used = cx.unused is not node
    result = cx.variable("old", type.scalar) if used else None
    _update(cx, op, place, operands, result)
    cx.note("used", name, "", cx.span)
    return Rvalue(result, type) if result is not None else Nothing(VOID)


def _update(
    cx: Context,
    op: str,
    place: Value,
    operands: tuple[n.Expression, ...],
    result: n.Variable | None,
) -> None:
    if isinstance(place, ChoiceLvalue):
        for_each_choice(
            cx,
            place.tag,
            place.choices,
            lambda one: _update(cx, op, one, operands, result),
            cx.span,
        )
        return
    if not isinstance(place, Lvalue) or not _is_common(cx, place.place):
        raise cx.error(
            "an atomic works on memory that several threads share; this object belongs to one "
            "thread: update it plainly"
        )
    refuse_const(cx, place, cx.span)
    refuse_constant(cx, place.place, cx.span)
    if op in ("inc", "dec"):
        _wrapping(cx, op, place.place, operands[0], result)
        return
    cx.emit(n.Atomic(op, place.place, operands, result, cx.span))  # type: ignore[arg-type]


def _is_common(cx: Context, place: n.Place) -> bool:
    """Whether several threads have a place: it is in global or shared memory."""
    root = root_of(place)
    if not isinstance(root, n.Element):
        return False
    target = cx.lowering.memory_targets.get(root.memory)
    return target is None or target.space != "local"


def _wrapping(
    cx: Context, op: str, place: n.Place, limit: n.Expression, result: n.Variable | None
) -> None:
    """AtomicInc and atomicDec, which no device but CUDA's has, by compare and swap."""
    type = place.type
    assert isinstance(type, ir.Scalar)
    zero, one = n.Constant(0, type), n.Constant(1, type)
    assumed = cx.let_as("assumed", n.Load(place, type))  # type: ignore[arg-type]
    seen = cx.variable("seen", type)
    if op == "inc":
        over = n.Binary("ge", assumed, limit, ir.BOOL)
        new = n.Select(over, zero, n.Binary("add", assumed, one, type), type)
    else:
        over = n.Binary(
            "logical_or",
            n.Binary("eq", assumed, zero, ir.BOOL),
            n.Binary("gt", assumed, limit, ir.BOOL),
            ir.BOOL,
        )
        new = n.Select(over, limit, n.Binary("sub", assumed, one, type), type)
    body = (
        n.Atomic("cas", place, (assumed, new), seen, cx.span),  # type: ignore[arg-type]
        n.If(n.Binary("eq", seen, assumed, ir.BOOL), (n.Break(cx.span),), (), cx.span),
        n.Assign(assumed, seen, cx.span),
    )
    cx.emit(n.While(n.TRUE, body, (), cx.span))
    if result is not None:
        cx.emit(n.Assign(result, assumed, cx.span))

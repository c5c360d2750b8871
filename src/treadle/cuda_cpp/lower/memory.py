"""Built-in functions on memory: atomics, loads and stores with hints, memcpy and memset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.assignment import (
    assign,
)
from treadle.cuda_cpp.lower.builtin_calls import Handler, expect, number_argument
from treadle.cuda_cpp.lower.choices import for_each_choice
from treadle.cuda_cpp.lower.context import Context, NotPure
from treadle.cuda_cpp.lower.conversions import convert, number, rvalue
from treadle.cuda_cpp.lower.objects import load, refuse_const, refuse_constant
from treadle.cuda_cpp.lower.pointers import ZERO, as_index, as_pointer_to, follow, moved, pointer_of
from treadle.cuda_cpp.lower.shared_addresses import keep_apart
from treadle.cuda_cpp.lower.values import (
    ChoiceLvalue,
    Lvalue,
    PointerValue,
    Rvalue,
    Value,
    VoidValue,
    describe,
)
from treadle.cuda_cpp.semantics.types import (
    ARITHMETIC,
    BOOL,
    UNSIGNED,
    VOID,
    Arithmetic,
    CppType,
    EnumType,
    VectorType,
    Void,
    ir_type,
    size_of,
)
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
_HALVES = (ir.F16, ir.BF16)


def _atomic(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    assert isinstance(node.function, tree.Name)
    name = node.function.text
    op = _OPERATIONS[name.removesuffix("_block").removesuffix("_system")]
    expect(cx, name, values, 3 if op == "cas" else 2)
    pointer = pointer_of(cx, values[0])
    if pointer is None:
        raise cx.wrong(f"{name} takes a pointer first, not {describe(values[0])}")
    place = follow(cx, pointer, cx.span)
    type = getattr(place, "type", None)
    if isinstance(type, EnumType):
        type = type.underlying
    if op == "add" and isinstance(type, VectorType) and type.element.scalar in _HALVES:
        return _add_to_pair(cx, pointer, type, values[1])
    if op == "add" and isinstance(type, VectorType) and type.element.scalar == ir.F32:
        return _add_to_vector(cx, pointer, type, values[1])
    if not isinstance(type, Arithmetic):
        raise cx.error(f"{name} works on numbers, not on {describe(place)}: update its members")
    if (
        type.scalar.bits < 32
        and type.scalar not in _HALVES
        and (op, type.scalar) != ("cas", ir.U16)
    ):
        raise cx.wrong(
            f"{name} on {type}: of 8 and 16 bits CUDA has atomicCAS on unsigned short, and "
            "atomicAdd on __half and __nv_bfloat16"
        )
    if type.scalar.is_float and op not in _ON_FLOATS:
        raise cx.wrong(
            f"{name} works on integers, not on {type}: exchange its bits by atomicCAS in a loop"
        )
    operands = tuple(
        cx.let(cast(number(cx, value, cx.span)[0], type.scalar)) for value in values[1:]
    )
    used = cx.unused is not node
    result = cx.variable("old", type.scalar) if used else None
    _update(cx, op, place, operands, result)
    cx.note("used", name, "", cx.span)
    return Rvalue(result, type) if result is not None else VoidValue(VOID)


def _update(
    cx: Context,
    op: str,
    place: Value,
    operands: tuple[n.Expression, ...],
    result: n.Variable | None,
) -> None:
    if cx.lowering.unevaluated:
        return  # only its type is asked for, of objects that stand for others
    if isinstance(place, ChoiceLvalue):
        for_each_choice(
            cx,
            place.tag,
            place.choices,
            lambda one: _update(cx, op, one, operands, result),
            cx.span,
        )
        return
    if not isinstance(place, Lvalue) or not _is_shared(cx, place.place):
        raise cx.error(
            "an atomic needs memory that several threads share, and this object is local to one "
            "thread: use a plain operator"
        )
    refuse_const(cx, place, cx.span)
    refuse_constant(cx, place.place, cx.span)
    keep_apart(cx, place.place)
    if op in ("inc", "dec"):
        _wrapping(cx, op, place.place, operands[0], result)
        return
    cx.emit(n.Atomic(op, place.place, operands, result, cx.span))  # type: ignore[arg-type]


def _is_shared(cx: Context, place: n.Place) -> bool:
    """Whether threads share a place: it is in global or shared memory."""
    root = root_of(place)
    if not isinstance(root, n.Element):
        return False
    target = cx.lowering.memory_targets.get(root.memory)
    return target is None or target.space != "local"


def _wrapping(
    cx: Context, op: str, place: n.Place, limit: n.Expression, result: n.Variable | None
) -> None:
    """The functions atomicInc and atomicDec, which only CUDA has, by compare and swap."""
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


def _add_to_vector(cx: Context, pointer: PointerValue, type: VectorType, given: Value) -> Value:
    """The function atomicAdd of a float2 or float4: each component by itself, as on CUDA."""
    value = rvalue(cx, convert(cx, given, type, cx.span), cx.span)
    whole = cx.let(value.expression)
    first = as_pointer_to(pointer, type.element)
    olds = []
    for at, axis in enumerate(ir.COMPONENTS[: type.count]):
        old = cx.variable("old", ir.F32)
        place = follow(cx, moved(cx, first, constant(at, ir.I32), cx.span), cx.span)
        _update(cx, "add", place, (n.Extract(whole, axis, ir.F32),), old)
        olds.append(old)
    cx.note("used", "atomicAdd", "", cx.span)
    return Rvalue(n.Construct(tuple(olds), ir_type(type), cx.span), type)


def _add_to_pair(cx: Context, pointer: PointerValue, type: VectorType, given: Value) -> Value:
    """The function atomicAdd of a __half2 or __nv_bfloat162, by compare and swap of its 32 bits."""
    place = follow(cx, as_pointer_to(pointer, UNSIGNED), cx.span)
    own = place.place if isinstance(place, Lvalue) else None
    if own is None or isinstance(own, n.Variable) or not _is_shared(cx, own):
        raise cx.error(f"atomicAdd of a {type} needs a pointer to one array that threads share")
    refuse_const(cx, place, cx.span)
    refuse_constant(cx, own, cx.span)
    keep_apart(cx, own)
    value = rvalue(cx, convert(cx, given, type, cx.span), cx.span)
    pair = cx.let(value.expression)
    half = type.element.scalar
    parts = [n.Extract(pair, axis, half) for axis in "xy"]
    assumed = cx.let_as("assumed", n.Load(own, ir.U32))
    seen = cx.variable("seen", ir.U32)

    def part_of(word: n.Expression, at: int) -> n.Expression:
        shifted = n.Binary("shr", word, constant(16 * at, ir.U32), ir.U32)
        return n.Bitcast(cast(shifted, ir.U16), half)

    sums = [n.Binary("add", part_of(assumed, at), parts[at], half) for at in (0, 1)]
    low, high = (cast(n.Bitcast(one, ir.U16), ir.U32) for one in sums)
    upper = n.Binary("shl", high, constant(16, ir.U32), ir.U32)
    new = n.Binary("or", low, upper, ir.U32)
    cx.emit(
        n.While(
            n.TRUE,
            (
                n.Atomic("cas", own, (assumed, new), seen, cx.span),
                n.If(n.Binary("eq", seen, assumed, ir.BOOL), (n.Break(cx.span),), (), cx.span),
                n.Assign(assumed, seen, cx.span),
            ),
            (),
            cx.span,
        )
    )
    cx.note("emulated", "atomicAdd", f"on {type} by compare and swap", cx.span)
    halves = tuple(part_of(assumed, at) for at in (0, 1))
    return Rvalue(n.Construct(halves, ir_type(type), cx.span), type)


# --- loads, stores and copies --------------------------------------------------------------------


def _pointer(cx: Context, name: str, value: Value) -> PointerValue:
    pointer = pointer_of(cx, value)
    if pointer is None:
        raise cx.wrong(f"{name} takes a pointer, not {describe(value)}")
    return pointer


def _hinted_load(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__ldg", values, 1)
    place = follow(cx, _pointer(cx, "__ldg", values[0]), cx.span)
    return load(cx, place, cx.span)


def _hinted_store(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__stwb", values, 2)
    assign(cx, "=", follow(cx, _pointer(cx, "__stwb", values[0]), cx.span), values[1], cx.span)
    return VoidValue(VOID)


def _expect(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    return values[0]


def _assume(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    return values[0] if values and pointer_of(cx, values[0]) is not None else VoidValue(VOID)


def _memcpy(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "memcpy", values, 3)
    to, source = _pointer(cx, "memcpy", values[0]), _pointer(cx, "memcpy", values[1])
    size = folded(number_argument(cx, values[2], ir.I32, cx.span))
    unit = _copied_type(to, source, size)

    def copy(index: n.Expression) -> None:
        one = follow(cx, moved(cx, as_pointer_to(to, unit), index, cx.span), cx.span)
        other = follow(cx, moved(cx, as_pointer_to(source, unit), index, cx.span), cx.span)
        assign(cx, "=", one, load(cx, other, cx.span), cx.span)

    _repeat(cx, size, unit, copy)
    return to


def _copied_type(to: PointerValue, source: PointerValue, size: n.Expression) -> CppType:
    """The unit of a copy: words if both sides and the size are multiples of words, else bytes."""
    known = isinstance(size, n.Constant) and int(size.value) % 4 == 0
    if known and to.unit % 4 == 0 and source.unit % 4 == 0:
        return UNSIGNED
    if not isinstance(to.to, Void) and to.to == source.to:
        return to.to
    return ARITHMETIC["unsigned char"]


def _memset(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "memset", values, 3)
    to = _pointer(cx, "memset", values[0])
    byte = folded(number_argument(cx, values[1], ir.U32, cx.span))
    size = folded(number_argument(cx, values[2], ir.I32, cx.span))
    whole = isinstance(byte, n.Constant) and to.unit % 4 == 0
    unit: CppType = UNSIGNED if whole else ARITHMETIC["unsigned char"]
    if whole:
        assert isinstance(byte, n.Constant)
        value: n.Expression = constant((int(byte.value) & 255) * 0x01010101, ir.U32)
    else:
        value = cx.let(cast(byte, ir.U8))

    def clear(index: n.Expression) -> None:
        one = follow(cx, moved(cx, as_pointer_to(to, unit), index, cx.span), cx.span)
        assign(cx, "=", one, Rvalue(value, unit), cx.span)

    _repeat(cx, size, unit, clear)
    return to


def _repeat(cx: Context, size: n.Expression, unit: CppType, do: Any) -> None:
    step = constant(size_of(unit), ir.I32)
    count = folded(n.Binary("div", size, step, ir.I32))
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, cx.span)
    with cx.separate_block() as body:
        do(as_index(cx, variable))
    cx.emit(n.For(variable, ZERO, count, 1, tuple(body), span=cx.span))


def _is_constant_evaluated(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """Whether this is evaluated in a constant expression: so in each call of a function anew."""
    expect(cx, "__builtin_is_constant_evaluated", values, 0)
    if cx.isolated:
        raise NotPure
    cx.lowering.asked_constant = True
    evaluated = cx.lowering.constants + cx.lowering.maybe_constants > 0
    return Rvalue(n.Constant(evaluated, ir.BOOL, cx.span), BOOL)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(
        (f"{name}{scope}" for name in _OPERATIONS for scope in ("", "_block", "_system")), _atomic
    ),
    **dict.fromkeys(("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv"), _hinted_load),
    **dict.fromkeys(("__stwb", "__stcg", "__stcs", "__stwt"), _hinted_store),
    "__builtin_expect": _expect,
    "__builtin_is_constant_evaluated": _is_constant_evaluated,
    **dict.fromkeys(
        ("__builtin_assume", "__builtin_unreachable", "__assume", "__builtin_assume_aligned"),
        _assume,
    ),
    **dict.fromkeys(("memcpy", "memmove"), _memcpy),
    "memset": _memset,
}

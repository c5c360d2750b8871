"""What inline PTX and CUDA's pipelines do for tiles: copies to shared memory that go on beside the
thread, and matrices brought from there to the lanes that hold them.

Each is one statement of the IR, so a target that has the instruction prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.builtin_calls import Handler, number_argument
from treadle.cuda_cpp.lower.choices import for_each_choice
from treadle.cuda_cpp.lower.context import Context, NotPure
from treadle.cuda_cpp.lower.conversions import condition
from treadle.cuda_cpp.lower.objects import load, refuse_const, store
from treadle.cuda_cpp.lower.pointers import as_pointer_to, follow, pointer_of, stored_type
from treadle.cuda_cpp.lower.values import ChoiceLvalue, Lvalue, Rvalue, Value, VoidValue
from treadle.cuda_cpp.semantics.types import INT, UNSIGNED, VECTORS, VOID, CppType
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.matrices import FIRST
from treadle.ir.traverse import root_of, walk

_UNITS: dict[int, CppType] = {4: UNSIGNED, 8: VECTORS["uint2"], 16: VECTORS["uint4"]}
_WORDS: dict[int, CppType] = {1: UNSIGNED, 2: VECTORS["uint2"], 4: VECTORS["uint4"]}


def _copy_later(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_copy_later(to, from, size, given)`: of 4, 8 or 16 bytes, which are zeros if
    `given` is false."""
    if cx.isolated:
        raise NotPure
    to, source = pointer_of(cx, values[0]), pointer_of(cx, values[1])
    size = folded(number_argument(cx, values[2], ir.I32, cx.span))
    unit = _UNITS.get(int(size.value)) if isinstance(size, n.Constant) else None
    if to is None or source is None or unit is None:
        raise cx.error("a copy to shared memory has 4, 8 or 16 bytes, a constant")
    given = folded(condition(cx, values[3], cx.span))
    target = follow(cx, as_pointer_to(to, unit), cx.span)
    refuse_const(cx, target, cx.span)
    first = follow(cx, as_pointer_to(source, unit), cx.span)
    kept = given if isinstance(given, n.Constant) else cx.let(given)
    _for_each(
        cx, target, lambda place: _for_each(cx, first, lambda one: _copy(cx, place, one, kept))
    )
    cx.note("used", "cp.async", "", cx.span)
    return VoidValue(VOID)


def _for_each(cx: Context, value: Value, do: Callable[[Value], None]) -> None:
    """Do something for the place that a pointer with several targets points to."""
    if isinstance(value, ChoiceLvalue):
        for_each_choice(cx, value.tag, value.choices, lambda one: _for_each(cx, one, do), cx.span)
    else:
        do(value)


def _copy(cx: Context, target: Value, source: Value, given: n.Expression) -> None:
    value = load(cx, source, cx.span).expression
    if not (isinstance(given, n.Constant) and given.value):
        zero = n.Constant(0, ir.U32)
        type = value.type
        none = n.Construct((zero,) * type.count, type) if isinstance(type, ir.Vector) else zero
        value = n.Select(given, value, none, value.type, cx.span)
    place = target.place if isinstance(target, Lvalue) else None
    known = None
    if isinstance(place, n.Element):
        known = cx.lowering.memory_targets.get(place.memory)
    if known is None or known.space != "shared":
        store(cx, target, value, cx.span)
        return
    assert isinstance(place, n.Element)
    cx.emit(n.Assign(place, value, cx.span, later=True))


def _end_copies(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    if cx.isolated:
        raise NotPure
    cx.emit(n.Copies(None, cx.span))
    return VoidValue(VOID)


def _wait_copies(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_wait_copies(left)`: a number that is not known here waits for all groups."""
    if cx.isolated:
        raise NotPure
    left = folded(number_argument(cx, values[0], ir.I32, cx.span))
    cx.emit(n.Copies(int(left.value) if isinstance(left, n.Constant) else 0, cx.span))
    return VoidValue(VOID)


def _is_whole(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_is_whole(given, size)`: whether a copy has all of its bytes or none; true at once
    if the number can only be these two."""
    given, size = (folded(number_argument(cx, value, ir.I32, cx.span)) for value in values)
    if isinstance(size, n.Constant) and _can_be(cx, given) <= {0, int(size.value)}:
        return Rvalue(constant(1, ir.I32), INT)
    kept = cx.let(given)
    none = n.Binary("eq", kept, constant(0, ir.I32), ir.BOOL)
    whole = n.Binary("ge", kept, size, ir.BOOL)
    return Rvalue(n.Cast(n.Binary("logical_or", none, whole, ir.BOOL), ir.I32, cx.span), INT)


def _can_be(cx: Context, value: n.Expression) -> set[int]:
    """The values of a number that is chosen among constants; {-1} if they are not known."""
    while True:
        value = folded(value)
        match value:
            case n.Cast():
                value = value.operand
            case n.Constant():
                return {int(value.value)}
            case n.Select():
                return _can_be(cx, value.if_true) | _can_be(cx, value.if_false)
            case n.Variable():
                found = _definition(cx, value)
                if found is None:
                    return {-1}
                value = found
            case _:
                return {-1}


def _definition(cx: Context, variable: n.Variable) -> n.Expression | None:
    """The value that the current block has declared a variable with, if nothing assigns to it."""
    block = cx.blocks[-1]
    for at, statement in enumerate(block):
        if isinstance(statement, n.Declare) and statement.variable.name == variable.name:
            assigned = any(
                isinstance(one, n.Assign) and root_of(one.place) == variable
                for one in walk(tuple(block[at + 1 :]))
            )
            return None if assigned else statement.value
    return None


def _matrices(by: str) -> Handler:
    def build(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
        """`__treadle_matrix_rows(row, count)`: the words of `count` matrices of 8 x 8 numbers."""
        if cx.isolated:
            raise NotPure
        row = pointer_of(cx, values[0])
        count = folded(number_argument(cx, values[1], ir.I32, cx.span))
        assert row is not None
        assert isinstance(count, n.Constant)
        place = follow(cx, as_pointer_to(row, VECTORS["uint4"]), cx.span)
        if isinstance(place, Lvalue):
            words: n.Expression = load(cx, place, cx.span).expression
        else:
            words = _chosen_row(cx, place, int(count.value))
        type = _WORDS[int(count.value)]
        result = cx.variable("words", stored_type(cx, type, cx.span))
        cx.emit(n.Subgroup(by, (words,), result, None, cx.span))
        cx.note("used", "ldmatrix", "", cx.span)
        return Rvalue(result, type)

    return build


def _chosen_row(cx: Context, place: Value, count: int) -> n.Variable:
    """A row of one of several memories, of those lanes whose rows are asked for."""
    words = cx.variable("row", FIRST)
    wanted = n.Binary("lt", n.Builtin("lane"), constant(8 * count, ir.I32), ir.BOOL)
    with cx.separate_block() as body:
        _for_each(
            cx,
            place,
            lambda one: cx.emit(n.Assign(words, load(cx, one, cx.span).expression, cx.span)),
        )
    cx.emit(*body) if count == 4 else cx.emit(n.If(wanted, tuple(body), (), cx.span))
    return words


HANDLERS: dict[str, Handler] = {
    "__treadle_copy_later": _copy_later,
    "__treadle_end_copies": _end_copies,
    "__treadle_wait_copies": _wait_copies,
    "__treadle_is_whole": _is_whole,
    "__treadle_matrix_rows": _matrices("matrix_rows"),
    "__treadle_matrix_columns": _matrices("matrix_columns"),
}

"""What `TREADLE_CHECK=1` adds to operations whose result C++ leaves undefined: divisions by zero,
shifts beyond the width, accesses at addresses that are not aligned, and indices outside of their
own dimension."""

from __future__ import annotations

import math
from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, is_constant, minus, plus, times
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ChoiceLvalue,
    ItemTarget,
    Lvalue,
    MemoryTarget,
    PointerValue,
    Value,
)
from treadle.cuda_cpp.semantics.types import Arithmetic, ArrayOf, CppType
from treadle.ir import nodes as n
from treadle.ir import types as ir

_ZERO_DIVISOR = "an integer is divided by zero"


def checked_divisor(
    cx: Context, divisor: n.Expression, type: Arithmetic, span: Span
) -> n.Expression:
    """The divisor of integers, for which zero is reported."""
    if type.scalar.is_float or isinstance(divisor, n.Constant) or not _reports(cx, span):
        return divisor
    divisor = cx.let(divisor)
    is_there = n.Binary("ne", divisor, constant(0, type.scalar), ir.BOOL, span)
    cx.emit(n.Assert(is_there, _ZERO_DIVISOR, span=span, fault=True))
    return divisor


def checked_amount(
    cx: Context, amount: n.Expression, shifted: Arithmetic, span: Span
) -> n.Expression:
    """By how many bits an integer is shifted, of which too many and too few are reported."""
    type = amount.type
    if isinstance(amount, n.Constant) or not isinstance(type, ir.Scalar) or not _reports(cx, span):
        return amount
    bits = shifted.scalar.bits
    amount = cx.let(amount)
    fits: n.Expression = n.Binary("lt", amount, constant(bits, type), ir.BOOL, span)
    if type.is_signed:
        from_zero = n.Binary("ge", amount, constant(0, type), ir.BOOL, span)
        fits = n.Binary("logical_and", from_zero, fits, ir.BOOL, span)
    message = f"an integer of {bits} bits is shifted by {bits} or more, or by less than 0"
    cx.emit(n.Assert(fits, message, span=span, fault=True))
    return amount


def alignment_check(
    cx: Context, offset: n.Expression, unit: int, type: CppType, alignment: int, span: Span
) -> tuple[n.Check, ...]:
    """The check that an offset in units of some bytes is a multiple of what a type needs."""
    steps = alignment // unit
    scalar = offset.type
    if steps < 2 or not isinstance(scalar, ir.Scalar) or not _reports(cx, span):
        return ()
    rest = n.Binary("rem", offset, constant(steps, scalar), scalar)
    fits = n.Binary("eq", rest, constant(0, scalar), ir.BOOL)
    found = n.Select(fits, constant(0, ir.I32), constant(n.MISALIGNED, ir.I32), ir.I32)
    needs = f"{type}, which needs a multiple of {alignment}"
    return (n.Check(found, constant(1, ir.I32), of=needs),)


def counted_from_start(cx: Context, target: MemoryTarget, check: n.Check, size: int) -> n.Check:
    """The check of an element of `size` bytes in an array that begins within its buffer. Reports
    count from the array's beginning, and what lies before it is not the array's."""
    start = cx.lowering.starts.get(target.memory)
    if start is None or not cx.lowering.guarded:
        return check
    own = ir.size_of(target.element)
    common = math.gcd(own, size)
    first = times(start, own // common)
    if size > common and isinstance(first.type, ir.Scalar):  # that of the first whole element
        steps = size // common
        up = plus(first, constant(steps - 1, first.type))
        first = n.Binary("div", up, constant(steps, first.type), up.type)
    return n.Check(minus(check.index, first), minus(check.bound, first))


def with_index_check(
    cx: Context, base: Value, index: n.Expression, found: Value, span: Span
) -> Value:
    """An element of an array, accessed only where the index is in the array's own dimension: the
    memory has other rows behind it. An array of one element may stand for more."""
    if not isinstance(base, ArrayValue) or not _reports(cx, span) or _is_whole(base):
        return found
    length, scalar = base.type.length, index.type
    if not length or length < 2 or not isinstance(scalar, ir.Scalar):
        return found
    check = n.Check(index, constant(length, scalar), axis=len(base.checks))
    return _with_checks(found, (*base.checks, check))


def _is_whole(array: ArrayValue) -> bool:
    """Whether an array is a memory of its own, or a member: each access to it is checked anyway."""
    if array.checks or isinstance(array.type.element, ArrayOf) or len(array.first.targets) > 1:
        return False
    target = array.first.targets[0]
    size = target.size if isinstance(target, MemoryTarget) else None
    known = isinstance(size, n.Constant) and size.value == array.type.length
    return is_constant(array.first.offset, 0) and (known or isinstance(target, ItemTarget))


def _with_checks(value: Value, checks: tuple[n.Check, ...]) -> Value:
    match value:
        case ArrayValue():
            return replace(value, checks=checks)
        case ChoiceLvalue(choices=choices):
            return replace(
                value,
                choices=tuple(one if one is None else _with_checks(one, checks) for one in choices),
            )
        case Lvalue(place=n.Element() | n.Item() as place):
            return replace(value, place=replace(place, checks=(*checks, *place.checks)))
    return value


def _reports(cx: Context, span: Span) -> bool:
    """Whether what happens at a place is reported: in the user's files, where a kernel runs."""
    lowering = cx.lowering
    if not lowering.guarded or lowering.unevaluated or lowering.constants or lowering.folding:
        return False
    return span.file == lowering.file or not span.file.startswith("<")


def base_of(pointer: PointerValue) -> n.Expression | None:
    """The offset in bytes of the pointer from which a pointer was moved in the same expression."""
    base = pointer.base
    if base is None or not isinstance(base.type, ir.Scalar):
        return None
    return n.Binary("mul", base, constant(pointer.unit, base.type), base.type)

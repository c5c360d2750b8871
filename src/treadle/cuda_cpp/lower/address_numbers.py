"""Addresses as integers of 64 bits.

A memory has a number (`slots.py`), which is the upper half; the lower one is the offset in bytes.
The number of an array that a kernel is given comes from the launch, since another may be the same.
So sums, differences, alignment and order are those of addresses, and a number becomes a pointer
again by its halves. Which memories that may be is a fact: those whose addresses became numbers in
the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.context import Context, NotPure
from treadle.cuda_cpp.lower.pointers import address, in_steps_of, note_memory
from treadle.cuda_cpp.lower.slots import number_of
from treadle.cuda_cpp.lower.values import (
    Address,
    ItemTarget,
    Lvalue,
    MemoryTarget,
    NullTarget,
    ObjectTarget,
    PointerValue,
    Target,
)
from treadle.cuda_cpp.semantics.types import VOID, Arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as ir

_KEY = "addresses as numbers"
_HALF = 32


def address_as_number(cx: Context, pointer: PointerValue, type: Arithmetic, span: Span) -> Address:
    """A pointer as an integer."""
    pointer = _in_memories(cx, pointer, span)
    in_bytes = in_steps_of(cx, pointer, 1)
    assert in_bytes is not None
    scalar = type.scalar
    low = cast(in_bytes.offset, scalar, span)
    cx.note("emulated", "pointer as an integer", "the number of its memory, and an offset", span)
    if scalar.bits < 64:
        return Address(low, type, pointer=in_bytes, low=low)
    known = cx.lowering.facts.targets.setdefault(_KEY, [])
    for target in pointer.targets:
        if isinstance(target, MemoryTarget) and target not in known:
            known.append(target)
            cx.lowering.facts.changed = True
    number = cast(memory_number(cx, pointer, span), scalar, span)
    upper = folded(n.Binary("shl", number, constant(_HALF, scalar), scalar, span))
    whole = n.Binary("add", upper, low, scalar, span)
    if any(_may_be_null(one) for one in pointer.targets):
        exists = _exists(pointer, span)
        zero = constant(0, scalar)
        return Address(n.Select(exists, whole, zero, scalar), type, pointer=in_bytes, low=low)
    return Address(whole, type, pointer=in_bytes, low=low)


def _may_be_null(target: Target) -> bool:
    return isinstance(target, NullTarget) or (
        isinstance(target, MemoryTarget) and target.space == "global"
    )


def _exists(pointer: PointerValue, span: Span) -> n.Expression:
    """Whether a pointer is not null. An empty array passed to a kernel is a null pointer."""
    tests: list[n.Expression] = []
    for target in pointer.targets:
        if isinstance(target, NullTarget):
            tests.append(n.FALSE)
        elif isinstance(target, MemoryTarget) and target.space == "global" and target.size:
            assert isinstance(target.size.type, ir.Scalar)
            tests.append(n.Binary("gt", target.size, constant(0, target.size.type), ir.BOOL, span))
        else:
            tests.append(n.TRUE)
    found = tests[-1]
    for at in reversed(range(len(tests) - 1)):
        assert pointer.tag is not None
        here = n.Binary("eq", pointer.tag, constant(at, ir.I32), ir.BOOL, span)
        found = n.Select(here, tests[at], found, ir.BOOL)
    return found


def memory_number(cx: Context, pointer: PointerValue, span: Span) -> n.Expression:
    """The number of the memory that a pointer points into, 0 for null."""
    numbers = [number_of_target(cx, one) for one in pointer.targets]
    found = numbers[-1]
    for at in reversed(range(len(numbers) - 1)):
        assert pointer.tag is not None
        test = n.Binary("eq", pointer.tag, constant(at, ir.I32), ir.BOOL, span)
        found = n.Select(test, numbers[at], found, ir.U32)
    return found


def number_of_target(cx: Context, target: Target) -> n.Expression:
    """The number of a memory, 0 for null."""
    if not isinstance(target, MemoryTarget):
        return constant(0, ir.U32)
    if not is_argument(cx, target):
        return constant(number_of(cx, target.memory), ir.U32)
    numbers = cx.lowering.buffer_numbers
    if target.memory not in numbers:
        if cx.isolated:
            raise NotPure
        argument = cx.lowering.arrays[target.memory]
        name = cx.lowering.unique(f"{argument.lstrip(':')}.buffer")
        parameter = n.Parameter(name, ir.U32, ("buffer", argument), span=cx.span)
        cx.lowering.parameters[name] = parameter
        numbers[target.memory] = n.Variable(name, ir.U32, cx.span)
    return numbers[target.memory]


def is_argument(cx: Context, target: Target) -> bool:
    """Whether a target is an array that a kernel is given, with others: two may be one array, or
    parts of one."""
    arrays = cx.lowering.arrays
    return isinstance(target, MemoryTarget) and target.memory in arrays and len(arrays) > 1


def _in_memories(cx: Context, pointer: PointerValue, span: Span) -> PointerValue:
    """A pointer whose targets are memories; objects that have none get one."""
    first = pointer.targets[0]
    if len(pointer.targets) == 1 and isinstance(first, (ObjectTarget, ItemTarget)):
        found = address(cx, Lvalue(first.place, pointer.to), span)
        if not isinstance(found.targets[0], MemoryTarget):
            if note_memory(cx, first.place):
                null = (NullTarget(),)
                return PointerValue(null, constant(0, ir.I32), 1, pointer.to, const=pointer.const)
            raise cx.error("the address of this object is not known as a number", span)
        start, further = in_steps_of(cx, found, 1), in_steps_of(cx, pointer, 1)
        assert start is not None
        assert further is not None
        total = n.Binary("add", start.offset, cast(further.offset, ir.I32), ir.I32)
        return PointerValue(start.targets, total, 1, pointer.to, const=pointer.const)
    for target in pointer.targets:
        if isinstance(target, (ObjectTarget, ItemTarget)):
            note_memory(cx, target.place)
    return pointer


def pointer_from_number(
    cx: Context, value: n.Expression, type: Arithmetic, span: Span
) -> PointerValue:
    """A number that is an address as a pointer."""
    if cx.isolated:
        raise NotPure
    if type.scalar.bits < 64:
        raise cx.error(
            f"an address has 64 bits, and {type} has {type.scalar.bits}: use uintptr_t", span
        )
    targets: Sequence[Target] = cx.lowering.facts.targets.get(_KEY, ())
    if not targets:
        if not cx.lowering.facts.changed and not cx.lowering.unevaluated:
            raise cx.error(
                "a number becomes a pointer, but no address becomes a number in this kernel: pass "
                "the array to it",
                span,
            )
        return PointerValue((NullTarget(),), constant(0, ir.I32), 1, VOID)
    whole = cx.let(cast(value, ir.U64))
    offset = cx.let(n.Cast(n.Cast(whole, ir.U32), ir.I32))
    wide = n.Cast(n.Cast(offset, ir.I64), ir.U64)
    rest = n.Binary("sub", whole, wide, ir.U64)
    upper = n.Binary("shr", rest, constant(_HALF, ir.U64), ir.U64)
    number = cx.let(n.Cast(upper, ir.U32))
    tag: n.Expression = constant(0, ir.I32)
    for at, target in enumerate(targets, 1):
        assert isinstance(target, MemoryTarget)
        here = n.Binary("eq", number, number_of_target(cx, target), ir.BOOL)
        tag = n.Select(here, constant(at, ir.I32), tag, ir.I32)
    return PointerValue((NullTarget(), *targets), offset, 1, VOID, cx.let(tag))

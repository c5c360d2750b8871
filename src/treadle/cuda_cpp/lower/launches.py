"""Kernels that a kernel launches, which are queued behind it: `child<<<grid, block>>>(…)`.

The kernel writes a record of each launch (`source/library/launch.cuh`), and the host launches them
when it has ended. That is an order that CUDA allows, since a kernel cannot wait for what it
launches.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, minus
from treadle.cuda_cpp.lower.builtin_calls import extents
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert, number, rvalue
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.evaluation_order import arguments
from treadle.cuda_cpp.lower.heap import call_library
from treadle.cuda_cpp.lower.objects import numbers_of
from treadle.cuda_cpp.lower.overloads import resolve_overload
from treadle.cuda_cpp.lower.pointers import in_steps_of, pointer_of
from treadle.cuda_cpp.lower.template_arguments import spelled
from treadle.cuda_cpp.lower.values import (
    FunctionSet,
    MemoryTarget,
    NullTarget,
    PointerValue,
    Rvalue,
    Value,
    VoidValue,
    describe,
)
from treadle.cuda_cpp.program import QueuedKernel
from treadle.cuda_cpp.semantics.types import (
    INT,
    UNSIGNED,
    VOID,
    CppType,
    Pointer,
    holds_array,
    holds_pointer,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_MOST_ARGUMENTS = 28  # numbers and pointers


def launch(cx: Context, node: tree.Call) -> Value:
    """`kernel<<<grid, block, shared_bytes, stream>>>(…)`"""
    span = node.span
    function = lower(cx, node.function)
    if not isinstance(function, FunctionSet) or function.builtin:
        raise cx.wrong(f"{describe(function)} is not a kernel, so it cannot be launched", span)
    if not 2 <= len(node.configuration) <= 4:
        raise cx.wrong("a launch has a grid and a block: kernel<<<grid, block>>>(…)", span)
    grid, block = (extents(cx, [lower(cx, one)], span) for one in node.configuration[:2])
    shared: n.Expression = constant(0, ir.U32)
    if len(node.configuration) > 2:
        shared = cast(number(cx, lower(cx, node.configuration[2]), span)[0], ir.U32)
    values = arguments(cx, node.arguments)
    chosen = resolve_overload(
        cx, function.name, function.overloads, values, function.arguments, span
    )
    declaration = chosen.declaration
    if "global" not in declaration.specifiers:
        raise cx.wrong(f"{function.name} is not a kernel (__global__), so it is called", span)
    words: list[tuple[n.Expression, n.Expression]] = []
    types: list[ir.Type | None] = []
    for value, type in zip(values, chosen.types, strict=True):
        types.append(_argument(cx, words, convert(cx, value, type, span), type, span))
    if len(words) > _MOST_ARGUMENTS:
        raise cx.error(
            f"a launch from a kernel passes at most {_MOST_ARGUMENTS} numbers and pointers", span
        )
    queued = QueuedKernel(
        chosen.overload.scope.qualified(declaration.name.text),
        tuple(map(spelled, chosen.arguments)),
        tuple(types),
    )
    known = cx.lowering.queued
    if queued not in known:
        known.append(queued)
    kernel = Rvalue(constant(known.index(queued), ir.U32), UNSIGNED)
    at = _call(cx, "__treadle_enqueue", [kernel, grid, block, Rvalue(shared, UNSIGNED)], span)
    for low, high in words:
        given = [Rvalue(at, INT), Rvalue(low, UNSIGNED), Rvalue(high, UNSIGNED)]
        at = _call(cx, "__treadle_enqueue_word", given, span)
    cx.note("emulated", f"{function.name}<<<…>>>", "queued behind the kernel", span)
    return VoidValue(VOID)


def _call(cx: Context, name: str, values: Sequence[Value], span: Span) -> n.Expression:
    found = rvalue(cx, call_library(cx, name, values, span), span).expression
    return cx.let(found)


def _argument(
    cx: Context,
    words: list[tuple[n.Expression, n.Expression]],
    value: Value,
    type: CppType,
    span: Span,
) -> ir.Type | None:
    """Add the words of an argument. Its type, None for a pointer."""
    zero = constant(0, ir.U32)
    if isinstance(type, Pointer):
        pointer = pointer_of(cx, value)
        assert pointer is not None
        words.append(_of_pointer(cx, pointer, span))
        return None
    if holds_pointer(type) or holds_array(type):
        raise cx.error(
            "a launch from a kernel passes numbers, vectors, plain structs and pointers to them, "
            f"not a {type}",
            span,
        )
    stored = ir_type(type)
    whole = cx.let(rvalue(cx, value, span).expression)
    for one in numbers_of(whole, span):
        scalar = one.type
        assert isinstance(scalar, ir.Scalar)
        if scalar.bits == 64:
            wide = cx.let(n.Bitcast(one, ir.U64) if scalar != ir.U64 else one)
            high = n.Binary("shr", wide, constant(32, ir.U64), ir.U64)
            words.append((cast(wide, ir.U32), cast(high, ir.U32)))
        elif scalar.is_float:
            single = cast(one, ir.F32)
            words.append((n.Bitcast(single, ir.U32), zero))
        else:
            words.append((cast(one, ir.U32), zero))
    return stored


def _of_pointer(
    cx: Context, pointer: PointerValue, span: Span
) -> tuple[n.Expression, n.Expression]:
    """The offset in bytes in an argument or variable, and its number (0 for null)."""
    in_bytes = in_steps_of(cx, pointer, 1)
    assert in_bytes is not None
    numbers: list[int] = []
    starts: list[n.Expression] = []
    for target in pointer.targets:
        if isinstance(target, NullTarget):
            numbers.append(0)
            starts.append(constant(0, ir.I32))
            continue
        label = target.memory if isinstance(target, MemoryTarget) else ""
        known = cx.lowering.arrays
        if label not in known:
            raise cx.error(
                "a kernel that is launched from a kernel gets pointers to arguments of that kernel "
                "or to variables of the file: other memory ends with the kernel",
                span,
            )
        numbers.append(list(known).index(label) + 1)
        start = cx.lowering.starts.get(label)
        size = ir.size_of(target.element) if isinstance(target, MemoryTarget) else 1
        zero: n.Expression = constant(0, ir.I32)
        if start is not None:
            zero = n.Binary("mul", cast(start, ir.I32), constant(size, ir.I32), ir.I32)
        starts.append(zero)
    number_, start_ = constant(numbers[-1], ir.U32), starts[-1]
    which: n.Expression = number_
    for at in reversed(range(len(numbers) - 1)):
        assert pointer.tag is not None
        test = n.Binary("eq", pointer.tag, constant(at, ir.I32), ir.BOOL)
        which = n.Select(test, constant(numbers[at], ir.U32), which, ir.U32)
        start_ = n.Select(test, starts[at], start_, ir.I32)
    return cast(minus(cast(in_bytes.offset, ir.I32), start_), ir.U32), which

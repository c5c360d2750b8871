"""Calls of built-in functions without side effects: overload resolution in the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.builtins.doubles import (
    OUTPUTS_OF_PAIR,
    SEE_BITS,
    TO_LAST_BIT,
    as_floats,
    as_pairs,
    has_double,
)
from treadle.cuda_cpp.builtins.outputs import OutputOverload
from treadle.cuda_cpp.builtins.overload import Overload
from treadle.cuda_cpp.builtins.tables import FLOATING, FUNCTIONS, OUTPUTS
from treadle.cuda_cpp.lower.arithmetic import cast, constant
from treadle.cuda_cpp.lower.assignment import (
    assign,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import common_type, convert, number, rvalue, underlying
from treadle.cuda_cpp.lower.names import resolve
from treadle.cuda_cpp.lower.pointers import follow, pointer_of
from treadle.cuda_cpp.lower.values import Rvalue, Value, VoidValue, describe
from treadle.cuda_cpp.semantics.types import (
    DIM3,
    OF_SCALAR,
    UINT3,
    VECTORS,
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    VectorType,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_OF_VECTOR: dict[ir.Vector, CppType] = {
    ir.Vector(type.element.scalar, type.count): type
    for name, type in VECTORS.items()
    if type.count > 1 and not name.startswith(("long2", "long3", "long4", "ulong2", "ulong3"))
}


def cpp_type(type: ir.Type) -> CppType:
    """The C++ type of a parameter or result in a table."""
    if isinstance(type, ir.Vector):
        return _OF_VECTOR[type]
    assert isinstance(type, ir.Scalar)
    return OF_SCALAR[type]


def call_function(
    cx: Context, name: str, values: Sequence[Value], explicit: Sequence[Any] | None, span: Span
) -> Value:
    """A call of a function of the tables."""
    known = _known(cx, name, span)
    overloads = [one for one in known if len(one.parameters) == len(values)]
    if not overloads:
        counts = sorted({len(one.parameters) for one in known})
        wanted = " or ".join(map(str, counts))
        plural = "argument" if wanted == "1" else "arguments"
        # C++'s library has further overloads of these, for lists and with comparisons.
        numbers = all(isinstance(getattr(one, "type", None), Arithmetic) for one in values)
        fault = cx.error if name in ("max", "min") and not numbers else cx.wrong
        raise fault(f"{name} takes {wanted} {plural}, not {len(values)}", span)
    read = [_as_value(cx, value, span) for value in values]
    if explicit:
        read = _as_named(cx, read, explicit, span)
    overload = _choose(cx, name, overloads, read, span)
    operands = [
        _operand(cx, value, type, span)
        for value, type in zip(read, overload.parameters, strict=True)
    ]
    outer, cx.span = cx.span, span
    try:
        made = overload.build(cx, *operands)
    finally:
        cx.span = outer
    if overload.note:
        cx.note("emulated", name, overload.note, span)
    else:
        cx.note("used", name, "", span)
    result = _wanted_result(cx, name, overload, read)
    return Rvalue(made, result)


def _known(cx: Context, name: str, span: Span) -> Sequence[Overload]:
    """The overloads of a function of the tables."""
    if cx.lowering.types.double_is_pair:
        if name in TO_LAST_BIT:
            raise cx.error(
                f"{name} rounds to the last bit of a double, which is a pair of floats here "
                f'(double="pair"): cast the integer, or use {name[:-2]}rn',
                span,
            )
        return as_pairs(name, FUNCTIONS)
    if not cx.lowering.types.double_is_float:
        return FUNCTIONS.get(name, ())
    if name in SEE_BITS:
        raise cx.error(
            f'{name} has the 64 bits of a double, which is a float here (double="float"): write '
            "it for float (__float_as_int), or use atomicAdd, which adds doubles",
            span,
        )
    return as_floats(name, FUNCTIONS)


def _wanted_result(cx: Context, name: str, overload: Overload, read: Sequence[Rvalue]) -> CppType:
    """The C++ type of a result: if several have one IR type, that of the arguments."""
    given = [value.type for value in read if isinstance(value.type, Arithmetic)]
    alike = [type for type in given if type.scalar == overload.result]
    types = cx.lowering.types
    if types.double_is_float and overload.result == types.double.scalar:
        if not any(map(has_double, FUNCTIONS.get(name, ()))):
            return cpp_type(overload.result)
        if not alike:  # an integer counts as a double
            return types.double
    return max(alike, key=lambda type: type.rank) if alike else cpp_type(overload.result)


def _as_value(cx: Context, value: Value, span: Span) -> Rvalue:
    if isinstance(getattr(value, "type", None), ClassType):
        value = cx.rules.call_conversion(cx, value, None, False, span) or value
        type = getattr(value, "type", None)
        if isinstance(type, ClassType) and type != DIM3:
            raise cx.unfit(f"a number is expected here, not {describe(value)}", value, span)
    return rvalue(cx, value, span)


def _as_named(
    cx: Context, read: Sequence[Rvalue], explicit: Sequence[Any], span: Span
) -> list[Rvalue]:
    """`max<float>(a, b)`"""
    written = explicit[0]
    if isinstance(written, tree.Name):
        written = tree.NamedType(written, written.span)
    type = resolve(cx, written)
    return [rvalue(cx, convert(cx, value, type, span), span) for value in read]


def _choose(
    cx: Context, name: str, overloads: Sequence[Overload], read: Sequence[Rvalue], span: Span
) -> Overload:
    if len(overloads) == 1:
        return overloads[0]
    given = [_number_type(value.type) for value in read]
    for one in overloads:
        if all(
            ir_type(value.type) == type for value, type in zip(read, one.parameters, strict=True)
        ):
            return one
    numbers = [type for type in given if type is not None]
    if len(numbers) == len(given):
        meeting = numbers[0]
        for type in numbers[1:]:
            meeting = common_type(meeting, type)
        if name in FLOATING and not meeting.scalar.is_float:
            meeting = cx.lowering.types.double
        best = _by_meeting(overloads, meeting.scalar)
        if best is not None:
            return best
    spelled = ", ".join(str(value.type) for value in read)
    raise cx.error(f"no {name} takes ({spelled})", span)


def _number_type(type: CppType) -> Arithmetic | None:
    return underlying(type)


def _by_meeting(overloads: Sequence[Overload], meeting: ir.Scalar) -> Overload | None:
    """The overload for the common type of the arguments, or the narrowest that holds it."""
    ranked = []
    for place, one in enumerate(overloads):
        first = one.parameters[0]
        if not isinstance(first, ir.Scalar):
            continue
        if first == meeting:
            return one
        same_kind = first.is_float == meeting.is_float
        loses = first.is_float < meeting.is_float or (same_kind and first.bits < meeting.bits)
        ranked.append((loses, not same_kind, first.is_signed != meeting.is_signed, place, one))
    return min(ranked, key=lambda entry: entry[:4])[-1] if ranked else None


def _operand(cx: Context, value: Rvalue, type: ir.Scalar | ir.Vector, span: Span) -> n.Expression:
    if isinstance(type, ir.Vector):
        if ir_type(value.type) != type:
            raise cx.wrong(f"{cpp_type(type)} is expected here, not {describe(value)}", span)
        return value.expression
    number = underlying(value.type)
    if number is None:
        raise cx.wrong(f"a number is expected here, not {describe(value)}", span)
    return cast(value.expression, type, span)


# --- results through pointers --------------------------------------------------------------------


def call_with_outputs(cx: Context, name: str, values: Sequence[Value], span: Span) -> Value:
    """sincosf(x, &sine, &cosine) and its like."""
    overloads = OUTPUTS[name]
    if cx.lowering.types.double_is_float:
        overloads = tuple(one for one in overloads if not has_double(one))
    elif cx.lowering.types.double_is_pair and name in OUTPUTS_OF_PAIR:
        overloads = (overloads[0], OUTPUTS_OF_PAIR[name])
    arity = len(overloads[0].parameters)
    read = [rvalue(cx, value, span) for value in values[:arity]]
    overload = _choose_outputs(cx, name, overloads, read, span)
    operands = [
        _operand(cx, value, type, span)
        for value, type in zip(read, overload.parameters, strict=True)
    ]
    places = []
    for value in values[arity:]:
        pointer = pointer_of(cx, value)
        places.append(value if pointer is None else follow(cx, pointer, span))
    result, *outputs = overload.build(cx, *operands)
    kept = None if result is None else cx.let(result)
    made = [cx.let(one) for one in outputs if one is not None]
    for place, output, type in zip(places, made, overload.outputs, strict=True):
        assign(cx, "=", place, Rvalue(output, OF_SCALAR[type]), span)
    cx.note("emulated" if overload.note else "used", name, overload.note, span)
    if kept is None or overload.result is None:
        return VoidValue(VOID)
    return Rvalue(kept, OF_SCALAR[overload.result])


def _choose_outputs(
    cx: Context,
    name: str,
    overloads: Sequence[OutputOverload],
    read: Sequence[Rvalue],
    span: Span,
) -> OutputOverload:
    for one in overloads:
        if all(ir_type(v.type) == type for v, type in zip(read, one.parameters, strict=True)):
            return one
    return overloads[-1] if len(overloads) > 1 else overloads[0]


# --- CUDA's vectors ------------------------------------------------------------------------------


def extents(cx: Context, values: Sequence[Value], span: Span) -> Value:
    if len(values) == 1 and getattr(values[0], "type", None) in (DIM3, UINT3):
        return _of_extents(cx, values[0], DIM3, span)
    if len(values) > 3:
        raise cx.wrong(f"dim3 takes up to 3 extents, not {len(values)}", span)
    parts = [
        rvalue(cx, convert(cx, value, DIM3.fields[0].type, span), span).expression
        for value in values
    ]
    parts += [constant(1, ir.U32)] * (3 - len(parts))
    return Rvalue(n.Construct(tuple(parts), ir_type(DIM3), span), DIM3)


def _of_extents(cx: Context, value: Value, type: CppType, span: Span) -> Value:
    """A dim3 converted to a uint3, or the reverse."""
    whole = cx.let(rvalue(cx, value, span).expression)
    parts = tuple(n.Extract(whole, axis, ir.U32, span) for axis in "xyz")
    return Rvalue(n.Construct(parts, ir_type(type), span), type)


def vector(cx: Context, type: VectorType, values: Sequence[Value], span: Span) -> Value:
    """One of CUDA's vectors from its components (or a copy of one)."""
    if len(values) == 1 and getattr(values[0], "type", None) == type:
        return rvalue(cx, values[0], span)
    if len(values) == 1 and type == UINT3 and getattr(values[0], "type", None) == DIM3:
        return _of_extents(cx, values[0], type, span)
    if len(values) not in (0, type.count):
        raise cx.wrong(f"{type} takes {type.count} components, not {len(values)}", span)
    parts = [
        rvalue(cx, convert(cx, value, type.element, span), span).expression for value in values
    ] or [constant(0, type.element.scalar, span)] * type.count
    return Rvalue(n.Construct(tuple(parts), ir_type(type), span), type)


# A built-in function with side effects, or one without a table: (context, arguments, call).
Handler = Callable[[Context, Sequence[Value], tree.Call], Value]


def number_argument(cx: Context, value: Value, type: ir.Scalar, span: Span) -> n.Expression:
    """An argument as a number of the IR."""
    expression, _ = number(cx, value, span)
    return cast(expression, type, span)


def expect(cx: Context, name: str, values: Sequence[Value], *counts: int) -> None:
    """CompileError unless a call has one of these numbers of arguments."""
    if len(values) not in counts:
        wanted = " or ".join(map(str, counts))
        plural = "argument" if wanted == "1" else "arguments"
        raise cx.wrong(f"{name} takes {wanted} {plural}, not {len(values)}")

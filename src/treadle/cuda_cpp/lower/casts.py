"""Casts: the four of C++, and those of C, for the types that kernels have."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden_base
from treadle.cuda_cpp.lower.address_numbers import (
    address_as_number,
    pointer_from_number,
)
from treadle.cuda_cpp.lower.arithmetic import cast
from treadle.cuda_cpp.lower.base_objects import as_base, base_pointer, derived_pointer
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import OBJECTS, condition, convert, number, rvalue
from treadle.cuda_cpp.lower.pointers import (
    ZERO,
    address,
    as_pointer_to,
    demand_address,
    follow,
    pointer_of,
    unit_of,
    whole_place,
)
from treadle.cuda_cpp.lower.values import (
    Address,
    ArrayValue,
    BitFieldLvalue,
    BitsLvalue,
    ChoiceLvalue,
    Lvalue,
    Null,
    NullTarget,
    ObjectAddress,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    SplitStruct,
    Value,
    as_const,
    describe,
    with_category,
)
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    DOUBLES,
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    Pointer,
    Reference,
    Void,
    decay,
    innermost,
    ir_type,
)
from treadle.ir import types as ir


def explicit_cast(cx: Context, value: Value, type: CppType, style: str, span: Span) -> Value:
    """`(type)value`, static_cast, reinterpret_cast, const_cast."""
    if style == "static_cast":
        refuse_hidden_base(cx, value, type, span)
    if isinstance(type, Void):
        return Rvalue(ZERO, VOID)
    if isinstance(type, Reference):
        return _cast_reference(cx, value, type, style, span)
    given: CppType = decay(getattr(value, "type", VOID))
    if isinstance(type, Pointer):
        return _cast_to_pointer(cx, value, type, style, span)
    pointer = pointer_of(cx, value)
    if pointer is not None and isinstance(type, Arithmetic):
        if type == BOOL:
            return Rvalue(condition(cx, value, span), BOOL)
        return address_as_number(cx, pointer, type, span)
    numbers = isinstance(type, Arithmetic) and isinstance(given, Arithmetic) and given != type
    if style == "reinterpret_cast" and numbers:
        raise cx.wrong(
            f"reinterpret_cast does not convert {describe(value)} to {type}: use static_cast for "
            "its value, or __float_as_int and its like for its bits",
            span,
        )
    if isinstance(type, EnumType) or (isinstance(given, EnumType) and isinstance(type, Arithmetic)):
        read = rvalue(cx, value, span)
        scalar = ir_type(type)
        if not isinstance(scalar, ir.Scalar) or not isinstance(read.expression.type, ir.Scalar):
            raise cx.unfit(f"{describe(value)} cannot be cast to {type}", value, span)
        return Rvalue(cast(read.expression, scalar, span), type)
    return convert(cx, value, type, span)


def _cast_reference(cx: Context, value: Value, type: Reference, style: str, span: Span) -> Value:
    """`reinterpret_cast<int&>(x)`: the same bytes as another type; or a cast to a derived class."""
    given: CppType = getattr(value, "type", VOID)
    if given != type.to and isinstance(given, ClassType) and style in ("c", "static_cast"):
        value = cx.rules.call_conversion(cx, value, type.to, True, span) or value
        given = getattr(value, "type", VOID)
    if isinstance(value, SplitStruct) and value.whole is not None and derives(type.to, given):
        value = as_base(cx, replace(value.whole, const=value.const), type.to, span)
        given = value.type  # type: ignore[union-attr]
    in_parts = isinstance(value, SplitStruct) and derives(given, type.to)
    if given != type.to and not in_parts and not isinstance(value, (*OBJECTS, ArrayValue)):
        raise cx.unfit(f"{describe(value)} cannot be cast to {type}", value, span)
    if given != type.to and style != "reinterpret_cast" and derives(given, type.to):
        value = as_base(cx, value, type.to, span)
    elif given != type.to:
        _refuse_other_size(cx, given, type.to, span)
        pointer = _whole_address(cx, value, type.to, style, span)
        if pointer is None:  # a base, cast to the object that contains it
            assert isinstance(value, Lvalue)
            value = replace(value, place=whole_place(value.place), type=type.to)
        else:
            value = follow(cx, pointer, span)
    if type.rvalue:
        value = with_category(value, "xvalue")
    return as_const(value) if type.const else without_const(value)


def _whole_address(
    cx: Context, value: Value, to: CppType, style: str, span: Span
) -> PointerValue | None:
    """The address of the derived object of type `to` that a reference is cast to; None if that is
    the object whose base the reference was bound to."""
    given: CppType = getattr(value, "type", VOID)
    if style == "reinterpret_cast" or not isinstance(to, ClassType) or not derives(to, given):
        return as_pointer_to(address(cx, value, span), to)
    if isinstance(value, Lvalue) and whole_place(value.place).type == ir_type(to):
        return None
    return derived_pointer(cx, address(cx, value, span), to)


def without_const(value: Value) -> Value:
    """The object without const."""
    match value:
        case Lvalue() | BitsLvalue() | BitFieldLvalue() | ScatteredLvalue():
            return replace(value, const=False)
        case ArrayValue(first=first):
            return replace(value, first=replace(first, const=False))
        case SplitStruct():
            return replace(value, const=False)
        case ChoiceLvalue(choices=choices):
            parts = tuple(one if one is None else without_const(one) for one in choices)
            return replace(value, choices=parts)
    return value


def _refuse_static_cast(
    cx: Context, value: Value, pointer: PointerValue | None, type: Pointer, span: Span
) -> None:
    """CompileError for a static_cast to a pointer that only a reinterpret_cast does."""
    given = decay(getattr(value, "type", VOID))
    related = pointer is not None and (
        pointer.to == type.to
        or isinstance(pointer.to, FunctionOf)
        or VOID in (pointer.to, type.to)
        or derives(pointer.to, type.to)
        or derives(type.to, pointer.to)
    )
    if isinstance(given, Arithmetic) or (isinstance(given, Pointer) and pointer and not related):
        raise cx.wrong(
            f"static_cast does not convert {describe(value)} to {type}: use reinterpret_cast", span
        )


def _cast_to_pointer(cx: Context, value: Value, type: Pointer, style: str, span: Span) -> Value:
    if isinstance(value, Null) or (isinstance(value, Rvalue) and value.literal_zero):
        return PointerValue((NullTarget(),), ZERO, unit_of(type.to), type.to)
    if isinstance(value, ObjectAddress) and isinstance(type.to, Pointer):
        pointed = value.object
        if isinstance(pointed, (PointerVariable, ParameterPointer)):
            return ObjectAddress(replace(pointed, to=type.to.to))
    pointer = value.pointer if isinstance(value, Address) else pointer_of(cx, value)
    if style == "static_cast":
        _refuse_static_cast(cx, value, pointer, type, span)
    if pointer is None and isinstance(getattr(value, "type", None), (Arithmetic, EnumType)):
        read, type_ = number(cx, value, span)
        if type_.scalar.is_integer:
            pointer = pointer_from_number(cx, read, type_, span)
    if pointer is None:
        demand_address(cx, value)
        raise cx.error(
            f"{describe(value)} cannot become a pointer",
            span,
        )
    _refuse_other_size(cx, pointer.to, type.to, span)
    if style != "reinterpret_cast" and isinstance(type.to, ClassType):
        if derives(pointer.to, type.to):
            pointer = base_pointer(cx, pointer, type.to)
        elif derives(type.to, pointer.to):
            pointer = derived_pointer(cx, pointer, type.to)
    return replace(as_pointer_to(pointer, type.to), const=type.const)


def _refuse_other_size(cx: Context, given: CppType, to: CppType, span: Span) -> None:
    """CompileError for a cast between doubles that have the 4 bytes of a float here, and numbers of
    the 8 bytes of a double: it would join two doubles in one number."""
    if not cx.lowering.types.double_is_float:
        return
    one, other = innermost(given), innermost(to)
    for double, bits in ((one, other), (other, one)):
        if (
            isinstance(double, Arithmetic)
            and isinstance(bits, Arithmetic)
            and double.name in DOUBLES
            and bits.scalar.bits == 64
        ):
            raise cx.error(
                f'a double has 4 bytes here (double="float"), and {bits} has 8, so this cast would '
                "see two doubles as one number: use unsigned int, or atomicAdd, which adds doubles",
                span,
            )

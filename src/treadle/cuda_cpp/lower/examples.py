"""Examples of values of a type, with which functions are checked (`checking.py`)."""

from __future__ import annotations

from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.assignment import (
    assign_pointer,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.pointers import ZERO, unit_of
from treadle.cuda_cpp.lower.storage import (
    array_memory,
    declare_pointer,
    pointer_items,
    uninitialized,
)
from treadle.cuda_cpp.lower.values import (
    MemoryTarget,
    NullTarget,
    PointerValue,
    Rvalue,
    VoidValue,
    as_const,
    with_category,
)
from treadle.cuda_cpp.semantics.types import (
    IMAGE,
    ArrayOf,
    ClassType,
    CppType,
    FunctionOf,
    NoLayout,
    Pointer,
    Reference,
    Void,
    holds_array,
    holds_pointer,
    innermost,
    ir_type,
)
from treadle.ir import types as ir


def example_pointer(cx: Context, name: str, type: Pointer, space: str = "global") -> PointerValue:
    """A pointer to memory of its own."""
    inner = innermost(type.to)
    if isinstance(inner, FunctionOf) or inner == IMAGE:
        return PointerValue((NullTarget(),), ZERO, 1, type.to, const=type.const)
    try:
        element = ir.U8 if isinstance(inner, Void) else ir_type(inner)
    except NoLayout:
        return PointerValue((NullTarget(),), ZERO, unit_of(type.to), type.to, const=type.const)
    target = MemoryTarget(cx.lowering.unique(f"{name}.example"), space, element)
    cx.lowering.memory_targets[target.memory] = target
    return PointerValue((target,), ZERO, unit_of(type.to), type.to, const=type.const)


def example_object(cx: Context, name: str, type: CppType, span: Span, key: Any = None) -> Any:
    """An object of a type, such as a parameter."""
    key = key or (cx.path, cx.lowering.unique(name))
    match type:
        case Reference(to, const):
            made = example_object(cx, name, to, span, key)
            return as_const(made) if const else made
        case Pointer():
            variable = declare_pointer(cx, name, type, key, span)
            assign_pointer(cx, variable, example_pointer(cx, name, type), span)
            return variable
        case ArrayOf():
            if holds_pointer(type):
                return pointer_items(cx, name, type, key, None, span)
            return array_memory(cx, name, type, "local", span)
    return uninitialized(cx, name, type, key, span)


def example_result(cx: Context, type: CppType, span: Span) -> Any:
    """The value of a call."""
    if isinstance(type, Void):
        return VoidValue(type)
    if isinstance(type, Reference):
        made = example_object(cx, "result", type, span)
        return with_category(made, "xvalue") if type.rvalue else made
    if isinstance(type, Pointer):
        return example_pointer(cx, "result", type)
    if isinstance(type, ClassType) and (holds_pointer(type) or holds_array(type)):
        return with_category(example_object(cx, "result", type, span), "prvalue")
    return Rvalue(cx.variable("result", ir_type(type), span), type)

"""Objects in parts by value: copies of what a later statement may change.

A parameter by value that the function does not assign to, and a result, are copies in C++. Most
parts of such an object cannot change: those that are the launch's parameters are used as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import rvalue
from treadle.cuda_cpp.lower.evaluation_order import with_fixed_place
from treadle.cuda_cpp.lower.pointers import pointer_of
from treadle.cuda_cpp.lower.storage import declare_object
from treadle.cuda_cpp.lower.values import Lvalue, PointerVariable, SplitArray, SplitStruct, Value
from treadle.cuda_cpp.semantics.types import CppType, Reference, all_fields, holds_array
from treadle.ir import nodes as n


def fixed_copy(cx: Context, value: SplitStruct, key: Any, span: Span) -> SplitStruct:
    """A copy of an object in parts, which is not assigned to."""
    parts = {
        one.name: _part(cx, value.fields[one.name], one.type, (key, one.name), span)
        for one in all_fields(value.type)
    }
    return replace(value, fields=parts, key=key, whole=None)


def _part(cx: Context, value: Any, type: CppType, key: Any, span: Span) -> Value | None:
    if value is None or isinstance(type, Reference):  # what it refers to is not copied
        return None if value is None else with_fixed_place(cx, value, span)
    match value:
        case SplitStruct():
            return fixed_copy(cx, value, key, span)
        case SplitArray(items=items):
            inner = value.type.element
            parts = (_part(cx, one, inner, (key, at), span) for at, one in enumerate(items))
            return replace(value, items=tuple(parts), key=key)
        case PointerVariable():
            pointer = pointer_of(cx, value)
            assert pointer is not None
            return with_fixed_place(cx, pointer, span)
        case Lvalue(place=n.Variable(name=name)) if name in cx.lowering.parameter_keys:
            return value
    if holds_array(type):
        return declare_object(cx, "copy", type, key, value, span)  # type: ignore[no-any-return]
    if isinstance(value, Lvalue):
        return Lvalue(cx.let_as("copy", rvalue(cx, value, span).expression, span), type)
    return with_fixed_place(cx, value, span)

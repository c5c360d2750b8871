"""Casts that C++ forbids: by const_cast to another type, and away from const by others."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.pointers import pointer_of
from treadle.cuda_cpp.lower.values import Value, describe
from treadle.cuda_cpp.semantics.types import CppType, Pointer, Reference


def check_cast(cx: Context, value: Value, type: CppType, style: str, span: Span) -> None:
    """CompileError for a cast of this style that C++ forbids whatever the value is. Types of
    templates may lack const, which is not part of what is deduced."""
    if cx.is_in_template() or cx.is_in_instance():
        return
    if style == "const_cast" and not isinstance(type, (Pointer, Reference)):
        raise cx.wrong(
            f"const_cast is for pointers and references, not for {type}: use static_cast", span
        )
    pointer = pointer_of(cx, value) if isinstance(type, Pointer) else None
    if pointer is None or not isinstance(type, Pointer):
        return
    if style == "const_cast" and pointer.to != type.to and str(pointer.to) != str(type.to):
        raise cx.wrong(
            f"const_cast does not convert {describe(value)} to {type}: use reinterpret_cast for "
            "another type",
            span,
        )
    if style in ("static_cast", "reinterpret_cast") and pointer.const and not type.const:
        raise cx.wrong(
            f"{style} to {type} drops the const of {describe(value)}: cast to const {type}, or use "
            "const_cast",
            span,
        )

"""Copies and ends of objects whose classes define them: copy constructors and destructors."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, minus
from treadle.cuda_cpp.lower.assignment import (
    put,
)
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.constructors import run_chosen
from treadle.cuda_cpp.lower.context import Context, Returns
from treadle.cuda_cpp.lower.conversions import is_lvalue
from treadle.cuda_cpp.lower.hierarchy import set_table
from treadle.cuda_cpp.lower.inlining import run_body
from treadle.cuda_cpp.lower.lifetimes import take
from treadle.cuda_cpp.lower.objects import part_of, subscript
from treadle.cuda_cpp.lower.overloads import resolve_overload
from treadle.cuda_cpp.lower.recursion import call_recursive, calls_itself
from treadle.cuda_cpp.lower.special_members import (
    TABLE,
    copy_constructors,
    destructor_of,
    lack_of_copy,
    lifetime_of,
    moves_members,
)
from treadle.cuda_cpp.lower.usable import refuse_unusable
from treadle.cuda_cpp.lower.values import (
    Candidate,
    Category,
    SplitStruct,
    Value,
    is_prvalue,
    with_category,
)
from treadle.cuda_cpp.semantics.scopes import Scope
from treadle.cuda_cpp.semantics.types import VOID, ArrayOf, ClassType, CppType, Reference
from treadle.ir import nodes as n
from treadle.ir import types as ir

_MOST_UNROLLED = 16  # objects of an array


def copy_into(
    cx: Context,
    target: Value,
    value: Value,
    type: CppType,
    span: Span,
    items: Category = "lvalue",
) -> None:
    """Initialize an object with another one of its type, by the copy or move constructors of its
    class, or of its bases and members. A temporary object becomes the new one. `items` is the
    category of those of an array."""
    if not lifetime_of(type).copies or is_prvalue(value):
        if is_prvalue(value):
            take(cx, value)
        put(cx, target, value, type, span)
        if isinstance(type, ClassType):  # it may be a part of an object of a derived class
            set_table(cx, target, type, span)
        return
    if isinstance(type, ArrayOf):

        def copy(at: n.Expression) -> None:
            item = with_category(subscript(cx, value, at, span), items)
            copy_into(cx, subscript(cx, target, at, span), item, type.element, span, items)

        _each(cx, type, False, copy, span)
        return
    assert isinstance(type, ClassType)
    if is_lvalue(value) and (reason := lack_of_copy(type)):
        raise cx.amiss(f"an object of {type} cannot be copied: {reason}", span, type)
    overloads = copy_constructors(type)
    if overloads:
        chosen = resolve_overload(cx, type.name, overloads, [value], None, span)
        if chosen.declaration.note != "defaulted":
            run_chosen(cx, target, type, chosen, [value], span)
            return
    with cx.in_scope(type.scope):  # as in a member of the class
        _copy_parts(cx, target, value, type, span)


def _copy_parts(cx: Context, target: Value, value: Value, type: ClassType, span: Span) -> None:
    """What a copy constructor does that the class does not define: copies of bases and members."""
    moved = getattr(value, "category", "") == "xvalue" and moves_members(type, "constructor")
    category: Category = "xvalue" if moved else "lvalue"
    for base in type.bases:
        part = with_category(as_base(cx, value, base, span), category)
        copy_into(cx, as_base(cx, target, base, span), part, base, span)
    set_table(cx, target, type, span)
    for field in type.fields:
        if field.name == TABLE:
            continue
        if isinstance(field.type, Reference):
            assert isinstance(target, SplitStruct)
            assert isinstance(value, SplitStruct)
            target.fields[field.name] = value.fields[field.name]
            continue
        one, other = part_of(cx, target, field, span), part_of(cx, value, field, span)
        copy_into(cx, one, with_category(other, category), field.type, span, category)


def destroy(cx: Context, value: Value, type: CppType, span: Span) -> None:
    """End an object: its destructor, then those of its members and bases in reverse order."""
    if not lifetime_of(type).ends:
        return
    if isinstance(type, ArrayOf):
        element = type.element

        def end(at: n.Expression) -> None:
            destroy(cx, subscript(cx, value, at, span), element, span)

        _each(cx, type, True, end, span)
        return
    assert isinstance(type, ClassType)
    destructor = destructor_of(type)
    if destructor is not None:
        declaration = destructor.declaration
        refuse_unusable(cx, destructor, span)
        set_table(cx, value, type, span)
        instance = (id(declaration), type.arguments)
        recursive = calls_itself(cx, instance)
        if recursive is None:
            return
        if recursive:

            def lower_body(inner: Context) -> None:
                assert inner.this is not None
                run_body(inner, declaration, span)
                _destroy_parts(inner, inner.this, type, span)

            chosen = Candidate(destructor, destructor.scope, ())
            call_recursive(cx, chosen, [], value, VOID, instance, span, lower_body)
            return
        cx.calls += 1
        inner = Context(
            cx.lowering,
            Scope(destructor.scope, f"~{type.name}", "function"),
            path=(*cx.path, (instance, cx.calls)),
            returns=Returns(VOID),
            this=value,
            depth=cx.depth + 1,
            name=declaration.name.text,
            isolated=cx.isolated,
        )
        inner.memories = cx.memories
        inner.recursion = cx.recursion
        inner.blocks = [cx.blocks[-1]]
        inner.span = span
        run_body(inner, declaration, span)
    _destroy_parts(cx, value, type, span)


def _destroy_parts(cx: Context, value: Value, type: ClassType, span: Span) -> None:
    """End the members and bases of an object."""
    for field in reversed(type.fields):
        if lifetime_of(field.type).ends and not type.is_union:
            destroy(cx, part_of(cx, value, field, span), field.type, span)
    for base in reversed(type.bases):
        destroy(cx, as_base(cx, value, base, span), base, span)


def _each(
    cx: Context, type: ArrayOf, backwards: bool, do: Callable[[n.Expression], None], span: Span
) -> None:
    """Do something with each index of an array, in order or backwards."""
    length = type.length or 0
    if length <= _MOST_UNROLLED:
        for at in range(length):
            do(constant(length - 1 - at if backwards else at, ir.I32))
        return
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, span)
    with cx.separate_block() as body:
        do(minus(constant(length - 1, ir.I32), variable) if backwards else variable)
    bounds = (constant(0, ir.I32), constant(length, ir.I32))
    cx.emit(n.For(variable, *bounds, 1, tuple(body), span=span))

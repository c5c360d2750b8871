"""Closures: the objects of lambda expressions.

A lambda becomes an object of a class of its own, whose fields are its captures and whose method is
its operator(). A field for a capture by reference is the captured object itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import rvalue
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.evaluation_order import with_fixed_place
from treadle.cuda_cpp.lower.fields import find_field, has_field
from treadle.cuda_cpp.lower.initializers import construct_value
from treadle.cuda_cpp.lower.lifetimes import temporary
from treadle.cuda_cpp.lower.objects import member
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.storage import declare_object, uninitialized
from treadle.cuda_cpp.lower.values import (
    VALUES,
    ArrayValue,
    ChoiceLvalue,
    Dependent,
    FunctionSet,
    Lvalue,
    MemoryTarget,
    PointerValue,
    SplitStruct,
    TypeValue,
    Value,
)
from treadle.cuda_cpp.semantics.scopes import Functions, KnownValue, Overload, Scope
from treadle.cuda_cpp.semantics.types import (
    ClassType,
    CppType,
    Field,
    Reference,
    holds_array,
    holds_pointer,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of

_KIND = "lambda"  # of the declaration of a closure's class
_LOCAL = ("function", "block")  # kinds of scopes
_NOT_CAPTURED = (FunctionSet, TypeValue)


def is_closure(type: Any) -> bool:
    """Whether a type is that of a lambda expression."""
    return (
        isinstance(type, ClassType)
        and isinstance(type.template, tree.StructDeclaration)
        and type.template.kind == _KIND
    )


def keeps_captures(type: Any) -> bool:
    """Whether a type is that of a lambda expression whose calls leave its captures as they are."""
    return is_closure(type) and not any(
        isinstance(one, tree.FunctionDeclaration) and not one.const for one in type.template.members
    )


def this_object(cx: Context) -> Value | None:
    """`*this`: in a lambda, that of the method around it, if it is captured."""
    this = cx.this
    while is_closure(type := getattr(this, "type", None)):
        assert isinstance(type, ClassType)
        if find_field(type, "this") is None:
            return None
        assert this is not None
        this = _captured(cx, this, "this", cx.span)
    return this


def _captured(cx: Context, closure: Value, name: str, span: Span) -> Value:
    """A field of a closure."""
    if isinstance(closure, SplitStruct):
        found: Value = closure.fields[name]
        return found
    type = _type_of(closure)
    assert isinstance(type, ClassType)
    found_field = find_field(type, name)
    assert found_field is not None
    return member(cx, closure, name, found_field[1].type, span)


def lower_lambda(cx: Context, node: tree.Lambda) -> Value:
    """A lambda expression: its captures are evaluated now."""
    values = dict(_captures(cx, node))
    fields = tuple(
        Field(name, Reference(_type_of(value)) if refers else _type_of(value))
        for name, (value, refers) in values.items()
    )
    type = _class(cx, node, fields)
    span = node.span
    key = (cx.path, id(node))
    if holds_pointer(type):
        parts_ = {
            name: with_fixed_place(cx, value, span)
            if refers
            else declare_object(cx, name, _type_of(value), (key, name), value, span)
            for name, (value, refers) in values.items()
        }
        split: Value = temporary(cx, SplitStruct(type, parts_), type)
        return split
    if holds_array(type) or acts(type):
        place: Value = uninitialized(cx, "closure", type, key, span)
        for name, (value, _) in values.items():
            part = _captured(cx, place, name, span)
            cx.rules.copy_into(cx, part, value, _type_of(value), span)
        made: Value = temporary(cx, place, type)
        return made
    parts = [cx.copied(rvalue(cx, value, span).expression) for value, _ in values.values()]
    return construct_value(type, parts, span)


def _type_of(value: Value) -> CppType:
    type: CppType = value.type  # type: ignore[union-attr]
    return type


def _class(cx: Context, node: tree.Lambda, fields: tuple[Field, ...]) -> ClassType:
    """The class of a lambda: one for each place that it is inlined to."""
    numbers = cx.lowering.closures
    number = numbers.setdefault((cx.path, id(node)), len(numbers))
    name = f"lambda_{number}_of_line_{node.span.line}"
    home = Scope(cx.scope, name, "class")
    declaration = tree.StructDeclaration(_KIND, name, (node.call,), span=node.span)
    type = ClassType(name, fields, scope=home, template=declaration)
    home.names["<class>"] = type
    home.names["<bases>"] = ()
    home.names["operator()"] = Functions("operator()", [Overload(node.call, home, type)])
    return type


# --- captures ------------------------------------------------------------------------------------


def _captures(cx: Context, node: tree.Lambda) -> Iterator[tuple[str, tuple[Value, bool]]]:
    """The captured values by name, and whether each is captured by reference."""
    given: set[str] = set()
    for one in node.captures:
        given.add(one.name)
        if one.name == "this":
            this = this_object(cx)
            if this is None:
                raise cx.wrong("`this` is only captured in a method", one.span)
            yield "this", (this, one.by_reference)
            continue
        if one.initializer is not None:
            yield one.name, (_initialized(cx, one), one.by_reference)
            continue
        value = _local(cx, one.name)
        if value is None:
            found = cx.scope.find(one.name)
            if isinstance(found, KnownValue):
                continue  # a constant needs no capture
            error = cx.error if isinstance(found, Dependent) else cx.wrong
            raise error(f"{one.name} is not a local variable, so it cannot be captured", one.span)
        yield one.name, (value, one.by_reference)
    if not node.default:
        return
    by_reference = node.default == "&"
    names = {one.text: None for one in walk_tree(node.call) if _is_plain_name(one)}
    for name in names:
        value = None if name in given else _local(cx, name)
        if value is not None and not isinstance(value, _NOT_CAPTURED):
            yield name, (value, by_reference)
    this = None if "this" in given else this_object(cx)
    if this is not None and _uses_this(node, names, getattr(this, "type", None)):
        yield "this", (this, True)


def _is_plain_name(node: Any) -> bool:
    return isinstance(node, tree.Name) and not node.scope


def _initialized(cx: Context, capture: tree.Capture) -> Value:
    """The value of `[x = value]`."""
    initializer = capture.initializer
    if isinstance(initializer, tree.InitializerList):
        if len(initializer.items) != 1:
            raise cx.wrong(f"the capture {capture.name} takes one value", capture.span)
        initializer = initializer.items[0]
    value = lower(cx, initializer)
    if isinstance(value, ArrayValue) and not capture.by_reference:
        first = value.first
        return PointerValue(
            first.targets, first.offset, first.unit, value.type.element, first.tag, first.const
        )
    return value


def _local(cx: Context, name: str) -> Value | None:
    """A variable of the function that a lambda can capture; None if the name is none."""
    scope: Scope | None = cx.scope
    while scope is not None:
        if scope.kind in _LOCAL:
            found = scope.own(name)
            if found is not None:
                return found if isinstance(found, VALUES) and not is_static(cx, found) else None
        elif scope.kind == "class":
            type = scope.names.get("<class>")
            if not is_closure(type):
                return None
            assert isinstance(type, ClassType)
            if find_field(type, name) is not None and getattr(cx.this, "type", None) == type:
                assert cx.this is not None
                return _captured(cx, cx.this, name, cx.span)
        scope = scope.parent
    return None


def is_static(cx: Context, value: Any) -> bool:
    """Whether an object lasts longer than its function: a lambda uses it without a capture."""
    match value:
        case ArrayValue(first=PointerValue(targets=(MemoryTarget(space=space), *_))):
            return space != "local"
        case Lvalue(place=place):
            root = root_of(place)
            if isinstance(root, n.Element):
                target = cx.lowering.memory_targets.get(root.memory)
                return target is not None and target.space != "local"
        case ChoiceLvalue(choices=choices):
            return all(one is None or is_static(cx, one) for one in choices)
    return False


def _uses_this(node: tree.Lambda, names: dict[str, None], type: Any) -> bool:
    """Whether a lambda uses the object of the method around it."""
    if any(isinstance(one, tree.This) for one in walk_tree(node.call)):
        return True
    if not isinstance(type, ClassType) or type.scope is None:
        return False
    return any(
        has_field(type, name) or isinstance(type.scope.own(name), Functions) for name in names
    )

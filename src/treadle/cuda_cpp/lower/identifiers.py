"""What a name is where a value stands."""

from __future__ import annotations

from typing import Any

from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.classes import find_field
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.members import (
    address_of,
    member_of,
)
from treadle.cuda_cpp.lower.names import known_entity, lookup, named_type, scope_of
from treadle.cuda_cpp.lower.values import (
    FunctionSet,
    TypeValue,
    Value,
)
from treadle.cuda_cpp.lower.variables import global_variable
from treadle.cuda_cpp.meaning.scopes import (
    DeclaredType,
    Functions,
    GlobalVariable,
    HostEntity,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.meaning.types import (
    ClassType,
)
from treadle.cuda_cpp.syntax import tree


def lower_name(cx: Context, node: tree.Name) -> Value:
    entity: Any = _find_value(cx, node)
    if entity is None:
        return _builtin(cx, node)
    match entity:
        case Functions(overloads=overloads):
            return FunctionSet(node.text, tuple(overloads), arguments=node.arguments)
        case GlobalVariable():
            return global_variable(cx, entity, node)
        case TypeEntity() | DeclaredType():
            return TypeValue(named_type(cx, node, node.span))
        case HostEntity(code):
            raise cx.error(_host_only(node, code), node.span)
    known = known_entity(cx, entity, node.span)
    value: Value = entity if known is None else known
    return value


def _host_only(node: tree.Name, code: tree.HostCode) -> str:
    reason = f" ({code.reason})" if code.reason else ""
    if code.what == "function":
        return (
            f"{node.text} is a function of the host: put __device__ (or __host__ __device__) "
            f"before it, so that kernels can call it{reason}"
        )
    return f"{node.text} belongs to the host alone, and a kernel can't use it{reason}"


def _find_value(cx: Context, node: tree.Name) -> Any:
    """What a name means: a local, a member of the object at hand, something of the file."""
    if node.scope:
        return lookup(cx, node) or _qualified_field(cx, node)
    scope: Scope | None = cx.scope
    while scope is not None:
        found = scope.own(node.text)
        if found is not None:
            if isinstance(found, Functions) and scope.kind == "class" and cx.this is not None:
                return FunctionSet(
                    node.text, tuple(found.overloads), arguments=node.arguments, receiver=cx.this
                )
            return found
        if scope.kind == "class" and cx.this is not None:
            type = scope.names.get("<class>")
            if isinstance(type, ClassType) and find_field(type, node.text) is not None:
                return member_of(cx, cx.this, node, node.span)
        scope = scope.parent
    return None


def _qualified_field(cx: Context, node: tree.Name) -> Value | None:
    """`B::x` in a method: a field of the object at hand, or of its base."""
    home = None if cx.this is None else scope_of(cx, node.scope)
    type = None if home is None else home.names.get("<class>")
    if cx.this is None or not isinstance(type, ClassType) or find_field(type, node.text) is None:
        return None
    return member_of(cx, cx.this, node, node.span)


def _builtin(cx: Context, node: tree.Name) -> Value:
    """A name that CUDA or the language declares."""
    if node.text in builtin_names.VARIABLES:
        return builtin_names.variable(cx, node)
    if builtin_names.is_function(node.text):
        return FunctionSet(node.text, (), builtin=True, arguments=node.arguments)
    spelled = "::".join([*(part.text for part in node.scope), node.text])
    raise cx.error(builtin_names.unknown(spelled), node.span)


def lower_this(cx: Context, node: tree.This) -> Value:
    if cx.this is None:
        raise cx.error("`this` stands for nothing outside of a method", node.span)
    return address_of(cx, cx.this, node.span)

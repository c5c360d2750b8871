"""Templates of variables in device memory: each instance that a kernel uses is a variable of the
module, with a name that has the template arguments: "ns::mask<float, 3>"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import resolve
from treadle.cuda_cpp.lower.pointers import example_of, follow
from treadle.cuda_cpp.lower.template_arguments import bind_arguments, spelled
from treadle.cuda_cpp.lower.templates import variable_instance, with_arguments
from treadle.cuda_cpp.lower.values import ArrayValue, PointerValue, Value
from treadle.cuda_cpp.semantics.scopes import GlobalVariable, Namespace, Scope
from treadle.cuda_cpp.semantics.types import ArrayOf, Reference
from treadle.cuda_cpp.syntax import tree


class NeedsVariable(Exception):
    """A kernel uses an instance that the module does not have yet: its name, and its declaration
    with the scope that binds the arguments. It is not a CompileError, so that nothing which handles
    these on the way takes it for a fault of the file."""

    def __init__(self, name: str, instance: GlobalVariable) -> None:
        super().__init__(name)
        self.name = name
        self.instance = instance


def variable_templates(scope: Scope) -> Iterator[tuple[str, GlobalVariable]]:
    """The templates of variables in device memory, with their qualified names."""
    for name, entity in scope.names.items():
        if isinstance(entity, Namespace) and not name.startswith("<"):
            yield from variable_templates(entity.scope)
        elif (
            isinstance(entity, GlobalVariable)
            and entity.declaration.template
            and entity.declaration.specifiers & {"constant", "device", "managed"}
        ):
            yield scope.qualified(name), entity


def named_instance(
    cx: Context, entity: GlobalVariable, arguments: Sequence[Any], span: Span
) -> tuple[str, GlobalVariable]:
    """An instance of a template, and its name among the variables of the module."""
    entity = _defined_outside(cx, entity, span)
    template = with_arguments(cx, entity.declaration, arguments)
    assert template.template is not None
    bound = bind_arguments(cx, template.template, arguments, entity.scope, span)
    words = ", ".join(map(spelled, bound.names["<arguments>"]))
    declaration, scope = variable_instance(cx, entity, arguments, span)
    name = f"{entity.scope.qualified(template.name)}<{words}>"
    return name, GlobalVariable(replace(declaration, template=None), scope)


def _defined_outside(cx: Context, entity: GlobalVariable, span: Span) -> GlobalVariable:
    """A template that is a static member of a class, as it is defined outside of its class."""
    scope, declaration = entity.scope, entity.declaration
    is_defined = declaration.initializer is not None or "inline" in declaration.specifiers
    if scope.kind != "class" or scope.parent is None or is_defined:
        return entity
    found = scope.parent.names.get(f"{scope.name}::{declaration.name}")
    if not isinstance(found, GlobalVariable) or not found.declaration.template:
        raise cx.error(
            f"{declaration.name} is a template of variables that {scope.name} only declares, or "
            "that a class template has: make it inline, with its initializer in the class",
            span,
        )
    definition = replace(found.declaration, name=declaration.name)
    return GlobalVariable(definition, scope, entity.specializations)


def variable_at(cx: Context, value: PointerValue, span: Span) -> Value:
    """The variable of the file that is in a memory."""
    if isinstance(value.to, ArrayOf):
        return ArrayValue(value, value.to)
    return follow(cx, value, span)


def instance_of_template(cx: Context, entity: GlobalVariable, node: tree.Name) -> Value:
    """An instance that a kernel uses; some value of its type where none is read."""
    name, instance = named_instance(cx, entity, node.arguments or (), node.span)
    known = cx.lowering.symbols.get(name)
    if known is not None:
        return variable_at(cx, known, node.span)
    if not (cx.lowering.checking or cx.lowering.unevaluated):
        raise NeedsVariable(name, instance)
    with cx.in_scope(instance.scope):
        type = resolve(cx, instance.declaration.type)
    if not isinstance(type, ArrayOf):
        return example_of(Reference(type), node.span)
    if cx.lowering.checking or type.length is None:
        raise cx.error(f"{name} has no memory before a kernel uses it", node.span)
    return example_of(type, node.span)

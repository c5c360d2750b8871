"""What a parsed file of CUDA C++ declares: kernels, variables, texture references, assertions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.errors import CompileError
from treadle.cuda_cpp import program as records
from treadle.cuda_cpp.lower.variables import (
    is_constant_variable,
    static_name,
)
from treadle.cuda_cpp.semantics.scopes import (
    GlobalVariable,
    Namespace,
    Overload,
    Scope,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_argument, spell_type


@dataclass(frozen=True, slots=True)
class DeclaredKernel:
    """A kernel's declaration, its scope, and the record of it."""

    overload: Overload
    template: records.KernelTemplate


def declared_kernels(declarations: tuple[tree.Declaration, ...], scope: Scope) -> Any:
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration) and one.alias is None:
            inner = scope
            if one.name:
                found = scope.own(one.name)
                if not isinstance(found, Namespace):
                    raise CompileError(f"{one.name} is a namespace and something else", one.span)
                inner = found.scope
            yield from declared_kernels(one.members, inner)
        elif (
            isinstance(one, tree.FunctionDeclaration)
            and "global" in one.specifiers
            and one.body is not None
            and not one.specialization
        ):
            name = scope.qualified(one.name.text)
            yield DeclaredKernel(Overload(one, scope), _template_record(name, one))


def by_name(kernels: Iterable[DeclaredKernel]) -> dict[str, DeclaredKernel]:
    """The kernels by name. If several have the same one, the types of their parameters follow it,
    and if these are the same, too, the template parameters come before."""
    groups: dict[str, list[DeclaredKernel]] = {}
    for kernel in kernels:
        groups.setdefault(kernel.template.name, []).append(kernel)
    found: dict[str, DeclaredKernel] = {}
    for name, group in groups.items():
        for kernel in group:
            if len(group) == 1:
                found[name] = kernel
                continue
            record = kernel.template
            types = f"({', '.join(one.type for one in record.parameters)})"
            full = name + types
            if full in found:
                full = f"{name}<{', '.join(one.name for one in record.template)}>{types}"
            found[full] = replace(kernel, template=replace(record, name=full))
    return found


def declared_assertions(
    declarations: tuple[tree.Declaration, ...], scope: Scope
) -> Iterator[tuple[tree.StaticAssert, Scope]]:
    """The static_asserts at namespace scope, with their scopes."""
    for one in declarations:
        if isinstance(one, tree.StaticAssert):
            yield one, scope
        elif isinstance(one, tree.NamespaceDeclaration) and one.alias is None:
            found = scope.own(one.name) if one.name else None
            inner = found.scope if isinstance(found, Namespace) else scope
            yield from declared_assertions(one.members, inner)


def _template_record(name: str, one: tree.FunctionDeclaration) -> records.KernelTemplate:
    parameters = tuple(records.WrittenParameter(p.name, spell_type(p.type)) for p in one.parameters)
    template = tuple(
        records.TemplateParameter(
            p.name,
            "type" if p.kind == "type" else "value",
            "" if p.type is None else spell_type(p.type),
            None if p.default is None else spell_argument(p.default),
            p.pack,
        )
        for p in one.template or ()
    )
    return records.KernelTemplate(name, one.span, parameters, template)


def declared_variables(scope: Scope) -> Any:
    for name, entity in scope.names.items():
        if isinstance(entity, Namespace) and not name.startswith("<"):
            yield from declared_variables(entity.scope)
        elif isinstance(entity, GlobalVariable) and _is_of_device(entity.declaration):
            yield scope.qualified(name), entity


def static_variables(unit: tree.TranslationUnit, scope: Scope) -> dict[str, GlobalVariable]:
    """The static variables of functions, which last as variables of the file do."""
    return {
        static_name(one): GlobalVariable(one, scope)
        for one in unit.statics
        if "shared" not in one.specifiers and not is_constant_variable(one)
    }


def texture_references(scope: Scope) -> Iterator[tuple[str, GlobalVariable]]:
    for name, entity in scope.names.items():
        if isinstance(entity, Namespace) and not name.startswith("<"):
            yield from texture_references(entity.scope)
        elif isinstance(entity, GlobalVariable):
            written = entity.declaration.type
            if isinstance(written, tree.NamedType) and written.name.text == "texture":
                yield scope.qualified(name), entity


def _is_of_device(declaration: tree.VariableDeclaration) -> bool:
    in_memory = declaration.specifiers & {"constant", "device", "managed"}
    return bool(in_memory) and not declaration.template

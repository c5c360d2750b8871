"""What the parameters of functions take, found once for each function, and the quick test that a
function certainly does not take an argument: calls among hundreds of overloads compare classes
before anything is deduced or converted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import CompileError
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import resolved_parameter
from treadle.cuda_cpp.lower.packs import packs_of
from treadle.cuda_cpp.lower.special_members import constructors_of
from treadle.cuda_cpp.lower.template_arguments import argument_key
from treadle.cuda_cpp.lower.values import Value
from treadle.cuda_cpp.semantics.scopes import DeclaredType, Functions, Overload
from treadle.cuda_cpp.semantics.types import (
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    Pointer,
    Reference,
    VectorType,
    Void,
)
from treadle.cuda_cpp.syntax import tree

_NUMBERS = (Arithmetic, EnumType)


@dataclass(frozen=True, slots=True)
class Given:
    """An argument: its class, if that has no bases, and whether it is an object of a class without
    conversion functions, a number or a pointer."""

    only: ClassType | None
    is_plain: bool


_ANYTHING = Given(None, False)
_NUMBER = Given(None, True)


@dataclass(frozen=True, slots=True)
class _Instance:
    """A parameter of a template that is an instance of a class template, from whose arguments
    something is deduced. `numbers` are the arguments that are written as numbers."""

    template: tree.StructDeclaration
    numbers: tuple[tuple[int, Any], ...]

    def refuses(self, given: Given) -> bool:
        """Whether it is another template's instance, or one with other numbers."""
        if given.only is None:
            return False
        template = given.only.template
        if template is not self.template:  # a specialization has the same name
            return getattr(template, "name", "") != self.template.name
        if not self.numbers:
            return False
        bound = given.only.scope.parent.names.get("<instance>", ())
        return any(
            at < len(bound) and argument_key(bound[at])[0] != number for at, number in self.numbers
        )


@dataclass(frozen=True, slots=True)
class _Class:
    """A parameter that is a class which is made from nothing but its own objects."""

    name: str

    def refuses(self, given: Given) -> bool:
        """Whether it is a number, or an object of another class that does not convert."""
        return given.is_plain and (given.only is None or given.only.name != self.name)


@dataclass(frozen=True, slots=True)
class _NoClass:
    """A parameter that is a number or a pointer."""

    def refuses(self, given: Given) -> bool:
        """Whether it is an object of a class that does not convert."""
        return given.is_plain and given.only is not None


_Wanted = _Instance | _Class | _NoClass


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: the types of its parameters, unless it is a template, and what the
    quick test compares, by the position of the parameter."""

    overload: Overload
    types: tuple[CppType, ...] | None
    wanted: tuple[tuple[int, _Wanted], ...]

    def refuses(self, given: Sequence[Given]) -> bool:
        """Whether it certainly does not take these arguments."""
        count = len(given)
        return any(at < count and wanted.refuses(given[at]) for at, wanted in self.wanted)


def signature_of(cx: Context, overload: Overload) -> Signature:
    """What a function takes. CompileError for a type that is unknown."""
    known = cx.lowering.signatures
    key = (id(overload.declaration), id(overload.scope))
    found: Signature | None = known.get(key)
    if found is None:
        found = _signature(cx, overload)
        if all(map(_is_complete, found.types or ())):
            known[key] = found
    return found


def _signature(cx: Context, overload: Overload) -> Signature:
    declaration = overload.declaration
    if declaration.template:
        instances = () if packs_of(declaration) else tuple(_instances(overload))
        return Signature(overload, None, instances)
    with cx.in_scope(overload.scope):
        types = tuple(resolved_parameter(cx, one.type) for one in declaration.parameters)
    wanted = ((at, _wanted(type)) for at, type in enumerate(types))
    return Signature(overload, types, tuple((at, one) for at, one in wanted if one is not None))


def _is_complete(type: CppType) -> bool:
    """Whether a type will be the same later: no class in it is being made."""
    match type:
        case ClassType():
            return type.scope is not None or type.declaration is None
        case Pointer(to=inner) | Reference(to=inner) | ArrayOf(element=inner):
            return _is_complete(inner)
    return isinstance(type, (*_NUMBERS, Void, VectorType))


def given_of(value: Value) -> Given:
    """What an argument is."""
    try:
        type: CppType | None = getattr(value, "type", None)
    except CompileError:  # it depends on a template parameter
        type = None
    if isinstance(type, ClassType):
        if type.bases or type.scope is None:
            return _ANYTHING
        return Given(type, not isinstance(type.scope.own("operator ()"), Functions))
    return _NUMBER if isinstance(type, (*_NUMBERS, Pointer)) else _ANYTHING


def _wanted(type: CppType) -> _Wanted | None:
    """What a parameter of this type takes; None for what other rules say."""
    if isinstance(type, Reference):
        type = type.to
    if isinstance(type, ClassType):
        own = type.scope is not None and not constructors_of(type)
        return _Class(type.name) if own else None
    is_data = isinstance(type, Pointer) and not isinstance(type.to, FunctionOf)
    return _NoClass() if is_data or isinstance(type, _NUMBERS) else None


def _instances(overload: Overload) -> list[tuple[int, _Instance]]:
    """The parameters of a template that are instances of class templates."""
    declaration = overload.declaration
    names = {one.name for one in declaration.template or ()}
    found = []
    for at, parameter in enumerate(declaration.parameters):
        written = parameter.type
        while isinstance(written, (tree.ReferenceType, tree.ConstType)):
            written = written.to if isinstance(written, tree.ReferenceType) else written.of
        name = written.name if isinstance(written, tree.NamedType) else None
        if name is None or not name.arguments or name.scope or name.text in names:
            continue
        if not any(_plain_name(one) in names for one in name.arguments):
            continue  # it may be converted
        entity = overload.scope.find(name.text)
        template = entity.declaration if isinstance(entity, DeclaredType) else None
        if isinstance(template, tree.StructDeclaration):  # not an alias
            found.append((at, _Instance(template, tuple(_numbers(name.arguments)))))
    return found


def _numbers(arguments: Sequence[Any]) -> list[tuple[int, Any]]:
    """The template arguments that are written as numbers, up to a pack."""
    found = []
    for at, one in enumerate(arguments):
        if isinstance(one, tree.PackExpansion):
            break
        if isinstance(one, tree.IntegerLiteral):
            found.append((at, one.value))
    return found


def _plain_name(argument: Any) -> str:
    """The name that a template argument consists of, "" for others."""
    name = argument.name if isinstance(argument, tree.NamedType) else argument
    return name.text if isinstance(name, tree.Name) and name.arguments is None else ""

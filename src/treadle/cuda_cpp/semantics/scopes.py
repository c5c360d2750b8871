"""Scopes: what a file, its namespaces and classes declare, and name lookup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.cuda_cpp.semantics.types import CppType, NumberTypes
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import renamed


@dataclass(frozen=True, slots=True)
class TypeEntity:
    """A name of a built-in type, or of a type that is resolved already."""

    type: CppType
    const: bool = False  # of a template argument


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A class, enum or typedef of the file, or a template of them."""

    declaration: tree.StructDeclaration | tree.EnumDeclaration | tree.TypedefDeclaration
    scope: Scope
    specializations: tuple[tree.StructDeclaration, ...] = ()


@dataclass(frozen=True, slots=True)
class Overload:
    """One function of an overload set. `owner` is the class of a method."""

    declaration: tree.FunctionDeclaration
    scope: Scope
    owner: Any = None  # a ClassType


@dataclass(slots=True)
class Functions:
    """An overload set: all functions of one name in one scope."""

    name: str
    overloads: list[Overload] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GlobalVariable:
    """A variable of a namespace, or a static member variable."""

    declaration: tree.VariableDeclaration
    scope: Scope
    specializations: tuple[tree.VariableDeclaration, ...] = ()


@dataclass(frozen=True, slots=True)
class Enumerator:
    """An enumerator, evaluated when it is used."""

    declaration: tree.EnumDeclaration
    position: int
    scope: Scope


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace's own scope."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class HostEntity:
    """A declaration of host code, which kernels can't use."""

    code: tree.HostCode


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A name whose value is known: a template argument, a parameter's constant."""

    value: Any  # of lower.values
    key: Any = None  # of a local constant, which becomes an object if its address is taken


REFERENCE = "<reference>"  # before the name of a reference, its type
OWN = "<own>"  # before the name of a variable that is an object of its function, not a reference
SKIPPED = "<skipped>"  # before the name of host code, which may be that of a class declared before
SPELLED = "<spelled>"  # the name of an instance of a class template, with its arguments


class Scope:
    """The names of one namespace, class, template instance or block, and the scope around it."""

    __slots__ = ("kind", "name", "names", "parent", "using_directives")

    def __init__(self, parent: Scope | None, name: str = "", kind: str = "block") -> None:
        self.parent = parent
        self.name = name
        self.kind = kind  # "global", "namespace", "class", "template", "function", "block"
        self.names: dict[str, Any] = {}
        self.using_directives: list[Scope] = []  # by `using namespace`

    def own(self, name: str) -> Any:
        """The entity that the scope itself, or a namespace that it uses, declares; None if none."""
        found = self.names.get(name)
        if found is not None or not self.using_directives:
            return found
        seen = {id(self)}  # using directives may be mutual
        open_scopes = list(reversed(self.using_directives))
        while open_scopes:
            scope = open_scopes.pop()
            if id(scope) in seen:
                continue
            seen.add(id(scope))
            found = scope.names.get(name)
            if found is not None:
                return found
            open_scopes.extend(reversed(scope.using_directives))
        return None

    def find(self, name: str) -> Any:
        """Unqualified lookup: the innermost declaration of a name; None if there is none."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.own(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def all_names(self) -> list[str]:
        """The names that unqualified lookup would find, without those of namespaces in use."""
        found: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            found += (name for name in scope.names if name.isidentifier())
            scope = scope.parent
        return found

    def functions(self, name: str) -> Iterator[Functions]:
        """All overload sets of a name, the innermost first: operators are looked up in all."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.own(name)
            if isinstance(found, Functions):
                yield found
            scope = scope.parent

    def qualified(self, name: str) -> str:
        """A name qualified with the namespaces and classes around it."""
        scope: Scope | None = self
        while scope is not None:
            if scope.kind in ("namespace", "class") and scope.name:
                name = f"{scope.names.get(SPELLED, scope.name)}::{name}"
            scope = scope.parent
        return name


_FILE = "<file>"


def file_scope(unit: tree.TranslationUnit, types: NumberTypes) -> Scope:
    """The scope of a whole file, inside that of CUDA's and the language's own names."""
    built_in = Scope(None, kind="global")
    for name, type in types.names.items():
        built_in.names[name] = TypeEntity(type)
    scope = Scope(built_in, kind="global")
    built_in.names[_FILE] = Namespace(scope)
    # The headers declare <cmath>, <cstdint>, min and max both in `std` and at file level.
    scope.names["std"] = Namespace(Scope(built_in, "std", "namespace"))
    declare_all(unit.declarations, scope)
    return scope


def functions_in_namespaces(scope: Scope) -> frozenset[str]:
    """The names of all functions that namespaces of the file declare, and of friends of classes."""
    found: set[str] = set()
    seen: set[int] = set()
    file = scope.find(_FILE)
    waiting = [file.scope] if isinstance(file, Namespace) else []
    while waiting:
        scope = waiting.pop()
        if id(scope) in seen:
            continue
        seen.add(id(scope))
        for name, entity in scope.names.items():
            if isinstance(entity, Namespace) and not name.startswith("<"):
                waiting.append(entity.scope)
                found |= {n for n, one in entity.scope.names.items() if isinstance(one, Functions)}
            elif isinstance(entity, DeclaredType):
                found |= _friends(entity.declaration)
    return frozenset(found)


def _friends(declaration: tree.Declaration) -> set[str]:
    """The names of the functions that a class defines as its friends."""
    members = declaration.members if isinstance(declaration, tree.StructDeclaration) else ()
    return {
        one.name.text
        for one in members
        if isinstance(one, tree.FunctionDeclaration) and "friend" in one.specifiers
    }


def file_names(scope: Scope) -> list[Any]:
    """All entities that a file and its namespaces declare."""
    found: list[Any] = []
    seen: set[int] = set()
    file = scope.find(_FILE)
    waiting = [file.scope] if isinstance(file, Namespace) else []
    while waiting:
        scope = waiting.pop()
        if id(scope) in seen or scope.name == "std":
            continue
        seen.add(id(scope))
        for name, entity in list(scope.names.items()):
            if isinstance(entity, Namespace):
                if not name.startswith("<"):
                    waiting.append(entity.scope)
            else:
                found.append(entity)
    return found


def declare_all(declarations: tuple[tree.Declaration, ...], scope: Scope) -> None:
    """Add declarations to a scope."""
    for declaration in declarations:
        declare(declaration, scope)


def declare(declaration: tree.Declaration, scope: Scope) -> None:
    """Add one declaration to a scope."""
    match declaration:
        case tree.FunctionDeclaration():
            _declare_function(declaration, scope)
        case tree.StructDeclaration() | tree.EnumDeclaration() if declaration.scope:
            home = _scope_of(declaration.scope, scope)  # `struct ns::A {…}`
            if home is not None:
                declare(replace(declaration, scope=()), home)
        case tree.StructDeclaration():
            _declare_struct(declaration, scope)
        case tree.EnumDeclaration():
            _declare_enum(declaration, scope)
        case tree.TypedefDeclaration():
            if isinstance(declaration.type, tree.DefinedType):
                declare_defined(declaration.type, scope)
            scope.names[declaration.name] = DeclaredType(declaration, scope)
        case tree.VariableDeclaration(specialized=written) if written is not None:
            known = scope.names.get(declaration.name)
            if isinstance(known, GlobalVariable):
                scope.names[declaration.name] = replace(
                    known, specializations=(*known.specializations, declaration)
                )
        case tree.VariableDeclaration():
            scope.names.setdefault(declaration.name, GlobalVariable(declaration, scope))
            known = scope.names[declaration.name]
            if (
                isinstance(known, GlobalVariable)
                and known.declaration is not declaration
                and "extern" in known.declaration.specifiers
            ):
                scope.names[declaration.name] = GlobalVariable(declaration, scope)
        case tree.NamespaceDeclaration():
            _declare_namespace(declaration, scope)
        case tree.UsingDeclaration():
            _use(declaration, scope)
        case tree.HostCode():
            for name in declaration.names:
                scope.names.setdefault(name, HostEntity(declaration))
                scope.names[f"{SKIPPED}{name}"] = HostEntity(declaration)
        case tree.StaticAssert():
            pass


def _declare_function(declaration: tree.FunctionDeclaration, scope: Scope) -> None:
    name = declaration.name
    earlier: tuple[tree.Declaration, ...] = ()
    if name.scope:  # defined out of line, outside of its class or namespace
        home = _scope_of(name.scope, scope)
        if home is None:
            return
        owner = scope.find(name.scope[-1].text)
        if isinstance(owner, DeclaredType) and isinstance(
            owner.declaration, tree.StructDeclaration
        ):
            earlier = owner.declaration.members
        scope = home
    known = scope.names.get(name.text)
    if not isinstance(known, Functions):
        known = scope.names[name.text] = Functions(name.text)
    earlier = (*earlier, *(one.declaration for one in known.overloads))
    known.overloads.append(Overload(_with_defaults(declaration, earlier), scope))


def _with_defaults(
    declaration: tree.FunctionDeclaration, earlier: tuple[tree.Declaration, ...]
) -> tree.FunctionDeclaration:
    """A function with the default arguments that earlier declarations of it have."""
    parameters = declaration.parameters
    alike = [
        one
        for one in earlier
        if isinstance(one, tree.FunctionDeclaration)
        and one.body is None
        and one.name.text == declaration.name.text
        and len(one.parameters) == len(parameters)
    ]
    if len(alike) > 1:
        types = [parameter.type for parameter in parameters]
        alike = [one for one in alike if [given.type for given in one.parameters] == types]
    for one in alike:
        parameters = tuple(
            own if own.default is not None else replace(own, default=given.default)
            for own, given in zip(parameters, one.parameters, strict=True)
        )
    return (
        declaration
        if parameters == declaration.parameters
        else replace(declaration, parameters=parameters)
    )


def _scope_of(path: tuple[tree.Name, ...], scope: Scope) -> Scope | None:
    found: Any = scope
    for part in path:
        if part.text == "":
            continue
        entity = found.find(part.text) if found is scope else found.own(part.text)
        if isinstance(entity, Namespace):
            found = entity.scope
        elif isinstance(entity, DeclaredType) and isinstance(
            entity.declaration, tree.StructDeclaration
        ):
            found = _out_of_line_scope(entity)
        else:
            return None
    return found if isinstance(found, Scope) else None


_OUT_OF_LINE = "<out of line>"


def _out_of_line_scope(entity: DeclaredType) -> Scope:
    """The scope of a class's methods that are defined out of line, until its type is made."""
    key = f"{_OUT_OF_LINE}{entity.declaration.name}"
    home = entity.scope.names.get(key)
    if not isinstance(home, Namespace):
        home = entity.scope.names[key] = Namespace(Scope(entity.scope, kind="namespace"))
    return home.scope


def out_of_line_methods(declaration: tree.StructDeclaration, scope: Scope) -> list[Overload]:
    """The methods of a class that are defined out of line."""
    home = scope.names.get(f"{_OUT_OF_LINE}{declaration.name}")
    if not isinstance(home, Namespace):
        return []
    sets = home.scope.names.values()
    return [one for group in sets if isinstance(group, Functions) for one in group.overloads]


def _declare_struct(declaration: tree.StructDeclaration, scope: Scope) -> None:
    known = scope.names.get(declaration.name)
    if declaration.specialized is not None:
        if isinstance(known, DeclaredType):
            scope.names[declaration.name] = DeclaredType(
                known.declaration, known.scope, _with(known.specializations, declaration)
            )
        return
    if isinstance(known, DeclaredType):
        if not declaration.complete:
            earlier = known.declaration
            if isinstance(earlier, tree.StructDeclaration):
                whole = _with_all_defaults(declaration, earlier)
                scope.names[declaration.name] = replace(known, declaration=whole)
            return
        if isinstance(known.declaration, tree.StructDeclaration):
            declaration = _with_all_defaults(known.declaration, declaration)
    specializations = known.specializations if isinstance(known, DeclaredType) else ()
    if declaration.name:
        scope.names[declaration.name] = DeclaredType(declaration, scope, specializations)
    elif scope.kind != "class":  # the members of an anonymous union belong to the enclosing scope
        declare_all(declaration.members, scope)


def _with(
    known: tuple[tree.StructDeclaration, ...], added: tree.StructDeclaration
) -> tuple[tree.StructDeclaration, ...]:
    """Specializations with another one, which defines one that was only declared."""
    alike = [
        one
        for one in known
        if one.specialized == added.specialized
        and one.template == added.template
        and one.constraint == added.constraint
        and not (one.complete and added.complete)
    ]
    if alike and not added.complete:
        return known
    return (*(one for one in known if one not in alike), added)


def _with_all_defaults(
    other: tree.StructDeclaration, declaration: tree.StructDeclaration
) -> tree.StructDeclaration:
    """A class template with the default arguments that another declaration of it gives."""
    given, own = other.template or (), declaration.template or ()
    if len(given) != len(own) or not any(
        one.default is None and more.default for one, more in zip(own, given, strict=True)
    ):
        return declaration
    own = tuple(  # a default may need the name of one that has none here
        one if one.name else replace(one, name=f"{more.name}__")
        for one, more in zip(own, given, strict=True)
    )
    names = {more.name: one.name for one, more in zip(own, given, strict=True)}
    merged = tuple(
        replace(one, default=renamed(more.default, names)) if one.default is None else one
        for one, more in zip(own, given, strict=True)
    )
    return replace(declaration, template=merged)


def _declare_enum(declaration: tree.EnumDeclaration, scope: Scope) -> None:
    home = scope
    if declaration.name:
        scope.names[declaration.name] = DeclaredType(declaration, scope)
    if declaration.scoped:
        home = Scope(scope, declaration.name, "namespace")
        scope.names[f"<enum>{declaration.name}"] = Namespace(home)
    for position, (name, _) in enumerate(declaration.enumerators):
        home.names[name] = Enumerator(declaration, position, scope)


def declare_defined(type: tree.DefinedType, scope: Scope) -> None:
    """The members of an unnamed class are not those of the scope: it is a variable's, or has a
    name by a typedef."""
    if type.definition.name or isinstance(type.definition, tree.EnumDeclaration):
        declare(type.definition, scope)


def _declare_namespace(declaration: tree.NamespaceDeclaration, scope: Scope) -> None:
    if declaration.alias is not None:
        path = (*declaration.alias.scope, declaration.alias)
        found = _scope_of(path, scope)
        if found is not None:
            scope.names[declaration.name] = Namespace(found)
        return
    if not declaration.name:  # the members of an unnamed one belong to the enclosing scope
        declare_all(declaration.members, scope)
        return
    known = scope.names.get(declaration.name)
    if not isinstance(known, Namespace):
        known = Namespace(Scope(scope, declaration.name, "namespace"))
        scope.names[declaration.name] = known
    declare_all(declaration.members, known.scope)


def _of_enum(name: tree.Name, scope: Scope) -> Enumerator | None:
    """The enumerator `E::a` that a using-declaration names."""
    if not name.scope:
        return None
    *outer, last = name.scope
    home = _scope_of(tuple(outer), scope)
    entity = None if home is None else (home.own if outer else home.find)(last.text)
    written = entity.declaration if isinstance(entity, DeclaredType) else None
    if not isinstance(entity, DeclaredType) or not isinstance(written, tree.EnumDeclaration):
        return None
    for position, (enumerator, _) in enumerate(written.enumerators):
        if enumerator == name.text:
            return Enumerator(written, position, entity.scope)
    return None


def _use(declaration: tree.UsingDeclaration, scope: Scope) -> None:
    name = declaration.name
    if declaration.namespace:
        found = _scope_of((*name.scope, name), scope)
        if found is not None and found is not scope:
            scope.using_directives.append(found)
        return
    home = _scope_of(name.scope, scope)
    if declaration.enum:
        entity = None if home is None else (home.own if name.scope else home.find)(name.text)
        written = entity.declaration if isinstance(entity, DeclaredType) else None
        if isinstance(entity, DeclaredType) and isinstance(written, tree.EnumDeclaration):
            for position, (enumerator, _) in enumerate(written.enumerators):
                made = Enumerator(written, position, entity.scope)
                scope.names.setdefault(enumerator, made)
        return
    entity = home.own(name.text) if home is not None else _of_enum(name, scope)
    if entity is not None:
        scope.names.setdefault(name.text, entity)

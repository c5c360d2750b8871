"""Nested classes and enums that are defined outside of their class (`struct A::B {…}`), and the
functions of nested classes (`int A::B::f() {…}`).

They are moved into the class: what is looked up in them is found there in the same way, and an
instance of a template has them with its arguments. So nothing after the parser knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.cursor import SyntaxProblem
from treadle.cuda_cpp.syntax.walk import renamed

_Path: TypeAlias = tuple[str, ...]
_Nested: TypeAlias = tree.StructDeclaration | tree.EnumDeclaration | tree.FunctionDeclaration
_Parameters: TypeAlias = tuple[tree.TemplateParameter, ...]


def moved_inside(
    declarations: tuple[tree.Declaration, ...],
) -> tuple[tuple[tree.Declaration, ...], list[SyntaxProblem]]:
    """The declarations of a file with each such definition in its class, and what is wrong with
    those that belong to none."""
    nested = list(_nested_definitions(declarations, ()))
    if not nested:
        return declarations, []
    classes: dict[_Path, list[tree.StructDeclaration]] = {}
    for path, one in _classes(declarations, ()):
        classes.setdefault((*path, one.name), []).append(one)
    problems: list[SyntaxProblem] = []
    moves: dict[int, list[_Nested]] = {}
    taken: set[int] = set()
    for path, definition in nested:
        found = _owner(definition, path, classes)
        if found is None:
            continue  # of a namespace, or of a class that is the host's
        taken.add(id(definition))
        owners, below = found
        inside = _in_terms_of(owners, replace_scope(definition, below))
        if inside is None:
            problems.append(_of_no_class(definition))
        else:
            moves.setdefault(id(inside[0]), []).append(inside[1])
    return _rebuilt(declarations, moves, taken, problems), problems


def _scope_of(one: tree.Declaration) -> tuple[tree.Name, ...]:
    """The classes and namespaces that a declaration names before its own name."""
    if isinstance(one, tree.FunctionDeclaration):
        return one.name.scope
    if isinstance(one, (tree.StructDeclaration, tree.EnumDeclaration)):
        return one.scope
    return ()


def replace_scope(one: _Nested, scope: tuple[tree.Name, ...]) -> _Nested:
    """A definition that names other classes before its own name."""
    if isinstance(one, tree.FunctionDeclaration):
        return replace(one, name=replace(one.name, scope=scope))
    return replace(one, scope=scope)


def _nested_definitions(
    declarations: tuple[tree.Declaration, ...], path: _Path
) -> Iterator[tuple[_Path, _Nested]]:
    """Those that are moved, with the namespaces around them. A function of a class that is not
    nested stays where it is."""
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration):
            yield from _nested_definitions(one.members, (*path, one.name))
        elif isinstance(one, tree.FunctionDeclaration):
            if len(one.name.scope) > 1:
                yield path, one
        elif isinstance(one, (tree.StructDeclaration, tree.EnumDeclaration)) and one.scope:
            yield path, one


def _classes(
    declarations: tuple[tree.Declaration, ...], path: _Path
) -> Iterator[tuple[_Path, tree.StructDeclaration]]:
    """The classes of a file that are not nested, with the namespaces around them."""
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration):
            yield from _classes(one.members, (*path, one.name))
        elif isinstance(one, tree.StructDeclaration) and one.complete and not one.scope:
            yield path, one


def _owner(
    definition: _Nested, path: _Path, classes: dict[_Path, list[tree.StructDeclaration]]
) -> tuple[list[tree.StructDeclaration], tuple[tree.Name, ...]] | None:
    """The class that a definition names first, with its specializations, and what it names after
    that. None if it is of a class of its namespace that is not nested, or of an unknown one."""
    scope = _scope_of(definition)
    for outer in range(len(path), -1, -1):
        for count in range(1, len(scope) + 1):
            key = (*path[:outer], *(part.text for part in scope[:count] if part.text))
            if key in classes:
                of_class = isinstance(definition, tree.FunctionDeclaration) and count == len(scope)
                return None if of_class else (classes[key], scope[count - 1 :])
    return None


def _in_terms_of(
    owners: list[tree.StructDeclaration], definition: _Nested
) -> tuple[tree.StructDeclaration, _Nested] | None:
    """The one of a template and its specializations that a definition belongs to, and the
    definition with the names that this has for its parameters. None if there is none."""
    named, *below = _scope_of(definition)
    for owner in owners:
        own = owner.template or ()
        given: _Parameters = definition.template or ()
        if len(given) < len(own):
            continue
        names = {
            one.name: other.name
            for one, other in zip(given, own, strict=False)
            if one.name and other.name and one.name != other.name
        }
        written = owner.specialized
        if written is None and own:
            written = tuple(_as_argument(one) for one in own)
        if named.arguments is None or written is None:
            same = named.arguments is None and written is None
        else:
            same = [*map(_text_of, renamed(named.arguments, names))] == [*map(_text_of, written)]
        if same:
            inside = renamed(definition, names) if names else definition
            template = inside.template[len(own) :] if inside.template else None
            inside = replace(inside, template=template or None)
            return owner, replace_scope(inside, renamed(tuple(below), names))
    return None


def _as_argument(parameter: tree.TemplateParameter) -> tree.TemplateArgument:
    """A parameter as the argument that stands for it: `T`, `N` or `Ts...`."""
    name = tree.Name(parameter.name)
    return tree.PackExpansion(name) if parameter.pack else name


def _text_of(argument: object) -> object:
    """An argument; a name as its text, whether it was read as a type or as a value."""
    if isinstance(argument, tree.PackExpansion):
        return "...", _text_of(argument.pattern)
    if isinstance(argument, tree.NamedType):
        argument = argument.name
    if isinstance(argument, tree.Name) and not argument.scope and argument.arguments is None:
        return argument.text
    return argument


def _of_no_class(definition: _Nested) -> SyntaxProblem:
    name = _scope_of(definition)[0]
    if name.arguments is not None:
        message = (
            f"the member of one instance of {name.text} is defined here, which is not supported: "
            f"specialize {name.text} as a whole"
        )
    else:
        message = f"{name.text} is a template: write its arguments before ::"
    return SyntaxProblem(message, definition.span)


def _rebuilt(
    declarations: tuple[tree.Declaration, ...],
    moves: dict[int, list[_Nested]],
    taken: set[int],
    problems: list[SyntaxProblem],
) -> tuple[tree.Declaration, ...]:
    found: list[tree.Declaration] = []
    for one in declarations:
        if id(one) in taken:
            continue
        if isinstance(one, tree.NamespaceDeclaration):
            one = replace(one, members=_rebuilt(one.members, moves, taken, problems))
        elif isinstance(one, tree.StructDeclaration) and id(one) in moves:
            for definition in moves[id(one)]:
                one = _with_member(one, definition, problems)
        found.append(one)
    return tuple(found)


def _with_member(
    owner: tree.StructDeclaration, definition: _Nested, problems: list[SyntaxProblem]
) -> tree.StructDeclaration:
    """A class with the definition of a member, or of a member of a nested class."""
    scope = _scope_of(definition)
    of_function = isinstance(definition, tree.FunctionDeclaration)
    members = list(owner.members)
    if of_function and len(scope) == 1:
        return replace(owner, members=(*members, definition))
    if scope:
        inner = [
            one
            for one in members
            if isinstance(one, tree.StructDeclaration)
            and one.name == scope[0].text
            and one.complete
        ]
        found = _in_terms_of(inner, definition)
        if found is None:
            problems.append(
                SyntaxProblem(f"{owner.name} defines no class {scope[0].text}", definition.span)
            )
            return owner
        at = next(at for at, one in enumerate(members) if one is found[0])
        members[at] = _with_member(found[0], found[1], problems)
        return replace(owner, members=tuple(members))
    assert isinstance(definition, (tree.StructDeclaration, tree.EnumDeclaration))
    for at, one in enumerate(members):
        if isinstance(one, type(definition)) and _declares(one, definition):
            members[at] = definition
            return replace(owner, members=tuple(members))
    problems.append(
        SyntaxProblem(
            f"{owner.name} declares no {_kind(definition)} {definition.name}", definition.span
        )
    )
    return owner


def _kind(definition: tree.StructDeclaration | tree.EnumDeclaration) -> str:
    return "enum" if isinstance(definition, tree.EnumDeclaration) else "class"


def _declares(one: tree.Declaration, definition: tree.Declaration) -> bool:
    """Whether a member only declares a class or enum of this name."""
    if isinstance(one, tree.EnumDeclaration) and isinstance(definition, tree.EnumDeclaration):
        return one.name == definition.name and not one.enumerators
    if not isinstance(one, tree.StructDeclaration):
        return False
    assert isinstance(definition, tree.StructDeclaration)
    return one.name == definition.name and not one.complete

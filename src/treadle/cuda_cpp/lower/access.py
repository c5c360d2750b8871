"""Members and bases that are not public, and where they may be used ([class.access])."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.special_members import own_members, written_name
from treadle.cuda_cpp.lower.values import Dependent, Value
from treadle.cuda_cpp.semantics.scopes import Functions, Overload, Scope
from treadle.cuda_cpp.semantics.types import ClassType, CppType, Pointer, Reference, innermost
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.classes import signature_key

VARIABLE = "variable"  # the kind of the scope around the type and the initializer of one of a file


def refuse_hidden(
    cx: Context, type: ClassType, name: str, span: Span, *, of_object: bool = False
) -> None:
    """CompileError for a member, named in a class or `of_object` of it, that this place may not
    use."""
    if _is_open(type):
        return
    found = next(_hidden_in(cx, type, name, type, of_object), None)
    if found is not None:
        raise cx.wrong(found, span)


def refuse_hidden_name(cx: Context, home: Scope, name: tree.Name) -> None:
    """CompileError for `A::x`, where this place may not use x. `home` is the scope before `::`.
    Declarations of a file may name what is not public, if they are of a friend or specialize a
    template, so only what is in functions, classes and variables is refused."""
    type = home.names.get("<class>")
    if isinstance(type, ClassType) and not _is_of_file(cx):
        refuse_hidden(cx, type, name.text, name.span)


def _is_of_file(cx: Context) -> bool:
    """Whether this place is in no function, class or variable."""
    scope: Scope | None = cx.scope
    while scope is not None:
        if scope.kind in ("function", "class", VARIABLE):
            return False
        scope = scope.parent
    return True


def refuse_hidden_overload(cx: Context, chosen: Overload, span: Span) -> None:
    """CompileError for a function of a class that overload resolution selected, if it is not public
    and others of its name are."""
    owner = chosen.owner
    declaration = owner.declaration if isinstance(owner, ClassType) else None
    if not isinstance(owner, ClassType) or not isinstance(declaration, tree.StructDeclaration):
        return
    access = declaration.hidden_functions.get(signature_key(chosen.declaration))
    if access is not None and not _may_use(cx, owner, access, owner, False):
        name = chosen.declaration.name.text
        raise cx.wrong(
            f"this {name} of {owner}, of line {chosen.declaration.span.line}, is {access}: only "
            f"functions of {owner} may use it",
            span,
        )


def refuse_hidden_constructors(cx: Context, type: ClassType, span: Span) -> None:
    """CompileError for a class without constructors for this place, where an object of it is
    made."""
    access = _access_of(type, _own_name(type))
    if access != "public" and not _may_use(cx, type, access, type, False):
        raise cx.wrong(
            f"the constructors of {type} are not public: only functions of {type} may make one",
            span,
        )


def refuse_hidden_destructor(cx: Context, type: ClassType, span: Span) -> None:
    """CompileError for an object whose destructor is not public, where it ends, or whose class has
    none of its own and may not use that of a member or base."""
    access = _access_of(type, f"~{_own_name(type)}")
    if access != "public" and not _may_use(cx, type, access, type, False):
        raise cx.wrong(f"the destructor of {type} is not public", span)
    if not _has_destructor(type) and type.scope is not None:
        with cx.in_scope(type.scope):
            refuse_hidden_destructors_in(cx, type, span)


def refuse_hidden_destructors_in(cx: Context, type: ClassType, span: Span) -> None:
    """CompileError for a class with a member or base whose destructor it may not use."""
    for base in type.bases:
        _refuse_in(cx, base, f"the destructor of {base}, a base of {type}, is not public", span)
    for one in own_members(type):
        of = innermost(one.type)
        if isinstance(of, ClassType) and not type.is_union:
            what = f"the destructor of {of}, of which {type} has the member {written_name(one)}"
            _refuse_in(cx, of, f"{what}, is not public", span)


def _refuse_in(cx: Context, part: ClassType, message: str, span: Span) -> None:
    access = _access_of(part, f"~{_own_name(part)}")
    if access != "public" and not _may_use(cx, part, access, part, False):
        raise cx.wrong(message, span)
    if not _has_destructor(part) and part.scope is not None:
        with cx.in_scope(part.scope):
            refuse_hidden_destructors_in(cx, part, span)


def _has_destructor(type: ClassType) -> bool:
    """Whether a class declares its destructor; one that is declared only is asked, too."""
    own = f"~{_own_name(type)}"
    members = getattr(type.declaration, "members", ())
    return any(
        isinstance(one, tree.FunctionDeclaration) and one.name.text.replace(" ", "") == own
        for one in members
    )


def refuse_hidden_base(cx: Context, value: Value, type: CppType | None, span: Span) -> None:
    """CompileError for the conversion of an object, or of a pointer to it, to a base that this
    place may not use."""
    given = getattr(value, "type", None)
    if isinstance(given, Pointer) != isinstance(type, Pointer):
        return
    one = given.to if isinstance(given, Pointer) else given
    other = type.to if isinstance(type, (Pointer, Reference)) else type
    if not isinstance(one, ClassType) or not isinstance(other, ClassType) or one == other:
        return
    if one.bases and _derives(one, other) and not _is_accessible_base(cx, one, other):
        raise cx.wrong(
            f"{other} is a base of {one} that is not public: only functions of {one} may see one "
            "as the other",
            span,
        )


# --- members -------------------------------------------------------------------------------------


def _hidden_in(
    cx: Context, type: ClassType, name: str, named_in: ClassType, of_object: bool
) -> Iterator[str]:
    """Why a member of a class or of its bases may not be used here, in words: nothing if it may, or
    if there is no such member."""
    if _declares(type, name):
        access = _access_of(type, name)
        of_object = of_object and not _is_static(type, name)
        if not _may_use(cx, type, access, named_in, of_object):
            yield (
                f"{name} is not a public member of {type}: only functions of {type} may use it"
                if access == "private" or not _is_in_derived(cx, type)
                else f"{name} is a protected member of {type}: functions of a class derived from "
                f"{type} may use it in objects of that class only"
            )
        return
    for base, access in bases_of(type):
        if not _has_member(base, name):
            continue
        if not _may_use(cx, type, access, named_in, False):
            yield (
                f"{name} is a member of {base}, which is a {access} base of {type}: only functions "
                f"of {type} may use it"
            )
        else:
            yield from _hidden_in(cx, base, name, named_in, of_object)
        return


def _has_member(type: ClassType, name: str) -> bool:
    return _declares(type, name) or any(_has_member(base, name) for base in type.bases)


def _declares(type: ClassType, name: str) -> bool:
    """Whether a class declares a member itself, or names that of a base in a using-declaration."""
    if name in _data_of(type):
        return True
    if type.scope is not None and name in type.scope.names:
        return True
    return any(
        isinstance(one, tree.UsingDeclaration) and not one.namespace and one.name.text == name
        for one in type.declaration.members
    )


def _data_of(type: ClassType) -> frozenset[str]:
    """The names of the members that each object has."""
    return frozenset(map(written_name, own_members(type)))


def _is_static(type: ClassType, name: str) -> bool:
    """Whether a member belongs to the class, not to each object."""
    if name in _data_of(type):
        return False
    entity = None if type.scope is None else type.scope.names.get(name)
    if isinstance(entity, Functions):
        return any("static" in one.declaration.specifiers for one in entity.overloads)
    return True


def _access_of(type: ClassType, name: str) -> str:
    declaration = type.declaration
    if not isinstance(declaration, tree.StructDeclaration) or name not in declaration.hidden:
        return "public"
    return "private" if name in declaration.private else "protected"


def _own_name(type: ClassType) -> str:
    declaration = type.declaration
    return declaration.name if isinstance(declaration, tree.StructDeclaration) else ""


# --- bases ---------------------------------------------------------------------------------------


def bases_of(type: ClassType) -> Iterator[tuple[ClassType, str]]:
    """The bases of a class, with their access."""
    declaration = type.declaration
    written = declaration.base_access if isinstance(declaration, tree.StructDeclaration) else ()
    if len(written) != len(type.bases):  # those of a pack
        written = (written[0] if len(set(written)) == 1 else "public",) * len(type.bases)
    yield from zip(type.bases, written, strict=True)


def _is_accessible_base(cx: Context, type: ClassType, base: ClassType) -> bool:
    return any(
        (one == base or (_derives(one, base) and _is_accessible_base(cx, one, base)))
        and _may_use(cx, type, access, type, False)
        for one, access in bases_of(type)
    )


def _derives(type: ClassType, base: ClassType) -> bool:
    return any(one == base or _derives(one, base) for one in type.bases)


def _is_open(type: ClassType) -> bool:
    """Whether everything in a class is public."""
    declaration = type.declaration
    if not isinstance(declaration, tree.StructDeclaration):
        return True
    if declaration.hidden or any(one != "public" for one in declaration.base_access):
        return False
    return all(map(_is_open, type.bases))


# --- places --------------------------------------------------------------------------------------


def _may_use(
    cx: Context, owner: ClassType, access: str, named_in: ClassType, of_object: bool
) -> bool:
    """Whether a member or base with this access in its class may be used here. What is protected
    `of_object` of a class must be of the class derived from the owner that uses it."""
    if access == "public" or owner.scope is None or _is_in(cx, owner):
        return True
    if access == "private":
        return False
    if any(_is_in(cx, one) for one in _between(named_in, owner)):
        return True
    return any(
        one is None
        or (_is_or_derives(one, owner) and not (of_object and not _is_or_derives(named_in, one)))
        for one in _classes_around(cx)
    )


def _between(derived: ClassType, base: ClassType) -> Iterator[ClassType]:
    """A class and its bases that derive from another one."""
    if _is_or_derives(derived, base):
        yield derived
        for one in derived.bases:
            yield from _between(one, base)


def _is_in(cx: Context, type: ClassType) -> bool:
    """Whether this place is in a member or a friend of a class."""
    declaration = type.declaration
    scope: Scope | None = cx.scope
    while scope is not None:
        if scope.kind == "function" and scope.name in declaration.friend_functions:
            return True
        if scope.kind == "class":
            if scope is type.scope or _is_named(scope, declaration.friends, type):
                return True
            own = scope.names.get("<class>")
            if isinstance(own, ClassType) and own.declaration is declaration:
                return True
        scope = scope.parent
    return False


def _is_named(scope: Scope, friends: frozenset[str], type: ClassType) -> bool:
    """Whether a class is one of these friends, by its name or by that of a typedef or of a template
    parameter."""
    if scope.name.rpartition("::")[2] in friends:
        return True
    own = scope.names.get("<class>")
    known = (getattr(type.scope.find(name), "type", None) for name in friends)
    return isinstance(own, ClassType) and any(
        isinstance(one, ClassType) and one.declaration is own.declaration for one in known
    )


def _classes_around(cx: Context) -> Iterator[ClassType | None]:
    """The classes that this place is in, None for one that is being made, whose bases are not known
    yet."""
    scope: Scope | None = cx.scope
    while scope is not None:
        if scope.kind == "class":
            own = scope.names.get("<class>")
            if isinstance(own, ClassType):
                yield own
            elif "<bases>" in scope.names:
                yield from scope.names["<bases>"]
            elif not isinstance(scope.names.get(scope.name), Dependent):
                yield None
        scope = scope.parent


def _is_in_derived(cx: Context, type: ClassType) -> bool:
    return any(one is not None and _is_or_derives(one, type) for one in _classes_around(cx))


def _is_or_derives(type: ClassType, owner: ClassType) -> bool:
    """Whether a class is an instance of the same declaration, or of one that derives from it."""
    if type.declaration is owner.declaration:
        return True
    return any(_is_or_derives(base, owner) for base in type.bases)

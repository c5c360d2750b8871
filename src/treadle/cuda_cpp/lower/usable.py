"""Functions that overload resolution selects and kernels cannot call: deleted ones, those for the
host, those without a definition, and members that are not public."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.special_members import is_for_host
from treadle.cuda_cpp.semantics.scopes import Overload, Scope
from treadle.cuda_cpp.semantics.types import ClassType
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_type


def refuse_deleted(cx: Context, chosen: Overload, span: Span) -> None:
    """CompileError for a function that is deleted."""
    if chosen.declaration.note == "deleted":
        raise cx.wrong(f"{signature(chosen)} is deleted, so it cannot be used", span)


def refuse_unusable(cx: Context, chosen: Overload, span: Span) -> None:
    """CompileError for a function that kernels cannot call."""
    refuse_deleted(cx, chosen, span)
    declaration = chosen.declaration
    if is_for_host(declaration):
        raise cx.error(for_host(signature(chosen)), span)
    if declaration.body is None and not declaration.note:
        raise cx.error(undefined(declaration.name.text), span)


def for_host(name: str) -> str:
    """The message for a function that is for the host."""
    return (
        f"{name} is for the host: declare it __device__ (or __host__ __device__), so that kernels "
        "can call it"
    )


def undefined(name: str) -> str:
    """The message for a function without a body."""
    return (
        f"{name} is declared here, but not defined in any included file: include its definition, "
        "since a module is one translation unit"
    )


def signature(chosen: Overload) -> str:
    """A function as messages name it: `S::S(const S&)`."""
    declaration = chosen.declaration
    name = declaration.name.text
    if name == "operator ()" and declaration.name.arguments:
        target = declaration.name.arguments[0]
        name = f"operator {spell_type(target)}" if isinstance(target, tree.TYPES) else "operator"
    types = ", ".join(spell_type(one.type) for one in declaration.parameters)
    owner = f"{chosen.owner}::" if chosen.owner is not None else ""
    return f"{owner}{name}({types})"


# --- members that are not public ---


def refuse_hidden(cx: Context, type: ClassType, name: str, span: Span) -> None:
    """CompileError for a member that is not public, but in functions of its class or of a class in
    that, and of classes derived from it, if it is protected."""
    owner = _owner(type, name)
    if owner is not None and not _may_use(cx, owner, name):
        raise cx.wrong(
            f"{name} is not a public member of {owner}: only functions of {owner} may use it", span
        )


def refuse_hidden_constructors(cx: Context, type: ClassType, span: Span) -> None:
    """CompileError for a class without public constructors, where an object of it is made."""
    declaration = type.declaration
    if isinstance(declaration, tree.StructDeclaration) and not _may_use(cx, type, declaration.name):
        raise cx.wrong(
            f"the constructors of {type} are not public: only functions of {type} may make one",
            span,
        )


def refuse_hidden_destructor(cx: Context, type: ClassType, span: Span) -> None:
    """CompileError for an object whose destructor is not public, where it ends."""
    declaration = type.declaration
    if isinstance(declaration, tree.StructDeclaration) and not _may_use(
        cx, type, f"~{declaration.name}"
    ):
        raise cx.wrong(f"the destructor of {type} is not public", span)


def _may_use(cx: Context, owner: ClassType, name: str) -> bool:
    """Whether a member of this name may be used here."""
    if name not in owner.declaration.hidden:
        return True
    private = name in owner.declaration.private
    scope: Scope | None = cx.scope
    while scope is not None:
        if scope.kind == "class" and scope.name.rpartition("::")[2] in owner.declaration.friends:
            return True
        own = scope.names.get("<class>")
        if isinstance(own, ClassType):
            if own.declaration is owner.declaration:
                return True
            if not private and _is_or_derives(own, owner):
                return True
        scope = scope.parent
    return False


def _owner(type: ClassType, name: str) -> ClassType | None:
    """The class that declares a member: the type or a base."""
    declaration = type.declaration
    if not isinstance(declaration, tree.StructDeclaration):
        return None
    names = {field.name for field in type.fields} | {bits.name for bits in type.bits}
    if name in names or (type.scope is not None and name in type.scope.names):
        return type
    return next((one for base in type.bases if (one := _owner(base, name)) is not None), None)


def _is_or_derives(type: ClassType, owner: ClassType) -> bool:
    """Whether a class is an instance of the same declaration, or of one that derives from it."""
    if type.declaration is owner.declaration:
        return True
    return any(_is_or_derives(base, owner) for base in type.bases)

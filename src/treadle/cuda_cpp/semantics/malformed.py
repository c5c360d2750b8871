"""Declarations that C++ forbids whatever their types are: words that do not go together, default
arguments before parameters without one, and names that hide template parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.semantics.const_members import unset_members
from treadle.cuda_cpp.semantics.operator_rules import wrong_default, wrong_operator
from treadle.cuda_cpp.syntax import tree

_Function = tree.FunctionDeclaration
_Class = tree.StructDeclaration


def malformed(declarations: tuple[tree.Declaration, ...], file: str) -> Iterator[CompileError]:
    """An error for each declaration of the user's files that is malformed."""
    own = tuple(one for one in declarations if is_of_user(one, file))
    yield from _found(own, _file_of(own))


def is_of_user(one: tree.Declaration, file: str) -> bool:
    """Whether a declaration is not one of our own headers."""
    return one.span.file == file or not one.span.file.startswith("<")


_Parameters = Sequence[tree.Parameter | tree.TemplateParameter]


@dataclass(slots=True)
class _File:
    """What declarations are compared with."""

    # Which parameters of functions and class templates, by name and number, have a default argument
    # in one of their declarations.
    defaults: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)

    def note_defaults(self, name: str, parameters: _Parameters) -> None:
        given = {at for at, one in enumerate(parameters) if one.default is not None}
        self.defaults.setdefault((name, len(parameters)), set()).update(given)


def _file_of(declarations: tuple[tree.Declaration, ...]) -> _File:
    found = _File()
    waiting = list(declarations)
    while waiting:
        one = waiting.pop()
        if isinstance(one, tree.NamespaceDeclaration):
            waiting += one.members
        elif isinstance(one, _Class):
            waiting += one.members
            found.classes.add(one.name)
            found.note_defaults(one.name, one.template or ())
        elif isinstance(one, _Function):
            found.note_defaults(one.name.text, one.parameters)
    return found


def _found(
    declarations: tuple[tree.Declaration, ...],
    file: _File,
    owner: _Class | None = None,
    hidden: frozenset[str] = frozenset(),
) -> Iterator[CompileError]:
    """The errors of a namespace or class; `hidden` are the template parameters of the class."""
    for one in declarations:
        if owner is not None and "friend" not in getattr(one, "specifiers", ()):
            yield from _hides(_names_of(one), one.span, hidden)
        match one:
            case tree.NamespaceDeclaration(alias=None):
                yield from _found(one.members, file)
            case tree.StructDeclaration():
                yield from _in_class(one, file)
            case tree.FunctionDeclaration():
                yield from _in_function(one, file, owner, hidden, declarations)
            case tree.VariableDeclaration():
                yield from _in_variable(one, owner)


def _in_class(one: _Class, file: _File) -> Iterator[CompileError]:
    own = frozenset(each.name for each in one.template or () if each.name)
    if one.specialized is None:
        yield from _hides([one.name], one.span, own)
        yield from _default_order(one.template or (), file.defaults, one.name)
    yield from _twice(one.template or ())
    yield from _found(one.members, file, one, own)


def _in_function(
    one: _Function,
    file: _File,
    owner: _Class | None,
    hidden: frozenset[str],
    others: tuple[tree.Declaration, ...],
) -> Iterator[CompileError]:
    for rule in _RULES:
        if rule.is_broken(one, owner):
            yield CompileError(rule.message.format(name=one.name.text), one.span)
            break
    for wrong in (wrong_operator(one, owner), wrong_default(one, owner)):
        if wrong:
            yield CompileError(wrong, one.span)
    if "static" in one.specifiers and owner is None and _is_of_class(one, file):
        message = f"static is written in the class only: leave it out at {one.name.text} here"
        yield CompileError(message, one.span)
    if (of := _constructed(one, owner, others)) is not None:
        yield from unset_members(one, of)
    if not one.name.scope:  # whose parameters may be those of several templates
        yield from _twice(one.template or ())
    yield from _default_order(one.parameters, file.defaults, one.name.text)
    if "friend" in one.specifiers:  # whose names are not in the class
        hidden = frozenset()
    hidden |= {each.name for each in one.template or () if each.name}
    if not hidden or one.specialization:
        return
    for parameter in one.parameters:
        yield from _hides([parameter.name], parameter.span, hidden)
    for statement in one.body.body if one.body is not None else ():
        if isinstance(statement, tree.DeclarationStatement):
            for each in statement.declarations:
                yield from _hides(_names_of(each), each.span, hidden)


def _constructed(
    one: _Function, owner: _Class | None, others: tuple[tree.Declaration, ...]
) -> _Class | None:
    """The class that a constructor is of; None for other functions, and for templates, which C++
    checks in their instances."""
    if one.result is not None or one.template is not None or "friend" in one.specifiers:
        return None
    if owner is not None:
        return owner if one.name.text == owner.name and owner.template is None else None
    if [part.text for part in one.name.scope] != [one.name.text]:
        return None
    return next(
        (
            each
            for each in others
            if isinstance(each, _Class)
            and each.complete
            and each.name == one.name.text
            and each.template is None
            and each.specialized is None
        ),
        None,
    )


def _is_of_class(one: _Function, file: _File) -> bool:
    """Whether a function is the member of a class that is defined outside of it."""
    return bool(one.name.scope) and one.name.scope[-1].text in file.classes


def _in_variable(one: tree.VariableDeclaration, owner: _Class | None) -> Iterator[CompileError]:
    const = isinstance(one.type, tree.ConstType) and one.type.const
    words = one.specifiers
    if "mutable" in words and ("static" in words or const):
        what = "const" if const else "static"
        yield CompileError(f"{one.name} is both mutable and {what}: leave one out", one.span)
    elif owner is not None and "static" in words and one.initializer is not None:
        changes = isinstance(one.type, (tree.BuiltinType, tree.PointerType))
        if changes and words.isdisjoint(("constexpr", "inline")):
            yield CompileError(
                f"{one.name} is static and not const, so its class gives it no value: write inline "
                "before it, or define it outside of the class",
                one.span,
            )


# --- names of template parameters --------------------------------------------------------------


def _names_of(one: tree.Declaration) -> list[str]:
    if isinstance(one, tree.FunctionDeclaration):
        return [] if one.name.scope else [one.name.text]
    if isinstance(one, (tree.UsingDeclaration, tree.NamespaceDeclaration, tree.StaticAssert)):
        return []
    if isinstance(one, tree.HostCode):
        return []
    if isinstance(one, (tree.StructDeclaration, tree.EnumDeclaration)) and one.scope:
        return []
    names = [one.name]
    if isinstance(one, tree.EnumDeclaration) and not one.scoped:
        names += [name for name, _ in one.enumerators]
    return names


def _hides(names: Sequence[str], span: Span, hidden: frozenset[str]) -> Iterator[CompileError]:
    for name in names:
        if name in hidden:
            yield CompileError(
                f"{name} is a template parameter here, so nothing else can have this name: rename "
                "one of them",
                span,
            )


def _twice(parameters: Sequence[tree.TemplateParameter]) -> Iterator[CompileError]:
    known: set[str] = set()
    for one in parameters:
        if one.name in known:
            yield CompileError(f"two template parameters are called {one.name}", one.span)
        if one.name:
            known.add(one.name)


# --- default arguments ---------------------------------------------------------------------------


def _default_order(
    parameters: _Parameters,
    defaults: dict[tuple[str, int], set[int]],
    name: str,
) -> Iterator[CompileError]:
    """The error of a parameter without a default argument behind one with it. Another declaration
    may give it."""
    given = defaults.get((name, len(parameters)), ())
    earlier: tree.Parameter | tree.TemplateParameter | None = None
    for at, one in enumerate(parameters):
        if one.default is not None:
            earlier = one
        elif earlier is not None and at not in given and not one.pack:
            yield CompileError(
                f"{one.name or 'a parameter'} needs a default argument, as "
                f"{earlier.name or 'one'} before it has one",
                one.span,
            )
            return


# --- words that do not go together ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    is_broken: Callable[[_Function, _Class | None], bool]
    message: str


def _is_member(one: _Function, owner: _Class | None) -> bool:
    return owner is not None and "friend" not in one.specifiers


def _has_no_type(one: _Function, owner: _Class | None) -> bool:
    """Whether a function is a constructor or destructor of the class."""
    return one.result is None and one.name.text != "operator ()"


def _is_destructor(one: _Function) -> bool:
    return one.name.text.startswith("~")


def _own_name(owner: _Class | None) -> str:
    return "" if owner is None else owner.name.rpartition("::")[2]


def _is_virtual(one: _Function, owner: _Class | None) -> bool:
    return _is_member(one, owner) and "virtual" in one.specifiers


def _is_void(parameter: tree.Parameter) -> bool:
    type = parameter.type
    refers = isinstance(type, tree.ReferenceType)
    of = type.to if isinstance(type, tree.ReferenceType) else type
    named = bool(parameter.name) or refers
    return named and isinstance(of, tree.BuiltinType) and of.name == "void"


# What a class without bases declares is virtual only if it says so.
def _is_not_virtual(one: _Function, owner: _Class | None) -> bool:
    if owner is None or "friend" in one.specifiers:
        return True
    return not owner.bases and "virtual" not in one.specifiers


_RULES = (
    _Rule(
        lambda one, owner: bool(one.initializers) and one.result is not None,
        "{name} is not a constructor, so it has no initializers of members: assign in its body",
    ),
    _Rule(
        lambda one, owner: len({name for name, _ in one.initializers}) < len(one.initializers),
        "this constructor initializes a member or base twice",
    ),
    _Rule(
        lambda one, owner: (
            len(one.initializers) > 1
            and owner is not None
            and not owner.bases
            and any(name.text == owner.name for name, _ in one.initializers)
        ),
        "this constructor calls another one of its class, which initializes all members: assign "
        "to the others in its body",
    ),
    _Rule(
        lambda one, owner: _is_virtual(one, owner) and owner is not None and owner.kind == "union",
        "{name} is virtual, which functions of unions cannot be",
    ),
    _Rule(
        lambda one, owner: one.variadic and "global" in one.specifiers,
        "the kernel {name} ends its parameters in ..., which kernels cannot: pass an array",
    ),
    _Rule(
        lambda one, owner: any(map(_is_void, one.parameters)),
        "{name} has a parameter of type void, or a reference to it",
    ),
    _Rule(
        lambda one, owner: "virtual" in one.specifiers and not _is_member(one, owner),
        "{name} is virtual, which is written in the class only: leave it out here",
    ),
    _Rule(
        lambda one, owner: _is_virtual(one, owner) and "static" in one.specifiers,
        "{name} is both virtual and static: a virtual function is called for an object, so leave "
        "out static",
    ),
    _Rule(
        lambda one, owner: _is_virtual(one, owner) and one.template is not None,
        "{name} is a template, which cannot be virtual",
    ),
    _Rule(
        lambda one, owner: (
            _is_virtual(one, owner) and _has_no_type(one, owner) and not _is_destructor(one)
        ),
        "a constructor cannot be virtual",
    ),
    _Rule(
        lambda one, owner: one.note == "pure" and _is_not_virtual(one, owner),
        "{name} is pure (= 0), and not virtual: write virtual before it",
    ),
    _Rule(
        lambda one, owner: bool(one.name.scope) and owner is None and "explicit" in one.specifiers,
        "explicit is written in the class only: leave it out here",
    ),
    _Rule(
        lambda one, owner: (
            "explicit" in one.specifiers
            and one.result is not None
            and one.name.text != "operator ()"
            and not one.name.text.startswith(tree.GUIDE)
        ),
        "{name} is explicit, which only constructors and conversion functions are",
    ),
    _Rule(
        lambda one, owner: (
            one.const and owner is None and not one.name.scope and one.name.text != "operator()"
        ),
        "{name} is not a member of a class, so there is no object that it keeps const: leave out "
        "const behind its parameters",
    ),
    _Rule(
        lambda one, owner: one.const and owner is not None and "static" in one.specifiers,
        "{name} is static, so there is no object that it keeps const: leave out one of them",
    ),
    _Rule(
        lambda one, owner: _is_destructor(one) and bool(one.parameters),
        "{name} is a destructor, which has no parameters",
    ),
    _Rule(
        lambda one, owner: (
            _is_destructor(one)
            and owner is not None
            and "friend" not in one.specifiers
            and one.name.text[1:].lstrip() != _own_name(owner)
        ),
        "{name} is not the destructor of this class: it has the name of its class",
    ),
    _Rule(
        lambda one, owner: (
            _is_member(one, owner) and one.result is not None and one.name.text == _own_name(owner)
        ),
        "{name} has the name of its class, so it is a constructor, which has no result: leave out "
        "the type before it",
    ),
)

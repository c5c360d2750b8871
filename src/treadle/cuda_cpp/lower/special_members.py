"""Members of classes that C++ calls by itself: constructors, default member initializers, copies,
destructors and assignments, and which of them do something.

Only objects of classes whose copies or destructors do something have lifetimes that the lowering
follows (`lifetimes.py`). Others are copied as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from treadle.cuda_cpp.semantics.const_members import needs_initializer
from treadle.cuda_cpp.semantics.scopes import Functions, Overload
from treadle.cuda_cpp.semantics.types import (
    DIM3,
    WORDS,
    ClassType,
    CppType,
    Field,
    Member,
    innermost,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.classes import signature_key
from treadle.cuda_cpp.syntax.walk import walk_tree

# The names of constructors and of the destructor in the scope of their class.
CONSTRUCTORS, DESTRUCTOR = "<constructor>", "<destructor>"
# One for the host whose parameters could not be read.
UNREAD_CONSTRUCTOR = "<unread constructor>"


# The hidden field of a class with virtual functions: the number of the class that an object has.
TABLE = ".class"


def is_polymorphic(type: CppType) -> bool:
    """Whether a class has virtual functions, its own or those of a base."""
    return isinstance(type, ClassType) and (
        any(one.name == TABLE for one in type.fields) or any(map(is_polymorphic, type.bases))
    )


def written_name(field: Member) -> str:
    """The name of a field in the file."""
    return field.name.partition(".")[0]


def is_word(field: Field) -> bool:
    """Whether a field is a word with bit fields in it, which the file does not name."""
    return field.name.startswith(WORDS)


def members_of(type: ClassType) -> tuple[Member, ...]:
    """The members of the bases, then its own, in the order of their initialization."""
    inherited = tuple(one for base in type.bases for one in members_of(base))
    return inherited + own_members(type)


def own_members(type: ClassType) -> tuple[Member, ...]:
    """The members that a class declares itself, in their order."""
    if not type.bits:
        return type.fields
    known: dict[str, Member] = {written_name(one): one for one in type.fields}
    known |= {one.name: one for one in type.bits}
    return tuple(known[name] for name in type.names)


def has_bits(type: ClassType) -> bool:
    """Whether a class or a base of it has members that are bits of words."""
    return bool(type.bits) or any(map(has_bits, type.bases))


def member_defaults(type: ClassType) -> dict[str, Any]:
    """The default member initializers of a class (`int n = 4;`)."""
    declaration = type.declaration
    found: dict[str, Any] = {}
    if isinstance(declaration, tree.StructDeclaration):
        written = {
            one.name: one.initializer
            for one in declaration.members
            if isinstance(one, tree.VariableDeclaration) and one.initializer is not None
        }
        for field in type.fields:
            initializer = None if is_word(field) else written.get(written_name(field))
            if initializer is not None:
                found[field.name] = initializer
        found |= {one.name: written[one.name] for one in type.bits if one.name in written}
    return found


def constructors_of(type: ClassType) -> tuple[Overload, ...]:
    if type.scope is None:
        return ()
    found = type.scope.names.get(CONSTRUCTORS)
    return tuple(found.overloads) if isinstance(found, Functions) else ()


def own_constructors(type: ClassType) -> list[Overload]:
    """The constructors that a class declares itself, not those that it inherits."""
    return [one for one in constructors_of(type) if one.owner is None or one.owner == type]


def is_initializer_list(type: ClassType) -> bool:
    """Whether a class is an instance of the library's std::initializer_list."""
    template = type.template
    return (
        isinstance(template, tree.StructDeclaration)
        and template.name == "initializer_list"
        and template.span.file == "<utility.cuh>"
    )


def item_type(type: ClassType) -> CppType:
    """T of a `std::initializer_list<T>`."""
    (argument,) = type.scope.parent.names["<instance>"]
    element: CppType = getattr(argument, "of", argument)  # without const
    return element


def callable_constructors(type: ClassType) -> list[Overload]:
    """The constructors that overload resolution selects from: also those that are deleted or for
    the host, which is an error then."""
    return [one for one in constructors_of(type) if one.declaration.note != "defaulted"]


def has_constructors(type: ClassType) -> bool:
    """Whether a class has user-provided constructors or virtual functions, so that it is not an
    aggregate."""
    if type == DIM3 or has_unread_constructor(type) or is_polymorphic(type):
        return True
    return any(is_user_provided(one.declaration) for one in constructors_of(type))


def has_virtual_destructor(type: ClassType) -> bool:
    """Whether deleting an object by a pointer to this class ends it as the class that it is of."""
    if not is_polymorphic(type):
        return False
    declaration = type.declaration
    members = declaration.members if isinstance(declaration, tree.StructDeclaration) else ()
    own = any(
        isinstance(one, tree.FunctionDeclaration)
        and one.name.text.startswith("~")
        and "virtual" in one.specifiers
        for one in members
    )
    return own or any(map(has_virtual_destructor, type.bases))


def is_user_provided(function: tree.FunctionDeclaration) -> bool:
    """Whether a constructor or destructor has a body of the file, read or not."""
    return function.note in ("", "host")


def has_unread_constructor(type: ClassType) -> bool:
    """Whether the parameters of a constructor for the host could not be read."""
    return type.scope is not None and UNREAD_CONSTRUCTOR in type.scope.names


def takes_nothing(function: tree.FunctionDeclaration) -> bool:
    """Whether a constructor can be called without arguments."""
    return all(one.default is not None or one.pack for one in function.parameters)


def has_default_constructor(type: ClassType) -> bool:
    """Whether default-initialization does something: it runs code, in a constructor or in default
    member initializers of the class or its bases and members, or is an error."""
    if type == DIM3 or member_defaults(type) or has_unread_constructor(type):
        return True
    if is_polymorphic(type):
        return True
    own = own_constructors(type)
    if own and not any(_is_implicit(one.declaration) for one in own):
        return True  # it is called, or there is none
    if type.is_union:
        return False
    if any(map(needs_initializer, members_declared(type))):
        return True
    parts = [*type.bases, *(innermost(field.type) for field in type.fields)]
    return any(isinstance(one, ClassType) and has_default_constructor(one) for one in parts)


def _is_implicit(function: tree.FunctionDeclaration) -> bool:
    """Whether it is the default constructor, as the compiler makes it."""
    return function.note == "defaulted" and takes_nothing(function)


def members_declared(type: ClassType) -> Iterator[tree.VariableDeclaration]:
    """The declarations of a class's own members that each object has."""
    declaration = type.declaration
    if isinstance(declaration, tree.StructDeclaration):
        for one in declaration.members:
            if isinstance(one, tree.VariableDeclaration) and "static" not in one.specifiers:
                yield one


def lack_of_default(type: ClassType) -> str:
    """Why a class has no default constructor, in words; "" if it has one, which may be deleted or
    for the host."""
    if type == DIM3 or type.scope is None:
        return ""
    own = own_constructors(type)
    fitting = [one.declaration for one in own if takes_nothing(one.declaration)]
    if any(one.note != "defaulted" for one in fitting):
        return ""
    if not fitting and (own or has_unread_constructor(type)):
        return f"{type} has no constructor without parameters"
    if type.is_union:
        return ""
    for one in members_declared(type):
        if needs_initializer(one):
            what = "a reference" if isinstance(one.type, tree.ReferenceType) else "const"
            return f"{one.name} of {type} is {what} and has no initializer"
    defaults = member_defaults(type)
    for part in (*type.bases, *(f.type for f in type.fields if f.name not in defaults)):
        inner = innermost(part)
        if isinstance(inner, ClassType) and (reason := lack_of_default(inner)):
            return reason
    return ""


def names_class(written: tree.TypeTree, name: str) -> bool:
    """Whether a parameter's type is the class of a name, or a reference to it."""
    while isinstance(written, (tree.ConstType, tree.ReferenceType)):
        written = written.of if isinstance(written, tree.ConstType) else written.to
    return isinstance(written, tree.NamedType) and written.name.text == name


def is_copy_constructor(function: tree.FunctionDeclaration, type: ClassType) -> bool:
    """Whether a function is a copy or move constructor of a class."""
    if function.result is not None or function.name.text != type.scope.name:
        return False
    if function.template or len(function.parameters) != 1:  # a template never is one
        return False
    written: tree.TypeTree = function.parameters[0].type
    return isinstance(written, tree.ReferenceType) and _is_own(written, type)


def _is_own(written: tree.TypeTree, type: ClassType) -> bool:
    """Whether the type of a parameter is the class, or refers to it: in `struct A<3, T>`, `A` and
    `A<3, T>`, not `A<4, T>`."""
    while isinstance(written, (tree.ReferenceType, tree.ConstType)):
        written = written.to if isinstance(written, tree.ReferenceType) else written.of
    if not isinstance(written, tree.NamedType) or written.name.text != type.scope.name:
        return False
    given = written.name.arguments
    declaration = type.declaration
    if given is None or not isinstance(declaration, tree.StructDeclaration):
        return True
    if declaration.specialized is not None:
        own = tuple(map(_plain, declaration.specialized))
    else:
        own = tuple(tree.Name(one.name) for one in declaration.template or ())
    return all(_plain(one) == other for one, other in zip(given, own, strict=False))


def _plain(argument: tree.TemplateArgument) -> Any:
    """A template argument that is a name, as an expression, whatever it was parsed as."""
    return argument.name if isinstance(argument, tree.NamedType) else argument


def is_of_one_instance(
    method: tree.FunctionDeclaration, declaration: tree.StructDeclaration
) -> bool:
    """Whether a method that is defined outside of a class template is its explicit specialization
    for some template arguments, as `template <> template <class T> void A<0>::f(T)`."""
    written = method.name.scope[-1].arguments
    if method.specialization or declaration.specialized is not None or not written:
        return method.specialization
    names = {one.name for one in method.template or ()}
    return not any(isinstance(one, tree.Name) and one.text in names for one in walk_tree(written))


def lack_of_assignment(type: ClassType, lvalue: bool) -> str:
    """Why an object of a class, which is an lvalue or moved from, cannot be assigned to one, member
    by member, in words; "" if it can."""
    if type.scope is None:
        return ""
    own = _declared(type, "operator=")
    copies = any(_takes_own(one.declaration, type, rvalue=False) for one in own)
    moves = any(
        _takes_own(one.declaration, type, rvalue=True) for one in (*own_constructors(type), *own)
    )
    if lvalue and moves and not copies:
        return f"{type} declares how it is moved, so it has no copy assignment"
    for member in members_declared(type):
        written = member.type
        while isinstance(written, tree.ArrayType):
            written = written.of
        if isinstance(written, tree.ReferenceType):
            return f"its member {member.name} is a reference"
        if isinstance(written, tree.ConstType) and written.const and member.name:
            return f"its member {member.name} is const"
    return ""


def lack_of_copy(type: ClassType) -> str:
    """Why an lvalue of a class cannot be copied, as its copy constructor is deleted implicitly, in
    words; "" if it can, or if the class says what a copy is."""
    if type.scope is None:
        return ""
    own = (*own_constructors(type), *_declared(type, "operator="))
    constructors = own_constructors(type)
    moves = any(_takes_own(one.declaration, type, rvalue=True) for one in own)
    copies = any(
        is_copy_constructor(one.declaration, type)
        and _takes_own(one.declaration, type, rvalue=False)
        for one in constructors
    )
    return f"{type} declares how it is moved, so it has no copies" if moves and not copies else ""


def _declared(type: ClassType, name: str) -> list[Overload]:
    found = type.scope.names.get(name)
    return found.overloads if isinstance(found, Functions) else []


def _takes_own(function: tree.FunctionDeclaration, type: ClassType, *, rvalue: bool) -> bool:
    """Whether a constructor or assignment moves an object of its class, or else copies it."""
    if function.template or len(function.parameters) != 1:
        return False
    written = function.parameters[0].type
    moves = isinstance(written, tree.ReferenceType) and written.rvalue
    return moves == rvalue and _is_own(written, type)


# --- lifetimes ---------------------------------------------------------------------------------


class Lifetime(NamedTuple):
    """What runs code in the life of an object: its copies, its end, assignments to it."""

    copies: bool = False
    ends: bool = False
    assigns: bool = False


_PLAIN = Lifetime()
_KNOWN = "<lifetime>"


def lifetime_of(type: CppType) -> Lifetime:
    """The lifetime of objects of a type."""
    type = innermost(type)
    if not isinstance(type, ClassType) or type.scope is None:
        return _PLAIN
    known = type.scope.names.get(_KNOWN)
    if known is None:
        parts = [lifetime_of(base) for base in type.bases]
        if not type.is_union:  # a union's own functions say what becomes of its member
            parts += [lifetime_of(field.type) for field in type.fields]
        table = is_polymorphic(type)  # an object keeps its own
        known = type.scope.names[_KNOWN] = Lifetime(
            table
            or lack_of_copy(type) != ""
            or any(not _merely_copies(one.declaration, type) for one in copy_constructors(type))
            or any(one.copies for one in parts),
            destructor_of(type) is not None or any(one.ends for one in parts),
            table or has_assignment(type) or any(one.assigns for one in parts),
        )
    found: Lifetime = known
    return found


def acts(type: CppType) -> bool:
    """Whether copies or ends of objects of a type run code."""
    known = lifetime_of(type)
    return known.copies or known.ends


def _own(type: ClassType, name: str) -> list[Overload]:
    """The member functions of this name that the class itself defines, deletes or declares."""
    found = type.scope.names.get(name)
    if not isinstance(found, Functions):
        return []
    return [one for one in found.overloads if one.declaration.note != "defaulted"]


def copy_constructors(type: ClassType) -> list[Overload]:
    """The copy and move constructors of a class: none if all are implicit, or as if they were."""
    found = [one for one in own_constructors(type) if is_copy_constructor(one.declaration, type)]
    if all(one.declaration.note == "defaulted" for one in found):
        return []
    return found


def moves_members(type: ClassType, function: str) -> bool:
    """Whether a class has an implicit move `constructor` or `assignment`, or one that is defaulted,
    which move its members: one that declares copies, an assignment or a destructor has none."""
    declaration = type.declaration
    members = declaration.members if isinstance(declaration, tree.StructDeclaration) else ()
    declared = False
    for one in members:
        if not isinstance(one, tree.FunctionDeclaration) or one.template:
            continue
        assigns = one.name.text == "operator="
        if one.name.text.startswith("~"):
            declared = True
        elif is_copy_constructor(one, type) or assigns:
            written = one.parameters[0].type if one.parameters else None
            moves = isinstance(written, tree.ReferenceType) and written.rvalue
            if moves and one.note == "defaulted" and assigns == (function == "assignment"):
                return True
            declared = True
    return not declared


def destructor_of(type: ClassType) -> Overload | None:
    """The destructor of a class, if it does something, or is deleted or for the host."""
    for one in _own(type, DESTRUCTOR):
        if one.declaration.body is None or one.declaration.body.body:
            return one
    return None


def has_assignment(type: ClassType) -> bool:
    """Whether the class has an operator= for its own objects."""
    return any(
        len(one.declaration.parameters) == 1
        and not one.declaration.template
        and _is_own(one.declaration.parameters[0].type, type)
        for one in _own(type, "operator=")
    )


def is_for_host(function: tree.FunctionDeclaration) -> bool:
    """Whether a function is for the host only, so that kernels cannot call it."""
    if function.note:
        return function.note == "host"
    return function.body is None and function.specifiers.isdisjoint(_ON_DEVICES)


_ON_DEVICES = frozenset(("device", "global", "constexpr", "consteval"))


def _merely_copies(function: tree.FunctionDeclaration, type: ClassType) -> bool:
    """Whether a copy constructor copies each field, in its mem-initializers or its body, and all
    may call it."""
    if function.body is None or type.bases:
        return False
    if signature_key(function) in type.declaration.hidden_functions:
        return False
    other = function.parameters[0].name
    copied = [
        (name, written.items[0])
        for name, written in function.initializers
        if len(written.items) == 1
    ]
    if len(copied) != len(function.initializers):
        return False
    for statement in function.body.body:
        if not isinstance(statement, tree.ExpressionStatement):
            return False
        node = statement.expression
        if not isinstance(node, tree.Assign) or node.op != "=":
            return False
        target = node.target
        if isinstance(target, tree.Member) and isinstance(target.base, (tree.This,)):
            target = target.name
        if not isinstance(target, tree.Name):
            return False
        copied.append((target, node.value))
    defaults = member_defaults(type)
    given = {name.text for name, _ in copied}
    if any(bits.name in defaults and bits.name not in given for bits in type.bits):
        return False
    for field in type.fields:  # one that is left out has no value, or that of its initializer
        owner = innermost(field.type)
        initialized = isinstance(owner, ClassType) and has_default_constructor(owner)
        if written_name(field) not in given and (field.name in defaults or initialized):
            return False
    return all(
        isinstance(value, tree.Member)
        and isinstance(value.base, tree.Name)
        and value.base.text == other
        and value.name.text == name.text
        for name, value in copied
    )

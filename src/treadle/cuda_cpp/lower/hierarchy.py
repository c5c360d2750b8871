"""Classes with virtual functions: which functions are virtual, what overrides them, which classes
derive from one, and the number in each object that says of which class it is.

The number stands in a hidden field where C++ has the pointer to a table of functions. It is a hash
of the class, so that it means the same in all kernels of a file.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.casts import (
    without_const,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import is_auto, resolve, resolved_parameter
from treadle.cuda_cpp.lower.objects import store
from treadle.cuda_cpp.lower.special_members import TABLE, is_polymorphic
from treadle.cuda_cpp.lower.values import Value
from treadle.cuda_cpp.program import number_of_memory
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    Functions,
    Overload,
    file_names,
)
from treadle.cuda_cpp.semantics.types import (
    VECTORS,
    ClassType,
    CppType,
    NoLayout,
    Pointer,
    Reference,
    Void,
    all_fields,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def own_functions(type: ClassType) -> Iterator[Overload]:
    """The member functions that a class declares itself, without its templates."""
    for name, entity in type.scope.names.items():
        if isinstance(entity, Functions) and not name.startswith("<"):
            for one in entity.overloads:
                if one.owner == type and one.declaration.template is None:
                    yield one


def _own(type: ClassType, name: str) -> list[Overload]:
    entity = None if type.scope is None else type.scope.names.get(name)
    found = entity.overloads if isinstance(entity, Functions) else ()
    return [one for one in found if one.owner == type and one.declaration.template is None]


def same_signature(cx: Context, one: Overload, other: Overload) -> bool:
    """Whether two functions have the same name, types of parameters, and const."""
    mine, theirs = one.declaration, other.declaration
    if mine.name.text != theirs.name.text or mine.const != theirs.const:
        return False
    if len(mine.parameters) != len(theirs.parameters):
        return False
    return _types(cx, one) == _types(cx, other)


def _types(cx: Context, one: Overload) -> tuple[CppType, ...]:
    with cx.in_scope(one.scope):
        return tuple(resolved_parameter(cx, each.type) for each in one.declaration.parameters)


def overridden(cx: Context, method: Overload) -> Overload | None:
    """The virtual function of a base that a method overrides; None if there is none."""
    owner = method.owner
    bases = owner.bases if isinstance(owner, ClassType) else ()
    for base in bases:
        if not is_polymorphic(base):
            continue
        found = _virtual_in(cx, base, method)
        if found is not None:
            return found
    return None


def _virtual_in(cx: Context, type: ClassType, method: Overload) -> Overload | None:
    for one in _own(type, method.declaration.name.text):
        if same_signature(cx, one, method) and is_virtual(cx, one):
            return one
    found = (_virtual_in(cx, base, method) for base in type.bases)
    return next((one for one in found if one is not None), None)


def is_virtual(cx: Context, method: Overload) -> bool:
    """Whether a member function is virtual: declared so, or in a base."""
    owner = method.owner
    if not isinstance(owner, ClassType) or not is_polymorphic(owner):
        return False
    declaration = method.declaration
    if declaration.template is not None or "static" in declaration.specifiers:
        return False
    return "virtual" in declaration.specifiers or overridden(cx, method) is not None


def overrider(cx: Context, type: ClassType, method: Overload) -> Overload | None:
    """The function that a call of a virtual function calls for an object of a class."""
    for one in _own(type, method.declaration.name.text):
        if same_signature(cx, one, method):
            return one
    found = (overrider(cx, base, method) for base in type.bases)
    return next((one for one in found if one is not None), None)


def pure_function(cx: Context, type: ClassType) -> Overload | None:
    """A pure virtual function that a class does not override, which makes it abstract."""
    if not is_polymorphic(type):
        return None
    waiting = [type]
    while waiting:
        one = waiting.pop()
        waiting += one.bases
        for method in own_functions(one):
            if method.declaration.note == "pure":
                last = overrider(cx, type, method)
                if last is None or last.declaration.note == "pure":
                    return method
    return None


def number_of_class(type: ClassType) -> int:
    """The number of a class in its objects."""
    span = type.declaration.span
    return number_of_memory(f"class {type.name} of {span.file}:{span.line}:{span.column}")


def set_table(cx: Context, place: Value, type: ClassType, span: Span) -> None:
    """Have an object be one of a class, as its constructors and destructors do, one by one."""
    if not is_polymorphic(type):
        return
    part = cx.rules.member_of(cx, without_const(place), tree.Name(TABLE), span)
    words = (constant(number_of_class(type), ir.U32), constant(0, ir.U32))
    store(cx, part, n.Construct(words, ir_type(VECTORS["uint2"]), span), span)


def refuse_wrong_overriders(cx: Context, type: ClassType) -> None:
    """CompileError for functions that say that they override, and do not, or override a final
    one."""
    for method in own_functions(type):
        declaration = method.declaration
        try:
            base = overridden(cx, method)
        except (CompileError, NoLayout):  # a type of the host's library
            continue
        name = declaration.name.text
        if base is None and declaration.note == "pure" and "virtual" not in declaration.specifiers:
            raise cx.wrong(
                f"{name} is pure (= 0), and not virtual: write virtual before it", declaration.span
            )
        if base is not None and "static" in declaration.specifiers:
            raise cx.wrong(
                f"{name} is static, and has the name and parameters of a virtual function of "
                f"{base.owner}: leave out static, or give it another name",
                declaration.span,
            )
        if base is not None:
            _refuse_other_result(cx, method, base)
        if base is None and "override" in declaration.specifiers:
            raise cx.wrong(
                f"{name} is declared override, and no base of {type} has such a virtual function: "
                "compare its parameters and const",
                declaration.span,
            )
        if base is not None and "final" in base.declaration.specifiers:
            raise cx.wrong(
                f"{name} of {type} overrides a function that is final in {base.owner}",
                declaration.span,
            )


def _refuse_other_result(cx: Context, method: Overload, base: Overload) -> None:
    """CompileError for a function whose result is not that of the function that it overrides, nor
    a pointer or reference to a class derived from what that points to."""
    try:
        mine, theirs = _result(cx, method), _result(cx, base)
    except (CompileError, NoLayout):  # a type of the host's library
        return
    if mine is None or theirs is None or _may_replace(mine, theirs):
        return
    raise cx.wrong(
        f"{method.declaration.name.text} returns {mine}, and the virtual function of {base.owner} "
        f"that it overrides returns {theirs}: give both one type",
        method.declaration.span,
    )


def _result(cx: Context, method: Overload) -> CppType | None:
    """The type that a function returns; None if it is deduced."""
    written = method.declaration.result
    if written is None or is_auto(written):
        return None
    with cx.in_scope(method.scope):
        return resolve(cx, written)


def _may_replace(mine: CppType, theirs: CppType) -> bool:
    """Whether a function with this result may override one with that: the same type, or covariant
    ones. What is not known of a class that is not complete may be so."""
    if not isinstance(mine, (Pointer, Reference)) or type(mine) is not type(theirs):
        return mine == theirs
    assert isinstance(theirs, (Pointer, Reference))
    own, other = mine.to, theirs.to
    if not isinstance(own, ClassType) or not isinstance(other, ClassType):
        return mine == theirs or Void in (type(own), type(other)) or str(mine) == str(theirs)
    if own.scope is None or other.scope is None:
        return True
    return (own == other or derives(own, other)) and (theirs.const or not mine.const)


def refuse_abstract(cx: Context, type: CppType, span: Span) -> None:
    """CompileError for an object of an abstract class."""
    if not isinstance(type, ClassType):
        return
    pure = pure_function(cx, type)
    if pure is not None:
        raise cx.wrong(
            f"{type} is abstract, so there are no objects of it: its virtual function "
            f"{pure.declaration.name.text} of line {pure.declaration.span.line} is pure",
            span,
        )


def derived_classes(cx: Context, base: ClassType) -> tuple[list[ClassType], bool]:
    """A class and all that derive from it, in the file and in the functions lowered so far; and
    whether these are all: instances of templates may be made in other kernels."""
    known, all_known = _classes_of_file(cx)
    found = {base.name: base}
    made = [one for one in cx.lowering.classes.values() if isinstance(one, ClassType)]
    for one in (*known, *made):
        if derives(one, base):
            found.setdefault(one.name, one)
    return list(found.values()), all_known


def _classes_of_file(cx: Context) -> tuple[list[ClassType], bool]:
    """The classes with virtual functions that the file declares, and whether all are known."""
    if cx.lowering.hierarchy is None:
        found: list[ClassType] = []
        templates: dict[str, DeclaredType] = {}
        scopes = file_names(cx.scope)
        for entity in scopes:
            if isinstance(entity, DeclaredType):
                _add_class(cx, entity, found, templates)
        if templates:
            _add_instances(cx, templates, found)
        cx.lowering.hierarchy = (found, not templates)
    return cx.lowering.hierarchy


def _add_class(
    cx: Context, entity: DeclaredType, found: list[ClassType], templates: dict[str, DeclaredType]
) -> None:
    declaration = entity.declaration
    if not isinstance(declaration, tree.StructDeclaration) or not declaration.complete:
        return
    if declaration.template is not None:
        if declaration.bases and not declaration.span.file.startswith("<"):
            templates[declaration.name] = entity
        return
    nested = any(isinstance(one, tree.StructDeclaration) for one in declaration.members)
    if not declaration.bases and not nested:
        return
    try:
        with cx.in_scope(entity.scope):
            type = cx.rules.class_type(cx, declaration, entity.scope)
    except (CompileError, NoLayout):  # it has no objects in kernels
        return
    assert isinstance(type, ClassType)
    if is_polymorphic(type):
        found.append(type)
    for inner in list(type.scope.names.values()) if nested else ():
        if isinstance(inner, DeclaredType) and inner.scope is type.scope:
            _add_class(cx, inner, found, templates)


def _add_instances(cx: Context, templates: dict[str, DeclaredType], found: list[ClassType]) -> None:
    """Add the instances of templates that the functions of the file name."""
    seen: set[tree.Name] = set()
    for entity in file_names(cx.scope):
        declarations = [one.declaration for one in getattr(entity, "overloads", ())]
        for node in walk_tree(tuple(declarations)):
            name = node.name if isinstance(node, tree.NamedType) else node
            if not isinstance(name, tree.Name) or not name.arguments or name.text not in templates:
                continue
            if name in seen:
                continue
            seen.add(name)
            try:
                with cx.in_scope(templates[name.text].scope):
                    type = resolve(cx, tree.NamedType(tree.Name(name.text, (), name.arguments)))
            except (CompileError, NoLayout):  # its arguments are those of another template
                continue
            if isinstance(type, ClassType) and is_polymorphic(type):
                found.append(type)


def holds_table(type: CppType) -> bool:
    """Whether objects of a class have virtual functions, or members that have."""
    return isinstance(type, ClassType) and (
        is_polymorphic(type)
        or any(holds_table(innermost(one.type)) for one in all_fields(type) if one.name != TABLE)
    )

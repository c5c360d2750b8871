"""The types of the file's classes and enums: fields and methods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.bit_fields import Declared, Layout, Unplaced, laid_out
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.dispatch import static_assert
from treadle.cuda_cpp.lower.fields import USED, has_field
from treadle.cuda_cpp.lower.hierarchy import refuse_abstract, refuse_wrong_overriders
from treadle.cuda_cpp.lower.names import (
    BEING_MADE,
    constant_integer,
    is_const,
    lookup,
    refuse_void,
    resolve,
    scope_of,
)
from treadle.cuda_cpp.lower.special_members import (
    CONSTRUCTORS,
    DESTRUCTOR,
    TABLE,
    UNREAD_CONSTRUCTOR,
    is_copy_constructor,
    is_of_one_instance,
    is_polymorphic,
)
from treadle.cuda_cpp.semantics.scopes import (
    SKIPPED,
    SPELLED,
    DeclaredType,
    Enumerator,
    Functions,
    HostEntity,
    Overload,
    Scope,
    TypeEntity,
    declare,
    out_of_line_methods,
)
from treadle.cuda_cpp.semantics.types import (
    DIM3,
    VECTORS,
    Absent,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    Field,
    Incomplete,
    NoLayout,
    Void,
    align_of,
    all_fields,
    holds_absent,
    holds_pointer,
    innermost,
    ir_type,
    size_of,
)
from treadle.cuda_cpp.source.headers import LIBRARIES
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.ir import types as ir


def class_type(
    cx: Context,
    declaration: tree.StructDeclaration,
    scope: Scope,
    *,
    name: str | None = None,
    arguments: tuple[Any, ...] = (),
    template: tree.StructDeclaration | None = None,
) -> ClassType | Incomplete:
    """The type of a class, or of an instance of a class template: then `scope` has the template
    arguments, and `template` is the entity of its name."""
    key = (id(declaration), arguments, _instance_around(scope))
    known = cx.lowering.classes.get(key)
    if known is not None:
        if known is _BEING_MADE:  # a pointer to it does not need its members
            incomplete = ClassType(
                scope.qualified(name or declaration.name), declaration=declaration
            )
            cx.lowering.incomplete[incomplete.name] = key
            return incomplete
        made: ClassType = known
        return made
    if not declaration.complete:
        written = name or declaration.name
        return Incomplete(scope.qualified(written) if template is None else written)
    cx.lowering.classes[key] = _BEING_MADE
    try:
        made = _make(cx, declaration, scope, name or declaration.name, arguments, template)
    except BaseException:
        del cx.lowering.classes[key]
        raise
    cx.lowering.classes[key] = made
    return made


def _instance_around(scope: Scope) -> int:
    """The identity of the function or of the instance of a template that a class is declared in: a
    member class of a template is another one in each instance. 0 if there is none."""
    around = scope.parent if scope.kind == "template" else scope
    outer = around
    while outer is not None:
        if outer.kind in ("function", "block", "template"):
            return id(around)
        outer = outer.parent
    return 0


_BEING_MADE: Any = object()
_MOST_FIELDS = 4096
_MOST_NESTED = 64
_MOST_ALIGNMENT = 4096


def _make(
    cx: Context,
    declaration: tree.StructDeclaration,
    scope: Scope,
    name: str,
    arguments: tuple[Any, ...],
    template: tree.StructDeclaration | None,
) -> ClassType:
    home = Scope(scope, declaration.name, "class")
    if template is not None:
        home.names[SPELLED] = name  # so that its member classes are A<4>::B
        again = partial(class_type, cx, declaration, scope)
        incomplete = partial(again, name=name, arguments=arguments, template=template)
        home.names[BEING_MADE] = (template, incomplete)
    members: list[Declared] = []
    with cx.in_scope(home):
        bases: list[ClassType] = []
        for written in declaration.bases:
            if isinstance(written, tree.PackExpansion):
                raise cx.wrong("the length of this pack of bases is not known", written.span)
            base = resolve(cx, written)
            if isinstance(base, Incomplete):
                skipped = cx.scope.find(f"{SKIPPED}{written.name.text}") is not None
                raise (cx.error if skipped else cx.wrong)(
                    f"{base} is declared, but not defined: it cannot be a base", written.span
                )
            if not isinstance(base, ClassType):
                raise cx.wrong(f"{base} is not a class, so it cannot be a base", written.span)
            _refuse_wrong_base(cx, base, bases, declaration, written.span)
            if bases and is_polymorphic(base):
                raise cx.error(refusal_message("virtual"), written.span)
            bases.append(base)
            home.using_directives.append(base.scope)
        home.names["<bases>"] = tuple(bases)
        if not any(map(is_polymorphic, bases)) and any(map(_is_virtual, declaration.members)):
            members.append(Declared(TABLE, VECTORS["uint2"]))
        # Member types are declared before fields, which may have them.
        for member in declaration.members:
            if not _is_field(member):
                _declare_member(member, home)
        for member in declaration.members:
            if _is_field(member):
                _add_field(cx, member, members)
        alignment = 0
        if declaration.alignment is not None:
            alignment = _alignment(cx, name, declaration.alignment, declaration.span)
    layout = _layout(cx, declaration, members, bases)
    type = ClassType(
        scope.qualified(name or _unnamed(declaration)) if template is None else name,
        _with_own_names(layout.fields, bases),
        tuple(bases),
        declaration.kind == "union",
        max(alignment, layout.alignment),
        layout.bits,
        layout.names,
        None if layout.bits else declaration.packing,
        home,
        arguments,
        template or declaration,
        declaration,
    )
    if _is_vast(type):
        raise cx.error(
            f"{type} has more than {_MOST_FIELDS:,} fields, or {_MOST_NESTED} nested classes: "
            "use arrays",
            declaration.span,
        )
    if not holds_absent(type):
        _refuse_unaligned(cx, declaration, type)
        if bases and type.fields and not holds_pointer(type) and not is_polymorphic(type):
            _refuse_shared_padding(cx, declaration, type)
    home.names.pop(BEING_MADE, None)
    home.names["<class>"] = type
    home.names.setdefault(declaration.name, TypeEntity(type))
    _own_methods(cx, declaration, scope, home, type, template)
    if any(map(is_polymorphic, bases)) or any(map(_must_override, declaration.members)):
        refuse_wrong_overriders(cx, type)
    _add_used(cx, declaration, home)
    for member in declaration.members:
        if isinstance(member, tree.StaticAssert):
            with cx.in_scope(home):
                static_assert(cx, member)
    return type


def _refuse_wrong_base(
    cx: Context,
    base: ClassType,
    others: Sequence[ClassType],
    declaration: tree.StructDeclaration,
    span: Span,
) -> None:
    """CompileError for a class that cannot be a base of another one."""
    reason = ""
    if base.scope is None and base.declaration is declaration:
        reason = "is the class itself"
    elif base.is_union:
        reason = "is a union"
    elif base in others:
        reason = "is a base already"
    elif base.declaration is not None and base.declaration.final:
        reason = "is final"
    if reason:
        raise cx.wrong(f"{base} {reason}, so it cannot be a base", span)


def _refuse_unaligned(cx: Context, declaration: tree.StructDeclaration, type: ClassType) -> None:
    """CompileError for a member, of a packed class, at an address that its parts do not allow."""
    if holds_pointer(type):
        return
    for field in all_fields(type):
        inner = ir_type(field.type)
        if align_of(field.type) < ir.align_of(inner) and len(all_fields(type)) > 1:
            raise cx.error(refusal_message("packed"), declaration.span)


def _with_own_names(fields: Sequence[Field], bases: Sequence[ClassType]) -> tuple[Field, ...]:
    """The fields of a class, those with the name of a base's field under another name: in memory
    the fields of all bases are together."""
    taken = {field.name for base in bases for field in all_fields(base)}
    found = []
    for field in fields:
        name, number = field.name, 0
        while name in taken:
            number += 1
            name = f"{field.name}.{number}"
        found.append(field if name == field.name else replace(field, name=name))
    return tuple(found)


def _refuse_shared_padding(
    cx: Context, declaration: tree.StructDeclaration, type: ClassType
) -> None:
    """CompileError for a member that might be in the tail padding of a base: compilers differ in
    that."""
    struct = ir_type(type)
    assert isinstance(struct, ir.Struct)
    # An empty base takes no space, unless the first member has its type.
    bases = [base for base in type.bases if all_fields(base) or base == type.fields[0].type]
    if ir.field_offset(struct, type.fields[0].name) < sum(map(size_of, bases)):
        raise cx.error(refusal_message("base_padding"), declaration.span)


def _is_vast(type: ClassType) -> bool:
    """Whether a class has too many fields, counted through all members: types are compared by their
    fields."""
    waiting: list[tuple[CppType, int]] = [(type, 1)]
    count = 0
    while waiting:
        one, depth = waiting.pop()
        inner = innermost(one)
        if isinstance(inner, ClassType):
            count += len(inner.fields) + len(inner.bases)
            if count > _MOST_FIELDS or depth > _MOST_NESTED:
                return True
            waiting += [(field.type, depth + 1) for field in inner.fields]
            waiting += [(base, depth + 1) for base in inner.bases]
    return False


def _unnamed(declaration: tree.StructDeclaration) -> str:
    """A name for an unnamed struct, by its location."""
    return f"{declaration.kind}_of_line_{declaration.span.line}_{declaration.span.column}"


def _is_virtual(member: tree.Declaration) -> bool:
    return isinstance(member, tree.FunctionDeclaration) and "virtual" in member.specifiers


def _must_override(member: tree.Declaration) -> bool:
    return isinstance(member, tree.FunctionDeclaration) and (
        "override" in member.specifiers
        or (member.note == "pure" and "virtual" not in member.specifiers)
    )


def _is_field(member: tree.Declaration) -> bool:
    if isinstance(member, tree.VariableDeclaration):
        return "static" not in member.specifiers
    return isinstance(member, tree.StructDeclaration) and not member.name


def _declare_member(member: tree.Declaration, home: Scope) -> None:
    if isinstance(member, tree.HostCode) and member.what == "constructor":
        home.names.setdefault(UNREAD_CONSTRUCTOR, HostEntity(member))
        return
    if isinstance(member, tree.FunctionDeclaration):
        if "friend" in member.specifiers:
            _declare_friend(member, home)
            return
        name = member.name.text
        if name.startswith("~"):
            if member.note != "defaulted":
                known = home.names.setdefault(DESTRUCTOR, Functions(DESTRUCTOR))
                known.overloads.append(Overload(member, home))
            return
        if member.result is None and name == home.name:
            known = home.names.setdefault(CONSTRUCTORS, Functions(CONSTRUCTORS))
            known.overloads.append(Overload(member, home))
            return
    declare(member, home)


def _declare_friend(member: tree.FunctionDeclaration, home: Scope) -> None:
    """A friend belongs to the scope around the class; the body of one that is defined in the class
    sees the names of the class."""
    outer = home.parent or home
    declare(member, outer)
    known = outer.names.get(member.name.text)
    if isinstance(known, Functions) and (member.body is not None or member.note):
        known.overloads[-1] = replace(known.overloads[-1], scope=home)


def _add_field(cx: Context, member: tree.Declaration, members: list[Declared]) -> None:
    if isinstance(member, tree.StructDeclaration):  # anonymous: its members are found in this class
        name = f"anonymous{len(members)}"
        members.append(Declared(name, class_type(cx, member, cx.scope, name=name)))
        return
    assert isinstance(member, tree.VariableDeclaration)
    try:
        type = resolve(cx, member.type)
    except CompileError as error:
        if not _is_of_library(member.type):
            raise
        type = Absent(error.message, error)
    inner = innermost(type)
    if isinstance(inner, Incomplete) and _is_of_library(member.type):
        # The file declares `at::Tensor` itself, beside a header of the host's that defines it.
        message = f"{member.name} is a {inner}, which is of the host's library"
        inner = type = Absent(message, cx.error(message, member.span))
    if isinstance(inner, Void):
        refuse_void(cx, member.name, inner, member.span)
    if isinstance(inner, ClassType) and inner.scope is None and inner != DIM3:
        raise cx.wrong(f"{inner} contains itself: store an index of the other object", member.span)
    empty = isinstance(type, ClassType) and not all_fields(type) and not type.is_union
    if empty and "no_unique_address" in member.specifiers:
        raise cx.error(
            f"[[no_unique_address]] of {member.name}, an empty {type}, is not supported: leave it "
            "out, or make the class a base",
            member.span,
        )
    refuse_abstract(cx, inner, member.span)
    width = None
    if member.bits is not None:
        width = constant_integer(cx, member.bits, "the width of a bit field")
        if not isinstance(type, (Arithmetic, EnumType)) or not _may_have_bits(type):
            raise cx.wrong(f"{member.name} is a bit field of type {type}", member.span)
        if width < 0 or (width == 0 and member.name):
            raise cx.wrong(f"{member.name} has {width} bits", member.span)
    alignment = 0
    if member.alignment is not None:
        alignment = _alignment(cx, member.name, member.alignment, member.span)
        if width is not None:
            raise cx.wrong(f"{member.name} is a bit field, which has no alignment", member.span)
    members.append(Declared(member.name, type, width, _is_unsigned(cx, member.type), alignment))


def _alignment(cx: Context, name: str, written: tree.Expression, span: Span) -> int:
    """The bytes that a class or member is aligned to."""
    alignment = constant_integer(cx, written, "an alignment")
    if not 0 <= alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
        raise cx.wrong(
            f"{name} is aligned to {alignment} bytes: an alignment is a power of two of "
            f"{_MOST_ALIGNMENT} at most",
            span,
        )
    return alignment


def _is_unsigned(cx: Context, written: tree.TypeTree) -> bool:
    """Whether a type is an enum whose values are not negative: the compilers' choice for its bit
    fields is an unsigned type."""
    entity = lookup(cx, written.name) if isinstance(written, tree.NamedType) else None
    declaration = getattr(entity, "declaration", None)
    if not isinstance(declaration, tree.EnumDeclaration) or declaration.underlying is not None:
        return False
    assert isinstance(entity, DeclaredType)
    entries = [
        Enumerator(declaration, at, entity.scope) for at in range(len(declaration.enumerators))
    ]
    return all(int(cx.rules.enumerator(cx, one)[1].value) >= 0 for one in entries)


def _may_have_bits(type: Arithmetic | EnumType) -> bool:
    return isinstance(type, EnumType) or not type.scalar.is_float


def _layout(
    cx: Context,
    declaration: tree.StructDeclaration,
    members: Sequence[Declared],
    bases: Sequence[ClassType],
) -> Layout:
    """The fields of a class, with words for its bit fields."""
    inherited = ClassType("bases", bases=tuple(bases))
    start = 0
    if all_fields(inherited) and not holds_pointer(inherited):
        struct = ir_type(inherited)
        assert isinstance(struct, ir.Struct)
        last = all_fields(inherited)[-1]
        start = ir.field_offset(struct, last.name) + size_of(last.type)
    own = declaration.name or _unnamed(declaration)
    is_union = declaration.kind == "union"
    try:
        return laid_out(members, start, is_union, declaration.packing, own)
    except Unplaced as reason:
        raise cx.error(f"{reason}: {refusal_message('packed')}", declaration.span) from None


def _is_of_library(written: tree.TypeTree) -> bool:
    """Whether a type is named in the namespace of a library."""
    if isinstance(written, (tree.ConstType, tree.ArrayType)):
        return _is_of_library(written.of)
    name = written.name if isinstance(written, tree.NamedType) else None
    if name is None:
        return False
    if name.scope:
        return name.scope[0].text in ("std", *LIBRARIES)
    return _HANDLE.fullmatch(name.text) is not None


_HANDLE = re.compile(  # of the host's libraries: cudaStream_t, timeval
    r"cuda[A-Z]\w*_t|cu\w*Handle_t|CU\w+|timeval|timespec|timezone|tm|FILE|pthread_\w+|rusage|stat"
)


def _own_methods(
    cx: Context,
    declaration: tree.StructDeclaration,
    scope: Scope,
    home: Scope,
    type: ClassType,
    template: tree.StructDeclaration | None,
) -> None:
    """Set the owner of methods, and add those that are defined out of line."""
    for entity in home.names.values():
        if isinstance(entity, Functions):
            entity.overloads = [Overload(one.declaration, home, type) for one in entity.overloads]
    file = scope
    while file.kind == "template" and file.parent is not None:
        file = file.parent
    special: list[Overload] = []
    for method in out_of_line_methods(template or declaration, file):
        found = cx.rules.method_of_instance(cx, method.declaration, declaration, scope, home)
        if found is None:  # of another instance
            continue
        overload = Overload(found[0], found[1], type)
        name = overload.declaration.name.text
        name = _special_name(name, declaration.name)
        known = home.names.get(name)
        if not isinstance(known, Functions):
            known = home.names[name] = Functions(name)
        if is_of_one_instance(method.declaration, declaration):
            special.append(overload)
            continue
        same = [one for one in known.overloads if _may_define(overload, one)]
        if len(same) > 1:
            same = [one for one in same if _has_types_of(cx, one, overload)]
        # The declaration inside the class is the same function.
        taken = set(map(id, same))
        known.overloads = [one for one in known.overloads if id(one) not in taken]
        known.overloads.append(overload)
    for overload in special:
        name = overload.declaration.name.text
        known = home.names[_special_name(name, declaration.name)]
        types = _parameter_types(cx, overload)
        count = len(overload.declaration.parameters)
        known.overloads = [
            one
            for one in known.overloads
            if len(one.declaration.parameters) != count or _parameter_types(cx, one) != types
        ]
        known.overloads.append(overload)


def _may_define(defined: Overload, declared: Overload) -> bool:
    """Whether a method outside of its class may be the definition of a declaration in the class, by
    the number of its parameters."""
    one = declared.declaration
    count = len(defined.declaration.parameters)
    return one.body is None and not one.note and len(one.parameters) == count


def _has_types_of(cx: Context, one: Overload, other: Overload) -> bool:
    """Whether two methods have the same parameters, as far as that is known."""
    if one.declaration.const != other.declaration.const:
        return False
    try:
        types = _parameter_types(cx, other)
    except (CompileError, NoLayout):
        return True
    try:
        return types is None or _parameter_types(cx, one) in (None, types)
    except (CompileError, NoLayout):  # of the host's library
        return False


def _special_name(name: str, owner: str) -> str:
    """The name of a method in the scope of its class."""
    if name.startswith("~"):
        return DESTRUCTOR
    return CONSTRUCTORS if name == owner else name


def _add_used(cx: Context, declaration: tree.StructDeclaration, home: Scope) -> None:
    """Add the functions of bases that using-declarations name to the class's own of these names,
    except for those that these hide."""
    for member in declaration.members:
        if not isinstance(member, tree.UsingDeclaration) or member.namespace:
            continue
        own = home.names.get(member.name.text)
        with cx.in_scope(home):
            base = scope_of(cx, member.name.scope)
        used = None if base is None else base.own(member.name.text)
        names = [one.text for one in member.name.scope[-1:]]
        if base is not None and member.name.text in (base.name, *names):  # `using B::B`
            _inherit_constructors(base, home)
            continue
        if base is not None and not isinstance(used, Functions):
            _use_member(cx, base, member, used, home)
        if not isinstance(used, Functions):
            continue
        group = Functions(used.name)
        known: list[Any] = []
        for one in (*(own.overloads if isinstance(own, Functions) else ()), *used.overloads):
            key = (_parameter_types(cx, one), one.declaration.const)
            if key[0] is None or key not in known:
                known.append(key)
                group.overloads.append(one)
        home.names[member.name.text] = group


def _use_member(
    cx: Context, base: Scope, member: tree.UsingDeclaration, used: Any, home: Scope
) -> None:
    """Have `using B::x;` name a type or a field of a base: that of no other base."""
    name, of = member.name.text, base.names.get("<class>")
    if used is not None:
        home.names.setdefault(name, used)
    elif isinstance(of, ClassType):
        if not has_field(of, name):
            raise cx.amiss(f"{of} has no member {name}", member.span, of)
        home.names[f"{USED}{name}"] = of


def _inherit_constructors(base: Scope, home: Scope) -> None:
    """Add the constructors of a base (`using B::B`), which stay its own, except for copies."""
    inherited = base.names.get(CONSTRUCTORS)
    if not isinstance(inherited, Functions):
        return
    type = base.names["<class>"]
    own = home.names.get(CONSTRUCTORS)
    group = Functions(CONSTRUCTORS, list(own.overloads) if isinstance(own, Functions) else [])
    group.overloads += [
        one for one in inherited.overloads if not is_copy_constructor(one.declaration, type)
    ]
    home.names[CONSTRUCTORS] = group


def _parameter_types(cx: Context, method: Overload) -> tuple[CppType, ...] | None:
    """The types of a method's parameters; None for a template."""
    if method.declaration.template:
        return None
    with cx.in_scope(method.scope):
        return tuple(resolve(cx, one.type) for one in method.declaration.parameters)


def is_mutable(type: ClassType, name: str) -> bool:
    """Whether a field can be assigned to in a const object."""
    field = _field_declaration(type, name)
    return field is not None and "mutable" in field.specifiers


def is_const_field(type: ClassType, name: str) -> bool:
    """Whether a field is const, so that nothing but its initializer sets it."""
    field = _field_declaration(type, name)
    return field is not None and is_const(field.type)


def _field_declaration(type: ClassType, name: str) -> tree.VariableDeclaration | None:
    declaration = type.declaration
    members = declaration.members if isinstance(declaration, tree.StructDeclaration) else ()
    written = name.partition(".")[0]
    for member in members:
        if isinstance(member, tree.VariableDeclaration) and member.name == written:
            return member
    found = (_field_declaration(base, name) for base in type.bases)
    return next((one for one in found if one is not None), None)

"""Constructors: which one is called, and what it does to an object in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden_base, refuse_hidden_overload
from treadle.cuda_cpp.lower.arithmetic import constant, zero_of
from treadle.cuda_cpp.lower.assignment import (
    initialize,
)
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.builtin_calls import extents, vector
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.context import Context, Returns
from treadle.cuda_cpp.lower.conversions import convert, is_object, rvalue
from treadle.cuda_cpp.lower.dispatch import lower, type_of
from treadle.cuda_cpp.lower.evaluation_order import (
    arguments,
)
from treadle.cuda_cpp.lower.functions import (
    refuse_depth,
    with_defaults,
)
from treadle.cuda_cpp.lower.hierarchy import refuse_abstract, set_table
from treadle.cuda_cpp.lower.initializers import (
    fill,
    from_list,
    initialize_by_default,
    note_references,
    refer,
)
from treadle.cuda_cpp.lower.inlining import bind_argument, end_with_caller, run_body
from treadle.cuda_cpp.lower.lifetimes import temporary
from treadle.cuda_cpp.lower.names import lookup, named_type
from treadle.cuda_cpp.lower.overloads import resolve_overload, takes_list, viable
from treadle.cuda_cpp.lower.recursion import call_recursive, calls_itself
from treadle.cuda_cpp.lower.special_members import (
    UNREAD_CONSTRUCTOR,
    acts,
    callable_constructors,
    constructors_of,
    has_constructors,
    has_default_constructor,
    has_unread_constructor,
    lack_of_default,
    member_defaults,
    names_class,
    own_members,
    takes_nothing,
    written_name,
)
from treadle.cuda_cpp.lower.storage import construct_items, text_array, uninitialized
from treadle.cuda_cpp.lower.tree_analysis import assigned_names
from treadle.cuda_cpp.lower.usable import for_host, refuse_unusable
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    Braced,
    Candidate,
    Rvalue,
    SplitArray,
    Text,
    Value,
    is_prvalue,
    with_category,
)
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.const_members import unset_members
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.semantics.types import (
    DIM3,
    VOID,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    Field,
    Member,
    Pointer,
    Reference,
    VectorType,
    Void,
    holds_array,
    holds_pointer,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import types as ir


def unbraced(cx: Context, values: Sequence[Value], chosen: Candidate) -> list[Value]:
    """The arguments; a braced list initializes its parameter's type, and a string literal is an
    array for a reference to one."""
    found = list(values)
    for at, value in enumerate(found):
        if isinstance(value, Text) and at < len(chosen.types):
            type = chosen.types[at]
            if isinstance(type, Reference) and isinstance(type.to, ArrayOf):
                found[at] = text_array(cx, value, cx.span)
        if isinstance(value, Braced):
            type = chosen.types[at]
            wanted = type.to if isinstance(type, Reference) else type
            found[at] = from_list(cx, wanted, value.node, value.node.span)
    return found


def list_arguments(cx: Context, type: ClassType, node: tree.InitializerList) -> list[Value]:
    """A braced list as the argument of a constructor that takes a std::initializer_list, which is
    preferred to others ([over.match.list]); empty if none takes this one."""
    if not node.braces or (not node.items and has_default_constructor(type)):
        return []
    taking = [one for one in callable_constructors(type) if takes_list(one.declaration)]
    only = node.items[0] if len(node.items) == 1 else None
    if not taking or (isinstance(only, tree.EXPRESSIONS) and type_of(cx, only) == type):
        return []
    listed: list[Value] = [Braced(node)]
    return listed if viable(cx, taking, listed, None, cx.span)[0] else []


def constructed_from(
    cx: Context, type: CppType, values: Sequence[Value]
) -> Sequence[CppType | None]:
    """The types of the constructor's parameters for a `type` that these values initialize."""
    if isinstance(type, VectorType):
        return [type.element] * len(values)
    if isinstance(type, ClassType) and has_constructors(type) and type != DIM3:
        overloads = callable_constructors(type)
        fits = viable(cx, overloads, values, None, cx.span)
        if fits[0]:
            chosen = resolve_overload(cx, type.name, overloads, values, None, cx.span, asked=fits)
            return chosen.types
    return ()


def construct(cx: Context, type: CppType, values: Sequence[Value], span: Span) -> Value:
    """`T(a, b)`"""
    if type == DIM3:
        return extents(cx, values, span)
    if isinstance(type, VectorType):
        return vector(cx, type, values, span)
    if isinstance(type, ClassType):
        refuse_abstract(cx, type, span)
        if not values and not has_constructors(type):
            return from_list(cx, type, tree.InitializerList((), (), span), span)
        if len(values) == 1 and getattr(values[0], "type", None) == type:
            return copied(cx, values[0], type, span)
        if not has_constructors(type):
            if len(values) == 1 and isinstance(values[0], Braced):
                return from_list(cx, type, values[0].node, span)
            if len(values) == 1 and isinstance(getattr(values[0], "type", None), ClassType):
                return convert(cx, values[0], type, span)
            raise cx.amiss(f"{type} has no constructor: use {type}{{…}} for its fields", span, type)
        if len(values) == 1 and isinstance(values[0], Braced):  # T({a, b}): a copy of T{a, b}
            overloads = callable_constructors(type)
            if not viable(cx, overloads, values, None, span)[0]:
                return from_list(cx, type, values[0].node, span)
        cx.calls += 1
        place = uninitialized(cx, "made", type, (cx.path, "made", cx.calls), span)
        run_constructor(cx, place, type, values, span)
        made: Value = temporary(cx, place, type)
        return made
    if isinstance(type, (ArrayOf, Void)) or len(values) > 1:
        raise cx.wrong(f"{type} cannot be constructed from {len(values)} values", span)
    if not values:
        if isinstance(type, Pointer):
            return convert(cx, Rvalue(constant(0, ir.I32), VOID, literal_zero=True), type, span)
        return Rvalue(zero_of(ir_type(type), span), type)
    return explicit_cast(cx, values[0], type, "c", span)


def copied(cx: Context, value: Value, type: ClassType, span: Span) -> Value:
    """A copy of an object as a prvalue, which may be changed, as by `V(v) += w`. One that holds
    pointers and is copied as it is stays the object: only its value is read."""
    if is_prvalue(value) or not is_object(value):
        return value
    if not acts(type):
        if holds_pointer(type):
            return value
        if not holds_array(type):
            return rvalue(cx, value, span)
    cx.calls += 1
    place = uninitialized(cx, "copy", type, (cx.path, "copy", cx.calls), span)
    cx.rules.copy_into(cx, place, value, type, span)
    made: Value = temporary(cx, place, type)
    return made


def has_converting_constructor(cx: Context, value: Value, type: ClassType) -> bool:
    """Whether `type` has a converting constructor for the value."""
    usable = [
        one
        for one in constructors_of(type)
        if "explicit" not in one.declaration.specifiers and one.declaration.parameters
    ]
    direct = []
    for one in usable:
        written = one.declaration.parameters[0].type
        if one.declaration.template or not _is_own(written, type):
            direct.append(one)
    if not direct or cx.lowering.converting:
        return False
    cx.lowering.converting = True
    try:
        return bool(viable(cx, direct, [value], None, cx.span)[0])
    finally:
        cx.lowering.converting = False


def _is_own(written: tree.TypeTree, type: ClassType) -> bool:
    """Whether a parameter has the type of the class, as that of a copy constructor."""
    declaration = type.template
    own = declaration.name if isinstance(declaration, tree.StructDeclaration) else type.name
    return names_class(written, own)


def run_constructor(
    cx: Context, place: Value, type: ClassType, values: Sequence[Value], span: Span
) -> None:
    """Initialize an object in its place by a constructor."""
    if len(values) == 1 and getattr(values[0], "type", None) == type:
        initialize(cx, place, values[0], span)
        return
    if type == DIM3:
        initialize(cx, place, extents(cx, values, span), span)
        return
    overloads = callable_constructors(type)
    if not values and not any(takes_nothing(one.declaration) for one in overloads):
        if reason := lack_of_default(type):
            raise cx.wrong(f"{type} is made without arguments: {reason}", span)
        _initialize_parts(cx, cx, (), type, place, span)
        return
    if has_unread_constructor(type) and not viable(cx, overloads, values, None, span)[0]:
        entity = type.scope.names[UNREAD_CONSTRUCTOR]
        line = entity.code.span.line
        raise cx.error(for_host(f"the constructor of {type} in line {line}"), span)
    chosen = resolve_overload(cx, type.name, overloads, values, None, span)
    run_chosen(cx, place, type, chosen, unbraced(cx, values, chosen), span)


def run_chosen(
    cx: Context,
    place: Value,
    type: ClassType,
    chosen: Candidate,
    values: Sequence[Value],
    span: Span,
) -> None:
    """Run the constructor that overload resolution selected."""
    owner = chosen.overload.owner
    if isinstance(owner, ClassType) and owner != type and derives(type, owner):  # inherited
        base = next(one for one in type.bases if one == owner or derives(one, owner))
        part = as_base(cx, place, base, span)
        with cx.in_scope(type.scope):  # as in a member of the class
            run_chosen(cx, part, base, chosen, values, span)
        note_references(place, part)
        _initialize_parts(cx, cx, (), type, place, span, base)
        return
    declaration = chosen.declaration
    refuse_unusable(cx, chosen.overload, span)
    refuse_hidden_overload(cx, chosen.overload, span)
    for unset in unset_members(declaration, type.declaration):
        raise cx.wrong(unset.message, unset.span)
    for wanted, value in zip(chosen.types, values, strict=False):
        refuse_hidden_base(cx, value, wanted, span)
    instance = (id(declaration), type.arguments)
    arguments = with_defaults(cx, chosen, values)
    place = with_category(place, "lvalue")
    recursive = calls_itself(cx, instance)
    if recursive is None:
        return
    if recursive:

        def lower_body(inner: Context) -> None:
            assert inner.this is not None
            _run_parts(inner, inner, declaration, type, inner.this, span)

        call_recursive(cx, chosen, arguments, place, VOID, instance, span, lower_body)
        return
    refuse_depth(cx, declaration, instance, span)
    cx.calls += 1
    inner = Context(
        cx.lowering,
        Scope(chosen.scope, type.name, "function"),
        path=(*cx.path, (instance, cx.calls)),
        returns=Returns(VOID),
        this=place,
        depth=cx.depth + 1,
        name=declaration.name.text,
        isolated=cx.isolated,
    )
    inner.memories = cx.memories
    inner.recursion = cx.recursion
    inner.blocks = [cx.blocks[-1]]
    inner.span = span
    assigned = assigned_names(cx, declaration)
    for parameter, kind, value in zip(
        declaration.parameters, chosen.types, arguments, strict=False
    ):
        bind_argument(inner, parameter, kind, value, assigned, span)
    end_with_caller(cx, inner)
    _run_parts(cx, inner, declaration, type, place, span)


def _run_parts(
    cx: Context,
    inner: Context,
    declaration: tree.FunctionDeclaration,
    type: ClassType,
    place: Value,
    span: Span,
) -> None:
    """What a constructor does, in its context `inner`: to bases and members, then its body."""
    written = declaration.initializers
    if any(_is_delegated(name, type) for name, _ in written):
        run_initializers(inner, declaration, type, place)
    else:
        _initialize_parts(cx, inner, written, type, place, span)
    run_body(inner, declaration, span)


_Initializers = Sequence[tuple[tree.Name, tree.InitializerList]]


def _initialize_parts(
    cx: Context,
    inner: Context,
    written: _Initializers,
    type: ClassType,
    place: Value,
    span: Span,
    inherited: ClassType | None = None,
) -> None:
    """Initialize the bases and then the members, in the order of their declarations, whatever the
    order of the mem-initializers is. One without a mem-initializer has its default member
    initializer or its default constructor. `inherited` is a base that is initialized already."""
    bases = [(_named_base(inner, name, type.bases), name, items) for name, items in written]
    for base in type.bases:
        own = [(name, items) for one, name, items in bases if one == base]
        if own:
            with inner.lifetime():
                _base_initializer(inner, own[0][0], own[0][1], type, place)
        elif base != inherited and has_default_constructor(base):
            with cx.in_scope(type.scope):
                _construct_base(cx, place, base, [], span)
    set_table(cx, place, type, span)
    members = _members_by_name(type)
    left = {name.text: (name, items) for base, name, items in bases if base is None}
    whole = not (type.is_union and left)  # a union has one member, which may be chosen by now
    for member in own_members(type):
        mine = [text for text in left if _is_in(member, text)]
        for text in mine:
            name, items = left.pop(text)
            with inner.lifetime():
                _run_initializer(inner, members.get(text), name, items, type, place)
        if not mine and whole:
            with cx.in_scope(type.scope):
                _initialize_by_default(cx, place, type, member, span)
    for name, items in left.values():
        _run_initializer(inner, members.get(name.text), name, items, type, place)


def _is_in(member: Member, name: str) -> bool:
    """Whether a name is that of a member, or of one in an anonymous union or struct."""
    if written_name(member) == name:
        return True
    anonymous = member.name.startswith("anonymous") and isinstance(member.type, ClassType)
    return anonymous and name in _members_by_name(member.type)  # type: ignore[arg-type]


def _initialize_by_default(
    cx: Context, place: Value, type: ClassType, member: Member, span: Span
) -> None:
    """Initialize a member without a mem-initializer."""
    initializer = member_defaults(type).get(member.name)
    owner = innermost(member.type)
    if initializer is not None:
        initialize_by_default(cx, place, type, member, initializer, span)
    elif (
        isinstance(owner, ClassType) and not type.is_union and has_default_constructor(owner)
    ):  # a union begins without a member
        part = cx.rules.member_of(cx, place, tree.Name(member.name), span)
        if isinstance(part, (ArrayValue, SplitArray)):
            assert isinstance(part.type, ArrayOf)
            construct_items(cx, part, part.type, span)
        else:
            run_constructor(cx, part, owner, [], span)


def run_initializers(
    cx: Context, declaration: tree.FunctionDeclaration, type: ClassType, place: Value
) -> None:
    """Run the mem-initializers of a constructor: `: x(a), y{b}`."""
    names = _members_by_name(type)
    for name, written in declaration.initializers:
        with cx.lifetime():
            _run_initializer(cx, names.get(name.text), name, written, type, place)


def refuse_left_out(
    cx: Context, declaration: tree.FunctionDeclaration, type: ClassType, span: Span
) -> None:
    """CompileError for a base or member that a constructor leaves to a default constructor which
    its class does not have."""
    names = [name for name, _ in declaration.initializers]
    if any(_is_delegated(name, type) for name in names) or type.is_union:
        return
    named = [_named_base(cx, name, type.bases) for name in names]
    texts = {name.text for name in names}
    parts = [("the base ", str(base), base) for base in type.bases if base not in named]
    defaults = member_defaults(type)
    for one in own_members(type):
        owner, name = innermost(one.type), written_name(one)
        given = name in texts or one.name in defaults or name.startswith("anonymous")
        if isinstance(owner, ClassType) and not given:
            parts.append(("the member ", name, owner))
    for what, name, owner in parts:
        if reason := lack_of_default(owner):
            raise cx.amiss(f"this constructor gives {what}{name} no value: {reason}", span, owner)


def _members_by_name(type: ClassType) -> dict[str, Member]:
    """The members that a class declares, with those of its anonymous unions and structs."""
    found: dict[str, Member] = {}
    for one in own_members(type):
        if one.name.startswith("anonymous") and isinstance(one.type, ClassType):
            found |= _members_by_name(one.type)
        found[written_name(one)] = one
    return found


def _run_initializer(
    cx: Context,
    field: Member | None,
    name: tree.Name,
    written: tree.InitializerList,
    type: ClassType,
    place: Value,
) -> None:
    if field is None:
        _base_initializer(cx, name, written, type, place)
        return
    if isinstance(field.type, Reference):
        assert isinstance(field, Field)
        refer(cx, place, field, tree.InitializerList(written.items), name.span)
        return
    part = cx.rules.member_of(cx, place, tree.Name(field.name), name.span)
    items = written.items
    owner = field.type if isinstance(field.type, ClassType) else None
    owner = owner if owner is not None and has_constructors(owner) else None
    if owner is not None and (listed := list_arguments(cx, owner, written)):
        run_constructor(cx, part, owner, listed, name.span)
        return
    if len(items) == 1 and not _is_of_parts(cx, field.type, items[0]):
        value = lower(cx, items[0])
        if isinstance(field.type, ClassType) and getattr(value, "type", None) != field.type:
            value = construct(cx, field.type, [value], name.span)
        initialize(cx, part, value, name.span)
    elif owner is not None:
        run_constructor(cx, part, owner, arguments(cx, items, owner), name.span)
    else:
        fill(cx, part, field.type, tree.InitializerList(items, written.names), name.span)


def _is_of_parts(cx: Context, type: CppType, written: Any) -> bool:
    """Whether the only value for a member is a list, or the first element of an array: `a{x}`."""
    if isinstance(written, tree.InitializerList):
        return True
    return isinstance(type, ArrayOf) and isinstance(type_of(cx, written), Arithmetic)


def _is_delegated(name: tree.Name, type: ClassType) -> bool:
    """Whether a mem-initializer calls another constructor of the class."""
    own = _own_name(type)
    return name.text == own and name.arguments is None and own not in map(_own_name, type.bases)


def _construct_base(
    cx: Context, place: Value, base: ClassType, values: Sequence[Value], span: Span
) -> None:
    """Run a constructor of a base, or of the class itself, on an object."""
    part = as_base(cx, place, base, span)
    run_constructor(cx, part, base, values, span)
    note_references(place, part)


def _own_name(type: ClassType) -> str:
    """The name of a class in its own scope."""
    declaration = type.template
    return declaration.name if isinstance(declaration, tree.StructDeclaration) else type.name


def _base_initializer(
    cx: Context, name: tree.Name, written: tree.InitializerList, type: ClassType, place: Value
) -> None:
    base = _named_base(cx, name, (*type.bases, type))
    if base is None:
        raise cx.wrong(f"{type} has no field or base {name.text}", name.span)
    if base == type or has_constructors(base):
        values = list_arguments(cx, base, written) or arguments(cx, written.items, base)
        _construct_base(cx, place, base, values, name.span)
    else:
        _fill_base(cx, place, base, written.items, name.span)


def _named_base(cx: Context, name: tree.Name, candidates: Sequence[ClassType]) -> ClassType | None:
    """The class of these that a mem-initializer names, maybe by a typedef; None if it names a
    field."""
    entity = lookup(cx, name)
    given = (
        named_type(cx, name, name.span) if isinstance(entity, (DeclaredType, TypeEntity)) else None
    )
    for one in candidates:
        if one == given or (name.arguments is None and _own_name(one) == name.text):
            return one
    return None


def _fill_base(
    cx: Context, place: Value, base: ClassType, written: Sequence[Any], span: Span
) -> None:
    """Initialize a base without constructors: by a copy, or by its fields in braces; `A()` makes
    zeros."""
    part = as_base(cx, place, base, span)
    first = written[0] if written else None
    if len(written) == 1 and not isinstance(first, tree.InitializerList):
        given = type_of(cx, first)
        if isinstance(given, ClassType):  # a copy
            value = lower(cx, first)
            of_derived = derives(given, base)
            value = as_base(cx, value, base, span) if of_derived else convert(cx, value, base, span)
            initialize(cx, part, value, span)
            return
    elif (
        isinstance(first, tree.InitializerList)
        and len(written) == 1
        and not _begins_with_parts(base)
    ):  # `A({1, 2})`
        written = first.items
    fill(cx, part, base, tree.InitializerList(tuple(written), ()), span)
    note_references(place, part)


def _begins_with_parts(type: ClassType) -> bool:
    """Whether the first field of a class has parts of its own."""
    return bool(type.bases) or (
        bool(type.fields) and isinstance(type.fields[0].type, (ClassType, ArrayOf))
    )

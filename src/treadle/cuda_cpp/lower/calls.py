"""Calls: of functions, methods, operators, constructors and conversions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.arithmetic import constant, zero_of
from treadle.cuda_cpp.lower.builtin_calls import extents, vector
from treadle.cuda_cpp.lower.closures import this_object
from treadle.cuda_cpp.lower.context import Context, Returns
from treadle.cuda_cpp.lower.conversions import (
    as_base,
    convert,
    derives,
    explicit_cast,
    is_object,
    rvalue,
    underlying,
)
from treadle.cuda_cpp.lower.dispatch import lower, type_of
from treadle.cuda_cpp.lower.evaluation_order import (
    OBJECT,
    Operands,
    arguments,
    operands_of,
    snapshot,
    with_fixed_place,
)
from treadle.cuda_cpp.lower.function_pointers import call_pointer
from treadle.cuda_cpp.lower.functions import (
    call_function,
    refuse_depth,
    with_defaults,
)
from treadle.cuda_cpp.lower.initializers import fill, from_list, initialize_by_default, refer
from treadle.cuda_cpp.lower.inlining import bind_argument, end_with_caller, inline, run_body
from treadle.cuda_cpp.lower.lifetimes import temporary
from treadle.cuda_cpp.lower.names import is_const, lookup, named_type, resolve
from treadle.cuda_cpp.lower.operators import initialize
from treadle.cuda_cpp.lower.overloads import resolve_overload, viable
from treadle.cuda_cpp.lower.pointers import example_of, pointer_of
from treadle.cuda_cpp.lower.recursion import call_recursive, calls_itself
from treadle.cuda_cpp.lower.special_members import (
    acts,
    constructors_of,
    has_constructors,
    has_default_constructor,
    member_defaults,
    members_of,
    written_name,
)
from treadle.cuda_cpp.lower.storage import construct_items, declare_object, uninitialized
from treadle.cuda_cpp.lower.tree_analysis import assigned_names
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    Braced,
    Candidate,
    FunctionSet,
    FunctionTarget,
    PointerValue,
    Rvalue,
    SplitStruct,
    TypeValue,
    Value,
    VoidValue,
    describe,
    is_prvalue,
    with_category,
)
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    Functions,
    Overload,
    Scope,
    TypeEntity,
    functions_in_namespaces,
)
from treadle.cuda_cpp.semantics.types import (
    DIM3,
    VOID,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    Field,
    FunctionOf,
    Member,
    Pointer,
    Reference,
    VectorType,
    Void,
    decay,
    holds_array,
    holds_pointer,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import types as ir


def call(cx: Context, node: tree.Call) -> Value:
    """`function(arguments)`"""
    if node.launch:
        return cx.rules.launch(cx, node)
    span = node.function.span
    if isinstance(node.function, tree.Member) and node.function.name.text.startswith("~"):
        return _call_destructor(cx, node.function)
    if isinstance(node.function, tree.Member) and node.function.name.text == "operator ()":
        converted = _call_conversion(cx, node.function)
        if converted is not None:
            return converted
    operands = None
    if _may_be_found_by_arguments(cx, node.function):
        operands = operands_of(cx, node.arguments)
    function = _by_arguments(node, operands) or lower(cx, node.function)
    if isinstance(function, TypeValue):
        return _construct_call(cx, function.type, node, span)
    if not isinstance(function, FunctionSet):
        pointer = pointer_of(cx, function)
        if pointer is not None and isinstance(pointer.to, FunctionOf):
            return _call_pointer(cx, pointer, node)
        made = _call_object(cx, function, node)
        if made is not None:
            return made
        raise cx.unfit(f"{describe(function)} cannot be called", function, span)
    operands = operands or operands_of(cx, node.arguments)
    if function.builtin:
        values = operands.emit(cx)
        return builtin_names.call_with(cx, function.name, values, node, function.arguments)
    values = operands.values
    found, _ = viable(cx, function.overloads, values, function.arguments, span)
    if not found and builtin_names.is_function(function.name):  # another overload is built in
        if cx.is_in_template():  # a template that is checked by itself: it may be one of these
            raise cx.error(f"which {function.name} is called is not known here", span)
        return builtin_names.call_with(cx, function.name, operands.emit(cx), node)
    chosen = resolve_overload(
        cx, function.name, function.overloads, values, function.arguments, span, function.receiver
    )
    receiver = _receiver(cx, function, operands)
    values = operands.emit(cx, lambda: chosen.types)
    return call_chosen(cx, chosen, _unbraced(cx, values, chosen), receiver, span)


def _call_destructor(cx: Context, node: tree.Member) -> Value:
    """`object.~T()`"""
    base = tree.Unary("*", node.base, node.span) if node.arrow else node.base
    value = with_fixed_place(cx, lower(cx, base), node.span)
    type = getattr(value, "type", None)
    if isinstance(type, ClassType):
        cx.rules.destroy(cx, value, type, node.span)
    return VoidValue(VOID)


def _call_conversion(cx: Context, node: tree.Member) -> Value | None:
    """`x.operator T()` of a type that is a class only in CUDA, such as half; None of a class."""
    if node.arrow or isinstance(type_of(cx, node.base), ClassType) or not node.name.arguments:
        return None
    target = node.name.arguments[0]
    assert isinstance(target, tree.TYPES)
    return explicit_cast(cx, lower(cx, node.base), resolve(cx, target), "c", node.span)


def _call_pointer(cx: Context, pointer: PointerValue, node: tree.Call) -> Value:
    """A call through a pointer to functions."""
    span = node.function.span
    type = pointer.to
    assert isinstance(type, FunctionOf)
    values = operands_of(cx, node.arguments).emit(cx, lambda: type.parameters)

    def one_of(target: FunctionTarget, values: Sequence[Value]) -> Value:
        chosen = target.candidate
        if chosen is None:
            return builtin_names.call_with(cx, target.key, values, node)
        return call_chosen(cx, chosen, _unbraced(cx, values, chosen), None, span)

    return call_pointer(cx, pointer, values, one_of, span)


def _by_arguments(node: tree.Call, operands: Operands | None) -> FunctionSet | None:
    """The functions of this name in the namespaces of the arguments' classes (argument-dependent
    lookup), for names that neither the scope nor the namespaces around it declare."""
    name = node.function
    if operands is None or not isinstance(name, tree.Name):
        return None
    found: dict[int, Overload] = {}
    for value in operands.values:
        type = decay(getattr(value, "type", VOID))
        type = type.to if isinstance(type, Pointer) else type
        scope = type.scope.parent if isinstance(type, ClassType) and type.scope else None
        while scope is not None and scope.kind != "namespace":
            scope = scope.parent
        group = None if scope is None else scope.names.get(name.text)
        if isinstance(group, Functions):
            found |= {id(one.declaration): one for one in group.overloads}
    return (
        FunctionSet(name.text, tuple(found.values()), arguments=name.arguments) if found else None
    )


def _may_be_found_by_arguments(cx: Context, name: Any) -> bool:
    """Whether an unqualified name is not declared here, but in a namespace of the file."""
    if not isinstance(name, tree.Name) or name.scope or cx.scope.find(name.text) is not None:
        return False
    if cx.lowering.in_namespaces is None:
        cx.lowering.in_namespaces = functions_in_namespaces(cx.scope)
    return name.text in cx.lowering.in_namespaces


def _call_object(cx: Context, function: Value, node: tree.Call) -> Value | None:
    """`object(arguments)`: the object is evaluated before the arguments."""
    given = operands_of(cx, node.arguments)
    operands = Operands([function, *given.values], [[], *given.blocks])
    span = node.function.span
    made = operator_call(cx, "()", operands, span)
    type = getattr(function, "type", None)
    if made is None and isinstance(type, ClassType) and type.scope is not None:
        known = type.scope.own("operator()")
        if isinstance(known, Functions):  # none is viable, which is said here
            resolve_overload(cx, "operator()", known.overloads, given.values, None, span)
    return made


def _receiver(cx: Context, function: FunctionSet, operands: Operands) -> Value | None:
    """The object that a method is called on, which is evaluated before the arguments."""
    if function.receiver is None:
        return None
    receiver: Value = snapshot(cx, function.receiver, OBJECT, operands.effects, cx.span)
    return receiver


def _unbraced(cx: Context, values: Sequence[Value], chosen: Candidate) -> list[Value]:
    """The arguments; a braced list initializes its parameter's type."""
    found = list(values)
    for at, value in enumerate(found):
        if isinstance(value, Braced):
            type = chosen.types[at]
            wanted = type.to if isinstance(type, Reference) else type
            found[at] = from_list(cx, wanted, value.node, value.node.span)
    return found


def call_chosen(
    cx: Context, chosen: Candidate, values: Sequence[Value], receiver: Value | None, span: Span
) -> Value:
    """A call of the function that overload resolution selected."""
    if chosen.overload.owner is None or "static" in chosen.declaration.specifiers:
        receiver = None
    elif receiver is None:
        receiver = this_object(cx)
        name = chosen.declaration.name.text
        if receiver is None and not _may_lack_object(chosen.overload.owner, name):
            raise cx.wrong(
                f"{name} is called on an object of {chosen.overload.owner}: name one, as in "
                f"object.{name}(…)",
                span,
            )
    elif receiver is not None:
        receiver = _as_object(cx, receiver, span)
    if receiver is not None and chosen.overload.owner is not None:
        receiver = as_base(cx, receiver, chosen.overload.owner, span)
    return call_function(cx, chosen, values, receiver, span)


def _may_lack_object(owner: Any, name: str) -> bool:
    """Whether a function of a class may be called without an object: it may be declared static in
    the class and defined outside of it, or belong to a lambda without captures."""
    declaration = owner.declaration if isinstance(owner, ClassType) else None
    return not isinstance(declaration, tree.StructDeclaration) or any(
        isinstance(one, tree.FunctionDeclaration)
        and one.name.text == name
        and "static" in one.specifiers
        for one in declaration.members
    )


def _as_object(cx: Context, receiver: Value, span: Span) -> Value:
    """The object that a method is called on: a prvalue becomes a variable of its own."""
    if isinstance(receiver, Rvalue):
        cx.calls += 1
        key = (cx.path, "object", cx.calls)
        made: Value = declare_object(cx, "object", receiver.type, key, receiver, span)
        return made
    return with_fixed_place(cx, receiver, span)


def constructed_from(
    cx: Context, type: CppType, values: Sequence[Value]
) -> Sequence[CppType | None]:
    """The types of the constructor's parameters for a `type` that these values initialize."""
    if isinstance(type, VectorType):
        return [type.element] * len(values)
    if isinstance(type, ClassType) and has_constructors(type) and type != DIM3:
        overloads = [one for one in constructors_of(type) if not one.declaration.note]
        found, _ = viable(cx, overloads, values, None, cx.span)
        if found:
            return resolve_overload(cx, type.name, overloads, values, None, cx.span).types
    return ()


# --- constructors --------------------------------------------------------------------------------


def _construct_call(cx: Context, type: CppType, node: tree.Call, span: Span) -> Value:
    values = arguments(cx, node.arguments, type)
    if len(values) == 1 and not isinstance(type, (ClassType, VectorType)):
        return explicit_cast(cx, values[0], type, "c", span)
    return construct(cx, type, values, span)


def construct(cx: Context, type: CppType, values: Sequence[Value], span: Span) -> Value:
    """`T(a, b)`"""
    if type == DIM3:
        return extents(cx, values, span)
    if isinstance(type, VectorType):
        return vector(cx, type, values, span)
    if isinstance(type, ClassType):
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
            overloads = [one for one in constructors_of(type) if not one.declaration.note]
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
    while isinstance(written, (tree.ConstType, tree.ReferenceType)):
        written = written.of if isinstance(written, tree.ConstType) else written.to
    if not isinstance(written, tree.NamedType):
        return False
    declaration = type.template
    own = declaration.name if isinstance(declaration, tree.StructDeclaration) else type.name
    return written.name.text == own


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
    overloads = [one for one in constructors_of(type) if not one.declaration.note]
    if not overloads or (not values and not _takes_nothing(overloads)):
        _default_parts(cx, place, type, frozenset(), span)
        return
    chosen = resolve_overload(cx, type.name, overloads, values, None, span)
    run_chosen(cx, place, type, chosen, _unbraced(cx, values, chosen), span)


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
        _construct_base(cx, place, owner, values, span)
        _default_parts(cx, place, type, frozenset({_own_name(owner)}), span)
        return
    declaration = chosen.declaration
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
    assigned = assigned_names(cx, _with_body(declaration))
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
    given = frozenset(name.text for name, _ in declaration.initializers)
    if not any(_is_delegated(name, type) for name, _ in declaration.initializers):
        _default_parts(cx, place, type, given, span)
    run_initializers(inner, declaration, type, place)
    run_body(inner, _with_body(declaration), span)


def _takes_nothing(overloads: Sequence[Overload]) -> bool:
    return any(all(p.default is not None for p in one.declaration.parameters) for one in overloads)


def _with_body(declaration: tree.FunctionDeclaration) -> tree.FunctionDeclaration:
    if declaration.body is not None:
        return declaration
    return replace(declaration, body=tree.Compound(()))


def _default_parts(
    cx: Context, place: Value, type: ClassType, given: frozenset[str], span: Span
) -> None:
    """Initialize the bases and fields without a mem-initializer, by their default constructors or
    their default member initializers."""
    for base in type.bases:
        declaration = base.template
        named = isinstance(declaration, tree.StructDeclaration) and declaration.name in given
        if not named and has_default_constructor(base):
            _construct_base(cx, place, base, [], span)
    defaults = member_defaults(type)
    members: tuple[Member, ...] = (*type.fields, *type.bits)
    for field in members:
        if written_name(field) in given:
            continue
        initializer = defaults.get(field.name)
        owner = innermost(field.type)
        if initializer is not None:
            initialize_by_default(cx, place, type, field, initializer, span)
        elif isinstance(owner, ClassType) and has_default_constructor(owner):
            part = cx.rules.member_of(cx, place, tree.Name(field.name), span)
            if isinstance(part, ArrayValue):
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


def _members_by_name(type: ClassType) -> dict[str, Member]:
    """The members that a class declares, with those of its anonymous unions and structs."""
    found: dict[str, Member] = {}
    for one in members_of(type):
        if one.name.startswith("anonymous") and isinstance(one.type, ClassType):
            found |= _members_by_name(one.type)
        found[written_name(one)] = one
    return found


def _run_initializer(
    cx: Context,
    field: Member | None,
    name: tree.Name,
    written: Sequence[Any],
    type: ClassType,
    place: Value,
) -> None:
    if field is None:
        _base_initializer(cx, name, written, type, place)
        return
    if isinstance(field.type, Reference):
        assert isinstance(field, Field)
        refer(cx, place, field, tree.InitializerList(tuple(written)), name.span)
        return
    part = cx.rules.member_of(cx, place, tree.Name(field.name), name.span)
    if len(written) == 1 and not isinstance(written[0], tree.InitializerList):
        value = lower(cx, written[0])
        if isinstance(field.type, ClassType) and getattr(value, "type", None) != field.type:
            value = construct(cx, field.type, [value], name.span)
        initialize(cx, part, value, name.span)
    elif isinstance(field.type, ClassType) and has_constructors(field.type):
        run_constructor(cx, part, field.type, arguments(cx, written, field.type), name.span)
    else:
        fill(cx, part, field.type, tree.InitializerList(tuple(written), ()), name.span)


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
    if isinstance(place, SplitStruct) and isinstance(part, SplitStruct):
        place.fields.update(part.fields)  # with the references that are bound now


def _own_name(type: ClassType) -> str:
    """The name of a class in its own scope."""
    declaration = type.template
    return declaration.name if isinstance(declaration, tree.StructDeclaration) else type.name


def _base_initializer(
    cx: Context, name: tree.Name, written: Sequence[Any], type: ClassType, place: Value
) -> None:
    entity = lookup(cx, name)  # the base may be written as a typedef
    given = (
        named_type(cx, name, name.span) if isinstance(entity, (DeclaredType, TypeEntity)) else None
    )
    candidates = type.bases if name.arguments is not None else (*type.bases, type)
    for base in candidates:
        if base == given or (name.arguments is None and _own_name(base) == name.text):
            if base == type or has_constructors(base) or not written:
                _construct_base(cx, place, base, arguments(cx, written, base), name.span)
            else:
                _fill_base(cx, place, base, written, name.span)
            return
    raise cx.wrong(f"{type} has no field or base {name.text}", name.span)


def _fill_base(
    cx: Context, place: Value, base: ClassType, written: Sequence[Any], span: Span
) -> None:
    """Initialize a base without constructors: by a copy, or by its fields in braces."""
    part = as_base(cx, place, base, span)
    first = written[0]
    if len(written) == 1 and not isinstance(first, tree.InitializerList):
        given = type_of(cx, first)
        if isinstance(given, ClassType):  # a copy
            value = lower(cx, first)
            of_derived = derives(given, base)
            value = as_base(cx, value, base, span) if of_derived else convert(cx, value, base, span)
            initialize(cx, part, value, span)
            return
    elif len(written) == 1 and not _begins_with_parts(base):  # `A({1, 2})`
        written = first.items
    fill(cx, part, base, tree.InitializerList(tuple(written), ()), span)
    if isinstance(place, SplitStruct) and isinstance(part, SplitStruct):
        place.fields.update(part.fields)


def _begins_with_parts(type: ClassType) -> bool:
    """Whether the first field of a class has parts of its own."""
    return bool(type.bases) or (
        bool(type.fields) and isinstance(type.fields[0].type, (ClassType, ArrayOf))
    )


# --- operators and conversions -------------------------------------------------------------------


def call_operator(
    cx: Context, op: str, values: Sequence[Value], span: Span, members_only: bool = False
) -> Value | None:
    """A call of an operator function of the file; None if none is viable."""
    found = chosen_operator(cx, op, values, span, members_only)
    return None if found is None else found.call(cx, values, span)


def operator_call(cx: Context, op: str, operands: Operands, span: Span) -> Value | None:
    """`call_operator` for operands that are not emitted yet, in their order of evaluation."""
    found = chosen_operator(cx, op, operands.values, span)
    if found is None:
        return None
    return found.call(cx, operands.emit(cx, lambda: found.types), span)


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator function of the file that an operator calls: a method or a free function."""

    chosen: Candidate
    is_method: bool

    @property
    def types(self) -> tuple[CppType, ...]:
        """The types of its parameters."""
        return (OBJECT, *self.chosen.types) if self.is_method else self.chosen.types

    def call(self, cx: Context, values: Sequence[Value], span: Span) -> Value:
        """The value of the call."""
        if not self.is_method:
            return call_function(cx, self.chosen, values, None, span)
        return call_chosen(cx, self.chosen, values[1:], values[0], span)


def chosen_operator(
    cx: Context, op: str, values: Sequence[Value], span: Span, members_only: bool = False
) -> Operator | None:
    """The operator function of the file that is selected; None if none is viable."""
    name = f"operator{op}"
    found: list[Candidate] = []
    owner: CppType = getattr(values[0], "type", VOID)
    if isinstance(owner, ClassType) and owner.scope is not None:
        # Each class has an assignment of its own, which hides those of its bases.
        entity = owner.scope.names.get(name) if op == "=" else owner.scope.own(name)
        if isinstance(entity, Functions):
            methods = [one for one in entity.overloads if not one.declaration.note]
            if op == "=" and getattr(values[1], "type", None) == owner:
                methods = [one for one in methods if not _is_worse_than_implicit(one.declaration)]
            found = viable(cx, methods, values[1:], None, span)[0]
    if found:
        methods = [one.overload for one in found]
        chosen = resolve_overload(cx, name, methods, values[1:], None, span, values[0])
        return Operator(chosen, True)
    if members_only:
        return None
    overloads = _free_operators(cx, name, values)
    candidates = viable(cx, overloads, values, None, span)[0] if overloads else []
    types = [getattr(value, "type", None) for value in values]
    if not any(isinstance(type, (ClassType, VectorType)) for type in types):
        # Of enums and numbers: one that takes the enum itself, not what it converts to.
        candidates = [one for one in candidates if _takes_an_enum(one, types)]
        overloads = [one.overload for one in candidates]
    if not candidates:
        return None
    return Operator(resolve_overload(cx, name, overloads, values, None, span), False)


def _takes_an_enum(candidate: Candidate, types: Sequence[CppType | None]) -> bool:
    """Whether a parameter of an operator function is an operand's own enum, or refers to it."""
    return any(
        isinstance(given, EnumType) and (one.to if isinstance(one, Reference) else one) == given
        for one, given in zip(candidate.types, types, strict=False)
    )


def _is_worse_than_implicit(method: tree.FunctionDeclaration) -> bool:
    """Whether the implicit operator= is preferred for an object of the class itself: to a template
    that binds its argument as the implicit one does, as const."""
    if not method.template or len(method.parameters) != 1:
        return False
    written = method.parameters[0].type
    return not isinstance(written, tree.ReferenceType) or is_const(written.to)


def _free_operators(cx: Context, name: str, values: Sequence[Value]) -> list[Overload]:
    """Operator functions by unqualified lookup, and in the scopes of the operands' classes."""
    found: dict[int, Overload] = {}
    scopes: list[Any] = [cx.scope]
    for value in values:
        type = getattr(value, "type", None)
        if isinstance(type, ClassType) and type.scope is not None:
            scopes.append(type.scope)
    for scope in scopes:
        for group in scope.functions(name):
            for one in group.overloads:
                if one.owner is None:
                    found[id(one.declaration)] = one
    return list(found.values())


def conversion_to(cx: Context, given: CppType, type: CppType | None) -> Overload | None:
    """The conversion function of a class to `type`, or to any arithmetic type if it is None."""
    if not isinstance(given, ClassType) or given.scope is None:
        return None
    entity = given.scope.own("operator ()")
    if not isinstance(entity, Functions):
        return None
    for one in entity.overloads:
        if one.declaration.result is None and not one.declaration.name.arguments:
            continue
        with cx.in_scope(one.scope):
            made = _referred(resolve(cx, _conversion_type(one.declaration)))
        if made == type or (type is None and underlying(made) is not None):
            return one
        both_numbers = isinstance(type, Arithmetic) and underlying(made)
        if both_numbers and len(entity.overloads) == 1:
            return one
        if isinstance(made, Pointer) and isinstance(type, Pointer) and made.to == type.to:
            return one
    return None


def conversion_result(cx: Context, given: CppType, type: CppType) -> CppType | None:
    """The result type of the conversion function to `type`; None if there is none."""
    overload = conversion_to(cx, given, type)
    if overload is None:
        return None
    with cx.in_scope(overload.scope):
        return _referred(resolve(cx, _conversion_type(overload.declaration)))


def _referred(type: CppType) -> CppType:
    return type.to if isinstance(type, Reference) else type


def _conversion_type(declaration: tree.FunctionDeclaration) -> Any:
    if declaration.name.arguments:
        return declaration.name.arguments[0]
    return declaration.result


def call_conversion(cx: Context, value: Value, type: CppType | None, span: Span) -> Value | None:
    """An object converted by a conversion function of its class; None if none is viable."""
    overload = conversion_to(cx, getattr(value, "type", VOID), type)
    if overload is None:
        return None
    with cx.in_scope(overload.scope):
        made = resolve(cx, _conversion_type(overload.declaration))
    chosen = Candidate(overload, overload.scope, ())
    instance = (id(overload.declaration), ())
    recursive = calls_itself(cx, instance)
    if recursive is None:
        return example_of(made, span)
    if recursive:
        object = _as_object(cx, value, span)
        result = call_recursive(cx, chosen, [], object, made, instance, span)
    else:
        refuse_depth(cx, overload.declaration, instance, span)
        result = inline(cx, chosen, [], _as_object(cx, value, span), made, instance, span)
    if type is None or _referred(made) == type:
        return result
    return convert(cx, result, type, span)

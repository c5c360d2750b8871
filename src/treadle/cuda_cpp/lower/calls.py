"""Calls: of functions, methods, operators and conversions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.access import refuse_hidden_constructors, refuse_hidden_overload
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.closures import this_object
from treadle.cuda_cpp.lower.constant_rules import refuse_run_time
from treadle.cuda_cpp.lower.constructors import construct, unbraced
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert, underlying
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
)
from treadle.cuda_cpp.lower.inlining import inline
from treadle.cuda_cpp.lower.member_pointers import call_bound
from treadle.cuda_cpp.lower.misfits import none_fits, spelled_value
from treadle.cuda_cpp.lower.names import is_const, resolve
from treadle.cuda_cpp.lower.overloads import reasons_against, resolve_overload, viable
from treadle.cuda_cpp.lower.pointers import example_of, pointer_of
from treadle.cuda_cpp.lower.recursion import call_recursive, calls_itself
from treadle.cuda_cpp.lower.storage import declare_object
from treadle.cuda_cpp.lower.tree_analysis import CHANGING
from treadle.cuda_cpp.lower.usable import refuse_unusable
from treadle.cuda_cpp.lower.values import (
    BoundFunctions,
    Candidate,
    FunctionSet,
    FunctionTarget,
    PointerValue,
    Rvalue,
    TypeValue,
    Value,
    VoidValue,
    describe,
)
from treadle.cuda_cpp.lower.virtual_calls import call_virtual
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.scopes import (
    Functions,
    Overload,
    Scope,
    functions_in_namespaces,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    MemberPointer,
    Pointer,
    Reference,
    VectorType,
    decay,
)
from treadle.cuda_cpp.syntax import tree


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
    if isinstance(function, BoundFunctions):
        return _call_member(cx, function, node)
    if not isinstance(function, FunctionSet):
        pointer = pointer_of(cx, function)
        if pointer is not None and isinstance(pointer.to, FunctionOf):
            return _call_pointer(cx, pointer, node)
        made = _call_object(cx, function, node)
        if made is not None:
            return made
        cure = "" if pointer is None else ": an index is in brackets, [ ]"
        raise cx.unfit(f"{describe(function)} cannot be called{cure}", function, span)
    named_functions = function
    operands = operands or operands_of(cx, node.arguments, lambda at: _refers(named_functions, at))
    function = _with_found_by_arguments(cx, function, node, operands)
    if function.builtin:
        values = operands.emit(cx)
        return builtin_names.call_with(cx, function.name, values, node, function.arguments)
    values = operands.values
    fits = viable(cx, function.overloads, values, function.arguments, span)
    if not fits[0] and builtin_names.is_function(function.name):  # another overload is built in
        if cx.is_in_template():  # a template that is checked by itself: it may be one of these
            raise cx.error(f"which {function.name} is called is not known here", span)
        return builtin_names.call_with(cx, function.name, operands.emit(cx), node)
    chosen = resolve_overload(
        cx, function.name, function.overloads, values, function.arguments, span,
        function.receiver, fits,
    )  # fmt: skip
    if "consteval" in chosen.declaration.specifiers and cx.checks_all():
        _refuse_run_time_arguments(cx, chosen, node)
    receiver = _receiver(cx, function, operands)
    values = operands.emit(cx, lambda: chosen.types)
    named = node.function.name if isinstance(node.function, tree.Member) else node.function
    virtual = not isinstance(named, tree.Name) or not named.scope
    return call_chosen(cx, chosen, unbraced(cx, values, chosen), receiver, span, virtual)


def _refuse_run_time_arguments(cx: Context, chosen: Candidate, node: tree.Call) -> None:
    """CompileError for a call of a consteval function with what is known only at run time, unless
    it is in another one."""
    if cx.lowering.immediate or cx.is_in_template():
        return
    what = f"an argument of {chosen.declaration.name.text}, which is consteval,"
    for argument, type in zip(node.arguments, chosen.types, strict=False):
        if not isinstance(type, Reference):
            refuse_run_time(cx, argument, what)


def _refers(function: FunctionSet, at: int) -> bool:
    """Whether a function of a set takes a reference to a variable at a position."""
    if function.name in CHANGING:
        return True
    for one in function.overloads:
        parameters = one.declaration.parameters
        type = parameters[min(at, len(parameters) - 1)].type if parameters else None
        if isinstance(type, tree.ReferenceType) and not is_const(type.to):
            return True
    return False


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
        return call_chosen(cx, chosen, unbraced(cx, values, chosen), None, span)

    return call_pointer(cx, pointer, values, one_of, span)


def _call_member(cx: Context, function: BoundFunctions, node: tree.Call) -> Value:
    """`(object.*pointer)(arguments)`"""
    span = node.function.span
    type = function.pointer.type
    assert isinstance(type, MemberPointer)
    assert isinstance(type.to, FunctionOf)
    wanted = type.to.parameters
    operands = operands_of(cx, node.arguments)
    if len(operands.values) != len(wanted):
        given = len(operands.values)
        raise cx.wrong(f"{type} takes {len(wanted)} arguments, not {given}", span)
    receiver = snapshot(cx, function.receiver, OBJECT, operands.effects, span)
    values = operands.emit(cx, lambda: wanted)

    def one_of(chosen: Candidate, values: Sequence[Value]) -> Value:
        return call_chosen(cx, chosen, unbraced(cx, values, chosen), receiver, span)

    return call_bound(cx, function, values, one_of, span)


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
        for associated in _associated(type):
            scope: Scope | None = associated.parent if associated.kind == "class" else associated
            while scope is not None:
                group = scope.names.get(name.text)
                if isinstance(group, Functions):  # friends: where the template's arguments are
                    found |= {id(one.declaration): one for one in group.overloads}
                scope = None if scope.kind == "namespace" else scope.parent
    return (
        FunctionSet(name.text, tuple(found.values()), arguments=name.arguments) if found else None
    )


def _with_found_by_arguments(
    cx: Context, function: FunctionSet, node: tree.Call, operands: Operands
) -> FunctionSet:
    """The functions that a call names, with those of the namespaces of its arguments: not if they
    are members of a class, or are named with one."""
    name = node.function
    if not isinstance(name, tree.Name) or name.scope or function.builtin:
        return function
    if function.receiver is not None or not is_in_namespaces(cx, name.text):
        return function
    if any(one.owner is not None for one in function.overloads):
        return function
    more = _by_arguments(node, operands)
    known = {id(one.declaration) for one in function.overloads}
    new = [one for one in more.overloads if id(one.declaration) not in known] if more else ()
    return replace(function, overloads=(*function.overloads, *new)) if new else function


def _associated(type: Any) -> Iterator[Scope]:
    """The scopes of a class and its bases, or that of an enum, in whose namespaces functions are
    found by arguments."""
    if isinstance(type, (ClassType, EnumType)) and type.scope is not None:
        yield type.scope
    if isinstance(type, ClassType):
        for base in type.bases:
            yield from _associated(base)


def _may_be_found_by_arguments(cx: Context, name: Any) -> bool:
    """Whether an unqualified name is not declared here, but in a namespace of the file."""
    if not isinstance(name, tree.Name) or name.scope or cx.scope.find(name.text) is not None:
        return False
    return is_in_namespaces(cx, name.text)


def is_in_namespaces(cx: Context, name: str) -> bool:
    """Whether a namespace of the file declares a function of this name, or a class a friend."""
    if cx.lowering.in_namespaces is None:
        cx.lowering.in_namespaces = functions_in_namespaces(cx.scope)
    return name in cx.lowering.in_namespaces


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


def call_chosen(
    cx: Context,
    chosen: Candidate,
    values: Sequence[Value],
    receiver: Value | None,
    span: Span,
    virtual: bool = True,
) -> Value:
    """A call of the function that overload resolution selected. It is not `virtual` if its name is
    qualified."""
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
        if getattr(receiver, "type", None) == chosen.overload.owner:
            refuse_hidden_overload(cx, chosen.overload, span)
        if virtual and (made := call_virtual(cx, chosen, values, receiver, span)) is not None:
            return made
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


def _construct_call(cx: Context, type: CppType, node: tree.Call, span: Span) -> Value:
    values = arguments(cx, node.arguments, type)
    if len(values) == 1 and not isinstance(type, (ClassType, VectorType)):
        return explicit_cast(cx, values[0], type, "c", span)
    if isinstance(type, ClassType):
        refuse_hidden_constructors(cx, type, span)
    return construct(cx, type, values, span)


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
            return call_function(cx, self.chosen, unbraced(cx, values, self.chosen), None, span)
        given = unbraced(cx, values[1:], self.chosen)
        return call_chosen(cx, self.chosen, given, values[0], span)


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
            methods = [one for one in entity.overloads if _takes_part(one.declaration, op)]
            if op == "=" and getattr(values[1], "type", None) == owner:
                methods = [one for one in methods if not _is_worse_than_implicit(one.declaration)]
            found = viable(cx, methods, values[1:], None, span)[0]
            given = getattr(values[1], "type", None) if op == "=" else None
            if given == owner or derives(given, owner):  # or else the implicit one is called
                found = [one for one in found if _referred(one.types[0]) in (owner, given)]
    if found:
        methods = [one.overload for one in found]
        chosen = resolve_overload(cx, name, methods, values[1:], None, span, values[0], (found, []))
        if chosen.declaration.note == "defaulted":
            return None
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
    chosen = resolve_overload(cx, name, overloads, values, None, span, None, (candidates, []))
    return Operator(chosen, False)


def no_operator(cx: Context, op: str, values: Sequence[Value], span: Span) -> str:
    """The message that no operator function takes objects of classes."""
    name = f"operator{op}"
    owner: CppType = getattr(values[0], "type", VOID)
    entity = owner.scope.own(name) if isinstance(owner, ClassType) and owner.scope else None
    methods = entity.overloads if isinstance(entity, Functions) else []
    free = [
        one for one in _free_operators(cx, name, values) if not cx.lowering.is_ours(one.declaration)
    ]
    if methods and not free:
        against = reasons_against(cx, methods, values[1:], None, span)
        return none_fits(f"{name} of {owner}", methods, values[1:], against)
    against = reasons_against(cx, free, values, None, span)
    message = none_fits(name, free, values, against)
    if free:
        return message
    given = map(spelled_value, values)
    taken = ", ".join(f"{one} {each}" for one, each in zip(given, "ab", strict=False))
    types = [getattr(one, "type", VOID) for one in values]
    owner = next(one for one in types if isinstance(one, ClassType))
    result = "bool" if op in _LOGICAL else owner
    return f"{message}: declare it, as in __device__ {result} {name}({taken})"


_LOGICAL = frozenset(("==", "!=", "<", ">", "<=", ">=", "!"))


def defaulted_operator(cx: Context, op: str, values: Sequence[Value]) -> Overload | None:
    """The defaulted comparison (`bool operator==(const A &) const = default;`) of the class of two
    operands; None if there is none."""
    name = f"operator{op}"
    owner = getattr(values[0], "type", None)
    if not isinstance(owner, ClassType) or owner != getattr(values[1], "type", None):
        return None
    entity = None if owner.scope is None else owner.scope.names.get(name)
    methods = entity.overloads if isinstance(entity, Functions) else ()
    for one in methods:
        if one.declaration.note == "defaulted":
            return one
    friends = _free_operators(cx, name, values, defaulted=True)
    found = viable(cx, friends, values, None, cx.span)[0] if friends else []
    return found[0].overload if found else None


def converts_by_itself(value: Value) -> bool:
    """Whether a class has a conversion function that is not explicit."""
    type = getattr(value, "type", None)
    if not isinstance(type, ClassType) or type.scope is None:
        return False
    entity = type.scope.own("operator ()")
    return isinstance(entity, Functions) and any(
        "explicit" not in one.declaration.specifiers
        and (one.declaration.result is not None or bool(one.declaration.name.arguments))
        for one in entity.overloads
    )


def _takes_part(method: tree.FunctionDeclaration, op: str) -> bool:
    """Whether overload resolution selects from a method: an assignment may be defaulted."""
    return op == "=" or method.note != "defaulted"


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


def _free_operators(
    cx: Context, name: str, values: Sequence[Value], *, defaulted: bool = False
) -> list[Overload]:
    """Operator functions by unqualified lookup, and in the scopes of the operands' classes: those
    that are `defaulted`, or the others."""
    found: dict[int, Overload] = {}
    scopes = [cx.scope]
    for value in values:
        scopes += _associated(getattr(value, "type", None))
    for scope in scopes:
        for group in scope.functions(name):
            for one in group.overloads:
                if one.owner is None and (one.declaration.note == "defaulted") == defaulted:
                    found[id(one.declaration)] = one
    return list(found.values())


def conversion_to(
    cx: Context, given: CppType, type: CppType | None, explicit: bool = False
) -> Overload | None:
    """The conversion function of a class to `type`, or to any arithmetic type if it is None; also
    one that is declared explicit, if that is asked for."""
    if not isinstance(given, ClassType) or given.scope is None:
        return None
    entity = given.scope.own("operator ()")
    if not isinstance(entity, Functions):
        return None
    for one in entity.overloads:
        if one.declaration.result is None and not one.declaration.name.arguments:
            continue
        if "explicit" in one.declaration.specifiers and not explicit:
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


def call_conversion(
    cx: Context, value: Value, type: CppType | None, explicit: bool, span: Span
) -> Value | None:
    """An object converted by a conversion function of its class; None if none is viable. Those that
    are declared explicit are called in casts, conditions and direct initializations."""
    overload = conversion_to(cx, getattr(value, "type", VOID), type, explicit)
    if overload is None:
        return None
    refuse_unusable(cx, overload, span)
    refuse_hidden_overload(cx, overload, span)
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

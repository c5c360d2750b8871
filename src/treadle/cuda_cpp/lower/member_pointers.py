"""Pointers to members of classes: each is a number, of a field in the order of memory, or a hash of
a function; 0 is null. Where the number is known the member is named as usual, elsewhere it is one
of those that have the type of the pointer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.casts import (
    without_const,
)
from treadle.cuda_cpp.lower.choices import choose
from treadle.cuda_cpp.lower.classes import is_const_field, is_mutable
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import OBJECTS, rvalue
from treadle.cuda_cpp.lower.fields import find_bits
from treadle.cuda_cpp.lower.function_pointers import kept
from treadle.cuda_cpp.lower.hierarchy import own_functions
from treadle.cuda_cpp.lower.inlining import bind_result
from treadle.cuda_cpp.lower.names import completed_class, resolved_parameter, scope_of
from treadle.cuda_cpp.lower.objects import part_of
from treadle.cuda_cpp.lower.overloads import result_type
from treadle.cuda_cpp.lower.pointers import one_of
from treadle.cuda_cpp.lower.special_members import is_word, written_name
from treadle.cuda_cpp.lower.storage import declare_object
from treadle.cuda_cpp.lower.values import (
    BoundFunctions,
    Candidate,
    ChoiceLvalue,
    FunctionSet,
    Null,
    Rvalue,
    Value,
    VoidValue,
    as_const,
    describe,
)
from treadle.cuda_cpp.program import number_of_memory
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.scopes import Functions, Overload
from treadle.cuda_cpp.semantics.types import (
    VOID,
    ClassType,
    CppType,
    Field,
    FunctionOf,
    MemberPointer,
    Reference,
    Void,
    all_fields,
    innermost,
    parts_of_bases,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_Path = tuple[Field, ...]  # a field, after the anonymous members that contain it


def member_pointer(cx: Context, operand: Any, span: Span) -> Value | None:
    """`&A::x` of a field, or of a function that is not static; None for other operands of `&`. Of
    several functions it is an overload set, from which a type selects."""
    if not isinstance(operand, tree.Name) or not operand.scope:
        return None
    home = scope_of(cx, operand.scope)
    type = None if home is None else home.names.get("<class>")
    if home is None or not isinstance(type, ClassType):
        return None
    refuse_hidden(cx, type, operand.text, span)
    if find_bits(type, operand.text) is not None:
        raise cx.wrong(f"{operand.text} is bits of a word, to which there are no pointers", span)
    found = _field_named(type, operand.text)
    if found is not None:
        owner, number, of = found
        return Rvalue(_number(number, span), MemberPointer(owner.name, of, False, owner))
    entity = home.own(operand.text)
    overloads = entity.overloads if isinstance(entity, Functions) else ()
    methods = [
        one
        for one in overloads
        if isinstance(one.owner, ClassType) and "static" not in one.declaration.specifiers
    ]
    if not methods:
        return None
    if len(methods) > 1 or methods[0].declaration.template:
        return FunctionSet(operand.text, tuple(methods), arguments=operand.arguments)
    return _of_function(cx, methods[0], span)


def _field_named(type: ClassType, name: str) -> tuple[ClassType, int, CppType] | None:
    """The class that declares a field, the field's number in it, and its type."""
    inherited = sum(len(list(_paths(base))) for base in type.bases)
    for number, path in enumerate(_paths(type), 1):
        if number > inherited and written_name(path[-1]) == name:
            return type, number, path[-1].type
    found = (_field_named(base, name) for base in type.bases)
    return next((one for one in found if one is not None), None)


def _with_bases(type: ClassType) -> Iterator[ClassType]:
    yield type
    for base in type.bases:
        yield from _with_bases(base)


def _paths(type: ClassType) -> Iterator[_Path]:
    """The fields of a class, those of bases first, so that the number of a base's field in a
    derived class is the one that it has there, and a constant."""
    for base, part in parts_of_bases(type):
        for path in _paths(base):
            yield path if part is None else (part, *path)
    for field in type.fields:
        if is_word(field):
            continue
        if field.name.startswith("anonymous") and isinstance(field.type, ClassType):
            for inner in _paths(field.type):
                yield (field, *inner)
        else:
            yield (field,)


def _number(number: int, span: Span) -> n.Constant:
    made = constant(number, ir.I64, span)
    assert isinstance(made, n.Constant)
    return made


# --- functions -----------------------------------------------------------------------------------


def _of_function(cx: Context, method: Overload, span: Span) -> Rvalue:
    owner = method.owner
    type, _ = _signature(cx, method, None)
    pointer = MemberPointer(owner.name, type, method.declaration.const, owner)
    return Rvalue(_number(_number_of(method), span), pointer)


def _number_of(method: Overload) -> int:
    span = method.declaration.span
    return number_of_memory(f"member {span.file}:{span.line}:{span.column}")


def _signature(
    cx: Context, method: Overload, wanted: CppType | None
) -> tuple[FunctionOf, Candidate]:
    """The type of a member function; `wanted` is its result where that is deduced."""
    declaration = method.declaration
    with cx.in_scope(method.scope):
        types = tuple(resolved_parameter(cx, one.type) for one in declaration.parameters)
    candidate = Candidate(method, method.scope, types)
    result = result_type(cx, candidate) or wanted
    if result is None:
        raise cx.error(
            f"the result of {declaration.name.text} is deduced, so its type is not known here: "
            "write it",
            cx.span,
        )
    return FunctionOf(result, types), candidate


def _functions(cx: Context, type: MemberPointer) -> list[tuple[int, Candidate]]:
    """The functions that a pointer may point to, with their numbers."""
    assert isinstance(type.to, FunctionOf)
    found: dict[int, Candidate] = {}
    for owner in _with_bases(completed_class(cx, type.owner)):
        for method in own_functions(owner):
            declaration = method.declaration
            if "static" in declaration.specifiers or declaration.const != type.const:
                continue
            if len(declaration.parameters) != len(type.to.parameters):
                continue
            signature, candidate = _signature(cx, method, type.to.result)
            if signature == type.to:
                found.setdefault(_number_of(method), candidate)
    return list(found.items())


# --- conversions ---------------------------------------------------------------------------------


def converted(cx: Context, value: Value, type: MemberPointer, span: Span) -> Value | None:
    """The implicit conversion of null, of a member of a base, or of one of several functions; None
    if there is none."""
    if isinstance(value, Null) or (isinstance(value, Rvalue) and value.literal_zero):
        return Rvalue(_number(0, span), type)
    if isinstance(value, FunctionSet):
        return _selected(cx, value, type, span)
    given = getattr(value, "type", None)
    if not isinstance(given, MemberPointer):
        return None
    if given == type:
        return rvalue(cx, value, span)
    if given.to != type.to or given.const != type.const:
        return None
    base, derived = (completed_class(cx, one.owner) for one in (given, type))
    if not derives(derived, base):
        return None
    expression = rvalue(cx, value, span).expression
    start = _start_of(derived, base)
    if isinstance(type.to, FunctionOf) or start == 0:
        return Rvalue(expression, type)
    if isinstance(expression, n.Constant):
        moved = int(expression.value) + start if expression.value else 0
        return Rvalue(_number(moved, span), type)
    same = cx.copied(expression)
    is_null = n.Binary("eq", same, _number(0, span), ir.BOOL, span)
    further = n.Binary("add", same, _number(start, span), ir.I64, span)
    return Rvalue(n.Select(is_null, same, further, ir.I64, span), type)


def _start_of(derived: ClassType, base: ClassType) -> int:
    """How many fields of a derived class are before those of a base."""
    before = 0
    for one in derived.bases:
        if one == base:
            return before
        if derives(one, base):
            return before + _start_of(one, base)
        before += len(list(_paths(one)))
    raise AssertionError(base)


def _selected(cx: Context, value: FunctionSet, type: MemberPointer, span: Span) -> Value | None:
    """The function of an overload set that has the type of a pointer."""
    if not isinstance(type.to, FunctionOf) or value.receiver is not None:
        return None
    own = {id(one.declaration) for one in value.overloads}
    for number, candidate in _functions(cx, type):
        if id(candidate.declaration) in own:
            return Rvalue(_number(number, span), type)
    return None


# --- access --------------------------------------------------------------------------------------


def pointed_member(cx: Context, base: Value, pointer: Value, span: Span) -> Value:
    """`base.*pointer`"""
    type = getattr(pointer, "type", None)
    if not isinstance(type, MemberPointer):
        raise cx.unfit(f"{describe(pointer)} is not a pointer to a member", pointer, span)
    given = getattr(base, "type", None)
    owner = completed_class(cx, type.owner)
    if given is None or (given != owner and not derives(given, owner)):
        raise cx.unfit(f"{describe(base)} has no members of {owner}", base, span)
    number = folded(rvalue(cx, pointer, span).expression)
    if isinstance(base, Rvalue):
        cx.calls += 1
        base = declare_object(cx, "object", given, (cx.path, "object", cx.calls), base, span)
    base = as_base(cx, base, owner, span)
    known = int(number.value) if isinstance(number, n.Constant) else None
    if known == 0 and not cx.lowering.checking:
        raise cx.error("this pointer to a member is always null where it is used", span)
    if isinstance(type.to, FunctionOf):
        functions = tuple(one for one in _functions(cx, type) if known in (None, 0, one[0]))
        return BoundFunctions(Rvalue(number, type), functions, base)
    paths = [
        (at, path)
        for at, path in enumerate(_paths(owner), 1)
        if path[-1].type == type.to and known in (None, 0, at)
    ]
    if not paths:
        raise cx.error(f"{owner} has no field of type {type.to}", span)
    places = [_at_path(cx, base, owner, path, span) for _, path in paths]
    if len(places) == 1:
        return places[0]
    tag = _tag(cx, number, [at for at, _ in paths], span)
    if all(isinstance(one, OBJECTS) for one in places):
        return ChoiceLvalue(tag, tuple(places), type.to)
    return one_of(cx, tag, places, span)


def _at_path(cx: Context, base: Value, owner: ClassType, path: _Path, span: Span) -> Value:
    place = base
    for field in path:
        place = part_of(cx, place, field, span)
    name = written_name(path[-1])
    if is_mutable(owner, name):
        place = without_const(place)
    found: Value = as_const(place) if is_const_field(owner, name) else place
    return found


def _tag(cx: Context, number: n.Expression, numbers: Sequence[int], span: Span) -> n.Expression:
    """The position of a number among those that it may be."""
    number = cx.copied(number)
    tag: n.Expression = constant(len(numbers) - 1, ir.I32, span)
    for at in reversed(range(len(numbers) - 1)):
        test = n.Binary("eq", number, _number(numbers[at], span), ir.BOOL, span)
        tag = n.Select(test, constant(at, ir.I32, span), tag, ir.I32, span)
    return cx.copied(tag)


def call_bound(
    cx: Context,
    function: BoundFunctions,
    values: Sequence[Value],
    call: Callable[[Candidate, Sequence[Value]], Value],
    span: Span,
) -> Value:
    """The call of the function that a pointer to members selects."""
    type = function.pointer.type
    assert isinstance(type, MemberPointer)
    assert isinstance(type.to, FunctionOf)
    if not function.functions:
        raise cx.error(f"{type.name} has no function of the type {type}", span)
    if len(function.functions) == 1:
        return call(function.functions[0][1], values)
    result = type.to.result
    if isinstance(result, Reference):
        raise cx.error("a call of one of several functions that return references", span)
    values = [kept(cx, one, to, span) for one, to in zip(values, type.to.parameters, strict=True)]
    tag = _tag(cx, function.pointer.expression, [at for at, _ in function.functions], span)
    choices = [(at, one) for at, (_, one) in enumerate(function.functions)]
    if isinstance(result, Void):
        choose(cx, tag, choices, lambda one: call(one, values), span)
        return VoidValue(VOID)
    cx.calls += 1
    made, assign = bind_result(cx, "called", result, (cx.path, "called", cx.calls), span)
    choose(cx, tag, choices, lambda one: assign(call(one, values)), span)
    return made


def holds_function_pointer(type: CppType) -> bool:
    """Whether an object has a pointer to member functions in it, whose size here is not C++'s."""
    inner = innermost(type)
    if isinstance(inner, ClassType):
        return any(holds_function_pointer(one.type) for one in all_fields(inner))
    return isinstance(inner, MemberPointer) and isinstance(inner.to, FunctionOf)

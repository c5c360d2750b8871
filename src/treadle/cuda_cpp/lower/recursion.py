"""Recursive functions: a loop over frames in local memory (`ir.passes.recursion`).

A function that calls itself, also through others, is found when it is inlined into itself: that is
a fact, and the next run of the lowering makes a loop where it is first called. All recursive
functions that are called in there belong to the loop; each is lowered once. Arguments and results
are passed in variables. A parameter for which every call passes on what the function itself got is
not passed, but has what the first call gave: the array that a sort works on, the object of a
method.
Objects of a frame that need an address have an element for each level in their memory, so pointers
to them are like others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.assignment import (
    assign_pointer,
    initialize,
    put,
)
from treadle.cuda_cpp.lower.closures import keeps_captures
from treadle.cuda_cpp.lower.context import Context, NotPure, Returns
from treadle.cuda_cpp.lower.conversions import binds_directly, convert
from treadle.cuda_cpp.lower.evaluation_order import bind_reference, with_fixed_place
from treadle.cuda_cpp.lower.inlining import (
    bind_argument,
    deduced_result,
)
from treadle.cuda_cpp.lower.lifetimes import temporary
from treadle.cuda_cpp.lower.names import is_const
from treadle.cuda_cpp.lower.pointers import (
    ZERO,
    address,
    demand_address,
    follow,
    known_targets,
    note_memory,
    pointer_of,
)
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.storage import declare_object, declare_pointer, without_value
from treadle.cuda_cpp.lower.tree_analysis import assigned_names
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    Candidate,
    Category,
    ChoiceLvalue,
    ItemTarget,
    Lvalue,
    NullTarget,
    ObjectAddress,
    ObjectTarget,
    PointerValue,
    PointerVariable,
    Rvalue,
    SplitStruct,
    Value,
    VoidValue,
    as_const,
    same_object,
    with_category,
)
from treadle.cuda_cpp.semantics.scopes import KnownValue, Scope
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    Pointer,
    Reference,
    VectorType,
    Void,
    all_fields,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.passes.recursion import as_loop
from treadle.ir.traverse import root_of, walk

_THIS = "this"


@dataclass(slots=True)
class _Parameter:
    """A parameter of a recursive function, or the object of a method."""

    key: Any
    type: CppType
    place: Any = None  # where a call puts the argument; None if all calls pass the same
    given: Value | None = None  # what the first call gives, if all do


@dataclass(slots=True)
class _Member:
    """A recursive function of a loop."""

    name: str  # of its calls
    chosen: Candidate
    cx: Context
    result: CppType
    place: Any  # of the result; None without one
    parameters: list[_Parameter]
    body: list[n.Statement]
    lower: Callable[[Context], None] | None  # makes the body, if it is more than what is written


@dataclass(slots=True)
class Recursion:
    """The recursive functions that become a loop where the first of them is called."""

    outside: Context
    level: n.Variable
    levels: int
    path: tuple[Any, ...]
    header: list[n.Statement] = field(default_factory=list)
    outer: frozenset[str] = frozenset()  # the variables that are declared before
    members: dict[Any, _Member] = field(default_factory=dict)
    waiting: list[_Member] = field(default_factory=list)  # whose bodies are not lowered yet

    def is_outer(self, name: str) -> bool:
        """Whether a variable of the IR is declared before the loop: calls do not keep it."""
        return name in self.outer


def is_open(cx: Context, instance: Any) -> bool:
    """Whether a function is being inlined, in the function that calls itself if there is one."""
    start = 0 if cx.recursion is None else len(cx.recursion.path)
    return any(entry[0] == instance for entry in cx.path[start:])


def calls_itself(cx: Context, instance: Any) -> bool | None:
    """Whether a function calls itself; None if that is found now, which is known to the next run:
    then the call is left out."""
    facts = cx.lowering.facts
    if instance not in facts.recursive and is_open(cx, instance):
        facts.recursive.add(instance)
        facts.changed = True
        return None
    return instance in facts.recursive


def call_recursive(
    cx: Context,
    chosen: Candidate,
    values: Sequence[Value],
    receiver: Value | None,
    result: CppType | None,
    instance: Any,
    span: Span,
    lower: Callable[[Context], None] | None = None,
) -> Value:
    """The value of a call of a function that calls itself. `lower` makes its body, after the
    parameters and the object are bound, if that is more than what is written: constructors and
    destructors do something to members, too."""
    if cx.isolated:
        raise NotPure
    own = cx.recursion
    if own is None:
        return _start(cx, chosen, values, receiver, result, instance, span, lower)
    assert isinstance(own, Recursion)
    member = own.members.get(instance)
    is_first = member is None
    if member is None:
        member = _add(own, chosen, values, receiver, result, instance, span, lower)
    _pass(cx, own, member, values, receiver, span, is_first)
    cx.emit(n.CallStatement(member.name, (), None, span))
    return _taken(cx, member, span)


def _start(
    cx: Context,
    chosen: Candidate,
    values: Sequence[Value],
    receiver: Value | None,
    result: CppType | None,
    instance: Any,
    span: Span,
    lower: Callable[[Context], None] | None,
) -> Value:
    """The loop, in place of the first call."""
    lowering = cx.lowering
    cx.calls += 1
    name = chosen.declaration.name.text
    level = n.Variable(lowering.unique(f"{name}.level"), ir.I32, span)
    path = (*cx.path, ("recursion", cx.calls))
    lowering.parameter_keys[level.name] = (path, "level")  # the same again after each call
    own = Recursion(cx, level, lowering.recursion, path)
    member = _add(own, chosen, values, receiver, result, instance, span, lower)
    with cx.separate_block() as passing:
        _pass(cx, own, member, values, receiver, span, is_first=True)
    while own.waiting:
        _lower_body(own.waiting.pop(0))
    bodies = {one.name: tuple(one.body) for one in own.members.values()}
    _refuse_waits(cx, bodies, span)
    made = as_loop(bodies, member.name, level, own.levels, lowering.unique, span)
    lowering.memories.extend(made.memories)
    cx.emit(*own.header, *passing, n.Declare(level, None, span), *made.code)
    enough = n.Unary("not", made.overflowed, ir.BOOL, span)
    cx.emit(n.Assert(enough, _too_deep(name, own.levels), True, cx.name, span=span))
    cx.note(
        "emulated",
        f"{name}, which calls itself",
        f"a loop with frames for {own.levels} levels in local memory",
        span,
    )
    return _taken(cx, member, span)


def _too_deep(name: str, levels: int) -> str:
    return f"{name} calls itself at most {levels} levels deep (cuda_module(…, recursion={levels}))"


_WAITS = (n.Barrier, n.Subgroup, n.Copies, n.Staged, n.OpaqueStore)


def _refuse_waits(cx: Context, bodies: dict[str, n.Block], span: Span) -> None:
    for body in bodies.values():
        for node in walk(body):
            if isinstance(node, _WAITS):
                raise cx.error(
                    "a function that calls itself waits for other threads here, or exchanges "
                    "values with them, but each thread may call it another number of times: do "
                    "that outside of the function",
                    node.span if node.span.line else span,
                )


# --- members -------------------------------------------------------------------------------------


def _add(
    own: Recursion,
    chosen: Candidate,
    values: Sequence[Value],
    receiver: Value | None,
    result: CppType | None,
    instance: Any,
    span: Span,
    lower: Callable[[Context], None] | None,
) -> _Member:
    """Make a function part of the loop: bind its parameters, and give its result a place."""
    lowering = own.outside.lowering
    declaration = chosen.declaration
    name = declaration.name.text
    path = (*own.path, (instance, 0))
    scope = Scope(chosen.scope, name, "function")
    cx = _context(own, scope, path, name, span)
    cx.recursion = own
    is_first = not own.members
    call = lowering.unique(f"{name}()")
    member = _Member(call, chosen, cx, VOID, None, [], cx.blocks[0], lower)
    own.members[instance] = member
    own.waiting.append(member)
    header = _context(own, scope, path, name, span)
    header.blocks = [own.header]
    header.memories = own.outside.memories
    binder = _Binder(own, member, header, is_first, assigned_names(header, declaration), span)
    if receiver is not None:
        binder.bind_object(receiver, declaration.const)
    for parameter, type, value in zip(declaration.parameters, chosen.types, values, strict=True):
        binder.bind(parameter, type, value)
    if is_first:
        own.outer = frozenset(lowering.names)
    known = lowering.facts.results
    if result is None:
        assert declaration.body is not None
        result = known.get(instance) or deduced_result(cx, declaration.body)
    known[instance] = member.result = cx.returns.type = result
    key = (path, "result")
    if isinstance(result, Reference):
        to = Pointer(result.to, result.const)
        member.place = cx.returns.address = declare_pointer(header, f"{name}.result", to, key, span)
    elif not isinstance(result, Void):
        member.place = without_value(header, f"{name}.result", result, key, span)
    cx.returns.place = member.place
    return member


def _context(own: Recursion, scope: Scope, path: Any, name: str, span: Span) -> Context:
    outside = own.outside
    cx = Context(
        outside.lowering,
        scope,
        path=path,
        returns=Returns(VOID),
        depth=outside.depth + 1,
        name=name,
    )
    cx.memories = outside.memories
    cx.span = span
    return cx


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds the parameters of a function at its first call."""

    own: Recursion
    member: _Member
    header: Context  # whose statements run before the loop
    is_first: bool  # the function is what the loop computes
    assigned: frozenset[str]
    span: Span

    def bind_object(self, receiver: Value, const: bool) -> None:
        """The object of a method."""
        key = (self.member.cx.path, _THIS)
        type = Reference(getattr(receiver, "type", VOID), const)
        made = self.place(key, _THIS, type, receiver, False)
        if made.place is None:
            bound = with_fixed_place(self.header, receiver, self.span)
            made.given = bound
        else:
            bound = self.referred(made.place)
        self.member.cx.this = with_category(as_const(bound) if const else bound, "lvalue")

    def bind(self, parameter: tree.Parameter, type: CppType, value: Value) -> None:
        """A parameter."""
        cx = self.member.cx
        type = _by_value(type)
        fixed = isinstance(type, Reference) or keeps_captures(type)
        changes = parameter.name in self.assigned and not fixed
        key = (cx.path, id(parameter))
        made = self.place(key, parameter.name or "unused", type, value, changes)
        if made.place is not None:
            if isinstance(type, Reference):
                bound = self.referred(made.place)
                cx.scope.names[parameter.name] = as_const(bound) if type.const else bound
            else:
                bind_argument(cx, parameter, type, made.place, self.assigned, self.span)
            return
        if self.is_first:
            bind_argument(self.header, parameter, type, value, self.assigned, self.span)
        else:
            const = type.const if isinstance(type, Reference) else is_const(parameter.type)
            cx.scope.names[parameter.name] = as_const(value) if const else value
        made.given = cx.scope.names.get(parameter.name)

    def place(self, key: Any, name: str, type: CppType, value: Value, changes: bool) -> _Parameter:
        """Where calls put the argument; no place if all calls pass the same."""
        facts = self.header.lowering.facts
        made = _Parameter(key, type)
        self.member.parameters.append(made)
        varies = changes or key in facts.varying
        if not varies and not self.is_first:
            varies = not self.is_outside(value, type)
        if not varies:
            return made
        own = (key[0], ("argument", key[1]))
        if isinstance(type, Reference):
            to = Pointer(type.to, type.const)
            known = facts.targets.setdefault(own, [])
            if isinstance(value, (Lvalue, ArrayValue)) and not known:
                known.extend(
                    known_targets(self.header, address(self.header, value, self.span).targets)
                )
            made.place = declare_pointer(self.header, f"{name}.argument", to, own, self.span)
            if not known:  # until a call has passed its argument
                facts.changed = True
            return made
        if acts(type):
            raise self.header.error(
                f"{name} of a function that calls itself is an object that copies or ends by code "
                "of its class: pass it by reference",
                self.span,
            )
        made.place = without_value(self.header, f"{name}.argument", type, own, self.span)
        if isinstance(made.place, PointerVariable) and not made.place.targets:
            facts.changed = True
        return made

    def referred(self, place: PointerVariable) -> Value:
        """What a reference refers to, whose address the call has passed."""
        cx = self.member.cx
        pointer = pointer_of(cx, place)
        assert pointer is not None
        return _referred(cx, pointer, self.span)

    def is_outside(self, value: Value, type: CppType) -> bool:
        """Whether a value is of objects around the loop, and no number that calls may change."""
        known = self.header.lowering.parameter_keys
        by_reference = isinstance(type, Reference)
        match value:
            case SplitStruct(fields=fields):
                parts = [one for one in fields.values() if one is not None]
                return len(parts) == len(fields) and all(
                    self.is_outside(one, type) for one in parts
                )
            case PointerVariable(offset=offset) if by_reference:
                return self.own.is_outer(offset.name)
            case PointerValue(offset=offset, tag=tag, targets=targets):
                names = _variables_of(offset, tag, *map(_place_of, targets))
            case Lvalue(place=place) if by_reference:
                names = _variables_of(place)
                root = root_of(place)
                if isinstance(root, n.Variable):
                    names.discard(root.name)
                    if not self.own.is_outer(root.name):
                        return False
            case _:
                return False
        return all(self.own.is_outer(name) and name in known for name in names)


def _referred(cx: Context, pointer: PointerValue, span: Span) -> Value:
    """What an address that a reference was made of leads to. Of an object it is the object."""
    fixed = with_fixed_place(cx, pointer, span)
    assert isinstance(fixed, PointerValue)
    found: list[Any] = []
    for target in fixed.targets:
        start = ZERO if isinstance(target, ObjectTarget) else fixed.offset
        one = replace(fixed, targets=(target,), offset=start, tag=None)
        several = len(fixed.targets) > 1
        found.append(None if several and isinstance(target, NullTarget) else follow(cx, one, span))
    if fixed.tag is None:
        return found[0]  # type: ignore[no-any-return]
    return ChoiceLvalue(fixed.tag, tuple(found), fixed.to)


def _place_of(target: Any) -> Any:
    return target.place if isinstance(target, (ItemTarget, ObjectTarget)) else None


def _variables_of(*nodes: Any) -> set[str]:
    return {
        one.name
        for node in nodes
        if node is not None
        for one in walk(node)
        if isinstance(one, n.Variable)
    }


def _by_value(type: CppType) -> CppType:
    """The type of a parameter; a reference to a const number is passed by value."""
    plain = isinstance(type, Reference) and isinstance(type.to, (Arithmetic, VectorType, EnumType))
    return type.to if plain and type.const else type  # type: ignore[union-attr]


def _lower_body(member: _Member) -> None:
    if member.lower is not None:
        member.lower(member.cx)
        return
    body = member.chosen.declaration.body
    assert body is not None
    member.cx.rules.statement(member.cx, body)


# --- calls ---------------------------------------------------------------------------------------


def _pass(
    cx: Context,
    own: Recursion,
    member: _Member,
    values: Sequence[Value],
    receiver: Value | None,
    span: Span,
    is_first: bool,
) -> None:
    """Put the arguments of a call into their places."""
    given = list(values) if receiver is None else [receiver, *values]
    changed = [
        one.key
        for one, value in zip(member.parameters, given, strict=True)
        if one.place is None and not is_first and not _is_same(one.given, value)
    ]
    if changed:
        cx.lowering.facts.varying.update(changed)
        cx.lowering.facts.changed = True
    ready: list[tuple[_Parameter, Any]] = []
    for one, value in zip(member.parameters, given, strict=True):
        if one.place is not None:
            ready.append((one, _argument(cx, own, one.type, value, span)))
    for one, argument in ready:
        if argument is None:
            continue
        if isinstance(one.type, Reference):
            assign_pointer(cx, one.place, argument, span)
        else:
            initialize(cx, one.place, argument, span)


def _is_same(given: Any, value: Any) -> bool:
    """Whether an argument is what the parameter of the calling function refers to, or holds."""
    if isinstance(given, KnownValue):
        given = given.value
    type = getattr(given, "type", None)
    if isinstance(type, ClassType) and getattr(value, "type", None) == type:
        fields = all_fields(type)
        if not fields:
            return True
        captures = all(isinstance(one.type, Reference) for one in fields)  # of a lambda
        if captures and isinstance(given, SplitStruct) and isinstance(value, SplitStruct):
            return all(_is_same(given.fields[one], value.fields[one]) for one in given.fields)
    return given is not None and same_object(given, value)


def _argument(cx: Context, own: Recursion, type: CppType, value: Value, span: Span) -> Any:
    """An argument, converted: for a reference a pointer. None if the next run makes a memory for
    what it points to."""
    if isinstance(type, Reference):
        if not binds_directly(value, type) or isinstance(value, Rvalue):  # a temporary object
            cx.calls += 1
            key = (cx.path, "temporary", cx.calls)
            value = declare_object(cx, "value", type.to, key, value, span)
        return _pointer_to(cx, own, bind_reference(cx, type, value, span), span)
    converted = convert(cx, value, type, span)
    if isinstance(converted, Rvalue):
        return Rvalue(cx.copied(converted.expression), converted.type)
    if _demands_memory(cx, own, converted, span):
        return None
    return with_fixed_place(cx, converted, span)


def _pointer_to(cx: Context, own: Recursion, value: Value, span: Span) -> PointerValue | None:
    """The address of an object; None if the next run makes a memory for it."""
    if isinstance(value, (SplitStruct, PointerVariable)):
        demand_address(cx, ObjectAddress(value))
    pointer = address(cx, value, span)
    if _demands_memory(cx, own, pointer, span):
        return None
    fixed = with_fixed_place(cx, pointer, span)
    assert isinstance(fixed, PointerValue)
    return fixed


def _demands_memory(cx: Context, own: Recursion, value: Any, span: Span) -> bool:
    """Whether an argument points to objects of a frame without a memory, which the next run gives
    them: their variables have the values of another frame during the call."""
    if isinstance(value, SplitStruct):
        found = [_demands_memory(cx, own, part, span) for part in value.fields.values()]
        return any(found)
    if isinstance(value, ObjectAddress):
        demand_address(cx, value)
        return False
    pointer = pointer_of(cx, value)
    demanded = False
    for target in () if pointer is None else pointer.targets:
        place = _place_of(target)
        root = None if place is None else root_of(place)
        if not isinstance(root, n.Variable) or own.is_outer(root.name):
            continue
        if root.name not in cx.lowering.unknown and not note_memory(cx, place):
            raise cx.error(
                "a function that calls itself gets a pointer or reference to a temporary object "
                "here: make it a variable",
                span,
            )
        demanded = True
    return demanded


def _taken(cx: Context, member: _Member, span: Span) -> Value:
    """The result of a call, which the next call replaces."""
    type, place = member.result, member.place
    if isinstance(type, Void):
        return VoidValue(VOID)
    if isinstance(place, PointerVariable):
        pointer = pointer_of(cx, place)
        assert pointer is not None
        if not isinstance(type, Reference):
            return with_fixed_place(cx, pointer, span)
        category: Category = "xvalue" if type.rvalue else "lvalue"
        referred = with_category(_referred(cx, pointer, span), category)
        found: Value = as_const(referred) if type.const else referred
        return found
    if isinstance(place, Lvalue) and isinstance(place.place, n.Variable) and not acts(type):
        return Rvalue(cx.let_as("value", place.place, span), type)
    cx.calls += 1
    made = without_value(cx, "value", type, (cx.path, "taken", cx.calls), span)
    put(cx, made, place, type, span)
    value: Value = temporary(cx, made, type) if isinstance(type, ClassType) else made
    return value

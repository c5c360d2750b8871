"""Calls of virtual functions: a branch for each function that may be meant, by the number of the
class that is kept in the object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.choices import for_each_choice
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.function_pointers import kept
from treadle.cuda_cpp.lower.functions import call_function, with_defaults
from treadle.cuda_cpp.lower.hierarchy import (
    derived_classes,
    is_virtual,
    number_of_class,
    overrider,
)
from treadle.cuda_cpp.lower.inlining import bind_result
from treadle.cuda_cpp.lower.objects import load
from treadle.cuda_cpp.lower.overloads import result_type
from treadle.cuda_cpp.lower.pointers import is_base_of
from treadle.cuda_cpp.lower.special_members import TABLE, has_virtual_destructor
from treadle.cuda_cpp.lower.usable import for_host, signature
from treadle.cuda_cpp.lower.values import (
    Candidate,
    ChoiceLvalue,
    Lvalue,
    SplitStruct,
    Value,
    VoidValue,
)
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.scopes import Overload
from treadle.cuda_cpp.semantics.types import VOID, ClassType, Reference, Void, ir_type
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of


class _Group(NamedTuple):
    """The classes for which a call means the same: `what` and the class that it is called on."""

    what: Overload | None
    owner: ClassType
    classes: list[ClassType]


def call_virtual(
    cx: Context, chosen: Candidate, values: Sequence[Value], receiver: Value, span: Span
) -> Value | None:
    """A call of a virtual function on an object; None if the function is not virtual."""
    type = getattr(receiver, "type", None)
    if not isinstance(type, ClassType) or not is_virtual(cx, chosen.overload):
        return None
    if cx.lowering.unevaluated or cx.lowering.calls_are_examples:
        return None
    if chosen.declaration.note == "pure" and "device" not in chosen.declaration.specifiers:
        raise cx.error(for_host(signature(chosen.overload)), span)
    result = result_type(cx, chosen)
    arguments = [
        kept(cx, one, to, span)
        for one, to in zip(with_defaults(cx, chosen, values), chosen.types, strict=False)
    ]
    if result is None or isinstance(result, Reference):
        groups = _groups(cx, receiver, type, chosen.overload)[0]
        if len(groups) == 1 and not isinstance(receiver, ChoiceLvalue):
            return _call(cx, groups[0], chosen, arguments, receiver, span)
        raise cx.error("a call of one of several functions that return references", span)

    def call(group: _Group, one: Value) -> Value:
        return _call(cx, group, chosen, arguments, one, span)

    def groups_of(one: Value) -> tuple[list[_Group], bool]:
        return _groups(cx, one, type, chosen.overload)

    if isinstance(result, Void):
        _dispatch(cx, receiver, groups_of, call, span)
        return VoidValue(VOID)
    cx.calls += 1
    made, assign = bind_result(cx, "called", result, (cx.path, "virtual", cx.calls), span)
    _dispatch(cx, receiver, groups_of, lambda group, one: assign(call(group, one)), span)
    return made


def _call(
    cx: Context,
    group: _Group,
    chosen: Candidate,
    values: Sequence[Value],
    receiver: Value,
    span: Span,
) -> Value:
    assert group.what is not None
    candidate = replace(chosen, overload=group.what, scope=group.what.scope)
    return call_function(cx, candidate, values, _as(cx, receiver, group.owner, span), span)


def destroy_by_table(cx: Context, receiver: Value, type: ClassType, span: Span) -> bool:
    """End an object whose class has a virtual destructor, as the class that it is of; False if it
    has none."""
    if not has_virtual_destructor(type) or cx.lowering.calls_are_examples:
        return False

    def groups_of(one: Value) -> tuple[list[_Group], bool]:
        classes, all_known = derived_classes(cx, type)
        classes = _possible(cx, one, classes)
        return [_Group(None, each, [each]) for each in classes], all_known

    def destroy(group: _Group, one: Value) -> None:
        cx.rules.destroy(cx, _as(cx, one, group.owner, span), group.owner, span)

    _dispatch(cx, receiver, groups_of, destroy, span)
    return True


def _groups(
    cx: Context, receiver: Value, type: ClassType, method: Overload
) -> tuple[list[_Group], bool]:
    """The functions that a call may mean, and whether these are all."""
    classes, all_known = derived_classes(cx, type)
    found: dict[int, _Group] = {}
    for one in _possible(cx, receiver, classes):
        last = overrider(cx, one, method)
        if last is None or last.declaration.note == "pure":
            continue
        owner = last.owner if derives(last.owner, type) else type
        group = found.setdefault(id(last.declaration), _Group(last, owner, []))
        group.classes.append(one)
    return list(found.values()), all_known


def _possible(cx: Context, receiver: Value, classes: Sequence[ClassType]) -> list[ClassType]:
    """The classes that an object may be of, if its storage says that."""
    found = list(classes)
    if isinstance(receiver, SplitStruct):
        whole = (receiver.whole or receiver).type
        found = [one for one in classes if one == whole or derives(whole, one)]
    elif isinstance(receiver, Lvalue):
        stored = _stored(cx, receiver)
        if stored is not None:
            owners = [one for one in classes if ir_type(one) == stored]
            found = [
                one for one in classes if any(one == each or derives(each, one) for each in owners)
            ]
    return found or list(classes)


def _stored(cx: Context, receiver: Lvalue) -> ir.Type | None:
    """The type of the whole object that a place is in; None in memory for any type."""
    place, root = receiver.place, root_of(receiver.place)
    if isinstance(root, n.Variable):
        unknown = root.name in cx.lowering.unknown or root.name in cx.lowering.nulls
        return None if unknown else place.type
    if isinstance(place, n.Element):
        target = cx.lowering.memory_targets.get(place.memory)
        if target is not None and isinstance(target.element, ir.Struct):
            return target.element
    return place.type if is_base_of(place, receiver.type) else None


def _dispatch(
    cx: Context,
    receiver: Value,
    groups_of: Callable[[Value], tuple[list[_Group], bool]],
    do: Callable[[_Group, Value], object],
    span: Span,
) -> None:
    """Emit `do` for the group that the object's number selects."""
    if isinstance(receiver, ChoiceLvalue):
        for_each_choice(
            cx,
            receiver.tag,
            receiver.choices,
            lambda one: _dispatch(cx, one, groups_of, do, span),
            span,
        )
        return
    groups, all_known = groups_of(receiver)
    if not groups:  # no object is there, as its class would be abstract
        return
    if len(groups) == 1 and all_known:
        do(groups[0], receiver)
        return
    part = cx.rules.member_of(cx, receiver, tree.Name(TABLE), span)
    number = cx.let(n.Extract(load(cx, part, span).expression, "x", ir.U32, span))
    _branch(cx, number, groups, all_known, lambda group: do(group, receiver), span)


def _branch(
    cx: Context,
    number: n.Expression,
    groups: Sequence[_Group],
    all_known: bool,
    do: Callable[[_Group], object],
    span: Span,
) -> None:
    if not groups:
        text = "a virtual function of an object whose class this kernel does not know"
        cx.emit(n.Assert(n.FALSE, text, True, cx.name, span=span))
        return
    if len(groups) == 1 and all_known:
        do(groups[0])
        return
    test: n.Expression = n.FALSE
    for at, one in enumerate(groups[0].classes):
        equal = n.Binary("eq", number, constant(number_of_class(one), ir.U32), ir.BOOL, span)
        test = equal if not at else n.Binary("logical_or", test, equal, ir.BOOL, span)
    with cx.separate_block() as then:
        do(groups[0])
    with cx.separate_block() as otherwise:
        _branch(cx, number, groups[1:], all_known, do, span)
    cx.emit(n.If(test, tuple(then), tuple(otherwise), span))


def _as(cx: Context, receiver: Value, owner: ClassType, span: Span) -> Value:
    """An object as one of the class that its number says."""
    type = getattr(receiver, "type", None)
    if type == owner:
        return receiver
    if derives(type, owner):
        return as_base(cx, receiver, owner, span)
    if isinstance(receiver, SplitStruct):
        whole = receiver.whole or receiver
        return whole if whole.type == owner else as_base(cx, whole, owner, span)
    const = bool(getattr(receiver, "const", False))
    return explicit_cast(cx, receiver, Reference(owner, const), "static_cast", span)

"""Assignment and initialization of numbers, pointers and objects, and the steps `++` and `--`."""

from __future__ import annotations

import math
from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, plus
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.choices import choose, for_each_choice
from treadle.cuda_cpp.lower.context import ChosenOperator, Context, LowerAgain
from treadle.cuda_cpp.lower.conversions import (
    OBJECTS,
    convert,
    is_lvalue,
    number_as,
    promoted,
    rvalue,
    underlying,
)
from treadle.cuda_cpp.lower.copy_initialization import check_copy
from treadle.cuda_cpp.lower.objects import (
    copy_object,
    load,
    member,
    part_of,
    refuse_const,
    store,
    subscript,
)
from treadle.cuda_cpp.lower.operators import binary, is_object_of_class
from treadle.cuda_cpp.lower.pointers import (
    ZERO,
    address,
    demand_address,
    in_steps_of,
    known_targets,
    moved,
    note_memory,
    pointer_of,
    with_lasting_target,
)
from treadle.cuda_cpp.lower.slots import flows, store_slot, targets_of_key
from treadle.cuda_cpp.lower.special_members import (
    TABLE,
    acts,
    lack_of_assignment,
    lifetime_of,
    moves_members,
)
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    Category,
    ChoiceLvalue,
    ChosenPointer,
    ItemTarget,
    Lvalue,
    MemoryTarget,
    NullTarget,
    ObjectTarget,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    SplitArray,
    SplitStruct,
    Target,
    Value,
    describe,
    pointer_in_memory,
    with_category,
)
from treadle.cuda_cpp.semantics.types import (
    INT,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    Pointer,
    Reference,
    all_fields,
    holds_array,
    holds_pointer,
    holds_pointer_union,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of


def assign_pointer(
    cx: Context, variable: PointerVariable, pointer: PointerValue, span: Span
) -> None:
    """Assign to a pointer variable."""
    pointer = with_lasting_target(cx, pointer, span)
    facts = cx.lowering.facts
    known = facts.targets.setdefault(variable.key, [])
    targets = known_targets(cx, pointer.targets)
    facts.given.setdefault(variable.key, []).extend(targets)
    for target in targets:
        if target not in known:
            known.append(target)
            facts.changed = True
    aligned = in_steps_of(cx, pointer, variable.unit, accessed=False)
    if aligned is None:  # it may be misaligned: the next run uses smaller units
        facts.units[variable.key] = math.gcd(pointer.unit, variable.unit)
        raise LowerAgain
    offset = aligned.offset
    if offset.type == ir.I64 and variable.offset.type == ir.I32:
        facts.wide.add(variable.key)
        facts.changed = True
        offset = cast(offset, ir.I32)
    assert isinstance(variable.offset.type, ir.Scalar)
    new_offset = cast(offset, variable.offset.type)
    if variable.tag is not None:
        tag = _tag_in(variable, pointer, span)
        kept = cx.copied(new_offset)
        cx.emit(n.Assign(variable.tag, tag, span))
        cx.emit(n.Assign(variable.offset, kept, span))
    else:
        cx.emit(n.Assign(variable.offset, new_offset, span))


def _tag_in(variable: PointerVariable, pointer: PointerValue, span: Span) -> n.Expression:
    """The tag of a pointer's target among the targets of a variable."""
    places = [_place_of(variable, target) for target in pointer.targets]
    if pointer.tag is None:
        return constant(places[0], ir.I32, span)
    if places == list(range(len(places))):
        return pointer.tag
    result: n.Expression = constant(places[-1], ir.I32, span)
    for number_, place in reversed(list(enumerate(places[:-1]))):
        test = n.Binary("eq", pointer.tag, constant(number_, ir.I32), ir.BOOL, span)
        result = n.Select(test, constant(place, ir.I32), result, ir.I32, span)
    return result


def _place_of(variable: PointerVariable, target: Target) -> int:
    return variable.targets.index(target) if target in variable.targets else 0


def stepped(cx: Context, op: str, operand: Value, postfix: bool, span: Span) -> Value:
    """`++x`, `--x`, `x++` and `x--`."""
    if pointer_in_memory(operand) or isinstance(
        operand, (PointerVariable, ParameterPointer, ChosenPointer)
    ):
        pointer = pointer_of(cx, operand)
        assert pointer is not None
        if postfix:
            kept = cx.copied(pointer.offset)
            tag = None if pointer.tag is None else cx.copied(pointer.tag)
            pointer = PointerValue(pointer.targets, kept, pointer.unit, pointer.to, tag)
        by = constant(1 if op == "++" else -1, ir.I32)
        initialize(cx, operand, moved(cx, pointer, by, span), span)
        return pointer if postfix else operand
    if is_object_of_class(operand):
        arguments: list[Value] = [operand]
        if postfix:
            arguments.append(Rvalue(constant(0, ir.I32), INT))
        made = cx.rules.call_operator(cx, op, arguments, span)
        if made is not None:
            return made
    demand_address(cx, operand)
    if not isinstance(operand, OBJECTS):
        raise cx.unfit(f"{op} takes a variable, not {describe(operand)}", operand, span)
    read = load(cx, operand, span)
    type = underlying(read.type)
    if type is None:
        raise cx.wrong(f"{op} takes a number or pointer, not {describe(operand)}", span)
    if isinstance(read.type, EnumType):
        raise cx.wrong(
            f"{op} takes a number or pointer, not the enum {read.type}: write "
            f"x = {read.type}(x {op[0]} 1), or declare operator{op} for it",
            span,
        )
    old = cx.copied(read.expression) if postfix else read.expression
    wide = promoted(type)
    one = constant(1, wide.scalar)
    new = n.Binary(
        "add" if op == "++" else "sub", number_as(old, wide, span), one, wide.scalar, span
    )
    store(cx, operand, number_as(new, type, span), span)
    return Rvalue(old, read.type) if postfix else operand


def assign(cx: Context, op: str, target: Value, value: Value, span: Span) -> Value:
    """`target = value` and compound assignments."""
    chosen = operator_of_assignment(cx, op, target, value, span)
    if chosen is not None:
        made: Value = chosen.call(cx, [target, value], span)
        return made
    if op != "=":
        value = binary(cx, op[:-1], target, value, span)
        if isinstance(target, OBJECTS) and isinstance(value, Rvalue):
            value = _back(cx, value, target, span)
    type = getattr(target, "type", None)
    if op == "=":
        check_copy(cx, value, type, span)
    if isinstance(type, ClassType) and op == "=":
        _refuse_unassignable(cx, type, value, span)
    if isinstance(type, ClassType) and op == "=" and lifetime_of(type).assigns:
        converted = convert(cx, value, type, span)
        same = getattr(converted, "type", None) == type
        if isinstance(target, (*OBJECTS, SplitStruct)) and same:
            _assign_members(cx, target, converted, type, span)
            return target
    return _store(cx, target, value, span)


def _refuse_unassignable(cx: Context, type: ClassType, value: Value, span: Span) -> None:
    """CompileError for an assignment that is deleted implicitly."""
    same = getattr(value, "type", None) == type
    if reason := lack_of_assignment(type, same and is_lvalue(value)):
        raise cx.amiss(f"an object of {type} cannot be assigned to: {reason}", span, type)


def _assign_members(cx: Context, target: Value, value: Value, type: ClassType, span: Span) -> None:
    """The assignment that a class has without an operator= of its own: of bases and members."""
    if type.is_union:
        _store(cx, target, value, span)
        return
    moved = getattr(value, "category", "lvalue") != "lvalue" and moves_members(type, "assignment")
    category: Category = "xvalue" if moved else "lvalue"
    for base in type.bases:
        one, other = (as_base(cx, each, base, span) for each in (target, value))
        assign(cx, "=", one, with_category(other, category), span)
    for field in type.fields:
        if field.name == TABLE:
            continue
        one, other = (part_of(cx, each, field, span) for each in (target, value))
        _assign_member(cx, one, other, field.type, category, span)


def _assign_member(
    cx: Context, one: Value, other: Value, type: CppType, category: Category, span: Span
) -> None:
    if not isinstance(type, ArrayOf):
        assign(cx, "=", one, with_category(other, category), span)
    elif lifetime_of(type).assigns:
        for at in range(type.length or 0):
            index = constant(at, ir.I32)
            item, new = (subscript(cx, each, index, span) for each in (one, other))
            _assign_member(cx, item, new, type.element, category, span)
    else:
        _assign_part(cx, one, other, span)


def operator_of_assignment(
    cx: Context, op: str, target: Value, value: Value, span: Span
) -> ChosenOperator | None:
    """The operator function that an assignment calls; None for the built-in operator."""
    of_class = isinstance(getattr(target, "type", None), ClassType)
    if not of_class and (op == "=" or not is_object_of_class(target)):
        return None
    return cx.rules.chosen_operator(cx, op, [target, value], span, members_only=op == "=")


def initialize(cx: Context, target: Value, value: Value, span: Span) -> Value:
    """Initialize a place: no `operator=` is called, but the copy constructor of a class."""
    type = getattr(target, "type", None)
    if isinstance(type, ClassType) and acts(type):
        converted = convert(cx, value, type, span)
        if getattr(converted, "type", None) == type:
            cx.rules.copy_into(cx, target, converted, type, span)
            return target
    return _store(cx, target, value, span)


def put(cx: Context, target: Value, value: Value, type: CppType, span: Span) -> None:
    """Copy an object as its bytes."""
    if isinstance(target, (Lvalue, ChoiceLvalue, ScatteredLvalue)) and holds_pointer(type):
        keep(cx, target, value, span)
        return
    if isinstance(type, (ArrayOf, ClassType)) and not isinstance(target, SplitStruct):
        copy_object(cx, target, value, type, span)
    else:
        _assign_part(cx, target, value, span)


def _store(cx: Context, target: Value, value: Value, span: Span) -> Value:
    if isinstance(target, (PointerVariable, ParameterPointer, ChosenPointer)):
        converted = cx.rules.text_pointer(cx, convert(cx, value, target.type, span), span)
        pointer = pointer_of(cx, converted)
        if pointer is None:
            demand_address(cx, converted)
            raise cx.unfit(f"{describe(value)} is not a pointer to {target.to}", value, span)
        _point(cx, target, pointer, span)
        return target
    if isinstance(target, SplitStruct):
        return _assign_fields(cx, target, value, span)
    if isinstance(target, (Lvalue, ChoiceLvalue, ScatteredLvalue)) and holds_pointer(target.type):
        return keep(cx, target, value, span)
    if not isinstance(target, OBJECTS):
        demand_address(cx, target)
        cure = ": copy its elements" if isinstance(target, ArrayValue) else ""
        raise cx.unfit(f"{describe(target)} cannot be assigned to{cure}", target, span)
    converted = convert(cx, value, target.type, span)
    if holds_array(target.type):
        copy_object(cx, target, converted, target.type, span)
    else:
        store(cx, target, rvalue(cx, converted, span).expression, span)
    return target


def keep(
    cx: Context, target: Lvalue | ChoiceLvalue | ScatteredLvalue, value: Value, span: Span
) -> Value:
    """Assign to a pointer in memory, or to a struct with pointers there."""
    refuse_const(cx, target, span)
    if isinstance(target.type, ClassType) and target.type.is_union:
        _keep_union(cx, target, convert(cx, value, target.type, span), span)
        return target
    if isinstance(target, ChoiceLvalue):
        kept = convert(cx, value, target.type, span)
        for_each_choice(cx, target.tag, target.choices, lambda one: keep(cx, one, kept, span), span)
        return target
    if isinstance(target.type, Pointer):
        assert isinstance(target, Lvalue)  # pointers are aligned
        converted = cx.rules.text_pointer(cx, convert(cx, value, target.type, span), span)
        pointer = pointer_of(cx, converted)
        if pointer is None:
            demand_address(cx, converted)
            raise cx.unfit(f"{describe(value)} is not a pointer to {target.type.to}", value, span)
        store_slot(cx, target.place, _to_memory(cx, pointer, span), span)
        return target
    assert isinstance(target.type, ClassType)
    source = convert(cx, value, target.type, span)
    for one in all_fields(target.type):
        part = member(cx, target, one.name, one.type, span)
        if isinstance(source, SplitStruct):
            given = source.fields[one.name]
        else:
            given = member(cx, source, one.name, one.type, span)
        _assign_part(cx, part, given, span)
    return target


def _keep_union(cx: Context, target: Value, source: Value, span: Span) -> None:
    """Copy the bytes of a union, which may be those of a pointer."""
    if isinstance(source, ChoiceLvalue):
        for_each_choice(
            cx,
            source.tag,
            source.choices,
            lambda one: _keep_union(cx, target, one, span),
            span,
        )
        return
    assert isinstance(target, Lvalue), "unions are in memory"
    copy_object(cx, target, source, target.type, span)
    if isinstance(source, Lvalue):
        come, to = root_of(source.place), root_of(target.place)
        if isinstance(come, n.Element) and isinstance(to, n.Element):
            flows(cx, (to.memory, ()), targets_of_key(cx, (come.memory, ())))


def _to_memory(cx: Context, pointer: PointerValue, span: Span) -> PointerValue:
    """A pointer in bytes whose targets are memories. Objects that have none get one."""
    first = pointer.targets[0]
    if len(pointer.targets) == 1 and isinstance(first, (ObjectTarget, ItemTarget)):
        found = address(cx, Lvalue(first.place, pointer.to), span)
        if not isinstance(found.targets[0], MemoryTarget):
            if note_memory(cx, first.place):
                return PointerValue((NullTarget(),), ZERO, 1, pointer.to, const=pointer.const)
            raise cx.error("the address of this object cannot be kept in memory", span)
        start, further = in_steps_of(cx, found, 1), in_steps_of(cx, pointer, 1)
        assert start is not None
        assert further is not None
        return replace(start, offset=plus(start.offset, further.offset))
    made = in_steps_of(cx, pointer, 1)
    assert made is not None
    return made


def _back(cx: Context, value: Rvalue, target: Value, span: Span) -> Rvalue:
    """The result of a compound assignment, converted to the target's type."""
    type = getattr(target, "type", value.type)
    if isinstance(type, Arithmetic) and isinstance(value.type, Arithmetic):
        return Rvalue(number_as(value.expression, type, span), type)
    return value


def _point(
    cx: Context,
    target: PointerVariable | ParameterPointer | ChosenPointer,
    pointer: PointerValue,
    span: Span,
) -> None:
    """Assign to a pointer variable or member."""
    if isinstance(target, PointerVariable):
        if target.fixed:
            raise cx.wrong("this pointer is const, so it cannot be assigned to", span)
        assign_pointer(cx, target, pointer, span)
        if target.key in cx.lowering.literals and target.key not in cx.lowering.facts.assigned:
            cx.lowering.facts.assigned.add(target.key)
            raise LowerAgain
        return
    if isinstance(target, ParameterPointer):
        cx.lowering.facts.assigned.add(target.key)
        raise LowerAgain
    choices = list(enumerate(target.items))
    choose(cx, target.place, choices, lambda one: assign(cx, "=", one, pointer, span), span)


def _assign_fields(cx: Context, target: SplitStruct, value: Value, span: Span) -> Value:
    value = convert(cx, value, target.type, span)
    whole = isinstance(value, (Rvalue, *OBJECTS)) and not holds_pointer(target.type)
    if whole and getattr(value, "type", None) == target.type:  # a base of an object in parts
        for one in all_fields(target.type):
            _assign_part(cx, target.fields[one.name], part_of(cx, value, one, span), span)
        return target
    if not isinstance(value, SplitStruct) or value.type != target.type:
        alike = str(getattr(value, "type", "")) == str(target.type)
        message = f"{describe(value)} does not convert to {target.type}"
        raise (cx.error if alike else cx.wrong)(message, span)
    references = {one.name for one in all_fields(target.type) if isinstance(one.type, Reference)}
    for name, part in target.fields.items():
        if name in references:
            if part is not None and part != value.fields[name]:
                raise cx.error(f"{target.type} has the reference {name}: it is not assigned", span)
            target.fields[name] = value.fields[name]
            continue
        _assign_part(cx, part, value.fields[name], span)
    return target


def _assign_part(cx: Context, target: Value, value: Value, span: Span) -> None:
    """Assign a member of a struct, which may be an array, from that of another one."""
    if isinstance(target, SplitArray) and isinstance(value, SplitArray):
        for one, other in zip(target.items, value.items, strict=True):
            _assign_part(cx, one, other, span)
    elif isinstance(target, ArrayValue) and holds_pointer(target.type):
        for at in range(target.type.length or 0):
            index = constant(at, ir.I32)
            _assign_part(
                cx, subscript(cx, target, index, span), subscript(cx, value, index, span), span
            )
    elif isinstance(target, ArrayValue):
        copy_object(cx, target, value, target.type, span)
    elif isinstance(target, (Lvalue, ChoiceLvalue)) and holds_pointer_union(target.type):
        keep(cx, target, value, span)
    else:
        _store(cx, target, value, span)  # an operator= is not called: this may initialize

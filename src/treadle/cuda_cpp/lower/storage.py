"""Storage of a thread's objects: variables of the IR, memories, or parts, for objects with pointers
in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, plus, times
from treadle.cuda_cpp.lower.assignment import (
    assign_pointer,
    keep,
)
from treadle.cuda_cpp.lower.context import Context, completed
from treadle.cuda_cpp.lower.conversions import convert, rvalue
from treadle.cuda_cpp.lower.names import refuse_void
from treadle.cuda_cpp.lower.objects import copy_object, store, subscript
from treadle.cuda_cpp.lower.pointers import (
    MOST_ITEMS,
    ZERO,
    follow,
    known_targets,
    pointer_of,
    unit_of,
)
from treadle.cuda_cpp.lower.special_members import acts, has_default_constructor
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ChosenText,
    Lvalue,
    MemoryTarget,
    ObjectAddress,
    PointerValue,
    PointerVariable,
    SplitArray,
    SplitStruct,
    Text,
    Value,
)
from treadle.cuda_cpp.semantics.types import (
    CHAR,
    SLOT,
    ArrayOf,
    ClassType,
    CppType,
    NoLayout,
    Pointer,
    Reference,
    Void,
    all_fields,
    count_of,
    holds_array,
    holds_pointer,
    innermost,
    ir_type,
    is_split,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir


def pointer_items(
    cx: Context, name: str, type: ArrayOf, key: Any, values: SplitArray | None, span: Span
) -> SplitArray | ArrayValue:
    """A new array of pointers, or of structs with pointers in them, as a variable for each item,
    initialized from `values` if given; a larger array is in memory."""
    in_memory = key in cx.lowering.facts.in_memory or not is_split(type)
    if in_memory or (count_of(type) > MOST_ITEMS and values is None):
        made = array_memory(cx, name, type, "local", span)
        for at, item in enumerate(() if values is None else values.items):
            place = subscript(cx, made, constant(at, ir.I32), span)
            assert isinstance(place, Lvalue)
            keep(cx, place, item, span)
        return made
    items = []
    for at in range(type.length or 0):
        named = f"{name}.{at}"
        if values is None:
            items.append(without_value(cx, named, type.element, (key, at), span))
        else:
            items.append(declare_object(cx, named, type.element, (key, at), values.items[at], span))
    return SplitArray(type, tuple(items), key)


def without_value(cx: Context, name: str, type: CppType, key: Any, span: Span) -> Any:
    """A new object whose constructor is not run: it is initialized later."""
    if isinstance(type, ClassType):
        return uninitialized(cx, name, type, key, span)
    return declare_object(cx, name, type, key, None, span)


def construct_items(cx: Context, value: ArrayValue | SplitArray, type: ArrayOf, span: Span) -> None:
    """Run the default constructors of an array's elements, if the class has one."""
    owner = innermost(type)
    assert isinstance(owner, ClassType)
    if not has_default_constructor(owner):
        return

    def construct(index: n.Expression) -> None:
        item: Any = subscript(cx, value, index, span)
        if isinstance(type.element, ArrayOf):
            construct_items(cx, item, type.element, span)
        else:
            cx.rules.run_constructor(cx, item, owner, [], span)

    length = type.length or 0
    if length <= _MOST_UNROLLED or isinstance(value, SplitArray):
        for at in range(length):
            construct(constant(at, ir.I32))
        return
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, span)
    with cx.separate_block() as body:
        construct(variable)
    cx.emit(n.For(variable, ZERO, constant(length, ir.I32), 1, tuple(body), span=span))


_MOST_UNROLLED = 16  # objects of an array


def array_memory(cx: Context, name: str, type: ArrayOf, space: str, span: Span) -> ArrayValue:
    """A new array in a memory of its own."""
    element = element_type(cx, innermost(type), span)
    length = count_of(type)
    if length < 1:
        raise cx.error(f"the array {name} has no elements", span)
    target = new_memory(cx, name, space, element, length, span)
    inner = innermost(type)
    start = frame_start(cx, space, length)
    return ArrayValue(PointerValue((target,), start, unit_of(inner), type), type)


def frame_start(cx: Context, space: str, length: int) -> n.Expression:
    """Where the current frame of a function that calls itself begins in a new local memory of it,
    which has an element for each level."""
    if cx.recursion is None or space != "local":
        return ZERO
    return times(cx.recursion.level, length)


def text_array(cx: Context, text: Text, span: Span) -> ArrayValue:
    """A string literal as an array of characters."""
    cx.note("emulated", "a string literal as an array", "a local array that is filled here", span)
    characters = (*text.data, 0)
    made = array_memory(cx, "text", ArrayOf(CHAR, len(characters)), "local", span)
    for at, character in enumerate(characters):
        place = subscript(cx, made, constant(at, ir.I32), span)
        value = character - 256 if character > 127 else character
        store(cx, place, constant(value, CHAR.scalar), span)
    return replace(made, first=replace(made.first, const=True))


def text_pointer(cx: Context, value: Value, span: Span) -> Value:
    """A pointer to the characters of a string literal, or of one of several; other values as they
    are."""
    if isinstance(value, Text):
        first = text_array(cx, value, span).first
        return replace(first, to=CHAR)
    if not isinstance(value, ChosenText):
        return value
    pointers = [pointer_of(cx, text_pointer(cx, one, span)) for one in (value.one, value.other)]
    one, other = pointers
    assert one is not None
    assert other is not None
    tags = [constant(0, ir.I32) if p.tag is None else p.tag for p in (one, other)]
    second = plus(tags[1], constant(len(one.targets), ir.I32))
    tag = cx.copied(n.Select(value.test, tags[0], second, ir.I32, span))
    return replace(one, targets=(*one.targets, *other.targets), tag=tag)


def element_type(cx: Context, type: CppType, span: Span) -> ir.Type:
    try:
        return ir_type(type)
    except NoLayout as reason:
        raise cx.error(f"an array of {type}: {reason}", span) from None


def new_memory(
    cx: Context, name: str, space: str, element: ir.Type, length: int, span: Span
) -> MemoryTarget:
    """A new shared or local memory of the kernel."""
    if space == "local":
        length *= 1 if cx.recursion is None else cx.recursion.levels
        memory = cx.local_memory(name, element, length, span)
    else:
        memory = n.Memory(cx.lowering.unique(name), "shared", element, length, span)
        cx.lowering.memories.append(memory)
    size = constant(length, ir.I32)
    target = MemoryTarget(memory.name, space, element, size)
    cx.lowering.memory_targets[memory.name] = target
    return target


def declare_object(
    cx: Context, name: str, type: CppType, key: Any, value: Value | None, span: Span
) -> Any:
    """A new object of a thread, initialized with a value if given."""
    type = completed(cx, type)
    if isinstance(type, Reference):
        return value  # what a member refers to; None until it is initialized
    if isinstance(type, Pointer):
        return _declare_pointer_with(cx, name, type, key, value, span)
    if isinstance(type, ArrayOf) and is_split(type):
        if _is_table_by_value(cx, value):  # which nothing changes
            return value
        values = None if value is None else convert(cx, value, type, span)
        assert values is None or isinstance(values, SplitArray)
        return pointer_items(cx, name, type, key, values, span)
    if isinstance(type, ArrayOf):
        made = array_memory(cx, name, type, "local", span)
        if value is not None:
            cx.rules.copy_into(cx, made, value, type, span)
        return made
    if isinstance(type, Void):
        refuse_void(cx, name, type, span)
    if value is None:
        place = uninitialized(cx, name, type, key, span)
        if isinstance(type, ClassType) and has_default_constructor(type):
            cx.rules.run_constructor(cx, place, type, [], span)
        return place
    converted = convert(cx, value, type, span)
    if acts(type):
        place = uninitialized(cx, name, type, key, span)
        cx.rules.copy_into(cx, place, converted, type, span)
        return place
    in_memory = holds_array(type) or key in cx.lowering.facts.in_memory
    if isinstance(converted, SplitStruct) and key not in cx.lowering.facts.in_memory:
        return _copied_fields(cx, name, converted, key, span)
    if in_memory:
        place = uninitialized(cx, name, type, key, span)
        if holds_pointer(type):
            keep(cx, place, converted, span)
        else:
            copy_object(cx, place, converted, type, span)
        return place
    variable_ = cx.let_as(name, rvalue(cx, converted, span).expression, span)
    cx.lowering.variable_keys[variable_.name] = key
    return Lvalue(variable_, type)


def _is_table_by_value(cx: Context, value: Any) -> bool:
    """Whether a value is a long array of pointers that the launch passes."""
    if not isinstance(value, ArrayValue) or not isinstance(value.first.targets[0], MemoryTarget):
        return False
    return value.first.targets[0].memory in cx.lowering.tables_by_value


def uninitialized(cx: Context, name: str, type: CppType, key: Any, span: Span) -> Any:
    in_memory = key in cx.lowering.facts.in_memory
    if isinstance(type, ClassType) and is_split(type) and not in_memory:
        return SplitStruct(
            type,
            key=key,
            fields={
                field.name: without_value(
                    cx, f"{name}.{field.name}", field.type, (key, field.name), span
                )
                for field in all_fields(type)
            },
        )
    if holds_array(type) or in_memory:
        target = new_memory(cx, name, "local", element_type(cx, type, span), 1, span)
        own = ir.size_of(element_type(cx, type, span))
        if own == 0:
            raise cx.error(
                f"an object of {type} has no bytes, as its arrays have length 0: give it a member",
                span,
            )
        start = times(frame_start(cx, "local", 1), own // unit_of(type))
        return follow(cx, PointerValue((target,), start, unit_of(type), type), span)
    variable = cx.variable(name, element_type(cx, type, span), span)
    cx.lowering.variable_keys[variable.name] = key
    return Lvalue(variable, type)


def _copied_fields(cx: Context, name: str, value: SplitStruct, key: Any, span: Span) -> SplitStruct:
    fields = {}
    for field in all_fields(value.type):
        part = value.fields[field.name]
        fields[field.name] = declare_object(
            cx, f"{name}.{field.name}", field.type, (key, field.name), part, span
        )
    return SplitStruct(value.type, fields, key=key)


def _pointer_in_memory(
    cx: Context, name: str, type: Pointer, value: Value | None, span: Span
) -> Value:
    """A new pointer that is in memory, as its address is used."""
    target = new_memory(cx, name, "local", SLOT, 1, span)
    start = frame_start(cx, "local", 1)
    place = follow(cx, PointerValue((target,), start, ir.size_of(SLOT), type), span)
    if value is not None:
        assert isinstance(place, Lvalue)
        keep(cx, place, value, span)
    return place


def _declare_pointer_with(
    cx: Context, name: str, type: Pointer, key: Any, value: Value | None, span: Span
) -> Value:
    if key in cx.lowering.facts.in_memory:
        return _pointer_in_memory(cx, name, type, value, span)
    pointer = None
    if value is not None:
        converted = convert(cx, value, type, span)
        if isinstance(converted, (SplitArray, ObjectAddress)):
            return converted
        if isinstance(converted, Text):
            cx.lowering.literals[key] = converted
        converted = text_pointer(cx, converted, span)
        pointer = pointer_of(cx, converted)
        if pointer is None:
            raise cx.wrong(f"{name} is a pointer, and its initializer is not", span)
        # The target of the initializer is known before the declaration: mostly it is the only one.
        known = cx.lowering.facts.targets.setdefault(key, [])
        if not known:
            known.extend(known_targets(cx, pointer.targets))
        if pointer.offset.type == ir.I64:
            cx.lowering.facts.wide.add(key)
    variable = declare_pointer(cx, name, type, key, span)
    if pointer is not None:
        assign_pointer(cx, variable, pointer, span)
        _declare_with_value(cx, variable.offset)
    return variable


def _declare_with_value(cx: Context, variable: n.Variable) -> None:
    """Merge a declaration and the assignment that follows it."""
    block = cx.blocks[-1]
    if len(block) < 2:
        return
    first, second = block[-2:]
    if (
        isinstance(first, n.Declare)
        and isinstance(second, n.Assign)
        and first.variable.name == variable.name
        and second.place == variable
    ):
        block[-2:] = [n.Declare(first.variable, second.value, first.span)]


def declare_pointer(cx: Context, name: str, type: Pointer, key: Any, span: Span) -> PointerVariable:
    """A new pointer variable, with the targets that the previous run found."""
    facts = cx.lowering.facts
    targets = tuple(facts.targets.setdefault(key, []))
    wide = key in facts.wide or cx.lowering.index_type == ir.I64
    offset = cx.variable(name, ir.I64 if wide else ir.I32, span)
    tag = cx.variable(f"{name}.memory", ir.I32, span) if len(targets) > 1 else None
    unit = facts.units.get(key, unit_of(type.to))
    return PointerVariable(key, offset, tag, targets, unit, type.to, type.const)

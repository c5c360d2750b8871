"""Pointers that are kept in memory.

A pointer in memory is two words: an offset in bytes, and the number of the memory that it points
into (0 for null). A memory has the same number everywhere, so words may be copied as bytes. Which
memories a pointer may point into is found as for pointer variables: a fact, by the memory and the
members that lead to the pointer, with all that was ever stored there. The first one is the array
that a launch gives for such a pointer, if it gives one.
"""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, minus, over, plus, times
from treadle.cuda_cpp.lower.choices import for_each_choice
from treadle.cuda_cpp.lower.context import Context, SlotKey
from treadle.cuda_cpp.lower.values import (
    ChoiceLvalue,
    Lvalue,
    MemoryTarget,
    NullTarget,
    PointerValue,
    Target,
)
from treadle.cuda_cpp.program import number_of_memory
from treadle.cuda_cpp.semantics.types import (
    SLOT,
    CppType,
    FunctionOf,
    NoLayout,
    Pointer,
    Void,
    innermost,
    ir_type,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

_ZERO = n.Constant(0, ir.I32)


def key_of_slot(cx: Context, place: n.Place) -> SlotKey:
    """What a pointer in memory is known by: its memory, and the members that lead to it. None of
    these for one that is reached by its address, through a union, or in memory without a type."""
    names: list[str] = []
    one = place
    while isinstance(one, (n.Member, n.Item)):
        if isinstance(one, n.Member):
            names.append(one.name)
        one = one.base
    root = root_of(place)
    if not isinstance(root, n.Element):
        return f"variable {root.name}", ()
    own = cx.lowering.memory_targets.get(root.memory)
    if own is not None and own.element != root.type:
        return root.memory, ()
    return root.memory, tuple(reversed(names))


def number_of(cx: Context, memory: str) -> int:
    """The number of a memory in pointers that are kept in memory."""
    found = cx.lowering.memory_numbers.get(memory)
    if found is None:
        found = number_of_memory(f"memory {memory}")
        while found in cx.lowering.memory_numbers.values():
            found = found % 0x7FFFFFFF + 1
        cx.lowering.memory_numbers[memory] = found
    return found


def _read(place: n.Place, span: Span) -> n.Load:
    assert not isinstance(place, n.Variable)
    return n.Load(place, SLOT, span)


def targets_of_slot(cx: Context, place: n.Place) -> list[Target]:
    """The memories that a pointer in memory may point into, as far as they are known."""
    return targets_of_key(cx, key_of_slot(cx, place))


def targets_of_key(cx: Context, key: SlotKey) -> list[Target]:
    """`targets_of_slot` by the key."""
    memory, path = key
    slots = cx.lowering.facts.slots
    keys = [key, (memory, ())] if path else [one for one in slots if one[0] == memory]
    found: list[Target] = []
    for each in keys:
        found += [one for one in slots.get(each, ()) if one not in found]
    return found


def flows(cx: Context, key: SlotKey, targets: list[Target]) -> None:
    """Note that pointers to these memories are stored in a place."""
    facts = cx.lowering.facts
    known = facts.slots.setdefault(key, [])
    for target in targets:
        if target not in known:
            known.append(target)
            facts.changed = True


def load_slot(cx: Context, value: Lvalue | ChoiceLvalue) -> PointerValue:
    """A pointer that is kept in memory, read now."""
    type = value.type
    assert isinstance(type, Pointer)
    if isinstance(value, ChoiceLvalue):
        return _chosen_slot(cx, value, type)
    root = root_of(value.place)
    if not isinstance(root, n.Element):  # an object that has no place yet, or has none
        nothing = NullTarget(given=root.name in cx.lowering.nulls)
        return PointerValue((nothing,), _ZERO, 1, type.to, const=type.const)
    targets = tuple(targets_of_slot(cx, value.place))
    if not targets:
        # In a union another member may be there, so code that reads this one never runs.
        _, path = key_of_slot(cx, value.place)
        nothing = NullTarget(given=not path)
        return PointerValue((nothing,), _ZERO, 1, type.to, const=type.const)
    words = cx.let_as("pointer", _read(value.place, cx.span))
    return _from_words(cx, words, targets, type)


def _from_words(
    cx: Context, words: n.Expression, targets: tuple[Target, ...], type: Pointer
) -> PointerValue:
    tag = cx.let(_place_among(cx, n.Extract(words, "y", ir.U32), targets))
    start = _start(cx, targets, tag)
    in_bytes = n.Cast(n.Extract(words, "x", ir.U32), ir.I32)
    offset, unit = _in_elements(plus(in_bytes, start), targets, type.to)
    return PointerValue((NullTarget(), *targets), offset, unit, type.to, tag, type.const)


def _place_among(cx: Context, number: n.Expression, targets: tuple[Target, ...]) -> n.Expression:
    """The place of the memory with a number after null and before others; 0 if it is not there."""
    result: n.Expression = _ZERO
    for at in reversed(range(len(targets))):
        target = targets[at]
        assert isinstance(target, MemoryTarget)
        known = constant(number_of(cx, target.memory), ir.U32)
        test = n.Binary("eq", number, known, ir.BOOL)
        result = n.Select(test, constant(at + 1, ir.I32), result, ir.I32)
    return result


def _in_elements(
    offset: n.Expression, targets: tuple[Target, ...], to: CppType
) -> tuple[n.Expression, int]:
    """An offset in bytes, in elements if all memories have such elements; and its unit."""
    inner = innermost(to)
    if isinstance(inner, (Void, FunctionOf)):
        return offset, 1
    try:
        own = ir_type(inner)
    except NoLayout:
        return offset, 1
    size = ir.size_of(own)
    if all(isinstance(one, MemoryTarget) and one.element == own for one in targets):
        return over(offset, size), size
    return offset, 1


def _start(cx: Context, targets: tuple[Target, ...], tag: n.Expression) -> n.Expression:
    """Where the array that a tag selects begins in its buffer, in bytes: pointers in memory are
    relative to that."""
    result: n.Expression = _ZERO
    for at, one in enumerate(targets, 1):
        if not isinstance(one, MemoryTarget) or one.memory not in cx.lowering.starts:
            continue
        start = times(cast(cx.lowering.starts[one.memory], ir.I32), ir.size_of(one.element))
        if len(targets) == 1:
            return start
        test = n.Binary("eq", tag, constant(at, ir.I32), ir.BOOL)
        result = n.Select(test, start, result, ir.I32)
    return result


def _chosen_slot(cx: Context, value: ChoiceLvalue, type: Pointer) -> PointerValue:
    """A pointer in one of several memories."""
    found: list[Target] = []
    for one in _places(value):
        found += [each for each in targets_of_slot(cx, one.place) if each not in found]
    if not found:
        return PointerValue((NullTarget(),), _ZERO, 1, type.to, const=type.const)
    words = cx.variable("pointer", SLOT)

    def read(one: Lvalue | ChoiceLvalue) -> None:
        if isinstance(one, ChoiceLvalue):
            for_each_choice(cx, one.tag, one.choices, read, cx.span)
        else:
            cx.emit(n.Assign(words, _read(one.place, cx.span), cx.span))

    read(value)
    return _from_words(cx, words, tuple(found), type)


def _places(value: Lvalue | ChoiceLvalue) -> list[Lvalue]:
    """The objects that a choice is one of, which may be choices themselves (`c ? l : r`)."""
    if not isinstance(value, ChoiceLvalue):
        return [value]
    return [place for one in value.choices if one is not None for place in _places(one)]


def store_slot(cx: Context, place: n.Place, pointer: PointerValue, span: Span) -> None:
    """Store a pointer, whose offset is in bytes, and whose targets are memories."""
    numbers = []
    memories: list[Target] = []
    for target in pointer.targets:
        if isinstance(target, NullTarget):
            numbers.append(0)
            continue
        if not isinstance(target, MemoryTarget):
            raise cx.error("only a pointer to an array or object in memory is kept in memory", span)
        if target.memory in cx.lowering.variable_instances and _outlives_kernel(cx, place):
            raise cx.error(
                "a pointer to an instance of a template of variables is not kept in memory that "
                "other kernels read, which may not have that instance: keep an index, or declare a "
                "variable for each type",
                span,
            )
        memories.append(target)
        numbers.append(number_of(cx, target.memory))
    flows(cx, key_of_slot(cx, place), memories)
    number: n.Expression = constant(numbers[-1], ir.U32)
    start = _start_of(cx, pointer.targets[-1])
    for at in reversed(range(len(numbers) - 1)):
        assert pointer.tag is not None
        test = n.Binary("eq", pointer.tag, constant(at, ir.I32), ir.BOOL)
        number = n.Select(test, constant(numbers[at], ir.U32), number, ir.U32)
        other = _start_of(cx, pointer.targets[at])
        start = other if other == start else n.Select(test, other, start, ir.I32)
    words = (cast(minus(pointer.offset, start), ir.U32), number)
    cx.emit(n.Assign(place, n.Construct(words, SLOT, span), span))


def _outlives_kernel(cx: Context, place: n.Place) -> bool:
    root = root_of(place)
    return isinstance(root, n.Element) and any(
        one.name == root.memory for one in cx.lowering.buffers
    )


def _start_of(cx: Context, target: Target) -> n.Expression:
    """Where an array begins in its buffer, in bytes."""
    if not isinstance(target, MemoryTarget) or target.memory not in cx.lowering.starts:
        return _ZERO
    return times(cast(cx.lowering.starts[target.memory], ir.I32), ir.size_of(target.element))


def first_target(cx: Context, key: SlotKey, target: Target) -> None:
    """Note the array that a launch gives for pointers in one of its arrays."""
    known = cx.lowering.facts.slots.setdefault(key, [])
    if target not in known:
        known.insert(0, target)


def later_target(cx: Context, key: SlotKey, target: Target) -> None:
    """Note a variable of the file that pointers in an array of the launch may point into."""
    known = cx.lowering.facts.slots.setdefault(key, [])
    if target not in known:
        known.append(target)

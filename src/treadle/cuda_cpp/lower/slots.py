"""Pointers that are kept in memory.

A pointer in memory is two words: an offset in bytes, and the number of the memory that it points
into (0 for null). Which memories these are is found as for pointer variables: a fact, by the memory
and the members that lead to the pointer, with all that was ever stored there. The first one is the
array that a launch gives for such a pointer, if it gives one.
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
    """What a pointer in memory is known by: its memory, and the members that lead to it."""
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
    if own is not None and own.element != SLOT and not isinstance(own.element, ir.Struct):
        return root.memory, ()  # of memory without a type, such as the heap
    return root.memory, tuple(reversed(names))


def _read(place: n.Place, span: Span) -> n.Load:
    assert not isinstance(place, n.Variable)
    return n.Load(place, SLOT, span)


def targets_of_slot(cx: Context, place: n.Place) -> list[Target]:
    """The memories that a pointer in memory may point into, as far as they are known."""
    root = root_of(place)
    if isinstance(root, n.Element) and root.type == SLOT:
        own = cx.lowering.memory_targets.get(root.memory)
        if own is not None and isinstance(own.element, ir.Struct):
            raise cx.error(
                f"a pointer in the memory {root.memory} is accessed here by its address or as "
                "another type: name the member of the struct or union that it is"
            )
    return cx.lowering.facts.slots.setdefault(key_of_slot(cx, place), [])


def load_slot(cx: Context, value: Lvalue | ChoiceLvalue) -> PointerValue:
    """A pointer that is kept in memory, read now."""
    type = value.type
    assert isinstance(type, Pointer)
    if isinstance(value, ChoiceLvalue):
        return _chosen_slot(cx, value, type)
    if not isinstance(root_of(value.place), n.Element):  # an object that has no place yet
        return PointerValue((NullTarget(),), _ZERO, 1, type.to, const=type.const)
    targets = tuple(targets_of_slot(cx, value.place))
    if not targets:
        return PointerValue((NullTarget(),), _ZERO, 1, type.to, const=type.const)
    words = cx.let_as("pointer", _read(value.place, cx.span))
    start = _start(cx, targets, _word(words, "y"))
    offset, unit = _in_elements(plus(_word(words, "x"), start), targets, type.to)
    return PointerValue(
        (NullTarget(), *targets), offset, unit, type.to, _word(words, "y"), type.const
    )


def _word(words: n.Expression, name: str) -> n.Expression:
    return n.Cast(n.Extract(words, name, ir.U32), ir.I32)


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
    present = [one for one in value.choices if one is not None]
    found: list[Target] = []
    for one in present:
        found += [each for each in targets_of_slot(cx, one.place) if each not in found]
    if not found:
        return PointerValue((NullTarget(),), _ZERO, 1, type.to, const=type.const)
    offset, tag = cx.variable("offset", ir.I32), cx.variable("memory", ir.I32)

    def read(one: Lvalue) -> None:
        words = cx.let_as("pointer", _read(one.place, cx.span))
        own = targets_of_slot(cx, one.place)
        numbers = [0, *(found.index(each) + 1 for each in own)]
        cx.emit(n.Assign(offset, _word(words, "x"), cx.span))
        cx.emit(n.Assign(tag, _numbered(_word(words, "y"), numbers), cx.span))

    for_each_choice(cx, value.tag, value.choices, read, cx.span)
    targets = tuple(found)
    steps, unit = _in_elements(plus(offset, _start(cx, targets, tag)), targets, type.to)
    return PointerValue((NullTarget(), *targets), steps, unit, type.to, tag, type.const)


def _numbered(tag: n.Expression, numbers: list[int]) -> n.Expression:
    """The number for a tag."""
    if numbers == list(range(len(numbers))):
        return tag
    result: n.Expression = constant(numbers[-1], ir.I32)
    for at in reversed(range(len(numbers) - 1)):
        test = n.Binary("eq", tag, constant(at, ir.I32), ir.BOOL)
        result = n.Select(test, constant(numbers[at], ir.I32), result, ir.I32)
    return result


def store_slot(cx: Context, place: n.Place, pointer: PointerValue, span: Span) -> None:
    """Store a pointer, whose offset is in bytes, and whose targets are memories."""
    facts = cx.lowering.facts
    known = targets_of_slot(cx, place)
    numbers = []
    for target in pointer.targets:
        if isinstance(target, NullTarget):
            numbers.append(0)
            continue
        if not isinstance(target, MemoryTarget):
            raise cx.error("only a pointer to an array or object in memory is kept in memory", span)
        if target not in known:
            known.append(target)
            facts.changed = True
        numbers.append(known.index(target) + 1)
    if pointer.tag is None:
        tag: n.Expression = constant(numbers[0], ir.I32)
    else:
        tag = _numbered(pointer.tag, numbers)
    start = _start(cx, tuple(known), tag)
    words = (cast(minus(pointer.offset, start), ir.U32), cast(tag, ir.U32))
    cx.emit(n.Assign(place, n.Construct(words, SLOT, span), span))


def first_target(cx: Context, memory: str, path: tuple[str, ...], target: Target) -> None:
    """Note the array that a launch gives for pointers in one of its arrays."""
    known = cx.lowering.facts.slots.setdefault((memory, path), [])
    if target not in known:
        known.insert(0, target)

"""Pointers: targets, dereferencing, pointer arithmetic and casts; the addresses of objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import (
    cast,
    constant,
    is_constant,
    over,
    plus,
    times,
    zero_of,
)
from treadle.cuda_cpp.lower.checked_operations import (
    alignment_check,
    base_of,
    counted_from_start,
)
from treadle.cuda_cpp.lower.context import Context, LowerAgain
from treadle.cuda_cpp.lower.guards import HEAP, piece_check
from treadle.cuda_cpp.lower.slots import load_slot
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    BitsLvalue,
    Category,
    ChoiceLvalue,
    ChosenPointer,
    ItemTarget,
    Lvalue,
    MemoryTarget,
    NullTarget,
    ObjectAddress,
    ObjectTarget,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    SplitArray,
    SplitStruct,
    Target,
    Value,
    VoidValue,
)
from treadle.cuda_cpp.semantics.bases import way_to_base
from treadle.cuda_cpp.semantics.types import (
    BASE,
    ArrayOf,
    ClassType,
    CppType,
    Field,
    FunctionOf,
    Incomplete,
    NoLayout,
    Pointer,
    Reference,
    Void,
    align_of,
    all_fields,
    count_of,
    holds_array,
    holds_pointer,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.semantics.types import size_of as cpp_size
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

ZERO = n.Constant(0, ir.I32)


_MOST_TERMS = 8  # of an offset that are examined


def unit_of(type: CppType) -> int:
    """The unit of a pointer to `type` in bytes: its innermost element (1 for void)."""
    inner = innermost(type)
    return 1 if isinstance(inner, (Void, FunctionOf)) else cpp_size(inner)


def as_index(cx: Context, index: n.Expression) -> n.Expression:
    """An integer as an index: i32, or i64 if it or the arrays need it."""
    assert isinstance(index.type, ir.Scalar)
    wide = index.type.bits == 64 or cx.lowering.index_type == ir.I64
    return cast(index, ir.I64 if wide else ir.I32)


def pointer_of(cx: Context, value: Value) -> PointerValue | None:
    """A value as a pointer: variables are read, arrays decay. None for other values."""
    match value:
        case PointerValue():
            return value
        case ArrayValue(first, type):
            return replace(first, to=type.element)
        case ChosenPointer():
            return chosen_pointer(cx, value)
        case PointerVariable():
            targets = value.targets
            if not targets:  # in the first run, one that was assigned so far
                known = cx.lowering.facts.targets.get(value.key, [])
                points = [one for one in known if not isinstance(one, NullTarget)]
                targets = tuple((points or known)[:1])
            return PointerValue(
                targets or (NullTarget(given=False),),
                value.offset,
                value.unit,
                value.to,
                value.tag,
                value.const,
            )
        case Lvalue(type=Pointer()) | ChoiceLvalue(type=Pointer()):
            return load_slot(cx, value)
        case ChoiceLvalue(tag, choices, ArrayOf(element=inner)):
            firsts = [None if one is None else pointer_of(cx, one) for one in choices]
            return _either(cx, tag, [one or NULL for one in firsts], inner)
    return None


def in_steps_of(
    cx: Context, pointer: PointerValue, unit: int, accessed: bool = True
) -> PointerValue | None:
    """The pointer with its offset in another unit; None if it may not be a multiple of it. One that
    is `accessed` is aligned for its type; checks ask that of the others when these are accessed."""
    if pointer.unit == unit:
        return pointer
    if pointer.unit % unit == 0:
        offset = times(pointer.offset, pointer.unit // unit)
    elif unit % pointer.unit == 0 and (
        ((accessed or not cx.lowering.guarded) and _alignment(pointer.to) % unit == 0)
        or _is_multiple(pointer.offset, unit // pointer.unit)
    ):
        offset = over(pointer.offset, unit // pointer.unit)
    else:
        return None
    return _plain(pointer, offset, unit, pointer.to)


def _plain(pointer: PointerValue, offset: n.Expression, unit: int, to: CppType) -> PointerValue:
    """A pointer into the same memories with another offset."""
    return PointerValue(pointer.targets, offset, unit, to, pointer.tag, pointer.const)


def _alignment(type: CppType) -> int:
    """The alignment of a type in C++: less than its size, for a float3."""
    inner = innermost(type)
    if isinstance(inner, Void):
        return 1
    try:
        return align_of(inner)
    except NoLayout:
        return 1


def _is_multiple(offset: n.Expression, of: int) -> bool:
    """Whether an offset is certainly a multiple of a number."""
    for _ in range(_MOST_TERMS):
        match offset:
            case n.Constant(value=value):
                return int(value) % of == 0
            case n.Binary(op="mul", right=n.Constant(value=factor)):
                return int(factor) % of == 0
            case n.Binary(op="add" | "sub", left=left, right=right):
                if not _is_multiple_at_once(right, of):
                    return False
                offset = left
            case _:
                return False
    return False


def _is_multiple_at_once(offset: n.Expression, of: int) -> bool:
    if isinstance(offset, n.Binary) and offset.op == "mul":
        offset = offset.right
    return isinstance(offset, n.Constant) and int(offset.value) % of == 0


def moved(cx: Context, pointer: PointerValue, by: n.Expression, span: Span) -> PointerValue:
    """`pointer + by`"""
    unit = unit_of(pointer.to)
    step = count_of(pointer.to)
    aligned = in_steps_of(cx, pointer, unit, accessed=False)
    if aligned is None:  # use a smaller unit
        common = math.gcd(pointer.unit, unit)
        aligned = in_steps_of(cx, pointer, common)
        assert aligned is not None
        step *= unit // common
    offset = plus(aligned.offset, times(by, step))
    base = aligned.offset if aligned.base is None else aligned.base
    return replace(_plain(pointer, offset, aligned.unit, pointer.to), base=base)


def moved_by_bytes(cx: Context, pointer: PointerValue, further: int, to: ClassType) -> PointerValue:
    """The pointer with an offset of some bytes, to an object of another class."""
    if not further:
        return as_pointer_to(pointer, to)
    for target in pointer.targets:
        if isinstance(target, ObjectTarget):
            note_memory(cx, target.place)
    start = pointer.offset, pointer.unit
    offset, unit = _further(start, constant(further, ir.I32), 1, align_of(to))
    return _plain(pointer, offset, unit, to)


def base_offset(type: ClassType, base: ClassType) -> int:
    """The offset of a base in an object, in bytes."""
    start = 0
    for part in way_to_base(type, base):
        start += _offset_of(ir_type(type), part)
        assert isinstance(part.type, ClassType)
        type = part.type
    return start + _offset_in(ir_type(type), base)


def _offset_of(type: ir.Type, field: Field) -> int:
    return ir.field_offset(type, field.name) if isinstance(type, ir.Struct) else 0


def _offset_in(stored: ir.Type, base: ClassType) -> int:
    """The offset of a base whose fields are among those of an object."""
    fields = all_fields(base)
    return _offset_of(stored, fields[0]) if fields else 0


def whole_place(place: n.Place) -> n.Place:
    """The place of the object that a place is a base of, as far as the base is a part of it."""
    while isinstance(place, n.Member) and place.name.startswith(BASE):
        place = place.base
    return place


def is_base_of(place: n.Place, type: CppType) -> bool:
    """Whether an object of this type at a place is a base of a larger object there."""
    return isinstance(type, ClassType) and place.type != ir_type(type)


def as_pointer_to(pointer: PointerValue, to: CppType) -> PointerValue:
    """The pointer cast to another type; the unit of its offset stays."""
    return _plain(pointer, pointer.offset, pointer.unit, to)


def follow(cx: Context, pointer: PointerValue, span: Span) -> Value:
    """`*pointer`: an object or an array."""
    if isinstance(pointer.to, Void):
        if isinstance(pointer.to, Incomplete):
            raise cx.wrong(f"{pointer.to} is declared, but not defined", span)
        raise cx.wrong("a void pointer cannot be dereferenced: cast it to another type", span)
    if len(pointer.targets) > 1:
        choices = tuple(
            None if isinstance(target, NullTarget) else follow(cx, _into(target, pointer), span)
            for target in pointer.targets
        )
        assert pointer.tag is not None
        return ChoiceLvalue(pointer.tag, choices, pointer.to)
    target = pointer.targets[0]
    if isinstance(target, NullTarget):
        # A function that is called with a null pointer may know that by its other arguments.
        in_call = target.given and cx.depth > 0
        if not in_call and not cx.lowering.unevaluated:
            # Unless a later statement shows what it points to.
            found = cx.error("this pointer is always null where it is dereferenced", span)
            cx.lowering.unless_changed.append(found)
        if not isinstance(pointer.to, ArrayOf):  # the next run has more targets
            return unknown(cx, pointer.to, span, null=in_call)
    if isinstance(pointer.to, ArrayOf):
        return ArrayValue(pointer, pointer.to)
    match target:
        case MemoryTarget():
            return _in_memory(cx, target, pointer, span)
        case ItemTarget(place):
            return _item(cx, place, pointer, span)
        case ObjectTarget(place):
            return _object(cx, place, pointer, span)
    raise AssertionError(target)


def unknown(cx: Context, type: CppType, span: Span, null: bool = False) -> Lvalue:
    """An object in place of one that only the next run knows, or of what a null pointer points to,
    so that this run goes on and finds other facts."""
    stored = stored_type(cx, type, span)
    if holds_array(type):
        memory = cx.local_memory("unknown", stored, 1, span)
        known = MemoryTarget(memory.name, "local", stored)
        cx.lowering.memory_targets[memory.name] = known
        cx.lowering.unknown.add(memory.name)
        return Lvalue(n.Element(memory.name, ZERO, stored, (), span), type)
    variable = cx.variable("unknown", stored)
    (cx.lowering.nulls if null else cx.lowering.unknown).add(variable.name)
    return Lvalue(variable, type)


def _into(target: Target, pointer: PointerValue) -> PointerValue:
    """A pointer with several targets, restricted to one of them."""
    offset, base = pointer.offset, pointer.base
    return PointerValue((target,), offset, pointer.unit, pointer.to, None, pointer.const, base)


def _in_memory(
    cx: Context, target: MemoryTarget, pointer: PointerValue, span: Span
) -> Lvalue | ScatteredLvalue:
    type = stored_type(cx, pointer.to, span)
    size = ir.size_of(type)
    aligned = in_steps_of(cx, pointer, size)
    if aligned is None:
        return ScatteredLvalue(target, pointer.offset, pointer.unit, pointer.to, pointer.const)
    place = element(cx, target, aligned.offset, type, span, base_of(pointer))
    checks = misaligned(cx, pointer.offset, pointer.unit, pointer.to, span)
    if checks:
        place = replace(place, checks=(*checks, *place.checks))
    return Lvalue(place, pointer.to, pointer.const)


def misaligned(
    cx: Context, offset: n.Expression, unit: int, type: CppType, span: Span
) -> tuple[n.Check, ...]:
    """The check of an access to a type at an offset, unless that is surely aligned."""
    needed = _alignment(type)
    if needed <= unit or _is_multiple(offset, needed // unit):
        return ()
    return alignment_check(cx, offset, unit, type, needed, span)


def element(
    cx: Context,
    target: MemoryTarget,
    index: n.Expression,
    type: ir.Type,
    span: Span,
    base: n.Expression | None = None,
) -> n.Element:
    """The place of an element of a memory that is accessed as `type`, with its bounds check. `base`
    is the offset in bytes of the pointer that leads there."""
    check = piece_check(cx, index, type, span, base) if target.memory == HEAP else None
    bound = _bound(cx, target, type, index.type)
    if check is None and bound is not None:
        check = counted_from_start(cx, target, n.Check(index, bound), ir.size_of(type))
    return n.Element(target.memory, index, type, () if check is None else (check,), span)


def _bound(
    cx: Context, target: MemoryTarget, type: ir.Type, index_type: ir.Type
) -> n.Expression | None:
    """The number of elements of `type` in a memory."""
    if target.size is None:
        return None
    assert isinstance(index_type, ir.Scalar)
    own, seen = ir.size_of(target.element), ir.size_of(type)
    size = target.size
    if isinstance(size, n.Constant):
        return constant(int(size.value) * own // seen, index_type)
    if own == seen:
        return cast(size, index_type)
    if own % seen == 0:
        return cast(times(size, own // seen), index_type)
    if seen % own == 0:
        ratio = seen // own
        return cast(n.Binary("div", size, constant(ratio, _scalar(size)), size.type), index_type)
    scaled = times(size, own)
    return cast(n.Binary("div", scaled, constant(seen, _scalar(size)), size.type), index_type)


def _scalar(expression: n.Expression) -> ir.Scalar:
    assert isinstance(expression.type, ir.Scalar)
    return expression.type


def _item(cx: Context, place: n.Place, pointer: PointerValue, span: Span) -> Value:
    array = place.type
    assert isinstance(array, ir.Array)
    type = stored_type(cx, pointer.to, span)
    if isinstance(array.element, ir.Array) or array.element != type:
        found = _into_memory(cx, place, pointer, span)
        if found is not None:
            return follow(cx, found, span)
        raise cx.error(
            f"an array inside an object is cast to {pointer.to} here: copy it to an array of its "
            "own first",
            span,
        )
    check = n.Check(pointer.offset, constant(array.length, _scalar(pointer.offset)))
    return Lvalue(n.Item(place, pointer.offset, type, (check,), span), pointer.to, pointer.const)


def _into_memory(
    cx: Context, place: n.Place, pointer: PointerValue, span: Span
) -> PointerValue | None:
    """A pointer into an array inside an object as one into the object's memory, if it has one."""
    whole = address(cx, Lvalue(place, pointer.to), span)
    inner = in_steps_of(cx, whole, pointer.unit)
    if inner is None or not isinstance(whole.targets[0], MemoryTarget):
        return None
    offset = plus(inner.offset, pointer.offset)
    found = PointerValue(inner.targets, offset, pointer.unit, pointer.to)
    return replace(found, const=pointer.const)


def with_lasting_target(cx: Context, pointer: PointerValue, span: Span) -> PointerValue:
    """A pointer that may be kept: one into a row of an array in an object, whose number may change
    later, points into the object's memory."""
    target = pointer.targets[0]
    if len(pointer.targets) == 1 and isinstance(target, ItemTarget) and _has_indices(target.place):
        return _into_memory(cx, target.place, pointer, span) or pointer
    return pointer


def _has_indices(place: n.Place) -> bool:
    """Whether a place has an index that is not constant."""
    match place:
        case n.Item(base=base, index=index):
            return not isinstance(index, n.Constant) or _has_indices(base)
        case n.Member(base=base):
            return _has_indices(base)
        case n.Element(index=index):
            return not isinstance(index, n.Constant)
    return False


def _object(cx: Context, place: n.Place, pointer: PointerValue, span: Span) -> Value:
    type = stored_type(cx, pointer.to, span)
    if is_constant(pointer.offset, 0):
        if place.type == type:
            return Lvalue(place, pointer.to, pointer.const)
        both_numbers = isinstance(place.type, ir.Scalar) and isinstance(type, ir.Scalar)
        if both_numbers and ir.size_of(place.type) == ir.size_of(type):
            return BitsLvalue(place, pointer.to, pointer.const)
    if cx.lowering.unevaluated or note_memory(cx, place):
        return unknown(cx, pointer.to, span)
    raise cx.error("this object is accessed as another type, and has no bytes in memory here", span)


def demand_memory(cx: Context, place: n.Place) -> None:
    """Record that a variable needs a memory, and lower the kernel again with it."""
    root = root_of(place)
    key = cx.lowering.variable_keys.get(root.name) if isinstance(root, n.Variable) else None
    if key is not None and key not in cx.lowering.facts.in_memory:
        note_memory(cx, place)
        raise LowerAgain


def note_memory(cx: Context, place: n.Place) -> bool:
    """Record that a variable needs a memory, which the next run gives it; until then it is not
    known. False if it can have none."""
    root = root_of(place)
    if not isinstance(root, n.Variable):
        return False
    if root.name in cx.lowering.unknown:
        return True
    key = cx.lowering.variable_keys.get(root.name)
    facts = cx.lowering.facts
    demanded = cx.lowering.demanded
    if key is None or (key in facts.in_memory and key[1] not in demanded):
        return False
    facts.in_memory.add(key)
    facts.changed = True
    demanded.add(key[1])
    cx.lowering.unknown.add(root.name)
    for targets in facts.targets.values():  # it is a memory now
        targets[:] = [one for one in targets if not _is_in(one, root)]
    return True


def demand_address(cx: Context, value: Value) -> None:
    """Have an object in parts in memory in the next run, if `value` is it or points to it: its
    address is used in a way that needs one."""
    whole = value.object if isinstance(value, ObjectAddress) else value
    key = getattr(whole, "key", None)
    if key is None or not isinstance(whole, (SplitStruct, SplitArray, PointerVariable)):
        return
    if isinstance(whole, PointerVariable) and not isinstance(value, ObjectAddress):
        return
    if key not in cx.lowering.facts.in_memory:
        cx.lowering.facts.in_memory.add(key)
        raise LowerAgain


def known_targets(cx: Context, targets: Sequence[Target]) -> list[Target]:
    """Targets without those that only stand for what a later run finds."""
    return [one for one in targets if _memory_or_variable(one) not in cx.lowering.unknown]


def _memory_or_variable(target: Target) -> str:
    """The name of what a target is a part of; "" for null and functions."""
    if isinstance(target, MemoryTarget):
        return target.memory
    if not isinstance(target, (ObjectTarget, ItemTarget)):
        return ""
    root = root_of(target.place)
    return root.memory if isinstance(root, n.Element) else root.name


def _is_in(target: Target, variable: n.Variable) -> bool:
    return isinstance(target, (ObjectTarget, ItemTarget)) and root_of(target.place) == variable


def stored_type(cx: Context, type: CppType, span: Span) -> ir.Type:
    """The IR type of a C++ type in memory. CompileError for pointers."""
    try:
        return ir_type(type)
    except NoLayout as reason:
        raise cx.error(
            f"{type} is {reason}: memory on most devices cannot hold addresses. Pass the arrays as "
            "parameters of the kernel, or keep indices instead of pointers",
            span,
        ) from None


def address(cx: Context, value: Value, span: Span) -> PointerValue:
    """`&value`"""
    match value:
        case ArrayValue(first, type):
            return replace(first, to=type)
        case Lvalue(place, type, const):
            root = root_of(place)
            if isinstance(root, n.Variable) and root.name in cx.lowering.nulls:
                return PointerValue((NullTarget(),), ZERO, unit_of(type), type, const=const)
            found = replace(_address_of_place(cx, place, type), const=const)
            if isinstance(type, ClassType) and is_base_of(place, type):
                return moved_by_bytes(cx, found, _offset_in(place.type, type), type)
            return found
        case ScatteredLvalue(target, offset, unit, type, const):
            return PointerValue((target,), offset, unit, type, const=const)
        case BitsLvalue(place, type, const):
            return PointerValue((ObjectTarget(place),), ZERO, unit_of(type), type, const=const)
        case ChoiceLvalue(tag, choices, type):
            found_ = [NULL if c is None else address(cx, c, span) for c in choices]
            return _either(cx, tag, found_, type)
    error = cx.wrong if isinstance(value, Rvalue) else cx.error
    raise error("only an object in memory has an address", span)


NULL = PointerValue((NullTarget(),), ZERO, 1, Void())


def _either(
    cx: Context, tag: n.Expression, pointers: Sequence[PointerValue], type: CppType
) -> PointerValue:
    """One of several pointers, by a tag."""
    targets = tuple(target for one in pointers for target in one.targets)
    which = tag
    if len(targets) > len(pointers):
        places: list[n.Expression] = []
        before = 0
        for one in pointers:
            inner: n.Expression = constant(before, ir.I32)
            places.append(inner if one.tag is None else plus(one.tag, inner))
            before += len(one.targets)
        which = cx.copied(_selected(tag, places))
    some = [one for one in pointers if one is not NULL]
    first = some[0]
    if all((one.offset, one.unit) == (first.offset, first.unit) for one in some):
        return PointerValue(targets, first.offset, first.unit, type, which, first.const)
    unit = math.gcd(*(one.unit for one in some))
    steps = [NULL if one is NULL else in_steps_of(cx, one, unit) for one in pointers]
    known = [one for one in steps if one is not None]
    index = ir.I64 if any(one.offset.type == ir.I64 for one in known) else ir.I32
    offset = cx.copied(_selected(tag, [cast(one.offset, index) for one in known]))
    return PointerValue(targets, offset, unit, type, which, first.const)


def _address_of_place(cx: Context, place: n.Place, type: CppType) -> PointerValue:
    steps = _byte_offset(cx, place)
    if steps is not None:
        root = root_of(place)
        assert isinstance(root, n.Element)
        target = cx.lowering.memory_targets[root.memory]
        offset, unit = steps
        return PointerValue((target,), offset, unit, type)
    if isinstance(place, n.Item):
        return PointerValue((ItemTarget(place.base),), place.index, ir.size_of(place.type), type)
    return PointerValue((ObjectTarget(place),), ZERO, unit_of(type), type)


def _byte_offset(cx: Context, place: n.Place) -> tuple[n.Expression, int] | None:
    """The offset of a place in its memory: a count, and its unit in bytes. None in a variable."""
    match place:
        case n.Element(index=index, type=type):
            return index, ir.size_of(type)
        case n.Member(base=base, name=name, type=type):
            inner = _byte_offset(cx, base)
            if inner is None:
                return None
            at = (
                ir.field_offset(base.type, name)
                if isinstance(base.type, ir.Struct)
                else ir.COMPONENTS.index(name) * ir.size_of(type)
            )
            return _further(inner, constant(at, ir.I32), 1, ir.align_of(type))
        case n.Item(base=base, index=index, type=type):
            inner = _byte_offset(cx, base)
            if inner is None:
                return None
            return _further(inner, index, ir.size_of(type), ir.align_of(type))
    return None


def _further(
    start: tuple[n.Expression, int], index: n.Expression, size: int, align: int
) -> tuple[n.Expression, int]:
    """The offset `start` plus `index` elements of `size` bytes, in the largest common unit."""
    offset, unit = start
    if isinstance(index, n.Constant):
        bytes_further = int(index.value) * size
        common = math.gcd(unit, bytes_further) if bytes_further else math.gcd(unit, align)
        if bytes_further % align == 0 and unit % align == 0:
            common = align if bytes_further % unit else unit
        moved_by = constant(bytes_further // common, ir.I32)
        return plus(times(offset, unit // common), moved_by), common
    common = math.gcd(unit, size)
    return plus(times(offset, unit // common), times(index, size // common)), common


EXAMPLE = "<example>"  # an object with arrays that is never read


def example_of(type: CppType, span: Span) -> Value:
    """Some value of a type, for expressions that are not evaluated."""
    match type:
        case Reference(to, const, rvalue):
            if not _has_layout(to):
                return example_of(to, span)
            category: Category = "xvalue" if rvalue else "lvalue"
            return Lvalue(n.Variable("example", ir_type(to), span), to, const, category)
        case Pointer(to, const):
            return PointerValue((NullTarget(),), ZERO, unit_of(to), to, const=const)
        case Void():
            return VoidValue(type)
        case ArrayOf(element, length) if not _has_layout(type):
            return SplitArray(type, tuple(example_of(element, span) for _ in range(length or 0)))
        case ArrayOf():
            first = PointerValue((NullTarget(),), ZERO, unit_of(type), type)
            return ArrayValue(first, type)
        case ClassType() if not _has_layout(type):
            parts = {one.name: example_of(one.type, span) for one in all_fields(type)}
            return SplitStruct(type, parts)
    if holds_array(type):
        return Lvalue(n.Variable(EXAMPLE, ir_type(type), span), type, category="prvalue")
    return Rvalue(zero_of(ir_type(type), span), type)


def _has_layout(type: CppType) -> bool:
    if holds_pointer(type):
        return False
    try:
        ir_type(type)
    except NoLayout:
        return False
    return True


# --- split structs and arrays --------------------------------------------------------------------


MOST_ITEMS = 64  # of an array of pointers


def part_at(
    cx: Context, array: SplitArray | ObjectAddress, index: n.Expression, span: Span
) -> Value:
    """`array[index]`"""
    if isinstance(array, ObjectAddress):
        return _pointed_to(cx, array, index, span)
    count = len(array.items)
    if isinstance(index, n.Constant):
        at = int(index.value)
        if not 0 <= at < count:
            raise cx.error(f"item {at} of an array of {count}", span)
        found: Value = array.items[at]
        return found
    chosen = one_of(cx, cx.copied(cast(index, ir.I32)), array.items, span)
    if isinstance(chosen, SplitStruct) and array.key is not None:
        chosen.key = array.key  # its address is one in the whole array
    return chosen


def _pointed_to(cx: Context, pointer: ObjectAddress, index: n.Expression, span: Span) -> Value:
    if not isinstance(index, n.Constant) or int(index.value):
        raise cx.error(f"a {pointer.type} that points to one struct has only the index 0", span)
    return pointer.object


def one_of(cx: Context, place: n.Expression, values: Sequence[Any], span: Span) -> Value:
    """The object that an index selects, which can be assigned to."""
    first = values[0]
    match first:
        case SplitStruct():
            fields = {
                name: one_of(cx, place, [value.fields[name] for value in values], span)
                for name in first.fields
            }
            return SplitStruct(first.type, fields)
        case SplitArray():
            columns = zip(*(value.items for value in values), strict=True)
            return SplitArray(first.type, tuple(one_of(cx, place, one, span) for one in columns))
        case ArrayValue(type=type):
            return ArrayValue(_one_pointer(cx, place, [value.first for value in values]), type)
    pointer = pointer_of(cx, first)
    if pointer is not None:
        return ChosenPointer(tuple(values), place, pointer.to)
    return ChoiceLvalue(place, tuple(values), first.type)


def chosen_pointer(cx: Context, value: ChosenPointer) -> PointerValue:
    """The pointer that an index selects, read now."""
    pointers = [pointer_of(cx, one) for one in value.items]
    return _one_pointer(cx, value.place, [one for one in pointers if one is not None])


def _one_pointer(
    cx: Context, place: n.Expression, pointers: Sequence[PointerValue]
) -> PointerValue:
    """The pointer that an index selects: it has the targets of all."""
    targets: list[Target] = []
    for one in pointers:
        targets += [target for target in one.targets if target not in targets]
    unit = math.gcd(*(one.unit for one in pointers))
    aligned = [in_steps_of(cx, one, unit) for one in pointers]
    offsets = [one.offset for one in aligned if one is not None]
    wide = any(offset.type == ir.I64 for offset in offsets)
    offset = _selected(place, [cast(one, ir.I64 if wide else ir.I32) for one in offsets])
    tag = None
    if len(targets) > 1:
        tag = cx.copied(_selected(place, [_tag_among(targets, one) for one in pointers]))
    return PointerValue(tuple(targets), cx.copied(offset), unit, pointers[0].to, tag)


def _tag_among(targets: list[Target], pointer: PointerValue) -> n.Expression:
    """The tag of a pointer among `targets`."""
    places = [constant(targets.index(target), ir.I32) for target in pointer.targets]
    return places[0] if pointer.tag is None else _selected(pointer.tag, places)


def _selected(place: n.Expression, values: Sequence[n.Expression]) -> n.Expression:
    """The value that an index selects; the last one for indices out of bounds."""
    result = values[-1]
    for at in reversed(range(len(values) - 1)):
        if values[at] != result:
            test = n.Binary("eq", place, constant(at, ir.I32), ir.BOOL)
            result = n.Select(test, values[at], result, result.type)
    return result

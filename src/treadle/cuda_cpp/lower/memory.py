"""Objects and pointers: reading and writing places, following pointers, taking addresses."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, is_constant, over, plus, times
from treadle.cuda_cpp.lower.context import Again, Context
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    BitsLvalue,
    ChoiceLvalue,
    ChosenPointer,
    Items,
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
    Target,
    Value,
)
from treadle.cuda_cpp.meaning.types import (
    UNION_WORDS,
    ArrayOf,
    ClassType,
    CppType,
    NoLayout,
    Pointer,
    VectorType,
    Void,
    align_of,
    all_fields,
    count_of,
    holds_array,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.meaning.types import size_of as cpp_size
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

ZERO = n.Constant(0, ir.I32)
_MOST_TERMS = 8  # of an offset that are looked at
_MOST_UNROLLED = 16  # items of an array that are copied one by one


def unit_of(type: CppType) -> int:
    """Bytes of a step of a pointer to `type`: its innermost element (1 for void)."""
    inner = innermost(type)
    return 1 if isinstance(inner, Void) else cpp_size(inner)


def as_index(cx: Context, index: n.Expression) -> n.Expression:
    """An integer as an index: i32, or i64 where it or the arrays need it."""
    assert isinstance(index.type, ir.Scalar)
    wide = index.type.bits == 64 or cx.lowering.index_type == ir.I64
    return cast(index, ir.I64 if wide else ir.I32)


# --- pointers ------------------------------------------------------------------------------------


def pointer_of(cx: Context, value: Value) -> PointerValue | None:
    """A value as a pointer: variables are read, arrays decay. None for what is no pointer."""
    match value:
        case PointerValue():
            return value
        case ArrayValue(first, type):
            return PointerValue(first.targets, first.offset, first.unit, type.element, first.tag)
        case ChosenPointer():
            from treadle.cuda_cpp.lower.exploded import chosen_pointer

            return chosen_pointer(cx, value)
        case PointerVariable():
            targets = value.targets
            if not targets:  # this is the first run: what was assigned so far will do
                targets = tuple(cx.lowering.facts.targets.get(value.key, ())[:1])
            return PointerValue(
                targets or (NullTarget(),), value.offset, value.unit, value.to, value.tag
            )
    return None


def in_steps_of(cx: Context, pointer: PointerValue, unit: int) -> PointerValue | None:
    """The pointer with its offset in other steps; None if it may point between two of them."""
    if pointer.unit == unit:
        return pointer
    if pointer.unit % unit == 0:
        offset = times(pointer.offset, pointer.unit // unit)
    elif unit % pointer.unit == 0 and (
        _alignment(pointer.to) % unit == 0 or _is_multiple(pointer.offset, unit // pointer.unit)
    ):
        offset = over(pointer.offset, unit // pointer.unit)
    else:
        return None
    return PointerValue(pointer.targets, offset, unit, pointer.to, pointer.tag)


def _alignment(type: CppType) -> int:
    """What C++ demands of the addresses of a type: less than its size, for a float3."""
    inner = innermost(type)
    if isinstance(inner, Void):
        return 1
    try:
        return align_of(inner)
    except NoLayout:
        return 1


def _is_multiple(offset: n.Expression, of: int) -> bool:
    """Whether an offset is surely a multiple of a number."""
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
    aligned = in_steps_of(cx, pointer, unit)
    if aligned is None:  # in smaller steps, then
        common = math.gcd(pointer.unit, unit)
        aligned = in_steps_of(cx, pointer, common)
        assert aligned is not None
        step *= unit // common
    offset = plus(aligned.offset, times(by, step))
    return PointerValue(aligned.targets, offset, aligned.unit, pointer.to, aligned.tag)


def seen_as(pointer: PointerValue, to: CppType) -> PointerValue:
    """The pointer cast to another type; its offset keeps its steps."""
    return PointerValue(pointer.targets, pointer.offset, pointer.unit, to, pointer.tag)


def follow(cx: Context, pointer: PointerValue, span: Span) -> Value:
    """`*pointer`: an object or an array."""
    if isinstance(pointer.to, Void):
        raise cx.error("a void pointer cannot be followed: cast it to the type it points to", span)
    if len(pointer.targets) > 1:
        choices = tuple(
            None
            if isinstance(target, NullTarget)
            else follow(cx, PointerValue((target,), pointer.offset, pointer.unit, pointer.to), span)
            for target in pointer.targets
        )
        assert pointer.tag is not None
        return ChoiceLvalue(pointer.tag, choices, pointer.to)
    target = pointer.targets[0]
    if isinstance(target, NullTarget):
        if not cx.lowering.facts.changed and not cx.lowering.unevaluated:
            raise cx.error("this pointer is always null where it is followed", span)
        if not isinstance(pointer.to, ArrayOf):  # the next run will know more
            return Lvalue(cx.variable("unknown", _stored(cx, pointer.to, span)), pointer.to)
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


def _in_memory(
    cx: Context, target: MemoryTarget, pointer: PointerValue, span: Span
) -> Lvalue | ScatteredLvalue:
    type = _stored(cx, pointer.to, span)
    size = ir.size_of(type)
    aligned = in_steps_of(cx, pointer, size)
    if aligned is None:
        return ScatteredLvalue(target, pointer.offset, pointer.unit, pointer.to)
    return Lvalue(element(cx, target, aligned.offset, type, span), pointer.to)


def element(
    cx: Context, target: MemoryTarget, index: n.Expression, type: ir.Type, span: Span
) -> n.Element:
    """The place of an element of a memory seen as a sequence of `type`, with its check."""
    bound = _bound(cx, target, type, index.type)
    checks = () if bound is None else (n.Check(index, bound),)
    return n.Element(target.memory, index, type, checks, span)


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
    type = _stored(cx, pointer.to, span)
    if isinstance(array.element, ir.Array) or array.element != type:
        whole = address(cx, Lvalue(place, pointer.to), span)
        if isinstance(whole.targets[0], MemoryTarget):
            inner = in_steps_of(cx, whole, pointer.unit)
            if inner is not None:
                offset = plus(inner.offset, pointer.offset)
                return follow(
                    cx, PointerValue(inner.targets, offset, pointer.unit, pointer.to), span
                )
        raise cx.error(
            f"an array inside an object is seen as {pointer.to} here: copy it to an array of its "
            "own first",
            span,
        )
    check = n.Check(pointer.offset, constant(array.length, _scalar(pointer.offset)))
    return Lvalue(n.Item(place, pointer.offset, type, (check,), span), pointer.to)


def _object(cx: Context, place: n.Place, pointer: PointerValue, span: Span) -> Value:
    type = _stored(cx, pointer.to, span)
    if is_constant(pointer.offset, 0):
        if place.type == type:
            return Lvalue(place, pointer.to)
        both_numbers = isinstance(place.type, ir.Scalar) and isinstance(type, ir.Scalar)
        if both_numbers and ir.size_of(place.type) == ir.size_of(type):
            return BitsLvalue(place, pointer.to)
    demand_memory(cx, place, span)
    raise cx.error("this object is seen as bytes of another type, and has none here", span)


def demand_memory(cx: Context, place: n.Place, span: Span) -> None:
    """See to it that, in the next run, a variable has bytes that pointers can go through."""
    root = root_of(place)
    if isinstance(root, n.Variable):
        key = cx.lowering.variable_keys.get(root.name)
        if key is not None and key not in cx.lowering.facts.in_memory:
            facts = cx.lowering.facts
            facts.in_memory.add(key)
            for targets in facts.targets.values():  # it is that variable no more
                targets[:] = [one for one in targets if not _is_in(one, root)]
            raise Again


def _is_in(target: Target, variable: n.Variable) -> bool:
    return isinstance(target, (ObjectTarget, ItemTarget)) and root_of(target.place) == variable


def _stored(cx: Context, type: CppType, span: Span) -> ir.Type:
    """The IR's type of what lies in memory."""
    from treadle.cuda_cpp.meaning.types import NoLayout

    try:
        return ir_type(type)
    except NoLayout as reason:
        raise cx.error(
            f"{type} is {reason}: memory on most devices holds no addresses. Pass the arrays as "
            "parameters of the kernel, or keep indices instead of pointers",
            span,
        ) from None


# --- addresses -----------------------------------------------------------------------------------


def address(cx: Context, value: Value, span: Span) -> PointerValue:
    """`&value`"""
    match value:
        case ArrayValue(first, type):
            return PointerValue(first.targets, first.offset, first.unit, type, first.tag)
        case Lvalue(place, type):
            return _address_of_place(cx, place, type)
        case ScatteredLvalue(target, offset, unit, type):
            return PointerValue((target,), offset, unit, type)
        case BitsLvalue(place, type):
            return PointerValue((ObjectTarget(place),), ZERO, unit_of(type), type)
        case ChoiceLvalue(tag, choices, type):
            found = [NULL if c is None else address(cx, c, span) for c in choices]
            first = next(p for p in found if p is not NULL)
            same = all(p is NULL or (p.offset, p.unit) == (first.offset, first.unit) for p in found)
            if same:
                targets = tuple(p.targets[0] for p in found)
                return PointerValue(targets, first.offset, first.unit, type, tag)
    raise cx.error("only an object in memory has an address", span)


NULL = PointerValue((NullTarget(),), ZERO, 1, Void())


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
    """Where in its memory a place is: a number of steps, and their bytes. None in a variable."""
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
    """`start` and `index` steps of `size` bytes more, in the largest steps that fit."""
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


# --- reading and writing -------------------------------------------------------------------------


def load(cx: Context, value: Value, span: Span) -> Rvalue:
    """The value of an object."""
    match value:
        case Rvalue():
            return value
        case Lvalue(place, type):
            return Rvalue(load_place(place, span), type)
        case BitsLvalue(place, type):
            return Rvalue(n.Bitcast(load_place(place, span), ir_type(type), span), type)
        case ScatteredLvalue():
            return _load_scattered(cx, value, span)
        case ChoiceLvalue(tag, choices, type):
            result = cx.variable("chosen", ir_type(type), span)
            _for_each_choice(
                cx,
                tag,
                choices,
                lambda one: cx.emit(n.Assign(result, load(cx, one, span).expression, span)),
                span,
            )
            return Rvalue(result, type)
    raise cx.error(f"a value is needed here, not {describe(value)}", span)


def load_place(place: n.Place, span: Span) -> n.Expression:
    """The value at a place of the IR."""
    if isinstance(place, n.Variable):
        return place
    if isinstance(root_of(place), n.Variable):
        assert isinstance(place, n.Member), "arrays in variables live in memory"
        return n.Extract(load_place(place.base, span), place.name, place.type, span)
    return n.Load(place, place.type, span)


def store(cx: Context, value: Value, new: n.Expression, span: Span) -> None:
    """Put a value of the object's own type into it."""
    match value:
        case Lvalue(place):
            refuse_constant(cx, place, span)
            cx.emit(n.Assign(place, new, span))
        case BitsLvalue(place):
            refuse_constant(cx, place, span)
            cx.emit(n.Assign(place, n.Bitcast(new, place.type, span), span))
        case ScatteredLvalue():
            _store_scattered(cx, value, new, span)
        case ChoiceLvalue(tag, choices):
            kept = cx.let(new)
            _for_each_choice(cx, tag, choices, lambda one: store(cx, one, kept, span), span)
        case _:
            raise cx.error(f"{describe(value)} cannot be assigned to", span)


def refuse_constant(cx: Context, place: n.Place, span: Span) -> None:
    """CompileError for a place that a kernel can only read."""
    root = root_of(place)
    if isinstance(root, n.Element):
        target = cx.lowering.memory_targets.get(root.memory)
        if target is not None and target.space == "constant":
            key = cx.lowering.parameter_keys.get(root.memory)
            if key is not None:  # a large parameter: it is copied before
                cx.lowering.facts.assigned.add(key)
                raise Again
            raise cx.error(
                f"{root.memory} is __constant__: a kernel only reads it. Set it from outside with "
                f"module.constants[{root.memory!r}] = …, or declare it __device__",
                span,
            )
        return
    assert isinstance(root, n.Variable)
    key = cx.lowering.parameter_keys.get(root.name)
    if key is not None:
        cx.lowering.facts.assigned.add(key)
        raise Again


def _for_each_choice(
    cx: Context, tag: n.Expression, choices: tuple[Any, ...], do: Any, span: Span
) -> None:
    """Do something with the object that the tag names."""
    present = [(number, one) for number, one in enumerate(choices) if one is not None]
    choose(cx, tag, present, do, span)


def choose(
    cx: Context, tag: n.Expression, present: list[tuple[int, Any]], do: Any, span: Span
) -> None:
    """Do something with the one that the tag names, of those that there are."""
    number, one = present[0]
    if len(present) == 1:
        do(one)
        return
    with cx.aside() as then:
        do(one)
    with cx.aside() as otherwise:
        choose(cx, tag, present[1:], do, span)
    test = n.Binary("eq", tag, constant(number, ir.I32), ir.BOOL, span)
    cx.emit(n.If(test, tuple(then), tuple(otherwise), span))


def _leaf_places(
    cx: Context, value: ScatteredLvalue, span: Span
) -> list[tuple[n.Element, ir.Scalar]]:
    """The places of all numbers in an object, in order."""
    found = []
    for at, leaf in ir.leaves(_stored(cx, value.type, span)):
        size = ir.size_of(leaf)
        start = in_steps_of(cx, PointerValue((), value.offset, value.unit, value.type), size)
        if start is None or at % size:
            raise cx.error(f"this {value.type} is not aligned to its own numbers", span)
        index = plus(start.offset, constant(at // size, ir.I32))
        found.append((element(cx, value.target, index, leaf, span), leaf))
    return found


def _load_scattered(cx: Context, value: ScatteredLvalue, span: Span) -> Rvalue:
    if holds_array(value.type):
        raise cx.error(f"a {value.type} at an address that is no multiple of its size", span)
    parts = iter([n.Load(place, leaf, span) for place, leaf in _leaf_places(cx, value, span)])
    return Rvalue(_assembled(ir_type(value.type), parts, span), value.type)


def _assembled(type: ir.Type, parts: Any, span: Span) -> n.Expression:
    match type:
        case ir.Struct():
            made = tuple(_assembled(field.type, parts, span) for field in type.fields)
        case ir.Vector():
            made = tuple(next(parts) for _ in range(type.count))
        case _:
            only: n.Expression = next(parts)
            return only
    return n.Construct(made, type, span)


def _store_scattered(cx: Context, value: ScatteredLvalue, new: n.Expression, span: Span) -> None:
    kept = cx.let(new)
    parts = _numbers_of(kept, span)
    for (place, _), part in zip(_leaf_places(cx, value, span), parts, strict=True):
        refuse_constant(cx, place, span)
        cx.emit(n.Assign(place, part, span))


def _numbers_of(value: n.Expression, span: Span) -> list[n.Expression]:
    type = value.type
    match type:
        case ir.Struct():
            return [
                number
                for field in type.fields
                for number in _numbers_of(n.Extract(value, field.name, field.type, span), span)
            ]
        case ir.Vector():
            names = ir.COMPONENTS[: type.count]
            return [n.Extract(value, name, type.element, span) for name in names]
    return [value]


def copy_object(cx: Context, target: Value, source: Value, type: CppType, span: Span) -> None:
    """Copy an object with arrays in it, part by part."""
    if not holds_array(type):
        store(cx, target, load(cx, source, span).expression, span)
        return
    if isinstance(source, ChoiceLvalue):
        _for_each_choice(
            cx,
            source.tag,
            source.choices,
            lambda one: copy_object(cx, target, one, type, span),
            span,
        )
        return
    if isinstance(target, ChoiceLvalue):
        _for_each_choice(
            cx,
            target.tag,
            target.choices,
            lambda one: copy_object(cx, one, source, type, span),
            span,
        )
        return
    if isinstance(type, ArrayOf):
        _copy_items(cx, target, source, type, span)
        return
    assert isinstance(type, ClassType)
    if type.is_union:
        words = ir_type(type)
        assert isinstance(words, ir.Struct)
        assert isinstance(target, Lvalue), "unions live in memory"
        assert isinstance(source, Lvalue), "unions live in memory"
        array = words.fields[0].type
        _copy_places(
            cx, _field(target, UNION_WORDS, array), _field(source, UNION_WORDS, array), span
        )
        return
    for field in all_fields(type):
        copy_object(
            cx,
            member(cx, target, field.name, field.type, span),
            member(cx, source, field.name, field.type, span),
            field.type,
            span,
        )


def _field(value: Lvalue, name: str, type: ir.Type) -> n.Member:
    return n.Member(value.place, name, type)


def _copy_places(cx: Context, target: n.Member, source: n.Member, span: Span) -> None:
    array = target.type
    assert isinstance(array, ir.Array)
    refuse_constant(cx, target, span)
    for at in range(array.length):
        index = constant(at, ir.I32)
        value = n.Load(n.Item(source, index, array.element, (), span), array.element, span)
        cx.emit(n.Assign(n.Item(target, index, array.element, (), span), value, span))


def _copy_items(cx: Context, target: Value, source: Value, type: ArrayOf, span: Span) -> None:
    to, come = pointer_of(cx, target), pointer_of(cx, source)
    assert to is not None
    assert come is not None
    assert type.length is not None

    def copy(index: n.Expression) -> None:
        one = follow(cx, moved(cx, to, index, span), span)
        other = follow(cx, moved(cx, come, index, span), span)
        copy_object(cx, one, other, type.element, span)

    if type.length <= _MOST_UNROLLED:
        for at in range(type.length):
            copy(constant(at, ir.I32))
        return
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, span)
    with cx.aside() as body:
        copy(variable)
    stop = constant(type.length, ir.I32)
    cx.emit(n.For(variable, ZERO, stop, 1, tuple(body), span=span))


def member(cx: Context, value: Value, name: str, type: CppType, span: Span) -> Value:
    """Member variable `name` (of type `type`) of an object or value."""
    match value:
        case Lvalue(place, owner):
            if isinstance(owner, ClassType) and owner.is_union:
                start = address(cx, value, span)
                if isinstance(start.targets[0], ObjectTarget):
                    demand_memory(cx, place, span)
                return follow(cx, seen_as(start, type), span)
            inner = n.Member(place, name, _stored(cx, type, span), span)
            if isinstance(type, ArrayOf):
                return _array_member(cx, inner, type)
            return Lvalue(inner, type)
        case ScatteredLvalue(target, offset, unit, owner):
            at = _offset_of(owner, name)
            start = PointerValue((target,), offset, unit, type)
            aligned = in_steps_of(cx, start, 1)
            assert aligned is not None
            further = plus(aligned.offset, constant(at, ir.I32))
            return follow(cx, PointerValue((target,), further, 1, type), span)
        case ChoiceLvalue(tag, choices):
            parts = tuple(None if c is None else member(cx, c, name, type, span) for c in choices)
            return ChoiceLvalue(tag, parts, type)
        case Rvalue(expression):
            return Rvalue(n.Extract(expression, name, ir_type(type), span), type)
    raise cx.error(f"{describe(value)} has no members", span)


def _array_member(cx: Context, place: n.Member, type: ArrayOf) -> ArrayValue:
    first = PointerValue((ItemTarget(place),), ZERO, unit_of(type), type)
    return ArrayValue(first, type)


def _offset_of(owner: CppType, name: str) -> int:
    type = ir_type(owner)
    if isinstance(type, ir.Struct):
        return 0 if isinstance(owner, ClassType) and owner.is_union else ir.field_offset(type, name)
    assert isinstance(type, ir.Vector)
    return ir.COMPONENTS.index(name) * ir.size_of(type.element)


def subscript(cx: Context, value: Value, index: n.Expression, span: Span) -> Value:
    """`value[index]` of an array or pointer."""
    if isinstance(value, (Items, ObjectAddress)):
        from treadle.cuda_cpp.lower.exploded import part_at

        return part_at(cx, value, index, span)
    if (
        isinstance(value, ArrayValue)
        and isinstance(value.first.targets[0], ItemTarget)
        and isinstance(value.type.element, ArrayOf)
        and is_constant(value.first.offset, 0)
    ):
        place = value.first.targets[0].place
        assert isinstance(place.type, ir.Array)
        item = n.Item(place, index, place.type.element, (), span)
        inner = value.type.element
        return ArrayValue(PointerValue((ItemTarget(item),), ZERO, unit_of(inner), inner), inner)
    if isinstance(value, ChoiceLvalue) and isinstance(value.type, ArrayOf):
        parts = tuple(c if c is None else subscript(cx, c, index, span) for c in value.choices)
        return ChoiceLvalue(value.tag, parts, value.type.element)
    pointer = pointer_of(cx, value)
    if pointer is None:
        raise cx.error(f"{describe(value)} cannot be indexed", span)
    return follow(cx, moved(cx, pointer, index, span), span)


def describe(value: Any) -> str:
    """A value in an error message."""
    type = getattr(value, "type", None)
    name = value.__class__.__name__
    if name == "FunctionSet":
        return f"the function {value.name}"
    if name == "TypeValue":
        return f"the type {type}"
    if name == "Null":
        return "nullptr"
    return f"a value of type {type}"


def target_type(pointer: CppType) -> CppType:
    """What a pointer type points to."""
    assert isinstance(pointer, Pointer)
    return pointer.to


def component_type(type: CppType, name: str) -> CppType | None:
    """The type of component `name` of one of CUDA's vectors."""
    if isinstance(type, VectorType) and name in ir.COMPONENTS[: type.count]:
        return type.element
    return None


__all__ = ["Target", "address", "copy_object", "follow", "load", "member", "moved", "store"]

"""Objects: loads, stores and copies of places in the IR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, is_constant, plus, zero_of
from treadle.cuda_cpp.lower.bit_fields import as_bits, joined, replaced
from treadle.cuda_cpp.lower.checked_operations import with_index_check
from treadle.cuda_cpp.lower.choices import for_each_choice
from treadle.cuda_cpp.lower.context import Context, LowerAgain, completed
from treadle.cuda_cpp.lower.guards import report_null
from treadle.cuda_cpp.lower.parameter_values import read_parameter
from treadle.cuda_cpp.lower.pointers import (
    EXAMPLE,
    ZERO,
    address,
    as_pointer_to,
    demand_memory,
    element,
    follow,
    in_steps_of,
    is_base_of,
    misaligned,
    moved,
    note_memory,
    part_at,
    pointer_of,
    stored_type,
    unit_of,
    unknown,
)
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    BitFieldLvalue,
    BitsLvalue,
    ChoiceLvalue,
    ItemTarget,
    Lvalue,
    ObjectAddress,
    ObjectTarget,
    PointerValue,
    Rvalue,
    ScatteredLvalue,
    SplitArray,
    SplitStruct,
    Value,
    describe,
)
from treadle.cuda_cpp.semantics.types import (
    UNION_WORDS,
    ArrayOf,
    BitField,
    ClassType,
    CppType,
    Field,
    VectorType,
    all_fields,
    holds_array,
    ir_type,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

_MOST_UNROLLED = 16  # elements of an array that are copied without a loop


# --- pointers ------------------------------------------------------------------------------------


# --- addresses -----------------------------------------------------------------------------------


# --- reading and writing -------------------------------------------------------------------------


def load(cx: Context, value: Value, span: Span) -> Rvalue:
    """The value of an object."""
    match value:
        case Rvalue():
            return value
        case Lvalue(place, type):
            if isinstance(root := root_of(place), n.Variable):
                if root.name == EXAMPLE:
                    return Rvalue(n.Variable(EXAMPLE, ir_type(type), span), type)
                if root.name in cx.lowering.nulls:
                    report_null(cx, span)
            if isinstance(type, ClassType) and is_base_of(place, type):
                return load_by_fields(cx, value, type, span)
            known = read_parameter(cx, place, span)
            return Rvalue(load_place(place, span) if known is None else known, type)
        case BitsLvalue(place, type):
            return Rvalue(n.Bitcast(load_place(place, span), ir_type(type), span), type)
        case BitFieldLvalue(words, bits):
            read = [load(cx, one, span).expression for one in words]
            return Rvalue(joined(read, bits, span), bits.type)
        case ScatteredLvalue():
            return _load_scattered(cx, value, span)
        case ChoiceLvalue(tag, choices, type):
            result = cx.variable("chosen", ir_type(type), span)
            for_each_choice(
                cx,
                tag,
                choices,
                lambda one: cx.emit(n.Assign(result, load(cx, one, span).expression, span)),
                span,
            )
            return Rvalue(result, type)
    raise cx.error(f"a value is needed here, not {describe(value)}", span)


def load_by_fields(cx: Context, value: Value, type: ClassType, span: Span) -> Rvalue:
    """The fields of a class from an object of a derived class."""
    struct = ir_type(type)
    assert isinstance(struct, ir.Struct)
    values = {
        one.name: load(cx, member(cx, value, one.name, one.type, span), span).expression
        for one in all_fields(type)
    }
    parts = tuple(values.get(one.name) or zero_of(one.type, span) for one in struct.fields)
    return Rvalue(n.Construct(parts, struct, span), type)


def load_place(place: n.Place, span: Span) -> n.Expression:
    """The value at a place of the IR."""
    if isinstance(place, n.Variable):
        return place
    if isinstance(root_of(place), n.Variable):
        assert isinstance(place, n.Member), "objects with arrays are in memory"
        return n.Extract(load_place(place.base, span), place.name, place.type, span)
    return n.Load(place, place.type, span)


def store(cx: Context, value: Value, new: n.Expression, span: Span) -> None:
    """Store a value of the object's own type."""
    refuse_const(cx, value, span)
    match value:
        case Lvalue(place, type) if isinstance(type, ClassType) and is_base_of(place, type):
            kept = cx.let(new)
            for one in all_fields(type):
                part = n.Extract(kept, one.name, ir_type(one.type), span)
                store(cx, member(cx, value, one.name, one.type, span), part, span)
        case Lvalue(place):
            refuse_constant(cx, place, span)
            if isinstance(root := root_of(place), n.Variable) and root.name in cx.lowering.nulls:
                report_null(cx, span)
            cx.emit(n.Assign(place, new, span))
        case BitsLvalue(place):
            refuse_constant(cx, place, span)
            cx.emit(n.Assign(place, n.Bitcast(new, place.type, span), span))
        case BitFieldLvalue(words, bits):
            whole = cx.let(as_bits(new, bits, span))
            for word, piece in zip(words, bits.pieces, strict=True):
                scalar = ir_type(word.type)
                assert isinstance(scalar, ir.Scalar)
                known = None
                if piece.count < scalar.bits:
                    known = load(cx, word, span).expression
                made = replaced(known, whole, bits, piece, span)
                store(cx, word, cast(made, scalar, span), span)
        case ScatteredLvalue():
            _store_scattered(cx, value, new, span)
        case ChoiceLvalue(tag, choices):
            kept = cx.let(new)
            for_each_choice(cx, tag, choices, lambda one: store(cx, one, kept, span), span)
        case _:
            raise cx.wrong(f"{describe(value)} cannot be assigned to", span)


def refuse_const(cx: Context, value: Value, span: Span) -> None:
    """CompileError for an assignment to a const object."""
    const = value.first.const if isinstance(value, ArrayValue) else getattr(value, "const", False)
    if const:
        type = getattr(value, "type", None)
        if _is_part_of_this(cx, value):
            raise cx.wrong(
                f"{cx.name} is declared const, so it cannot change its object: leave out the const "
                "after its parameters, or declare the member mutable",
                span,
            )
        raise cx.wrong(
            f"this {type} is const, so it cannot be assigned to: it is declared const, or accessed "
            "through a pointer or reference to const",
            span,
        )


def _is_part_of_this(cx: Context, value: Value) -> bool:
    """Whether a value is a member of the object of a method that is const."""
    this = cx.this
    if not (cx.changes_nothing and isinstance(this, Lvalue) and isinstance(value, Lvalue)):
        return False
    return value.place is not this.place and root_of(value.place) == root_of(this.place)


def refuse_constant(cx: Context, place: n.Place, span: Span) -> None:
    """CompileError for a place in read-only memory."""
    root = root_of(place)
    if isinstance(root, n.Element):
        key = cx.lowering.parameter_keys.get(root.memory)
        if key is not None:
            cx.lowering.facts.assigned.add(key)
            raise LowerAgain
        target = cx.lowering.memory_targets.get(root.memory)
        if target is not None and target.space == "constant":
            raise cx.wrong(
                f"{root.memory.removesuffix('.example')} is __constant__, so kernels only read it. "
                "Set it on the host with module.constants[…] = …, or declare it __device__",
                span,
            )
        return
    assert isinstance(root, n.Variable)
    key = cx.lowering.parameter_keys.get(root.name)
    if key is not None:
        cx.lowering.facts.assigned.add(key)
        raise LowerAgain


def _leaf_places(
    cx: Context, value: ScatteredLvalue, span: Span
) -> list[tuple[n.Element, ir.Scalar]]:
    """The places of all scalars in an object, in order."""
    found: list[tuple[n.Element, ir.Scalar]] = []
    for at, leaf in ir.leaves(stored_type(cx, value.type, span)):
        size = ir.size_of(leaf)
        start = in_steps_of(cx, PointerValue((), value.offset, value.unit, value.type), size)
        if start is None or at % size:
            raise cx.error(f"this {value.type} is not aligned to its scalars", span)
        index = plus(start.offset, constant(at // size, ir.I32))
        place = element(cx, value.target, index, leaf, span)
        if not found and (checks := misaligned(cx, value.offset, value.unit, value.type, span)):
            place = replace(place, checks=(*checks, *place.checks))
        found.append((place, leaf))
    return found


def _load_scattered(cx: Context, value: ScatteredLvalue, span: Span) -> Rvalue:
    if holds_array(value.type):
        raise cx.error(f"a {value.type} at an address that is not a multiple of its size", span)
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
    parts = numbers_of(kept, span)
    for (place, _), part in zip(_leaf_places(cx, value, span), parts, strict=True):
        refuse_constant(cx, place, span)
        cx.emit(n.Assign(place, part, span))


def numbers_of(value: n.Expression, span: Span) -> list[n.Expression]:
    """The numbers in a value, in order."""
    type = value.type
    match type:
        case ir.Struct():
            return [
                number
                for field in type.fields
                for number in numbers_of(n.Extract(value, field.name, field.type, span), span)
            ]
        case ir.Vector():
            names = ir.COMPONENTS[: type.count]
            return [n.Extract(value, name, type.element, span) for name in names]
    return [value]


def copy_object(cx: Context, target: Value, source: Value, type: CppType, span: Span) -> None:
    """Copy an object with arrays in it, member by member."""
    refuse_const(cx, target, span)
    if not holds_array(type):
        store(cx, target, load(cx, source, span).expression, span)
        return
    if isinstance(source, ChoiceLvalue):
        for_each_choice(
            cx,
            source.tag,
            source.choices,
            lambda one: copy_object(cx, target, one, type, span),
            span,
        )
        return
    if isinstance(target, ChoiceLvalue):
        for_each_choice(
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
        assert isinstance(target, Lvalue), "unions are in memory"
        assert isinstance(source, Lvalue), "unions are in memory"
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
    with cx.separate_block() as body:
        copy(variable)
    stop = constant(type.length, ir.I32)
    cx.emit(n.For(variable, ZERO, stop, 1, tuple(body), span=span))


def member(cx: Context, value: Value, name: str, type: CppType, span: Span) -> Value:
    """The member variable `name` of type `type` of an object or value."""
    type = completed(cx, type)
    match value:
        case Lvalue(place, owner, const):
            if isinstance(owner, ClassType) and owner.is_union:
                start = address(cx, value, span)
                if isinstance(start.targets[0], ObjectTarget):
                    if isinstance(type, ArrayOf):
                        demand_memory(cx, place)
                    elif note_memory(cx, place):
                        return unknown(cx, type, span)
                return follow(cx, as_pointer_to(start, type), span)
            inner = n.Member(place, name, stored_type(cx, type, span), span)
            if isinstance(type, ArrayOf):
                return _array_member(cx, inner, type, const)
            return Lvalue(inner, type, const)
        case ScatteredLvalue(target, offset, unit, owner, const):
            at = _offset_of(owner, name)
            start = PointerValue((target,), offset, unit, type)
            aligned = in_steps_of(cx, start, 1)
            assert aligned is not None
            further = plus(aligned.offset, constant(at, ir.I32))
            return follow(cx, PointerValue((target,), further, 1, type, const=const), span)
        case ChoiceLvalue(tag, choices):
            parts = tuple(None if c is None else member(cx, c, name, type, span) for c in choices)
            return ChoiceLvalue(tag, parts, type)
        case Rvalue(expression):
            return Rvalue(n.Extract(expression, name, ir_type(type), span), type)
    raise cx.unfit(f"{describe(value)} has no members", value, span)


def bit_field(cx: Context, value: Value, bits: BitField, span: Span) -> Value:
    """A bit field of an object or value."""
    words = tuple(_word(cx, value, piece.word, span) for piece in bits.pieces)
    if all(isinstance(one, Rvalue) for one in words):
        return Rvalue(joined([one.expression for one in words], bits, span), bits.type)
    return BitFieldLvalue(words, bits, is_const_of(value))


def part_of(cx: Context, value: Value, field: Field, span: Span) -> Value:
    """A field of an object, as it is in memory: also a word with bit fields in it."""
    if isinstance(value, SplitStruct):
        found: Value = value.fields[field.name]
        return found
    return member(cx, value, field.name, field.type, span)


def _word(cx: Context, value: Value, name: str, span: Span) -> Any:
    type = value.type  # type: ignore[union-attr]
    assert isinstance(type, ClassType)
    return part_of(cx, value, next(one for one in all_fields(type) if one.name == name), span)


def is_const_of(value: Value) -> bool:
    """Whether the members of an object are const."""
    if isinstance(value, ChoiceLvalue):
        return any(one is not None and is_const_of(one) for one in value.choices)
    return bool(getattr(value, "const", False))


def _array_member(cx: Context, place: n.Member, type: ArrayOf, const: bool) -> ArrayValue:
    first = PointerValue((ItemTarget(place),), ZERO, unit_of(type), type, const=const)
    return ArrayValue(first, type)


def _offset_of(owner: CppType, name: str) -> int:
    type = ir_type(owner)
    if isinstance(type, ir.Struct):
        return 0 if isinstance(owner, ClassType) and owner.is_union else ir.field_offset(type, name)
    assert isinstance(type, ir.Vector)
    return ir.COMPONENTS.index(name) * ir.size_of(type.element)


def subscript(cx: Context, value: Value, index: n.Expression, span: Span) -> Value:
    """`value[index]` of an array or pointer."""
    if isinstance(value, (SplitArray, ObjectAddress)):
        return part_at(cx, value, index, span)
    if (
        isinstance(value, ArrayValue)
        and isinstance(value.first.targets[0], ItemTarget)
        and isinstance(value.type.element, ArrayOf)
        and is_constant(value.first.offset, 0)
    ):
        place = value.first.targets[0].place
        assert isinstance(place.type, ir.Array)
        assert isinstance(index.type, ir.Scalar)
        check = n.Check(index, constant(place.type.length, index.type))
        item = n.Item(place, index, place.type.element, (check,), span)
        inner = value.type.element
        first = PointerValue((ItemTarget(item),), ZERO, unit_of(inner), inner)
        return ArrayValue(replace(first, const=value.first.const), inner)
    if isinstance(value, ChoiceLvalue) and isinstance(value.type, ArrayOf):
        parts = tuple(c if c is None else subscript(cx, c, index, span) for c in value.choices)
        return ChoiceLvalue(value.tag, parts, value.type.element)
    pointer = pointer_of(cx, value)
    if pointer is None:
        raise cx.unfit(f"{describe(value)} cannot be indexed", value, span)
    found = follow(cx, moved(cx, pointer, index, span), span)
    return with_index_check(cx, value, index, found, span)


def component_type(type: CppType, name: str) -> CppType | None:
    """The type of the component `name` of a CUDA vector; None if it has none."""
    if isinstance(type, VectorType) and name in ir.COMPONENTS[: type.count]:
        return type.element
    return None

"""Initializers: braced lists, aggregates, default member initializers."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded, holds, zero_of
from treadle.cuda_cpp.lower.assignment import (
    initialize,
)
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.conditionals import lower_place
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert, rvalue
from treadle.cuda_cpp.lower.dispatch import lower, type_of
from treadle.cuda_cpp.lower.evaluation_order import Operands, arguments, bind_reference
from treadle.cuda_cpp.lower.fields import has_field
from treadle.cuda_cpp.lower.lifetimes import temporary
from treadle.cuda_cpp.lower.objects import part_of, store, subscript
from treadle.cuda_cpp.lower.pointers import as_pointer_to, follow, moved, pointer_of
from treadle.cuda_cpp.lower.special_members import (
    acts,
    has_bits,
    has_constructors,
    is_initializer_list,
    is_word,
    item_type,
    member_defaults,
    members_of,
    own_members,
    written_name,
)
from treadle.cuda_cpp.lower.storage import array_memory, uninitialized
from treadle.cuda_cpp.lower.values import Rvalue, SplitArray, SplitStruct, Value
from treadle.cuda_cpp.semantics.bases import all_bases, derives, way_to_base
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    INT,
    SIZE,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    Field,
    Member,
    Reference,
    VectorType,
    all_fields,
    count_of,
    holds_array,
    holds_pointer,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_MOST_ZEROS = 16  # stores that are unrolled


def from_list(cx: Context, type: CppType, node: tree.InitializerList, span: Span) -> Value:
    """A value of `type` from `{a, b, …}`."""
    if isinstance(type, VectorType):
        only = node.items[0] if len(node.items) == 1 else None
        is_value = only is not None and not isinstance(only, tree.InitializerList)
        if is_value and type_of(cx, only) == type:  # a copy of another vector
            return convert(cx, lower(cx, only), type, span)
        items = _items_in_order(cx, [type.element] * len(node.items), node.items)
        if len(items) > type.count:
            raise cx.wrong(f"{len(items)} values for a {type}", span)
        parts = [rvalue(cx, one, span).expression for one in items]
        parts += [constant(0, type.element.scalar)] * (type.count - len(parts))
        return Rvalue(n.Construct(tuple(parts), ir_type(type), span), type)
    if isinstance(type, ClassType):
        if is_initializer_list(type):
            return _listed(cx, type, node, span)
        if has_constructors(type):
            values = cx.rules.list_arguments(cx, type, node) or arguments(cx, node.items, type)
            return cx.rules.construct(cx, type, values, span)
        _refuse_hidden_parts(cx, type, node, span)
        return _aggregate(cx, type, node, span)
    if isinstance(type, ArrayOf):
        return _temporary_array(cx, type, node, span)
    if not node.items:
        zero = Rvalue(constant(0, ir.I32), INT, literal_zero=True)
        if isinstance(type, EnumType):
            return explicit_cast(cx, zero, type, "static", span)
        return convert(cx, zero, type, span)
    if len(node.items) > 1:
        raise cx.wrong(f"{len(node.items)} values for one {type}", span)
    if isinstance(type, EnumType) and not isinstance(node.items[0], tree.InitializerList):
        return explicit_cast(cx, lower(cx, node.items[0]), type, "static", span)
    if not node.braces and not isinstance(node.items[0], tree.InitializerList):
        return convert(cx, lower(cx, node.items[0]), type, node.span)
    return _item(cx, type, node.items[0])


def _refuse_hidden_parts(
    cx: Context, type: ClassType, node: tree.InitializerList, span: Span
) -> None:
    """CompileError for values of members in braces, if some members are not public: such a class is
    not an aggregate, and has no constructor that takes them."""
    single = len(node.items) == 1 and not isinstance(node.items[0], tree.InitializerList)
    if not node.items or (single and isinstance(type_of(cx, node.items[0]), ClassType)):
        return
    hidden = [one for one in own_members(type) if written_name(one) in type.declaration.hidden]
    if hidden:
        raise cx.amiss(
            f"{type} has no constructor, and its member {written_name(hidden[0])} is not public, "
            "so its members have no values in braces: give it a constructor",
            span,
            type,
        )


def _listed(cx: Context, type: ClassType, node: tree.InitializerList, span: Span) -> Value:
    """A std::initializer_list: an array of the items, and their number."""
    element = item_type(type)
    count = Rvalue(constant(len(node.items), ir.U64), SIZE)
    of = ArrayOf(element, max(len(node.items), 1))
    first = array_memory(cx, "listed", of, "local", span)
    if node.items:
        fill(cx, first, of, node, span)
    return cx.rules.construct(cx, type, [first, count], span)


def _temporary_array(cx: Context, type: ArrayOf, node: tree.InitializerList, span: Span) -> Value:
    """The array that a reference parameter is bound to."""
    if type.length is None:
        type = replace(type, length=len(node.items))
    made = array_memory(cx, "listed", type, "local", span)
    fill(cx, made, type, node, span)
    return made


def _item(cx: Context, type: CppType, node: Any) -> Value:
    if isinstance(node, tree.InitializerList):
        return from_list(cx, type, node, node.span)
    value = lower(cx, node)
    refuse_narrowing(cx, value, type, node.span)
    return convert(cx, value, type, node.span)


def refuse_narrowing(cx: Context, value: Value, type: CppType, span: Span) -> None:
    """CompileError for a narrowing conversion of a constant in a braced list ([dcl.init.list]). For
    values known only at run time, compilers merely warn."""
    is_written = span.line  # the characters of a string are not
    if not isinstance(value, Rvalue) or not isinstance(type, Arithmetic) or not is_written:
        return
    known = folded(value.expression)
    given = value.type
    if not isinstance(known, n.Constant) or not isinstance(given, Arithmetic) or type == BOOL:
        return
    if holds(type, given, known.value):
        return
    raise cx.wrong(
        f"{known.value} in braces does not convert to {type} unchanged (narrowing): write "
        f"another number, or cast it, as in ({type})",
        span,
    )


def _items_in_order(
    cx: Context, types: Sequence[CppType], nodes: Sequence[Any], own: Container[int] = ()
) -> list[Value]:
    """The values of a list's items, evaluated in order. `own` are default member initializers,
    which are not in the list."""
    operands = Operands()
    for type, node in zip(types, nodes, strict=True):
        with cx.separate_block() as block:
            if id(node) in own and not isinstance(node, tree.InitializerList):
                value = convert(cx, lower(cx, node), type, node.span)
            else:
                value = _item(cx, type, node)
        operands.add(value, block)
    return operands.emit(cx)


def _named(
    cx: Context, fields: Sequence[Member], node: tree.InitializerList, type: ClassType
) -> dict[str, Any]:
    """The initializers of fields by designators."""
    found: dict[str, Any] = {}
    names = node.names or (None,) * len(node.items)
    position = 0
    written: Member | None = None  # the last one with a designator
    items = list(zip(node.items, names, strict=True))
    for item, name in items:
        if name is not None:
            position = next(
                (i for i, f in enumerate(fields) if name in (f.name, written_name(f))), -1
            )
            inner = next((at for at, one in enumerate(fields) if _holds(one, name)), -1)
            if position < 0 <= inner:  # a member of an anonymous member
                position, item = inner, tree.InitializerList((item,), (name,), node.span)
            if position < 0:
                raise cx.wrong(f"{type} has no field {name}", node.span)
            last = fields.index(written) if written is not None else -1
            written = fields[position]
            if position < last or (position == last and written_name(written) == name):
                raise cx.wrong(
                    f".{name} is behind .{written_name(fields[last])}: designators are in the "
                    f"order of the members of {type}, each once",
                    node.span,
                )
        if position >= len(fields):
            raise cx.wrong(f"{len(items)} values for {type}, which has {len(fields)}", node.span)
        found[fields[position].name] = item
        position += 1
    return found


def _holds(field: Member, name: str) -> bool:
    """Whether an anonymous member has a member of this name."""
    anonymous = field.name.startswith("anonymous") and isinstance(field.type, ClassType)
    return anonymous and has_field(field.type, name)  # type: ignore[arg-type]


def _aggregate(cx: Context, type: ClassType, node: tree.InitializerList, span: Span) -> Value:
    fields = members_of(type)
    single = len(node.items) == 1 and not isinstance(node.items[0], tree.InitializerList)
    if single and type_of(cx, node.items[0]) == type:  # copy-initialization
        return _item(cx, type, node.items[0])
    in_place = holds_array(type) or holds_pointer(type) or acts(type) or has_bits(type)
    in_place = in_place or _has_whole_base(cx, type, node) or is_filled_by_bases(type)
    if in_place or not _is_literal(member_defaults(type)):
        cx.calls += 1
        place = uninitialized(cx, "made", type, (cx.path, "made", cx.calls), span)
        fill(cx, place, type, node, span)
        made: Value = temporary(cx, place, type)
        return made
    given = _named(cx, fields, braced(cx, type, node), type)
    defaults = member_defaults(type)
    empty = tree.InitializerList((), (), span)
    items = [given.get(field.name, defaults.get(field.name)) or empty for field in fields]
    own = {id(item) for item in defaults.values()}
    values = _items_in_order(cx, [field.type for field in fields], items, own)
    return construct_value(type, [rvalue(cx, one, span).expression for one in values], span)


def construct_value(type: ClassType, parts: Sequence[n.Expression], span: Span) -> Rvalue:
    """A struct from its fields, with the padding of its layout."""
    struct = ir_type(type)
    assert isinstance(struct, ir.Struct)
    names = [field.name for field in all_fields(type)]
    given = dict(zip(names, parts, strict=True))

    operands = tuple(
        given[field.name] if field.name in given else zero_of(field.type, span)
        for field in struct.fields
    )
    return Rvalue(n.Construct(operands, struct, span), type)


def without_base_braces(
    cx: Context, type: CppType, node: tree.InitializerList
) -> tree.InitializerList:
    """A list for a class with bases, without the braces around the bases' fields, and without
    objects for empty bases."""
    if not isinstance(type, ClassType) or not type.bases or any(node.names):
        return node
    items: list[Any] = []
    for at, item in enumerate(node.items):
        base = type.bases[at] if at < len(type.bases) else None
        if base is not None and not all_fields(base) and _is_empty_object(cx, item, base):
            continue
        if base is None or not isinstance(item, tree.InitializerList):
            items += node.items[at:]
            break
        given = without_base_braces(cx, base, item).items
        empty = tree.InitializerList((), (), item.span)
        items += [*given, *[empty] * (len(all_fields(base)) - len(given))]
    return tree.InitializerList(tuple(items), (), node.span)


def _is_empty_object(cx: Context, item: Any, base: ClassType) -> bool:
    return isinstance(item, tree.Lambda | tree.Name | tree.Construct) and type_of(cx, item) == base


def braced(cx: Context, type: CppType, node: tree.InitializerList) -> tree.InitializerList:
    """A list with elided inner braces inserted: `{1, 2, 3, 4}` for two float2."""
    node = without_base_braces(cx, type, node)
    parts = _parts(type, len(node.items))
    if any(node.names) or not any(map(_has_parts, parts)):
        return node
    items = list(node.items)
    made: list[Any] = []
    for part in parts:
        if not items:
            break
        made.append(_taken(cx, part, items))
    return tree.InitializerList((*made, *items), (), node.span)


def _taken(cx: Context, type: CppType, items: list[Any]) -> Any:
    """The initializer of one part: the next item, or with brace elision as many as it takes."""
    if not _has_parts(type) or _is_whole(cx, items[0], type):
        return items.pop(0)
    made = []
    span = items[0].span
    for part in _parts(type, len(items)):
        if not items:
            break
        made.append(_taken(cx, part, items))
    return tree.InitializerList(tuple(made), (), span)


def _is_whole(cx: Context, item: Any, type: CppType) -> bool:
    """Whether one item initializes the whole part."""
    if isinstance(item, (tree.InitializerList, tree.StringLiteral)):
        return True
    if isinstance(item, (tree.IntegerLiteral, tree.FloatLiteral, tree.CharacterLiteral)):
        return False
    given = type_of(cx, item)
    return given == type or (isinstance(given, ClassType) and not isinstance(type, ArrayOf))


def _parts(type: CppType, most: int) -> list[CppType]:
    """The types of the parts of `type` that up to `most` items initialize, in order."""
    match type:
        case VectorType():
            return [type.element] * min(type.count, most)
        case ArrayOf():
            return [type.element] * min(type.length or 0, most)
        case ClassType(is_union=True):
            return [field.type for field in type.fields[: min(1, most)]]
        case ClassType():
            return [field.type for field in members_of(type)[:most]]
    return []


def _has_parts(type: CppType) -> bool:
    if isinstance(type, ClassType):
        return bool(all_fields(type)) and not has_constructors(type)
    return isinstance(type, (ArrayOf, VectorType))


def text_items(node: tree.StringLiteral) -> tree.InitializerList:
    """The characters of a string literal, with the null character at its end."""
    text = (*node.data, 0)
    return tree.InitializerList(tuple(map(tree.IntegerLiteral, text)), (), node.span)


def _is_literal(defaults: dict[str, Any]) -> bool:
    """Whether default member initializers are literals: others may use the object's fields."""
    return not any(
        isinstance(node, (tree.Name, tree.This))
        for one in defaults.values()
        for node in walk_tree(one)
    )


def initialize_by_default(
    cx: Context,
    place: Value,
    type: ClassType,
    field: Member,
    initializer: Any,
    span: Span,
) -> None:
    """Evaluate a default member initializer in the scope of its class and object."""
    part = cx.rules.member_of(cx, place, tree.Name(field.name), span)
    outer, cx.this = cx.this, place
    try:
        with cx.in_scope(type.scope):
            if isinstance(initializer, tree.StringLiteral) and isinstance(field.type, ArrayOf):
                initializer = text_items(initializer)
            if isinstance(initializer, tree.InitializerList):
                fill(cx, part, field.type, initializer, span)
            else:
                initialize(cx, part, lower(cx, initializer), span)
    finally:
        cx.this = outer


def fill(cx: Context, place: Value, type: CppType, node: tree.InitializerList, span: Span) -> None:
    """Initialize an array, or an object with arrays, from a list."""
    if isinstance(type, ArrayOf):
        _fill_array(cx, place, type, node, span)
        return
    in_parts = isinstance(type, ClassType) and (
        holds_array(type)
        or isinstance(place, SplitStruct)
        or acts(type)
        or has_bits(type)
        or not _is_literal(member_defaults(type))
        or _has_whole_base(cx, type, node)
        or is_filled_by_bases(type)
    )
    if isinstance(type, ClassType) and in_parts and not has_constructors(type):
        _clear_words(cx, place, type, span)
        if _has_whole_base(cx, type, node) or is_filled_by_bases(type):
            node = _fill_bases(cx, place, type, node, span)
            fields = own_members(type)
        else:
            fields = members_of(type)
            node = braced(cx, type, node)
        given = _named(cx, fields, node, type)
        if type.is_union:  # one member, the first without a designator
            fields = tuple(field for field in fields if field.name in given) or fields[:1]
        for field in fields:
            _fill_member(cx, place, type, field, given.get(field.name), span)
        return
    initialize(cx, place, from_list(cx, type, node, span), span)


def _fill_member(
    cx: Context, place: Value, type: ClassType, field: Member, item: Any, span: Span
) -> None:
    """Initialize a member from an item of a list; without one, as its declaration says."""
    defaults = member_defaults(type)
    if field.name in defaults and item is None:
        initialize_by_default(cx, place, type, field, defaults[field.name], span)
        return
    if isinstance(field.type, Reference):
        assert isinstance(field, Field)
        refer(cx, place, field, item, span)
        return
    part = cx.rules.member_of(cx, place, tree.Name(field.name), span)
    if item is None:
        item = tree.InitializerList((), (), span)
    if isinstance(item, tree.StringLiteral) and isinstance(field.type, ArrayOf):
        item = text_items(item)
    if isinstance(item, tree.InitializerList):
        fill(cx, part, field.type, item, span)
    else:
        initialize(cx, part, _item(cx, field.type, item), span)


def _has_whole_base(cx: Context, type: CppType, node: tree.InitializerList) -> bool:
    """Whether an item of a list is an object for a base that has members, as in `D{base, 1}`; in
    other lists the bases' members may be items of their own."""
    if not isinstance(type, ClassType) or any(node.names):
        return False
    return any(
        all_fields(base) and _is_object_for(cx, item, base)
        for base, item in zip(type.bases, node.items, strict=False)
    )


def _is_object_for(cx: Context, item: Any, base: ClassType) -> bool:
    if isinstance(item, (tree.InitializerList, tree.IntegerLiteral, tree.FloatLiteral)):
        return False
    given = type_of(cx, item)
    return given == base or derives(given, base)


def _fill_bases(
    cx: Context, place: Value, type: ClassType, node: tree.InitializerList, span: Span
) -> tree.InitializerList:
    """Initialize each base of an object from an item of a list; return the list of the others."""
    items = list(node.items)
    if node.names:  # designators are of the class's own members
        items = [tree.InitializerList((), (), span)] * len(type.bases) + items
    for base in type.bases:
        item: Any = tree.InitializerList((), (), span)
        if items:
            item = _taken(cx, base, items) if _is_part_of(cx, items[0], base) else items.pop(0)
        part = as_base(cx, place, base, span)
        if isinstance(item, tree.InitializerList):
            fill(cx, part, base, item, span)
        else:
            value = as_base(cx, lower(cx, item), base, span)
            initialize(cx, part, convert(cx, value, base, span), span)
        note_references(place, part)
    return tree.InitializerList(tuple(items), node.names, node.span)


def _is_part_of(cx: Context, item: Any, base: ClassType) -> bool:
    """Whether an item initializes a member of a base, whose own braces are left out."""
    braced = isinstance(item, tree.InitializerList)
    return _has_parts(base) and not braced and not _is_object_for(cx, item, base)


def note_references(place: Value, part: Value) -> None:
    """An object in parts has the references that are bound now in its base."""
    if not isinstance(place, SplitStruct) or not isinstance(part, SplitStruct):
        return
    if place.type == part.type or not way_to_base(place.type, part.type):
        place.fields.update(part.fields)


def is_filled_by_bases(type: CppType) -> bool:
    """Whether a list gives a class's bases as wholes: they have constructors, or fields of names
    that the class has twice."""
    if not isinstance(type, ClassType) or not type.bases:
        return False
    names = [written_name(one) for one in members_of(type)]
    return len(set(names)) < len(names) or any(map(has_constructors, all_bases(type)))


def _clear_words(cx: Context, place: Value, type: ClassType, span: Span) -> None:
    """Clear the words of bit fields, of which initializers set parts."""
    for field in all_fields(type) if has_bits(type) else ():
        if is_word(field):
            scalar = ir_type(field.type)
            assert isinstance(scalar, ir.Scalar)
            store(cx, part_of(cx, place, field, span), constant(0, scalar), span)


def refer(cx: Context, place: Value, field: Field, item: Any, span: Span) -> None:
    """Bind a member that is a reference."""
    if isinstance(item, tree.InitializerList) and len(item.items) == 1:
        item = item.items[0]
    if item is None or isinstance(item, tree.InitializerList):
        raise cx.wrong(f"the reference {field.name} is not initialized", span)
    assert isinstance(field.type, Reference)
    assert isinstance(place, SplitStruct)
    place.fields[field.name] = bind_reference(cx, field.type, lower_place(cx, item), span)


def _fill_array(
    cx: Context, place: Value, type: ArrayOf, node: tree.InitializerList, span: Span
) -> None:
    assert type.length is not None
    items = braced(cx, type, node).items
    if len(items) > type.length:
        raise cx.wrong(f"{len(items)} values for an array of {type.length}", span)
    for at, item in enumerate(items):
        part = subscript(cx, place, constant(at, ir.I32), span)
        if isinstance(item, tree.StringLiteral) and isinstance(type.element, ArrayOf):
            item = text_items(item)
        if isinstance(item, tree.InitializerList):
            fill(cx, part, type.element, item, item.span)
        else:
            initialize(cx, part, _item(cx, type.element, item), span)
    _zero_remaining(cx, place, type, len(items), span)


def _zero_remaining(cx: Context, place: Value, type: ArrayOf, start: int, span: Span) -> None:
    """Zero the elements that a list does not initialize."""
    assert type.length is not None
    if isinstance(place, SplitArray):
        empty = tree.InitializerList((), (), span)
        for part in place.items[start:]:
            fill(cx, part, type.element, empty, span)
        return
    inner = innermost(type)
    step = count_of(type.element)
    first, last = start * step, type.length * step
    pointer = pointer_of(cx, place)
    assert pointer is not None
    flat = type_of_items(pointer, inner)

    def clear(index: n.Expression) -> None:
        one = follow(cx, moved(cx, flat, index, span), span)
        empty = tree.InitializerList((), (), span)
        if isinstance(inner, ClassType) and holds_array(inner):
            fill(cx, one, inner, empty, span)
        else:
            store(cx, one, rvalue(cx, from_list(cx, inner, empty, span), span).expression, span)

    if last - first <= _MOST_ZEROS:
        for at in range(first, last):
            clear(constant(at, ir.I32))
        return
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, span)
    with cx.separate_block() as body:
        clear(variable)
    bounds = (constant(first, ir.I32), constant(last, ir.I32))
    cx.emit(n.For(variable, *bounds, 1, tuple(body), span=span))


def type_of_items(pointer: Any, inner: CppType) -> Any:
    """A pointer to the first innermost element of an array."""
    return as_pointer_to(pointer, inner)

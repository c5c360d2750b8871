"""`new` and `delete`: memory from the heap, and constructors and destructors."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden_constructors, refuse_hidden_destructor
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded, times
from treadle.cuda_cpp.lower.assignment import (
    initialize,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert, is_not_null, number
from treadle.cuda_cpp.lower.dispatch import lower, type_of
from treadle.cuda_cpp.lower.evaluation_order import arguments
from treadle.cuda_cpp.lower.heap import call_library, give_back
from treadle.cuda_cpp.lower.hierarchy import refuse_abstract
from treadle.cuda_cpp.lower.initializers import fill, from_list
from treadle.cuda_cpp.lower.names import is_auto, resolve, with_auto
from treadle.cuda_cpp.lower.objects import subscript
from treadle.cuda_cpp.lower.pointers import ZERO, as_pointer_to, follow, pointer_of
from treadle.cuda_cpp.lower.special_members import (
    has_constructors,
    has_default_constructor,
    lifetime_of,
)
from treadle.cuda_cpp.lower.values import (
    NullTarget,
    PointerValue,
    Rvalue,
    Value,
    describe,
)
from treadle.cuda_cpp.lower.virtual_calls import destroy_by_table
from treadle.cuda_cpp.semantics.types import (
    SIZE,
    VOID,
    ArrayOf,
    ClassType,
    CppType,
    Void,
    decay,
    size_of,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def new(cx: Context, node: tree.New) -> Value:
    """`new T(…)`, `new T[count]`, and `new (place) T(…)`."""
    type = _type_of_new(cx, node)
    refuse_abstract(cx, type, node.span)
    if isinstance(type, ClassType):
        refuse_hidden_constructors(cx, type, node.span)
    if isinstance(type, (ArrayOf, Void)):
        raise cx.wrong(f"new {type}: give the length in brackets, new T[n]", node.span)
    count: n.Expression | None = None
    if node.count is not None:
        count = cx.let(cast(number(cx, lower(cx, node.count), node.span)[0], ir.I32))
    if node.place is not None:
        found = pointer_of(cx, lower(cx, node.place))
        if found is None:
            raise cx.wrong("new (place) takes a pointer", node.span)
        pointer = as_pointer_to(found, type)
        _construct(cx, pointer, type, count, node)
        return pointer
    size = times(count if count is not None else constant(1, ir.I32), size_of(type))
    made = pointer_of(cx, call_library(cx, "malloc", [Rvalue(cast(size, ir.U64), SIZE)], node.span))
    assert made is not None
    pointer = as_pointer_to(made, type)
    with cx.separate_block() as body:
        _construct(cx, _in_heap(pointer), type, count, node)
    if body:
        cx.emit(n.If(is_not_null(cx, pointer, node.span), tuple(body), (), node.span))
    return pointer


def _type_of_new(cx: Context, node: tree.New) -> CppType:
    """The type of the new object, which that of its value is in `new auto(value)`."""
    items = () if node.initializer is None else node.initializer.items
    if not is_auto(node.type) or len(items) != 1:
        return resolve(cx, node.type)
    return with_auto(cx, node.type, decay(type_of(cx, items[0])))


def _in_heap(pointer: PointerValue) -> PointerValue:
    """A pointer that is known to point into the heap."""
    found = [one for one in pointer.targets if not isinstance(one, NullTarget)]
    if not found:  # in the first run
        return pointer
    return PointerValue((found[0],), pointer.offset, pointer.unit, pointer.to)


def _construct(
    cx: Context, pointer: PointerValue, type: CppType, count: n.Expression | None, node: tree.New
) -> None:
    """Initialize the objects at a pointer."""
    if count is not None and node.initializer is not None:
        _fill_new_array(cx, pointer, type, count, node.initializer, node.span)
        return
    if count is not None:
        if not isinstance(type, ClassType) or not has_default_constructor(type):
            return
        variable = n.Variable(cx.lowering.unique("item"), ir.I32, node.span)
        with cx.separate_block() as body:
            item = subscript(cx, pointer, variable, node.span)
            cx.rules.run_constructor(cx, item, type, [], node.span)
        cx.emit(n.For(variable, ZERO, count, 1, tuple(body), span=node.span))
        return
    written = node.initializer
    place = follow(cx, pointer, node.span)
    if isinstance(type, ClassType) and has_constructors(type):
        items = () if written is None else written.items
        cx.rules.run_constructor(cx, place, type, arguments(cx, items, type), node.span)
    elif written is not None and (written.braces or isinstance(type, ClassType)):
        if len(written.items) == 1 and not written.braces:
            initialize(cx, place, lower(cx, written.items[0]), node.span)
        elif isinstance(type, ClassType):
            fill(cx, place, type, written, node.span)
        else:
            initialize(cx, place, from_list(cx, type, written, node.span), node.span)
    elif written is not None:
        value: Value = Rvalue(constant(0, ir.I32), VOID, literal_zero=True)
        if written.items:
            value = convert(cx, lower(cx, written.items[0]), type, node.span)
        else:
            value = cx.rules.construct(cx, type, [], node.span)
        initialize(cx, place, value, node.span)
    elif isinstance(type, ClassType) and has_default_constructor(type):
        cx.rules.run_constructor(cx, place, type, [], node.span)


def _fill_new_array(
    cx: Context,
    pointer: PointerValue,
    type: CppType,
    count: n.Expression,
    written: tree.InitializerList,
    span: Span,
) -> None:
    """The elements of `new T[count]{…}`."""
    length = folded(count)
    if not isinstance(length, n.Constant) or not 0 < int(length.value) <= _MOST_LISTED:
        raise cx.error(
            f"new T[n] with initial values and n not a constant from 1 to {_MOST_LISTED}: assign "
            "them in a loop",
            span,
        )
    array = ArrayOf(type, int(length.value))
    fill(cx, follow(cx, as_pointer_to(pointer, array), span), array, written, span)


_MOST_LISTED = 64  # elements of a new array with initial values


def delete(cx: Context, node: tree.Delete) -> Value:
    """`delete p` and `delete[] p`."""
    value = lower(cx, node.operand)
    pointer = pointer_of(cx, value)
    if pointer is None:
        raise cx.unfit(f"delete takes a pointer, not {describe(value)}", value, node.span)
    is_null = all(isinstance(one, NullTarget) for one in pointer.targets)
    if isinstance(pointer.to, ClassType):
        refuse_hidden_destructor(cx, pointer.to, node.span)
    if isinstance(pointer.to, ClassType) and not node.array and not is_null:
        with cx.separate_block() as body:
            by_table = destroy_by_table(cx, follow(cx, pointer, node.span), pointer.to, node.span)
        if by_table:
            cx.emit(n.If(is_not_null(cx, pointer, node.span), tuple(body), (), node.span))
            return give_back(cx, pointer, node.span)
    if lifetime_of(pointer.to).ends and not is_null:
        if node.array:
            raise cx.error(
                "delete[] of objects whose destructors do something: the number of objects is not "
                "kept here. Delete them one by one",
                node.span,
            )
        with cx.separate_block() as body:
            cx.rules.destroy(cx, follow(cx, pointer, node.span), pointer.to, node.span)
        cx.emit(n.If(is_not_null(cx, pointer, node.span), tuple(body), (), node.span))
    return give_back(cx, pointer, node.span)

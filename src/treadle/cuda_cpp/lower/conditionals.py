"""`&&`, `||` and `?:`, whose operands are evaluated conditionally."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.assignment import (
    initialize,
)
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    IMPOSSIBLE,
    OBJECTS,
    common_type,
    condition,
    convert,
    is_object,
    rank_of,
    rvalue,
    underlying,
)
from treadle.cuda_cpp.lower.dispatch import (
    lower,
    lower_condition,
    type_of,
)
from treadle.cuda_cpp.lower.lifetimes import conditional, temporary
from treadle.cuda_cpp.lower.pointers import (
    address,
    demand_address,
    follow,
    one_of,
    pointer_of,
)
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.storage import declare_pointer, uninitialized
from treadle.cuda_cpp.lower.values import (
    ChoiceLvalue,
    ChosenPointer,
    ChosenText,
    FunctionSet,
    ObjectAddress,
    ParameterPointer,
    PointerVariable,
    Rvalue,
    SplitStruct,
    Text,
    Value,
    is_prvalue,
)
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.scopes import KnownValue, Scope
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    Pointer,
    Void,
    decay,
    holds_array,
    is_split,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import walk

_CONDITION = "<condition>"  # the name of the first operand of `?:`, where it is one of the results


def lower_logical(cx: Context, node: tree.Binary, left_value: Value) -> Value:
    """`left && right` and `left || right`, whose left operand is lowered already."""
    left = condition(cx, left_value, node.left.span)
    if isinstance(left, n.Constant) and left.value == (node.op == "||"):
        return Rvalue(left, BOOL)
    before = len(cx.endings[-1])
    with cx.separate_block() as inside:
        right = lower_condition(cx, node.right)
    conditional(cx, before, inside)
    op = "logical_and" if node.op == "&&" else "logical_or"
    if not inside:
        return Rvalue(_connected(op, left, right, node.span), BOOL)
    result = cx.let_as("condition", left, node.span)
    inside.append(n.Assign(result, right, node.span))
    needed = result if node.op == "&&" else n.Unary("not", result, ir.BOOL, node.span)
    cx.emit(n.If(needed, tuple(inside), (), node.span))
    return Rvalue(result, BOOL)


def _connected(op: str, left: n.Expression, right: n.Expression, span: Span) -> n.Expression:
    made = n.Binary(op, left, right, ir.BOOL, span)
    if isinstance(left, n.Constant) or isinstance(right, n.Constant):
        return folded(made)
    return made


def lower_conditional(cx: Context, node: tree.Conditional, as_object: bool = False) -> Value:
    if node.if_true is None:
        return _lower_or_else(cx, node, as_object)
    test = lower_condition(cx, node.condition)
    test = folded(test) if isinstance(test, (n.Binary, n.Unary, n.Constant)) else test
    if isinstance(test, n.Constant) and not cx.checks_all():
        if as_object:
            return lower_place(cx, node.if_true if test.value else node.if_false)
        return _chosen_already(cx, bool(test.value), node)
    before = len(cx.endings[-1])
    with cx.separate_block() as first:
        one = (lower_place if as_object else lower)(cx, node.if_true)
    conditional(cx, before, first)
    before = len(cx.endings[-1])
    with cx.separate_block() as second:
        other = (lower_place if as_object else lower)(cx, node.if_false)
    conditional(cx, before, second)
    if isinstance(one, (Text, ChosenText)) and isinstance(other, (Text, ChosenText)):
        cx.emit(*first, *second)  # variables of nested conditions
        return ChosenText(cx.copied(test), one, other)
    one, other = _as_one_class(cx, one, other, node.span)
    if _are_alike(one, other, as_object):
        in_parts = isinstance(one, SplitStruct) != isinstance(other, SplitStruct)
        if first or second or in_parts:
            return _conditional_place(cx, test, (first, one), (second, other), node)
        tag = cx.copied(n.Select(test, constant(0, ir.I32), constant(1, ir.I32), ir.I32, node.span))
        if isinstance(one, OBJECTS) and isinstance(other, OBJECTS):
            return ChoiceLvalue(tag, (one, other), getattr(one, "type", VOID))
        return one_of(cx, tag, (one, other), node.span)
    pointer = pointer_of(cx, one) or pointer_of(cx, other)
    if pointer is None and isinstance(one, FunctionSet):
        pointer = cx.rules.function_pointer(cx, one, None, node.span)
    if pointer is not None:
        _refuse_unlike(cx, one, other, node)
        return _conditional_pointer(cx, test, (first, one), (second, other), pointer.to, node)
    return _conditional_value(cx, test, (first, one), (second, other), node)


def _lower_or_else(cx: Context, node: tree.Conditional, as_object: bool) -> Value:
    """GNU's `value ?: other`: the value is computed once, and is the condition, too."""
    value = lower_place(cx, node.condition)
    if isinstance(value, Rvalue):
        value = replace(value, expression=cx.let(value.expression))
    inner = Scope(cx.scope)
    inner.names[_CONDITION] = KnownValue(value)
    named = tree.Name(_CONDITION, span=node.condition.span)
    with cx.in_scope(inner):
        return lower_conditional(cx, replace(node, condition=named, if_true=named), as_object)


def _chosen_already(cx: Context, truth: bool, node: tree.Conditional) -> Value:
    """The operand that a constant condition selects, in the common type of both."""
    chosen, left_out = (node.if_true, node.if_false) if truth else (node.if_false, node.if_true)
    value = lower(cx, chosen)
    own = underlying(decay(getattr(value, "type", VOID)))
    if own is None:
        return value
    other = underlying(decay(type_of(cx, left_out)))
    if other is None or other == own:
        return value
    return convert(cx, value, common_type(own, other), node.span)


def _as_one_class(cx: Context, one: Value, other: Value, span: Span) -> tuple[Value, Value]:
    """Two objects, of which one has a base of the class of the other: `?:` is an object of it."""
    if is_prvalue(one) or is_prvalue(other) or not (is_object(one) and is_object(other)):
        return one, other
    left, right = getattr(one, "type", VOID), getattr(other, "type", VOID)
    if derives(left, right):
        return as_base(cx, one, right, span), other
    if derives(right, left):
        return one, as_base(cx, other, left, span)
    return one, other


def _are_alike(one: Value, other: Value, as_object: bool) -> bool:
    """Whether two operands are objects of one type, so that `?:` is one of them and no copy: those
    of classes always, others where an object is wanted."""
    type = getattr(one, "type", None)
    if isinstance(one, Rvalue) or isinstance(other, Rvalue) or type != getattr(other, "type", None):
        return False
    if not isinstance(type, ClassType):
        places = (*OBJECTS, PointerVariable, ParameterPointer, ChosenPointer)
        return as_object and isinstance(one, places) and isinstance(other, places)
    return not (is_prvalue(one) or is_prvalue(other)) and is_object(one) and is_object(other)


def _conditional_place(
    cx: Context,
    test: n.Expression,
    first: tuple[list[n.Statement], Value],
    second: tuple[list[n.Statement], Value],
    node: tree.Conditional,
) -> Value:
    """One of two objects whose places are found by statements: the target of a pointer."""
    found = []
    for block, value in (first, second):
        with cx.separate_block() as inside:
            inside.extend(block)
            demand_places(cx, value)
            found.append((inside, address(cx, value, node.span)))
    type = getattr(first[1], "type", VOID)
    chosen = _conditional_pointer(cx, test, found[0], found[1], type, node)
    pointer = pointer_of(cx, chosen)
    assert pointer is not None
    return follow(cx, pointer, node.span)


def demand_places(cx: Context, value: Value) -> None:
    """Have what `?:` selects in memory in the next run, as its address is used."""
    for one in value.items if isinstance(value, ChosenPointer) else (value,):
        if not isinstance(one, OBJECTS):
            demand_address(cx, ObjectAddress(one))


def _conditional_value(
    cx: Context,
    test: n.Expression,
    first: tuple[list[n.Statement], Value],
    second: tuple[list[n.Statement], Value],
    node: tree.Conditional,
) -> Value:
    type = _common_of(cx, first[1], second[1], node)
    if isinstance(type, Void):
        cx.emit(n.If(test, tuple(first[0]), tuple(second[0]), node.span))
        return Rvalue(constant(0, ir.I32), VOID)
    if acts(type) or is_split(type) or holds_array(type):
        return _conditional_object(cx, test, (first, second), type, node)
    values: list[n.Expression] = []
    for block, value in (first, second):
        with cx.separate_block() as inside:
            inside.extend(block)
            values.append(rvalue(cx, convert(cx, value, type, node.span), node.span).expression)
        block[:] = inside
    if not first[0] and not second[0] and all(map(_is_cheap, values)):
        made = n.Select(test, values[0], values[1], values[0].type, node.span)
        return Rvalue(made, type)
    result = cx.variable("chosen", values[0].type, node.span)
    first[0].append(n.Assign(result, values[0], node.span))
    second[0].append(n.Assign(result, values[1], node.span))
    cx.emit(n.If(test, tuple(first[0]), tuple(second[0]), node.span))
    return Rvalue(result, type)


def _conditional_object(
    cx: Context,
    test: n.Expression,
    operands: tuple[tuple[list[n.Statement], Value], ...],
    type: CppType,
    node: tree.Conditional,
) -> Value:
    """An object that one of the operands initializes, by a copy constructor if need be."""
    place = uninitialized(cx, "chosen", type, (cx.path, id(node)), node.span)
    blocks: list[n.Block] = []
    for block, value in operands:
        with cx.separate_block() as inside:
            inside.extend(block)
            before = len(cx.endings[-1])
            initialize(cx, place, convert(cx, value, type, node.span), node.span)
        conditional(cx, before, inside)
        blocks.append(tuple(inside))
    cx.emit(n.If(test, blocks[0], blocks[1], node.span))
    made: Value = temporary(cx, place, type)
    return made


def _is_cheap(expression: n.Expression) -> bool:
    """Whether a value may be speculated: it reads no memory and calls no function."""
    return not any(isinstance(node, (n.Load, n.Call)) for node in walk(expression))


def _common_of(cx: Context, one: Value, other: Value, node: tree.Conditional) -> CppType:
    left: CppType = decay(getattr(one, "type", VOID))
    right: CppType = decay(getattr(other, "type", VOID))
    if left == right:
        return left
    first, second = underlying(left), underlying(right)
    if first is not None and second is not None:
        return common_type(first, second)
    if rank_of(cx, other, left) < IMPOSSIBLE:
        return left
    if rank_of(cx, one, right) < IMPOSSIBLE:
        return right
    raise cx.unfit(
        f"the operands of ?: are {left} and {right}, which have no common type", one, node.span
    )


def _refuse_unlike(cx: Context, one: Value, other: Value, node: tree.Conditional) -> None:
    """CompileError for pointers to types of which neither converts to the other."""
    left, right = decay(getattr(one, "type", VOID)), decay(getattr(other, "type", VOID))
    for number, type in ((one, left), (other, right)):
        if isinstance(type, Arithmetic) and not getattr(number, "literal_zero", False):
            raise cx.wrong(
                f"the operands of ?: are {left} and {right}, which have no common type", node.span
            )
    if not isinstance(left, Pointer) or not isinstance(right, Pointer) or left == right:
        return
    if rank_of(cx, one, right) == rank_of(cx, other, left) == IMPOSSIBLE:
        raise cx.wrong(
            f"the operands of ?: are {left} and {right}, which have no common type", node.span
        )


def _conditional_pointer(
    cx: Context,
    test: n.Expression,
    first: tuple[list[n.Statement], Value],
    second: tuple[list[n.Statement], Value],
    to: CppType,
    node: tree.Conditional,
) -> Value:
    const = any(
        getattr(decay(getattr(v, "type", VOID)), "const", False) for _, v in (first, second)
    )
    type = Pointer(to, const)
    variable = declare_pointer(cx, "chosen", type, (cx.path, id(node)), node.span)
    for block, value in (first, second):
        with cx.separate_block() as inside:
            inside.extend(block)
            initialize(cx, variable, value, node.span)
        block[:] = inside
    cx.emit(n.If(test, tuple(first[0]), tuple(second[0]), node.span))
    made = pointer_of(cx, variable)  # not the variable, to which nothing may be assigned
    assert made is not None
    return made


def lower_place(cx: Context, expression: Any) -> Value:
    """An expression as an lvalue: `(a > b ? a : b) = 0`."""
    if isinstance(expression, tree.Conditional):
        return lower_conditional(cx, expression, as_object=True)
    return lower(cx, expression)

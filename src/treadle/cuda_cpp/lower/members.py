"""Subscripts, members, dereferencing and addresses."""

from __future__ import annotations

import difflib
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.access import refuse_hidden
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.calls import call_operator, operator_call
from treadle.cuda_cpp.lower.casts import (
    without_const,
)
from treadle.cuda_cpp.lower.classes import is_const_field, is_mutable
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert, integer
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.evaluation_order import Operands, lower_to_block, second_operand
from treadle.cuda_cpp.lower.fields import find_bits, find_field, refuse_ambiguous
from treadle.cuda_cpp.lower.names import (
    constant_integer,
    is_const,
    known_entity,
    lookup,
    resolve,
    scope_of,
)
from treadle.cuda_cpp.lower.objects import bit_field, component_type, member, subscript
from treadle.cuda_cpp.lower.pointers import address, as_index, follow, pointer_of
from treadle.cuda_cpp.lower.usable import for_host
from treadle.cuda_cpp.lower.values import (
    BitFieldLvalue,
    ChosenPointer,
    FunctionSet,
    ObjectAddress,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    SplitArray,
    SplitStruct,
    TypeValue,
    Value,
    as_const,
    describe,
)
from treadle.cuda_cpp.lower.variables import global_variable
from treadle.cuda_cpp.lower.warnings import warn_of_subscript
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.scopes import (
    Functions,
    GlobalVariable,
    HostEntity,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    Field,
    FunctionOf,
    Pointer,
    VectorType,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import types as ir


def dereference(cx: Context, operand: Value, span: Span) -> Value:
    """`*operand`"""
    operand = cx.rules.text_pointer(cx, operand, span)
    pointer = pointer_of(cx, operand)
    if pointer is not None:
        return pointer if isinstance(pointer.to, FunctionOf) else follow(cx, pointer, span)
    if isinstance(operand, FunctionSet):
        return operand
    if isinstance(operand, ObjectAddress):
        return operand.object
    if isinstance(operand, SplitArray):
        return subscript(cx, operand, constant(0, ir.I32), span)
    made = call_operator(cx, "*", [operand], span)
    if made is None:
        message = f"{describe(operand)} is not a pointer, so it cannot be dereferenced"
        raise cx.unfit(message, operand, span)
    return made


def lower_subscript(cx: Context, node: tree.Subscript) -> Value:
    known = _known_element(cx, node)
    if known is not None:
        return known
    base = lower(cx, node.base)
    base = cx.rules.text_pointer(cx, base, node.span)
    type = getattr(base, "type", None)
    if isinstance(type, ClassType):
        operands = Operands([base], [[]])
        for index_ in _indices(node, type):
            operands.add(*lower_to_block(cx, index_))
        made = operator_call(cx, "[]", operands, node.span)
        if made is not None:
            return made
        base, index = operands.emit(cx)
    else:
        base, index = second_operand(cx, base, node.index)
    in_parts = isinstance(base, (SplitArray, ObjectAddress))
    if not in_parts and pointer_of(cx, base) is None and pointer_of(cx, index) is not None:
        base, index = index, base  # 3[a] is a[3]
    given = getattr(index, "type", None)
    if isinstance(given, Arithmetic) and given.scalar.is_float:
        raise cx.wrong(f"arrays are indexed by integers, not by {given}", node.span)
    warn_of_subscript(cx, node, base)
    place = integer(cx, index, "arrays are indexed by integers", node.span)
    return subscript(cx, base, as_index(cx, folded(place)), node.span)


def _indices(node: tree.Subscript, type: ClassType) -> list[tree.Expression]:
    """The operands of `object[a, b]`: both, as in C++23, if an operator of its class takes other
    than one index, which older C++ does not allow; or else the comma operator."""
    found = type.scope.own("operator[]") if type.scope is not None else None
    if not isinstance(found, Functions) or not any(
        len(each.declaration.parameters) != 1 or each.declaration.parameters[0].pack
        for each in found.overloads
    ):
        return [node.index]
    indices = [node.index]
    for _ in range(node.indices - 1):
        chain = indices[0]
        assert isinstance(chain, tree.Binary)
        indices[:1] = chain.left, chain.right
    return indices


def _known_element(cx: Context, node: tree.Subscript) -> Value | None:
    """An element of a const array of the host at a constant index, in a constant expression."""
    if not cx.lowering.constants or not isinstance(node.base, tree.Name):
        return None
    entity = lookup(cx, node.base)
    if not isinstance(entity, GlobalVariable) or entity.declaration.template:
        return None
    values = entity.declaration.initializer
    type = entity.declaration.type
    if not isinstance(values, tree.InitializerList) or not isinstance(type, tree.ArrayType):
        return None
    const = is_const(type.of) or "constexpr" in entity.declaration.specifiers
    if not const or isinstance(type.of, tree.ArrayType):
        return None
    at = constant_integer(cx, node.index, "the index of a constant array")
    with cx.in_scope(entity.scope):
        element = resolve(cx, type.of)
        if not isinstance(element, Arithmetic) or not 0 <= at < len(values.items):
            return None
        return convert(cx, lower(cx, values.items[at]), element, node.span)


def lower_member(cx: Context, node: tree.Member) -> Value:
    if isinstance(node.base, tree.Name) and not node.arrow:
        special = builtin_names.component(cx, node.base, node.name.text, node.span)
        if special is not None:
            return special
    base = lower(cx, node.base)
    if node.arrow:
        base = _arrow(cx, base, node.span)
    if isinstance(base, TypeValue):
        raise cx.wrong(
            f"{base.type} is a type: name an object of it, or write {base.type}::{node.name.text}",
            node.span,
        )
    type = getattr(base, "type", VOID)
    if isinstance(type, ClassType):
        named = _named_class(cx, type, node.name)
        refuse_hidden(cx, named, node.name.text, node.span, of_object=True)
    found = member_of(cx, base, node.name, node.span)
    type = getattr(base, "type", None)
    if isinstance(type, ClassType) and is_const_field(type, node.name.text):
        found = as_const(found)
    return found


def _named_class(cx: Context, type: ClassType, name: tree.Name) -> ClassType:
    """The class whose member a name is: that before `::`, or else the object's."""
    home = scope_of(cx, name.scope) if name.scope else None
    found = None if home is None else home.names.get("<class>")
    return found if isinstance(found, ClassType) else type


def _arrow(cx: Context, base: Value, span: Span) -> Value:
    if pointer_of(cx, base) is None and isinstance(getattr(base, "type", None), ClassType):
        made = call_operator(cx, "->", [base], span)
        if made is not None:
            return _arrow(cx, made, span)
        if not isinstance(base, ObjectAddress):
            raise cx.amiss(
                f"{describe(base)} is an object, not a pointer: write . instead of ->",
                span,
                getattr(base, "type", None),
            )
    return dereference(cx, base, span)


def member_of(cx: Context, base: Value, name: tree.Name, span: Span) -> Value:
    """`base.name`: a component, field, method or static member; `base.B::name` is of a base."""
    if name.scope:
        base, name = as_qualified(cx, base, name, span), tree.Name(name.text, (), name.arguments)
    type: CppType = getattr(base, "type", VOID)
    component = component_type(type, name.text)
    if component is not None:
        return member(cx, base, name.text, component, span)
    if isinstance(type, ClassType):
        return _of_class(cx, base, type, name, span)
    arrow = isinstance(type, Pointer) and isinstance(type.to, ClassType)
    hint = f": write ->{name.text} for what it points to" if arrow else ""
    if isinstance(type, VectorType):
        hint = f": it has {', '.join(ir.COMPONENTS[: type.count])}"
    raise cx.wrong(f"{describe(base)} has no member {name.text}{hint}", span)


def as_qualified(cx: Context, value: Value, name: tree.Name, span: Span) -> Value:
    """An object as the class before `::` in a qualified name: its own or a base."""
    home = scope_of(cx, name.scope)
    type = None if home is None else home.names.get("<class>")
    given = getattr(value, "type", None)
    if isinstance(type, ClassType) and (type == given or derives(given, type)):
        return as_base(cx, value, type, span)
    named = "::".join(part.text for part in name.scope)
    raise cx.wrong(f"{describe(value)} has no base {named}", span)


def _of_class(cx: Context, base: Value, type: ClassType, name: tree.Name, span: Span) -> Value:
    refuse_ambiguous(cx, type, name.text, span)
    found = find_field(type, name.text)
    bits = find_bits(type, name.text)
    own = any(one.name == name.text for one in type.bits)
    if bits is not None and (own or found is None):
        for field in bits[0]:
            base = _field_of(cx, base, field, span)
        return bit_field(cx, base, bits[1], span)
    if found is not None:
        for field in (*found[0], found[1]):
            base = _field_of(cx, base, field, span)
        if is_mutable(type, name.text):
            base = without_const(base)
        return base
    entity: Any = None if type.scope is None else type.scope.own(name.text)
    match entity:
        case Functions(overloads=overloads):
            return FunctionSet(name.text, tuple(overloads), arguments=name.arguments, receiver=base)
        case GlobalVariable():
            return global_variable(cx, entity, name)
        case HostEntity():
            raise cx.error(for_host(f"{name.text} of {type}"), span)
    value = known_entity(cx, entity, span)
    if value is not None:
        known: Value = value
        return known
    fields = [field.name for field in type.fields]
    entities = {} if type.scope is None else type.scope.names
    methods = [
        key
        for key, one in entities.items()
        if isinstance(one, Functions) and key.isidentifier() and key != type.scope.name
    ]
    close = difflib.get_close_matches(name.text, [*fields, *methods], 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    listed = f"its fields: {', '.join(fields) or 'none'}"
    if methods:
        listed += f"; its methods: {', '.join(methods)}"
    raise cx.amiss(f"{type} has no member {name.text}{hint}; {listed}", span, type)


def _field_of(cx: Context, base: Value, field: Field, span: Span) -> Value:
    if not isinstance(base, SplitStruct):
        return member(cx, base, field.name, field.type, span)
    found: Value | None = base.fields[field.name]
    if found is None:
        raise cx.error(f"the reference {field.name} is used before it is bound", span)
    return found


def address_of(cx: Context, value: Value, span: Span) -> Value:
    if isinstance(value, FunctionSet):
        return value
    if isinstance(value, (SplitStruct, PointerVariable, ParameterPointer, SplitArray)):
        return ObjectAddress(value)
    if isinstance(value, BitFieldLvalue):
        raise cx.wrong(f"{value.bits.name} is bits of a word, which has no address", span)
    if isinstance(value, (PointerValue, ChosenPointer)):
        raise cx.error(
            "a pointer to a pointer: memory on most devices cannot hold addresses. Return the new "
            "pointer, or pass it by reference",
            span,
        )
    return address(cx, value, span)

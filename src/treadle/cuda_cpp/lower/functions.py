"""Device functions: pure ones become functions of the IR, the others are put where they are called.

A function that takes or gives numbers, vectors and small structs by value, and does nothing else,
stays a function, so that printed kernels keep the structure of the source. Whatever takes pointers
or references, synchronizes or touches the kernel's memory is inlined while it is lowered: then
everything that its pointers can point to is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.context import (
    MOST_CALLS,
    MOST_CONSTANT_CALLS,
    MOST_INLINED,
    Context,
    Returns,
)
from treadle.cuda_cpp.lower.conversions import convert, rvalue
from treadle.cuda_cpp.lower.memory import address, pointer_of
from treadle.cuda_cpp.lower.names import is_auto, resolve
from treadle.cuda_cpp.lower.overloads import Chosen
from treadle.cuda_cpp.lower.templates import argument_key, spelled
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    BitsLvalue,
    ChoiceLvalue,
    Exploded,
    Items,
    Lvalue,
    Nothing,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    Value,
)
from treadle.cuda_cpp.meaning.scopes import Functions, Known, Scope
from treadle.cuda_cpp.meaning.types import (
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    Pointer,
    Reference,
    VectorType,
    Void,
    holds_array,
    holds_pointer,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.passes.returns import without_returns
from treadle.ir.traverse import walk

_IMPURE = (
    n.Barrier, n.Fence, n.Atomic, n.Subgroup, n.Clock, n.CallStatement, n.Print, n.Assert,
)  # fmt: skip


class NotPure(Exception):
    """A function that must be inlined: it uses what belongs to the kernel."""


def call_function(
    cx: Context, chosen: Chosen, values: Sequence[Value], receiver: Value | None, span: Span
) -> Value:
    """The value of a call."""
    declaration = chosen.declaration
    _refuse_kernels(cx, declaration, span)
    if declaration.body is None:
        raise cx.error(_no_body(declaration), span)
    instance = (id(declaration), tuple(map(argument_key, chosen.arguments)))
    result = result_type(cx, chosen)
    if cx.lowering.unevaluated and result is not None and _is_plain(result):
        return Rvalue(zero_of(ir_type(result), span), result)
    refuse_recursion(cx, declaration, instance, values, span)
    arguments = _with_defaults(cx, chosen, values)
    if receiver is None and result is not None and _may_be_pure(cx, chosen, result, instance):
        try:
            return _call_pure(cx, chosen, arguments, result, instance, span)
        except NotPure:
            cx.lowering.facts.inlined.add(instance)
    return inline(cx, chosen, arguments, receiver, result, instance, span)


def refuse_recursion(
    cx: Context,
    declaration: tree.FunctionDeclaration,
    instance: Any,
    values: Sequence[Value],
    span: Span,
) -> None:
    """A function may call itself while the kernel is compiled only: constexpr, of constants."""
    name = declaration.name.text
    again = any(entry[0] == instance for entry in cx.path)
    known = "constexpr" in declaration.specifiers and all(
        isinstance(one, Rvalue) and isinstance(folded(one.expression), n.Constant) for one in values
    )
    if (again and not known) or cx.depth > MOST_INLINED:
        raise cx.error(f"{name} calls itself: {refusal_message('recursion')}", span)
    if again:
        cx.lowering.constant_calls += 1
        if cx.lowering.constant_calls > MOST_CONSTANT_CALLS:
            raise cx.error(
                f"{name} calls itself more than {MOST_CONSTANT_CALLS:,} times while the kernel is "
                "compiled: write the number that it gives",
                span,
            )


def _refuse_kernels(cx: Context, declaration: tree.FunctionDeclaration, span: Span) -> None:
    specifiers = declaration.specifiers
    if "global" in specifiers:
        raise cx.error(refusal_message("dynamic_parallelism"), span)
    if "virtual" in specifiers:
        raise cx.error(refusal_message("virtual"), span)


def _no_body(declaration: tree.FunctionDeclaration) -> str:
    name = declaration.name.text
    if declaration.note:
        return f"{name} is {declaration.note}"
    return (
        f"{name} is declared here, but its body is in no file that is included: include it, since "
        "a module is one translation unit"
    )


def _with_defaults(cx: Context, chosen: Chosen, values: Sequence[Value]) -> list[Value]:
    from treadle.cuda_cpp.lower.expressions import lower
    from treadle.cuda_cpp.lower.initializers import from_list

    found = list(values)
    parameters = chosen.declaration.parameters
    with cx.in_scope(chosen.scope):
        for parameter, type in list(zip(parameters, chosen.types, strict=True))[len(values) :]:
            default = parameter.default
            assert default is not None
            if isinstance(default, tree.InitializerList):
                found.append(from_list(cx, type, default, default.span))
            else:
                found.append(lower(cx, default))
    return found


def result_type(cx: Context, chosen: Chosen) -> CppType | None:
    """What a function returns; None where `auto` leaves it to its body."""
    written = chosen.declaration.result
    if written is None:
        return VOID
    if is_auto(written):
        return None
    with cx.in_scope(chosen.scope):
        return resolve(cx, written)


# --- functions of the IR -------------------------------------------------------------------------


def _may_be_pure(cx: Context, chosen: Chosen, result: CppType, instance: Any) -> bool:
    if instance in cx.lowering.facts.inlined or isinstance(result, Void):
        return False
    declaration = chosen.declaration
    if "constexpr" in declaration.specifiers and _single_return(declaration) is not None:
        return False
    return _is_plain(result) and all(_is_plain(_by_value(type)) for type in chosen.types)


def _by_value(type: CppType) -> CppType:
    """A constant reference to a number is as good as the number."""
    if isinstance(type, Reference) and type.const and isinstance(type.to, (Arithmetic, VectorType)):
        return type.to
    return type


def _is_plain(type: CppType) -> bool:
    if isinstance(type, ClassType):
        return not holds_pointer(type) and not holds_array(type)
    return isinstance(type, (Arithmetic, VectorType, EnumType))


def _call_pure(
    cx: Context,
    chosen: Chosen,
    values: Sequence[Value],
    result: CppType,
    instance: Any,
    span: Span,
) -> Value:
    name = cx.lowering.function_names.get(instance)
    if name is None:
        name = _lower_function(cx, chosen, result, instance)
    arguments = tuple(
        rvalue(cx, convert(cx, value, _by_value(type), span), span).expression
        for value, type in zip(values, chosen.types, strict=False)
    )
    return Rvalue(n.Call(name, arguments, ir_type(result), span), result)


def _lower_function(cx: Context, chosen: Chosen, result: CppType, instance: Any) -> str:
    from treadle.cuda_cpp.lower.statements import lower_statement

    lowering = cx.lowering
    declaration = chosen.declaration
    assert declaration.body is not None
    outer_names, lowering.names = lowering.names, {}
    try:
        scope = Scope(chosen.scope, declaration.name.text, "function")
        inner = Context(
            lowering,
            scope,
            path=(*cx.path, (instance, 0)),
            returns=Returns(result),
            depth=cx.depth + 1,
            name=declaration.name.text,
            isolated=True,
        )
        inner.memories = []
        parameters = []
        for parameter, type in zip(declaration.parameters, chosen.types, strict=True):
            parameters.append(_value_parameter(inner, declaration, parameter, _by_value(type)))
        lower_statement(inner, declaration.body)
        body = tuple(inner.blocks[0])
    finally:
        lowering.names = outer_names
    own = {memory.name for memory in inner.memories}
    for node in walk(body):
        if isinstance(node, _IMPURE) or (isinstance(node, n.Element) and node.memory not in own):
            raise NotPure
    made = ir_type(result)
    if not _ends(body):
        body = (*body, n.Return(zero_of(made, declaration.span), declaration.span))
    name = lowering.unique_function(_function_name(chosen))
    memories = tuple(inner.memories)
    lowering.functions[name] = n.Function(
        name, tuple(parameters), made, body, memories, declaration.span
    )
    lowering.function_names[instance] = name
    return name


def _function_name(chosen: Chosen) -> str:
    name = chosen.declaration.name.text
    if name.startswith("operator"):
        name = _OPERATOR_NAMES.get(name.removeprefix("operator"), "operator")
    parts = [name, *(spelled(argument) for argument in chosen.arguments)]
    return "_".join("".join(c if c.isalnum() else "_" for c in part) for part in parts)


_OPERATOR_NAMES = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder", "==": "equal",
    "!=": "not_equal", "<": "less", ">": "greater", "<=": "less_equal", ">=": "greater_equal",
    "&": "and", "|": "or", "^": "xor", "<<": "shift_left", ">>": "shift_right", "!": "not",
    "~": "invert", "[]": "at", "()": "call",
}  # fmt: skip


def _value_parameter(
    cx: Context,
    declaration: tree.FunctionDeclaration,
    parameter: tree.Parameter,
    type: CppType,
) -> n.Variable:
    name = parameter.name or "unused"
    variable = n.Variable(cx.lowering.unique(name), ir_type(type), parameter.span)
    bind_value(cx, parameter, variable, type, assigned_names(cx, declaration))
    return variable


def bind_value(
    cx: Context,
    parameter: tree.Parameter,
    variable: n.Variable,
    type: CppType,
    assigned: frozenset[str],
) -> None:
    """Make a parameter of the IR a name; one that is assigned to is copied first."""
    key = (cx.path, id(parameter))
    if parameter.name in assigned:
        cx.lowering.facts.assigned.add(key)
    cx.scope.names[parameter.name] = value_object(
        cx, parameter.name, variable, type, key, parameter.span
    )


def value_object(
    cx: Context, name: str, variable: n.Variable, type: CppType, key: Any, span: Span
) -> Any:
    """A parameter of the IR as an object; one that is assigned to is copied first."""
    from treadle.cuda_cpp.lower.variables import declare_object

    facts = cx.lowering.facts
    if key in facts.assigned or key in facts.in_memory:
        return declare_object(cx, name, type, key, Rvalue(variable, type), span)
    cx.lowering.parameter_keys[variable.name] = key
    cx.lowering.variable_keys[variable.name] = key
    return Lvalue(variable, type)


def zero_of(type: ir.Type, span: Span) -> n.Expression:
    """The zero of a type."""
    match type:
        case ir.Scalar():
            return constant(0, type, span)
        case ir.Vector():
            return n.Construct((constant(0, type.element, span),) * type.count, type, span)
        case ir.Struct():
            return n.Construct(tuple(zero_of(f.type, span) for f in type.fields), type, span)
    raise AssertionError(type)


def _ends(body: n.Block) -> bool:
    from treadle.lang.lower.functions import ends

    return ends(body)


# --- inlining ------------------------------------------------------------------------------------


def inline(
    cx: Context,
    chosen: Chosen,
    values: Sequence[Value],
    receiver: Value | None,
    result: CppType | None,
    instance: Any,
    span: Span,
) -> Value:
    """The body of a function where it is called."""
    cx.calls += 1
    declaration = chosen.declaration
    cx.lowering.calls += 1
    if cx.lowering.calls > MOST_CALLS:
        raise cx.error(
            f"{declaration.name.text} is called more than {MOST_CALLS:,} times, the calls in calls "
            "counted: functions that take pointers are put where they are called, so call them in "
            "a loop",
            span,
        )
    scope = Scope(chosen.scope, declaration.name.text, "function")
    inner = Context(
        cx.lowering,
        scope,
        path=(*cx.path, (instance, cx.calls)),
        returns=Returns(result),
        this=receiver,
        depth=cx.depth + 1,
        name=declaration.name.text,
        isolated=cx.isolated,
    )
    inner.memories = cx.memories
    inner.blocks = [cx.blocks[-1]]
    inner.span = span
    assigned = assigned_names(cx, declaration)
    for parameter, type, value in zip(declaration.parameters, chosen.types, values, strict=False):
        bind_argument(inner, parameter, type, value, assigned, span)
    return run_body(inner, declaration, span)


def run_body(inner: Context, declaration: tree.FunctionDeclaration, span: Span) -> Value:
    """Lower a body whose parameters are bound, at the place of its call."""
    from treadle.cuda_cpp.lower.expressions import lower, lower_place
    from treadle.cuda_cpp.lower.statements import lower_statement

    assert declaration.body is not None
    single = _single_return(declaration)
    if single is not None:
        for statement in declaration.body.body[:-1]:
            lower_statement(inner, statement)
        if single.value is None:
            return Nothing(VOID)
        if isinstance(single.value, tree.InitializerList):
            from treadle.cuda_cpp.lower.initializers import from_list

            assert inner.returns.type is not None
            return from_list(inner, inner.returns.type, single.value, single.span)
        refers = isinstance(inner.returns.type, Reference)
        value = (lower_place if refers else lower)(inner, single.value)
        return _given(inner, value, single.span)
    outer = inner.blocks[-1]
    if _returns(declaration.body):
        prepare_result(inner, span)
        with inner.aside() as body:
            lower_statement(inner, declaration.body)
        flag = n.Variable(inner.lowering.unique(f"{inner.name}.returned"), ir.BOOL, span)
        outer.extend(without_returns(tuple(body), None, flag))
    else:
        lower_statement(inner, declaration.body)
    return _result(inner)


def _given(cx: Context, value: Value, span: Span) -> Value:
    """A returned value in the function's type."""
    type = cx.returns.type
    if type is None or isinstance(type, Reference):
        return value
    if isinstance(type, Void):
        return Nothing(VOID)
    converted = convert(cx, value, type, span)
    if isinstance(converted, Lvalue) and not holds_array(type):
        return rvalue(cx, converted, span)
    if isinstance(converted, Rvalue) and not isinstance(converted.expression, n.Variable):
        return Rvalue(cx.let(folded(converted.expression)), converted.type)
    return converted


def prepare_result(cx: Context, span: Span) -> None:
    """Something to hold what several returns may give."""
    from treadle.cuda_cpp.lower.variables import declare_object

    type = cx.returns.type
    if type is None:
        type = _deduced_result(cx, span)
        cx.returns.type = type
    if isinstance(type, (Void, Reference)):
        return
    key = (cx.path, "result")
    cx.returns.place = declare_object(cx, f"{cx.name}.result", type, key, None, span)


def _deduced_result(cx: Context, span: Span) -> CppType:
    raise cx.error(
        f"{cx.name} returns auto from several places: write the type that it returns", span
    )


def _result(cx: Context) -> Value:
    place = cx.returns.place
    if isinstance(cx.returns.type, Reference):
        if cx.returns.reference is None:
            raise cx.error(f"{cx.name} returns no reference")
        found: Value = cx.returns.reference
        return found
    if place is None:
        return Nothing(VOID)
    if isinstance(place, Lvalue) and isinstance(place.place, n.Variable):
        return Rvalue(place.place, place.type)
    made: Value = place
    return made


def lower_return(cx: Context, node: tree.Return) -> None:
    """`return value;` in a function or kernel."""
    from treadle.cuda_cpp.lower.expressions import lower
    from treadle.cuda_cpp.lower.initializers import from_list
    from treadle.cuda_cpp.lower.operators import assign

    type = cx.returns.type
    if node.value is None:
        cx.emit(n.Return(None, node.span))
        return
    if isinstance(node.value, tree.InitializerList):
        assert type is not None
        value = from_list(cx, type, node.value, node.span)
    else:
        value = lower(cx, node.value)
    if isinstance(type, Void):
        if not isinstance(getattr(value, "type", VOID), Void):
            raise cx.error(f"{cx.name} returns nothing, so a return has no value", node.span)
        cx.emit(n.Return(None, node.span))
    elif isinstance(type, Reference):
        if cx.returns.reference is not None:
            raise cx.error(
                f"{cx.name} returns references from several places: return the value, or an index",
                node.span,
            )
        cx.returns.reference = frozen(cx, value, node.span)
        cx.emit(n.Return(None, node.span))
    elif cx.returns.place is None:  # a function of the IR
        assert type is not None
        given = rvalue(cx, convert(cx, value, type, node.span), node.span)
        cx.emit(n.Return(given.expression, node.span))
    else:
        assign(cx, "=", cx.returns.place, value, node.span)
        cx.emit(n.Return(None, node.span))


def bind_argument(
    cx: Context,
    parameter: tree.Parameter,
    type: CppType,
    value: Value,
    assigned: frozenset[str],
    span: Span,
) -> None:
    """Make an argument what a parameter's name means in an inlined body."""
    from treadle.cuda_cpp.lower.variables import declare_object

    if isinstance(type, Reference):
        bound = _bind_reference(cx, type, value, span)
    else:
        converted = convert(cx, value, type, span)
        if isinstance(converted, Rvalue):
            converted = replace(converted, expression=folded(converted.expression))
        key = (cx.path, id(parameter))
        written = parameter.name in assigned or key in cx.lowering.facts.in_memory
        if isinstance(type, Pointer) and not written:
            bound = frozen(cx, converted, span)
        elif isinstance(converted, Exploded) and not written:
            bound = converted
        elif (
            isinstance(converted, Rvalue)
            and isinstance(converted.expression, n.Constant)
            and not written
        ):
            bound = Known(converted)
        else:
            bound = declare_object(cx, parameter.name or "unused", type, key, converted, span)
    if parameter.name:
        cx.scope.names[parameter.name] = bound


def _bind_reference(cx: Context, type: Reference, value: Value, span: Span) -> Any:
    given = getattr(value, "type", None)
    is_object = not isinstance(value, Rvalue)
    if is_object and (given == type.to or isinstance(value, (ArrayValue, Exploded, Items))):
        return frozen(cx, value, span)
    if is_object and isinstance(given, ClassType) and isinstance(type.to, ClassType):
        return frozen(cx, value, span)  # a base of it: its fields are found by name
    converted = convert(cx, value, type.to, span)
    if isinstance(converted, Rvalue):
        if isinstance(converted.expression, n.Constant):
            return Known(converted)
        return Lvalue(cx.let_as("value", converted.expression, span), converted.type)
    return frozen(cx, converted, span)


def frozen(cx: Context, value: Value, span: Span) -> Value:
    """An object or pointer whose place is computed now, whatever happens to the variables in it."""
    match value:
        case ParameterPointer():
            return value
        case PointerValue():
            tag = value.tag if value.tag is None else cx.copied(value.tag)
            return PointerValue(value.targets, _kept(cx, value.offset), value.unit, value.to, tag)
        case Lvalue(place, type):
            return Lvalue(_frozen_place(cx, place), type)
        case BitsLvalue(place, type):
            return BitsLvalue(_frozen_place(cx, place), type)
        case ArrayValue(first, type):
            kept = frozen(cx, first, span)
            assert isinstance(kept, PointerValue)
            return ArrayValue(kept, type)
        case ScatteredLvalue():
            return ScatteredLvalue(value.target, _kept(cx, value.offset), value.unit, value.type)
        case ChoiceLvalue(tag, choices, type):
            parts = tuple(c if c is None else frozen(cx, c, span) for c in choices)
            return ChoiceLvalue(cx.copied(tag), parts, type)
        case PointerVariable():
            return value
    return value


def _kept(cx: Context, offset: n.Expression) -> n.Expression:
    if isinstance(offset, n.Constant):
        return offset
    if isinstance(offset, n.Variable) and offset.name in cx.lowering.parameter_keys:
        return offset
    return cx.let_as("offset", offset)


def _frozen_place(cx: Context, place: n.Place) -> n.Place:
    match place:
        case n.Variable():
            return place
        case n.Member(base=base):
            return replace(place, base=_frozen_place(cx, base))
        case n.Item(base=base):
            index = _kept(cx, place.index)
            checks = tuple(n.Check(index, c.bound, c.axis) for c in place.checks)
            return replace(place, base=_frozen_place(cx, base), index=index, checks=checks)
        case n.Element():
            index = _kept(cx, place.index)
            checks = tuple(n.Check(index, c.bound, c.axis) for c in place.checks)
            return replace(place, index=index, checks=checks)


# --- what a body says ----------------------------------------------------------------------------


def _single_return(declaration: tree.FunctionDeclaration) -> tree.Return | None:
    """The return at the end of a body, if there is no other."""
    assert declaration.body is not None
    body = declaration.body.body
    if not body or not isinstance(body[-1], tree.Return):
        return None
    return None if any(map(_returns, body[:-1])) else body[-1]


def _returns(statement: tree.Statement) -> bool:
    """Whether a statement holds a return."""
    return any(isinstance(node, tree.Return) for node in walk_tree(statement))


def assigned_names(cx: Context, declaration: tree.FunctionDeclaration) -> frozenset[str]:
    """The names that a body may write to: assigned, stepped, their address taken, or handed to a
    function (which may take a reference)."""
    memo = cx.lowering.facts.assigned_names
    found = memo.get(id(declaration))
    if found is None:
        found = memo[id(declaration)] = changed_names(cx, declaration.body)
    return found


def changed_names(cx: Context, body: Any) -> frozenset[str]:
    """The names that a piece of code may write to."""
    found: set[str] = set()
    for node in walk_tree(body):
        match node:
            case tree.Assign(target=target) | tree.Postfix(operand=target):
                found.add(_root_name(target))
            case tree.Unary("++" | "--" | "&", operand):
                found.add(_root_name(operand))
            case tree.Call(function=function, arguments=arguments):
                for place, argument in enumerate(arguments):
                    if isinstance(argument, tree.Name) and _takes_reference(cx, function, place):
                        found.add(argument.text)
                if isinstance(function, tree.Member):
                    found.add(_root_name(function.base))
            case tree.VariableDeclaration(type=type, initializer=tree.Name(text=name)) if (
                isinstance(type, tree.ReferenceType)
            ):
                found.add(name)
    return frozenset(found)


_CHANGING = frozenset({"swap"})  # functions of the language that write to their arguments


def _takes_reference(cx: Context, function: Any, place: int) -> bool:
    """Whether a function may write to a variable that is its argument: it takes a reference."""
    from treadle.cuda_cpp.lower.names import lookup

    if not isinstance(function, tree.Name):
        return True
    entity = lookup(cx, function)
    if entity is None:
        return function.text in _CHANGING
    if not isinstance(entity, Functions):
        return True
    for one in entity.overloads:
        parameters = one.declaration.parameters
        if place < len(parameters) and isinstance(parameters[place].type, tree.ReferenceType):
            return True
    return False


def _root_name(expression: Any) -> str:
    """The variable that a target is (a part of); "" for what a pointer leads to."""
    while isinstance(expression, tree.Member) and not expression.arrow:
        expression = expression.base
    return expression.text if isinstance(expression, tree.Name) else ""


__all__ = ["address", "call_function", "inline", "lower_return", "pointer_of"]

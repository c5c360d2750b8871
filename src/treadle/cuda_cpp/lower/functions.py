"""Device functions: pure ones become functions of the IR, the others are inlined.

A function that takes and returns numbers, vectors and small structs by value, without side effects,
stays a function, so that printed kernels keep the structure of the source. A function that takes
pointers or references, synchronizes, or accesses the kernel's memory is inlined while it is
lowered: then all targets of its pointers are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.access import refuse_hidden_base
from treadle.cuda_cpp.lower.arithmetic import folded, zero_of
from treadle.cuda_cpp.lower.closures import is_closure
from treadle.cuda_cpp.lower.context import (
    MOST_CONSTANT_CALLS,
    MOST_INLINED,
    Context,
    LowerAgain,
    NotPure,
    Returns,
)
from treadle.cuda_cpp.lower.conversions import convert, refuse_lost_const, rvalue
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.examples import example_result
from treadle.cuda_cpp.lower.initializers import from_list
from treadle.cuda_cpp.lower.inlining import inline, single_return
from treadle.cuda_cpp.lower.names import is_const
from treadle.cuda_cpp.lower.overloads import result_type
from treadle.cuda_cpp.lower.pointers import example_of
from treadle.cuda_cpp.lower.recursion import call_recursive, calls_itself, is_open
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.statements import lower_statement
from treadle.cuda_cpp.lower.storage import declare_object, uninitialized
from treadle.cuda_cpp.lower.template_arguments import argument_key, spelled
from treadle.cuda_cpp.lower.tree_analysis import assigned_names
from treadle.cuda_cpp.lower.usable import refuse_deleted, refuse_unusable
from treadle.cuda_cpp.lower.values import (
    Candidate,
    Lvalue,
    Rvalue,
    Value,
    as_const,
)
from treadle.cuda_cpp.semantics.scopes import Scope
from treadle.cuda_cpp.semantics.types import (
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
from treadle.ir import nodes as n
from treadle.ir.effects import ends
from treadle.ir.traverse import walk

_IMPURE = (
    n.Barrier, n.Fence, n.Atomic, n.Subgroup, n.Clock, n.CallStatement, n.Print, n.Assert,
)  # fmt: skip


def call_function(
    cx: Context, chosen: Candidate, values: Sequence[Value], receiver: Value | None, span: Span
) -> Value:
    """The value of a call."""
    declaration = chosen.declaration
    _refuse_kernels(cx, declaration, span)
    refuse_deleted(cx, chosen.overload, span)
    for type, value in zip(chosen.types, values, strict=False):
        refuse_hidden_base(cx, value, type, span)
    result = result_type(cx, chosen)
    if cx.lowering.unevaluated and result is not None:
        return example_of(result, span)
    refuse_unusable(cx, chosen.overload, span)
    if cx.lowering.calls_are_examples and result is not None and not _is_known(chosen, values):
        return _checked(cx, chosen, values, result, span)
    facts = cx.lowering.facts
    known = tuple(map(argument_key, chosen.arguments))
    instance = (id(declaration), known, _arguments_around(chosen.scope))
    if cx.lowering.unevaluated and instance in facts.results:
        return example_of(facts.results[instance], span)
    is_constant = _is_constant_call(declaration, values)
    recursive = not is_constant and calls_itself(cx, instance)
    if recursive is None:
        if result is None or holds_array(result):  # of which there is no example
            raise LowerAgain
        return example_of(result, span)
    if not recursive:
        refuse_depth(cx, declaration, instance, span)
    arguments = with_defaults(cx, chosen, values)
    if recursive:
        return call_recursive(cx, chosen, arguments, receiver, result, instance, span)
    if receiver is None and result is not None and _may_be_pure(cx, chosen, result, instance):
        try:
            return _call_pure(cx, chosen, arguments, result, instance, span)
        except NotPure:
            cx.lowering.facts.inlined.add(instance)
    return inline(cx, chosen, arguments, receiver, result, instance, span)


def _is_known(chosen: Candidate, values: Sequence[Value]) -> bool:
    """Whether a call must be made to check types: its value may be needed, or its body is checked
    with it."""
    if is_closure(chosen.overload.owner):
        return True
    return "constexpr" in chosen.declaration.specifiers and all(map(_is_constant, values))


def _is_constant(value: Value) -> bool:
    return isinstance(value, Rvalue) and isinstance(folded(value.expression), n.Constant)


def _checked(
    cx: Context, chosen: Candidate, values: Sequence[Value], result: CppType, span: Span
) -> Value:
    """The value of a call whose body is checked by itself."""
    parameters = chosen.declaration.parameters
    # Deduction has no const of what pointers point to.
    templated = bool(chosen.declaration.template or _arguments_around(chosen.scope))
    for parameter, type, value in zip(parameters, chosen.types, values, strict=False):
        if not isinstance(type, Reference) and not (templated and isinstance(type, Pointer)):
            refuse_lost_const(cx, parameter.type, value, span)
            converted = convert(cx, value, type, span)
            if isinstance(type, ClassType) and acts(type):  # a copy constructor may be deleted
                place = uninitialized(cx, "copy", type, (cx.path, "copy", id(parameter)), span)
                cx.rules.copy_into(cx, place, converted, type, span)
    made: Value = example_result(cx, result, span)
    return made


def _arguments_around(scope: Scope | None) -> tuple[Any, ...]:
    """The arguments of the templates around a function: each instance of a class template has its
    own methods, from the same tree."""
    found: list[Any] = []
    while scope is not None:
        found.extend(map(argument_key, scope.names.get("<arguments>", ())))
        scope = scope.parent
    return tuple(found)


def _is_constant_call(declaration: tree.FunctionDeclaration, values: Sequence[Value]) -> bool:
    """Whether a call is of a constexpr function with constant arguments."""
    return "constexpr" in declaration.specifiers and all(map(_is_constant, values))


def refuse_depth(
    cx: Context, declaration: tree.FunctionDeclaration, instance: Any, span: Span
) -> None:
    """CompileError for functions that call others endlessly, each another one of a template, and
    for constexpr functions that call themselves too often while a kernel is compiled."""
    name = declaration.name.text
    if is_open(cx, instance):
        cx.lowering.constant_calls += 1
        if cx.lowering.constant_calls > MOST_CONSTANT_CALLS:
            raise cx.error(
                f"{name} calls itself more than {MOST_CONSTANT_CALLS:,} times while the kernel is "
                "compiled: write its result as a number",
                span,
            )
    if cx.depth > MOST_INLINED:
        if is_open(cx, instance):
            raise cx.error(
                f"{name} calls itself more than {MOST_INLINED} levels deep while the kernel is "
                "compiled: does it ever end? Write a loop, or its result as a number",
                span,
            )
        raise cx.error(
            f"{name} is a call in {MOST_INLINED} others, each of another function: a template that "
            "calls itself with other arguments needs an end that is known when it is compiled "
            "(if constexpr, or a specialization)",
            span,
        )


def _refuse_kernels(cx: Context, declaration: tree.FunctionDeclaration, span: Span) -> None:
    specifiers = declaration.specifiers
    if "global" in specifiers:
        message = refusal_message("dynamic_parallelism")
        name = declaration.name.text
        if builtin_names.is_function(name):
            line = declaration.span.line
            message += f" ({name} is the kernel of line {line} here: "
            message += f"rename it to call CUDA's {name})"
            raise cx.error(message, span)
        raise cx.of_host(message, span)


def with_defaults(cx: Context, chosen: Candidate, values: Sequence[Value]) -> list[Value]:
    found = list(values)
    declared = chosen.general or chosen
    parameters = declared.declaration.parameters[: len(chosen.types)]
    with cx.in_scope(declared.scope):
        for parameter, type in list(zip(parameters, chosen.types, strict=True))[len(values) :]:
            default = parameter.default
            assert default is not None
            if isinstance(default, tree.InitializerList):
                found.append(from_list(cx, type, default, default.span))
            else:
                found.append(lower(cx, default))
    return found


# --- functions of the IR -------------------------------------------------------------------------


def _may_be_pure(cx: Context, chosen: Candidate, result: CppType, instance: Any) -> bool:
    if instance in cx.lowering.facts.inlined or isinstance(result, Void):
        return False
    declaration = chosen.declaration
    if "constexpr" in declaration.specifiers and single_return(declaration) is not None:
        return False
    return _is_plain(result) and all(_is_plain(_by_value(type)) for type in chosen.types)


def _by_value(type: CppType) -> CppType:
    """The type of a parameter; a reference to a const number is passed by value."""
    if isinstance(type, Reference) and type.const and isinstance(type.to, (Arithmetic, VectorType)):
        return type.to
    return type


def _is_plain(type: CppType) -> bool:
    if isinstance(type, ClassType):
        return not holds_pointer(type) and not holds_array(type) and not acts(type)
    return isinstance(type, (Arithmetic, VectorType, EnumType))


def _call_pure(
    cx: Context,
    chosen: Candidate,
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


def _lower_function(cx: Context, chosen: Candidate, result: CppType, instance: Any) -> str:
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
    if not ends(body):
        body = (*body, n.Return(zero_of(made, declaration.span), declaration.span))
    name = lowering.unique_function(_function_name(chosen))
    memories = tuple(inner.memories)
    lowering.functions[name] = n.Function(
        name, tuple(parameters), made, body, memories, declaration.span
    )
    lowering.function_names[instance] = name
    return name


def _function_name(chosen: Candidate) -> str:
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
    """Declare a parameter of the IR function; if it is assigned to, it is copied first."""
    key = (cx.path, id(parameter))
    if parameter.name in assigned:
        cx.lowering.facts.assigned.add(key)
    bound = value_object(cx, parameter.name, variable, type, key, parameter.span)
    const = is_const(parameter.type) or isinstance(parameter.type, tree.ReferenceType)
    cx.scope.names[parameter.name] = as_const(bound) if const else bound


def value_object(
    cx: Context, name: str, variable: n.Variable, type: CppType, key: Any, span: Span
) -> Any:
    """A parameter of the IR function as an object; if it is assigned to, it is copied first."""
    facts = cx.lowering.facts
    if key in facts.assigned or key in facts.in_memory:
        return declare_object(cx, name, type, key, Rvalue(variable, type), span)
    cx.lowering.parameter_keys[variable.name] = key
    cx.lowering.variable_keys[variable.name] = key
    return Lvalue(variable, type)


# --- inlining ------------------------------------------------------------------------------------


# --- what a body says ----------------------------------------------------------------------------

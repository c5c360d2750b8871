"""Arguments of templates: their values, and the parameters that they are bound to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import folded, holds
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert
from treadle.cuda_cpp.lower.dispatch import constant_rvalue, lower
from treadle.cuda_cpp.lower.names import (
    is_const_type,
    lookup,
    resolve,
)
from treadle.cuda_cpp.lower.values import FunctionSet, Rvalue
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    KnownValue,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    Arithmetic,
    ClassType,
    ConstOf,
    CppType,
    MemberPointer,
    NullPointer,
    Pointer,
    Reference,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

# A template argument: a type, a constant with its C++ type, a function or a template.
Argument = CppType | ConstOf | Rvalue | FunctionSet | DeclaredType


def evaluate_argument(
    cx: Context,
    argument: tree.TemplateArgument | Argument,
    parameter: tree.TemplateParameter,
    declared: Scope,
) -> Argument:
    """A template argument, as a tree or already evaluated, converted for its parameter, whose type
    is looked up in the scope of the template."""
    if parameter.kind == "type":
        if isinstance(argument, tree.Name):  # parsed as an expression: a name may be a type
            argument = tree.NamedType(argument, argument.span)
        if isinstance(argument, tree.TYPES):
            type = resolve(cx, argument)
            const = is_const_type(cx, argument) and not isinstance(type, Reference)
            return ConstOf(type) if const else type
        if not isinstance(argument, CPP_TYPES):
            raise cx.wrong(f"template parameter {parameter.name} takes a type, not a value")
        made: Argument = argument
        return made
    if parameter.kind == "template":
        return _template(cx, argument, parameter)
    assert parameter.type is not None
    if isinstance(argument, FunctionSet):
        return with_known_arguments(cx, argument)
    if isinstance(argument, tree.NamedType):
        argument = argument.name
    if isinstance(argument, tree.Unary) and argument.op == "&":
        member: Any = cx.rules.member_pointer(cx, argument.operand, argument.span)
        if isinstance(member, FunctionSet):  # one of several functions, by the parameter's type
            with cx.in_scope(declared):
                member = convert(cx, member, resolve(cx, parameter.type), cx.span)
        argument = argument.operand if member is None else member
    if isinstance(argument, tree.Name):
        function = lower(cx, argument)
        if isinstance(function, FunctionSet):  # an overload set, resolved at the call
            return with_known_arguments(cx, function)
    if isinstance(argument, tree.NullLiteral):  # of `enable_if_t<…> * = nullptr`
        with cx.in_scope(declared):
            wanted = resolve(cx, parameter.type)
        if not isinstance(wanted, (Pointer, NullPointer, MemberPointer)):
            raise cx.wrong(f"template parameter {parameter.name} takes a value, not nullptr")
        return Rvalue(n.Constant(0, ir.I32), wanted, literal_zero=True)
    if isinstance(argument, (*tree.TYPES, *CPP_TYPES)):
        raise cx.wrong(f"template parameter {parameter.name} takes a value, not a type")
    value = (
        argument
        if isinstance(argument, Rvalue)
        else constant_rvalue(cx, argument, f"template argument {parameter.name}")
    )
    if isinstance(parameter.type, tree.AutoType):
        return value
    with cx.in_scope(declared):
        wanted = resolve(cx, parameter.type)
    _refuse_narrowing(cx, value, wanted, parameter)
    converted = convert(cx, value, wanted, cx.span)
    assert isinstance(converted, Rvalue)
    return Rvalue(folded(converted.expression), converted.type)


def with_known_arguments(cx: Context, function: FunctionSet) -> FunctionSet:
    """Functions whose template arguments, as in `&scale<N + 1>`, are evaluated in the scope that
    they are written in, before the functions are passed to where N is another's name, or none."""
    written = function.arguments
    if not written or all(isinstance(one, _KNOWN) for one in written):
        return function
    failed: CompileError | None = None
    for overload in function.overloads:
        parameters = overload.declaration.template
        if parameters and parameters[-1].pack:
            parameters = (*parameters, *[parameters[-1]] * (len(written) - len(parameters)))
        if len(parameters or ()) < len(written):
            continue
        inner = Scope(overload.scope, kind="template")
        known: list[Argument] = []
        try:
            for parameter, argument in zip(parameters, written, strict=False):
                known.append(evaluate_argument(cx, argument, parameter, inner))
                bind(inner, parameter, known[-1])
        except CompileError as error:
            failed = error
            continue
        return replace(function, arguments=tuple(known))
    if failed is not None:
        raise failed
    return function


def _refuse_narrowing(
    cx: Context, value: Rvalue, type: CppType, parameter: tree.TemplateParameter
) -> None:
    """CompileError for a number that a parameter's type does not have."""
    given, known = value.type, value.expression
    if not isinstance(given, Arithmetic) or not isinstance(type, Arithmetic) or type == BOOL:
        return
    if isinstance(known, n.Constant) and not holds(type, given, known.value):
        raise cx.wrong(
            f"template parameter {parameter.name} is of type {type}, and its argument "
            f"{known.value}, of type {given}, does not convert to it unchanged (narrowing)",
            cx.span,
        )


CPP_TYPES = (*CppType.__args__, ConstOf)
_KNOWN = (*CPP_TYPES, Rvalue, FunctionSet, DeclaredType)


def _template(
    cx: Context, argument: tree.TemplateArgument | Argument, parameter: tree.TemplateParameter
) -> DeclaredType:
    """A class or alias template as an argument."""
    if isinstance(argument, DeclaredType):
        return argument
    if isinstance(argument, tree.NamedType):
        argument = argument.name
    found: Any = lookup(cx, argument) if isinstance(argument, tree.Name) else None
    if isinstance(found, TypeEntity) and isinstance(found.type, ClassType):  # inside of the class
        assert isinstance(argument, tree.Name)
        found = declared_template(cx, found.type) or found
    if isinstance(found, DeclaredType) and getattr(found.declaration, "template", None):
        return found
    raise cx.wrong(f"template parameter {parameter.name} takes a template")


def declared_template(cx: Context, type: ClassType) -> DeclaredType | None:
    """The class template that a type is an instance of."""
    scope: Scope | None = type.scope
    while scope is not None:
        found = scope.own(getattr(type.template, "name", ""))
        if isinstance(found, DeclaredType) and found.declaration is type.template:
            return found
        scope = scope.parent
    return None


def bind_arguments(
    cx: Context,
    parameters: Sequence[tree.TemplateParameter],
    arguments: Sequence[Any],
    scope: Scope,
    span: Span,
    deduced: dict[str, Argument] | None = None,
) -> Scope:
    """A scope that binds template parameters to arguments: given, deduced or default ones."""
    inner = Scope(scope, kind="template")
    known: list[Argument] = []
    given = list(arguments)
    for parameter in parameters:
        if given:
            value = evaluate_argument(cx, given.pop(0), parameter, inner)
        elif deduced is not None and parameter.name in deduced:
            value = deduced[parameter.name]
            if parameter.kind != "type":
                with cx.in_scope(inner):
                    value = evaluate_argument(cx, value, parameter, inner)
        elif parameter.default is not None:
            with cx.in_scope(inner):
                value = evaluate_argument(cx, parameter.default, parameter, inner)
        else:
            how = "has no argument" if deduced is None else "cannot be deduced: give it in <>"
            name = parameter.name or f"number {len(known) + 1}"
            raise cx.wrong(f"template parameter {name} {how}", span)
        known.append(value)
        bind(inner, parameter, value)
    if given:
        raise cx.wrong(too_many_arguments(parameters, len(arguments)), span)
    inner.names["<arguments>"] = tuple(known)
    return inner


def too_many_arguments(parameters: Sequence[tree.TemplateParameter], given: int) -> str:
    """The message for more template arguments than a template has parameters."""
    names = ", ".join(one.name or one.kind for one in parameters)
    return f"{given} template arguments for {len(parameters)} parameters: <{names}>"


def bind(scope: Scope, parameter: tree.TemplateParameter, value: Argument) -> None:
    """Make an argument known in a template's scope by the name of its parameter."""
    if not parameter.name:
        return
    entity: Any
    match value:
        case Rvalue() | FunctionSet():
            entity = KnownValue(value)
        case ConstOf(of):
            entity = TypeEntity(of, const=True)
        case DeclaredType():
            entity = value
        case _:
            entity = TypeEntity(value)
    scope.names[parameter.name] = entity


def argument_key(argument: Argument) -> Any:
    """The part of a template argument by which instances differ."""
    if isinstance(argument, Rvalue):
        assert isinstance(argument.expression, n.Constant)
        return (argument.expression.value, str(argument.type))
    if isinstance(argument, FunctionSet):
        given = tuple(map(argument_key, argument.arguments or ()))
        return (argument.name, tuple(id(one.declaration) for one in argument.overloads), given)
    if isinstance(argument, DeclaredType):
        return id(argument.declaration)
    return argument


def spelled(argument: Argument) -> str:
    """A template argument in an instance's name."""
    if isinstance(argument, Rvalue):
        assert isinstance(argument.expression, n.Constant)
        value = argument.expression.value
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(argument, FunctionSet):
        overloads = argument.overloads
        name = overloads[0].scope.qualified(argument.name) if overloads else argument.name
        given = ", ".join(map(spelled, argument.arguments or ()))
        return f"{name}<{given}>" if given else name
    if isinstance(argument, DeclaredType):
        name = getattr(argument.declaration, "name", "")
        return argument.scope.qualified(name)
    return str(argument)


def is_same(one: Argument, other: Argument) -> bool:
    """Whether two template arguments are equal: by name as well, as pointers to const and to
    non-const compare equal."""
    same: bool = argument_key(one) == argument_key(other)
    return same and spelled(one) == spelled(other)


def is_default(
    cx: Context, parameter: tree.TemplateParameter, argument: Argument, scope: Scope
) -> bool:
    """Whether a template argument that `Vec<T>` leaves out is the default one."""
    if parameter.default is None:
        return bool(parameter.pack)
    with cx.in_scope(scope):
        try:
            default = evaluate_argument(cx, parameter.default, parameter, scope)
        except CompileError:  # there is none for the arguments before it
            return False
    return is_same(default, argument)

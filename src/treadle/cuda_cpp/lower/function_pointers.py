"""Pointers to functions: the functions that one may point to are its targets, and a call through it
is a branch for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.builtins.tables import FUNCTIONS
from treadle.cuda_cpp.lower.choices import choose_among
from treadle.cuda_cpp.lower.closures import is_closure
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert
from treadle.cuda_cpp.lower.guards import check_not_null
from treadle.cuda_cpp.lower.inlining import bind_result
from treadle.cuda_cpp.lower.names import parameter_type
from treadle.cuda_cpp.lower.overloads import resolve_overload, result_type
from treadle.cuda_cpp.lower.pointers import ZERO, example_of
from treadle.cuda_cpp.lower.template_arguments import argument_key
from treadle.cuda_cpp.lower.values import (
    Candidate,
    FunctionSet,
    FunctionTarget,
    PointerValue,
    Rvalue,
    Value,
    VoidValue,
    describe,
)
from treadle.cuda_cpp.semantics.scopes import Functions
from treadle.cuda_cpp.semantics.types import (
    OF_SCALAR,
    VOID,
    ClassType,
    CppType,
    FunctionOf,
    Reference,
    Void,
    decay,
)
from treadle.ir import types as ir


def function_pointer(cx: Context, value: Value, wanted: CppType | None, span: Span) -> PointerValue:
    """A function, or a lambda without captures, as a pointer of the type `wanted`, or of its own
    type. CompileError if none fits, or if it is overloaded and no type is wanted."""
    if isinstance(value, FunctionSet) and value.builtin:
        return _to_builtin(cx, value, wanted, span)
    functions = value if isinstance(value, FunctionSet) else _of_closure(cx, value, span)
    first = functions.overloads[0]
    is_method = functions.receiver is not None and first.owner is not None
    if is_method and "static" not in first.declaration.specifiers:
        raise cx.error(f"{functions.name} is a method: call it with (…)", span)
    if wanted is not None:
        assert isinstance(wanted, FunctionOf)
        values = [example_of(one, span) for one in wanted.parameters]
        chosen = resolve_overload(
            cx, functions.name, functions.overloads, values, functions.arguments, span
        )
        if chosen.types != wanted.parameters:
            raise cx.wrong(f"{functions.name} is no {wanted}", span)
    else:
        chosen = _only(cx, functions, span)
    result = result_type(cx, chosen)
    if result is None:
        result = wanted.result if isinstance(wanted, FunctionOf) else _called(cx, chosen, span)
    key = (id(chosen.declaration), tuple(map(argument_key, chosen.arguments)))
    target = FunctionTarget(key, chosen)
    return PointerValue((target,), ZERO, 1, FunctionOf(result, chosen.types))


def _of_closure(cx: Context, value: Value, span: Span) -> FunctionSet:
    type = getattr(value, "type", None)
    if not isinstance(type, ClassType) or not is_closure(type):
        raise cx.wrong(f"{describe(value)} is not a function, nor a pointer to one", span)
    if type.fields:
        raise cx.wrong("a lambda with captures does not convert to a pointer to a function", span)
    found = type.scope.names["operator()"]
    assert isinstance(found, Functions)
    return FunctionSet("operator()", tuple(found.overloads))


def _only(cx: Context, functions: FunctionSet, span: Span) -> Candidate:
    """The function of a set, if it has only one."""
    several = [one for one in functions.overloads if not one.declaration.specialization]
    defined = [one for one in several if one.declaration.body is not None] or several
    template = [one for one in defined if one.declaration.template]
    if functions.arguments is not None and len(template) == 1:
        scope = cx.rules.bind_arguments(
            cx, template[0].declaration.template, functions.arguments, template[0].scope, span
        )
        found = template[0]
    elif len(defined) == 1 and not template:
        found, scope = defined[0], defined[0].scope
    else:
        raise cx.error(
            f"{functions.name} is overloaded or a template, so its type cannot be deduced: write "
            "a lambda that calls it, or cast it to the type of one of the functions",
            span,
        )
    with cx.in_scope(scope):
        types = tuple(
            parameter_type(cx.rules.resolve(cx, one.type)) for one in found.declaration.parameters
        )
    return Candidate(found, scope, types)


def _called(cx: Context, chosen: Candidate, span: Span) -> CppType:
    """The result of a function whose result type is deduced."""
    cx.lowering.unevaluated += 1
    try:
        with cx.separate_block():
            values = [example_of(one, span) for one in chosen.types]
            made = cx.rules.call_chosen(cx, chosen, values, None, span)
    finally:
        cx.lowering.unevaluated -= 1
    return decay(getattr(made, "type", VOID))


def _to_builtin(
    cx: Context, value: FunctionSet, wanted: CppType | None, span: Span
) -> PointerValue:
    """A pointer to a function that CUDA declares."""
    known = [one for one in FUNCTIONS.get(value.name, ()) if _has_types(one.parameters)]
    for one in known:
        type = FunctionOf(
            OF_SCALAR[one.result],  # type: ignore[index]
            tuple(OF_SCALAR[each] for each in one.parameters),  # type: ignore[index]
        )
        if type == wanted or (wanted is None and len(known) == 1):
            return PointerValue((FunctionTarget(value.name, None),), ZERO, 1, type)
    what = "has no type that can be deduced" if wanted is None else f"is no {wanted}"
    raise cx.error(f"{value.name} {what}: write a lambda that calls it", span)


def _has_types(types: Sequence[ir.Type]) -> bool:
    return all(one in OF_SCALAR for one in types)


def call_pointer(
    cx: Context,
    pointer: PointerValue,
    values: Sequence[Value],
    call: Callable[[FunctionTarget, Sequence[Value]], Value],
    span: Span,
) -> Value:
    """A call through a pointer: of its only target, or of the one that its tag selects."""
    cx.calls += 1
    with cx.numbered_apart(("pointer", cx.calls)):
        return _call_one(cx, pointer, values, call, span)


def _call_one(
    cx: Context,
    pointer: PointerValue,
    values: Sequence[Value],
    call: Callable[[FunctionTarget, Sequence[Value]], Value],
    span: Span,
) -> Value:
    type = pointer.to
    assert isinstance(type, FunctionOf)
    if len(values) != len(type.parameters):
        raise cx.wrong(f"{type} takes {len(type.parameters)} arguments, not {len(values)}", span)
    functions = [
        (number, target)
        for number, target in enumerate(pointer.targets)
        if isinstance(target, FunctionTarget)
    ]
    if not functions:
        lowering = cx.lowering  # the next run has targets
        if lowering.facts.changed or lowering.unevaluated or lowering.checking:
            return example_of(type.result, span)
        raise cx.error("this pointer to a function is always null where it is called", span)
    if pointer.tag is not None:
        present = [one if isinstance(one, FunctionTarget) else None for one in pointer.targets]
        check_not_null(cx, pointer.tag, present, span)
    if len(functions) == 1:
        number, only = functions[0]
        with cx.numbered_apart(number):
            return call(only, values)
    if isinstance(type.result, Reference):
        raise cx.error("a call of one of several functions that return references", span)
    values = [kept(cx, one, to, span) for one, to in zip(values, type.parameters, strict=True)]
    assert pointer.tag is not None
    tag = cx.copied(pointer.tag)
    if isinstance(type.result, Void):
        choose_among(cx, tag, functions, lambda one: call(one, values), span)
        return VoidValue(VOID)
    result, assign = bind_result(cx, "called", type.result, (cx.path, "called"), span)
    choose_among(cx, tag, functions, lambda one: assign(call(one, values)), span)
    return result


def kept(cx: Context, value: Value, type: CppType, span: Span) -> Value:
    """An argument that several branches use, computed before them."""
    if isinstance(type, Reference):
        return value
    converted = convert(cx, value, type, span)
    if isinstance(converted, Rvalue):
        return Rvalue(cx.copied(converted.expression), converted.type)
    return converted

"""Lowers single functions, a user's or the math library's, without a kernel of the language.

Front ends that build kernels themselves call `exp` with these. A library function has the same name
in every kernel, with the type that it computes in (`exp_f32`, `log2_parts_f64`), so that printed
kernels are readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from types import FunctionType

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import Node, rewrite_block
from treadle.lang.lower.context import Context, Lowering, Specialization
from treadle.lang.lower.functions import annotated, arity_error, check_parameters, specialize
from treadle.lang.lower.rules import RULES
from treadle.lang.lower.values import Value
from treadle.lang.math import library
from treadle.lang.source import Source, parameters_of, resolve_annotations, source_of
from treadle.lang.types import ir_type


@cache
def library_functions(name: str, type: t.Scalar) -> tuple[str, tuple[n.Function, ...]]:
    """The function `name` of `treadle.lang.math` for numbers of `type`: the name to call, and all
    functions that it needs, callees first, itself last. Each call returns the same objects.

    KeyError if the library has no such version. A function with a single version (`rand_uniform`)
    is found by its name for every type. Functions of equal name are equal in all results.
    """
    definitions = library()
    definition = definitions.get(f"{name}_{type}") or definitions[name]
    annotations = resolve_annotations(definition)
    annotations.pop("return", None)
    types = [ir_type(annotation) for annotation in annotations.values()]
    lowered = lower_function(definition, source_of(definition), types)
    names = {function.name: _readable(function) for function in lowered}

    def renamed(node: Node) -> Node:
        return replace(node, function=names[node.function]) if isinstance(node, n.Call) else node

    functions = tuple(
        replace(function, name=names[function.name], body=rewrite_block(function.body, renamed))
        for function in lowered
    )
    return functions[-1].name, functions


def _readable(function: n.Function) -> str:
    """A function's name with the type that it computes in, unless it has it already."""
    if function.name.rpartition("_")[2] in t.SCALARS:
        return function.name
    types = [
        parameter.type for parameter in function.parameters if isinstance(parameter, n.Variable)
    ]
    floats = [
        type for type in (*types, function.result) if isinstance(type, t.Scalar) and type.is_float
    ]
    return f"{function.name}_{floats[0]}" if floats else function.name


def lower_elementwise(
    function: FunctionType, source: Source, types: Sequence[t.Type], *, asserts: bool
) -> tuple[t.Type, tuple[n.Function, ...] | None]:
    """The result type of a device function for arguments of these types, and its IR with all its
    callees first; None for a function with effects or memory of its own, which only a kernel can
    call. CompileError if it can't be lowered, or its result can't be an array's element."""
    made, functions, cx = _lower_standalone(function, source, types, asserts=asserts)
    pairs = (t.Vector(t.F32, 2), t.Vector(t.F64, 2))  # elements of complex arrays
    if made.tuple_result or (
        isinstance(made.result, (t.Void, t.Vector)) and made.result not in pairs
    ):
        kind = "a tuple" if made.tuple_result else f"a {made.result}"
        if made.result == t.VOID:
            kind = "nothing"
        raise cx.error(
            f"{function.__name__} gives {kind}: return one number or struct, the element of the "
            "result",
            source.tree,
        )
    return made.result, functions if made.pure else None


def lower_function(
    function: FunctionType, source: Source, types: Sequence[t.Type]
) -> tuple[n.Function, ...]:
    """A device function for arguments of these types in IR: all its callees first, the function
    itself last. CompileError if it can't be lowered, or has no result."""
    made, functions, cx = _lower_standalone(function, source, types, asserts=False)
    if made.tuple_result or isinstance(made.result, t.Void) or not made.pure:
        raise cx.error(
            f"{function.__name__} is used as a function of values: it returns one value, and has "
            "no effects, arrays or memory of its own",
            source.tree,
        )
    return functions


def _lower_standalone(
    function: FunctionType, source: Source, types: Sequence[t.Type], *, asserts: bool
) -> tuple[Specialization, tuple[n.Function, ...], Context]:
    """Lower a function without a kernel around it."""
    lowering = Lowering(RULES, False, True, t.I32, asserts)
    cx = Context(lowering, function, source, is_kernel=False)
    check_parameters(cx, source, source.tree)
    names = [parameter.arg for parameter in parameters_of(source.tree)]
    if len(types) != len(names):
        raise arity_error(cx, function, names, len(types), source.tree)
    given: list[Value] = [n.Variable(*pair) for pair in zip(names, types, strict=True)]
    values = annotated(cx, function, source, given, source.tree)
    made = specialize(cx, function, source, values)
    return made, tuple(lowering.functions), cx

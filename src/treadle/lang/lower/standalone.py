"""Functions in IR without a kernel of the language around them: a user's, or the math library's.

For front ends that make kernels of their own and call `exp` in them. Names of the library are the
same in every kernel and say the type that is computed in (`exp_f32`, `log2_parts_f64`), so that a
printed kernel reads well.
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
from treadle.lang.source import Source, resolve_annotations, source_of
from treadle.lang.types import ir_type


@cache
def library_functions(name: str, type: t.Scalar) -> tuple[str, tuple[n.Function, ...]]:
    """The function `name` of `treadle.lang.math` for numbers of `type`: the name to call, and all
    functions that it needs, callees first, itself last. The same objects at each call.

    KeyError where the library has no such version. What exists once (`rand_uniform`) is found under
    its name, whatever the type. Two functions of one name are one function, in every result.
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
    """A function's name with the type it computes in, unless it says that already."""
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
    """What a device function gives for arguments of these types, and its IR with all that it calls,
    callees first; None for a function with effects, or with memory of its own, which only a kernel
    can call. CompileError where it can't be lowered, or does not give an array's element."""
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
    """A device function of values of these types in IR, with all that it calls: callees first, the
    function itself last. CompileError where it can't be lowered, or gives no value."""
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
    """A function without a kernel around it."""
    lowering = Lowering(RULES, False, True, t.I32, asserts)
    cx = Context(lowering, function, source, is_kernel=False)
    check_parameters(cx, source, source.tree)
    names = [a.arg for a in source.tree.args.posonlyargs + source.tree.args.args]
    if len(types) != len(names):
        raise arity_error(cx, function, names, len(types), source.tree)
    given: list[Value] = [n.Variable(*pair) for pair in zip(names, types, strict=True)]
    values = annotated(cx, function, source, given, source.tree)
    made = specialize(cx, function, source, values)
    return made, tuple(lowering.functions), cx

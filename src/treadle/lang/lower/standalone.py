"""Functions of the math library in IR, without a kernel of the language around them.

For front ends that make kernels of their own and call `exp` in them. Names are the same in every
kernel and say the type that is computed in (`exp_f32`, `log2_parts_f64`), so that a printed kernel
reads well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import Node, rewrite_block
from treadle.lang.lower.functions import lower_function
from treadle.lang.lower.mathematics import library_definitions
from treadle.lang.source import resolve_annotations, source_of
from treadle.lang.types import ir_type


@cache
def library_functions(name: str, type: t.Scalar) -> tuple[str, tuple[n.Function, ...]]:
    """The function `name` of `treadle.lang.math` for numbers of `type`: the name to call, and all
    functions that it needs, callees first, itself last. The same objects at each call.

    KeyError where the library has no such version. What exists once (`rand_uniform`) is found under
    its name, whatever the type. Two functions of one name are one function, in every result.
    """
    definitions = library_definitions()
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

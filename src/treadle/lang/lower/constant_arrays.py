"""NumPy arrays from outside: constants, in a memory of each thread that is filled at the start.

If all indices are constants, as in unrolled loops, a later pass makes numbers of its elements
(`ir.passes.split_memories`).
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from treadle.core.dtypes import as_number_dtype
from treadle.core.errors import DtypeError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.captures import MOST_CONSTANTS
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import constant
from treadle.lang.lower.values import ArrayView, Value


def constant_array(cx: Context, data: np.ndarray[Any, Any], name: str, node: ast.AST) -> Value:
    """The value of an array from outside; CompileError if it is large, or not of numbers."""
    try:
        type = t.SCALARS[as_number_dtype(data.dtype).short]
    except DtypeError:
        kind = f"NumPy array of {data.dtype}"
        raise cx.refusal("captured_object", node, name=name, kind=kind) from None
    if not data.ndim:
        raise cx.refusal("captured_object", node, name=name, kind="NumPy array without axes")
    if not 0 < data.size <= MOST_CONSTANTS:
        raise cx.refusal("captured_large_array", node, name=name, size=f"{data.size:,}")
    key = ("array", type, data.shape, data.tobytes())
    known = cx.tables.get(key)
    if known is None:
        known = cx.tables[key] = _filled(cx, data, type, name, node)
    found: ArrayView = known
    return found


def _filled(
    cx: Context, data: np.ndarray[Any, Any], type: t.Scalar, name: str, node: ast.AST
) -> ArrayView:
    span = cx.span(node)
    memory = n.Memory(cx.unique(name.rpartition(".")[2]), "local", type, data.size, span)
    cx.memories.append(memory)
    for at, value in enumerate(data.reshape(-1)):
        place = n.Element(memory.name, n.Constant(at, t.I32, span), type, (), span)
        cx.prologue.append(n.Assign(place, constant(value.item(), type, cx, node), span))
    extents = tuple(n.Constant(extent, t.I32, span) for extent in data.shape)
    size = n.Constant(data.size, t.I32, span)
    return ArrayView(memory.name, type, extents, size, constant=True)

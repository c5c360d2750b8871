"""The functions of a kernel: those that are called, and those that NumPy has itself."""

from __future__ import annotations

from pathlib import PurePath

from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import F32

_NATIVE = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp", "exp2",
    "expm1", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan", "tanh",
})  # fmt: skip


def native_name(function: n.Function) -> str | None:
    """The name of a function of treadle's mathematics that NumPy has too. In float64 and rounded,
    it is closer than the polynomials, which take many calls of NumPy."""
    name = function.name.partition(".")[0]
    if name not in _NATIVE or PurePath(function.span.file).parts[-3:-1] != ("lang", "math"):
        return None
    types = {p.type for p in function.parameters if isinstance(p, n.Variable)}
    return name if types | {function.result} == {F32} else None


def called_functions(kernel: n.Kernel) -> list[n.Function]:
    """The functions that the kernel calls, callees first; not those that only a function calls
    which NumPy has."""
    calls = (n.Call, n.CallStatement)
    called = {node.function for node in walk(kernel.body) if isinstance(node, calls)}
    for function in reversed(kernel.functions):
        if function.name in called and native_name(function) is None:
            called |= {node.function for node in walk(function.body) if isinstance(node, calls)}
    return [function for function in kernel.functions if function.name in called]

"""The functions of td and Python that kernels can call, implemented for the interpreter."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_number_dtype
from treadle.ir import types as t
from treadle.ir.nodes import MATRIX_OPERATIONS
from treadle.lang import rules
from treadle.lang.builtins import (
    COMPARISONS,
    OPERATORS,
    SUBGROUP_OPERATIONS,
    BuiltinFunction,
    BuiltinVariable,
)
from treadle.lang.equivalents import LibraryFunction, equivalent, of_constants
from treadle.lang.interpreter import fragments, numbers
from treadle.lang.interpreter.arrays import KernelArray, attribute
from treadle.lang.interpreter.threads import SUBGROUP, Request, ThreadState
from treadle.lang.interpreter_state import current_run
from treadle.lang.matrices import FUNCTIONS, Matrix
from treadle.lang.source import is_own_file, source_of
from treadle.lang.types import Vector, ir_type, numpy_dtype

_PACKAGE = __name__.rsplit(".", 2)[0]  # treadle.lang


def call_site() -> tuple[str, int, int]:
    """The file, line and instruction of the running call in the user's source."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti


def run_builtin(
    thread: ThreadState, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """The result of a builtin in a running kernel."""
    if isinstance(target, BuiltinVariable):
        return _place(thread, target.name, arguments[0])
    assert isinstance(target, BuiltinFunction)
    if target.group == "math":
        return mathematics(target.name, list(arguments))
    if target.group == "atomic":
        return _atomic(target.name.removeprefix("atomic_"), *arguments)
    if target.name in MATRIX_OPERATIONS:
        return thread.wait(Request(target.name, call_site(), arguments))
    if target.name in SUBGROUP_OPERATIONS:
        return _subgroup(thread, SUBGROUP_OPERATIONS[target.name], arguments)
    return _OTHERS[target.name](thread, *arguments, **keywords)


# --- places, memory, barriers --------------------------------------------------------------------


def _place(thread: ThreadState, name: str, axis: int) -> Any:
    value = {
        "thread_idx": thread.index,
        "block_idx": thread.block.index,
        "block_dim": thread.block.block,
        "grid_dim": thread.block.grid,
    }[name]
    return np.int32(value[axis])


def _grid(thread: ThreadState, axes: int) -> Any:
    block = thread.block
    found = tuple(
        np.int32(block.index[a] * block.block[a] + thread.index[a]) for a in reversed(range(axes))
    )
    return found[0] if axes == 1 else found


def _grid_size(thread: ThreadState, axes: int) -> Any:
    block = thread.block
    found = tuple(np.int32(block.grid[a] * block.block[a]) for a in reversed(range(axes)))
    return found[0] if axes == 1 else found


def _shared(thread: ThreadState, shape: Any, dtype: Any) -> KernelArray:
    site = call_site()
    # In an unrolled loop each iteration has an array of its own.
    occurrence = thread.occurrences.get(site, 0)
    thread.occurrences[site] = occurrence + 1
    memory = thread.block.shared
    if (site, occurrence) not in memory:
        if shape is None:
            shape = thread.block.shared_bytes // numpy_dtype(ir_type(dtype)).itemsize
        memory[site, occurrence] = _array(shape, dtype, "shared")
    found: KernelArray = memory[site, occurrence]
    return found


def _array(shape: Any, dtype: Any, name: str) -> KernelArray:
    extents = tuple(int(part) for part in (shape if isinstance(shape, tuple) else (shape,)))
    element = ir_type(dtype)
    return KernelArray(np.zeros(extents, numpy_dtype(element)), element, name)


def _barrier(scope: str) -> Callable[[ThreadState], None]:
    return lambda thread: thread.wait(Request(scope, call_site()))


def _fence(thread: ThreadState) -> None:
    """Only one thread runs at a time, so memory is always in order."""


_OTHERS: dict[str, Callable[..., Any]] = {
    "fragment": fragments.new,
    "grid": _grid,
    "grid_size": _grid_size,
    "shared": _shared,
    "local": lambda thread, shape, dtype: _array(shape, dtype, "local"),
    "static_range": lambda thread, *bounds: range(*(int(bound) for bound in bounds)),
    "sync_threads": _barrier("block"),
    "sync_subgroup": _barrier("subgroup"),
    "thread_fence": _fence,
    "thread_fence_block": _fence,
    "lane": lambda thread: np.int32(thread.linear % SUBGROUP),
    "subgroup_size": lambda thread: np.int32(SUBGROUP),
    "bitcast": lambda thread, value, dtype: numbers.bitcast(value, as_number_dtype(dtype)),
    "where": lambda thread, test, one, other: _where(test, one, other),
    "cross": lambda thread, left, right: _cross(left, right),
    "dot": lambda thread, left, right: _dot(left, right),
    "length": lambda thread, vector: _normal(vector)[0],
    "normalize": lambda thread, vector: _normal(vector)[1],
}


def _where(test: Any, one: Any, other: Any) -> Any:
    if numbers.is_literal(test):
        return one if test else other
    if numbers.is_number(one) and numbers.is_number(other):
        type = rules.common_type(numbers.operand(one), numbers.operand(other))
        return numbers.cast(one if test else other, type)
    return one if test else other


def _dot(left: Vector, right: Vector) -> Any:
    products = [numbers.binary("*", a, b) for a, b in zip(left, right, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = numbers.binary("+", total, product)
    return total


def _cross(left: Vector, right: Vector) -> Vector:
    def minor(one: str, other: str) -> Any:
        first = numbers.binary("*", getattr(left, one), getattr(right, other))
        second = numbers.binary("*", getattr(left, other), getattr(right, one))
        return numbers.binary("-", first, second)

    return numbers.vector([minor("y", "z"), minor("z", "x"), minor("x", "y")])


def _normal(vector: Vector) -> tuple[Any, Vector]:
    """The length of a vector, and the vector divided by it."""
    element = t.SCALARS[vector.type.dtype.short]
    result = element if element.is_float else t.F32
    work = t.F64 if element == t.F64 else t.F32
    wide = numbers.vector([numbers.cast(part, work) for part in vector])
    length = numbers.intrinsic("sqrt", [_dot(wide, wide)], work)
    parts = [numbers.cast(part, result) for part in numbers.binary("/", wide, length)]
    return numbers.cast(length, result), numbers.vector(parts)


# --- atomics and subgroups -----------------------------------------------------------------------

_ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, value: numbers.binary("+", old, value),
    "sub": lambda old, value: numbers.binary("-", old, value),
    "min": lambda old, value: numbers.intrinsic("min", [old, value], numbers.scalar_type(old)),
    "max": lambda old, value: numbers.intrinsic("max", [old, value], numbers.scalar_type(old)),
    "and": lambda old, value: numbers.binary("&", old, value),
    "or": lambda old, value: numbers.binary("|", old, value),
    "xor": lambda old, value: numbers.binary("^", old, value),
    "exchange": lambda old, value: value,
}


def _atomic(op: str, array: KernelArray, index: Any, *operands: Any) -> Any:
    old = array.load(index)
    type = numbers.scalar_type(old)
    values = [numbers.cast(value, type) for value in operands]
    if op == "cas":
        if old == values[0]:
            array.store(index, values[1])
    else:
        array.store(index, _ATOMICS[op](old, values[0]))
    return old


def _subgroup(thread: ThreadState, op: str, arguments: tuple[Any, ...]) -> Any:
    value = numbers.typed(arguments[0])
    if value.dtype == np.bool_ and op in ("sum", "min", "max", "prefix_sum"):
        value = numbers.cast(value, t.I32)
    return thread.wait(Request(op, call_site(), (value, *arguments[1:])))


# --- mathematics ---------------------------------------------------------------------------------

_LOGIC: dict[str, Callable[..., Any]] = {
    "logical_and": lambda a, b: np.bool_(bool(a) and bool(b)),
    "logical_or": lambda a, b: np.bool_(bool(a) or bool(b)),
    "logical_xor": lambda a, b: np.bool_(bool(a) != bool(b)),
    "logical_not": lambda a: np.bool_(not a),
}
_ROUNDINGS = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}
_TESTS = {"isnan": False, "isinf": False, "isfinite": True, "has_near_functions": False}
_BITS = ("popcount", "clz", "ctz", "reverse_bits", "mul_high")


def mathematics(name: str, values: list[Any]) -> Any:
    """A mathematical function, computed as the lowering does."""
    if name in OPERATORS:
        return numbers.binary(OPERATORS[name], *values)
    if name in ("negative", "positive", "bitwise_invert"):
        return numbers.unary({"negative": "-", "positive": "+"}.get(name, "~"), values[0])
    if name == "reciprocal":
        return numbers.binary("/", 1, values[0])
    vectors = [value for value in values if isinstance(value, Vector)]
    if vectors:
        count = len(vectors[0])
        rows = [[v[at] if isinstance(v, Vector) else v for v in values] for at in range(count)]
        return numbers.vector([mathematics(name, row) for row in rows])
    if name in COMPARISONS:
        return numbers.compare(COMPARISONS[name], *values)
    if name in _LOGIC:
        return _LOGIC[name](*values)
    if name in _EXACT:
        return _EXACT[name](*values)
    return _simple(name, values)


def _simple(name: str, values: list[Any]) -> Any:
    if name not in ("abs", "minimum", "maximum", "sqrt", "fma", "clip", "signbit", *_BITS) and (
        name not in _ROUNDINGS and name not in _TESTS
    ):
        return numbers.run_library(name, values)
    if all(numbers.is_literal(value) for value in values) and name in ("abs", "minimum", "maximum"):
        return abs(values[0]) if name == "abs" else (min if name == "minimum" else max)(values)
    found, type = numbers.common(values)
    if name in _ROUNDINGS:
        return numbers.intrinsic(_ROUNDINGS[name], found, type) if type.is_float else found[0]
    if name in _TESTS:
        return numbers.intrinsic(name, found, type) if type.is_float else _TESTS[name]
    if name in _BITS:
        return numbers.intrinsic(name, found, type)
    if name == "abs":
        return found[0] if type.kind == "uint" else numbers.intrinsic("abs", found, type)
    if name == "signbit":
        if type.is_float:
            return numbers.intrinsic("signbit", found, type)
        return numbers.compare("<", found[0], 0)
    if name == "fma":
        if type.is_float:
            return numbers.intrinsic("fma", found, type)
        return numbers.binary("+", numbers.binary("*", found[0], found[1]), found[2])
    if name == "clip":
        above = numbers.intrinsic("max", [found[0], found[1]], type)
        return numbers.intrinsic("min", [above, found[2]], type)
    if name == "sqrt":
        return _sqrt(values[0])
    result = found[0]
    for value in found[1:]:
        result = numbers.intrinsic(name[:3], [result, value], type)
    return result


def _sqrt(x: Any) -> Any:
    (value,), type = numbers.floats([x])
    work = t.F32 if type in (t.F16, t.BF16) else type
    return numbers.cast(numbers.intrinsic("sqrt", [numbers.cast(value, work)], work), type)


def _sign(x: Any) -> Any:
    (value,), type = numbers.common([x])
    if value != value:
        return value
    return numbers.make(int(value > 0) - int(value < 0), type)


def _copysign(x: Any, y: Any) -> Any:
    (size, sign), type = numbers.floats([x, y])
    size = numbers.intrinsic("abs", [size], type)
    return numbers.unary("-", size) if numbers.intrinsic("signbit", [sign], type) else size


def _dot4(op: str) -> Callable[..., Any]:
    def compute(*values: Any) -> Any:
        words = [numbers.cast(numbers.typed(value), t.I32) for value in values]
        return numbers.intrinsic(op, words, t.I32)

    return compute


_EXACT: dict[str, Callable[..., Any]] = {
    "dot4_i8": _dot4("dot4_i8"),
    "dot4_u8": _dot4("dot4_u8"),
    "dot4_u8i8": _dot4("dot4_u8i8"),
    "sign": _sign,
    "copysign": _copysign,
    "square": lambda x: numbers.binary("*", *(numbers.common([x])[0] * 2)),
}


# --- Python's functions --------------------------------------------------------------------------


def _range(*bounds: Any) -> Any:
    """A range of typed integers."""
    kind = numbers.operand(bounds[0])
    for bound in bounds[1:]:
        kind = rules.common_type(kind, numbers.operand(bound))
    type = t.I32 if isinstance(kind, rules.Literal) or kind == t.BOOL else kind
    numbers_in = [int(bound) for bound in bounds]
    if len(numbers_in) == 3 and numbers_in[2] == 0:
        return iter(())
    return (numbers.make(at, type) for at in builtins.range(*numbers_in))


def _print(*parts: Any) -> None:
    builtins.print(*(shown(part) for part in parts))  # noqa: T201 - what the kernel asked for


def shown(part: Any) -> str:
    """A value as `print` writes it."""
    if isinstance(part, (tuple, Vector, Matrix)):
        items = [shown(item) for item in part]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return str(part)


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, KernelArray) else len(value)


class _Zipped:
    """`zip` or `enumerate`, and whether its loop is unrolled, so that its counters are literals."""

    def __init__(self, *parts: Any, strict: bool = False) -> None:
        self._parts = parts
        self.is_unrolled = any(
            isinstance(part, (tuple, Vector)) or getattr(part, "is_unrolled", False)
            for part in parts
        )

    def __iter__(self) -> Iterator[Any]:
        return zip(*self._parts, strict=False)


class _Enumerated(_Zipped):
    def __init__(self, items: Any, start: Any = 0) -> None:
        super().__init__(items)
        self._start = start

    def __iter__(self) -> Iterator[Any]:
        for at, item in enumerate(self._parts[0]):
            count = at if self.is_unrolled else np.int32(at)
            yield numbers.binary("+", self._start, count), item


def _sum(items: Any, *start: Any) -> Any:
    total, *others = [*start, *items] or [0]
    for each in others:
        total = numbers.binary("+", total, each)
    return total


def _items(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _equivalent(target: Any) -> Any:
    """What a function of Python, `math` or NumPy is in a kernel; None if it is nothing there."""
    if equivalent(target, 1) is None and equivalent(target, 2) is None:
        return None

    def run(*values: Any, **keywords: Any) -> Any:
        meant = equivalent(target, len(values))
        if isinstance(meant, DType):
            return numbers.cast(values[0], t.SCALARS[meant.short])
        if not keywords and all(map(numbers.is_literal, values)):
            return of_constants(target, values)
        if isinstance(meant, str):
            return numbers.binary(meant, *values)
        if isinstance(meant, LibraryFunction):
            return numbers.run_library(meant.name, list(values))
        if isinstance(meant, FunctionType):
            run = current_run()
            assert run is not None
            return run.call(meant, source_of(meant), values, keywords)
        return meant(*values)

    return run


PYTHON_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    builtins.print: _print,
    builtins.len: _length,
    builtins.sum: _sum,
    builtins.zip: _Zipped,
    builtins.enumerate: _Enumerated,
    builtins.min: lambda *values: mathematics("minimum", list(_items(values))),
    builtins.max: lambda *values: mathematics("maximum", list(_items(values))),
    builtins.int: lambda x: numbers.cast(x, t.I32),
    builtins.float: lambda x: numbers.cast(x, t.F32),
    builtins.bool: lambda x: numbers.cast(x, t.BOOL),
}


def known_function(target: Any) -> Any:
    """The function that a call in a kernel runs, for the Python object that it names."""
    if isinstance(target, FunctionType):
        if target.__module__.startswith(f"{_PACKAGE}.math"):
            return lambda *values: numbers.call_definition(target, list(values))
        if target.__module__ == f"{_PACKAGE}.fragment_methods":
            return lambda *values: fragments.run(target, *values)
        return target
    try:
        if target in FUNCTIONS:
            return lambda matrix: attribute(matrix, FUNCTIONS[target])()
        return PYTHON_FUNCTIONS.get(target) or _equivalent(target) or target
    except TypeError:
        return target

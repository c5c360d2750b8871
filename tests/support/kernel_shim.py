"""Runs functions of the kernel language on NumPy arrays, every operation rounded on its own.

A function's source is parsed, its statements are rewritten to work on whole arrays (`if` and
`while` become masks), and its names are bound to `Value`s instead of the kernel's builtins. So the
math library is tested without a compiler, and under the liberties that targets take: contraction,
sloppy division and square roots, flushed denormals (`Arithmetic`).

Types are checked as the kernel language does: f32 with f64, or i32 with u32, is an error.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.lang.builtins import BuiltinFunction
from treadle.lang.math.generic import Generic


@dataclass(frozen=True)
class Arithmetic:
    """What a target may do to floating point arithmetic."""

    contract: bool = False  # a*b + c is rounded once
    sloppy: bool = False  # division and square root are off by up to 2.5 ULP
    flush: bool = False  # denormals are zero, as operands and as results
    near: bool = False  # it has near functions, off by up to 1.5 ULP


EXACT = Arithmetic()
_current = [EXACT]


@contextlib.contextmanager
def arithmetic(mode: Arithmetic) -> Iterator[None]:
    """Compute in `mode` inside a `with` block."""
    _current.append(mode)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _current.pop()


WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.longdouble}
BITS = {4: np.uint32, 8: np.uint64}


class Value:
    """An array in a kernel. `product` is the unrounded product it came from, for contraction."""

    __slots__ = ("array", "product")
    __array_ufunc__ = None

    def __init__(self, array: Any, product: Any = None) -> None:
        self.array = np.asarray(array)
        self.product = product

    # --- arithmetic ---

    def __add__(self, other: Any) -> Value:
        return _add(self, other, 1)

    def __radd__(self, other: Any) -> Value:
        return _add(_lift(other, self), self, 1)

    def __sub__(self, other: Any) -> Value:
        return _add(self, other, -1)

    def __rsub__(self, other: Any) -> Value:
        return _add(_lift(other, self), self, -1)

    def __mul__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        if left.array.dtype in WIDER:
            wide = WIDER[left.array.dtype]
            product = left.array.astype(wide) * right.array.astype(wide)
            return Value(_settle(left.array * right.array), product)
        return Value(left.array * right.array)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        assert left.array.dtype.kind == "f", "integer / gives a float: not used here"
        return Value(_settle(_slop(left.array / right.array)))

    def __rtruediv__(self, other: Any) -> Value:
        return _lift(other, self) / self

    def __floordiv__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        assert left.array.dtype.kind in "iu"
        return Value(
            np.where(right.array == 0, 0, left.array // np.where(right.array == 0, 1, right.array))
        )

    def __mod__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        if left.array.dtype.kind == "f":
            return Value(_settle(np.mod(left.array, right.array)))
        return Value(
            np.where(right.array == 0, 0, left.array % np.where(right.array == 0, 1, right.array))
        )

    def __neg__(self) -> Value:
        return Value(-self.array, None if self.product is None else -self.product)

    # --- bits ---

    def __and__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        return Value(left.array & right.array)

    def __or__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        return Value(left.array | right.array)

    def __xor__(self, other: Any) -> Value:
        left, right = _pair(self, other)
        return Value(left.array ^ right.array)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Value:
        return Value(~self.array)

    def __lshift__(self, other: Any) -> Value:
        return _shift(self, other, np.left_shift)

    def __rshift__(self, other: Any) -> Value:
        return _shift(self, other, np.right_shift)

    # --- comparisons ---

    def __lt__(self, other: Any) -> Value:
        return _compare(np.less, self, other)

    def __le__(self, other: Any) -> Value:
        return _compare(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Value:
        return _compare(np.greater, self, other)

    def __ge__(self, other: Any) -> Value:
        return _compare(np.greater_equal, self, other)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return _compare(np.equal, self, other)

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return _compare(np.not_equal, self, other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("a mask has no truth value: the rewriting missed a condition")


def _lift(other: Any, like: Value) -> Value:
    """A literal takes the other operand's type, and has to fit it."""
    if isinstance(other, Value):
        return other
    if isinstance(other, float):
        assert like.array.dtype.kind == "f", f"float literal {other} beside {like.array.dtype}"
    return Value(np.asarray(other, dtype=like.array.dtype))


def _pair(left: Any, right: Any) -> tuple[Value, Value]:
    left, right = (_lift(left, right), right) if not isinstance(left, Value) else (left, right)
    right = _lift(right, left)
    if left.array.dtype != right.array.dtype:
        raise TypeError(f"{left.array.dtype} and {right.array.dtype} do not mix")
    return left, right


def _settle(array: Any) -> Any:
    """What is left of a result where denormals are flushed."""
    array = np.asarray(array)
    if _current[-1].flush and array.dtype.kind == "f":
        tiny = np.abs(array) < np.finfo(array.dtype).tiny
        return np.where(tiny, np.copysign(array.dtype.type(0), array), array)
    return array


def _fma(a: Any, b: Any, c: Any) -> Value:
    """a * b + c with one rounding: in more bits than the product of the library's operands has."""
    x, y, z = (np.asarray(v.array if isinstance(v, Value) else v) for v in (a, b, c))
    type = next(v.dtype for v in (x, z, y) if v.ndim)
    return Value(_settle((x.astype(np.longdouble) * y + z).astype(type)))


def _has_near_functions(x: Value) -> Value:
    return Value(np.full(x.array.shape, _current[-1].near and x.array.dtype == np.float32))


def _near(function: Callable[[Any], Any]) -> Callable[[Value], Value]:
    """Off by one unit in the last place from the nearest number, or by none, each element in its
    own reproducible way."""

    def near(x: Value) -> Value:
        nearest = function(x.array.astype(np.float64)).astype(np.float32)
        steps = ((x.array.view(np.uint32) * np.uint32(2654435761)) >> np.uint32(7)) % np.uint32(3)
        moved = (nearest.view(np.uint32) + steps - np.uint32(1)).view(np.float32)
        usual = np.isfinite(nearest) & (np.abs(nearest) > np.finfo(np.float32).tiny * 8)
        return Value(np.where(usual & (nearest != 1), moved, nearest))

    return near


def _slop(array: Any) -> Any:
    """Off by up to two units in the last place, each element in its own reproducible way."""
    array = np.asarray(array)
    if not _current[-1].sloppy:
        return array
    unsigned = BITS[array.dtype.itemsize]
    bits = array.view(unsigned)
    steps = ((bits * unsigned(2654435761)) >> unsigned(7)) % unsigned(5)
    moved = (bits + steps - unsigned(2)).view(array.dtype)
    return np.where(
        np.isfinite(array) & np.isfinite(moved) & (np.abs(array) > np.finfo(array.dtype).tiny * 8),
        moved,
        array,
    )


def _add(left: Any, right: Any, sign: int) -> Value:
    left, right = _pair(left, right)
    if left.array.dtype.kind == "f" and _current[-1].contract:
        wide = WIDER[left.array.dtype]
        if left.product is not None:
            total = left.product + sign * right.array.astype(wide)
            return Value(_settle(total.astype(left.array.dtype)))
        if right.product is not None:
            total = left.array.astype(wide) + sign * right.product
            return Value(_settle(total.astype(left.array.dtype)))
    return Value(_settle(left.array + right.array if sign > 0 else left.array - right.array))


def _shift(left: Value, right: Any, operation: Any) -> Value:
    right = _lift(right, left)
    if right.array.dtype != left.array.dtype:
        raise TypeError(f"{left.array.dtype} shifted by {right.array.dtype}")
    width = left.array.dtype.itemsize * 8
    amount = right.array
    outside = amount >= width
    shifted = operation(left.array, np.where(outside, 0, amount))
    rest = (
        left.array >> (width - 1)
        if operation is np.right_shift and left.array.dtype.kind == "i"
        else 0
    )
    return Value(np.where(outside, rest, shifted).astype(left.array.dtype))


def _compare(operation: Any, left: Any, right: Any) -> Value:
    left, right = _pair(left, right)
    return Value(operation(_settle(left.array), _settle(right.array)))


class Dtype:
    """`td.f32`: a cast."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, value: Any) -> Value:
        if not isinstance(value, Value):
            if isinstance(value, int):
                value = (
                    value & (2 ** (8 * self.dtype.itemsize) - 1)
                    if self.dtype.kind == "u"
                    else value
                )
            return Value(np.asarray(value, dtype=self.dtype))
        array = value.array
        if array.dtype.kind == "f" and self.dtype.kind in "iu":
            info = np.iinfo(self.dtype)
            whole = np.trunc(np.where(np.isnan(array), 0, array)).astype(np.longdouble)
            inside = np.clip(whole, info.min, info.max)
            return Value(inside.astype(self.dtype))
        return Value(_settle(array.astype(self.dtype)))


def _unary(function: Callable[[Any], Any]) -> Callable[[Value], Value]:
    return lambda x: Value(_settle(function(x.array)))


def _where(condition: Value, if_true: Any, if_false: Any) -> Value:
    if isinstance(condition, bool):
        return if_true if condition else if_false
    assert condition.array.dtype == bool
    if not isinstance(if_true, Value) and not isinstance(if_false, Value):
        kind = np.float32 if isinstance(if_true, float) else np.int32
        if_true = Value(np.asarray(if_true, kind))
    if_true, if_false = _pair(if_true, if_false)
    return Value(np.where(condition.array, if_true.array, if_false.array))


def _bitcast(value: Value, dtype: Dtype) -> Value:
    array = np.array(np.atleast_1d(value.array))
    return Value(array.view(dtype.dtype).reshape(value.array.shape))


def _mul_high(left: Value, right: Value) -> Value:
    left, right = _pair(left, right)
    if left.array.dtype == np.uint32:
        wide = left.array.astype(np.uint64) * right.array.astype(np.uint64)
        return Value((wide >> np.uint64(32)).astype(np.uint32))
    assert left.array.dtype == np.uint64
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a1, a0, b1, b0 = left.array >> half, left.array & low, right.array >> half, right.array & low
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return Value(a1 * b1 + (middle >> half) + (other >> half))


def _clz(value: Value) -> Value:
    array = value.array
    width = array.dtype.itemsize * 8
    count = np.zeros(array.shape, np.int64)
    seen = np.zeros(array.shape, bool)
    for bit in range(width - 1, -1, -1):
        seen |= ((array >> array.dtype.type(bit)) & array.dtype.type(1)) != 0
        count += ~seen
    return Value(count.astype(np.int32))


def _minmax(function: Any) -> Callable[[Any, Any], Value]:
    def run(left: Any, right: Any) -> Value:
        left, right = _pair(left, right)
        return Value(function(left.array, right.array))

    return run


NAMES: dict[str, Any] = {
    "f32": Dtype(np.float32), "f64": Dtype(np.float64),
    "i32": Dtype(np.int32), "u32": Dtype(np.uint32),
    "i64": Dtype(np.int64), "u64": Dtype(np.uint64), "bool": Dtype(np.bool_),
    "where": _where, "bitcast": _bitcast, "mul_high": _mul_high, "clz": _clz,
    "abs": _unary(np.abs), "floor": _unary(np.floor), "ceil": _unary(np.ceil),
    "trunc": _unary(np.trunc), "round": _unary(np.rint),
    "sqrt": lambda x: Value(_settle(_slop(np.sqrt(x.array)))), "fma": _fma,
    "minimum": _minmax(np.minimum), "maximum": _minmax(np.maximum),
    "copysign": _minmax(np.copysign), "sign": _unary(np.sign),
    "clip": lambda x, low, high: Value(np.clip(x.array, _lift(low, x).array, _lift(high, x).array)),
    "isnan": lambda x: Value(np.isnan(x.array)), "isinf": lambda x: Value(np.isinf(x.array)),
    "isfinite": lambda x: Value(np.isfinite(x.array)),
    "signbit": lambda x: Value(np.signbit(x.array)),
    "has_near_functions": _has_near_functions, "near_exp2": _near(np.exp2),
    "near_reciprocal": _near(np.reciprocal),
    "static_range": range,
}  # fmt: skip
NAMES["vec4"] = {
    NAMES["u32"]: lambda *parts: types.SimpleNamespace(**dict(zip("xyzw", parts, strict=True)))
}


class _Language:
    """What stands behind `td.` in the library's functions."""

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(
                f"the shim does not know td.{name}: add it to NAMES in {__name__}, or write the "
                f"function with {', '.join(NAMES)}"
            )
        return NAMES[name]


class _Rewrite(ast.NodeTransformer):
    """Statements on numbers to statements on arrays."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        result = node.values[0]
        for value in node.values[1:]:
            result = ast.BinOp(result, operator, value)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Invert(), node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _call("_where", node.test, node.body, node.orelse)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        self.generic_visit(node)
        mask = f"_mask_{node.lineno}"
        result: list[ast.stmt] = [_assign(mask, node.test)]
        result += _masked(node.body, ast.Name(mask, ast.Load()))
        return result + _masked(node.orelse, ast.UnaryOp(ast.Invert(), ast.Name(mask, ast.Load())))

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        mask = f"_mask_{node.lineno}"
        test = _assign(mask, node.test)
        body = [*_masked(node.body, ast.Name(mask, ast.Load())), test]
        return [test, ast.While(_call("_any", ast.Name(mask, ast.Load())), body, [])]


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _masked(body: list[ast.stmt], mask: ast.expr) -> list[ast.stmt]:
    """Assignments that take place where `mask` holds. Every name must have a value before."""
    result: list[ast.stmt] = []
    for statement in body:
        assert isinstance(statement, ast.Assign), ast.dump(statement)
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        if target.id.startswith("_mask_"):
            result.append(_assign(target.id, ast.BinOp(statement.value, ast.BitAnd(), mask)))
        else:
            old = ast.Name(target.id, ast.Load())
            result.append(_assign(target.id, _call("_where", mask, statement.value, old)))
    return result


def _called(function: types.FunctionType) -> Callable[..., Value]:
    """The function, rewritten when it is first called (functions of a module see each other)."""
    return lambda *arguments: vectorized(function)(*arguments)


_compiled: dict[types.FunctionType, Callable[..., Value]] = {}


def vectorized(function: types.FunctionType) -> Callable[..., Value]:
    """`function` of the kernel language as a function of `Value`s."""
    if function in _compiled:
        return _compiled[function]
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    definition.returns = None
    for argument in definition.args.args:
        argument.annotation = None
    _Rewrite().visit(definition)
    ast.fix_missing_locations(tree)
    names = dict(function.__globals__)
    namespace: dict[str, Any] = {
        "td": _Language(),
        "_where": _where,
        "_any": lambda mask: bool(mask.array.any()),
    }
    for name, value in names.items():
        if isinstance(value, types.FunctionType) and value.__module__.startswith(
            "treadle.lang.math"
        ):
            namespace[name] = _called(value)
        elif isinstance(value, Generic):
            versions = {width: _called(getattr(value, width)) for width in value.widths}
            namespace[name] = types.SimpleNamespace(**versions)
        elif isinstance(value, DType):
            namespace[name] = NAMES[value.short]
        elif isinstance(value, BuiltinFunction):
            namespace[name] = NAMES[value.name]
        elif isinstance(value, (int, float, tuple)):
            namespace[name] = value
    exec(compile(tree, inspect.getfile(function), "exec"), namespace)
    _compiled[function] = namespace[definition.name]
    return _compiled[function]


def run(function: types.FunctionType, *arrays: Any, mode: Arithmetic = EXACT) -> Any:
    """The function's results for arrays of arguments, as an array."""
    with arithmetic(mode):
        result = vectorized(function)(*(Value(_settle(array)) for array in arrays))
        return np.broadcast_to(result.array, np.broadcast_shapes(*(np.shape(a) for a in arrays)))

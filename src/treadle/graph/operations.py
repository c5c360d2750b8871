"""The elementwise operations: what each becomes in IR.

Operands have the types that the array library has made them have; a few operations are IR nodes,
the others functions of the kernel language, lowered once for the types they meet. A function's IR
is a tuple of functions, callees first, of which the last is the one to call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import FunctionType
from typing import Any

from treadle import lang
from treadle.core.dtypes import DType
from treadle.graph.complex_operations import COMPLEX_DIRECT, complex_definition
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import BF16, BOOL, F16, F32, F64, SCALARS, Scalar, Type, Vector
from treadle.lang.math import array_functions, bits, distributions, draws, inverse_error
from treadle.lang.source import function_from_text, source_of

Direct = Callable[..., n.Expression]
_COMPLEX = {"complex64": Vector(SCALARS["f32"], 2), "complex128": Vector(SCALARS["f64"], 2)}


def ir_type(dtype: DType) -> Type:
    """The IR type of an element. A complex number is a pair."""
    return _COMPLEX.get(dtype.name) or SCALARS[dtype.short]


# --- operations that are IR nodes ----------------------------------------------------------------


def _binary(op: str) -> Direct:
    return lambda x, y: ir.binary(op, x, y)


def _unary(op: str) -> Direct:
    return lambda x: n.Unary(op, x, x.type)


def _intrinsic(op: str) -> Direct:
    return lambda x, *others: ir.intrinsic(op, x, *others)


def _rounding(op: str) -> Direct:
    return lambda x: ir.intrinsic(op, x) if x.type.is_float else x


def _test(op: str, of_integer: bool) -> Direct:
    constant = n.Constant(of_integer, BOOL)
    return lambda x: ir.intrinsic(op, x) if x.type.is_float else constant


def _magnitude(x: n.Expression) -> n.Expression:
    assert isinstance(x.type, Scalar)
    return ir.intrinsic("abs", x) if x.type.is_signed else x


def _negative(x: n.Expression) -> n.Expression:
    return n.Unary("neg", x, x.type)


def _root(x: n.Expression) -> n.Expression:
    if x.type in (F16, BF16):
        return ir.cast(ir.intrinsic("sqrt", ir.cast(x, F32)), x.type)
    return ir.intrinsic("sqrt", x)


DIRECT: dict[str, Direct] = {
    "add": _binary("add"), "subtract": _binary("sub"), "multiply": _binary("mul"),
    "divide": _binary("div"), "remainder": _binary("mod"),
    "equal": _binary("eq"), "not_equal": _binary("ne"), "less": _binary("lt"),
    "less_equal": _binary("le"), "greater": _binary("gt"), "greater_equal": _binary("ge"),
    "bitwise_and": _binary("and"), "bitwise_or": _binary("or"), "bitwise_xor": _binary("xor"),
    "bitwise_left_shift": _binary("shl"), "bitwise_right_shift": _binary("shr"),
    "logical_and": _binary("and"), "logical_or": _binary("or"), "logical_xor": _binary("xor"),
    "logical_not": _unary("not"), "bitwise_invert": _unary("invert"), "negative": _negative,
    "abs": _magnitude, "sqrt": _root,
    "floor": _rounding("floor"), "ceil": _rounding("ceil"), "trunc": _rounding("trunc"),
    "round": _rounding("rint"),
    "minimum": _intrinsic("min"), "maximum": _intrinsic("max"),
    "isnan": _test("isnan", False), "isinf": _test("isinf", False),
    "isfinite": _test("isfinite", True),
    "where": lambda condition, x, y: n.Select(condition, x, y, x.type),
    "complex": lambda x, y: n.Construct((x, y), Vector(x.type, 2)),  # of two floats
}  # fmt: skip

# The cost of an operation relative to an addition. It decides whether a value is computed twice or
# stored, and bounds the size of a kernel. For a function it is about a fifth of the operations in
# its IR; an operation that is not in the table costs `_USUAL_COST`, and a test fails where that is
# far too little.
COSTS: dict[str, int] = dict.fromkeys(
    ("cast", "add", "subtract", "multiply", "negative", "abs", "where", "minimum", "maximum",
     "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
     "logical_or", "logical_not", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
     "square", "real", "imag", "complex"),
    1,
) | dict.fromkeys(("constant", "index", "view"), 0) | {"gather": 50, "join": 2} | {
    "bitwise_invert": 1, "bitwise_left_shift": 2, "bitwise_right_shift": 2,
    "sin": 40, "cos": 40, "tan": 45, "pow": 50, "lgamma": 60, "gamma": 70,
    "remainder": 20, "erf": 20, "erfc": 25, "erfinv": 30, "normcdf": 25, "logaddexp": 20,
    "atan2": 15, "angle": 15,
    "random_word": 20, "random_word_64": 20, "random_low": 20, "random_high": 20,
    "random_below": 25, "random_below_64": 25, "random_chance": 25,
    "random_normal": 45, "random_normal_64": 50, "exponential_f64": 15,
}  # fmt: skip
COSTS |= dict.fromkeys(array_functions.OPERATIONS, 100)
_USUAL_COST = 10
_COMPLEX_COSTS = {"divide": 30, "reciprocal": 30, "sqrt": 20, "sign": 20, "angle": 20, "abs": 10}
_COMPLEX_COST = 100  # of the other functions
_COMPLEX_DTYPES = ("c64", "c128")
_APPLIED_SHARE = 5  # parts of a user's function that cost as much as an addition


def cost_of(op: str, short: str = "f32", detail: Any = None) -> int:
    """The cost of an operation with a result of this dtype, relative to an addition."""
    if isinstance(detail, Applied):
        return detail.cost
    cost = COSTS.get(op, _USUAL_COST)
    if short in _COMPLEX_DTYPES:
        if op in _COMPLEX_COSTS:
            return _COMPLEX_COSTS[op]
        return 4 * cost if cost < _USUAL_COST else _COMPLEX_COST
    return cost


# --- operations that are functions of the kernel language ----------------------------------------


@dataclass(frozen=True, eq=False)
class Applied:
    """The detail of an operation "apply": a user's function as it was for operands of some types
    and for the constants that it captured then. One object for each of these, so that programs with
    it are equal."""

    name: str
    functions: tuple[n.Function, ...]  # callees first, the function itself last

    @cached_property
    def cost(self) -> int:
        """Its cost relative to an addition."""
        return max(size_of_functions(self.functions) // _APPLIED_SHARE, 1)

    def __repr__(self) -> str:
        return self.name


_WORK = (n.Unary, n.Binary, n.Select, n.Cast, n.Bitcast, n.Intrinsic, n.Load)


def size_of_functions(functions: Sequence[n.Function]) -> int:
    """The operations that the last of some functions is written with, those of its callees too."""
    sizes: dict[str, int] = {}
    for function in functions:
        size = 0
        for part in walk(function.body):
            if isinstance(part, n.Call):
                size += sizes[part.function]
            elif isinstance(part, _WORK):
                size += 1
        sizes[function.name] = size
    return sizes[functions[-1].name]


def direct_of(op: str, types: Sequence[Type]) -> Direct | None:
    """What makes an operation's IR nodes; None for a function of the kernel language."""
    return (COMPLEX_DIRECT if type(types[-1]) is Vector else DIRECT).get(op)


def definition_of(op: str, types: Sequence[Type]) -> FunctionType:
    """The function of the kernel language that computes an operation on operands of some types."""
    if type(types[-1]) is Vector:
        return complex_definition(op, types)
    if op == "careful_quotient":
        careful: FunctionType = vars(bits)[op]
        return careful
    if op == "normcdf":
        quick: FunctionType = inverse_error.quick_normcdf.version(
            "f64" if types[-1] is F64 else "f32"
        )
        return quick
    if op in array_functions.OPERATIONS:
        width = "f64" if types[-1] is F64 else "f32"
        special: FunctionType = array_functions.OPERATIONS[op].version(width)
        return special
    if op in DRAWS:
        found: FunctionType = vars(draws)[op]
        return found
    if op in DISTRIBUTIONS:
        name, _, width = op.rpartition("_")
        drawn: FunctionType = vars(distributions)[name].version(width)
        return drawn
    return _written(op, len(types))


# Functions of random numbers, in `lang.math.draws`. The first six operands of those that begin with
# "random" are two words each of the element's number, of the draw's number and of the seed.
DRAWS = frozenset({
    "random_word", "random_low", "random_high", "random_word_64", "random_below", "random_below_64",
    "random_chance", "random_normal", "random_normal_64", "unit_f32", "unit_f64", "interval_f32",
    "interval_f64", "exponential_f32", "exponential_f64",
})  # fmt: skip

# Those of `lang.math.distributions`, with the same operands. Their loops end when a number is
# accepted.
DISTRIBUTIONS = {
    f"{name}_{width}": cost
    for name, cost in {"random_gamma": 250, "random_log_gamma": 250, "random_poisson": 300,
                       "random_binomial": 400, "laplace": 15, "cauchy": 40}.items()
    for width in ("f32", "f64")
}  # fmt: skip
COSTS |= DISTRIBUTIONS

# Where an operation is not the kernel language's function of its name. In the Array API quotients
# by infinity are zeros, and those of infinity infinite: NumPy and the language have -1 and NaN.
_WRITTEN = {
    "pow": "x0 ** x1",
    "angle": "language.atan2(0.0, x0)",
    "floor_divide": "x0 / x1 if language.isinf(x0) or language.isinf(x1) else x0 // x1",
}


@cache
def _written(op: str, operands: int) -> FunctionType:
    """`def op(x0, …): return language.op(x0, …)`."""
    names = ", ".join(f"x{i}" for i in range(operands))
    value = _WRITTEN.get(op, f"language.{op}({names})")
    text = f"def {op}({names}):\n    return {value}\n"
    return function_from_text(text, None, {"language": lang})


@cache
def _lowered(definition: FunctionType, types: tuple[Type, ...]) -> tuple[n.Function, ...]:
    from treadle.lang.lower.standalone import lower_function  # the compiler: when needed

    return lower_function(definition, source_of(definition), types)


def functions_of(op: str, detail: Any, types: tuple[Type, ...]) -> tuple[n.Function, ...]:
    """The IR functions for an operation, callees first; the last one is the operation."""
    if isinstance(detail, Applied):
        return detail.functions
    return _lowered(definition_of(op, types), types)

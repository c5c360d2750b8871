"""The elementwise functions, and a table of the dtypes that they take and return.

Arrays are promoted to one dtype and broadcast to one shape; Python numbers take the arrays' dtype.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    integer_range,
    uint8,
)
from treadle.core.errors import DtypeError
from treadle.core.overriding import overridden
from treadle.graph.node import COPY, Node, constant
from treadle.graph.placeholders import within
from treadle.runtime import settings
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import composite
from treadle.tensor.conversions import as_python, cast, common_shape, device_of, is_number
from treadle.tensor.dtypes import (
    RANK,
    check_dtype,
    default_dtype,
    default_integer,
    promote,
    promote_scalar,
)
from treadle.tensor.elementwise_docstrings import document
from treadle.tensor.operands import as_nodes, matching_nodes, node_of, prepare
from treadle.tensor.precision import WIDENED, cast_argument, lower
from treadle.tensor.tensor import Tensor, from_node


class Rule(NamedTuple):
    """The dtypes that an elementwise function takes and returns.

    `kinds` are the kinds of the dtypes that it computes in. Integers and bools become float32 if it
    computes in floats only. `result`: "same" dtype, "bool", or "component" (of a complex dtype).
    """

    operands: int
    kinds: frozenset[str]
    result: str
    doc: str


_REAL = frozenset({"int", "uint", "float"})
_NUMERIC = _REAL | {"complex"}
_FLOAT = frozenset({"float", "complex"})
_REAL_FLOAT = frozenset({"float"})
_BITS = frozenset({"bool", "int", "uint"})
_INTEGER = frozenset({"int", "uint"})
_BOOL = frozenset({"bool"})
_ANY = _NUMERIC | _BOOL
_ORDERED = _REAL | _BOOL

RULES: dict[str, Rule] = {
    # name: operands, kinds it computes in, result, docstring
    "abs": Rule(1, _NUMERIC, "component", "The absolute value."),
    "acos": Rule(1, _FLOAT, "same", "The inverse cosine, in radians."),
    "acosh": Rule(1, _FLOAT, "same", "The inverse hyperbolic cosine."),
    "add": Rule(2, _ANY, "same", "x1 + x2."),
    "angle": Rule(1, _FLOAT, "component", "The angle of a complex number, in radians."),
    "asin": Rule(1, _FLOAT, "same", "The inverse sine, in radians."),
    "asinh": Rule(1, _FLOAT, "same", "The inverse hyperbolic sine."),
    "atan": Rule(1, _FLOAT, "same", "The inverse tangent, in radians."),
    "atan2": Rule(2, _REAL_FLOAT, "same", "The angle of the point (x2, x1), in radians."),
    "atanh": Rule(1, _FLOAT, "same", "The inverse hyperbolic tangent."),
    "bitwise_and": Rule(2, _BITS, "same", "x1 & x2, bit by bit."),
    "bitwise_invert": Rule(1, _BITS, "same", "Every bit flipped."),
    "bitwise_left_shift": Rule(2, _INTEGER, "same", "x1 << x2."),
    "bitwise_or": Rule(2, _BITS, "same", "x1 | x2, bit by bit."),
    "bitwise_right_shift": Rule(2, _INTEGER, "same", "x1 >> x2."),
    "bitwise_xor": Rule(2, _BITS, "same", "x1 ^ x2, bit by bit."),
    "cbrt": Rule(1, _REAL_FLOAT, "same", "The cube root."),
    "ceil": Rule(1, _REAL, "same", "The smallest integer that is not less."),
    "conj": Rule(1, _NUMERIC, "same", "The complex conjugate."),
    "copysign": Rule(2, _REAL_FLOAT, "same", "x1 with the sign of x2."),
    "cos": Rule(1, _FLOAT, "same", "The cosine of an angle in radians."),
    "cosh": Rule(1, _FLOAT, "same", "The hyperbolic cosine."),
    "divide": Rule(2, _FLOAT, "same", "x1 / x2; of integers in float32."),
    "equal": Rule(2, _ANY, "bool", "x1 == x2."),
    "erf": Rule(1, _REAL_FLOAT, "same", "The error function."),
    "erfc": Rule(1, _REAL_FLOAT, "same", "1 - erf(x)."),
    "erfinv": Rule(1, _REAL_FLOAT, "same", "The number whose erf is x; NaN if |x| > 1."),
    "exp": Rule(1, _FLOAT, "same", "e to the power of x."),
    "exp2": Rule(1, _FLOAT, "same", "2 to the power of x."),
    "expm1": Rule(1, _FLOAT, "same", "exp(x) - 1, exact for small x."),
    "floor": Rule(1, _REAL, "same", "The largest integer that is not greater."),
    "floor_divide": Rule(2, _REAL, "same", "x1 / x2, rounded down."),
    "gamma": Rule(1, _REAL_FLOAT, "same", "The gamma function."),
    "greater": Rule(2, _ORDERED, "bool", "x1 > x2."),
    "greater_equal": Rule(2, _ORDERED, "bool", "x1 >= x2."),
    "hypot": Rule(2, _REAL_FLOAT, "same", "sqrt(x1**2 + x2**2), without overflow."),
    "imag": Rule(1, frozenset({"complex"}), "component", "The imaginary part; 0 of real numbers."),
    "isfinite": Rule(1, _NUMERIC, "bool", "Whether it is neither infinite nor NaN."),
    "isinf": Rule(1, _NUMERIC, "bool", "Whether it is infinite."),
    "isnan": Rule(1, _NUMERIC, "bool", "Whether it is NaN."),
    "less": Rule(2, _ORDERED, "bool", "x1 < x2."),
    "less_equal": Rule(2, _ORDERED, "bool", "x1 <= x2."),
    "lgamma": Rule(1, _REAL_FLOAT, "same", "The logarithm of the gamma function's magnitude."),
    "log": Rule(1, _FLOAT, "same", "The natural logarithm."),
    "log10": Rule(1, _FLOAT, "same", "The logarithm to base 10."),
    "log1p": Rule(1, _FLOAT, "same", "log(1 + x), exact for small x."),
    "log2": Rule(1, _FLOAT, "same", "The logarithm to base 2."),
    "logaddexp": Rule(2, _FLOAT, "same", "log(exp(x1) + exp(x2)), without overflow."),
    "logical_and": Rule(2, _BOOL, "bool", "Whether both are true (not zero)."),
    "logical_not": Rule(1, _BOOL, "bool", "Whether it is false (zero)."),
    "logical_or": Rule(2, _BOOL, "bool", "Whether one is true (not zero)."),
    "logical_xor": Rule(2, _BOOL, "bool", "Whether exactly one is true (not zero)."),
    "maximum": Rule(2, _ORDERED, "same", "The greater one; NaN if one is NaN."),
    "minimum": Rule(2, _ORDERED, "same", "The smaller one; NaN if one is NaN."),
    "multiply": Rule(2, _ANY, "same", "x1 * x2."),
    "negative": Rule(1, _NUMERIC, "same", "-x."),
    "nextafter": Rule(2, _REAL_FLOAT, "same", "The number next to x1, towards x2."),
    "not_equal": Rule(2, _ANY, "bool", "x1 != x2."),
    "positive": Rule(1, _NUMERIC, "same", "x: a copy."),
    "pow": Rule(
        2,
        _NUMERIC,
        "same",
        "x1 to the power of x2. Of integers to a negative power the "
        "fraction is cut to an integer (1, -1 or 0); a negative number as x2, or one in a "
        "list or NumPy array, is a ValueError, and under TREADLE_CHECK=1 every one is.",
    ),
    "real": Rule(1, _NUMERIC, "component", "The real part."),
    "reciprocal": Rule(1, _FLOAT, "same", "1 / x."),
    "remainder": Rule(2, _REAL, "same", "The remainder of floor_divide; it has x2's sign."),
    "round": Rule(1, _NUMERIC, "same", "The nearest integer; halves go to the even one."),
    "rsqrt": Rule(1, _FLOAT, "same", "1 / sqrt(x)."),
    "sigmoid": Rule(1, _FLOAT, "same", "1 / (1 + exp(-x))."),
    "sign": Rule(1, _NUMERIC, "same", "-1, 0 or 1; of complex numbers x / abs(x)."),
    "signbit": Rule(1, _REAL_FLOAT, "bool", "Whether the sign bit is set (of -0.0, too)."),
    "sin": Rule(1, _FLOAT, "same", "The sine of an angle in radians."),
    "sinh": Rule(1, _FLOAT, "same", "The hyperbolic sine."),
    "sqrt": Rule(1, _FLOAT, "same", "The square root."),
    "square": Rule(1, _NUMERIC, "same", "x * x."),
    "subtract": Rule(2, _NUMERIC, "same", "x1 - x2."),
    "tan": Rule(1, _FLOAT, "same", "The tangent of an angle in radians."),
    "tanh": Rule(1, _FLOAT, "same", "The hyperbolic tangent."),
    "trunc": Rule(1, _REAL, "same", "The integer part."),
}

# For bools an addition is `or`, as in NumPy, and a product `and`; rounding and signs change
# nothing.
_OF_BOOLS = {"add": "logical_or", "multiply": "logical_and", "minimum": "logical_and",
             "maximum": "logical_or", "bitwise_and": "logical_and", "bitwise_or": "logical_or",
             "bitwise_xor": "logical_xor", "bitwise_invert": "logical_not",
             "equal": "equal", "not_equal": "not_equal",
             **dict.fromkeys(("abs", "ceil", "conj", "floor", "real", "round", "sign", "trunc"),
                             COPY)}  # fmt: skip
# Computed in the device's default integer for bools. (`-x` and `x1 - x2` of bools are refused, as
# by NumPy and PyTorch: use ~x and x1 ^ x2.)
_INTEGERS_OF_BOOLS = frozenset({"clip", "floor_divide", "pow", "remainder", "square"})
# Computed in small integers for bools; the results are bools.
_TESTS = frozenset({"less", "less_equal", "greater", "greater_equal", "isfinite", "isinf", "isnan"})


class _Plan(NamedTuple):
    """A function for operands of a dtype: the operation, the dtype it computes in, and the
    result's."""

    op: str
    dtype: DType
    given: DType


_plans: dict[tuple[str, str], _Plan] = {}


def _plan(name: str, dtype: DType) -> _Plan:
    known = _plans.get((name, dtype.name))
    if known is not None:
        return known
    rule = RULES[name]
    dtype, wanted = working_dtype(name, rule, dtype), dtype
    op = name
    if dtype is bool_:
        op = _OF_BOOLS.get(name, name)
        if name in _TESTS:
            dtype = uint8
    elif name == "positive" or (name in ("conj", "real") and dtype.kind != "complex"):
        op = COPY
    result = rule.result
    given = dtype if result == "same" else bool_ if result == "bool" else dtype.component
    known = _plans[name, wanted.name] = _Plan(op, dtype, given)
    return known


def apply(name: str, *operands: Any) -> Tensor:
    """An elementwise function by its name."""
    if name in WIDENED and lower.get() is not None:
        operands = tuple([cast_argument(name, value) for value in operands])
    if name != "pow":
        sources = matching_nodes(operands)
        if sources is not None:
            node = sources[0]
            if node.dtype is not bool_ or name not in _INTEGERS_OF_BOOLS:
                op, dtype, given = _plan(name, node.dtype)
                if dtype is node.dtype:
                    return from_node(Node(op, sources, node.shape, given, node.device))
        if name in _BEYOND and (known := _known(name, operands)) is not None:
            return known
    try:
        device, dtype, found = prepare(name, operands)
    except TypeError as error:
        return overridden(error, name, operands, {})  # type: ignore[no-any-return]
    if dtype is bool_ and name in _INTEGERS_OF_BOOLS:
        dtype = default_integer(device)
    op, dtype, given = _plan(name, dtype)
    check_dtype(dtype, device)
    shapes = [value.shape for value in found if type(value) is Node]
    shape = common_shape(name, shapes)
    if op == "pow":
        if dtype.kind == "int":
            _check_exponent(operands[1], found[1])
        if type(found[1]) is not Node and found[1] == 2:
            op = "square"
            del found[1]
    return from_node(Node(op, as_nodes(found, dtype, shape, device), shape, given, device))


# The result of a comparison with an integer outside the dtype's range: above it, and below it.
_BEYOND = {"equal": (False, False), "not_equal": (True, True), "less": (True, False),
           "less_equal": (True, False), "greater": (False, True),
           "greater_equal": (False, True)}  # fmt: skip


def _known(name: str, operands: tuple[Any, ...]) -> Tensor | None:
    """A comparison of a tensor of integers with a Python integer that its dtype does not hold: a
    constant, as in NumPy."""
    x, number = operands if type(operands[0]) is Tensor else operands[::-1]
    if type(x) is not Tensor or type(number) is not int:
        return None
    node = x._node
    if type(node.dtype) is not DType:
        return None
    dtype = default_integer(node.device) if node.dtype is bool_ else node.dtype
    if not dtype.is_integer:
        return None
    low, high = integer_range(dtype)
    if low <= number <= high:
        return None
    above = (number > high) is (x is operands[0])
    return from_node(constant(_BEYOND[name][not above], node.shape, bool_, node.device))


def _check_exponent(given: Any, found: Any) -> None:
    """ValueError for an exponent of integers that is known to be negative. Exponents in tensors are
    checked under TREADLE_CHECK=1."""
    if type(found) is not Node:
        lowest = found
    elif settings.check and found.size and within.get() is None:
        lowest = from_node(found).numpy().min()
    elif type(given) is not Tensor and isinstance(given, (np.ndarray, list, tuple)) and found.size:
        lowest = np.asarray(given).min()
    else:
        return
    if lowest < 0:
        raise ValueError(
            f"pow: integers to the power {lowest} are fractions: make floats of them, as in "
            f"x.to(td.float32) ** {lowest}"
        )


def working_dtype(name: str, rule: Rule, dtype: DType) -> DType:
    """The dtype in which a function computes operands of a dtype. DtypeError if there is none."""
    kinds = rule.kinds
    if dtype.kind in kinds or (dtype is bool_ and (name in _OF_BOOLS or name in _TESTS)):
        return dtype
    if kinds is _BOOL:
        return bool_
    if dtype.kind in ("bool", "int", "uint") and "float" in kinds and "int" not in kinds:
        return float32
    raise DtypeError(
        f"{name} takes {', '.join(sorted(kinds))} dtypes, not {dtype}: cast with x.to(dtype)"
    )


def _function(name: str, rule: Rule) -> Callable[..., Tensor]:
    function: Any
    if rule.operands == 1:

        def function(x: ArrayLike, /) -> Tensor:
            return apply(name, x)
    else:

        def function(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
            return apply(name, x1, x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _document(name)
    return function  # type: ignore[no-any-return]


def _document(name: str) -> str:
    """The docstring of a function of the table."""
    rule = RULES[name]
    of_bools = "bool" if name in _OF_BOOLS or name in _TESTS else ""
    if name in _INTEGERS_OF_BOOLS:
        of_bools = "int"
    return document(name, rule.doc, rule.operands, rule.kinds, of_bools, rule.result)


def imag(x: ArrayLike, /) -> Tensor:  # noqa: D103 - its docstring is in the table
    if type(x) is Tensor and x.dtype.kind == "complex":  # the usual case
        return apply("imag", x)
    device, dtype, (node,) = prepare("imag", (x,))
    if dtype.kind == "complex":
        return apply("imag", x)
    return from_node(constant(dtype(0).item(), node.shape, dtype, device))


imag.__doc__ = _document("imag")


def round(x: ArrayLike, /, decimals: int = 0) -> Tensor:
    """X rounded to a number of decimals (negative: to the left of the point); halves are rounded to
    even.

    >>> import treadle as td
    >>> td.round(td.asarray([1.25, 2.5], device="cpu")).tolist()
    [1.0, 2.0]
    >>> td.round(td.asarray([1.25, 26.0], device="cpu"), decimals=-1).tolist()
    [0.0, 30.0]
    """
    places = operator.index(decimals)
    if not places:
        return apply("round", x)
    device, dtype, found = prepare("round", (x,))
    if dtype.kind not in ("float", "complex"):
        if places > 0:
            return apply("round", x)
        raise DtypeError(
            f"round: decimals={places} of {dtype}: cast to a floating dtype before, and back"
        )
    work = float32 if dtype in (float16, bfloat16) else dtype
    most = 38 if work.component is float32 else 308
    if abs(places) > most:
        raise ValueError(f"round: decimals of {dtype} are from {-most} to {most}, not {places}")
    shape = found[0].shape if type(found[0]) is Node else ()
    values = from_node(cast(as_nodes(found, dtype, shape, device)[0], work))
    scale = 10.0 ** abs(places)
    if places < 0:
        made = apply("multiply", apply("round", apply("divide", values, scale)), scale)
    else:
        made = apply("divide", apply("round", apply("multiply", values, scale)), scale)
        made = where(apply("isfinite", made), made, values)  # too large to have decimals
    return from_node(cast(made._node, dtype))


# --- functions with operands of different kinds
# -----------------------------------------------------


def normcdf(x: Tensor) -> Tensor:
    """The standard normal distribution function. What is small is as precise as the rest, where
    1 + erf(x / sqrt(2)) is not. For activations: it has no public name."""
    if x.dtype.kind == "complex":
        raise DtypeError(f"the normal distribution function takes real numbers, not {x.dtype}")
    wide = x if x.dtype in (float32, float64) else x.to(float32)
    node = wide._node
    found = from_node(Node("normcdf", (node,), node.shape, node.dtype, node.device))
    return found.to(x.dtype) if x.dtype.kind == "float" else found


def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 where the condition holds (is not zero), else x2. All three broadcast.

    >>> import treadle as td
    >>> x = td.asarray([-1.0, 2.0], device="cpu")
    >>> td.where(x > 0, x, 0).tolist()
    [0.0, 2.0]
    """
    device = device_of("where", (condition, x1, x2))
    found: list[Any]
    if is_number(x1) and is_number(x2):
        found = [as_python(x1), as_python(x2)]
        dtype = max((default_dtype(n, device) for n in found), key=lambda d: RANK[d.kind])
    else:
        _, dtype, found = prepare("where", (x1, x2), device)
    test = as_python(condition) if is_number(condition) else node_of("where", condition, device)
    operands = [test, *found]
    shape = common_shape("where", [v.shape for v in operands if type(v) is Node] or [()])
    sources = as_nodes(operands[:1], bool_, shape, device) + as_nodes(found, dtype, shape, device)
    return from_node(Node("where", sources, shape, dtype, device))


@composite
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """X limited to the range min … max, which are numbers, or arrays that broadcast with x. The
    dtype is x's, but integers with floating bounds become floats; NaN where x or a bound is NaN.

    >>> import treadle as td
    >>> td.clip(td.arange(5, device="cpu"), 1, max=3).tolist()
    [1, 1, 2, 3, 3]
    """
    device, dtype, found = prepare("clip", (x,), device_of("clip", (x, min, max)))
    bounds = [
        as_python(bound) if is_number(bound) else node_of("clip", bound, device)
        for bound in (min, max)
        if bound is not None
    ]
    if dtype is bool_ and {"bool"}.issuperset([_dtype_of(each, device).kind for each in bounds]):
        low = apply("logical_or", x, False if min is None else min)
        return low if max is None else apply("logical_and", low, max)
    if dtype is bool_:
        dtype = default_integer(device)
    if dtype.kind == "complex":
        raise DtypeError(
            f"clip: complex numbers have no order ({dtype}): clip abs(x), or the parts"
        )
    if dtype.is_integer and "float" in [_dtype_of(bound, device).kind for bound in bounds]:
        for bound in bounds:
            if type(bound) is Node:
                dtype = promote(dtype, bound.dtype)
            else:
                dtype = promote_scalar(dtype, bound, device)
        check_dtype(dtype, device)
    op = "clip"
    if min is None or max is None:
        op = COPY if min is max else "maximum" if max is None else "minimum"
    found += [_bound(bound, dtype, device) for bound in bounds]
    shape = common_shape("clip", [value.shape for value in found if type(value) is Node])
    return from_node(Node(op, as_nodes(found, dtype, shape, device), shape, dtype, device))


def _dtype_of(bound: Any, device: Device) -> DType:
    found: DType = bound.dtype if type(bound) is Node else default_dtype(bound, device)
    return found


def _bound(bound: Any, dtype: DType, device: Device) -> Any:
    """A bound of `clip`, limited to the range of the result's dtype."""
    own = _dtype_of(bound, device)
    if RANK[own.kind] > RANK[dtype.kind]:
        raise DtypeError(
            f"clip: x is {dtype}, and a bound is {own.kind}: cast x, or the bound, to the other's "
            "dtype"
        )
    if not (dtype.is_integer and own.is_integer) or (type(bound) is Node and own is dtype):
        return bound
    low, high = integer_range(dtype)
    if type(bound) is Node:
        return clip(from_node(bound), low, high)._node
    return low if bound < low else high if bound > high else bound


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: _function(name, rule) for name, rule in RULES.items()},
    "clip": clip,
    "imag": imag,
    "round": round,
    "where": where,
}
# Functions that the kernel language does not have.
angle, conj = FUNCTIONS["angle"], FUNCTIONS["conj"]
real = FUNCTIONS["real"]

# The docstrings made from the table, for doctest to find.
__test__ = {name: FUNCTIONS[name].__doc__ for name in RULES}

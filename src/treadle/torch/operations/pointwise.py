"""Functions of each element, and of each pair of elements, most of them from tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating
from treadle.torch.operations.operands import cast, common, in_floats, promoted, together

# PyTorch's name: treadle's.
_IN_FLOATS = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan",
    "atanh": "atanh", "cos": "cos", "cosh": "cosh", "erf": "erf", "erfc": "erfc",
    "erfinv": "erfinv", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "lgamma": "lgamma",
    "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "reciprocal": "reciprocal",
    "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt",
    "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_SAME = {
    "abs": "abs", "bitwise_not": "bitwise_invert", "ceil": "ceil", "floor": "floor",
    "logical_not": "logical_not", "trunc": "trunc", "isnan": "isnan",
    "isfinite": "isfinite", "isinf": "isinf",
}  # fmt: skip
_BINARY = {
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal",
    "lt": "less", "maximum": "maximum", "minimum": "minimum", "ne": "not_equal",
}  # fmt: skip
_BINARY_IN_FLOATS = {
    "atan2": "atan2", "copysign": "copysign", "hypot": "hypot", "logaddexp": "logaddexp",
    "nextafter": "nextafter",
}  # fmt: skip
_LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}


def _unary(name: str, theirs: str, call: Callable[[str, Inner], Inner]) -> Callable[..., Inner]:
    def function(input: Inner) -> Inner:
        return call(theirs, input)

    function.__name__, function.__doc__ = name, f"`td.{theirs}` of each element."
    return function


def _binary(
    name: str, theirs: str, call: Callable[..., Inner], **options: bool
) -> Callable[..., Inner]:
    def function(input: Any, other: Any) -> Inner:
        return call(theirs, input, other, **options)

    function.__name__, function.__doc__ = name, f"`td.{theirs}` of each pair of elements."
    return function


def _as_bools(name: str, one: Any, other: Any) -> Inner:
    """A function of truth values, of any dtypes."""
    one, other = (
        each.to(td.bool) if isinstance(each, Inner) else bool(each)
        for each in together(name, one, other)
    )
    return apply(name, one, other)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _unary(name, theirs, in_floats) for name, theirs in _IN_FLOATS.items()},
    **{name: _unary(name, theirs, apply) for name, theirs in _SAME.items()},
    **{name: _binary(name, theirs, promoted) for name, theirs in _BINARY.items()},
    **{
        name: _binary(name, theirs, promoted, floats=True)
        for name, theirs in _BINARY_IN_FLOATS.items()
    },
    **{name: _binary(name, theirs, _as_bools) for name, theirs in _LOGICAL.items()},
}


def _neg(input: Inner) -> Inner:
    """The negative of each element. RuntimeError for bools."""
    if input.dtype is td.bool:
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported: use ~x")
    return apply("negative", input)


FUNCTIONS["neg"] = _neg


def positive(input: Inner) -> Inner:
    """The tensor itself. RuntimeError for bools."""
    if input.dtype is td.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def square(input: Inner) -> Inner:
    """Input * input; of bools in int64."""
    return apply("square", input.to(td.int64) if input.dtype is td.bool else input)


def sign(input: Inner) -> Inner:
    """-1, 0 or 1, of NaN 0. RuntimeError for complex numbers, whose `sgn` there is."""
    if input.dtype.is_complex:
        raise RuntimeError("sign(): complex tensors are not supported: use torch.sgn")
    found = apply("sign", input)
    return td.where(input == input, found, 0) if input.dtype.kind == "float" else found


def sgn(input: Inner) -> Inner:
    """-1, 0 or 1; of complex numbers their direction."""
    return apply("sign", input) if input.dtype.is_complex else sign(input)


def signbit(input: Inner) -> Inner:
    """Whether the sign is negative, of -0.0, too."""
    if input.dtype.kind == "float":
        return apply("signbit", input)
    return td.zeros_like(input, dtype=td.bool) if input.dtype is td.bool else input < 0


def isneginf(input: Inner) -> Inner:
    """Whether each element is -infinity."""
    return apply("equal", input, -math.inf) if input.dtype.kind == "float" else _none(input)


def isposinf(input: Inner) -> Inner:
    """Whether each element is infinity."""
    return apply("equal", input, math.inf) if input.dtype.kind == "float" else _none(input)


def isreal(input: Inner) -> Inner:
    """Whether the imaginary part of each element is 0."""
    if not input.dtype.is_complex:
        return td.ones_like(input, dtype=td.bool)
    return apply("equal", apply("imag", input), 0)


def _none(input: Inner) -> Inner:
    return td.zeros_like(input, dtype=td.bool)


def frac(input: Inner) -> Inner:
    """What is behind the point, with the sign of the element."""
    return input - apply("trunc", input)


def round(input: Inner, *, decimals: int = 0) -> Inner:
    """Rounded to a number of decimals, halves to the even neighbour."""
    return td.tensor.elementwise_functions.round(input, decimals)


def deg2rad(input: Inner) -> Inner:
    """Degrees as radians."""
    return cast(input, floating(input.dtype)) * (math.pi / 180)


def rad2deg(input: Inner) -> Inner:
    """Radians as degrees."""
    return cast(input, floating(input.dtype)) * (180 / math.pi)


def sinc(input: Inner) -> Inner:
    """sin(πx) / (πx), and 1 at 0."""
    input = cast(input, floating(input.dtype))
    is_zero = input == 0
    angle = td.where(is_zero, 1, input) * math.pi
    return td.where(is_zero, 1 + 0 * input, apply("sin", angle) / angle)


def logit(input: Inner, eps: float | None = None) -> Inner:
    """log(x / (1 - x)), of elements that are limited to eps … 1 - eps."""
    input = cast(input, floating(input.dtype))
    if eps is not None:
        input = td.tensor.elementwise_functions.clip(input, eps, 1 - eps)
    return apply("log", input / (1 - input))


def nan_to_num(
    input: Inner, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Inner:
    """NaN and infinite elements replaced by numbers."""
    return td.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)


def logaddexp2(input: Any, other: Any) -> Inner:
    """log2(2**input + 2**other)."""
    one, two = common("logaddexp2", input, other, floats=True)
    most = apply("maximum", one, two)
    least = apply("minimum", one, two)
    rest = apply("log1p", apply("exp2", least - most)) / math.log(2)
    return td.where(one == two, most + 1, most + rest)


def fmax(input: Any, other: Any) -> Inner:
    """The greater of each pair; what is not NaN if one is."""
    one, two = common("fmax", input, other)
    if one.dtype.kind != "float":
        return apply("maximum", one, two)
    return td.where((one >= two) | apply("isnan", two), one, two)


def fmin(input: Any, other: Any) -> Inner:
    """The smaller of each pair; what is not NaN if one is."""
    one, two = common("fmin", input, other)
    if one.dtype.kind != "float":
        return apply("minimum", one, two)
    return td.where((one <= two) | apply("isnan", two), one, two)


def heaviside(input: Inner, values: Inner) -> Inner:
    """0 for negative elements, `values` for 0, 1 for positive ones."""
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return td.where(input == 0, values, (input > 0).to(input.dtype))


def xlogy(input: Any, other: Any) -> Inner:
    """Input * log(other), and 0 where input is 0 (but for NaN)."""
    return _weighted_log("xlogy", "log", input, other)


def xlog1py(input: Any, other: Any) -> Inner:
    """Input * log1p(other), and 0 where input is 0 (but for NaN)."""
    return _weighted_log("xlog1py", "log1p", input, other)


def _weighted_log(name: str, log: str, input: Any, other: Any) -> Inner:
    one, two = common(name, input, other, floats=True)
    at_end = -1 if log == "log1p" else 0
    is_zero = apply("logical_and", _tensor(one == 0, two), _tensor(two <= at_end, one))
    safe = td.where(is_zero, 1, two)
    return td.where(is_zero, 0 * (one if isinstance(one, Inner) else safe), one * apply(log, safe))


def _tensor(value: Any, like: Any) -> Inner:
    return value if isinstance(value, Inner) else td.asarray(value, device=like.device)

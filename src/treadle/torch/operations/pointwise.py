"""Functions of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.operations.operands import in_floats, promoted

# PyTorch's name: treadle's.
_IN_FLOATS = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan",
    "atanh": "atanh", "cos": "cos", "cosh": "cosh", "erf": "erf", "erfc": "erfc", "exp": "exp",
    "exp2": "exp2", "expm1": "expm1", "log": "log", "log10": "log10", "log1p": "log1p",
    "log2": "log2", "reciprocal": "reciprocal", "rsqrt": "rsqrt", "sigmoid": "sigmoid",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_SAME = {
    "abs": "abs", "bitwise_not": "bitwise_invert", "ceil": "ceil", "floor": "floor",
    "logical_not": "logical_not", "neg": "negative", "square": "square", "trunc": "trunc",
    "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "signbit": "signbit",
}  # fmt: skip
_BINARY = {
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less",
    "maximum": "maximum", "minimum": "minimum", "mul": "multiply", "ne": "not_equal",
}  # fmt: skip


def _unary(name: str, theirs: str, call: Callable[[str, Inner], Inner]) -> Callable[..., Inner]:
    def function(input: Inner) -> Inner:
        return call(theirs, input)

    function.__name__, function.__doc__ = name, f"`td.{theirs}` of each element."
    return function


def _binary(name: str, theirs: str) -> Callable[..., Inner]:
    def function(input: Any, other: Any) -> Inner:
        return promoted(theirs, input, other)

    function.__name__, function.__doc__ = name, f"`td.{theirs}` of each pair of elements."
    return function


FUNCTIONS = {
    **{name: _unary(name, theirs, in_floats) for name, theirs in _IN_FLOATS.items()},
    **{name: _unary(name, theirs, apply) for name, theirs in _SAME.items()},
    **{name: _binary(name, theirs) for name, theirs in _BINARY.items()},
}


def add(input: Any, other: Any, *, alpha: Any = 1) -> Inner:
    """Input + alpha * other."""
    return promoted("add", input, other if alpha == 1 else mul(other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Inner:
    """Input - alpha * other."""
    return promoted("subtract", input, other if alpha == 1 else mul(other, alpha))


def mul(input: Any, other: Any) -> Any:
    """Input * other."""
    if not isinstance(input, Inner) and not isinstance(other, Inner):
        return input * other
    return promoted("multiply", input, other)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Inner:
    """Input / other, in floating numbers; "trunc" and "floor" round the quotient."""
    if rounding_mode is None:
        return promoted("divide", input, other, floats=True)
    if rounding_mode == "floor":
        return promoted("floor_divide", input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"{rounding_mode!r}"
        )
    quotient = promoted("floor_divide", input, other)
    if not quotient.dtype.kind == "float":
        exact = promoted("multiply", quotient, other)
        return td.where((quotient < 0) & (exact != input), quotient + 1, quotient)
    return td.trunc(promoted("divide", input, other, floats=True))

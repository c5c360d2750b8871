"""Derivatives of elementwise operations: one rule for each operand.

A rule has the result's gradient g, and takes x, y and z (the operands) and out (the result) as far
as it names them. Where an operation has no derivative, at a corner, it is PyTorch's choice: 0 for
abs at 0, one half each for equal operands of maximum.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.graph.node import CONSTANT
from treadle.tensor.creation import zeros_like
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.special import digamma
from treadle.tensor.tensor import Tensor

_cos, _sin, _cosh, _sinh = (FUNCTIONS[name] for name in ("cos", "sin", "cosh", "sinh"))
_exp, _log, _sqrt, _sign = (FUNCTIONS[name] for name in ("exp", "log", "sqrt", "sign"))
_where, _square, _sigmoid = FUNCTIONS["where"], FUNCTIONS["square"], FUNCTIONS["sigmoid"]
_abs, _real, _imag = FUNCTIONS["abs"], FUNCTIONS["real"], FUNCTIONS["imag"]
_reciprocal, _pow, _round = FUNCTIONS["reciprocal"], FUNCTIONS["pow"], FUNCTIONS["round"]


def conj(x: Tensor) -> Tensor:
    """The conjugate; x itself if it is real."""
    return FUNCTIONS["conj"](x) if x.dtype.kind == "complex" else x


def _zero(g: Any) -> Any:
    """The gradient of step functions: 0 everywhere."""
    return zeros_like(g)


def normal_density(x: Tensor) -> Tensor:
    """exp(-x^2 / 2) / sqrt(2 pi), as precise where it is small: the square of what x is in steps of
    1/256 is exact, and the rest to x^2 is small."""
    near = _round(x * 256) * (1 / 256)
    return _exp(_square(near) * -0.5) * _exp((near - x) * (near + x) * 0.5) * _DENSITY_AT_0


_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


# --- powers --------------------------------------------------------------------------------------


def _pow_base(g: Any, x: Any, y: Any) -> Any:
    number = _number_of(y)
    if number is None:
        # 0 ** -1 must not be computed, not even in the branch of `where` that is not selected.
        base = _where(y == 0, 1, x)
        return g * conj(_where(y == 0, 0, y * _pow(base, y - 1)))
    if number == 0:
        return _zero(g)
    return g if number == 1 else g * conj(x ** (number - 1) * number)


def _number_of(y: Tensor) -> Any:
    """The value of all elements, if it is known to be the same."""
    node = y._node
    if node.op != CONSTANT:
        return None
    number = node.detail
    is_whole = isinstance(number, float) and number.is_integer() and abs(number) < _MOST_WHOLE
    return int(number) if is_whole else number


_MOST_WHOLE = 1 << 20


def _pow_exponent(g: Any, x: Any, y: Any, out: Any) -> Any:
    # 0 to a power has no logarithm; it stays 0 (or 1) for exponents nearby.
    flat = (x == 0) & (_real(y) >= 0)
    return g * conj(_where(flat, 0, out * _log(_where(flat, 1, x))))


# --- extremes and signs --------------------------------------------------------------------------


def _greater(g: Any, x: Any, y: Any) -> Any:
    return _where(x == y, g * 0.5, _where(x < y, 0, g))


def _less(g: Any, x: Any, y: Any) -> Any:
    return _where(x == y, g * 0.5, _where(x > y, 0, g))


def _of_abs(g: Any, x: Any) -> Any:
    return g * _sign(x)


def _of_sign(g: Any, x: Any) -> Any:
    """For a complex number: the component of g perpendicular to it."""
    if x.dtype.kind != "complex":
        return _zero(g)
    length = _abs(_where(x == 0, 1, x))
    direction = x / length
    across = g - direction * _real(g * conj(direction))
    return _where(x == 0, 0, across / length)


def _of_angle(g: Any, x: Any) -> Any:
    if x.dtype.kind != "complex":
        return _zero(g)
    real, imaginary = _real(x), _imag(x)
    square = _square(real) + _square(imaginary)
    turned = g / _where(square == 0, 1, square) * x * 1j
    return _where(square == 0, 0, turned)


def _distance(x: Any, y: Any) -> Any:
    """From the origin, squared; 1 at the origin, which has no direction."""
    square = _square(x) + _square(y)
    return _where(square == 0, 1, square)


def _copysign(g: Any, x: Any, y: Any) -> Any:
    turned = _not_equal(_signbit(x), _signbit(y))
    return _where(x == 0, 0, _where(turned, -g, g))


_not_equal, _signbit = FUNCTIONS["not_equal"], FUNCTIONS["signbit"]


def _clip(g: Any, x: Any, min: Any, max: Any) -> dict[str, Any]:
    """Of what is between the bounds, or on one of them; and of bounds where they are the result."""
    inside: Any = True
    if min is not None:
        inside = x >= min
    if max is not None:
        inside = inside & (x <= max)
    found = {"x": _where(inside, g, 0)}
    low: Any = None if min is None else x < min
    high: Any = None if max is None else x > max
    if low is not None and high is not None:
        low, high = low & (min < max), high | (max < min)
    if isinstance(min, Tensor):
        found["min"] = _where(low, g, 0)
    if isinstance(max, Tensor):
        found["max"] = _where(high, g, 0)
    return found


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

RULES: dict[str, tuple[Rule | None, ...]] = {
    "abs": (_of_abs,),
    "acos": (lambda g, x: -g * conj(_reciprocal(_sqrt(1 - _square(x)))),),
    "acosh": (lambda g, x: g * conj(_reciprocal(_sqrt(x - 1) * _sqrt(x + 1))),),
    "add": (lambda g: g, lambda g: g),
    "angle": (_of_angle,),
    "asin": (lambda g, x: g * conj(_reciprocal(_sqrt(1 - _square(x)))),),
    "asinh": (lambda g, x: g * conj(_reciprocal(_sqrt(_square(x) + 1))),),
    "atan": (lambda g, x: g * conj(_reciprocal(_square(x) + 1)),),
    "atan2": (
        lambda g, x, y: g * (y / _distance(x, y)),
        lambda g, x, y: -g * (x / _distance(x, y)),
    ),
    "atanh": (lambda g, x: g * conj(_reciprocal(1 - _square(x))),),
    "careful_quotient": (lambda g, y: g / y, lambda g, x, y: -g * (x / y / y)),
    "cast": (lambda g: g,),
    "cbrt": (lambda g, out: g / (3 * _square(out)),),
    "ceil": (_zero,),
    "complex": (lambda g: _real(g), lambda g: _imag(g)),
    "conj": (conj,),
    "copy": (lambda g: g,),
    "copysign": (_copysign, _zero),
    "cos": (lambda g, x: -g * conj(_sin(x)),),
    "cosh": (lambda g, x: g * conj(_sinh(x)),),
    "divide": (lambda g, y: g / conj(y), lambda g, x, y: -g * conj(x / y / y)),
    "erf": (lambda g, x: g * _TWO_OVER_ROOT_PI * _exp(-_square(x)),),
    "erfc": (lambda g, x: g * -_TWO_OVER_ROOT_PI * _exp(-_square(x)),),
    "erfinv": (lambda g, x, out: g / _TWO_OVER_ROOT_PI * _exp(_square(out)),),
    "exp": (lambda g, out: g * conj(out),),
    "exp2": (lambda g, out: g * conj(out * math.log(2)),),
    "expm1": (lambda g, out: g * conj(out + 1),),
    "floor": (_zero,),
    "floor_divide": (_zero, _zero),
    "gamma": (lambda g, x, out: g * out * digamma(x),),
    "hypot": (lambda g, x, out: g * (x / out), lambda g, y, out: g * (y / out)),
    "imag": (lambda g: g * 1j,),
    "lgamma": (lambda g, x: g * digamma(x),),
    "log": (lambda g, x: g / conj(x),),
    "log10": (lambda g, x: g / conj(x * math.log(10)),),
    "log1p": (lambda g, x: g / conj(x + 1),),
    "log2": (lambda g, x: g / conj(x * math.log(2)),),
    "logaddexp": (
        lambda g, x, y: g * conj(_sigmoid(x - y)),
        lambda g, x, y: g * conj(_sigmoid(y - x)),
    ),
    "maximum": (_greater, lambda g, x, y: _greater(g, y, x)),
    "minimum": (_less, lambda g, x, y: _less(g, y, x)),
    "multiply": (lambda g, y: g * conj(y), lambda g, x: g * conj(x)),
    "negative": (lambda g: -g,),
    "nextafter": (lambda g: g, _zero),
    "normcdf": (lambda g, x: g * normal_density(x),),
    "pow": (_pow_base, _pow_exponent),
    "real": (lambda g: g,),
    "reciprocal": (lambda g, out: -g * conj(_square(out)),),
    "remainder": (lambda g: g, lambda g, x, y: -g * FUNCTIONS["floor_divide"](x, y)),
    "round": (_zero,),
    "rsqrt": (lambda g, out: g * -0.5 * conj(out * _square(out)),),
    "sigmoid": (lambda g, out: g * conj(out * (1 - out)),),
    "sign": (_of_sign,),
    "sin": (lambda g, x: g * conj(_cos(x)),),
    "sinh": (lambda g, x: g * conj(_cosh(x)),),
    "sqrt": (lambda g, out: g / (2 * conj(out)),),
    "square": (lambda g, x: g * conj(x * 2),),
    "subtract": (lambda g: g, lambda g: -g),
    "tan": (lambda g, out: g * conj(_square(out) + 1),),
    "tanh": (lambda g, out: g * conj(1 - _square(out)),),
    "trunc": (_zero,),
    "where": (None, lambda g, x: _where(x, g, 0), lambda g, x: _where(x, 0, g)),
}

# Functions that are recorded as one.
FUNCTIONS_AS_ONE: dict[str, Rule] = {"clip": _clip}

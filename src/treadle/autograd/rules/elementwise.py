"""Derivatives of elementwise operations: one rule for each operand.

A rule has the result's gradient g, and takes x, y and z (the operands) and out (the result) as far
as it names them. Where an operation has no derivative, at a corner, it is PyTorch's choice: 0 for
abs at 0, one half each for equal operands of maximum.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.tensor import Tensor

_cos, _sin, _cosh, _sinh = (FUNCTIONS[name] for name in ("cos", "sin", "cosh", "sinh"))
_exp, _log, _sqrt, _sign = (FUNCTIONS[name] for name in ("exp", "log", "sqrt", "sign"))
_real, _imag = FUNCTIONS["real"], FUNCTIONS["imag"]
_where, _square, _sigmoid = FUNCTIONS["where"], FUNCTIONS["square"], FUNCTIONS["sigmoid"]
_reciprocal = FUNCTIONS["reciprocal"]
_floor = FUNCTIONS["floor"]


def conj(x: Tensor) -> Tensor:
    """The conjugate; x itself if it is real."""
    return FUNCTIONS["conj"](x) if x.dtype.kind == "complex" else x


def _zero(g: Any) -> Any:
    """Steps are flat."""
    return _where(True, 0, g)


def _abs(g: Any, x: Any) -> Any:
    return g * _sign(x)


def _pow_base(g: Any, x: Any, y: Any) -> Any:
    slope = y * FUNCTIONS["pow"](x, y - 1)
    return g * conj(_where(y == 0, 0, slope))


def _pow_exponent(g: Any, x: Any, y: Any, out: Any) -> Any:
    # 0 to a power has no logarithm; it stays 0 (or 1) for exponents nearby.
    flat = x == 0 if x.dtype.kind == "complex" else (x == 0) & (y >= 0)
    return g * conj(_where(flat, 0, out * _log(_where(flat, 1, x))))


def _greater(g: Any, x: Any, y: Any) -> Any:
    return _where(x == y, g * 0.5, _where(x > y, g, 0)).to(g.dtype)


def _less(g: Any, x: Any, y: Any) -> Any:
    return _where(x == y, g * 0.5, _where(x < y, g, 0)).to(g.dtype)


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

RULES: dict[str, tuple[Rule | None, ...]] = {
    "abs": (_abs,),
    "acos": (lambda g, x: -g * conj(_reciprocal(_sqrt(1 - _square(x)))),),
    "acosh": (lambda g, x: g * conj(_reciprocal(_sqrt(x - 1) * _sqrt(x + 1))),),
    "add": (lambda g: g, lambda g: g),
    "asin": (lambda g, x: g * conj(_reciprocal(_sqrt(1 - _square(x)))),),
    "asinh": (lambda g, x: g * conj(_reciprocal(_sqrt(_square(x) + 1))),),
    "atan": (lambda g, x: g * conj(_reciprocal(_square(x) + 1)),),
    "atan2": (
        lambda g, x, y: g * y / (_square(x) + _square(y)),
        lambda g, x, y: -g * x / (_square(x) + _square(y)),
    ),
    "atanh": (lambda g, x: g * conj(_reciprocal(1 - _square(x))),),
    "careful_quotient": (lambda g, y: g / y, lambda g, y, out: -g * out / y),
    "cast": (lambda g: g,),
    "cbrt": (lambda g, out: g / (3 * _square(out)),),
    "ceil": (_zero,),
    "complex": (lambda g: _real(g), lambda g: _imag(g)),
    "conj": (conj,),
    "copy": (lambda g: g,),
    "cos": (lambda g, x: -g * conj(_sin(x)),),
    "cosh": (lambda g, x: g * conj(_sinh(x)),),
    "divide": (lambda g, y: g / conj(y), lambda g, y, out: -g * conj(out / y)),
    "erf": (lambda g, x: g * _TWO_OVER_ROOT_PI * _exp(-_square(x)),),
    "erfc": (lambda g, x: g * -_TWO_OVER_ROOT_PI * _exp(-_square(x)),),
    "exp": (lambda g, out: g * conj(out),),
    "exp2": (lambda g, out: g * out * math.log(2),),
    "expm1": (lambda g, out: g * conj(out + 1),),
    "floor": (_zero,),
    "imag": (lambda g: g * 1j,),
    "log": (lambda g, x: g / conj(x),),
    "log10": (lambda g, x: g / conj(x * math.log(10)),),
    "log1p": (lambda g, x: g / conj(x + 1),),
    "log2": (lambda g, x: g / conj(x * math.log(2)),),
    "logaddexp": (lambda g, x, y: g * _sigmoid(x - y), lambda g, x, y: g * _sigmoid(y - x)),
    "maximum": (_greater, lambda g, x, y: _greater(g, y, x)),
    "minimum": (_less, lambda g, x, y: _less(g, y, x)),
    "multiply": (lambda g, y: g * conj(y), lambda g, x: g * conj(x)),
    "negative": (lambda g: -g,),
    "pow": (_pow_base, _pow_exponent),
    "real": (lambda g: g,),
    "reciprocal": (lambda g, out: -g * conj(_square(out)),),
    "remainder": (lambda g: g, lambda g, x, y: -g * _floor(x / y)),
    "round": (_zero,),
    "rsqrt": (lambda g, out: g * -0.5 * out * _square(out),),
    "sigmoid": (lambda g, out: g * (out * (1 - out)),),
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

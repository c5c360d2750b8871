"""Derivatives of the special functions that the math library has for arrays alone."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.rules.elementwise import normal_density
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.special import special
from treadle.tensor.tensor import Tensor

_exp, _log, _lgamma, _where = (FUNCTIONS[name] for name in ("exp", "log", "lgamma", "where"))
_abs, _sign = FUNCTIONS["abs"], FUNCTIONS["sign"]


def _first_over(x: Any, first: Tensor) -> Tensor:
    """I1(x) / x, and its limit at 0."""
    is_zero = x == 0
    return _where(is_zero, 0.5, first / _where(is_zero, 1.0, x))


def _i1(g: Any, x: Any, out: Any) -> Any:
    return g * (special("i0", x) - _first_over(x, out))


def _i0e(g: Any, x: Any, out: Any) -> Any:
    return g * (special("i1e", x) - _sign(x) * out)


def _i1e(g: Any, x: Any, out: Any) -> Any:
    return g * (special("i0e", x) - _first_over(x, out) - _sign(x) * out)


def _gamma_density(a: Any, x: Any) -> Tensor:
    """x^(a - 1) exp(-x) / gamma(a)."""
    return _exp((a - 1) * _log(x) - x - _lgamma(a))


def _erfcx(g: Any, x: Any, out: Any) -> Any:
    return g * (2 * x * out - 2 / math.sqrt(math.pi))


# Rules of operations, one for each operand; None where there is none.
RULES: dict[str, tuple[Any, ...]] = {
    "erfcx": (_erfcx,),
    "i0": (lambda g, x: g * special("i1", x),),
    "i0e": (_i0e,),
    "i1": (_i1,),
    "i1e": (_i1e,),
    "igamma": (None, lambda g, x, y: g * _gamma_density(x, y)),
    "igammac": (None, lambda g, x, y: -g * _gamma_density(x, y)),
    "log_ndtr": (lambda g, x: g * math.sqrt(2 / math.pi) / special("erfcx", x * -math.sqrt(0.5)),),
    "ndtri": (lambda g, out: g / normal_density(out),),
    "zeta": (None, lambda g, x, y: -g * x * special("zeta", x + 1, y)),
}

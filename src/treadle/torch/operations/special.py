"""`torch.special`: gamma, error and Bessel functions, orthogonal polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.elementwise_functions import normcdf
from treadle.tensor.special import special
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating
from treadle.torch.operations.operands import cast, common


def _floats(input: Inner) -> Inner:
    return cast(input, floating(input.dtype))


def _one(name: str) -> Callable[..., Inner]:
    def function(input: Inner) -> Inner:
        return special(name, _floats(input))

    function.__name__, function.__doc__ = name, f"The function {name} of each element."
    return function


def _pair(name: str, one: Any, other: Any) -> list[Inner]:
    """Two operands as tensors of one floating dtype."""
    found = common(name, one, other, floats=True)
    tensor = next(each for each in found if isinstance(each, Inner))
    return [
        each
        if isinstance(each, Inner)
        else td.asarray(each, dtype=tensor.dtype, device=tensor.device)
        for each in found
    ]


def _two(name: str) -> Callable[..., Inner]:
    def function(input: Any, other: Any) -> Inner:
        return special(name, *_pair(name, input, other))

    function.__name__, function.__doc__ = name, f"The function {name} of each pair of elements."
    return function


def _polynomial(name: str) -> Callable[..., Inner]:
    def function(input: Any, n: Any) -> Inner:
        return special(name, *_pair(name, input, n))

    function.__name__ = name
    function.__doc__ = f"The {name.replace('_', ' ')} of degree n, of each element."
    return function


def _shifted(name: str) -> Callable[..., Inner]:
    def function(input: Any, n: Any) -> Inner:
        x, degree = _pair(name, input, n)
        return special(name, 2 * x - 1, degree)

    function.__name__ = f"shifted_{name}"
    function.__doc__ = f"`{name}` of 2 x - 1."
    return function


_ONE = (
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx i0 i0e i1 i1e log_ndtr modified_bessel_k0 "
    "modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "spherical_bessel_j0"
)
_TWO = "igamma igammac zeta"
_CHEBYSHEV = [f"chebyshev_polynomial_{kind}" for kind in "tuvw"]
_POLYNOMIALS = [
    *_CHEBYSHEV, "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
]  # fmt: skip
FUNCTIONS = {
    **{name: _one(name) for name in _ONE.split()},
    **{name: _two(name) for name in _TWO.split()},
    **{name: _polynomial(name) for name in _POLYNOMIALS},
    **{f"shifted_{name}": _shifted(name) for name in _CHEBYSHEV},
}


def digamma(input: Inner) -> Inner:
    """The derivative of the logarithm of the gamma function."""
    return td.digamma(_floats(input))


def polygamma(n: int, input: Inner) -> Inner:
    """The n-th derivative of `digamma`."""
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, but got {n}")
    x = _floats(input)
    if n == 0:
        return td.digamma(x)
    order = td.full(x.shape, n + 1, dtype=x.dtype, device=x.device)
    factor = math.factorial(n) if n < 170 else math.inf
    return special("zeta", order, x) * float((-1) ** (n + 1) * factor)


def polygamma_of(input: Inner, n: int) -> Inner:
    """`x.polygamma(n)`."""
    return polygamma(n, input)


def mvlgamma(input: Inner, p: int) -> Inner:
    """The logarithm of the multivariate gamma function."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = _floats(input)
    found = td.lgamma(x) + p * (p - 1) / 4 * math.log(math.pi)
    for at in range(1, p):
        found = td.lgamma(x - at / 2) + found
    return found


def entr(input: Inner) -> Inner:
    """-x log(x): 0 at 0, -inf below."""
    x = _floats(input)
    inside = td.where(x > 0, x, 1)
    found = td.where(x > 0, -inside * td.log(inside), td.where(x == 0, 0.0, -math.inf))
    return td.where(td.isnan(x), x, found)


def xlog1py(input: Any, other: Any) -> Inner:
    """X log1p(y): 0 where x is 0, unless y is NaN."""
    x, y = _pair("xlog1py", input, other)
    is_zero = (x == 0) & (td.isnan(y) == False)  # noqa: E712 - a tensor
    return td.where(is_zero, 0, x * td.log1p(td.where(is_zero, 1, y)))


def ndtr(input: Inner) -> Inner:
    """The standard normal distribution function."""
    return normcdf(_floats(input))


def _softmax(name: str, of: Callable[..., Inner]) -> Callable[..., Inner]:
    def function(input: Inner, dim: int, dtype: DType | None = None) -> Inner:
        x = _floats(input) if dtype is None else input.to(dtype)
        return of(x, axis=dim) if x.shape else of(x.reshape(1), axis=0).reshape(())

    function.__name__, function.__doc__ = name, f"`td.nn.functional.{name}`."
    return function


softmax = _softmax("softmax", td.nn.functional.softmax)
log_softmax = _softmax("log_softmax", td.nn.functional.log_softmax)

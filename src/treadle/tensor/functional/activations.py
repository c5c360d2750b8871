"""Functions of each element by itself that layers end with."""

from __future__ import annotations

import math
from typing import Any

from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.functional.wide import wide
from treadle.tensor.tensor import Tensor

__all__ = ["elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "softplus", "swish", "tanh"]

_exp, _log1p, _expm1, _erf = (FUNCTIONS[name] for name in ("exp", "log1p", "expm1", "erf"))
_maximum = FUNCTIONS["maximum"]
_tanh, _sigmoid, _square = FUNCTIONS["tanh"], FUNCTIONS["sigmoid"], FUNCTIONS["square"]


def relu(input: Any) -> Tensor:
    """The larger of x and 0.

    >>> import treadle as td
    >>> td.nn.functional.relu(td.asarray([-1.0, 2.0], device="cpu")).tolist()
    [0.0, 2.0]
    """
    return _maximum(input, 0)


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Tensor:
    """x, or x * negative_slope where x is negative."""
    x, dtype = wide(input)
    return where(x > 0, x, x * negative_slope).to(dtype)


def elu(input: Any, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (exp(x) - 1) where x is negative."""
    x, dtype = wide(input)
    return where(x > 0, x, _expm1(x) * alpha).to(dtype)


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """The product of x and the probability that a standard normal number is less than x; by a
    formula with tanh if `approximate` is "tanh".

    >>> import treadle as td
    >>> round(td.nn.functional.gelu(td.asarray(1.0, device="cpu")).item(), 4)
    0.8413
    """
    x, dtype = wide(input)
    if approximate == "none":
        inner = _erf(x * math.sqrt(0.5))
    elif approximate == "tanh":
        inner = _tanh((x + _square(x) * x * 0.044715) * math.sqrt(2 / math.pi))
    else:
        raise ValueError(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
    return (x * 0.5 * (inner + 1)).to(dtype)


def silu(input: Any) -> Tensor:
    """The product x * sigmoid(x), which some call swish."""
    x, dtype = wide(input)
    return (x * _sigmoid(x)).to(dtype)


swish = silu


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold."""
    x, dtype = wide(input)
    scaled = x * beta
    return where(scaled > threshold, x, _log1p(_exp(scaled)) / beta).to(dtype)


def sigmoid(input: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _sigmoid(input)


def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent."""
    return _tanh(input)

"""Derivatives of activations, each one formula of the input or the result.

Where the result says enough, it is what is kept: it is in memory anyway, for whatever comes next,
and the input may never be. At corners the slope is PyTorch's choice.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.autograd.rules.elementwise import normal_density
from treadle.graph.history import recording
from treadle.tensor.elementwise_functions import FUNCTIONS, normcdf
from treadle.tensor.functional.activations import SELU_ALPHA, SELU_SCALE
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.reductions import sum as total

_abs, _exp, _tanh = (FUNCTIONS[name] for name in ("abs", "exp", "tanh"))
_conj, _real, _sign = FUNCTIONS["conj"], FUNCTIONS["real"], FUNCTIONS["sign"]
_square, _where, _sigmoid = FUNCTIONS["square"], FUNCTIONS["where"], FUNCTIONS["sigmoid"]


# --- piecewise linear ----------------------------------------------------------------------------


def _flat(slopes: Any, x: Any) -> Any:
    """Gradients that depend on x only by which piece it is on. Their own derivative by x is 0, and
    not nothing: optimizers with momentum step for the one and not for the other."""
    if not recording.get() or not x.requires_grad:
        return slopes
    return slopes + 0 * _where(x == x, _sign(x), 0)


def _relu(g: Any, out: Any) -> Any:
    return _flat(_where(out <= 0, 0, g), out)


def _relu6(g: Any, out: Any) -> Any:
    return _flat(_where((out <= 0) | (out >= 6), 0, g), out)


def _hardtanh(g: Any, out: Any, min_val: float, max_val: float) -> Any:
    return _flat(_where((out <= min_val) | (out >= max_val), 0, g), out)


def _hardsigmoid(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    return _where((x > -3) & (x < 3), g / 6, 0)


def _hardswish(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    return _where(x <= -3, 0, _where(x < 3, g * (x / 3 + 0.5), g))


def _hardshrink(g: Any, input: Any, lambd: float) -> Any:
    x, _ = widened(input)
    return _flat(_where(_abs(x) <= lambd, 0, g), x)


def _softshrink(g: Any, out: Any) -> Any:
    return _flat(_where(out == 0, 0, g), out)


def _threshold(g: Any, input: Any, threshold: float) -> Any:
    return _flat(_where(input <= threshold, 0, g), input)


def _leaky_relu_by_result(g: Any, out: Any, slope: float) -> Any:
    g, _ = widened(g)
    return _flat(_where(out > 0, g, g * slope), out)


def _leaky_relu_by_input(g: Any, input: Any, slope: Any) -> Any:
    g, _ = widened(g)
    return _flat(_where(input > 0, g, g * slope), input)


def _prelu(g: Any, input: Any, weight: Any) -> dict[str, Any]:
    (g, _), (x, _), (slopes, _) = widened(g), widened(input), widened(weight)
    channels = slopes.size != 1
    shape = (-1,) + (1,) * max(x.ndim - 2, 0) if channels else ()
    below = _where(x > 0, 0, g * x)
    others = tuple(axis for axis in range(x.ndim) if axis != 1 or not channels)
    of_weight = (total(below, axis=others) if others else below).reshape(slopes.shape)
    of_input = _flat(_where(x > 0, g, g * slopes.reshape(shape)), x)
    return {"input": of_input, "weight": of_weight}


# --- exponentials for what is negative -----------------------------------------------------------


def _elu(g: Any, input: Any, alpha: float) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    return _where(x <= 0, g * alpha * _below(x), g)


def _celu(g: Any, input: Any, alpha: float) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    return _where(x <= 0, g * _below(x / alpha), g)


def _selu(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    return _where(x <= 0, g * (SELU_SCALE * SELU_ALPHA) * _below(x), g * SELU_SCALE)


def _below(x: Any) -> Any:
    """exp(x), where x is negative: an overflow elsewhere would be NaN in a second derivative, which
    is 0 at 0, as PyTorch's is."""
    return _exp(_where(x >= 0, 0, x))


# --- smooth --------------------------------------------------------------------------------------


def _gelu(g: Any, input: Any, approximate: str) -> Any:
    x, _ = widened(input)
    g, _ = widened(g)
    if approximate == "none":
        return g * (normcdf(x) + x * normal_density(x))
    scale = 2 * math.sqrt(2 / math.pi)
    part = _sigmoid((x + _square(x) * x * 0.044715) * scale)
    slope = part * (1 - part) * (_square(x) * (3 * 0.044715) + 1) * scale
    return g * (part + x * slope)


def _silu(g: Any, input: Any) -> Any:
    x, _ = widened(input)
    g, _ = widened(g)
    part = _sigmoid(x)
    slope = part * (1 + x * (1 - part))
    return g * (_conj(slope) if x.dtype.kind == "complex" else slope)


def _mish(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    # With e = exp(x), tanh(log(1 + e)) is a quotient of polynomials, here in 1 / e for large x.
    small = _exp(_where(x > 0, -x, x))  # whose slope at 0 is 1, as that of |x| is not
    above, rising = 1 + 2 * small, small * (small + 2)
    part = _where(x > 0, above / (above + 2 * _square(small)), rising / (rising + 2))
    return g * (part + x * _sigmoid(x) * (1 - _square(part)))


def _softplus(g: Any, input: Any, beta: float, threshold: float) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    scaled = x * beta
    return _where(scaled > threshold, g, g * _sigmoid(scaled))


def _logsigmoid(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    return g * _sigmoid(-x)


def _softsign(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    size = _abs(x) + 1
    if x.dtype.kind == "complex":  # only g's part along x changes the magnitude
        return g / size - _sign(x) * (_real(g * _conj(x)) / _square(size))
    return g / _square(size)


def _tanhshrink(g: Any, input: Any) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    slope = _square(_tanh(x))
    return g * (_conj(slope) if x.dtype.kind == "complex" else slope)


RULES: dict[str, Rule] = {
    "celu": _celu,
    "elu": _elu,
    "gelu": _gelu,
    "hardshrink": _hardshrink,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "hardtanh": _hardtanh,
    "one_hot_largest": lambda g: g,
    "logsigmoid": _logsigmoid,
    "mish": _mish,
    "prelu": _prelu,
    "relu": _relu,
    "relu6": _relu6,
    "selu": _selu,
    "silu": _silu,
    "leaky_relu_by_result": _leaky_relu_by_result,
    "leaky_relu_by_input": _leaky_relu_by_input,
    "softplus": _softplus,
    "softshrink": _softshrink,
    "softsign": _softsign,
    "tanhshrink": _tanhshrink,
    "threshold": _threshold,
}

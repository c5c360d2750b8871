"""What neural networks compute, as `td.nn.functional` has it: PyTorch's names and defaults.

All are made of the array functions, lazily, so that they share kernels with what is around them.
float16 and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import ShapeError
from treadle.tensor.axes import takes_dim
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_HALVES = (float16, bfloat16)
_exp, _log, _log1p, _expm1 = (FUNCTIONS[name] for name in ("exp", "log", "log1p", "expm1"))
_erf, _rsqrt, _maximum = FUNCTIONS["erf"], FUNCTIONS["rsqrt"], FUNCTIONS["maximum"]
_tanh, _sigmoid, _square = FUNCTIONS["tanh"], FUNCTIONS["sigmoid"], FUNCTIONS["square"]


def _wide(x: Any) -> tuple[Tensor, DType]:
    """An operand as a tensor to compute with, and the dtype of the result."""
    tensor = x if type(x) is Tensor else asarray(x)
    own = tensor.dtype
    if own in _HALVES or own.kind in ("int", "uint"):
        return tensor.to(float32), own if own.kind == "float" else float32
    return tensor, own


# --- activations ---------------------------------------------------------------------------------


def relu(input: Any) -> Tensor:
    """The larger of x and 0.

    >>> import treadle as td
    >>> td.nn.functional.relu(td.asarray([-1.0, 2.0], device="cpu")).tolist()
    [0.0, 2.0]
    """
    return _maximum(input, 0)


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Tensor:
    """x, or x * negative_slope where x is negative."""
    x, dtype = _wide(input)
    return where(x > 0, x, x * negative_slope).to(dtype)


def elu(input: Any, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (exp(x) - 1) where x is negative."""
    x, dtype = _wide(input)
    return where(x > 0, x, _expm1(x) * alpha).to(dtype)


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """The product of x and the probability that a standard normal number is less than x; by a
    formula with tanh if `approximate` is "tanh".

    >>> import treadle as td
    >>> round(td.nn.functional.gelu(td.asarray(1.0, device="cpu")).item(), 4)
    0.8413
    """
    x, dtype = _wide(input)
    if approximate == "none":
        inner = _erf(x * math.sqrt(0.5))
    elif approximate == "tanh":
        inner = _tanh((x + _square(x) * x * 0.044715) * math.sqrt(2 / math.pi))
    else:
        raise ValueError(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
    return (x * 0.5 * (inner + 1)).to(dtype)


def silu(input: Any) -> Tensor:
    """The product x * sigmoid(x), which some call swish."""
    x, dtype = _wide(input)
    return (x * _sigmoid(x)).to(dtype)


swish = silu


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold."""
    x, dtype = _wide(input)
    scaled = x * beta
    return where(scaled > threshold, x, _log1p(_exp(scaled)) / beta).to(dtype)


def sigmoid(input: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _sigmoid(input)


def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent."""
    return _tanh(input)


# --- along an axis -------------------------------------------------------------------------------


@takes_dim
def softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """exp(x), divided by its sum along an axis. `dtype` casts x before.

    >>> import treadle as td
    >>> td.nn.functional.softmax(td.zeros((2, 4), device="cpu"), dim=1)[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    x, given = _wide(input if dtype is None else asarray(input).to(dtype=dtype))
    powers = _exp(x - largest(x, axis=axis, keepdims=True))
    return (powers / total(powers, axis=axis, keepdims=True)).to(given)


@takes_dim
def log_softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, precise where that is near 0."""
    x, given = _wide(input if dtype is None else asarray(input).to(dtype=dtype))
    below = x - largest(x, axis=axis, keepdims=True)
    return (below - _log(total(_exp(below), axis=axis, keepdims=True))).to(given)


def layer_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Tensor:
    """Give x mean 0 and variance 1 over its last axes, whose extents are `normalized_shape`; then
    multiply by `weight` and add `bias`, which have that shape.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 3.0], [5.0, 5.0]], device="cpu")
    >>> td.nn.functional.layer_norm(x, 2, eps=0.0)[0].tolist()
    [-1.0, 1.0]
    """
    x, dtype = _wide(input)
    one = isinstance(normalized_shape, int)
    wanted = (normalized_shape,) if one else tuple(normalized_shape)  # type: ignore[arg-type]
    if not wanted or x.shape[-len(wanted) :] != wanted:
        raise ShapeError(
            f"layer_norm: normalized_shape is {wanted}, which the last axes of a tensor of shape "
            f"{x.shape} do not have"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != wanted:
            raise ShapeError(f"layer_norm: {name} has shape {tuple(value.shape)}, not {wanted}")
    axes = tuple(range(-len(wanted), 0))
    centered = x - mean(x, axis=axes, keepdims=True)
    result = centered * _rsqrt(mean(_square(centered), axis=axes, keepdims=True) + eps)
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(dtype)


# What is a method of tensors, too: `x.softmax(axis=0)`.
METHODS: dict[str, Callable[..., Tensor]] = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "elu": elu,
    "gelu": gelu,
    "silu": silu,
    "softplus": softplus,
    "softmax": softmax,
    "log_softmax": log_softmax,
}

__all__ = [*METHODS, "layer_norm", "sigmoid", "swish", "tanh"]

"""Activation functions, which are elementwise, and GLUs, which take two halves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.axes import one_axis, takes_dim
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.elementwise_functions import FUNCTIONS, clip, normcdf, where
from treadle.tensor.functional.compute_dtype import may_write, widened
from treadle.tensor.functional.normalization import softmax
from treadle.tensor.generator import Generator
from treadle.tensor.operands import operand
from treadle.tensor.precision import cast_by_name
from treadle.tensor.random import exponential, uniform
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import argmax
from treadle.tensor.tensor import Tensor

__all__ = [
    "celu", "celu_", "elu", "elu_", "geglu", "gelu", "glu", "gumbel_softmax", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "logsigmoid",
    "mish", "prelu", "reglu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_",
    "sigmoid", "silu", "softmin", "softplus", "softshrink", "softsign", "swiglu", "swish", "tanh",
    "tanhshrink", "threshold", "threshold_",
]  # fmt: skip

_abs, _exp, _log = (FUNCTIONS[name] for name in ("abs", "exp", "log"))
_expm1, _log1p = FUNCTIONS["expm1"], FUNCTIONS["log1p"]
_maximum, _minimum = FUNCTIONS["maximum"], FUNCTIONS["minimum"]
_tanh, _sigmoid, _square = FUNCTIONS["tanh"], FUNCTIONS["sigmoid"], FUNCTIONS["square"]

# With these, mean 0 and variance 1 of the elements are preserved (Klambauer et al., 2017).
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


# --- piecewise linear at 0 -----------------------------------------------------------


@may_write
@composite
@as_one_node
def relu(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The larger of x and 0.

    >>> import treadle as td
    >>> td.nn.functional.relu(td.asarray([-1.0, 2.0], device="cpu")).tolist()
    [0.0, 2.0]
    """
    return _maximum(input, 0)


@may_write
@composite
@as_one_node
def relu6(input: ArrayLike, inplace: bool = False) -> Tensor:
    """x, limited to 0 … 6.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.relu6(x).tolist()]
    [0.0, 0.5, 3.0]
    """
    return clip(input, 0, 6)


@may_write
@composite
@as_one_node
def hardtanh(
    input: ArrayLike, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x, limited to min_val … max_val.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.hardtanh(x).tolist()]
    [-1.0, 0.5, 1.0]
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val={min_val} is greater than max_val={max_val}")
    if operand("hardtanh", input).dtype.is_integer:  # floating bounds need a floating dtype
        min_val, max_val = math.ceil(min_val), math.floor(max_val)
    return clip(input, min_val, max_val)


@may_write
def leaky_relu(input: ArrayLike, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, or x * negative_slope where x is negative.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.leaky_relu(x).tolist()]
    [-0.02, 0.5, 3.0]
    """
    if negative_slope < 0:
        return leaky_relu_by_input(input, negative_slope)
    return leaky_relu_by_result(input, negative_slope)


@composite
@as_one_node
def leaky_relu_by_result(input: ArrayLike, slope: float) -> Tensor:
    """`leaky_relu` with a positive slope: the result has the sign of x, which the derivative
    needs."""
    x, dtype = widened(input)
    return where(x > 0, x, x * slope).to(dtype)


@composite
@as_one_node
def leaky_relu_by_input(input: ArrayLike, slope: Any) -> Tensor:
    """`leaky_relu` with any slope, or with one for each element."""
    x, dtype = widened(input)
    return where(x > 0, x, x * slope).to(dtype)


@composite
@as_one_node
def prelu(input: ArrayLike, weight: ArrayLike) -> Tensor:
    """x, or x * weight where x is negative. `weight` has one element, or one for each channel (axis
    1).

    >>> import treadle as td
    >>> x = td.asarray([[-1.0, -1.0], [2.0, 2.0]], device="cpu")
    >>> td.nn.functional.prelu(x, td.asarray([0.5, 3.0], device="cpu")).tolist()
    [[-0.5, -3.0], [2.0, 2.0]]
    """
    x, dtype = widened(input)
    slopes, _ = widened(weight)
    if slopes.size != 1:
        channels = x.shape[1] if x.ndim > 1 else 1
        if slopes.shape != (channels,):
            raise ShapeError(
                f"prelu: a weight of shape {slopes.shape} does not fit an input of shape "
                f"{x.shape}: it has one element, or one for each of {channels} channels"
            )
        slopes = slopes.reshape((channels,) + (1,) * (x.ndim - 2))
    else:
        slopes = slopes.reshape(())
    return where(x > 0, x, x * slopes).to(dtype)


@may_write
def rrelu(
    input: ArrayLike,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`leaky_relu` with a slope between lower and upper: in training a random one for each element,
    drawn from `generator`, else their mean."""
    if not lower <= upper:
        raise ValueError(f"rrelu: lower={lower} must not be greater than upper={upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    x, _ = widened(input)
    slope = uniform(x.shape, lower, upper, dtype=x.dtype, device=x.device, generator=generator)
    return leaky_relu_by_input(input, slope)


@may_write
@composite
@as_one_node
def threshold(input: ArrayLike, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The elements above the threshold, and `value` in place of the others.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.threshold(x, 1.0, -1.0).tolist()]
    [-1.0, -1.0, 3.0]
    """
    x = operand("threshold", input)
    return where(x <= threshold, value, x).to(x.dtype)


# --- exponential for negative x ------------------------------------------------------------


@may_write
@composite
@as_one_node
def elu(input: ArrayLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x) - 1) where x is negative.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.elu(x).tolist()]
    [-0.865, 0.5, 3.0]
    """
    x, dtype = widened(input)
    return where(x > 0, x, _expm1(x) * alpha).to(dtype)


@may_write
@composite
@as_one_node
def celu(input: ArrayLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x / alpha) - 1) where x is negative: `elu` with slope 1 at 0.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.celu(x).tolist()]
    [-0.865, 0.5, 3.0]
    """
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0: x is divided by it")
    x, dtype = widened(input)
    return where(x > 0, x, _expm1(x / alpha) * alpha).to(dtype)


@may_write
@composite
@as_one_node
def selu(input: ArrayLike, inplace: bool = False) -> Tensor:
    """`elu` scaled so that mean 0 and variance 1 of the elements are preserved.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.selu(x).tolist()]
    [-1.52, 0.525, 3.152]
    """
    x, dtype = widened(input)
    below = _expm1(x) * (SELU_SCALE * SELU_ALPHA)
    return where(x > 0, x * SELU_SCALE, below).to(dtype)


# --- smooth ---------------------------------------------------------------------------------------


@composite
@as_one_node
def gelu(input: ArrayLike, approximate: str = "none") -> Tensor:
    """X times the standard normal distribution function of x; approximated by a formula with tanh
    if `approximate` is "tanh".

    >>> import treadle as td
    >>> round(td.nn.functional.gelu(td.asarray(1.0, device="cpu")).item(), 4)
    0.8413
    """
    x, dtype = widened(input)
    if approximate == "none":
        return (x * normcdf(x)).to(dtype)
    if approximate != "tanh":
        raise ValueError(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
    # (1 + tanh(y)) / 2, without its loss of precision far below 0
    part = _sigmoid((x + _square(x) * x * 0.044715) * (2 * math.sqrt(2 / math.pi)))
    return (x * part).to(dtype)


@may_write
@composite
@as_one_node
def silu(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The product x * sigmoid(x), also called swish.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.silu(x).tolist()]
    [-0.238, 0.311, 2.858]
    """
    x, dtype = widened(input)
    return (x * _sigmoid(x)).to(dtype)


swish = silu


@may_write
@composite
@as_one_node
def mish(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The product x * tanh(log(1 + exp(x))).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.mish(x).tolist()]
    [-0.253, 0.375, 2.987]
    """
    x, dtype = widened(input)
    return (x * _tanh(_softplus(x))).to(dtype)


@composite
@as_one_node
def softplus(input: ArrayLike, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.softplus(x).tolist()]
    [0.127, 0.974, 3.049]
    """
    x, dtype = widened(input)
    scaled = x * beta
    return where(scaled > threshold, x, _log1p(_exp(scaled)) / beta).to(dtype)


def _softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)) without overflow."""
    return _maximum(x, 0) + _log1p(_exp(-_abs(x)))


@composite
@as_one_node
def logsigmoid(input: ArrayLike) -> Tensor:
    """log(1 / (1 + exp(-x))), precise for large and very negative x.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.logsigmoid(x).tolist()]
    [-2.127, -0.474, -0.049]
    """
    x, dtype = widened(input)
    return (_minimum(x, 0) - _log1p(_exp(-_abs(x)))).to(dtype)


def sigmoid(input: ArrayLike) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.sigmoid(x).tolist()]
    [0.119, 0.622, 0.953]
    """
    return _sigmoid(input)


def tanh(input: ArrayLike) -> Tensor:
    """The hyperbolic tangent.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.tanh(x).tolist()]
    [-0.964, 0.462, 0.995]
    """
    return _tanh(input)


@composite
@as_one_node
def softsign(input: ArrayLike) -> Tensor:
    """The quotient x / (1 + abs(x)).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.softsign(x).tolist()]
    [-0.667, 0.333, 0.75]
    """
    x, dtype = widened(input)
    return (x / (_abs(x) + 1)).to(dtype)


# --- piecewise linear ---------------------------------------------------------------------------


@may_write
@composite
@as_one_node
def hardsigmoid(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The line x / 6 + 1 / 2, limited to 0 … 1.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.hardsigmoid(x).tolist()]
    [0.167, 0.583, 1.0]
    """
    x, dtype = widened(input)
    return (clip(x + 3, 0, 6) / 6).to(dtype)


@may_write
@composite
@as_one_node
def hardswish(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The product x * hardsigmoid(x).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.hardswish(x).tolist()]
    [-0.333, 0.292, 3.0]
    """
    x, dtype = widened(input)
    return (x * clip(x + 3, 0, 6) / 6).to(dtype)


@composite
@as_one_node
def hardshrink(input: ArrayLike, lambd: float = 0.5) -> Tensor:
    """x, or 0 where its magnitude is at most lambd.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.hardshrink(x).tolist()]
    [-2.0, 0.0, 3.0]
    """
    x, dtype = widened(input)
    return where(_abs(x) <= lambd, 0, x).to(dtype)


@composite
@as_one_node
def softshrink(input: ArrayLike, lambd: float = 0.5) -> Tensor:
    """Each x moved towards 0 by lambd, or 0 if its magnitude is less.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.softshrink(x).tolist()]
    [-1.5, 0.0, 2.5]
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd must not be negative, as {lambd} is")
    x, dtype = widened(input)
    return (x - clip(x, -lambd, lambd)).to(dtype)


@composite
@as_one_node
def tanhshrink(input: ArrayLike) -> Tensor:
    """The difference x - tanh(x).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.tanhshrink(x).tolist()]
    [-1.036, 0.038, 2.005]
    """
    x, dtype = widened(input)
    return (x - _tanh(x)).to(dtype)


# --- gated linear units ---------------------------------------------------------------------


@composite
@as_one_node
def gated(input: ArrayLike, name: str, axis: int, approximate: str = "none") -> Tensor:
    """One half of the input along an axis times what a function of `GATES` gives of the other."""
    x, dtype = widened(input)
    return GATES[name](*halves(name, x, axis), approximate).to(dtype)


def halves(name: str, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Both halves along an axis. ShapeError for an odd extent."""
    at = one_axis(name, axis, x.ndim)
    extent = x.shape[at]
    if extent % 2:
        raise ShapeError(f"{name}: axis {at} of shape {x.shape} has an odd extent")
    front = (slice(None),) * at
    return x[(*front, slice(extent // 2))], x[(*front, slice(extent // 2, None))]


GATES: dict[str, Callable[[Tensor, Tensor, str], Tensor]] = {
    "glu": lambda a, b, _: a * _sigmoid(b),
    "swiglu": lambda a, b, _: silu(a) * b,
    "geglu": lambda a, b, approximate: gelu(a, approximate) * b,
    "reglu": lambda a, b, _: relu(a) * b,
}


@takes_dim
def glu(input: ArrayLike, axis: int = -1) -> Tensor:
    """The product a * sigmoid(b), where a and b are the halves of the input along an axis.
    ShapeError for an odd extent.

    >>> import treadle as td
    >>> td.nn.functional.glu(td.asarray([3.0, 5.0, 0.0, 0.0], device="cpu")).tolist()
    [1.5, 2.5]
    """
    return gated(input, "glu", axis)


@takes_dim
def swiglu(input: ArrayLike, axis: int = -1) -> Tensor:
    """The product silu(a) * b, where a and b are the halves of the input along an axis (Shazeer,
    2020)."""
    return gated(input, "swiglu", axis)


@takes_dim
def geglu(input: ArrayLike, axis: int = -1, approximate: str = "none") -> Tensor:
    """The product gelu(a) * b, where a and b are the halves of the input along an axis."""
    return gated(input, "geglu", axis, approximate)


@takes_dim
def reglu(input: ArrayLike, axis: int = -1) -> Tensor:
    """The product relu(a) * b, where a and b are the halves of the input along an axis."""
    return gated(input, "reglu", axis)


# --- rows --------------------------------------------------------------------------------------


@cast_by_name
@takes_dim
def softmin(input: ArrayLike, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """`softmax` of -x.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> [round(y, 3) for y in td.nn.functional.softmin(x, axis=0).tolist()]
    [0.918, 0.075, 0.006]
    """
    x, given = widened(input)
    return softmax(-x, axis, dtype=given if dtype is None else dtype)


@takes_dim
def gumbel_softmax(
    logits: ArrayLike,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    axis: int = -1,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """A random softmax: noise of the Gumbel distribution, drawn from `generator`, is added to the
    logits, which are then divided by tau. With `hard` the largest element becomes 1 and the others
    0. `eps` has no effect, as in PyTorch.

    >>> import treadle as td
    >>> logits = td.asarray([[0.0, 50.0], [50.0, 0.0]], device="cpu")
    >>> td.nn.functional.gumbel_softmax(logits, hard=True).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    x, dtype = widened(logits)
    if dtype.kind != "float":
        raise DtypeError(f"gumbel_softmax takes floating dtypes, not {dtype}")
    at = one_axis("gumbel_softmax", axis, x.ndim)
    noise = -_log(exponential(x.shape, dtype=x.dtype, device=x.device, generator=generator))
    noisy = (x + noise) / tau
    if not hard:
        return softmax(noisy, at).to(dtype)
    # The derivative is that of the softmax, whose value it does not need.
    return one_hot_largest(softmax(noisy, at), noisy, at).to(dtype)


@composite
def one_hot_largest(soft: Tensor, noisy: Tensor, axis: int) -> Tensor:
    """1 at the largest element along an axis, else 0, with the gradient of `soft`
    (straight-through)."""
    places = arange(noisy.shape[axis], device=noisy.device)
    places = places.reshape((-1,) + (1,) * (noisy.ndim - axis - 1))
    return (argmax(noisy, axis=axis, keepdims=True) == places).to(soft.dtype)


# --- in place -------------------------------------------------------------------------------------


def relu_(input: Tensor) -> Tensor:
    """`relu`, written into the input."""
    return relu(input, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, written into the input."""
    return elu(input, alpha, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, written into the input."""
    return celu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """`selu`, written into the input."""
    return selu(input, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, written into the input."""
    return hardtanh(input, min_val, max_val, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, written into the input."""
    return leaky_relu(input, negative_slope, True)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu`, written into the input."""
    return rrelu(input, lower, upper, training, True)


_above = threshold  # since a parameter has the same name


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold`, written into the input."""
    return _above(input, threshold, value, True)

"""Standardization over some axes, the operation that all norms share and record.

Each is recorded as one operation, which keeps its input (in the input's own dtype), the factors and
given statistics, and nothing else that is as large as the input.
"""

from __future__ import annotations

from typing import Any

from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.reductions import mean
from treadle.tensor.tensor import Tensor

_rsqrt, _square = FUNCTIONS["rsqrt"], FUNCTIONS["square"]


@composite
@as_one_node
def standardized(
    input: Tensor,
    axes: tuple[int, ...],
    eps: float,
    scale: Any,
    shift: Any,
    average: Tensor | None = None,
    variance: Tensor | None = None,
) -> Tensor:
    """An input standardized to mean 0 and variance 1 over axes, times `scale`, plus `shift`, which
    broadcast. `average` and `variance` are its mean and variance over these axes, if known."""
    x, dtype = widened(input)
    centered = x - (mean(x, axis=axes, keepdims=True) if average is None else average)
    if variance is None:
        variance = mean(_square(centered), axis=axes, keepdims=True)
    return scaled(centered * _rsqrt(variance + eps), scale, shift).to(dtype)


@composite
@as_one_node
def standardized_channels(
    input: Tensor,
    eps: float,
    weight: Any,
    bias: Any,
    average: Tensor | None = None,
    variance: Tensor | None = None,
) -> Tensor:
    """`standardized` over all axes but the channels (axis 1), with a weight and bias for each."""
    scale, shift = (by_channel(value, input.ndim) for value in (weight, bias))
    axes = (0, *range(2, input.ndim))
    return standardized(input, axes, eps, scale, shift, average, variance)


def by_channel(value: Any, ndim: int) -> Any:
    """Values of channels, broadcast along axis 1."""
    return None if value is None else asarray(value).reshape((-1, *(1,) * (ndim - 2)))


@composite
@as_one_node
def scaled_to_rms_one(input: Tensor, axes: tuple[int, ...], eps: float, scale: Any) -> Tensor:
    """An input scaled to mean square 1 over axes, times `scale`."""
    x, dtype = widened(input)
    square = mean(_square(x), axis=axes, keepdims=True)
    return scaled(x * _rsqrt(square + eps), scale, None).to(dtype)


def scaled(x: Tensor, scale: Any, shift: Any) -> Tensor:
    """X times a factor plus a term, each if it is not None."""
    if scale is not None:
        x = x * scale
    return x if shift is None else x + shift

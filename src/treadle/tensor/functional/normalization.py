"""Softmax and normalization: layer, RMS, batch, instance and group norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph.history import recorded, recording
from treadle.graph.node import view_of
from treadle.graph.realize import realize
from treadle.graph.views import View, whole
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.assembly import concat
from treadle.tensor.axes import one_axis, takes_dim
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.dtypes import finfo
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import compute_dtypes, widened, widened_real
from treadle.tensor.functional.standardization import (
    by_channel,
    scaled,
    scaled_to_rms_one,
    standardized,
    standardized_channels,
)
from treadle.tensor.precision import cast_by_name
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, computed_soon, from_node

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "log_softmax",
    "rms_norm", "softmax",
]  # fmt: skip

_exp, _log, _rsqrt, _square = (FUNCTIONS[name] for name in ("exp", "log", "rsqrt", "square"))
_pow = FUNCTIONS["pow"]


# --- softmax -------------------------------------------------------------------------------------


@takes_dim
@composite
@as_one_node
def softmax(input: ArrayLike, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """exp(x), divided by its sum along an axis. With `dtype` x is cast first. Rows of only -inf,
    and rows with inf or NaN, become NaN, as in PyTorch.

    >>> import treadle as td
    >>> td.nn.functional.softmax(td.zeros((2, 4), device="cpu"), dim=1)[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    x, given = widened_real("softmax", input if dtype is None else asarray(input).to(dtype=dtype))
    if x.ndim == 0 or not x.size:
        return _of_single("softmax", x, axis, 1.0).to(given)
    powers = _exp(x - largest(x, axis=axis, keepdims=True))
    # The sum is from 1 to the number of elements, so its reciprocal, computed once a row, does not
    # overflow.
    return (powers * (1.0 / total(powers, axis=axis, keepdims=True))).to(given)


@takes_dim
@composite
@as_one_node
def log_softmax(input: ArrayLike, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of `softmax`, precise where the softmax is near 0.

    >>> import treadle as td
    >>> td.nn.functional.log_softmax(td.asarray([0.0, 200.0], device="cpu")).tolist()
    [-200.0, 0.0]
    """
    x, given = widened_real(
        "log_softmax", input if dtype is None else asarray(input).to(dtype=dtype)
    )
    if x.ndim == 0 or not x.size:
        return _of_single("log_softmax", x, axis, 0.0).to(given)
    below = x - largest(x, axis=axis, keepdims=True)
    return (below - _log(total(_exp(below), axis=axis, keepdims=True))).to(given)


def _of_single(name: str, x: Tensor, axis: int, value: float) -> Tensor:
    """The result for a tensor without axes, which is a row of one element, or for one without
    elements."""
    one_axis(name, axis, max(x.ndim, 1))
    return x - x + value


# --- over the last axes --------------------------------------------------------------------------


@cast_by_name
def layer_norm(
    input: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """X normalized to mean 0 and variance 1 over its last axes, whose extents are
    `normalized_shape`; then multiplied by `weight` and added to `bias`, which have that shape.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 3.0], [5.0, 5.0]], device="cpu")
    >>> td.nn.functional.layer_norm(x, 2, eps=0.0)[0].tolist()
    [-1.0, 1.0]
    """
    x = _floating("layer_norm", input)
    shape = _last_axes("layer_norm", x, normalized_shape)
    _check_shapes("layer_norm", shape, weight=weight, bias=bias)
    return standardized(x, tuple(range(-len(shape), 0)), eps, weight, bias)


@cast_by_name
def rms_norm(
    input: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float | None = None,
) -> Tensor:
    """X divided by its root mean square over its last axes, whose extents are `normalized_shape`;
    then multiplied by `weight`, which has that shape. By default `eps` is the distance from 1 to
    the next number in the dtype that is computed in.

    >>> import treadle as td
    >>> td.nn.functional.rms_norm(td.asarray([3.0, -3.0], device="cpu"), 2).tolist()
    [1.0, -1.0]
    """
    x = _floating("rms_norm", input)
    shape = _last_axes("rms_norm", x, normalized_shape)
    _check_shapes("rms_norm", shape, weight=weight)
    least = finfo(compute_dtypes(x.dtype)[0]).eps if eps is None else eps
    return scaled_to_rms_one(x, tuple(range(-len(shape), 0)), least, weight)


def _last_axes(name: str, x: Tensor, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    """`normalized_shape` as a tuple. ShapeError unless x has it."""
    if isinstance(normalized_shape, int):
        normalized_shape = (normalized_shape,)
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"{name}: normalized_shape is {shape}, which the last axes of a tensor of shape "
            f"{x.shape} do not have"
        )
    return shape


# --- over channels -------------------------------------------------------------------------------


def batch_norm(
    input: ArrayLike,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """X with each channel (axis 1) normalized to mean 0 and variance 1 over all other axes; then
    multiplied by `weight` and added to `bias`, which have one element for each channel.

    With `training` mean and variance are those of x, and the running ones, if given, are updated in
    place with `momentum`, the variance with that of a sample (divided by the number of elements
    minus 1). Otherwise the running ones are used.

    >>> import treadle as td
    >>> x = td.asarray([[1.0], [3.0]], device="cpu")
    >>> so_far, variance = td.zeros(1, device="cpu"), td.ones(1, device="cpu")
    >>> td.nn.functional.batch_norm(x, so_far, variance, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    >>> so_far.tolist(), td.nn.functional.batch_norm(x, so_far, variance, eps=0.0).shape
    ([0.20000000298023224], (2, 1))
    """
    x = _floating("batch_norm", input)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: x has shape {x.shape}: it needs a batch and channels")
    running = _running("batch_norm", x, running_mean, running_var)
    _check_shapes("batch_norm", x.shape[1:2], weight=weight, bias=bias)
    axes = (0, *range(2, x.ndim))
    if not training:
        if running is None:
            raise ValueError(
                "batch_norm without training needs running_mean and running_var, since it does "
                "not use the mean and variance of x"
            )
        return _moved(x, *running, eps, weight, bias)
    count = math.prod(x.shape[axis] for axis in axes)
    if count == 1:
        raise ShapeError(
            f"batch_norm: channels of one value have no variance to train with: x has shape "
            f"{x.shape}"
        )
    if not x.size:
        return standardized_channels(x, eps, weight, bias)
    waits = _is_kept(x, weight, bias)
    average, variance = _statistics(x, axes, running, momentum, False, waits)
    return standardized_channels(x, eps, weight, bias, average, variance)


def instance_norm(
    input: ArrayLike,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` over the axes after the channels only, for each batch element separately. The
    running mean and variance are updated with the averages over the batch; without
    `use_input_stats` they are used instead of x's own.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 3.0]], [[10.0, 30.0]]], device="cpu")
    >>> td.nn.functional.instance_norm(x, eps=0.0).tolist()
    [[[-1.0, 1.0]], [[-1.0, 1.0]]]
    """
    x = _floating("instance_norm", input)
    if x.ndim < 3:
        raise ShapeError(
            f"instance_norm: x has shape {x.shape}: it needs a batch, channels and axes behind them"
        )
    running = _running("instance_norm", x, running_mean, running_var)
    _check_shapes("instance_norm", x.shape[1:2], weight=weight, bias=bias)
    if not use_input_stats:
        if running is None:
            raise ValueError(
                "instance_norm without use_input_stats needs running_mean and running_var"
            )
        return _moved(x, *running, eps, weight, bias)
    axes, count = tuple(range(2, x.ndim)), math.prod(x.shape[2:])
    if count == 1:
        raise ShapeError(
            f"instance_norm: channels of one value have no variance: x has shape {x.shape}"
        )
    scale, shift = (by_channel(value, x.ndim) for value in (weight, bias))
    if running is None or not x.size:
        return standardized(x, axes, eps, scale, shift)
    waits = _is_kept(x, weight, bias)
    average, variance = _statistics(x, axes, running, momentum, True, waits)
    return standardized(x, axes, eps, scale, shift, average, variance)


@cast_by_name
def group_norm(
    input: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """X with each of `num_groups` groups of neighbouring channels (axis 1) normalized to mean 0 and
    variance 1, in each batch element; then multiplied by `weight` and added to `bias`, which have
    one element for each channel.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 3.0, 10.0, 30.0]], device="cpu")
    >>> td.nn.functional.group_norm(x, 2, eps=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    x = _floating("group_norm", input)
    if x.ndim < 2:
        raise ShapeError(f"group_norm: x has shape {x.shape}: it needs a batch and channels")
    channels = x.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"group_norm: {channels} channels (x has shape {x.shape}) are not {num_groups} groups "
            "of as many each"
        )
    _check_shapes("group_norm", (channels,), weight=weight, bias=bias)
    groups = (num_groups, channels // num_groups)
    if x.size and math.prod(x.shape[2:]) * groups[1] * x.shape[0] == 1:
        raise ShapeError(
            f"group_norm: groups of one value have no variance: x has shape {x.shape}, "
            f"num_groups is {num_groups}"
        )
    split = x.reshape((x.shape[0], *groups, *x.shape[2:]))
    scale, shift = (
        None if value is None else asarray(value).reshape((*groups, *(1,) * (x.ndim - 2)))
        for value in (weight, bias)
    )
    made = standardized(split, tuple(range(2, split.ndim)), eps, scale, shift)
    return made.reshape(x.shape)


def local_response_norm(
    input: ArrayLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """X divided by (k + alpha * m) ** beta, where m is the mean square of the `size` channels (axis
    1) around each one; channels beyond the ends count as 0.

    >>> import treadle as td
    >>> x = td.ones((1, 3, 1), device="cpu")
    >>> td.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=1.0).flatten().tolist()
    [0.5, 0.3333333432674408, 0.3333333432674408]
    """
    x, dtype = widened_real("local_response_norm", input)
    if x.ndim < 3:
        raise ShapeError(
            f"local_response_norm: x has shape {x.shape}: it needs a batch, channels and axes "
            "behind them"
        )
    if size < 1:
        raise ValueError(f"local_response_norm: size is {size}: it needs a channel at least")
    if not x.size:
        return x.to(dtype)
    ends = [(x.shape[0], extent, *x.shape[2:]) for extent in (size // 2, (size - 1) // 2)]
    before, behind = (zeros(shape, dtype=x.dtype, device=x.device) for shape in ends)
    padded = concat([before, _square(x), behind], axis=1)
    # A view with the neighbours of each channel along a new axis.
    steps = whole(padded.shape).strides
    windows = View((*x.shape, size), (*steps, steps[1]), 0)
    near = mean(from_node(view_of(padded._node, windows)), axis=-1)
    return (x / _pow(near * alpha + k, beta)).to(dtype)


# --- shared parts -----------------------------------------------------------------------------


def _floating(name: str, x: Any) -> Tensor:
    """X as a tensor of floats in its own dtype; integers become float32."""
    tensor = x if type(x) is Tensor else asarray(x)
    wide, dtype = widened_real(name, tensor)
    return tensor if tensor.dtype is dtype else wide


def _statistics(
    x: Tensor,
    axes: tuple[int, ...],
    running: tuple[Tensor, Tensor] | None,
    momentum: Any,
    averaged: bool,
    waits: bool,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes, computed without recording. The running ones are moved towards
    them, or towards their averages over the batch: at once, unless that `waits`."""
    with recorded(False):
        if running is None:
            average, variance = _mean_and_variance(x, axes)
            return average, variance
        average, variance, *moved = _mean_and_variance(x, axes, *running, momentum, averaged)
        for so_far, new in zip(running, moved, strict=True):
            so_far._write(new._node)
            computed_soon(so_far)
    if not waits:
        realize([average._node, variance._node, *(value._node for value in running)])
    return average, variance


def _is_kept(x: Tensor, weight: Any, bias: Any) -> bool:
    """Whether x stays in memory for a derivative in any case, so that what is made of it may be
    computed later."""
    tensors = [each for each in (x, weight, bias) if isinstance(each, Tensor)]
    return recording.get() and any(each._history is not None for each in tensors)


@as_one_node
def _mean_and_variance(
    x: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    momentum: Any = 0.0,
    averaged: bool = False,
) -> tuple[Tensor, ...]:
    """Mean and variance over axes, and what the running ones become."""
    count = math.prod(x.shape[axis] for axis in axes)
    x = widened(x)[0]
    average = mean(x, axis=axes, keepdims=True)
    variance = mean(_square(x - average), axis=axes, keepdims=True)
    if running_mean is None or running_var is None:
        return average, variance
    sample = variance * (count / (count - 1))
    moved = []
    for so_far, new in ((running_mean, average), (running_var, sample)):
        new = mean(new.reshape(x.shape[:2]), axis=0) if averaged else new.reshape(-1)
        wide = so_far.to(float32 if new.dtype.itemsize < 8 else new.dtype)
        moved.append((wide * (1 - momentum) + new * momentum).to(so_far.dtype))
    return average, variance, *moved


def _moved(
    input: Tensor, average: Tensor, variance: Tensor, eps: float, weight: Any, bias: Any
) -> Tensor:
    """X normalized by a given mean and variance for each channel."""
    x, dtype = widened(input)
    average, variance = (by_channel(value, x.ndim).to(x.dtype) for value in (average, variance))
    scale, shift = (by_channel(value, x.ndim) for value in (weight, bias))
    return scaled((x - average) * _rsqrt(variance + eps), scale, shift).to(dtype)


def _check_shapes(name: str, shape: tuple[int, ...], **values: Any) -> None:
    for what, value in values.items():
        if value is not None and tuple(value.shape) != shape:
            raise ShapeError(f"{name}: {what} has shape {tuple(value.shape)}, not {shape}")


def _running(
    name: str, x: Tensor, average: Tensor | None, variance: Tensor | None
) -> tuple[Tensor, Tensor] | None:
    """Both running values, or None."""
    if average is None and variance is None:
        return None
    if average is None or variance is None:
        raise ValueError(f"{name}: give both running_mean and running_var, or neither")
    for what, value in (("running_mean", average), ("running_var", variance)):
        if type(value) is not Tensor or value.dtype.kind != "float":
            raise DtypeError(f"{name}: {what} is a tensor of floats, which is written in place")
    _check_shapes(name, x.shape[1:2], running_mean=average, running_var=variance)
    return average, variance

"""Pooling: the maximum, the mean or a norm of each window of images.

Images are the last one, two or three axes of an input of shape (N, C, …) or (C, …). Windows have a
size and a stride, or (adaptive) divide an image evenly.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.core.errors import DtypeError
from treadle.kernels.pool import Windows
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.functional.compute_dtype import widened_real
from treadle.tensor.functional.pooling_operations import max_pool, max_pool_with_indices, mean_pool
from treadle.tensor.functional.windows import (
    Sizes,
    WindowSizes,
    counts_of,
    images,
    last_axes,
    shared_windows,
    windows_of,
)
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import mean
from treadle.tensor.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip

_pow = FUNCTIONS["pow"]
Pooled = Tensor | tuple[Tensor, Tensor]


# --- maximum -------------------------------------------------------------------------


def max_pool1d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """`max_pool2d` for inputs of shape (N, C, L) or (C, L).

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0, 4.0]], device="cpu")
    >>> td.nn.functional.max_pool1d(x, 2).tolist()
    [[2.0, 4.0]]
    """
    sizes = WindowSizes(kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(1, input, sizes, return_indices)


def max_pool2d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """The greatest element of each window of an input of shape (N, C, H, W) or (C, H, W), NaN if
    there is one; with `return_indices` also its index in the flattened image.

    Windows are `stride` apart (kernel_size if that is None), and begin `padding` before the image,
    at most half of a window. Their elements are `dilation` apart. With `ceil_mode` a last window
    may reach beyond the padding. The result for a window completely in the padding is the least
    number of the dtype, with index -1.

    >>> import treadle as td
    >>> x = td.arange(16.0, device="cpu").reshape(1, 4, 4)
    >>> values, places = td.nn.functional.max_pool2d(x, 2, return_indices=True)
    >>> values.tolist(), places.tolist()
    ([[[5.0, 7.0], [13.0, 15.0]]], [[[5, 7], [13, 15]]])
    """
    sizes = WindowSizes(kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(2, input, sizes, return_indices)


def max_pool3d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """`max_pool2d` for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""
    sizes = WindowSizes(kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(3, input, sizes, return_indices)


def _max_pool(axes: int, input: Any, sizes: WindowSizes, places: bool) -> Pooled:
    name = f"max_pool{axes}d"
    x = images(name, input, axes)
    return _max_of_windows(name, x, windows_of(name, x, axes, sizes), places)


def adaptive_max_pool1d(input: ArrayLike, output_size: Any, return_indices: bool = False) -> Pooled:
    """`adaptive_max_pool2d` for inputs of shape (N, C, L) or (C, L).

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0, 4.0]], device="cpu")
    >>> td.nn.functional.adaptive_max_pool1d(x, 1).tolist()
    [[4.0]]
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: ArrayLike, output_size: Any, return_indices: bool = False) -> Pooled:
    """The greatest elements of windows that divide the image evenly, `output_size` of them (None:
    one for each element); with `return_indices` also their indices.

    >>> import treadle as td
    >>> x = td.arange(12.0, device="cpu").reshape(1, 3, 4)
    >>> td.nn.functional.adaptive_max_pool2d(x, (1, 2)).tolist()
    [[[9.0, 11.0]]]
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: ArrayLike, output_size: Any, return_indices: bool = False) -> Pooled:
    """`adaptive_max_pool2d` for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_max_pool(3, input, output_size, return_indices)


def _adaptive_max_pool(axes: int, input: Any, wanted: Any, places: bool) -> Pooled:
    name = f"adaptive_max_pool{axes}d"
    x = images(name, input, axes)
    counts = counts_of(name, x, axes, wanted)
    # (Of equal elements only one gets the gradient, as with windows.)
    if not places and max(counts) == 1 and x.size and not x.requires_grad:
        return largest(x, axis=last_axes(axes), keepdims=True)
    return _max_of_windows(name, x, shared_windows(x, axes, counts), places)


def _max_of_windows(name: str, x: Tensor, windows: Windows, places: bool) -> Pooled:
    if x.dtype.kind not in ("float", "int", "uint"):
        raise DtypeError(f"{name} takes real numbers, not {x.dtype}: cast them before")
    if not places:
        return max_pool(x, windows)
    return max_pool_with_indices(x, windows, default_integer(x.device))


# --- mean -------------------------------------------------------------------------------------


def avg_pool1d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`avg_pool2d` for inputs of shape (N, C, L) or (C, L).

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0, 4.0]], device="cpu")
    >>> td.nn.functional.avg_pool1d(x, 2).tolist()
    [[1.5, 3.5]]
    """
    sizes = WindowSizes(kernel_size, stride, padding, ceil_mode=ceil_mode)
    return _avg_pool(1, input, sizes, count_include_pad, None)


def avg_pool2d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window (see `max_pool2d`) of an input of shape (N, C, H, W) or (C, H, W).

    Padding counts as zeros, or with `count_include_pad=False` not at all; `divisor_override`
    replaces the number of elements as the divisor. float32 for integers.

    >>> import treadle as td
    >>> x = td.arange(16.0, device="cpu").reshape(1, 4, 4)
    >>> td.nn.functional.avg_pool2d(x, 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    sizes = WindowSizes(kernel_size, stride, padding, ceil_mode=ceil_mode)
    return _avg_pool(2, input, sizes, count_include_pad, divisor_override)


def avg_pool3d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`avg_pool2d` for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""
    sizes = WindowSizes(kernel_size, stride, padding, ceil_mode=ceil_mode)
    return _avg_pool(3, input, sizes, count_include_pad, divisor_override)


def _avg_pool(
    axes: int, input: Any, sizes: WindowSizes, include: bool, divisor: int | None
) -> Tensor:
    name = f"avg_pool{axes}d"
    if divisor == 0:
        raise ValueError(f"{name}: divisor_override must not be 0")
    x = images(name, input, axes)
    windows = windows_of(name, x, axes, sizes)
    return _mean(name, x, windows, bool(include), divisor or 0)


def adaptive_avg_pool1d(input: ArrayLike, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d` for inputs of shape (N, C, L) or (C, L).

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0, 4.0]], device="cpu")
    >>> td.nn.functional.adaptive_avg_pool1d(x, 1).tolist()
    [[2.5]]
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: ArrayLike, output_size: Any) -> Tensor:
    """The means of windows that divide the image evenly, `output_size` of them (None: one for each
    element).

    >>> import treadle as td
    >>> x = td.arange(12.0, device="cpu").reshape(1, 3, 4)
    >>> td.nn.functional.adaptive_avg_pool2d(x, (None, 1)).tolist()
    [[[1.5], [5.5], [9.5]]]
    """
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: ArrayLike, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d` for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_avg_pool(3, input, output_size)


def _adaptive_avg_pool(axes: int, input: Any, wanted: Any) -> Tensor:
    name = f"adaptive_avg_pool{axes}d"
    return adaptive_avg_pool(name, images(name, input, axes), axes, wanted)


def adaptive_avg_pool(name: str, x: Tensor, axes: int, wanted: Any) -> Tensor:
    """The means of windows that divide the last axes evenly."""
    counts = counts_of(name, x, axes, wanted)
    if max(counts) == 1:
        return mean(x, axis=last_axes(axes), keepdims=True)
    return _mean(name, x, shared_windows(x, axes, counts), True, 0)


def _mean(name: str, x: Tensor, windows: Windows, include: bool, divisor: int) -> Tensor:
    if x.dtype.kind != "float":
        x = widened_real(name, x)[0]
    return mean_pool(x, windows, include, divisor)


# --- norms ----------------------------------------------------------------------------------------


def lp_pool1d(
    input: ArrayLike,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`lp_pool2d` for inputs of shape (N, C, L) or (C, L)."""
    sizes = WindowSizes(kernel_size, stride, ceil_mode=ceil_mode)
    return _lp_pool(1, input, norm_type, sizes)


def lp_pool2d(
    input: ArrayLike,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-th root of the sum of x**p in each window, where p is `norm_type`; x**p, not |x|**p, as
    in PyTorch.

    >>> import treadle as td
    >>> x = td.asarray([[[3.0, 0.0], [4.0, 0.0]]], device="cpu")
    >>> td.nn.functional.lp_pool2d(x, 2, 2).tolist()
    [[[5.0]]]
    """
    sizes = WindowSizes(kernel_size, stride, ceil_mode=ceil_mode)
    return _lp_pool(2, input, norm_type, sizes)


def lp_pool3d(
    input: ArrayLike,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`lp_pool2d` for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""
    sizes = WindowSizes(kernel_size, stride, ceil_mode=ceil_mode)
    return _lp_pool(3, input, norm_type, sizes)


def _lp_pool(axes: int, input: Any, p: float, sizes: WindowSizes) -> Tensor:
    name = f"lp_pool{axes}d"
    if p == 0 or math.isinf(p):
        raise ValueError(f"{name}: norm_type must be finite and not 0, as {p} is not")
    x, dtype = widened_real(name, images(name, input, axes))
    windows = windows_of(name, x, axes, sizes)
    averages = _mean(name, _pow(x, p), windows, True, 0)
    sums = averages * math.prod(windows.kernel)
    # At a sum of 0 the root has no derivative, and PyTorch's gradient is 0.
    nothing = (sums == 0) & (p > 0)
    return where(nothing, 0, _pow(where(nothing, 1, sums), 1 / p)).to(dtype)

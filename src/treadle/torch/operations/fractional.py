"""Fractional max pooling, by B. Graham (2014): windows at drawn distances."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import float32, float64, int32, int64
from treadle.tensor import random
from treadle.tensor.dtypes import supports
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.windows import numbers_of
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import argmax
from treadle.tensor.searching import take_along_axis
from treadle.tensor.tensor import Tensor

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]  # fmt: skip

_trunc = FUNCTIONS["trunc"]


def _pooled(
    axes: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window, and its index in the image."""
    name = f"fractional_max_pool{axes}d"
    if len(input.shape) not in (axes + 1, axes + 2):
        raise RuntimeError(f"{name} takes {axes + 1} or {axes + 2} axes, not {input.shape}")
    extents = input.shape[-axes:]
    kernel = numbers_of(name, "kernel_size", kernel_size, axes)
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name} takes one of output_size and output_ratio")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * axes
        sizes = tuple(int(e * ratio) for e, ratio in zip(extents, ratios, strict=True))
    else:
        sizes = numbers_of(name, "output_size", output_size, axes)
    for extent, window, count in zip(extents, kernel, sizes, strict=True):
        if count + window - 1 > extent or count < 1:
            raise RuntimeError(
                f"{name}: {count} windows of {window} do not fit into {extent} elements"
            )
    images = input if len(input.shape) == axes + 2 else input[None]
    batch, channels = images.shape[:2]
    if samples is None:
        shape = (batch, channels, axes)
        samples = random.uniform(shape, dtype=_drawn(input), device=input.device)
    flat = _indices(images, kernel, sizes, samples)
    values = take_along_axis(images.reshape((batch, channels, math.prod(extents))), flat, axis=2)
    split = (batch, channels, math.prod(sizes), math.prod(kernel))
    values, flat = values.reshape(split), flat.reshape(split)
    best = argmax(values.detach(), axis=3, keepdims=True)
    whole = images.shape[:2] + sizes if len(input.shape) == axes + 2 else (channels, *sizes)
    return (
        take_along_axis(values, best, axis=3).reshape(whole),
        take_along_axis(flat, best, axis=3).reshape(whole),
    )


def _drawn(input: Tensor) -> Any:
    return float64 if input.dtype is float64 else float32


def _indices(
    images: Tensor, kernel: tuple[int, ...], sizes: tuple[int, ...], samples: Tensor
) -> Tensor:
    """The places in the image of each window's elements: (N, C, windows * elements)."""
    axes = len(kernel)
    extents = images.shape[-axes:]
    index = int64 if supports(images.device, int64) else int32
    # PyTorch's first sample is that of the last axis of images, and of the first of volumes.
    order = list(reversed(range(axes))) if axes == 2 else list(range(axes))
    samples = samples[: images.shape[0]]
    found: Any = 0
    for axis in range(axes):
        extent, window, count = extents[axis], kernel[axis], sizes[axis]
        starts = _starts(samples[..., order[axis]], extent, window, count).to(index)
        places = starts[..., None] + arange(window, dtype=index, device=images.device)
        shape = [*places.shape[:2], *([1] * (2 * axes))]
        shape[2 + axis], shape[2 + axes + axis] = count, window
        found = found * extent + places.reshape(tuple(shape))
    result: Tensor = found.reshape((*images.shape[:2], math.prod(sizes) * math.prod(kernel)))
    return result


def _starts(sample: Tensor, extent: int, window: int, count: int) -> Tensor:
    """Where the windows along an axis begin: (N, C, count)."""
    last = extent - window
    number = arange(count, dtype=sample.dtype, device=sample.device)
    if count == 1:
        found: Tensor = sample[..., None] * 0 + last
        return found
    alpha = last / (count - 1)
    begun = _trunc((number + sample[..., None]) * alpha) - _trunc(sample[..., None] * alpha)
    ends: Tensor = FUNCTIONS["where"](number == count - 1, float(last), begun)
    return ends


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The greatest element of each window of (N, C, H, W) or (C, H, W), and its place."""
    return _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The greatest element of each window of (N, C, D, H, W) or (C, D, H, W), and its place."""
    return _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The greatest element of each window, at drawn distances; and its place, if wanted."""
    found = _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The greatest element of each window, at drawn distances; and its place, if wanted."""
    found = _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]

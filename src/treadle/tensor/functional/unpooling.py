"""`max_unpool`: elements written back to where `max_pool` found them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.errors import ShapeError
from treadle.runtime import settings
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.functional.pooling_operations import indices_into_all, scatter_to_images
from treadle.tensor.functional.windows import Sizes, WindowSizes, images, numbers_of
from treadle.tensor.operands import operand
from treadle.tensor.reductions import any as any_of
from treadle.tensor.tensor import Tensor

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


def max_unpool1d(
    input: ArrayLike,
    indices: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """`max_unpool2d` for inputs of shape (N, C, L) or (C, L)."""
    sizes = WindowSizes(kernel_size, stride, padding)
    return _max_unpool(1, input, indices, sizes, output_size)


def max_unpool2d(
    input: ArrayLike,
    indices: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the input's elements written at indices from `max_pool2d`.

    The images have the size from which `max_pool2d` makes the input's, or `output_size`, which may
    differ by less than a stride. Of several elements for one index the last one stays; those with
    indices outside are dropped (IndexError under TREADLE_CHECK=1).

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 5.0, 2.0, 0.0]], device="cpu")
    >>> values, places = td.nn.functional.max_pool1d(x, 2, return_indices=True)
    >>> td.nn.functional.max_unpool1d(values, places, 2).tolist()
    [[0.0, 5.0, 2.0, 0.0]]
    """
    sizes = WindowSizes(kernel_size, stride, padding)
    return _max_unpool(2, input, indices, sizes, output_size)


def max_unpool3d(
    input: ArrayLike,
    indices: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """`max_unpool2d` for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""
    sizes = WindowSizes(kernel_size, stride, padding)
    return _max_unpool(3, input, indices, sizes, output_size)


def _max_unpool(
    axes: int, input: Any, indices: Any, sizes: WindowSizes, output_size: Any
) -> Tensor:
    name = f"max_unpool{axes}d"
    x, places = images(name, input, axes), operand(name, indices)
    if places.shape != x.shape or places.dtype.kind not in ("int", "uint"):
        raise ShapeError(
            f"{name}: indices are integers of the input's shape {x.shape}, not {places.dtype} of "
            f"shape {places.shape}"
        )
    image = _pooled_images(name, x, axes, sizes, output_size)
    front, size = x.shape[: x.ndim - axes], math.prod(image)
    shape = (*front, *image)
    if settings.check and x.size and bool(any_of((places < 0) | (places >= size))):
        raise IndexError(f"{name}: an index is outside an image of {image}, from 0 to {size - 1}")
    return scatter_to_images(x, indices_into_all(places, image), shape)


def _pooled_images(
    name: str, x: Tensor, axes: int, sizes: WindowSizes, output_size: Any
) -> tuple[int, ...]:
    """The extents of the images that were pooled."""
    kernel, stride, padding, _ = sizes.by_axis(name, axes)
    usual = tuple(
        [
            (extent - 1) * s - 2 * p + k
            for extent, k, s, p in zip(x.shape[-axes:], kernel, stride, padding, strict=True)
        ]
    )
    if output_size is None:
        return usual
    given = tuple(output_size)
    image = numbers_of(name, "output_size", given[-axes:], axes)
    if any(abs(a - b) >= s for a, b, s in zip(image, usual, stride, strict=True)):
        raise ShapeError(
            f"{name}: output_size={given} is a stride of {stride} or more away from {usual}, from "
            f"which windows of {kernel} would make the input's shape {x.shape}"
        )
    return image

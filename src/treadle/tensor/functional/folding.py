"""`unfold` and `fold` (windows of images as columns), pixel shuffles and channel shuffles."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.errors import ShapeError
from treadle.graph.views import View
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import composite
from treadle.tensor.functional.gathers import AxisIndices, gather_axes, index_range
from treadle.tensor.functional.windows import Sizes, WindowSizes, check_positive, numbers_of
from treadle.tensor.manipulation import permute_dims, swapaxes
from treadle.tensor.operands import operand
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["channel_shuffle", "fold", "pixel_shuffle", "pixel_unshuffle", "unfold"]


# --- windows --------------------------------------------------------------------------------------


@composite
def unfold(
    input: ArrayLike, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """The windows of an input of shape (N, C, H, W) as columns of shape (N, C * kh * kw, L), one
    for each of L windows; N may be missing in both. Elements in the padding are 0.

    >>> import treadle as td
    >>> x = td.arange(9.0, device="cpu").reshape(1, 3, 3)
    >>> td.nn.functional.unfold(x, 2)[0].tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    x = operand("unfold", input)
    if x.ndim not in (3, 4):
        raise ShapeError(f"unfold takes an input of shape (N, C, H, W) or (C, H, W), not {x.shape}")
    if x.ndim == 3:
        return unfold(x.reshape(1, *x.shape), kernel_size, dilation, padding, stride)[0]
    n, channels, height, width = x.shape
    sizes = WindowSizes(kernel_size, stride, padding, dilation)
    window = _Windows("unfold", sizes, (height, width))
    shape = (n, channels, *window.kernel, *window.counts)
    if window.padding == (0, 0):
        first, second, *steps = x._where.strides
        by_kernel = [d * s for d, s in zip(window.dilation, steps, strict=True)]
        by_stride = [d * s for d, s in zip(window.stride, steps, strict=True)]
        seen = View(shape, (first, second, *by_kernel, *by_stride), x._where.offset)
        columns = x._seen_through(seen)
    else:
        columns = gather_axes(x, shape, {0: 0, 1: 1}, [window.places(x, axis) for axis in (0, 1)])
    return columns.copied().reshape(n, channels * window.size, window.count)


@composite
def fold(
    input: ArrayLike,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """The columns of `unfold` accumulated at their windows in an image of shape (N, C,
    *output_size); N may be missing in both.

    >>> import treadle as td
    >>> columns = td.ones((4, 4), device="cpu")
    >>> td.nn.functional.fold(columns, 3, 2).tolist()
    [[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]
    """
    x = operand("fold", input)
    if x.ndim not in (2, 3):
        raise ShapeError(f"fold takes an input of shape (N, C * kh * kw, L), not {x.shape}")
    if x.ndim == 2:
        whole = x.reshape(1, *x.shape)
        return fold(whole, output_size, kernel_size, dilation, padding, stride)[0]
    image = numbers_of("fold", "output_size", output_size, 2)
    check_positive("fold", "output_size", image)
    sizes = WindowSizes(kernel_size, stride, padding, dilation)
    window = _Windows("fold", sizes, image)
    n, rows, count = x.shape
    if rows % window.size or count != window.count:
        raise ShapeError(
            f"fold: an input of shape {x.shape} is not {window.count} columns for windows of "
            f"{window.size} elements, as an image of {image} has with kernel_size={window.kernel}, "
            f"dilation={window.dilation}, padding={window.padding}, stride={window.stride}"
        )
    channels = rows // window.size
    columns = x.reshape(n, channels, *window.kernel, *window.counts)
    shape = (n, channels, *image, *window.kernel)
    places = [window.windows_of(columns, axis) for axis in (0, 1)]
    parts = gather_axes(columns, shape, {0: 0, 1: 1, 4: 2, 5: 3}, places)
    return total(parts, axis=(4, 5), dtype=x.dtype)


class _Windows:
    """The windows of an image."""

    def __init__(self, name: str, sizes: WindowSizes, image: tuple[int, ...]) -> None:
        self.kernel, self.stride, self.padding, self.dilation = sizes.by_axis(name, 2)
        for what in ("kernel_size", "dilation", "stride"):
            check_positive(name, what, getattr(self, what.removesuffix("_size")))
        if min(self.padding) < 0:
            raise ValueError(f"{name}: padding must not be negative, as {self.padding} is")
        self.image = image
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        room = [extent + 2 * p for extent, p in zip(image, self.padding, strict=True)]
        if any(a > b for a, b in zip(reach, room, strict=True)):
            raise ShapeError(
                f"{name}: a window of {tuple(reach)} elements (kernel_size={self.kernel}, "
                f"dilation={self.dilation}) is larger than an image of {tuple(image)} with "
                f"padding={self.padding}"
            )
        self.counts = tuple(
            [(b - a) // s + 1 for a, b, s in zip(reach, room, self.stride, strict=True)]
        )
        self.size = self.kernel[0] * self.kernel[1]
        self.count = self.counts[0] * self.counts[1]

    def places(self, x: Tensor, axis: int) -> AxisIndices:
        """The indices of the windows' elements along an axis of the image."""
        within = index_range(x, self.kernel[axis], 0, self.dilation[axis]).reshape(-1, 1)
        at = within + index_range(x, self.counts[axis], -self.padding[axis], self.stride[axis])
        inside = (at >= 0) & (at < self.image[axis])
        return AxisIndices(axis + 2, at, (axis + 2, axis + 4), inside)

    def windows_of(self, columns: Tensor, axis: int) -> AxisIndices:
        """For an element of the image and a position within a window, the window that has it there,
        if any."""
        pixel = index_range(columns, self.image[axis], self.padding[axis]).reshape(-1, 1)
        start = pixel - index_range(columns, self.kernel[axis], 0, self.dilation[axis])
        stride = self.stride[axis]
        window = start if stride == 1 else start // stride
        inside = (start >= 0) & (window < self.counts[axis])
        if stride != 1:
            inside = inside & (window * stride == start)
        return AxisIndices(axis + 4, window, (axis + 2, axis + 4), inside)


# --- pixels and channels --------------------------------------------------------------------------


def pixel_shuffle(input: ArrayLike, upscale_factor: int) -> Tensor:
    """Channels as pixels: from the shape (…, C * r * r, H, W) to (…, C, H * r, W * r).

    >>> import treadle as td
    >>> x = td.arange(4, device="cpu").reshape(4, 1, 1)
    >>> td.nn.functional.pixel_shuffle(x, 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    x, front = _image("pixel_shuffle", input, "upscale_factor", upscale_factor)
    r = upscale_factor
    channels, height, width = x.shape[-3:]
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle: {channels} channels of shape {x.shape} are not divided by "
            f"upscale_factor ** 2 = {r * r}"
        )
    count = math.prod(front)  # -1 would be ambiguous for arrays without elements
    parts = x.reshape(count, channels // (r * r), r, r, height, width)
    moved = permute_dims(parts, (0, 1, 4, 2, 5, 3))
    return moved.reshape(*front, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: ArrayLike, downscale_factor: int) -> Tensor:
    """Pixels as channels: from the shape (…, C, H * r, W * r) to (…, C * r * r, H, W)."""
    x, front = _image("pixel_unshuffle", input, "downscale_factor", downscale_factor)
    r = downscale_factor
    channels, height, width = x.shape[-3:]
    if height % r or width % r:
        raise ShapeError(
            f"pixel_unshuffle: height and width of shape {x.shape} are not divided by "
            f"downscale_factor={r}"
        )
    parts = x.reshape(math.prod(front), channels, height // r, r, width // r, r)
    moved = permute_dims(parts, (0, 1, 3, 5, 2, 4))
    return moved.reshape(*front, channels * r * r, height // r, width // r)


def channel_shuffle(input: ArrayLike, groups: int) -> Tensor:
    """The channels of a tensor of shape (N, C, …) interleaved: the first of each group, then the
    second of each, and so on.

    >>> import treadle as td
    >>> x = td.arange(6, device="cpu").reshape(1, 6, 1)
    >>> td.nn.functional.channel_shuffle(x, 2).ravel().tolist()
    [0, 3, 1, 4, 2, 5]
    """
    x = operand("channel_shuffle", input)
    if x.ndim < 3:
        raise ShapeError(f"channel_shuffle takes an input of shape (N, C, …), not {x.shape}")
    check_positive("channel_shuffle", "groups", (groups,))
    n, channels, *rest = x.shape
    if channels % groups:
        raise ShapeError(
            f"channel_shuffle: {channels} channels of shape {x.shape} do not divide into "
            f"{groups} groups"
        )
    parts = x.reshape(n, groups, channels // groups, *rest)
    return swapaxes(parts, 1, 2).reshape(x.shape)


def _image(name: str, input: Any, what: str, factor: int) -> tuple[Tensor, tuple[int, ...]]:
    x = operand(name, input)
    if x.ndim < 3:
        raise ShapeError(f"{name} takes an input of shape (…, C, H, W), not {x.shape}")
    check_positive(name, what, (factor,))
    return x, x.shape[:-3]

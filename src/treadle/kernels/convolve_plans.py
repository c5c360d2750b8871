"""How a convolution goes along its axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.convolution_packing import Paddings
from treadle.kernels.launching import packed
from treadle.runtime.convert import Packed


class Axis(NamedTuple):
    """The values of an `Along` of the kernels, on the host."""

    size: int
    outputs: int
    stride: int
    start: int
    dilation: int
    taps: int
    first: int
    step: int
    kernel: int
    out_start: int
    out_step: int
    out_size: int


class PaddedAxis(NamedTuple):
    """The values of a `Padding` of the kernels, on the host."""

    size: int
    stride: int
    before: int
    length: int
    remainders: int
    remainder: int


class Channels(NamedTuple):
    """The channels of each group, and the strides of the weights."""

    groups: int
    ins: int
    outs: int
    in_step: int
    out_step: int
    group_step: int


@functools.lru_cache(1024)
def passed(axes: tuple[Axis, ...]) -> Packed:
    """Three axes as a kernel takes them."""
    return packed(Axes, *axes)


@functools.lru_cache(1024)
def passed_paddings(paddings: tuple[PaddedAxis, ...]) -> Packed:
    """How three axes are padded, as a kernel takes it."""
    return packed(Paddings, *paddings)


def plain(dtype: Any) -> DType:
    """A dtype that is not a struct."""
    assert isinstance(dtype, DType)
    return dtype


def along_of(size: int, kernel: int, stride: int, padding: int, dilation: int, extent: int) -> Axis:
    """An axis of a convolution."""
    return Axis(size, extent, stride, -padding, dilation, kernel, 0, 1, kernel, 0, 1, extent)


def padded_axis(axes: Sequence[Axis], even: bool = False) -> PaddedAxis:
    """How an axis is padded for convolutions along it that read the same image: with an `even`
    length for two neighbours at once.

    Window o reads with tap j the place o + shift of one remainder. In a padded line that is o +
    shift + before. Beyond the line's end it is in the next line, within the zeros before that: the
    length is at least the number of windows and the largest shift.

    >>> padded_axis([along_of(56, 3, 1, 1, 1, 56)])
    PaddedAxis(size=56, stride=1, before=1, length=57, remainders=1, remainder=0)
    """
    size, stride = axes[0].size, axes[0].stride
    starts = [axis.start + j * axis.dilation for axis in axes for j in range(axis.taps)]
    shifts = [start // stride for start in starts]
    remainders = {start % stride for start in starts}
    before = max(-min(shifts), 0)
    after = max(max(shifts), 0)
    outputs = max(axis.outputs for axis in axes)
    last = min(outputs - 1 + after, -(-size // stride) - 1)
    length = max(outputs + after, last + before + 1)
    if even:
        length += length % 2
    one = len(remainders) == 1
    return PaddedAxis(
        size, stride, before, length, 1 if one else stride, min(remainders) if one else 0
    )


def paddings_of(phases: list[tuple[Axis, ...]]) -> tuple[PaddedAxis, ...]:
    """How the three axes of an image are padded for some convolutions: for two neighbouring results
    at once, where lines of these are even."""
    z, y, x = ([axes[at] for axes in phases] for at in range(3))
    even = all(axis.outputs % 2 == 0 for axis in x)
    return padded_axis(z), padded_axis(y), padded_axis(x, even)


def places_of(paddings: tuple[PaddedAxis, ...], batch: int) -> int:
    """The places of a padded image with one remainder."""
    return batch * math.prod(each.length for each in paddings)


def windows_of(axes: tuple[Axis, ...], paddings: tuple[PaddedAxis, ...]) -> tuple[PaddedAxis, ...]:
    """How a result is padded so that its elements are where their windows begin in a padded
    image."""
    both = zip(axes, paddings, strict=True)
    return tuple([PaddedAxis(axis.outputs, 1, 0, padding.length, 1, 0) for axis, padding in both])


def phases_of(
    size: int, kernel: int, stride: int, padding: int, dilation: int, extent: int
) -> list[Axis]:
    """A transposed axis: for each remainder of (output place + padding) modulo the stride, the taps
    that reach places of the input from there.

    Input i adds weight k to output i * stride - padding + k * dilation. So output o takes weight k
    of input (o + padding - k * dilation) / stride, if that is an integer. From one such k to the
    next are stride / gcd(stride, dilation) steps, and as many places back as dilation / gcd.
    """
    common = math.gcd(stride, dilation)
    step, back = stride // common, dilation // common
    found = []
    for first in range(min(stride, extent)):
        taps = [k for k in range(kernel) if (first + padding - k * dilation) % stride == 0]
        last = taps[-1] if taps else 0  # which reaches the least place of the input
        start = (first + padding - last * dilation) // stride
        count = -(-(extent - first) // stride)
        found.append(
            Axis(size, count, 1, start, back, len(taps), last, -step, kernel, first, stride, extent)
        )
    return found


def three_axes(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Three axes, with as many places along the last as can be: where a kernel reads each place for
    itself, the places of several axes are neighbours."""
    one = Axis(1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1)
    if all(
        axis.size == axis.outputs == axis.out_size
        and (axis.stride, axis.start, axis.taps, axis.kernel) == (1, 0, 1, 1)
        for axis in axes
    ):
        size = math.prod(axis.size for axis in axes)
        axes = (one._replace(size=size, outputs=size, out_size=size),)
    return (*[one] * (3 - len(axes)), *axes)

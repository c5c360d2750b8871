"""How a convolution goes along its axes."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
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


def plain(dtype: Any) -> DType:
    """A dtype that is not a struct."""
    assert isinstance(dtype, DType)
    return dtype


def along_of(size: int, kernel: int, stride: int, padding: int, dilation: int, extent: int) -> Axis:
    """An axis of a convolution."""
    return Axis(size, extent, stride, -padding, dilation, kernel, 0, 1, kernel, 0, 1, extent)


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

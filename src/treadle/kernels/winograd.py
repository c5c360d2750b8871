"""Convolutions of float32 by 3 x 3 taps as 16 products of matrices: which ones, and their launches.

What lies between the steps is four times as large as the images. So some images are done at a time:
as many as fill a card, in little memory.
"""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.core.dtypes import float32 as f32
from treadle.core.sizes import has_sizes
from treadle.kernels.convolve_plans import Axis, Channels, passed, plain
from treadle.kernels.device_code.winograd import (
    POINTS,
    image_transformer,
    result_transformer,
    weight_transformer,
)
from treadle.kernels.factors import Factor, Product
from treadle.kernels.launching import flat, new
from treadle.kernels.product import by_tiles
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_FEWEST_CHANNELS = 32  # with fewer, steps that only move memory take most of the time
_LEAST_WORK = 1 << 27  # multiplications
_MOST_BYTES = 96 << 20  # of a factor that is made of images
_MOST_OF_IMAGE = 256 << 20  # bytes
_EDGE = 2  # outputs along an axis of a tile
_TAPS = 3
_LANES = 4


def suits(
    device: Device, dtype: DType, phases: list[tuple[Axis, ...]], channels: Channels, batch: int
) -> bool:
    """Whether a convolution is quicker in this way: by 3 x 3 taps next to each other, of many
    channels, on a card whose products of matrices are."""
    if not (dtype is f32 and device.traits.later_copies and len(phases) == 1):
        return False
    if has_sizes((phases, channels, batch)):
        return False
    z, y, x = phases[0]
    plain_axes = all(
        (axis.taps, axis.dilation, axis.stride, axis.out_step) == (_TAPS, 1, 1, 1)
        and (axis.out_start, axis.outputs) == (0, axis.out_size)
        for axis in (y, x)
    )
    if not plain_axes or (z.size, z.outputs, z.taps) != (1, 1, 1):
        return False
    groups, ins, outs = channels[:3]
    many = groups == 1 and min(ins, outs) >= _FEWEST_CHANNELS
    if _bytes_of_image(phases[0], channels, dtype) > _MOST_OF_IMAGE:
        return False
    aligned = ins % _LANES == 0 and outs % _LANES == 0
    return many and aligned and batch * y.outputs * x.outputs * ins * outs * 9 >= _LEAST_WORK


def by_winograd(
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    out: DeviceArray,
    phases: list[tuple[Axis, ...]],
    channels: Channels,
) -> None:
    """Factors of the weights, and for some images at a time factors, products and results."""
    (axes,) = phases
    _, y, x_axis = axes
    _, ins, outs, in_step, out_step, _ = channels
    dtype = plain(out.dtype)
    weights = new(x, dtype, POINTS * ins * outs)
    weight_transformer(dtype).launch(
        (ins, outs), flat(weight), weights, passed(axes), ins, outs, in_step, out_step
    )
    down, side = -(-y.outputs // _EDGE), -(-x_axis.outputs // _EDGE)
    batch = x.shape[0]
    at_once = min(max(_MOST_BYTES // _bytes_of_image(axes, channels, dtype), 1), batch)
    at_once = -(-batch // -(-batch // at_once))
    pitch = -(-at_once * down * side // _LANES) * _LANES
    factor, made = new(x, dtype, POINTS * ins * pitch), new(x, dtype, POINTS * outs * pitch)
    product = Product(
        (POINTS,), outs, pitch, ins,
        Factor((ins * outs,), 1, outs, 0), Factor((ins * pitch,), 1, pitch, 0),
    )  # fmt: skip
    pairs = x_axis.outputs % 2 == 0 and out.offset % 2 == 0
    finish = result_transformer(dtype, bias is not None, pairs)
    addend = flat(weight if bias is None else bias)
    for first in range(0, batch, at_once):
        images = min(at_once, batch - first)
        tiles = images * down * side
        source, target = _images(x, first, images), _images(out, first, images)
        image_transformer(dtype).launch(
            (ins, tiles), source, factor, passed(axes), ins, down, side, tiles, pitch
        )
        by_tiles(weights, factor, made, product)
        finish.launch(
            (outs, tiles), made, source, flat(weight), addend, target, passed(axes), ins, outs,
            in_step, out_step, down, side, tiles, pitch,
        )  # fmt: skip


def _bytes_of_image(axes: tuple[Axis, ...], channels: Channels, dtype: DType) -> int:
    """The largest factor or product of an image."""
    tiles = -(-axes[1].outputs // _EDGE) * -(-axes[2].outputs // _EDGE)
    return POINTS * max(channels.ins, channels.outs) * tiles * dtype.itemsize


def _images(array: DeviceArray, first: int, count: int) -> DeviceArray:
    """Some of an array's images, flat."""
    image = array.size // array.shape[0]
    return array.view((count * image,), (1,), array.offset + first * image)

"""Gradients of convolutions' weights as products of matrices: of the padded gradient of the result
and the padded image (`convolution_packing`), summed over places.

In a padded image each place's channels are behind those of the place before. So the channels of
taps along the last axis are the columns of one matrix, and taps along the others begin the same
distance from each other: a stack of products.
"""

from __future__ import annotations

import math

from treadle.core.dtypes import DType
from treadle.core.dtypes import float32 as f32
from treadle.core.limits import MOST_NARROW
from treadle.core.sizes import has_sizes
from treadle.kernels.convolve_fragments import packed_image
from treadle.kernels.convolve_plans import (
    Axis,
    Channels,
    PaddedAxis,
    paddings_of,
    passed,
    passed_paddings,
    places_of,
    windows_of,
)
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.device_code.padded_weight_adder import padded_weight_adder
from treadle.kernels.factors import Factor, Product
from treadle.kernels.launching import flat, new
from treadle.kernels.product import by_tiles
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_FEWEST_CHANNELS = 32  # with fewer, packing takes most of the time
_LEAST_WORK = 1 << 27  # multiplications
_LANES = 4
# Tiles for few rows; for products whose inner axis is divided, or that have many tiles; for as many
# tiles of 128 x 128 as a card runs only part of at once.
_LOW = Tile(64, 256, 8, 2, 4, copies=3)
_LARGE = Tile(128, 128, 8, 2, 2, copies=4)
_MIDDLE = Tile(64, 128, 8, 2, 2, copies=4)
_FEW_TILES, _MANY_TILES = 96, 512


def suits(
    device: Device, dtype: DType, axes: tuple[Axis, ...], channels: Channels, batch: int
) -> bool:
    """Whether products are quicker: of float32 numbers of many channels, on a card whose products
    of matrices are, with taps that are next to each other in a padded image."""
    if dtype is not f32 or not device.traits.later_copies or has_sizes((axes, channels, batch)):
        return False
    groups, ins, outs = channels[:3]
    if groups > 1 or min(ins, outs) < _FEWEST_CHANNELS or ins % _LANES or outs % _LANES:
        return False
    paddings = paddings_of([axes])
    x = axes[2]
    if any(each.remainders > 1 for each in paddings) or (x.taps > 1 and x.dilation != x.stride):
        return False
    places = places_of(paddings, batch)
    if 2 * places * max(ins, outs) >= MOST_NARROW:  # with the zeros behind it
        return False
    return places * ins * outs * math.prod(axis.taps for axis in axes) >= _LEAST_WORK


def weights_by_products(
    x: DeviceArray, gradient: DeviceArray, out: DeviceArray, axes: tuple[Axis, ...]
) -> None:
    """A product for all taps along the first two axes, which the last step puts together."""
    batch, ins, outs = x.shape[0], x.shape[1], gradient.shape[1]
    paddings = paddings_of([axes])
    places = places_of(paddings, batch)
    steps = [axis.dilation // axis.stride for axis in axes]
    step_y = steps[1] * paddings[2].length * ins
    step_z = steps[0] * paddings[1].length * paddings[2].length * ins
    starts = [_first(axis, padding) for axis, padding in zip(axes, paddings, strict=True)]
    start = (starts[0] * paddings[1].length + starts[1]) * paddings[2].length + starts[2]
    taps = [axis.taps for axis in axes]
    columns = taps[2] * ins
    # Windows of the last places go beyond the image: these are zeros, but must be there.
    beyond = start + ((taps[0] - 1) * step_z + (taps[1] - 1) * step_y) // ins + taps[2]
    image = packed_image(x, 1, ins, paddings, exact=True, more=beyond)
    slopes = packed_image(gradient, 1, outs, windows_of(axes, paddings), exact=True)
    stack = (taps[0], taps[1])
    product = Product(
        stack, outs, columns, places,
        Factor((0, 0), 1, outs, 0), Factor((step_z, step_y), 1, ins, start * ins),
    )  # fmt: skip
    made = new(x, f32, math.prod(stack), outs, columns)
    by_tiles(slopes, image, made, product, _tile_for(product))
    padded_weight_adder(f32).launch(
        made.size, flat(made), slopes, image, flat(out), passed(axes), passed_paddings(paddings),
        batch, 1, made.size, math.prod(taps), taps[2], outs, ins, ins, outs, places,
        ins, 1, ins, places * ins, outs, 1, outs,
    )  # fmt: skip


def _tile_for(product: Product) -> Tile:
    if product.rows <= _LOW.rows:
        return _LOW
    tiles = -(-product.rows // _LARGE.rows) * -(-product.columns // _LARGE.columns)
    few_or_many = not _FEW_TILES <= tiles * product.matrices < _MANY_TILES
    return _LARGE if few_or_many else _MIDDLE


def _first(axis: Axis, padding: PaddedAxis) -> int:
    """The place that the first tap reads for the window at place 0."""
    return axis.start // axis.stride + padding.before

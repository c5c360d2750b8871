"""Convolutions by 3 x 3 taps with 4 multiplications for an output instead of 9 (Winograd's F(2 x 2,
3 x 3)): four outputs, two by two, are a linear function of 16 products of numbers, of which one
factor is made of the weights and the other one of 4 x 4 places of the image, both by additions. For
all channels together these are 16 products of matrices.

Sums of neighbours are rounded, and infinite or NaN where one of them is. So outputs that are not
finite are computed again in the usual way, from the image and the weights alone.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.lang.decorators import Kernel

POINTS = 16  # products of numbers for a tile of outputs
_EDGE = 4  # places of the image along an axis of a tile
_TAPS = 3
_MADE = 2  # outputs along an axis of a tile


@td.func
def _of_places(a, b, c, d):
    """The factors of four neighbouring places."""
    return a - c, b + c, c - b, b - d


@td.func
def _of_taps(a, b, c):
    """The factors of three neighbouring taps."""
    half = td.f32(0.5)
    ends = (a + c) * half
    return a, ends + b * half, ends - b * half, c


@td.func
def _of_products(a, b, c, d):
    """Two outputs."""
    return a + b + c, b - c - d


@functools.cache
def weight_transformer(dtype: DType) -> Kernel:
    """A kernel that makes the factors (16, ins, outs) of weights."""

    @td.kernel(checked=False)
    def transform_weights(
        weight, out, axes: Axes, ins: td.i32, outs: td.i32, in_step: td.i32, out_step: td.i32
    ):
        channel, o = td.grid(2)
        if channel < ins and o < outs:
            at = o * out_step + channel * in_step
            rows = td.local(_TAPS * _EDGE, dtype)
            for i in td.static_range(_TAPS):
                near = at + (axes.y.first + i * axes.y.step) * axes.x.kernel + axes.x.first
                step = axes.x.step
                found = _of_taps(weight[near], weight[near + step], weight[near + 2 * step])
                for j in td.static_range(_EDGE):
                    rows[i * _EDGE + j] = found[j]
            for j in td.static_range(_EDGE):
                found = _of_taps(rows[j], rows[_EDGE + j], rows[2 * _EDGE + j])
                for i in td.static_range(_EDGE):
                    out[((i * _EDGE + j) * ins + channel) * outs + o] = found[i]

    return transform_weights


@functools.cache
def image_transformer(dtype: DType) -> Kernel:
    """A kernel that makes the factors (16, channels, count) of tiles of images (batch, channels,
    …), `down` x `side` of each."""

    @td.kernel(checked=False)
    def transform_image(
        x, out, axes: Axes, channels: td.i32, down: td.i32, side: td.i32, count: td.i32,
        pitch: td.i32,
    ):  # fmt: skip
        channel, tile = td.grid(2)
        line = tile // side
        ox = tile - line * side
        image = line // down
        oy = line - image * down
        if channel < channels and tile < count:
            at = (image * channels + channel) * axes.y.size
            iy = oy * _MADE + axes.y.start
            ix = ox * _MADE + axes.x.start
            rows = td.local(_EDGE * _EDGE, dtype)
            for i in td.static_range(_EDGE):
                near = (at + iy + i) * axes.x.size + ix
                in_line = iy + i >= 0 and iy + i < axes.y.size
                places = td.local(_EDGE, dtype)
                for j in td.static_range(_EDGE):
                    places[j] = dtype(0)
                    if in_line and ix + j >= 0 and ix + j < axes.x.size:
                        places[j] = x[near + j]
                found = _of_places(places[0], places[1], places[2], places[3])
                for j in td.static_range(_EDGE):
                    rows[i * _EDGE + j] = found[j]
            for j in td.static_range(_EDGE):
                found = _of_places(rows[j], rows[4 + j], rows[8 + j], rows[12 + j])
                for i in td.static_range(_EDGE):
                    out[((i * _EDGE + j) * channels + channel) * pitch + tile] = found[i]

    return transform_image


@functools.cache
def result_transformer(dtype: DType, biased: bool, pairs: bool) -> Kernel:
    """A kernel that makes images (batch, outs, …) of the products (16, outs, count). With `pairs`
    two neighbours are stored at once."""
    pair = td.vec2[dtype]
    stored: object = pair if pairs else dtype

    @td.func
    def directly(x, weight, axes, image, o, y, x_at, ins, in_step, out_step):
        """An output from the image and the weights."""
        total = dtype(0)
        for channel in range(ins):
            at = o * out_step + channel * in_step
            source = (image * ins + channel) * axes.y.size
            for i in range(_TAPS):
                iy = y + axes.y.start + i
                taps = at + (axes.y.first + i * axes.y.step) * axes.x.kernel + axes.x.first
                for j in range(_TAPS):
                    ix = x_at + axes.x.start + j
                    place = dtype(0)
                    if iy >= 0 and iy < axes.y.size and ix >= 0 and ix < axes.x.size:
                        place = x[(source + iy) * axes.x.size + ix]
                    total += place * weight[taps + j * axes.x.step]
        return total

    @td.kernel(checked=False)
    def transform_result(
        made, x, weight, bias, out: td.Array[stored], axes: Axes, ins: td.i32, outs: td.i32,
        in_step: td.i32, out_step: td.i32, down: td.i32, side: td.i32, count: td.i32,
        pitch: td.i32,
    ):  # fmt: skip
        o, tile = td.grid(2)
        line = tile // side
        x_at = (tile - line * side) * _MADE
        image = line // down
        y = (line - image * down) * _MADE
        if o < outs and tile < count:
            rows = td.local(_EDGE * _MADE, dtype)
            for i in td.static_range(_EDGE):
                a, b, c, d = (
                    made[((i * 4) * outs + o) * pitch + tile],
                    made[((i * 4 + 1) * outs + o) * pitch + tile],
                    made[((i * 4 + 2) * outs + o) * pitch + tile],
                    made[((i * 4 + 3) * outs + o) * pitch + tile],
                )
                rows[i * 2], rows[i * 2 + 1] = _of_products(a, b, c, d)
            addend = dtype(bias[o]) if biased else dtype(0)
            found = td.local(_MADE * _MADE, dtype)
            for j in td.static_range(_MADE):
                found[j], found[2 + j] = _of_products(
                    rows[j], rows[2 + j], rows[4 + j], rows[6 + j]
                )
            for i in td.static_range(_MADE):
                for j in td.static_range(_MADE):
                    there = y + i < axes.y.count and x_at + j < axes.x.count
                    if there and not td.isfinite(found[i * 2 + j]):
                        found[i * 2 + j] = directly(
                            x, weight, axes, image, o, y + i, x_at + j, ins, in_step, out_step
                        )
            for i in td.static_range(_MADE):
                to = ((image * outs + o) * axes.y.count + y + i) * axes.x.count + x_at
                if y + i < axes.y.count:
                    if pairs:
                        out[to // 2] = pair(found[i * 2] + addend, found[i * 2 + 1] + addend)
                    else:
                        out[to] = found[i * 2] + addend
                        if x_at + 1 < axes.x.count:
                            out[to + 1] = found[i * 2 + 1] + addend

    return transform_result

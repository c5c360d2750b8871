"""The last step of gradients of convolutions' weights that are made of padded images."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.convolution_packing import Paddings, start_of
from treadle.lang.decorators import Kernel


@functools.cache
def padded_weight_adder(dtype: DType) -> Kernel:
    """A kernel that adds up the splits of each weight, in their order, and puts the taps of an
    input channel behind each other. A split's sums are (…, groups * outs, near, within): the taps,
    of which the last `near` are nearest, and the channels of a tap.

    They are sums over all places of a padded image and of a padded gradient, which is zero where no
    window begins. There it meets elements of the image, and infinity times zero is NaN: a weight
    whose sum is NaN is summed again, over windows that exist. Of both the steps are given from a
    place, a channel and a group to the next one, and of the image from one of the remainders, each
    of which has so many `places`; what is behind them is zeros."""

    @td.kernel(checked=False)
    def add_padded_splits(
        splits, gradient: td.Array[dtype], x: td.Array[dtype], out, axes: Axes,
        paddings: Paddings, batch: td.i32, count: td.i32, size: td.i32, taps: td.i32,
        near: td.i32, lines: td.i32, ins: td.i32, within: td.i32, outs: td.i32, places: td.i32,
        x_place: td.i32, x_channel: td.i32, x_group: td.i32, x_remainder: td.i32,
        g_place: td.i32, g_channel: td.i32, g_group: td.i32,
    ):  # fmt: skip
        i = td.grid(1)
        line = i // within
        channel = i - line * within
        if i < size and channel < ins:
            found = td.f32(0)
            for split in range(count):
                found += splits[split * size + i]
            row = line // near
            tap = line - row * near
            far_tap = row // lines
            row -= far_tap * lines
            tap += far_tap * near
            if td.isnan(found):
                # Of windows that exist alone, until it is NaN again.
                found = td.f32(0)
                group = row // outs
                remainders, start = start_of(axes, paddings, tap)
                x_at = remainders * x_remainder + group * x_group + channel * x_channel
                at = group * g_group + (row - group * outs) * g_channel
                n = 0
                while n < batch * axes.z.count * axes.y.count and not td.isnan(found):
                    image = n // (axes.z.count * axes.y.count)
                    rest = n - image * axes.z.count * axes.y.count
                    oz = rest // axes.y.count
                    place = image * paddings.z.length + oz
                    place = place * paddings.y.length + rest - oz * axes.y.count
                    place *= paddings.x.length
                    for ox in range(axes.x.count):
                        value = td.f32(0)  # behind the last image
                        if start + place + ox < places:
                            value = td.f32(x[x_at + (start + place + ox) * x_place])
                        found += value * td.f32(gradient[at + (place + ox) * g_place])
                    n += 1
            out[(row * ins + channel) * taps + tap] = dtype(found)

    return add_padded_splits

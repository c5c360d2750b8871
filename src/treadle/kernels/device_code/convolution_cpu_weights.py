"""Gradients of convolutions' weights on the CPU: the threads of a block are the lanes of vectors of
output positions, over which they sum.

Positions are counted with gaps, as in `convolution_cpu`: the input's elements that a span of
positions needs are copied to a slab, and the gradient's to another one, with zeros in the gaps. So
the gradient of a weight is the sum over positions of one slab times the other, some places farther
on. Sums of some output channels and some weights of each are in registers, one for each lane, while
a block goes along a span. Between spans they are in the block's memory, and lanes are added up
after the last one.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.convolution_cpu import LANES, NEAR, Span, fill_planes
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Function, Kernel


class WeightStrip(NamedTuple):
    """What is summed in registers: `channels` of the output, and `weights` of each. `strided`:
    neighbouring outputs read elements that are a stride apart."""

    channels: int
    weights: int
    strided: bool


@functools.cache
def weight_strips(dtype: DType, strip: WeightStrip) -> Kernel:
    """A kernel that sums the gradients of `most` input channels for `share` tiles of output
    channels, over one split of the spans. `table` is that of `convolution_cpu.strips`. Results are
    (splits, outputs, weights of an output)."""
    work = wide(dtype)
    channels, weights = strip.channels, strip.weights
    fill = fill_planes(work, strip.strided)
    fill_gradient = _fill_gradient(work)

    @td.kernel(checked=False)
    def sum_strips(
        x, gradient, memory, out, table: td.Array[td.i32], axes: Axes, span: Span,
        batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32, most: td.i32, share: td.i32,
        splits: td.i32,
    ):  # fmt: skip
        lane = td.thread_idx.x
        sums = td.local(channels * weights, work)
        values = td.local(weights, work)
        from_here = td.local(weights, td.i32)
        taps = axes.z.taps * axes.y.taps * axes.x.taps
        tiles = (outs + channels - 1) // channels
        parts = (tiles + share - 1) // share
        chunks = (ins + most - 1) // most
        columns = (most * taps + weights - 1) // weights * weights
        slab_at = td.block_idx.x * span.scratch
        gradient_at = slab_at + most * span.rows * span.row
        sums_at = gradient_at + share * channels * span.length
        for item in range(td.block_idx.x, splits * groups * chunks * parts, td.grid_dim.x):
            quotient = item // parts
            first_out = (item - quotient * parts) * share * channels
            chunk = quotient
            quotient = chunk // chunks
            first = (chunk - quotient * chunks) * most
            split = quotient // groups
            group = quotient - split * groups
            count = td.minimum(ins - first, most)
            count_out = td.minimum(outs - first_out, share * channels)
            own_tiles = (count_out + channels - 1) // channels
            for q in range(own_tiles * channels * columns):
                memory[((sums_at + q * LANES) & NEAR) + lane] = work(0)
            for number in range(split * span.spans // splits, (split + 1) * span.spans // splits):
                start = number * span.length
                fill(
                    x, memory, table, axes, span, batch, group * ins + first, groups * ins, count,
                    start, slab_at,
                )  # fmt: skip
                fill_gradient(
                    gradient, memory, axes, span, batch, group * outs + first_out, groups * outs,
                    count_out, own_tiles * channels, start, gradient_at,
                )  # fmt: skip
                td.sync_threads()
                for tile in range(own_tiles):
                    row_at = gradient_at + tile * channels * span.length
                    entry = span.rows * 3
                    for k in range(0, count * taps, weights):
                        kept = (sums_at + (tile * columns + k) * channels * LANES) & NEAR
                        for i in td.static_range(channels * weights):
                            sums[i] = memory[kept + i * LANES + lane]
                        for v in td.static_range(weights):
                            # Past the last weight, it is summed again and not used.
                            last = td.minimum(k + v, count * taps - 1)
                            from_here[v] = slab_at + table[entry + last]
                        for q in range(0, span.length, LANES):
                            for v in td.static_range(weights):
                                values[v] = memory[((from_here[v] + q) & NEAR) + lane]
                            for r in td.static_range(channels):
                                own = memory[((row_at + r * span.length + q) & NEAR) + lane]
                                for v in td.static_range(weights):
                                    sums[r * weights + v] += own * values[v]
                        for i in td.static_range(channels * weights):
                            memory[kept + i * LANES + lane] = sums[i]
                td.sync_threads()
            # A lane adds up all lanes' sums of a weight.
            for o in range(count_out):
                tile = o // channels
                r = o - tile * channels
                to = ((split * groups + group) * outs + first_out + o) * ins + first
                for k0 in range(0, count * taps, LANES):
                    k = k0 + lane
                    if k < count * taps:
                        block = k // weights
                        at = (tile * columns + block * weights) * channels + r * weights
                        at = sums_at + (at + k - block * weights) * LANES
                        total = work(0)
                        for other in range(LANES):
                            total += memory[at + other]
                        out[to * taps + k] = total
            td.sync_threads()

    return sum_strips


@functools.cache
def _fill_gradient(work: DType) -> Function:
    """Copies the gradient of some output channels at a span's positions, with zeros in the gaps and
    for channels that do not exist."""

    @td.func
    def fill(
        gradient, memory, axes, span, batch, first, channels, count, rows, start, gradient_at
    ):  # fmt: skip
        lane = td.thread_idx.x
        image = axes.z.count * axes.y.count * axes.x.count
        line = start // span.width
        column0 = start - line * span.width
        plane = line // span.height
        y0 = line - plane * span.height
        n0 = plane // span.depth
        z0 = plane - n0 * span.depth
        for o in range(rows):
            to = gradient_at + o * span.length
            n = n0
            z = z0
            y = y0
            column = column0
            done = 0
            while done < span.length:
                take = td.minimum(span.width - column, span.length - done)
                there = n < batch and z < axes.z.count and y < axes.y.count and o < count
                wanted = td.clip(axes.x.count - column, 0, take) if there else 0
                source = (n * channels + first + o) * image
                source += (z * axes.y.count + y) * axes.x.count + column
                whole = wanted // LANES * LANES
                for q in range(0, whole, LANES):
                    value = work(gradient[((source + q) & NEAR) + lane])
                    memory[((to + done + q) & NEAR) + lane] = value
                if whole + lane < wanted:
                    memory[to + done + whole + lane] = work(gradient[source + whole + lane])
                for q in range(wanted, take, LANES):
                    if q + lane < take:
                        memory[to + done + q + lane] = work(0)
                done += take
                column = 0
                y += 1
                if y == span.height:
                    y = 0
                    z += 1
                    if z == span.depth:
                        z = 0
                        n += 1

    return fill

"""Gradients of convolutions with respect to their weights, on GPUs.

They are matrix products, too: rows are output channels, columns the weights of an output channel,
and the inner axis are all output positions of the batch. That axis is long where the result is
small, so it is split (split-K): blocks sum one split each, and another kernel adds up the splits.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes, Tile
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Kernel


@functools.cache
def weight_summer(dtype: DType, tile: Tile) -> Kernel:
    """A kernel that sums a split of `length` positions for a tile of the weights."""
    work = wide(dtype)
    depth, columns, threads = tile.depth, tile.columns, tile.threads
    tile_rows, thread_rows, thread_columns = tile.rows, tile.thread_rows, tile.thread_columns
    across = columns // thread_columns
    down = tile_rows // thread_rows
    pitch = tile_rows + 4  # padded: stores of a row of positions then use different banks
    left_loads = -(-tile_rows * depth // threads)
    left_step = threads // depth
    right_loads = depth * columns // threads
    right_step = threads // columns
    groups4 = thread_rows // 4

    @td.kernel(checked=False)
    def sum_weights(
        x, gradient, out, axes: Axes,
        batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32, tiles: td.i32, length: td.i32,
    ):  # fmt: skip
        left = td.shared(depth * pitch, work)
        right = td.shared(depth * columns, work)
        t = td.thread_idx.x
        group = td.block_idx.y // tiles
        first_row = (td.block_idx.y - group * tiles) * tile_rows
        image = axes.z.count * axes.y.count * axes.x.count
        plane = axes.z.size * axes.y.size * axes.x.size
        begin = td.block_idx.z * length
        end = td.minimum(begin + length, batch * image)
        # The thread loads for this column, which is a tap of an input channel.
        column = t % columns
        part = t // columns
        weight = td.block_idx.x * columns + column
        taps = axes.z.taps * axes.y.taps * axes.x.taps
        weights = ins * taps
        channel = weight // taps
        tap = weight - channel * taps
        jz = tap // (axes.y.taps * axes.x.taps)
        tap -= jz * axes.y.taps * axes.x.taps
        jy = tap // axes.x.taps
        jx = tap - jy * axes.x.taps
        from_z = axes.z.start + jz * axes.z.dilation
        from_y = axes.y.start + jy * axes.y.dilation
        from_x = axes.x.start + jx * axes.x.dilation
        base = (group * ins + channel) * plane
        of_left = td.local(left_loads, work)
        of_right = td.local(right_loads, work)
        sums = td.local(thread_rows * thread_columns, work)
        for s in td.static_range(thread_rows * thread_columns):
            sums[s] = work(0)
        # Where the thread's positions are, which go on by `depth` a step.
        at_x = td.local(right_loads, td.i32)
        at_y = td.local(right_loads, td.i32)
        at_z = td.local(right_loads, td.i32)
        at_n = td.local(right_loads, td.i32)
        for v in td.static_range(right_loads):
            position = begin + part + v * right_step
            quotient = position // axes.x.count
            at_x[v] = position - quotient * axes.x.count
            quotient_y = quotient // axes.y.count
            at_y[v] = quotient - quotient_y * axes.y.count
            at_n[v] = quotient_y // axes.z.count
            at_z[v] = quotient_y - at_n[v] * axes.z.count
        left_depth = t % depth
        left_row = t // depth
        left_n = (begin + left_depth) // image
        left_at = begin + left_depth - left_n * image
        tx = t % across
        ty = t // across
        steps = td.maximum(end - begin + depth - 1, 0) // depth
        for step in range(steps):
            start = begin + step * depth
            row_at = (left_n * groups + group) * outs
            for v in td.static_range(left_loads):
                row = left_row + v * left_step
                there = row < tile_rows and first_row + row < outs and start + left_depth < end
                at = (row_at + first_row + row) * image + left_at
                value = work(gradient[at if there else 0])
                of_left[v] = value if there else work(0)
            left_at += depth
            while left_at >= image:
                left_at -= image
                left_n += 1
            for v in td.static_range(right_loads):
                iz = at_z[v] * axes.z.stride + from_z
                iy = at_y[v] * axes.y.stride + from_y
                ix = at_x[v] * axes.x.stride + from_x
                there = iz >= 0 and iz < axes.z.size
                there = there and iy >= 0 and iy < axes.y.size
                there = there and ix >= 0 and ix < axes.x.size
                there = there and start + part + v * right_step < end and channel < ins
                at = base + at_n[v] * groups * ins * plane
                at += (iz * axes.y.size + iy) * axes.x.size + ix
                value = work(x[at if there else 0])
                of_right[v] = value if there else work(0)
                at_x[v] += depth
                while at_x[v] >= axes.x.count:
                    at_x[v] -= axes.x.count
                    at_y[v] += 1
                    if at_y[v] == axes.y.count:
                        at_y[v] = 0
                        at_z[v] += 1
                        if at_z[v] == axes.z.count:
                            at_z[v] = 0
                            at_n[v] += 1
            td.sync_threads()
            for v in td.static_range(left_loads):
                if left_row + v * left_step < tile_rows:
                    left[left_depth * pitch + left_row + v * left_step] = of_left[v]
            for v in td.static_range(right_loads):
                right[(part + v * right_step) * columns + column] = of_right[v]
            td.sync_threads()
            for d in td.static_range(depth):
                for r in td.static_range(groups4):
                    for k in td.static_range(4):
                        upper = left[d * pitch + (ty + r * down) * 4 + k]
                        for c in td.static_range(thread_columns):
                            value = right[d * columns + tx + c * across]
                            sums[(r * 4 + k) * thread_columns + c] += upper * value
        out_base = (td.block_idx.z * groups + group) * outs
        for r in td.static_range(groups4):
            for k in td.static_range(4):
                row = first_row + (ty + r * down) * 4 + k
                for c in td.static_range(thread_columns):
                    to = td.block_idx.x * columns + tx + c * across
                    if row < outs and to < weights:
                        out[(out_base + row) * weights + to] = sums[
                            (r * 4 + k) * thread_columns + c
                        ]

    return sum_weights


@functools.cache
def adder(dtype: DType) -> Kernel:
    """A kernel that adds up the splits of each weight."""
    work = wide(dtype)

    @td.kernel(checked=False)
    def add_splits(splits, out, count: td.i32, size: td.i32):
        i = td.grid(1)
        total = work(0)
        for split in range(count):
            total += splits[split * size + i]
        out[i] = dtype(total)

    return add_splits


@td.kernel(checked=False)
def swap(x, out, first: td.i32, middle: td.i32, last: td.i32, inner: td.i32):
    """Arrays (first, middle, last, inner) as (last, middle, first, inner)."""
    row, i = td.grid(2)
    quotient = row // last
    c = row - quotient * last
    a = quotient // middle
    b = quotient - a * middle
    if a < first:
        out[((c * middle + b) * first + a) * inner + i] = x[row * inner + i]

"""Convolutions on the CPU: the threads of a block are the lanes of vectors of output positions.

A block computes one span of output positions after the other. It first copies the input elements
that these need, padding included, to a slab, which is contiguous and stays in the core's cache.
Then, for some output channels at a time, it keeps sums in registers while it goes along the slab:
each element loaded is used for all these channels, each weight for some vectors of positions. A
table has the offset of each product's element in the slab, relative to the position.

Positions are counted with gaps: a line of positions is as long as the input that its outputs read,
and a plane has as many lines. So the offset from a position to the element of a tap is the same for
all positions. With a stride, the input is first distributed to planes by the remainder of its
places modulo the stride; within a plane, neighbouring outputs read neighbouring elements again.

Where most positions would be gaps (images of a few elements), positions are counted without gaps,
and the slab has a row for each tap.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Function, Kernel

LANES = 16
NEAR = (1 << 30) - 1  # changes no index; lets the compiler know that it is not negative


class Strip(NamedTuple):
    """What a block multiplies in registers: `channels` at a time, `vectors` of LANES positions.

    `gaps`: positions are counted with gaps. `strided`: neighbouring outputs read elements that are
    a stride apart. `strided_out`: neighbouring outputs are not adjacent in memory.
    """

    channels: int
    vectors: int
    gaps: bool
    strided: bool
    strided_out: bool


@td.struct
class Span:
    """The positions of a block, and its slab. A span has `length` positions, and there are `spans`;
    a row of the slab has `row` elements, of which `reach` are filled, an input channel has `rows`.
    `width`, `height` and `depth` are the places, with gaps, along the axes. As many channels as
    `near` are multiplied at a time, which stay in the nearest cache while all output channels use
    them. A block has `scratch` elements of memory for its slab and its sums."""

    length: td.i32
    spans: td.i32
    row: td.i32
    reach: td.i32
    rows: td.i32
    width: td.i32
    height: td.i32
    depth: td.i32
    near: td.i32
    scratch: td.i32


@functools.cache
def strip_packer(work: DType, channels: int, plain: bool) -> Kernel:
    """A kernel that puts weights in the order in which strips read them: for each group and some
    output channels, by input channels, taps, and these output channels. `plain` are those of which
    all taps are used, in their order, with the input channels outside of them."""

    @td.kernel(checked=False)
    def pack_weights(
        weight, out, axes: Axes,
        outs: td.i32, ins: td.i32, out_step: td.i32, in_step: td.i32, group_step: td.i32,
    ):  # fmt: skip
        lane = td.thread_idx.x
        plane = axes.y.taps * axes.x.taps
        taps = axes.z.taps * plane
        depth = ins * taps
        o = td.block_idx.y * channels
        base = td.block_idx.z * group_step + o * out_step
        to = (td.block_idx.z * td.grid_dim.y + td.block_idx.y) * depth * channels
        k0 = td.block_idx.x * LANES
        k = k0 + lane
        if plain:
            if k < depth:
                for r in td.static_range(channels):
                    value = work(0)
                    if o + r < outs:
                        value = work(weight[base + r * out_step + k0 + lane])
                    out[to + k * channels + r] = value
        elif k < depth:
            channel = k // taps
            quotient = k - channel * taps
            jz = quotient // plane
            quotient -= jz * plane
            jy = quotient // axes.x.taps
            jx = quotient - jy * axes.x.taps
            tap = (axes.z.first + jz * axes.z.step) * axes.y.kernel
            tap = (tap + axes.y.first + jy * axes.y.step) * axes.x.kernel
            tap += axes.x.first + jx * axes.x.step
            at = base + channel * in_step + tap
            for r in td.static_range(channels):
                if o + r < outs:
                    out[to + k * channels + r] = work(weight[at + r * out_step])
                else:
                    out[to + k * channels + r] = work(0)

    return pack_weights


@functools.cache
def strips(dtype: DType, strip: Strip) -> Kernel:
    """A kernel that convolves, with weights that are packed for it. `table` has the remainders
    of the planes of a channel along each axis, then the offset of each product's element."""
    work = wide(dtype)
    channels, vectors = strip.channels, strip.vectors
    fill = fill_planes(work, strip.strided) if strip.gaps else _fill_taps(work)
    write = _write(dtype, strip)

    @td.kernel(checked=False)
    def convolve_strips(
        x, w, bias, slab, partial, out, table: td.Array[td.i32], axes: Axes, span: Span,
        batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32, tiles: td.i32, parts: td.i32,
        most: td.i32, biased: td.i32,
    ):  # fmt: skip
        lane = td.thread_idx.x
        sums = td.local(channels * vectors, work)
        values = td.local(vectors, work)
        taps = axes.z.taps * axes.y.taps * axes.x.taps
        slab_at = td.block_idx.x * span.scratch
        sums_of_all = slab_at + most * span.rows * span.row
        chunks = td.maximum((ins + most - 1) // most, 1)
        for item in range(td.block_idx.x, span.spans * groups * parts, td.grid_dim.x):
            span_number = item // (groups * parts)
            quotient = item - span_number * groups * parts
            group = quotient // parts
            part = quotient - group * parts
            start = span_number * span.length
            for chunk in range(chunks):
                first = chunk * most
                count = td.minimum(ins - first, most)
                fill(
                    x, slab, table, axes, span, batch, group * ins + first, groups * ins, count,
                    start, slab_at,
                )  # fmt: skip
                td.sync_threads()
                begin = part * tiles // parts
                end = (part + 1) * tiles // parts
                for q in range(0, span.length, LANES * vectors):
                    for near_first in range(0, td.maximum(count, 1), span.near):
                        near_count = td.minimum(count - near_first, span.near)
                        for tile in range(begin, end):
                            sums_at = sums_of_all + (tile - begin) * channels * span.length + q
                            w_at = (group * tiles + tile) * ins + first + near_first
                            w_at *= taps * channels
                            if near_first == 0:
                                for i in td.static_range(channels * vectors):
                                    sums[i] = work(0)
                            else:
                                for r in td.static_range(channels):
                                    back = (sums_at + r * span.length) & NEAR
                                    for v in td.static_range(vectors):
                                        sums[r * vectors + v] = slab[back + v * LANES + lane]
                            at = slab_at + q
                            entry = span.rows * 3 + near_first * taps
                            for k in range(near_count * taps):
                                near = (at + table[entry + k]) & NEAR
                                near_w = w_at & NEAR
                                for v in td.static_range(vectors):
                                    values[v] = slab[near + v * LANES + lane]
                                for r in td.static_range(channels):
                                    weight = w[near_w + r]
                                    for v in td.static_range(vectors):
                                        sums[r * vectors + v] += values[v] * weight
                                w_at += channels
                            for r in td.static_range(channels):
                                to = (sums_at + r * span.length) & NEAR
                                for v in td.static_range(vectors):
                                    slab[to + v * LANES + lane] = sums[r * vectors + v]
                td.sync_threads()
                write(
                    slab, sums_of_all, bias, partial, out, axes, span, batch,
                    group * outs + begin * channels,
                    td.minimum(end * channels, outs) - begin * channels, groups * outs, start,
                    biased != 0 and chunk == 0, chunk > 0, chunk + 1 == chunks,
                )  # fmt: skip
                td.sync_threads()

    return convolve_strips


# --- functions of the kernels ---------------------------------------------------------------------


@functools.cache
def fill_planes(work: DType, strided: bool) -> Function:
    """Copies the elements that a span reads, line by line, plane by plane."""

    @td.func
    def fill(
        x,
        slab,
        table,
        axes,
        span,
        batch,
        first,
        channels,
        count,
        start,
        slab_at,
    ):
        lane = td.thread_idx.x
        image = axes.z.size * axes.y.size * axes.x.size
        lines = start // span.width
        column0 = start - lines * span.width
        planes = lines // span.height
        y0 = lines - planes * span.height
        n0 = planes // span.depth
        z0 = planes - n0 * span.depth
        to = slab_at
        for channel in range(count):
            for row in range(span.rows):
                from_z = table[row * 3] + axes.z.start
                from_y = table[row * 3 + 1] + axes.y.start
                from_x = table[row * 3 + 2] + axes.x.start
                n = n0
                z = z0
                y = y0
                column = column0
                base = (n * channels + first + channel) * image
                done = 0
                while done < span.reach:
                    take = td.minimum(span.width - column, span.reach - done)
                    iz = z * axes.z.stride + from_z
                    iy = y * axes.y.stride + from_y
                    ix = column * axes.x.stride + from_x
                    there = iz >= 0 and iz < axes.z.size and iy >= 0 and iy < axes.y.size
                    there = there and n < batch
                    # Places before `left` and from `right` on are in the padding.
                    left = take
                    right = take
                    if there:
                        step = axes.x.stride
                        left = td.clip((step - 1 - ix) // step, 0, take)
                        right = td.clip((axes.x.size - ix + step - 1) // step, left, take)
                        source = base + (iz * axes.y.size + iy) * axes.x.size + ix
                        whole = left + (right - left) // LANES * LANES
                        for q in range(left, whole, LANES):
                            near = (to + done + q) & NEAR
                            if strided:
                                slab[near + lane] = work(x[source + (q + lane) * step])
                            else:
                                slab[near + lane] = work(x[((source + q) & NEAR) + lane])
                        if whole + lane < right:
                            if strided:
                                value = work(x[source + (whole + lane) * step])
                                slab[to + done + whole + lane] = value
                            else:
                                slab[to + done + whole + lane] = work(x[source + whole + lane])
                    for q in range(0, left, LANES):
                        if q + lane < left:
                            slab[to + done + q + lane] = work(0)
                    for q in range(right, take, LANES):
                        if q + lane < take:
                            slab[to + done + q + lane] = work(0)
                    done += take
                    column = 0
                    y += 1
                    if y == span.height:
                        y = 0
                        z += 1
                        if z == span.depth:
                            z = 0
                            n += 1
                            base += channels * image
                to += span.row

    return fill


@functools.cache
def _fill_taps(work: DType) -> Function:
    """Copies a row for each tap."""

    @td.func
    def fill(
        x,
        slab,
        table,
        axes,
        span,
        batch,
        first,
        channels,
        count,
        start,
        slab_at,
    ):
        lane = td.thread_idx.x
        image = axes.z.size * axes.y.size * axes.x.size
        for q in range(0, span.length, LANES):
            position = start + q + lane
            quotient = position // axes.x.count
            ix0 = (position - quotient * axes.x.count) * axes.x.stride + axes.x.start
            n = quotient // axes.y.count
            iy0 = (quotient - n * axes.y.count) * axes.y.stride + axes.y.start
            quotient = n
            n = quotient // axes.z.count
            iz0 = (quotient - n * axes.z.count) * axes.z.stride + axes.z.start
            base = (n * channels + first) * image
            to = slab_at + q
            for _ in range(count):
                for jz in range(axes.z.taps):
                    iz = iz0 + jz * axes.z.dilation
                    for jy in range(axes.y.taps):
                        iy = iy0 + jy * axes.y.dilation
                        there = iz >= 0 and iz < axes.z.size and iy >= 0 and iy < axes.y.size
                        there = there and n < batch
                        for jx in range(axes.x.taps):
                            ix = ix0 + jx * axes.x.dilation
                            value = work(0)
                            if there and ix >= 0 and ix < axes.x.size:
                                place = (iz * axes.y.size + iy) * axes.x.size + ix
                                value = work(x[base + place])
                            slab[to + lane] = value
                            to += span.row
                base += image

    return fill


@functools.cache
def _write(dtype: DType, strip: Strip) -> Function:
    """Adds earlier partial sums, or the bias, and writes the results of some channels."""
    work = wide(dtype)
    gaps, strided_out = strip.gaps, strip.strided_out

    @td.func
    def write(
        slab, sums, bias, partial, out, axes, span, batch, channel, count, channels, start, biased,
        is_more, is_last,
    ):  # fmt: skip
        lane = td.thread_idx.x
        plane = axes.z.out_size * axes.y.out_size * axes.x.out_size
        # Lines, one behind the other; without gaps an image is one.
        line = start // span.width
        column0 = start - line * span.width
        z0 = line // span.height
        y0 = line - z0 * span.height
        n0 = z0 // span.depth
        z0 -= n0 * span.depth
        in_line = axes.x.count if gaps else span.width
        for o in range(count):
            addend = work(0)
            if biased:
                addend = work(bias[channel + o])
            n = n0
            oz = z0
            oy = y0
            column = column0
            done = 0
            while done < span.length:
                take = td.minimum(span.width - column, span.length - done)
                wanted = td.minimum(take, in_line - column)
                if n < batch and oz < axes.z.count and oy < axes.y.count:
                    to = (n * channels + channel + o) * plane
                    if gaps:
                        place = (oz * axes.z.out_step + axes.z.out_start) * axes.y.out_size
                        place += oy * axes.y.out_step + axes.y.out_start
                        to += place * axes.x.out_size + axes.x.out_start
                    for q in range(0, wanted, LANES):
                        if q + lane < wanted:
                            value = slab[sums + o * span.length + done + q + lane] + addend
                            if strided_out:
                                at = column + q + lane
                                if gaps:
                                    at *= axes.x.out_step
                                else:
                                    quotient = at // axes.x.count
                                    ox = at - quotient * axes.x.count
                                    oz_of = quotient // axes.y.count
                                    oy_of = quotient - oz_of * axes.y.count
                                    oz_of = oz_of * axes.z.out_step + axes.z.out_start
                                    oy_of = oy_of * axes.y.out_step + axes.y.out_start
                                    at = (oz_of * axes.y.out_size + oy_of) * axes.x.out_size
                                    at += ox * axes.x.out_step + axes.x.out_start
                                at += to
                                if is_more:
                                    value += partial[at]
                                if is_last:
                                    out[at] = dtype(value)
                                else:
                                    partial[at] = value
                            else:
                                to_row = to + column + q
                                if is_more:
                                    value += partial[to_row + lane]
                                if is_last:
                                    out[to_row + lane] = dtype(value)
                                else:
                                    partial[to_row + lane] = value
                done += take
                column = 0
                oy += 1
                if oy == span.height:
                    oy = 0
                    oz += 1
                    if oz == span.depth:
                        oz = 0
                        n += 1

    return write

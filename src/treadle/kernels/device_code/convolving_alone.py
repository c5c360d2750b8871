"""Convolutions on the CPU, whose blocks do best that work alone on vectors of neighbours.

A block takes one span of output positions after the other. It first copies what these need of the
input to a slab, padding included, which lies side by side and stays in its cache. Then, for some
output channels at a time, sums wait in registers while it goes along the slab: each element loaded
is used for all these channels, each weight for some vectors of positions. Where in the slab a
product's element is, counted from the position, is in a table.

Positions are counted with gaps: a line of them is as long as what its outputs read, and so are the
lines of a plane, so that from any position the same way leads to what a tap reads. With a stride
the input is dealt out to planes first, by the rests that places leave, and in each of them outputs
read neighbours again.

Where that would be mostly gaps (images of a few elements), positions are counted without any, and
the slab has a row for each tap.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolving import Along
from treadle.kernels.device_code.keys import wide
from treadle.lang.kernel import Function, Kernel

LANES = 16
NEAR = (1 << 30) - 1  # indices are less, which this says so that the compiler knows it


class Strip(NamedTuple):
    """What a block multiplies in registers: `channels` at a time, `vectors` of LANES positions.
    Whether these have `gaps`, whether outputs that are neighbours read places `apart`, and whether
    they lie `strewn`."""

    channels: int
    vectors: int
    gaps: bool
    apart: bool
    strewn: bool


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
        weight, out, along_z: Along, along_y: Along, along_x: Along,
        outs: td.i32, ins: td.i32, out_step: td.i32, in_step: td.i32, group_step: td.i32,
    ):  # fmt: skip
        lane = td.thread_idx.x
        plane = along_y.taps * along_x.taps
        taps = along_z.taps * plane
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
            rest = k - channel * taps
            jz = rest // plane
            rest -= jz * plane
            jy = rest // along_x.taps
            jx = rest - jy * along_x.taps
            tap = (along_z.first + jz * along_z.step) * along_y.kernel
            tap = (tap + along_y.first + jy * along_y.step) * along_x.kernel
            tap += along_x.first + jx * along_x.step
            at = base + channel * in_step + tap
            for r in td.static_range(channels):
                if o + r < outs:
                    out[to + k * channels + r] = work(weight[at + r * out_step])
                else:
                    out[to + k * channels + r] = work(0)

    return pack_weights


@functools.cache
def strips(dtype: DType, strip: Strip) -> Kernel:
    """A kernel that convolves, with weights that are packed for it. `table` has the rests that the
    planes of a channel have along each axis, then where each product's element is."""
    work = wide(dtype)
    channels, vectors = strip.channels, strip.vectors
    fill = _fill_planes(work, strip.apart) if strip.gaps else _fill_taps(work)
    write = _write(dtype, strip)

    @td.kernel(checked=False)
    def convolve_strips(
        x, w, bias, slab, partial, out, table: td.Array[td.i32], along_z: Along, along_y: Along,
        along_x: Along, span: Span, batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32,
        tiles: td.i32, parts: td.i32, most: td.i32, biased: td.i32,
    ):  # fmt: skip
        lane = td.thread_idx.x
        sums = td.local(channels * vectors, work)
        values = td.local(vectors, work)
        taps = along_z.taps * along_y.taps * along_x.taps
        mine = td.block_idx.x * span.scratch
        sums_of_all = mine + most * span.rows * span.row
        chunks = td.maximum((ins + most - 1) // most, 1)
        for item in range(td.block_idx.x, span.spans * groups * parts, td.grid_dim.x):
            span_number = item // (groups * parts)
            rest = item - span_number * groups * parts
            group = rest // parts
            part = rest - group * parts
            start = span_number * span.length
            for chunk in range(chunks):
                first = chunk * most
                count = td.minimum(ins - first, most)
                fill(
                    x, slab, table, along_z, along_y, along_x, span, batch,
                    (group * ins + first), groups * ins, count, start, mine,
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
                            at = mine + q
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
                    slab, sums_of_all, bias, partial, out, along_z, along_y, along_x, span, batch,
                    group * outs + begin * channels,
                    td.minimum(end * channels, outs) - begin * channels, groups * outs, start,
                    biased != 0 and chunk == 0, chunk > 0, chunk + 1 == chunks,
                )  # fmt: skip
                td.sync_threads()

    return convolve_strips


# --- what they are made of -----------------------------------------------------------------------


@functools.cache
def _fill_planes(work: DType, apart: bool) -> Function:
    """Copies what a span reads, line by line, plane by plane."""

    @td.func
    def fill(
        x, slab, table, along_z, along_y, along_x, span, batch, first, channels, count, start, mine
    ):
        lane = td.thread_idx.x
        image = along_z.size * along_y.size * along_x.size
        lines = start // span.width
        column0 = start - lines * span.width
        planes = lines // span.height
        y0 = lines - planes * span.height
        n0 = planes // span.depth
        z0 = planes - n0 * span.depth
        to = mine
        for channel in range(count):
            for row in range(span.rows):
                from_z = table[row * 3] + along_z.start
                from_y = table[row * 3 + 1] + along_y.start
                from_x = table[row * 3 + 2] + along_x.start
                n = n0
                z = z0
                y = y0
                column = column0
                base = (n * channels + first + channel) * image
                done = 0
                while done < span.reach:
                    take = td.minimum(span.width - column, span.reach - done)
                    iz = z * along_z.stride + from_z
                    iy = y * along_y.stride + from_y
                    ix = column * along_x.stride + from_x
                    there = iz >= 0 and iz < along_z.size and iy >= 0 and iy < along_y.size
                    there = there and n < batch
                    # Places before `left` and from `right` on are in the padding.
                    left = take
                    right = take
                    if there:
                        step = along_x.stride
                        left = td.clip((step - 1 - ix) // step, 0, take)
                        right = td.clip((along_x.size - ix + step - 1) // step, left, take)
                        source = base + (iz * along_y.size + iy) * along_x.size + ix
                        whole = left + (right - left) // LANES * LANES
                        for q in range(left, whole, LANES):
                            near = (to + done + q) & NEAR
                            if apart:
                                slab[near + lane] = work(x[source + (q + lane) * step])
                            else:
                                slab[near + lane] = work(x[((source + q) & NEAR) + lane])
                        if whole + lane < right:
                            if apart:
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
        x, slab, table, along_z, along_y, along_x, span, batch, first, channels, count, start, mine
    ):
        lane = td.thread_idx.x
        image = along_z.size * along_y.size * along_x.size
        for q in range(0, span.length, LANES):
            position = start + q + lane
            rest = position // along_x.count
            ix0 = (position - rest * along_x.count) * along_x.stride + along_x.start
            n = rest // along_y.count
            iy0 = (rest - n * along_y.count) * along_y.stride + along_y.start
            rest = n
            n = rest // along_z.count
            iz0 = (rest - n * along_z.count) * along_z.stride + along_z.start
            base = (n * channels + first) * image
            to = mine + q
            for _ in range(count):
                for jz in range(along_z.taps):
                    iz = iz0 + jz * along_z.dilation
                    for jy in range(along_y.taps):
                        iy = iy0 + jy * along_y.dilation
                        there = iz >= 0 and iz < along_z.size and iy >= 0 and iy < along_y.size
                        there = there and n < batch
                        for jx in range(along_x.taps):
                            ix = ix0 + jx * along_x.dilation
                            value = work(0)
                            if there and ix >= 0 and ix < along_x.size:
                                place = (iz * along_y.size + iy) * along_x.size + ix
                                value = work(x[base + place])
                            slab[to + lane] = value
                            to += span.row
                base += image

    return fill


@functools.cache
def _write(dtype: DType, strip: Strip) -> Function:
    """Adds what was summed before, or the bias, and writes what some channels have become."""
    work = wide(dtype)
    gaps, strewn = strip.gaps, strip.strewn

    @td.func
    def write(
        slab, sums, bias, partial, out, along_z, along_y, along_x, span, batch, channel, count,
        channels, start, biased, is_more, is_last,
    ):  # fmt: skip
        lane = td.thread_idx.x
        plane = along_z.out_size * along_y.out_size * along_x.out_size
        # Lines, one behind the other; without gaps an image is one.
        line = start // span.width
        column0 = start - line * span.width
        z0 = line // span.height
        y0 = line - z0 * span.height
        n0 = z0 // span.depth
        z0 -= n0 * span.depth
        in_line = along_x.count if gaps else span.width
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
                if n < batch and oz < along_z.count and oy < along_y.count:
                    to = (n * channels + channel + o) * plane
                    if gaps:
                        place = (oz * along_z.out_step + along_z.out_start) * along_y.out_size
                        place += oy * along_y.out_step + along_y.out_start
                        to += place * along_x.out_size + along_x.out_start
                    for q in range(0, wanted, LANES):
                        if q + lane < wanted:
                            value = slab[sums + o * span.length + done + q + lane] + addend
                            if strewn:
                                at = column + q + lane
                                if gaps:
                                    at *= along_x.out_step
                                else:
                                    rest = at // along_x.count
                                    ox = at - rest * along_x.count
                                    oz_of = rest // along_y.count
                                    oy_of = rest - oz_of * along_y.count
                                    oz_of = oz_of * along_z.out_step + along_z.out_start
                                    oy_of = oy_of * along_y.out_step + along_y.out_start
                                    at = (oz_of * along_y.out_size + oy_of) * along_x.out_size
                                    at += ox * along_x.out_step + along_x.out_start
                                at += to
                                if is_more:
                                    value += partial[at]
                                if is_last:
                                    out[at] = dtype(value)
                                else:
                                    partial[at] = value
                            else:
                                beside = to + column + q
                                if is_more:
                                    value += partial[beside + lane]
                                if is_last:
                                    out[beside + lane] = dtype(value)
                                else:
                                    partial[beside + lane] = value
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

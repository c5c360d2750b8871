"""Convolutions on the CPU, whose blocks do best that work alone on vectors of neighbours.

A block makes a strip of some vectors of output positions, for many output channels. It first copies
what it needs of the input to a slab, padding included; that fits the nearest cache and lies side by
side. Then, for some output channels at a time, sums wait in registers while it goes along the slab:
each element loaded is used for all these channels, each weight for all vectors.

In a slab *by lines* a row has what all taps along the last axis need for one place of the others,
so taps read it shifted. Positions are counted with a gap behind each line of the output, as long as
the taps reach. In one *by taps* there is a row for each tap, and positions have no gaps; it is for
strides, and for lines that are shorter than a vector.
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
    """What a block does: `channels` at a time, `vectors` of LANES positions, from a slab of so many
    elements; `by_lines` or by taps; whether results lie `apart` in memory."""

    channels: int
    vectors: int
    slab: int
    by_lines: bool
    apart: bool


@functools.cache
def strip_packer(work: DType, channels: int) -> Kernel:
    """A kernel that puts weights in the order in which strips read them: for each group and some
    output channels, by input channels, taps, and these output channels."""

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
        k = td.block_idx.x * LANES + lane
        if k < depth:
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
    """A kernel that convolves, with weights that are packed for it."""
    work = wide(dtype)
    channels, vectors, slab_size = strip.channels, strip.vectors, strip.slab
    by_lines = strip.by_lines
    fill = _fill_by_lines(work) if by_lines else _fill_by_taps(work)
    write = _write(dtype, strip)

    @td.kernel(checked=False)
    def convolve_strips(
        x, w, bias, partial, out, along_z: Along, along_y: Along, along_x: Along,
        batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32, tiles: td.i32, parts: td.i32,
        length: td.i32, slab_rows: td.i32, biased: td.i32,
    ):  # fmt: skip
        slab = td.shared(slab_size, work)
        made = td.shared(channels * vectors * LANES, work)
        lane = td.thread_idx.x
        group = td.block_idx.y // parts
        share = td.block_idx.y - group * parts
        start = td.block_idx.x * (LANES * vectors)
        line_taps = along_x.taps if by_lines else 1
        row_taps = along_z.taps * along_y.taps * (1 if by_lines else along_x.taps)
        rows = ins * row_taps
        sums = td.local(channels * vectors, work)
        values = td.local(vectors, work)
        chunks = (td.maximum(rows, 1) + slab_rows - 1) // slab_rows
        for chunk in range(chunks):
            first = chunk * slab_rows
            count = td.minimum(rows - first, slab_rows)
            fill(
                x, slab, along_z, along_y, along_x, batch, groups, group, ins, row_taps,
                first, count, start, length,
            )  # fmt: skip
            td.sync_threads()
            for tile in range(share * tiles // parts, (share + 1) * tiles // parts):
                for i in td.static_range(channels * vectors):
                    sums[i] = work(0)
                w_at = ((group * tiles + tile) * rows + first) * line_taps * channels
                for row in range(count):
                    at = row * length
                    for _ in range(line_taps):
                        near = at & NEAR
                        near_w = w_at & NEAR
                        for v in td.static_range(vectors):
                            values[v] = slab[near + v * LANES + lane]
                        for r in td.static_range(channels):
                            weight = w[near_w + r]
                            for v in td.static_range(vectors):
                                sums[r * vectors + v] += values[v] * weight
                        at += along_x.dilation
                        w_at += channels
                for i in td.static_range(channels * vectors):
                    made[i * LANES + lane] = sums[i]
                write(
                    made, bias, partial, out, along_z, along_y, along_x, batch,
                    group * outs + tile * channels, td.minimum(channels, outs - tile * channels),
                    groups * outs, start, biased != 0 and chunk == 0, chunk > 0,
                    chunk + 1 == chunks,
                )  # fmt: skip
            td.sync_threads()

    return convolve_strips


# --- what they are made of -----------------------------------------------------------------------


@functools.cache
def _fill_by_lines(work: DType) -> Function:
    """Copies rows of a slab that have what all taps along the last axis need."""

    @td.func
    def fill(
        x, slab, along_z, along_y, along_x, batch, groups, group, ins, row_taps, first, count,
        start, length,
    ):  # fmt: skip
        lane = td.thread_idx.x
        plane = along_z.size * along_y.size * along_x.size
        lines = along_z.count * along_y.count
        width = along_x.count + (along_x.taps - 1) * along_x.dilation
        first_channel = first // row_taps
        first_tap = first - first_channel * row_taps
        for q in range(0, length, LANES):
            # These positions lie in two lines at most: in the second from `width` on.
            line = (start + q) // width
            column = start + q - line * width
            n = line // lines
            oz = (line - n * lines) // along_y.count
            z0 = oz * along_z.stride + along_z.start
            y0 = (line - n * lines - oz * along_y.count) * along_y.stride + along_y.start
            next_n = (line + 1) // lines
            oz = (line + 1 - next_n * lines) // along_y.count
            next_z = oz * along_z.stride + along_z.start
            next_y = line + 1 - next_n * lines - oz * along_y.count
            next_y = next_y * along_y.stride + along_y.start
            at = column + along_x.start
            mine = q + lane < length
            here = column + lane < width and at + lane >= 0 and at + lane < along_x.size
            at_next = at - width
            there = column + lane >= width and at_next + lane >= 0
            there = there and at_next + lane < along_x.size and mine
            here = here and mine
            goes_on = column + LANES > width
            base = ((n * groups + group) * ins + first_channel) * plane + at
            next_base = ((next_n * groups + group) * ins + first_channel) * plane + at_next
            jz = first_tap // along_y.taps
            jy = first_tap - jz * along_y.taps
            to = q
            for _ in range(count):
                iz = z0 + jz * along_z.dilation
                iy = y0 + jy * along_y.dilation
                value = work(0)
                inside = iz >= 0 and iz < along_z.size and iy >= 0 and iy < along_y.size
                if n < batch and inside:
                    near = base + (iz * along_y.size + iy) * along_x.size
                    if here:
                        value = work(x[near + lane])
                if goes_on:
                    iz = next_z + jz * along_z.dilation
                    iy = next_y + jy * along_y.dilation
                    inside = iz >= 0 and iz < along_z.size and iy >= 0 and iy < along_y.size
                    if next_n < batch and inside:
                        far = next_base + (iz * along_y.size + iy) * along_x.size
                        if there:
                            value = work(x[far + lane])
                if mine:
                    slab[to + lane] = value
                to += length
                jy += 1
                if jy == along_y.taps:
                    jy = 0
                    jz += 1
                    if jz == along_z.taps:
                        jz = 0
                        base += plane
                        next_base += plane

    return fill


@functools.cache
def _fill_by_taps(work: DType) -> Function:
    """Copies rows of a slab that have what one tap needs."""

    @td.func
    def fill(
        x, slab, along_z, along_y, along_x, batch, groups, group, ins, row_taps, first, count,
        start, length,
    ):  # fmt: skip
        lane = td.thread_idx.x
        plane = along_z.size * along_y.size * along_x.size
        first_channel = first // td.maximum(row_taps, 1)
        first_tap = first - first_channel * row_taps
        for q in range(0, length, LANES):
            position = start + q + lane
            rest = position // along_x.count
            ix0 = (position - rest * along_x.count) * along_x.stride + along_x.start
            n = rest // along_y.count
            iy0 = (rest - n * along_y.count) * along_y.stride + along_y.start
            rest = n
            n = rest // along_z.count
            iz0 = (rest - n * along_z.count) * along_z.stride + along_z.start
            base = ((n * groups + group) * ins + first_channel) * plane
            jx = first_tap % along_x.taps
            jy = first_tap // along_x.taps % along_y.taps
            jz = first_tap // along_x.taps // along_y.taps
            to = q
            for _ in range(count):
                iz = iz0 + jz * along_z.dilation
                iy = iy0 + jy * along_y.dilation
                ix = ix0 + jx * along_x.dilation
                inside = iz >= 0 and iz < along_z.size and iy >= 0 and iy < along_y.size
                inside = inside and ix >= 0 and ix < along_x.size and n < batch
                value = work(0)
                if inside:
                    value = work(x[base + (iz * along_y.size + iy) * along_x.size + ix])
                slab[to + lane] = value
                to += length
                jx += 1
                if jx == along_x.taps:
                    jx = 0
                    jy += 1
                    if jy == along_y.taps:
                        jy = 0
                        jz += 1
                        if jz == along_z.taps:
                            jz = 0
                            base += plane

    return fill


@functools.cache
def _write(dtype: DType, strip: Strip) -> Function:
    """Adds what was summed before, or the bias, and writes what some channels have become."""
    work = wide(dtype)
    vectors, by_lines, apart = strip.vectors, strip.by_lines, strip.apart
    in_pieces = by_lines or not apart  # of lines, or images, each side by side in memory
    pieces = 2 if in_pieces else 1

    @td.func
    def write(
        made, bias, partial, out, along_z, along_y, along_x, batch, channel, count, channels,
        start, biased, is_more, is_last,
    ):  # fmt: skip
        lane = td.thread_idx.x
        image = along_z.count * along_y.count * along_x.count
        out_plane = along_z.out_size * along_y.out_size * along_x.out_size
        in_line = along_x.count if by_lines else image
        width = in_line
        lines = 1
        if by_lines:
            width = in_line + (along_x.taps - 1) * along_x.dilation
            lines = along_z.count * along_y.count
        for v in range(vectors):
            position = start + v * LANES
            line = position // width
            column = position - line * width
            for piece in range(pieces):
                left = column - piece * width
                n = (line + piece) // lines if in_pieces else (position + lane) // image
                rest = line + piece - n * lines
                wanted = n < batch
                if in_pieces:
                    wanted = wanted and left + lane >= 0 and left + lane < in_line
                else:
                    rest = position + lane - n * image
                to = (n * channels + channel) * out_plane
                if by_lines or apart:
                    ox = left + lane
                    if not by_lines:
                        ox = rest % along_x.count
                        rest = rest // along_x.count
                    oz = rest // along_y.count
                    oy = (rest - oz * along_y.count) * along_y.out_step + along_y.out_start
                    oz = oz * along_z.out_step + along_z.out_start
                    to += (oz * along_y.out_size + oy) * along_x.out_size
                    if apart:
                        to += ox * along_x.out_step + along_x.out_start
                if not apart:
                    to += left
                if wanted:
                    for r in range(count):
                        value = made[(r * vectors + v) * LANES + lane]
                        if biased:
                            value += work(bias[channel + r])
                        at = to + r * out_plane
                        if is_more:
                            value += partial[at] if apart else partial[at + lane]
                        if is_last:
                            if apart:
                                out[at] = dtype(value)
                            else:
                                out[at + lane] = dtype(value)
                        elif apart:
                            partial[at] = value
                        else:
                            partial[at + lane] = value

    return write

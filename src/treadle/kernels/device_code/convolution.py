"""Convolutions on GPUs: products of the weights with windows of the input (implicit GEMM).

A convolution is a matrix product. Its rows are output channels, its columns output positions, and
its inner axis are the taps of the kernel and the input channels. The right operand would be the
input once for each tap; it is never stored. Threads load its elements from the input, and zeros for
those in the padding.

The outputs of a transposed convolution whose places have the same remainder modulo the stride are a
convolution of stride 1 with some of the taps. So `Along` says for each axis which taps are used,
and which outputs are computed.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Kernel


@td.struct
class Along:
    """One axis of a convolution: output i reads the input at i * stride + start + j * dilation for
    each tap j, outside of the input zeros. The weight of tap j is at `first` + j * step of the
    `kernel` weights, and the output lies at `out_start` + i * out_step of `out_size`."""

    size: td.i32
    count: td.i32
    stride: td.i32
    start: td.i32
    dilation: td.i32
    taps: td.i32
    first: td.i32
    step: td.i32
    kernel: td.i32
    out_start: td.i32
    out_step: td.i32
    out_size: td.i32


@td.struct
class Axes:
    """The three axes; of images with fewer axes the first ones have one place."""

    z: Along
    y: Along
    x: Along


MOST_JOINED = 512


class Tile(NamedTuple):
    """What a block of threads computes, `rows` channels at `columns` positions, and how much of it
    a thread does. It goes along `depth` input channels at a time."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int
    copies: int = 1  # of tiles in shared memory; with two, one barrier a step is enough

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)


@functools.cache
def packer(work: DType, rows: int, depth: int) -> Kernel:
    """A kernel that puts weights in the order in which tiles read them: by tiles of `rows` output
    channels, taps, input channels (as many as are a multiple of `depth`), and the tile's rows, with
    zeros for channels that do not exist."""

    @td.kernel(checked=False)
    def pack_weights(
        weight, out, outs: td.i32, ins: td.i32, taps: td.i32, tiles: td.i32,
        out_step: td.i32, in_step: td.i32, group_step: td.i32,
    ):  # fmt: skip
        i = td.grid(1)
        padded = (ins + depth - 1) // depth * depth
        row = i % rows
        quotient = i // rows
        channel = quotient % padded
        quotient = quotient // padded
        tap = quotient % taps
        quotient = quotient // taps
        group = quotient // tiles
        o = quotient % tiles * rows + row
        inside = o < outs and channel < ins
        at = group * group_step + o * out_step + channel * in_step + tap
        value = work(weight[at if inside else 0])
        out[i] = value if inside else work(0)

    return pack_weights


@functools.cache
def tiled(dtype: DType, tile: Tile, biased: bool, joined: bool) -> Kernel:
    """A kernel that convolves; a block makes a tile of the result, its weights are packed for the
    tile. If channels are few, they are `joined` with the taps, of which all are used and which are
    no more than MOST_JOINED in all: then few of a step's products are with padding."""
    work = wide(dtype)
    vec = td.vec4[work]
    depth, columns, copies = tile.depth, tile.columns, tile.copies
    threads = tile.threads
    across = columns // tile.thread_columns
    tile_rows = tile.rows
    down = tile.rows // tile.thread_rows
    rows4 = tile.rows // 4
    groups4 = tile.thread_rows // 4
    thread_columns = tile.thread_columns
    left_size = depth * rows4
    right_size = depth * columns
    left_loads = -(-left_size // threads)
    left_even = left_size % threads == 0
    right_loads = right_size // threads
    right_step = threads // columns
    far = -(1 << 30)

    @td.kernel(checked=False)
    def convolve_tiles(
        x, w: td.Array[vec], bias, out, axes: Axes,
        batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32, tiles: td.i32,
    ):  # fmt: skip
        left = td.shared(copies * left_size, vec)
        right = td.shared(copies * right_size, work)
        places = td.shared(columns, td.i32)
        distances = td.shared(MOST_JOINED if joined else 1, td.i32)  # from a window's first element
        offsets = td.shared(MOST_JOINED if joined else 1, td.i32)  # along x, y and z: a byte each
        t = td.thread_idx.x
        group = td.block_idx.y // tiles
        row_tile = td.block_idx.y - group * tiles
        # The thread loads for this column, whose window begins here.
        column = t % columns
        part = t // columns
        position = td.block_idx.x * columns + column
        quotient = position // axes.x.count
        ox = position - quotient * axes.x.count
        quotient_y = quotient // axes.y.count
        oy = quotient - quotient_y * axes.y.count
        n = quotient_y // axes.z.count
        oz = quotient_y - n * axes.z.count
        exists = n < batch
        z0 = oz * axes.z.stride + axes.z.start if exists else far
        y0 = oy * axes.y.stride + axes.y.start
        x0 = ox * axes.x.stride + axes.x.start
        plane = axes.z.size * axes.y.size * axes.x.size
        base = (n * groups + group) * ins * plane
        if part == 0:
            place_z = oz * axes.z.out_step + axes.z.out_start
            place_y = oy * axes.y.out_step + axes.y.out_start
            place_x = ox * axes.x.out_step + axes.x.out_start
            out_plane = axes.z.out_size * axes.y.out_size * axes.x.out_size
            place = (place_z * axes.y.out_size + place_y) * axes.x.out_size + place_x
            place += (n * groups + group) * outs * out_plane
            places[column] = place if exists else -1
        all_taps = axes.z.kernel * axes.y.kernel * axes.x.kernel
        rows = ins
        used_taps = axes.z.taps * axes.y.taps * axes.x.taps
        if joined:
            rows = ins * all_taps
            for k in range(t, rows, threads):
                channel = k // all_taps
                left_over = k - channel * all_taps
                tap_z = left_over // (axes.y.kernel * axes.x.kernel)
                left_over -= tap_z * axes.y.kernel * axes.x.kernel
                tap_y = left_over // axes.x.kernel
                tap_x = left_over - tap_y * axes.x.kernel
                offsets[k] = (tap_z * 256 + tap_y) * 256 + tap_x
                distance = tap_z * axes.z.dilation * axes.y.size + tap_y * axes.y.dilation
                distances[k] = channel * plane + distance * axes.x.size + tap_x * axes.x.dilation
            td.sync_threads()
            all_taps = 1
            used_taps = 1
        deep = (rows + depth - 1) // depth
        w_tile = td.block_idx.y * all_taps * deep * left_size + t
        steps = used_taps * deep
        of_left = td.local(left_loads, vec)
        of_right = td.local(right_loads, work)
        sums = td.local(thread_columns * groups4, vec)
        for s in td.static_range(thread_columns * groups4):
            sums[s] = vec(work(0))
        tx = t % across
        ty = t // across
        jz = 0
        jy = 0
        jx = 0
        chunk = 0
        left_at = 0
        right_at = 0
        for step in range(steps + 1):
            if step < steps:
                # The next step's operands are loaded while this one's are multiplied.
                tap = 0
                if not joined:
                    tap = (axes.z.first + jz * axes.z.step) * axes.y.kernel
                    tap = (tap + axes.y.first + jy * axes.y.step) * axes.x.kernel
                    tap += axes.x.first + jx * axes.x.step
                w_at = w_tile + (tap * deep + chunk) * left_size
                for v in td.static_range(left_loads):
                    if left_even or v * threads + t < left_size:
                        of_left[v] = w[w_at + v * threads]
                iz = z0 + jz * axes.z.dilation
                iy = y0 + jy * axes.y.dilation
                ix = x0 + jx * axes.x.dilation
                source = base + (iz * axes.y.size + iy) * axes.x.size + ix
                for v in td.static_range(right_loads):
                    row = chunk * depth + part + v * right_step
                    there = row < rows
                    at = source
                    if joined:
                        entry = row if there else 0
                        offset = offsets[entry]
                        iz = z0 + (offset >> 16) * axes.z.dilation
                        iy = y0 + ((offset >> 8) & 255) * axes.y.dilation
                        ix = x0 + (offset & 255) * axes.x.dilation
                        at += distances[entry]
                    else:
                        at += row * plane
                    there = there and iz >= 0 and iz < axes.z.size
                    there = there and iy >= 0 and iy < axes.y.size
                    there = there and ix >= 0 and ix < axes.x.size
                    value = work(x[at if there else 0])
                    of_right[v] = value if there else work(0)
                chunk += 1
                if chunk == deep:
                    chunk = 0
                    jx += 1
                    if jx == axes.x.taps:
                        jx = 0
                        jy += 1
                        if jy == axes.y.taps:
                            jy = 0
                            jz += 1
            if step > 0:
                for d in td.static_range(depth):
                    for c in td.static_range(thread_columns):
                        value = right[right_at + d * columns + tx + c * across]
                        for r in td.static_range(groups4):
                            upper = left[left_at + d * rows4 + ty + r * down]
                            sums[c * groups4 + r] += upper * value
                if copies == 1:
                    td.sync_threads()
                else:
                    left_at = left_size - left_at
                    right_at = right_size - right_at
            if step < steps:
                for v in td.static_range(left_loads):
                    if left_even or v * threads + t < left_size:
                        left[left_at + v * threads + t] = of_left[v]
                for v in td.static_range(right_loads):
                    right[right_at + (part + v * right_step) * columns + column] = of_right[v]
            td.sync_threads()
        out_plane = axes.z.out_size * axes.y.out_size * axes.x.out_size
        first = row_tile * tile_rows + ty * 4
        for c in td.static_range(thread_columns):
            place = places[tx + c * across]
            for r in td.static_range(groups4):
                made = sums[c * groups4 + r]
                values = (made.x, made.y, made.z, made.w)
                for k in td.static_range(4):
                    o = first + r * down * 4 + k
                    if place >= 0 and o < outs:
                        value = values[k]
                        if biased:
                            value += work(bias[group * outs + o])
                        out[place + o * out_plane] = dtype(value)

    return convolve_tiles


@functools.cache
def direct(dtype: DType, rows: int, biased: bool) -> Kernel:
    """A kernel that convolves; a thread makes some output channels at one position. It is for few
    output channels in a group, of which a tile would be mostly empty."""
    work = wide(dtype)

    @td.kernel(checked=False)
    def convolve_directly(
        x, w, bias, out, axes: Axes,
        batch: td.i32, groups: td.i32, ins: td.i32, outs: td.i32, tiles: td.i32,
    ):  # fmt: skip
        group = td.block_idx.y // tiles
        first = (td.block_idx.y - group * tiles) * rows
        position = td.block_idx.x * td.block_dim.x + td.thread_idx.x
        quotient = position // axes.x.count
        ox = position - quotient * axes.x.count
        n = quotient // axes.y.count
        oy = quotient - n * axes.y.count
        quotient = n
        n = quotient // axes.z.count
        oz = quotient - n * axes.z.count
        if n < batch:
            plane = axes.z.size * axes.y.size * axes.x.size
            base = (n * groups + group) * ins * plane
            z0 = oz * axes.z.stride + axes.z.start
            y0 = oy * axes.y.stride + axes.y.start
            x0 = ox * axes.x.stride + axes.x.start
            sums = td.local(rows, work)
            for r in td.static_range(rows):
                sums[r] = work(0)
            kernel = axes.y.kernel * axes.x.kernel
            w_tile = td.block_idx.y * axes.z.kernel * kernel
            for jz in range(axes.z.taps):
                iz = z0 + jz * axes.z.dilation
                for jy in range(axes.y.taps):
                    iy = y0 + jy * axes.y.dilation
                    inside = iz >= 0 and iz < axes.z.size and iy >= 0 and iy < axes.y.size
                    tap = (axes.z.first + jz * axes.z.step) * axes.y.kernel
                    tap = (tap + axes.y.first + jy * axes.y.step) * axes.x.kernel
                    for jx in range(axes.x.taps):
                        ix = x0 + jx * axes.x.dilation
                        if inside and ix >= 0 and ix < axes.x.size:
                            w_at = w_tile + tap + axes.x.first + jx * axes.x.step
                            w_at *= ins * rows
                            at = base + (iz * axes.y.size + iy) * axes.x.size + ix
                            for _ in range(ins):
                                value = work(x[at])
                                for r in td.static_range(rows):
                                    sums[r] += value * w[w_at + r]
                                at += plane
                                w_at += rows
            place = oz * axes.z.out_step + axes.z.out_start
            place = place * axes.y.out_size + oy * axes.y.out_step + axes.y.out_start
            place = place * axes.x.out_size + ox * axes.x.out_step + axes.x.out_start
            out_plane = axes.z.out_size * axes.y.out_size * axes.x.out_size
            place += ((n * groups + group) * outs + first) * out_plane
            for r in td.static_range(rows):
                if first + r < outs:
                    value = sums[r]
                    if biased:
                        value += work(bias[group * outs + first + r])
                    out[place + r * out_plane] = dtype(value)

    return convolve_directly


@functools.cache
def bias_filler(dtype: DType, biased: bool) -> Kernel:
    """A kernel that writes the bias, or zeros, to all places of each output channel."""

    @td.kernel(checked=False)
    def fill_bias(bias, out, channels: td.i32, places: td.i32):
        row, place = td.grid(2)
        value = dtype(0)
        if biased:
            value = bias[row % channels]
        out[row * places + place] = value

    return fill_bias

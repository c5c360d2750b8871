"""Convolutions by fragments: implicit products of packed weights and windows of an image.

Rows are output channels, columns output positions, and the inner axis are the taps, with the input
channels of a group within each tap. The image is packed first: the channels of a group become
neighbours, with zeros up to a whole number of pieces of 16 bytes. Then a piece has channels of one
place of the image, wherever a window lies, and is copied at once or is zeros in the padding.

The taps of a window that are inside of the image are three sets of bits, one for each axis, in one
word for each position: a piece is copied where the bits of its tap are set.

float32 numbers are multiplied as TF32, and rounded to it where they are packed.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.fragment_pipeline import (
    LANES,
    depth_of,
    four_neighbours,
    piece_of,
    placer,
    same_permutation,
    summer,
)
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

MOST_TAPS = 31  # of the three axes together: their bits and one more are a word
_NOWHERE = 31  # the bit that no position has


@functools.cache
def fragment_convolver(
    dtype: DType, tile: FragmentTile, biased: bool, lanes: int, parts: bool = False
) -> Kernel:
    """A kernel whose blocks compute a tile each, of a packed image and packed weights. With four
    `lanes` four positions are neighbours in memory, and are stored at once.

    `deep` are the elements of an output channel's weights, `padded` those of a tap. With `parts` a
    block sums `chunk` elements of the weights, and stores float32 sums, without the bias, to a part
    of the result of `size` elements."""
    rows, columns, _, warp_rows, warp_columns, stages, _ = tile
    piece, depth = piece_of(dtype), depth_of(tile, dtype)
    unit = piece // 4  # vec4s in a piece
    pieces, threads = depth // piece, tile.threads
    a_size, b_size = rows * pieces, columns * pieces
    a_loads, b_loads = -(-a_size // threads), -(-b_size // threads)
    a_even, b_even = a_size % threads == 0, b_size % threads == 0
    alike = same_permutation(pieces, threads)
    across_warps = columns // warp_columns
    down, across = warp_rows // 16, warp_columns // 8
    place_piece = placer(pieces)
    vec: object = td.vec4[dtype]
    made = td.f32 if parts else dtype
    stored: object = td.vec4[made] if lanes == 4 else made
    words, sums_type = td.vec4[td.u32], td.vec4[td.f32]
    copy_later, sixteen = builtins.copy_later, builtins.sixteen_bytes

    @td.func
    def fetch_weights(x, to_here, slot, t, at, to, of_piece, of_step, axes):
        for v in td.static_range(a_loads):
            if a_even or t + v * threads < a_size:
                copy_later(
                    to_here,
                    slot + (to[0] + v * threads if alike else to[v]),
                    sixteen(x, at[v]),
                )
            at[v] += pieces * unit

    @td.func
    def fetch_windows(x, to_here, slot, t, at, to, inside, step, axes):
        # Of the piece that the thread copies, in this step: its channel, the tap along each axis,
        # then the size of a place and of a tap, all in vec4s, and where bits of y and z begin.
        distance = (step[3] * axes.z.dilation) * axes.y.size + step[2] * axes.y.dilation
        distance = (distance * axes.x.size + step[1] * axes.x.dilation) * step[4] + step[0]
        one = td.u32(1)
        bits = (one << td.u32(step[1])) | (one << td.u32(step[6] + step[2]))
        bits |= one << td.u32(step[7] + step[3])
        bits = bits if step[3] < axes.z.taps else one << td.u32(_NOWHERE)
        for v in td.static_range(b_loads):
            if b_even or t + v * threads < b_size:
                there = inside[v] & bits == bits
                from_here = td.where(there, at[v] + distance, 0)
                copy_later(
                    to_here,
                    slot + (to[0] + v * threads if alike else to[v]),
                    td.where(there, sixteen(x, from_here), words(0)),
                )
        step[0] += pieces * unit
        while step[0] >= step[5]:
            step[0] -= step[5]
            step[1] += 1
            if step[1] == axes.x.taps:
                step[1] = 0
                step[2] += 1
                if step[2] == axes.y.taps:
                    step[2] = 0
                    step[3] += 1

    sum_products = summer(dtype, tile, fetch_weights, fetch_windows, True)

    @td.kernel(checked=False)
    def convolve_fragments(
        w: td.Array[vec], x: td.Array[vec], bias: td.Array[dtype], out: td.Array[stored],
        axes: Axes,
        batch: td.i32, groups: td.i32, outs: td.i32, padded: td.i32, deep: td.i32, tiles: td.i32,
        chunk: td.i32, size: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, words)
        right = td.shared(stages * b_size, words)
        places = td.shared(columns, td.i32)
        t = td.thread_idx.x
        lane = t % LANES
        warp = t // LANES
        # Blocks of the same positions follow each other, and share what they read.
        column_tile = td.block_idx.x // tiles
        row = (td.block_idx.x - column_tile * tiles) * rows
        group = td.block_idx.y
        position0 = column_tile * columns
        image = axes.z.count * axes.y.count * axes.x.count
        plane = axes.z.size * axes.y.size * axes.x.size
        out_plane = axes.z.out_size * axes.y.out_size * axes.x.out_size
        positions = batch * image
        for first in td.static_range(0, columns, threads):
            column = first + t
            if column < columns:
                position = position0 + column
                n = position // image
                rest = position - n * image
                oz = rest // (axes.y.count * axes.x.count)
                rest -= oz * axes.y.count * axes.x.count
                oy = rest // axes.x.count
                ox = rest - oy * axes.x.count
                place = oz * axes.z.out_step + axes.z.out_start
                place = place * axes.y.out_size + oy * axes.y.out_step + axes.y.out_start
                place = place * axes.x.out_size + ox * axes.x.out_step + axes.x.out_start
                place += (n * groups + group) * outs * out_plane
                if parts:
                    place += td.block_idx.z * size
                places[column] = place if position < positions else -1
        near = t % pieces
        begin = td.block_idx.z * chunk if parts else 0
        a_at = td.local(a_loads, td.i32)
        a_to = td.local(1 if alike else a_loads, td.i32)
        none = td.local(1, td.i32)
        for v in td.static_range(a_loads):
            line = (t + v * threads) // pieces
            if v == 0 or not alike:
                a_to[v] = place_piece(line, near)
            a_at[v] = (group * outs + td.minimum(row + line, outs - 1)) * (deep // 4)
            a_at[v] += begin // 4 + near * unit
        b_at = td.local(b_loads, td.i32)
        b_to = td.local(1 if alike else b_loads, td.i32)
        inside = td.local(b_loads, td.u32)
        of_tap = padded // 4
        y_bits = axes.x.taps
        z_bits = axes.x.taps + axes.y.taps
        for v in td.static_range(b_loads):
            line = (t + v * threads) // pieces
            if v == 0 or not alike:
                b_to[v] = place_piece(line, near)
            position = position0 + line
            n = position // image
            rest = position - n * image
            oz = rest // (axes.y.count * axes.x.count)
            rest -= oz * axes.y.count * axes.x.count
            oy = rest // axes.x.count
            ox = rest - oy * axes.x.count
            iz = oz * axes.z.stride + axes.z.start
            iy = oy * axes.y.stride + axes.y.start
            ix = ox * axes.x.stride + axes.x.start
            bits = td.u32(0)
            if position < positions:
                for j in range(axes.x.taps):
                    i = ix + j * axes.x.dilation
                    if i >= 0 and i < axes.x.size:
                        bits |= td.u32(1) << td.u32(j)
                for j in range(axes.y.taps):
                    i = iy + j * axes.y.dilation
                    if i >= 0 and i < axes.y.size:
                        bits |= td.u32(1) << td.u32(y_bits + j)
                for j in range(axes.z.taps):
                    i = iz + j * axes.z.dilation
                    if i >= 0 and i < axes.z.size:
                        bits |= td.u32(1) << td.u32(z_bits + j)
            inside[v] = bits
            b_at[v] = n * plane + (iz * axes.y.size + iy) * axes.x.size + ix
            b_at[v] = (b_at[v] * groups + group) * of_tap
        step = td.local(8, td.i32)
        step[0] = begin // 4 + near * unit
        step[1] = 0
        step[2] = 0
        step[3] = 0
        step[4] = groups * of_tap
        step[5] = of_tap
        step[6] = y_bits
        step[7] = z_bits
        while step[0] >= of_tap:
            step[0] -= of_tap
            step[1] += 1
            if step[1] == axes.x.taps:
                step[1] = 0
                step[2] += 1
                if step[2] == axes.y.taps:
                    step[2] = 0
                    step[3] += 1
        sums = td.local(down * across, sums_type)
        for each in td.static_range(down * across):
            sums[each] = sums_type(0)
        steps = (td.minimum(chunk, deep - begin) if parts else deep) // depth
        sum_products(
            w, x, left, right, sums, steps, axes,
            a_at, a_to, none, none, b_at, b_to, inside, step,
        )  # fmt: skip
        warp_row = warp // across_warps * warp_rows
        warp_column = warp % across_warps * warp_columns
        odd = lane % 2
        for i in td.static_range(down):
            o = row + warp_row + i * 16 + lane // 4 + odd * 8
            addend = td.f32(0)
            if biased and o < outs:
                addend = td.f32(bias[group * outs + o])
            for j in td.static_range(across):
                total = four_neighbours(sums[i * across + j], odd)
                column = warp_column + j * 8 + lane % 4 // 2 * 4
                if o < outs:
                    if lanes == 4:
                        place = places[column]
                        if place >= 0:
                            many = td.vec4[td.f32](addend, addend, addend, addend)
                            out[(place + o * out_plane) // 4] = td.vec4[made](total + many)
                    else:
                        four = (total.x, total.y, total.z, total.w)
                        for e in td.static_range(4):
                            place = places[column + e]
                            if place >= 0:
                                out[place + o * out_plane] = made(four[e] + addend)

    return convolve_fragments


@functools.cache
def part_adder(dtype: DType, biased: bool) -> Kernel:
    """A kernel that adds up the parts of each element, in their order, and the bias."""

    @td.kernel(checked=False)
    def add_parts(
        parts, bias, out, count: td.i32, size: td.i32, channels: td.i32, places: td.i32
    ):  # fmt: skip
        i = td.grid(1)
        if i < size:
            total = td.f32(0)
            for part in range(count):
                total += parts[part * size + i]
            if biased:
                total += td.f32(bias[i // places % channels])
            out[i] = dtype(total)

    return add_parts


@functools.cache
def interleaver(dtype: DType) -> Kernel:
    """A kernel that makes a result of those for each remainder of three strides, which are behind
    each other: (remainders, images and channels, places), of `axes` the places of each."""

    @td.kernel(checked=False)
    def interleave(parts, out, axes: Axes, size: td.i32, rows: td.i32):
        row, x = td.grid(2)
        y = row % axes.y.out_size
        row //= axes.y.out_size
        z = row % axes.z.out_size
        row //= axes.z.out_size
        if row < rows and x < axes.x.out_size:
            of_x, of_y, of_z = axes.x.out_step, axes.y.out_step, axes.z.out_step
            part = (z % of_z * of_y + y % of_y) * of_x + x % of_x
            at = ((row * axes.z.count + z // of_z) * axes.y.count + y // of_y) * axes.x.count
            to = ((row * axes.z.out_size + z) * axes.y.out_size + y) * axes.x.out_size + x
            out[to] = parts[part * size + at + x // of_x]

    return interleave

"""Gradients of convolutions with respect to their weights, by fragments.

Rows are output channels, columns the weights of an output channel, and the inner axis are all
output positions of the batch, of which each block sums one split. Both factors are packed images,
so lines of shared memory are positions, with pieces of neighbouring channels.

A table has the place of each position's window in the packed image, and which taps are inside of
the image. A thread reads the entries of the next step where it begins the copies of this one.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.fragment_pipeline import (
    LANES,
    across_step,
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


@td.kernel(checked=False)
def tabulate_windows(
    table: td.Array[td.vec2[td.i32]], axes: Axes, batch: td.i32, size: td.i32, entries: td.i32
):
    """Where each position's window begins in a packed image, whose places have `size` vec4s, and
    the taps that are inside: for each axis a bit for each of its taps. Positions behind the last
    image have none."""
    position = td.grid(1)
    n = position // axes.x.count
    ix = (position - n * axes.x.count) * axes.x.stride + axes.x.start
    quotient = n // axes.y.count
    iy = (n - quotient * axes.y.count) * axes.y.stride + axes.y.start
    n = quotient // axes.z.count
    iz = (quotient - n * axes.z.count) * axes.z.stride + axes.z.start
    bits = td.u32(0)
    if n < batch:
        for j in range(axes.x.taps):
            i = ix + j * axes.x.dilation
            if i >= 0 and i < axes.x.size:
                bits |= td.u32(1) << td.u32(j)
        for j in range(axes.y.taps):
            i = iy + j * axes.y.dilation
            if i >= 0 and i < axes.y.size:
                bits |= td.u32(1) << td.u32(axes.x.taps + j)
        for j in range(axes.z.taps):
            i = iz + j * axes.z.dilation
            if i >= 0 and i < axes.z.size:
                bits |= td.u32(1) << td.u32(axes.x.taps + axes.y.taps + j)
    at = ((n * axes.z.size + iz) * axes.y.size + iy) * axes.x.size + ix
    if position < entries:
        table[position] = td.vec2[td.i32](at * size, td.bitcast(bits, td.i32))


@functools.cache
def fragment_weight_summer(dtype: DType, tile: FragmentTile) -> Kernel:
    """A kernel that sums a split of `length` positions for a tile of the weights, of packed images.
    `padded` and `out_padded` are the channels of a group in these; a split's sums are (groups,
    outs, taps, padded). The table has entries for two steps behind the last position."""
    rows, columns, _, warp_rows, warp_columns, stages, _ = tile
    piece, depth = piece_of(dtype), depth_of(tile, dtype)
    unit = piece // 4  # vec4s in a piece
    threads = tile.threads
    a_pieces, b_pieces = rows // piece, columns // piece
    a_size, b_size = a_pieces * depth, b_pieces * depth
    a_loads, b_loads = -(-a_size // threads), -(-b_size // threads)
    a_even, b_even = a_size % threads == 0, b_size % threads == 0
    a_alike, b_alike = (same_permutation(each, threads) for each in (a_pieces, b_pieces))
    across_warps = columns // warp_columns
    down, across = warp_rows // 16, warp_columns // 8
    place_a, place_b = (placer(each, across_step(dtype)) for each in (a_pieces, b_pieces))
    vec: object = td.vec4[dtype]
    words, sums_type = td.vec4[td.u32], td.vec4[td.f32]
    copy_later, sixteen = builtins.copy_later, builtins.sixteen_bytes

    @td.func
    def fetch_gradient(x, to_here, slot, t, at, to, none, step, table):
        # The positions that are left, and how far a step, and the thread's next piece, are in the
        # packed gradient.
        for v in td.static_range(a_loads):
            if a_even or t + v * threads < a_size:
                there = (t + v * threads) // a_pieces < step[0]
                from_here = td.where(there, at[0] + v * step[2], 0)
                copy_later(
                    to_here,
                    slot + (to[0] + v * threads if a_alike else to[v]),
                    td.where(there, sixteen(x, from_here), words(0)),
                )
        at[0] += step[1]
        step[0] -= depth

    @td.func
    def fetch_windows(x, to_here, slot, t, windows, to, none, step, table):
        # The bits of the thread's tap, its distance from a window's beginning, the thread's first
        # position in the next step.
        bits = step[0]
        for v in td.static_range(b_loads):
            if b_even or t + v * threads < b_size:
                there = windows[v].y & bits == bits
                from_here = td.where(there, windows[v].x + step[1], 0)
                copy_later(
                    to_here,
                    slot + (to[0] + v * threads if b_alike else to[v]),
                    td.where(there, sixteen(x, from_here), words(0)),
                )
        for v in td.static_range(b_loads):
            windows[v] = table[step[2] + v * (threads // b_pieces)]
        step[2] += depth

    sum_products = summer(dtype, tile, fetch_gradient, fetch_windows, False)

    @td.kernel(checked=False)
    def sum_weights(
        gradient: td.Array[vec], x: td.Array[vec], table: td.Array[td.vec2[td.i32]],
        out: td.Array[td.vec4[td.f32]], axes: Axes, groups: td.i32, outs: td.i32,
        padded: td.i32, out_padded: td.i32, row_tiles: td.i32, positions: td.i32, length: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, words)
        right = td.shared(stages * b_size, words)
        t = td.thread_idx.x
        lane = t % LANES
        warp = t // LANES
        # Blocks of the same positions follow each other, and share what they read.
        column_tile = td.block_idx.x // row_tiles
        row = (td.block_idx.x - column_tile * row_tiles) * rows
        group = td.block_idx.y
        begin = td.block_idx.z * length
        end = td.minimum(begin + length, positions)
        weights = axes.z.taps * axes.y.taps * axes.x.taps * padded
        near = t % a_pieces
        a_at = td.local(1, td.i32)
        a_to = td.local(1 if a_alike else a_loads, td.i32)
        none = td.local(1, td.i32)
        a_step = td.local(3, td.i32)
        a_step[0] = end - begin
        a_step[1] = depth * groups * (out_padded // 4)
        a_step[2] = threads // a_pieces * groups * (out_padded // 4)
        # Past the last channel its piece is read again; the results are not stored.
        channel = td.minimum(row // 4 + near * unit, out_padded // 4 - unit)
        a_at[0] = ((begin + t // a_pieces) * groups + group) * (out_padded // 4) + channel
        for v in td.static_range(1 if a_alike else a_loads):
            a_to[v] = place_a((t + v * threads) // a_pieces, near)
        near = t % b_pieces
        first = column_tile * columns + near * piece
        tap = first // padded
        channel = first - tap * padded
        jz = tap // (axes.y.taps * axes.x.taps)
        tap -= jz * axes.y.taps * axes.x.taps
        jy = tap // axes.x.taps
        jx = tap - jy * axes.x.taps
        bits = (1 << jx) | (1 << (axes.x.taps + jy)) | (1 << (axes.x.taps + axes.y.taps + jz))
        distance = (jz * axes.z.dilation * axes.y.size + jy * axes.y.dilation) * axes.x.size
        distance = (distance + jx * axes.x.dilation) * groups + group
        b_step = td.local(3, td.i32)
        b_step[0] = bits if first < weights else -1
        b_step[1] = distance * (padded // 4) + channel // 4
        b_step[2] = begin + t // b_pieces
        windows = td.local(b_loads, td.vec2[td.i32])
        b_to = td.local(1 if b_alike else b_loads, td.i32)
        for v in td.static_range(1 if b_alike else b_loads):
            b_to[v] = place_b((t + v * threads) // b_pieces, near)
        for v in td.static_range(b_loads):
            windows[v] = table[b_step[2] + v * (threads // b_pieces)]
        b_step[2] += depth
        sums = td.local(down * across, sums_type)
        for each in td.static_range(down * across):
            sums[each] = sums_type(0)
        steps = (end - begin + depth - 1) // depth
        sum_products(
            gradient, x, left, right, sums, steps, table,
            a_at, a_to, none, a_step, windows, b_to, none, b_step,
        )  # fmt: skip
        warp_row = warp // across_warps * warp_rows
        warp_column = warp % across_warps * warp_columns
        odd = lane % 2
        start = (td.block_idx.z * groups + group) * outs
        for i in td.static_range(down):
            o = row + warp_row + i * 16 + lane // 4 + odd * 8
            for j in td.static_range(across):
                total = four_neighbours(sums[i * across + j], odd)
                column = column_tile * columns + warp_column + j * 8 + lane % 4 // 2 * 4
                if o < outs and column < weights:
                    out[(start + o) * (weights // 4) + column // 4] = total

    return sum_weights


@functools.cache
def weight_adder(dtype: DType) -> Kernel:
    """A kernel that adds up the splits of each weight, in their order, and puts the taps of an
    input channel behind each other."""

    @td.kernel(checked=False)
    def add_splits(
        splits, out, count: td.i32, size: td.i32, taps: td.i32, ins: td.i32, padded: td.i32
    ):  # fmt: skip
        i = td.grid(1)
        line = i // padded
        channel = i - line * padded
        if i < size and channel < ins:
            total = td.f32(0)
            for split in range(count):
                total += splits[split * size + i]
            row = line // taps
            out[(row * ins + channel) * taps + line - row * taps] = dtype(total)

    return add_splits

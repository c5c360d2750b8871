"""What kernels of attention on fragments share: tiles of rows in shared memory, and the words of
weights.

A tile has some rows of query, key, value or a gradient, each in pieces of 16 bytes. The pieces of a
row are followed by a free one if their number is even: then eight rows' pieces at one place, which
are read at once, lie in all banks, and where a piece is takes an addition of a constant.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType, bool_, float32
from treadle.kernels.device_code.attention import mask_scaler
from treadle.lang import builtins
from treadle.lang.decorators import Function

PIECE = 8  # elements in 16 bytes
LANES = 32


class Rows(NamedTuple):
    """Rows of an operand: `columns` of them are computed with, a multiple of 16. Memory has as many
    if it is `exact`, otherwise fewer. `aligned` rows begin at multiples of 16 bytes and have a
    multiple of eight columns."""

    dtype: DType
    columns: int
    exact: bool
    aligned: bool

    @property
    def pieces(self) -> int:
        """Of a row, in use."""
        return self.columns // PIECE

    @property
    def pitch(self) -> int:
        """From a row of a tile to the next one, in pieces."""
        return self.pieces | 1


@functools.cache
def fetcher(rows: Rows, many: int, threads: int) -> Function:
    """A function that begins to copy `many` rows to a tile: those from `row` on of `count`, with
    `width` columns. Other rows and columns are zeros."""
    exact, aligned, pieces, pitch = rows.exact, rows.aligned, rows.pieces, rows.pitch
    size = many * pieces
    loads = -(-size // threads)
    full = size % threads == 0
    words = td.vec4[td.u32]
    copy_later, sixteen = builtins.copy_later, builtins.sixteen_bytes

    # If a block's threads have whole rows, a thread's pieces are at one place of different rows.
    straight = threads % pieces == 0
    apart = threads // pieces

    @td.func
    def fetch(x, tile, slot, t, at, step, row, count, width):
        far = t // pieces
        near = t % pieces
        start = at + (row + far) * step + near * PIECE
        left = count - row - far
        if not exact:
            left = left if near * PIECE < width else 0
        to = slot + far * pitch + near
        for v in td.static_range(loads):
            if full or t + v * threads < size:
                inside = v * apart < left
                copy_later(
                    tile,
                    to + v * apart * pitch,
                    td.where(
                        inside, sixteen(x, td.where(inside, start + v * apart * step, 0)), words(0)
                    ),
                )

    @td.func
    def fetch_across(x, tile, slot, t, at, step, row, count, width):
        for v in td.static_range(loads):
            item = t + v * threads
            far = item // pieces
            near = item % pieces
            if full or item < size:
                inside = row + far < count
                if not exact:
                    inside = inside and near * PIECE < width
                start = at + (row + far) * step + near * PIECE
                copy_later(
                    tile,
                    slot + far * pitch + near,
                    td.where(inside, sixteen(x, td.where(inside, start, 0)), words(0)),
                )

    @td.func
    def fetch_ones(x, tile, slot, t, at, step, row, count, width):
        for v in range(loads):
            item = t + v * threads
            far = item // pieces
            near = item % pieces
            if full or item < size:
                found = td.local(PIECE, td.u32)
                start = at + (row + far) * step + near * PIECE
                for e in td.static_range(PIECE):
                    found[e] = td.u32(0)
                    if row + far < count and near * PIECE + e < width:
                        found[e] = td.u32(td.bitcast(x[start + e], td.u16))
                tile[slot + far * pitch + near] = words(
                    found[0] | (found[1] << td.u32(16)), found[2] | (found[3] << td.u32(16)),
                    found[4] | (found[5] << td.u32(16)), found[6] | (found[7] << td.u32(16)),
                )  # fmt: skip

    if not aligned:
        return fetch_ones
    return fetch if straight else fetch_across


@functools.cache
def packer(dtype: DType) -> Function:
    """A function that makes a word of two numbers."""

    @td.func
    def packed(low, high):
        return td.u32(td.bitcast(dtype(low), td.u16)) | (
            td.u32(td.bitcast(dtype(high), td.u16)) << td.u32(16)
        )

    return packed


@functools.cache
def weight_packer(dtype: DType, down: int, across: int) -> Function:
    """A function that makes `down` x `across` parts of sums, of 16 x 8, the first factor of a
    product whose inner axis are their columns: the words that a lane needs are its own."""
    packed, words = packer(dtype), td.vec4[td.u32]

    @td.func
    def pack(sums, factor):
        for i in td.static_range(down):
            for k in td.static_range(across // 2):
                one = sums[i * across + 2 * k]
                other = sums[i * across + 2 * k + 1]
                factor[i * (across // 2) + k] = words(
                    packed(one.x, one.y), packed(one.z, one.w),
                    packed(other.x, other.y), packed(other.z, other.w),
                )  # fmt: skip

    return pack


@functools.cache
def row_reader(down: int, deep: int, pitch: int) -> Function:
    """A function that reads a warp's first factor, of `down` x `deep` parts of 16 x 16."""
    spread = builtins.matrix_rows

    @td.func
    def read(tile, start, factor):
        for d in td.static_range(deep):
            for i in td.static_range(down):
                factor[d * down + i] = spread(tile[start + (i * 16 * pitch + 2 * d)])

    return read


class Extents(NamedTuple):
    """Of a warp's product: `down` parts of 16 rows by `across` of 8 columns, over `deep` of 16
    along the inner axis."""

    down: int
    across: int
    deep: int


@functools.cache
def rows_by_rows(dtype: DType, extents: Extents, pitch: int, held: bool) -> Function:
    """A function that multiplies the rows of a tile by those of another one: the inner axis lies
    along both. `start` and `other_start` are the first pieces that a lane reads. Rows that are
    `held` were read before."""
    down, across, deep = extents
    spread, pair, four = builtins.matrix_rows, td.vec2[td.u32], td.vec4[td.f32]
    multiply_add = builtins.multiply_f16 if dtype is td.f16 else builtins.multiply_bf16

    @td.func
    def multiply(factor, tile, start, other, other_start, sums):
        for each in td.static_range(down * across):
            sums[each] = four(0)
        for d in td.static_range(deep):
            if not held:
                for i in td.static_range(down):
                    factor[i] = spread(tile[start + (i * 16 * pitch + 2 * d)])
            for j in td.static_range(across // 2):
                near = spread(other[other_start + (j * 16 * pitch + 2 * d)])
                for i in td.static_range(down):
                    ours = factor[d * down + i if held else i]
                    sums[i * across + 2 * j] = multiply_add(
                        ours, pair(near.x, near.y), sums[i * across + 2 * j]
                    )
                    sums[i * across + 2 * j + 1] = multiply_add(
                        ours, pair(near.z, near.w), sums[i * across + 2 * j + 1]
                    )

    return multiply


@functools.cache
def weights_by_rows(dtype: DType, extents: Extents, pitch: int) -> Function:
    """A function that adds the products of weights and the rows of a tile: the inner axis are
    these rows."""
    down, across, deep = extents
    spread, pair = builtins.matrix_columns, td.vec2[td.u32]
    multiply_add = builtins.multiply_f16 if dtype is td.f16 else builtins.multiply_bf16

    @td.func
    def add_products(weights, other, other_start, sums):
        for k in td.static_range(deep):
            for j in td.static_range(across // 2):
                near = spread(other[other_start + (k * 16 * pitch + 2 * j)])
                for i in td.static_range(down):
                    ours = weights[i * deep + k]
                    sums[i * across + 2 * j] = multiply_add(
                        ours, pair(near.x, near.y), sums[i * across + 2 * j]
                    )
                    sums[i * across + 2 * j + 1] = multiply_add(
                        ours, pair(near.z, near.w), sums[i * across + 2 * j + 1]
                    )

    return add_products


@functools.cache
def score_hider(mask: DType | None, down: int, across: int, transposed: bool) -> Function:
    """A function that makes scores of keys that a query does not see -infinity, and adds a mask of
    numbers, for which scores are multiplied by the scale first. Rows of scores are those of
    queries, or if they are `transposed` those of keys; `row` and `column` are a lane's first."""
    masked, four = mask is not None, td.vec4[td.f32]
    additive = masked and mask is not bool_
    scaled_mask = mask_scaler(float32)

    @td.func
    def hide(scores, row, column, queries, count, left, right, entries, at, by_row, by_key, scale):
        parts = td.local(4, td.f32)
        for i in td.static_range(down):
            for j in td.static_range(across):
                found = scores[i * across + j]
                parts[0] = found.x
                parts[1] = found.y
                parts[2] = found.z
                parts[3] = found.w
                for e in td.static_range(4):
                    r = row + (i * 16 + e // 2 * 8)
                    k = column + (j * 8 + e % 2)
                    if transposed:
                        k = row + (i * 16 + e // 2 * 8)
                        r = column + (j * 8 + e % 2)
                    seen = k < count and r - left <= k <= r + right
                    if additive:
                        parts[e] *= scale
                    if masked and seen and r < queries:
                        entry = entries[at + r * by_row + k * by_key]
                        if additive:
                            parts[e] += scaled_mask(entry)
                        else:
                            seen = entry
                    parts[e] = parts[e] if seen else td.f32(-td.inf)
                scores[i * across + j] = four(parts[0], parts[1], parts[2], parts[3])

    return hide


@td.func
def first_piece(lane, pitch):
    """The piece that a lane reads of 16 x 16 elements of a first factor, or of the rows of
    `weights_by_rows`."""
    return lane % 16 * pitch + lane // 16


@td.func
def second_piece(lane, pitch):
    """The piece that a lane reads of 16 x 16 elements of the other rows of `rows_by_rows`."""
    return (lane % 8 + lane // 16 * 8) * pitch + lane // 8 % 2


@functools.cache
def sum_storer(result: DType, lanes: int) -> Function:
    """A function that writes what a thread has of a 16 x 8 part of sums, times a factor for each of
    its two rows. A thread has two neighbours of a row and of the row 8 further; the other of a pair
    of lanes has the next two. Each takes four of one row, from column `at` on, which begins at
    `start` in memory: the second lane of a pair has the row 8 further."""
    stored: Any = td.vec4[result]

    @td.func
    def store(out, start, is_there, at, width, found, near_factor, far_factor):
        odd = td.lane() % 2
        x = found.x * near_factor
        y = found.y * near_factor
        z = found.z * far_factor
        w = found.w * far_factor
        sent_x = td.shuffle_xor(td.where(odd == 1, x, z), 1)
        sent_y = td.shuffle_xor(td.where(odd == 1, y, w), 1)
        first = td.where(odd == 1, sent_x, x)
        second = td.where(odd == 1, sent_y, y)
        third = td.where(odd == 1, z, sent_x)
        fourth = td.where(odd == 1, w, sent_y)
        if is_there:
            if lanes == 4:
                if at < width:
                    four = td.vec4[td.f32](first, second, third, fourth)
                    out[(start + at) // 4] = stored(four)
            else:
                if at < width:
                    out[start + at] = result(first)
                if at + 1 < width:
                    out[start + at + 1] = result(second)
                if at + 2 < width:
                    out[start + at + 2] = result(third)
                if at + 3 < width:
                    out[start + at + 3] = result(fourth)

    return store

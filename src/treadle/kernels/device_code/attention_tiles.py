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
from treadle.core.dtypes import DType
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

    @td.func
    def fetch(x, tile, slot, t, at, step, row, count, width):
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

    return fetch if aligned else fetch_ones


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
def sum_storer(dtype: DType, result: DType, stored: Any, lanes: int) -> Function:
    """A function that writes what a thread has of a 16 x 8 part of sums, times a factor for each of
    its two rows. A thread has two neighbours of a row and of the row 8 further; the other of a pair
    has the next two. Each takes four of one row. `line` is the thread's row that it writes and
    `at` the first column, in the part."""
    del dtype

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

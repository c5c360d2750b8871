"""Matrices copied with their axes exchanged, through shared memory, so that whole lines of 128
bytes are read and written.

A word has one element of 32 bits, or four of 8 bits, which are turned in registers: a thread has
four words of four lines. A word's place in shared memory is permuted by its line's number, so that
neither the words of a line nor those at one place of many lines are in the same bank.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.lang.decorators import Kernel

THREADS = 256
_LANES = 32
_WARPS = THREADS // _LANES
_HELD = 16  # words of a thread


@functools.cache
def word_turner(index64: bool) -> Kernel:
    """A kernel that copies matrices of (inner, lines) words as (lines, inner). A block copies 64 x
    64; the grid is (lines, inner, matrices)."""
    index = td.i64 if index64 else td.i32
    side = 64
    halves = side // _LANES

    @td.kernel(checked=False)
    def turn_words(
        x: td.Array[td.u32], y: td.Array[td.u32],
        lines: td.i32, inner: td.i32, far: index, stack: index, start: index,
    ):  # fmt: skip
        tile = td.shared(side * side, td.u32)
        lane = td.thread_idx.x % _LANES
        warp = td.thread_idx.x // _LANES
        line0 = td.block_idx.x * side
        inner0 = td.block_idx.y * side
        z = td.block_idx.z
        held = td.local(_HELD, td.u32)
        for v in td.static_range(_HELD):
            row = inner0 + (warp * _HELD + v) // halves
            line = line0 + v % halves * _LANES + lane
            held[v] = td.u32(0)
            if row < inner and line < lines:
                held[v] = x[start + index(z) * stack + index(row) * far + index(line)]
        for v in td.static_range(_HELD):
            row = (warp * _HELD + v) // halves
            tile[(v % halves * _LANES + lane) * side + (row ^ lane)] = held[v]
        td.sync_threads()
        for v in td.static_range(_HELD):
            down = (warp * _HELD + v) // halves
            along = v % halves * _LANES + lane
            if line0 + down < lines and inner0 + along < inner:
                to = (index(z) * index(lines) + index(line0 + down)) * index(inner)
                y[to + index(inner0 + along)] = tile[down * side + (along ^ (down % _LANES))]

    return turn_words


@functools.cache
def byte_turner(index64: bool) -> Kernel:
    """The same for bytes, four in a word: extents are counted in words of the axis that is near, so
    `lines` of x and `inner` of y. A block copies 128 x 128 bytes."""
    index = td.i64 if index64 else td.i32
    side = _LANES  # words

    @td.kernel(checked=False)
    def turn_bytes(
        x: td.Array[td.u32], y: td.Array[td.u32],
        lines: td.i32, inner: td.i32, far: index, stack: index, start: index,
    ):  # fmt: skip
        tile = td.shared(4 * side * side, td.u32)
        lane = td.thread_idx.x % _LANES
        warp = td.thread_idx.x // _LANES
        line = td.block_idx.x * side + lane
        inner0 = td.block_idx.y * side
        z = td.block_idx.z
        held = td.local(_HELD, td.u32)
        for v in td.static_range(_HELD):
            group = inner0 + warp * (_HELD // 4) + v // 4
            held[v] = td.u32(0)
            if group < inner and line < lines:
                held[v] = x[start + index(z) * stack + index(4 * group + v % 4) * far + index(line)]
        for g in td.static_range(_HELD // 4):
            group = warp * (_HELD // 4) + g
            for byte in td.static_range(4):
                word = td.u32(0)
                for e in td.static_range(4):
                    part = (held[4 * g + e] >> td.u32(8 * byte)) & td.u32(0xFF)
                    word = word | (part << td.u32(8 * e))
                tile[(4 * lane + byte) * side + (group ^ lane)] = word
        td.sync_threads()
        for v in td.static_range(_HELD):
            down = warp * _HELD + v
            far_line = 4 * side * td.block_idx.x + down
            if far_line < 4 * lines and inner0 + lane < inner:
                to = (index(z) * index(4 * lines) + index(far_line)) * index(inner)
                y[to + index(inner0 + lane)] = tile[down * side + (lane ^ (down // 4))]

    return turn_bytes


LINES_OF_BLOCK = 64  # words; of bytes 128
BYTES_OF_BLOCK = 128
assert _WARPS * _HELD == 4 * _LANES

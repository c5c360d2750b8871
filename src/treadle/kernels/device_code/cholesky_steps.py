"""Cholesky factors in one launch for each block on the diagonal, or two where matrices are large.

In one launch every block of threads factors the block on the diagonal by itself, with the rows and
the columns of its tile below it, and updates the tile. That repeats work, but nothing waits for
another launch. In two, the first tile of each row does so, and all others read what it wrote.
Columns of L go to an array that nothing else in the launch reads.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import arithmetic_of
from treadle.lang.decorators import Kernel

# What a launch does.
WHOLE, COLUMNS, REMAINDER = range(3)


class Step(NamedTuple):
    """What a launch is compiled for: blocks of up to `width` rows on the diagonal, and tiles of
    `tile` by `tile` elements, `tile` a multiple of 16. There are at least `width` threads."""

    dtype: DType
    threads: int
    width: int
    tile: int
    kind: int = WHOLE

    @property
    def rows(self) -> int:
        """The rows that a block of threads eliminates: on the diagonal, and of both strips."""
        return self.width + 2 * self.tile

    @property
    def pitch(self) -> int:
        """From one of their columns to the next in shared memory, where a row is in all banks."""
        return self.rows + 1

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        return self.width * (self.pitch + 2) * self.dtype.itemsize


@functools.cache
def cholesky_step(what: Step) -> Kernel:
    """A kernel that factors rows `at` to `end` of matrices of n rows, and updates the lower
    triangle of what follows; of another kind only the former, or only the latter. `work` and `out`
    have the layout (matrices, n, n). `status` becomes the first row (counted from 1) where a matrix
    is not positive definite."""
    dtype, threads, width, tile, kind = what
    ops = arithmetic_of(dtype)
    element, mul, number, real = ops.element, ops.mul, ops.number, ops.real
    part, times, conj = ops.part, ops.times, ops.conj
    across = 16
    down = threads // across
    out_rows, out_columns = max(1, tile // down), tile // across
    rows, pitch, unrolled = what.rows, what.pitch, min(width, 4)
    rounds = -(-width * rows // threads)
    each = -(-rows // threads)  # rows that a thread eliminates
    aboves = width + tile  # where the columns' strip begins

    @td.kernel(checked=False)
    def step(work, out, status: td.Array[td.i32], n: td.i32, at, end):
        t = td.thread_idx.x
        high = td.maximum((n - end + tile - 1) // tile, 1)
        tiles = high if kind == COLUMNS else high * (high + 1) // 2
        m = td.block_idx.x // tiles
        one = td.block_idx.x - m * tiles
        base = m * n * n
        line = 0
        if kind == COLUMNS:
            line = one
            one = 0
        else:
            while (line + 1) * (line + 2) // 2 <= one:
                line += 1
            one -= line * (line + 1) // 2
        top = end + line * tile
        left = end + one * tile
        known = end - at
        # Column by column: the rows on the diagonal, those of the tile, and those of its columns.
        board = td.shared(width * pitch, element)
        columns = td.shared(2 * width, element)
        row = t // across
        column = t % across
        sums = td.local(out_rows * out_columns, element)
        if kind != COLUMNS:
            for p in td.static_range(out_rows):
                i = row + p * down
                for q in td.static_range(out_columns):
                    j = left + column + q * across
                    value = number(real(0))
                    if i < tile and top + i < n and j <= top + i:
                        value = work[base + (top + i) * n + j]
                    sums[p * out_columns + q] = value
        source = out if kind == REMAINDER else work
        loaded = td.local(rounds, element)
        for s in td.static_range(rounds):
            e = s * threads + t
            i = e // width
            of = left + i - aboves
            of = top + i - width if i < aboves else of
            of = at + i if i < width else of
            value = number(real(1) if i == e % width else real(0))
            if e % width < known and of < n and (i >= width or i < known):
                value = source[base + of * n + at + e % width]
            loaded[s] = value
        for s in td.static_range(rounds):
            e = s * threads + t
            if e < width * rows:
                board[e % width * pitch + e // width] = loaded[s]
        td.sync_threads()
        if kind != REMAINDER:
            # A thread has rows; the present column is always the first of its registers.
            r = td.local(each * width, element)
            for s in td.static_range(each):
                i = s * threads + t
                for k in td.static_range(width):
                    r[s * width + k] = board[k * pitch + i] if i < rows else number(real(0))
            bad = 0
            for k in range(width):
                side = (k & 1) * width
                if t >= k and t < width:
                    columns[side + t - k] = r[0]
                td.sync_threads()
                pivot = part(columns[side])
                if (td.isnan(pivot) or pivot <= real(0)) and bad == 0:
                    bad = at + k + 1
                root = td.sqrt(pivot)
                inverse = real(1) / root
                for s in td.static_range(each):
                    found = times(r[s * width], inverse)
                    by = times(found, inverse)
                    for j in td.static_range(width - 1):
                        z = r[s * width + j + 1]
                        r[s * width + j] = z - mul(by, conj(columns[side + j + 1]))
                    i = s * threads + t
                    if i < rows:
                        board[k * pitch + i] = number(root) if i == k else found
            td.sync_threads()
            if t == 0 and bad != 0 and line == 0 and status[m] == 0:
                status[m] = bad
            if left == end:
                for e in range(t, width * tile, threads):
                    i = e // width
                    k = e % width
                    if k < known and top + i < n:
                        out[base + (top + i) * n + at + k] = board[k * pitch + width + i]
                        out[base + (at + k) * n + top + i] = number(real(0))
                if line == 0:
                    for e in range(t, width * width, threads):
                        i = e // width
                        k = e % width
                        if k < known and i < known:
                            value = board[k * pitch + i] if i >= k else number(real(0))
                            out[base + (at + i) * n + at + k] = value
        if kind != COLUMNS:
            for start in range(0, known, unrolled):
                for e in td.static_range(unrolled):
                    k = (start + e) * pitch
                    for p in td.static_range(out_rows):
                        factor = board[k + width + row + p * down]
                        for q in td.static_range(out_columns):
                            above = conj(board[k + aboves + column + q * across])
                            z = sums[p * out_columns + q]
                            sums[p * out_columns + q] = z - mul(factor, above)
            for p in td.static_range(out_rows):
                i = row + p * down
                for q in td.static_range(out_columns):
                    j = left + column + q * across
                    if i < tile and top + i < n and j <= top + i:
                        work[base + (top + i) * n + j] = sums[p * out_columns + q]

    return step

"""Cholesky factors in one launch for each block on the diagonal.

Every block of threads factors the block on the diagonal by itself, and substitutes through it for
the rows and the columns of the tile that it updates then. That repeats work, but nothing waits for
another launch. Columns of L go to an array that nothing else in the launch reads.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import arithmetic_of
from treadle.lang.decorators import Kernel


class Step(NamedTuple):
    """What a launch is compiled for: blocks of up to `width` rows on the diagonal, and tiles of
    `tile` by `tile` elements, `tile` a multiple of 16. There are at least 2 * `tile` threads."""

    dtype: DType
    threads: int
    width: int
    tile: int

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        elements = self.width * (self.width + 1 + 2 * self.tile) + 2 * self.width
        return elements * self.dtype.itemsize + self.width * self.dtype.component.itemsize


@functools.cache
def cholesky_step(what: Step) -> Kernel:
    """A kernel that factors rows `at` to `end` of matrices of n rows, and updates the lower
    triangle of what follows. `work` and `out` have the layout (matrices, n, n). `status` becomes
    the first row (counted from 1) where a matrix is not positive definite."""
    dtype, threads, width, tile = what
    ops = arithmetic_of(dtype)
    element, mul, number, real = ops.element, ops.mul, ops.number, ops.real
    part, times, conj = ops.part, ops.times, ops.conj
    across = 16
    down = threads // across
    out_rows, out_columns = max(1, tile // down), tile // across
    tile_rounds, unrolled = -(-width * tile // threads), min(width, 4)
    # The block on the diagonal: a thread has some rows of a column.
    groups = threads // width
    own_rows = -(-width // groups)

    @td.kernel(checked=False)
    def step(work, out, status: td.Array[td.i32], matrices: td.i32, n: td.i32, at, end):
        t = td.thread_idx.x
        high = td.maximum((n - end + tile - 1) // tile, 1)
        tiles = high * (high + 1) // 2
        m = td.block_idx.x // tiles
        one = td.block_idx.x - m * tiles
        base = m * n * n
        line = 0
        while (line + 1) * (line + 2) // 2 <= one:
            line += 1
        one -= line * (line + 1) // 2
        top = end + line * tile
        left = end + one * tile
        known = end - at
        # Row k of the triangle has what is below the diagonal in column k, then zeros.
        triangle = td.shared(width * width, element)
        columns = td.shared(2 * width, element)
        inverses = td.shared(width, real)
        aboves = td.shared(width * tile, element)
        lefts = td.shared(width * tile, element)
        row = t // across
        column = t % across
        sums = td.local(out_rows * out_columns, element)
        for p in td.static_range(out_rows):
            i = row + p * down
            for q in td.static_range(out_columns):
                j = left + column + q * across
                value = number(real(0))
                if i < tile and top + i < n and j <= top + i:
                    value = work[base + (top + i) * n + j]
                sums[p * out_columns + q] = value
        for each in td.static_range(tile_rounds):
            e = each * threads + t
            other = e // width
            k = e % width
            value = number(real(0))
            if k < known and top + other < n:
                value = work[base + (top + other) * n + at + k]
            above = number(real(0))
            if k < known and left + other < n:
                above = work[base + (left + other) * n + at + k]
            if e < width * tile:
                lefts[k * tile + other] = value
                aboves[k * tile + other] = above
        for e in range(t, width * width, threads):
            triangle[e] = number(real(0))
        own = t // width
        c = t % width
        block = td.local(own_rows, element)
        for p in td.static_range(own_rows):
            i = own + p * groups
            value = number(real(0))
            if i < known and c <= i:
                value = work[base + (at + i) * n + at + c]
            elif i == c and own < groups:
                value = number(real(1))
            block[p] = value
        bad = 0
        for k in range(width):
            side = (k & 1) * width
            if c == k:
                for p in td.static_range(own_rows):
                    i = own + p * groups
                    if i < width and own < groups:
                        columns[side + i] = block[p]
            td.sync_threads()
            pivot = part(columns[side + k])
            if (td.isnan(pivot) or pivot <= real(0)) and bad == 0:
                bad = at + k + 1
            root = td.sqrt(pivot)
            inverse = real(1) / root
            mine = times(conj(columns[side + c]), real(1) / pivot)
            for p in td.static_range(own_rows):
                i = own + p * groups
                if i < width and own < groups:
                    if c == k:
                        found = times(columns[side + i], inverse)
                        if i == k:
                            inverses[k] = inverse
                            found = number(root)
                        if i > k:
                            triangle[k * width + i - k - 1] = found
                        if line == 0 and k < known and i < known:
                            value = found if i >= k else number(real(0))
                            out[base + (at + i) * n + at + k] = value
                    elif c > k and i >= c:
                        block[p] = block[p] - mul(columns[side + i], mine)
        if t == 0 and bad != 0 and line == 0 and status[m] == 0:
            status[m] = bad
        td.sync_threads()
        # Substitution for the rows of both strips, a thread for each.
        for e in range(t, 2 * tile, threads):
            ahead = td.local(width, element)
            below = td.local(width, element)
            j = e % tile
            for k in td.static_range(width):
                ahead[k] = lefts[k * tile + j] if e < tile else aboves[k * tile + j]
            for k in range(known):
                for i in td.static_range(width - 1):
                    below[i] = triangle[k * width + i]
                found = times(ahead[0], inverses[k])
                for i in td.static_range(width - 1):
                    ahead[i] = ahead[i + 1] - mul(found, conj(below[i]))
                ahead[width - 1] = number(real(0))
                if e < tile:
                    lefts[k * tile + j] = found
                else:
                    aboves[k * tile + j] = conj(found)
        td.sync_threads()
        if left == end:
            for e in range(t, width * tile, threads):
                other = e // width
                k = e % width
                if k < known and top + other < n:
                    out[base + (top + other) * n + at + k] = lefts[k * tile + other]
                    out[base + (at + k) * n + top + other] = number(real(0))
        for start in range(0, known, unrolled):
            for e in td.static_range(unrolled):
                k = start + e
                for p in td.static_range(out_rows):
                    factor = lefts[k * tile + row + p * down]
                    for q in td.static_range(out_columns):
                        above = aboves[k * tile + column + q * across]
                        z = sums[p * out_columns + q]
                        sums[p * out_columns + q] = z - mul(factor, above)
        for p in td.static_range(out_rows):
            i = row + p * down
            for q in td.static_range(out_columns):
                j = left + column + q * across
                if i < tile and top + i < n and j <= top + i:
                    work[base + (top + i) * n + j] = sums[p * out_columns + q]

    return step

"""Substitution through a lower triangle in one launch for each block on its diagonal."""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import arithmetic_of
from treadle.kernels.device_code.matrix_blocks import Layout, place
from treadle.lang.decorators import Kernel


class Substitution(NamedTuple):
    """What a launch is compiled for: blocks of up to `width` rows on the diagonal, and tiles of
    `tile` by `tile` elements of what remains, `tile` a multiple of 16."""

    dtype: DType
    threads: int
    width: int
    tile: int

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        return self.width * (self.width + 2 + 2 * self.tile) * self.dtype.itemsize


@functools.cache
def substitution_step(what: Substitution) -> Kernel:
    """A kernel that writes rows `at` to `end` of x and subtracts their contribution from the
    rows of y that follow. Each block solves for the rows by itself, for its columns; those of the
    first rows write them. With `unit` the diagonal is taken for ones."""
    dtype, threads, width, tile = what
    ops = arithmetic_of(dtype)
    element, mul, div, number, real = ops.element, ops.mul, ops.div, ops.number, ops.real
    across = 16
    down = threads // across
    out_rows, out_columns = max(1, tile // down), tile // across
    triangle_rounds, tile_rounds = -(-width * width // threads), -(-width * tile // threads)
    unrolled = min(width, 4)
    pitch = tile + 1  # so that a row is in all banks

    @td.kernel(checked=False)
    def step(a, a_layout: Layout, y, y_layout: Layout, x, x_layout: Layout, at, end, unit):
        t = td.thread_idx.x
        wide = (x_layout.columns + tile - 1) // tile
        high = td.maximum((x_layout.rows - end + tile - 1) // tile, 1)
        one = td.block_idx.x
        m = one // (wide * high)
        one -= m * (wide * high)
        top = end + one // wide * tile
        left = one % wide * tile
        a_first = a_layout.at + m * a_layout.step
        x_first = x_layout.at + m * x_layout.step
        y_first = y_layout.at + m * y_layout.step
        known = end - at
        triangle = td.shared(width * width, element)
        diagonal = td.shared(width, element)
        strip = td.shared(width * tile, element)
        lefts = td.shared(width * pitch, element)
        row = t // across
        column = t % across
        sums = td.local(out_rows * out_columns, element)
        for p in td.static_range(out_rows):
            i = row + p * down
            for q in td.static_range(out_columns):
                j = left + column + q * across
                value = number(real(0))
                if i < tile and top + i < x_layout.rows and j < x_layout.columns:
                    value = y[place(y_layout, y_first, top + i, j)]
                sums[p * out_columns + q] = value
        # Row k of the triangle has what is below the diagonal in column k, then zeros.
        for each in td.static_range(triangle_rounds):
            e = each * threads + t
            k = e // width
            i = k + 1 + e % width
            value = number(real(0))
            if i < known:
                value = a[place(a_layout, a_first, at + i, at + k)]
            if e < width * width:
                triangle[e] = value
        for k in range(t, width, threads):
            value = number(real(1))
            if k < known and unit == 0:
                value = a[place(a_layout, a_first, at + k, at + k)]
            diagonal[k] = value
        for each in td.static_range(tile_rounds):
            e = each * threads + t
            k = e // tile
            j = left + e % tile
            value = number(real(0))
            if k < known and j < x_layout.columns:
                value = y[place(y_layout, y_first, at + k, j)]
            other = e // width  # along the columns
            inner = e % width
            factor = number(real(0))
            if inner < known and top + other < x_layout.rows:
                factor = a[place(a_layout, a_first, top + other, at + inner)]
            if e < width * tile:
                strip[e] = value
                lefts[inner * pitch + other] = factor
        td.sync_threads()
        for j in range(t, tile, threads):
            ahead = td.local(width, element)
            line = td.local(width, element)
            for k in td.static_range(width):
                ahead[k] = strip[k * tile + j]
            for k in range(known):
                for i in td.static_range(width - 1):
                    line[i] = triangle[k * width + i]
                value = div(ahead[0], diagonal[k])
                for i in td.static_range(width - 1):
                    ahead[i] = ahead[i + 1] - mul(line[i], value)
                ahead[width - 1] = number(real(0))
                strip[k * tile + j] = value
        td.sync_threads()
        if top == end:
            for e in range(t, known * tile, threads):
                j = left + e % tile
                if j < x_layout.columns:
                    x[place(x_layout, x_first, at + e // tile, j)] = strip[e]
        for start in range(0, known, unrolled):
            for e in td.static_range(unrolled):
                k = start + e
                for p in td.static_range(out_rows):
                    factor = lefts[k * pitch + row + p * down]
                    for q in td.static_range(out_columns):
                        above = strip[k * tile + column + q * across]
                        z = sums[p * out_columns + q]
                        sums[p * out_columns + q] = z - mul(factor, above)
        for p in td.static_range(out_rows):
            i = row + p * down
            for q in td.static_range(out_columns):
                j = left + column + q * across
                if i < tile and top + i < x_layout.rows and j < x_layout.columns:
                    y[place(y_layout, y_first, top + i, j)] = sums[p * out_columns + q]

    return step

"""The gradients of a norm: of its input, and of its factors and terms, which are sums over rows of
the gradient, and of the gradient times the standardized input.

On GPUs one kernel reads input and gradient once and computes all of them. A row is in registers of
a subgroup, or, where it is longer or there are no subgroups, of a block. A block has some rows; its
sums over them are added up by another launch. The CPU has a kernel for the sums alone.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.block_reductions import side_of, sum_of_block
from treadle.lang.decorators import Function, Kernel

LANES = 32  # of a subgroup


class Reducing(NamedTuple):
    """What a kernel for sums is made for."""

    partial: DType  # that is computed in
    centered: bool  # whether the standardized rows have mean 0
    threads: int


class Deriving(NamedTuple):
    """What a kernel for all gradients is made for."""

    given: tuple[DType, DType, DType]  # of the input and its gradient, the gradient, the factors
    partial: DType  # that is computed in
    centered: bool  # whether the standardized rows have mean 0
    threads: int
    subgroups: bool  # each has rows of its own; else the block has a row at a time
    lanes: int  # neighbouring columns that a thread loads at once: 4 or 1
    pieces: int  # so many columns each, that a thread has

    @property
    def rows(self) -> int:
        """How many rows a block has at a time."""
        return self.threads // LANES if self.subgroups else 1


@functools.cache
def norm_deriver(what: Deriving) -> Kernel:
    """The kernel. A block has `each` times as many rows as it has at a time; `sums` has of each
    block a row for the products and a row for the gradients. Widths and indices count pieces."""
    partial, centered, lanes, pieces = what.partial, what.centered, what.lanes, what.pieces
    together, count = what.rows, lanes * pieces
    threads = LANES if what.subgroups else what.threads
    of_x, of_g, of_scale = (td.Array[td.vec4[each] if lanes == 4 else each] for each in what.given)
    of_sums: Any = td.Array[td.vec4[partial] if lanes == 4 else partial]
    of_result: Any = td.vec4[what.given[0]] if lanes == 4 else what.given[0]
    pair = td.vec4[partial] if lanes == 4 else partial
    take, row_sum = _loader(partial, lanes), _row_sum(what)
    side = 1 if what.subgroups else side_of(what.threads)
    board_size = 1 if what.subgroups else what.threads
    joined = together > 1  # the sums of several rows' threads are added up in shared memory
    kept = 2 * count * threads if joined else 1

    @td.kernel(checked=False)
    def derive_norm(
        x: of_x, g: of_g, scale: of_scale, out: of_x, sums: of_sums,
        rows: td.i32, width: td.i32, each: td.i32, share: partial, eps: partial,
    ):  # fmt: skip
        board = td.shared(board_size, partial)
        few = td.shared(side, partial)
        total = td.shared(kept, partial)
        t = td.thread_idx.x % threads
        group = td.thread_idx.x // threads
        y = td.local(count, partial)
        slope = td.local(count, partial)
        factor = td.local(lanes, partial)
        products = td.local(count, partial)
        terms = td.local(count, partial)
        for i in td.static_range(count):
            products[i] = partial(0.0)
            terms[i] = partial(0.0)
        first = td.block_idx.x * each * together + group
        for step in range(each):
            r = first + step * together
            here = r < rows
            for p in td.static_range(pieces):
                at = p * threads + t
                place = td.minimum(r, rows - 1) * width + td.minimum(at, width - 1)
                take(y, p * lanes, x, place, at < width)
                take(slope, p * lanes, g, place, here and at < width)
            middle = partial(0.0)
            if centered:
                own = partial(0.0)
                for i in td.static_range(count):
                    own += y[i]
                middle = row_sum(own, board, few) * share
            square = partial(0.0)
            for p in td.static_range(pieces):
                for k in td.static_range(lanes):
                    i = p * lanes + k
                    y[i] = y[i] - middle if p * threads + t < width else partial(0.0)
                    square += y[i] * y[i]
            inverse = partial(1.0) / td.sqrt(row_sum(square, board, few) * share + eps)
            along = partial(0.0)
            across = partial(0.0)
            for p in td.static_range(pieces):
                at = p * threads + t
                take(factor, 0, scale, td.minimum(at, width - 1), at < width)
                for k in td.static_range(lanes):
                    i = p * lanes + k
                    y[i] = y[i] * inverse
                    products[i] += slope[i] * y[i]
                    terms[i] += slope[i]
                    slope[i] = slope[i] * factor[k]
                    along += slope[i] * y[i]
                    across += slope[i]
            along = row_sum(along, board, few) * share
            if centered:
                across = row_sum(across, board, few) * share
            else:
                across = partial(0.0)
            for p in td.static_range(pieces):
                at = p * threads + t
                if here and at < width:
                    i = p * lanes
                    if lanes == 4:
                        out[r * width + at] = of_result(
                            (slope[i] - across - y[i] * along) * inverse,
                            (slope[i + 1] - across - y[i + 1] * along) * inverse,
                            (slope[i + 2] - across - y[i + 2] * along) * inverse,
                            (slope[i + 3] - across - y[i + 3] * along) * inverse,
                        )
                    else:
                        out[r * width + at] = of_result(
                            (slope[i] - across - y[i] * along) * inverse
                        )
        if joined:
            for k in td.static_range(together):
                if group == k:
                    for i in td.static_range(count):
                        if k == 0:
                            total[i * threads + t] = products[i]
                            total[(count + i) * threads + t] = terms[i]
                        else:
                            total[i * threads + t] += products[i]
                            total[(count + i) * threads + t] += terms[i]
                td.sync_threads()
            for i in td.static_range(count):
                products[i] = total[i * threads + t]
                terms[i] = total[(count + i) * threads + t]
        for p in td.static_range(pieces):
            at = p * threads + t
            if group == 0 and at < width:
                i = p * lanes
                place = td.block_idx.x * 2 * width + at
                if lanes == 4:
                    sums[place] = pair(
                        products[i], products[i + 1], products[i + 2], products[i + 3]
                    )
                    sums[place + width] = pair(terms[i], terms[i + 1], terms[i + 2], terms[i + 3])
                else:
                    sums[place] = products[i]
                    sums[place + width] = terms[i]

    return derive_norm


@functools.cache
def _loader(partial: DType, lanes: int) -> Function:
    """A function that loads a piece to registers. What is not `here` is zeros there, and loaded
    from a place that exists: so loads need no branches."""

    @td.func
    def take(registers, i, array, at, here):
        piece = array[at]
        if lanes == 4:
            registers[i] = partial(piece.x) if here else partial(0.0)
            registers[i + 1] = partial(piece.y) if here else partial(0.0)
            registers[i + 2] = partial(piece.z) if here else partial(0.0)
            registers[i + 3] = partial(piece.w) if here else partial(0.0)
        else:
            registers[i] = partial(piece) if here else partial(0.0)

    return take


def _row_sum(what: Deriving) -> Function:
    """A function that sums a value over the threads of a row."""
    if not what.subgroups:
        return sum_of_block(what.partial, what.threads)
    return _subgroup_sum()


@functools.cache
def _subgroup_sum() -> Function:
    @td.func
    def summed(value, board, few):
        return td.subgroup_sum(value)

    return summed


@functools.cache
def row_reducer_cpu(what: Reducing) -> Kernel:
    """A kernel for the CPU, for the sums alone: those of a block are in its cache, and vectors are
    along columns."""
    partial, centered, threads = what
    block_sum, side = sum_of_block(partial, threads), side_of(threads)

    @td.kernel(checked=False)
    def reduce_rows_cpu(
        x, g, out, rows: td.i32, columns: td.i32, each: td.i32, share: partial, eps: partial
    ):
        t = td.thread_idx.x
        board = td.shared(threads, partial)
        few = td.shared(side, partial)
        first = td.block_idx.x * each
        base = td.block_idx.x * 2 * columns
        for c in range(0, 2 * columns, threads):
            if c + t < 2 * columns:
                out[base + c + t] = partial(0.0)
        for r in range(first, td.minimum(first + each, rows)):
            at = r * columns
            middle = partial(0.0)
            if centered:
                total = partial(0.0)
                for c in range(0, columns, threads):
                    if c + t < columns:
                        total += partial(x[at + c + t])
                middle = block_sum(total, board, few) * share
            square = partial(0.0)
            for c in range(0, columns, threads):
                if c + t < columns:
                    deviation = partial(x[at + c + t]) - middle
                    square += deviation * deviation
            inverse = partial(1.0) / td.sqrt(block_sum(square, board, few) * share + eps)
            for c in range(0, columns, threads):
                if c + t < columns:
                    entry = partial(g[at + c + t])
                    out[base + c + t] += entry * (partial(x[at + c + t]) - middle) * inverse
                    out[base + columns + c + t] += entry

    return reduce_rows_cpu

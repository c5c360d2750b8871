"""The gradients of a norm's factors and terms: sums over rows of the gradient, and of the gradient
times the standardized input, which is recomputed row by row.

A block has some rows, and threads have columns. The blocks' sums are added up by another launch.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.block_reductions import side_of, sum_of_block
from treadle.lang.decorators import Kernel


class Reducing(NamedTuple):
    """What a kernel is made for."""

    partial: DType  # that is computed in
    centered: bool  # whether the standardized rows have mean 0
    threads: int
    columns_of_thread: int  # columns of a thread in registers; 0 if sums are in memory


@functools.cache
def row_reducer(what: Reducing) -> Kernel:
    """The kernel: `out` has of each block a row for the products and a row for the gradients. A
    block has `each` rows."""
    partial, centered, threads, columns_of_thread = what
    block_sum, side = sum_of_block(partial, threads), side_of(threads)

    @td.kernel(checked=False)
    def reduce_rows(
        x, g, out, rows: td.i32, columns: td.i32, each: td.i32, share: partial, eps: partial
    ):
        t = td.thread_idx.x
        board = td.shared(threads, partial)
        few = td.shared(side, partial)
        own = td.local(columns_of_thread, partial)
        products = td.local(columns_of_thread, partial)
        sums = td.local(columns_of_thread, partial)
        for p in td.static_range(columns_of_thread):
            products[p] = partial(0.0)
            sums[p] = partial(0.0)
        first = td.block_idx.x * each
        for r in range(first, td.minimum(first + each, rows)):
            total = partial(0.0)
            for p in td.static_range(columns_of_thread):
                entry = partial(0.0)
                if p * threads + t < columns:
                    entry = partial(x[r * columns + p * threads + t])
                own[p] = entry
                total += entry
            middle = partial(0.0)
            if centered:
                middle = block_sum(total, board, few) * share
            square = partial(0.0)
            for p in td.static_range(columns_of_thread):
                deviation = own[p] - middle if p * threads + t < columns else partial(0.0)
                own[p] = deviation
                square += deviation * deviation
            inverse = partial(1.0) / td.sqrt(block_sum(square, board, few) * share + eps)
            for p in td.static_range(columns_of_thread):
                if p * threads + t < columns:
                    entry = partial(g[r * columns + p * threads + t])
                    products[p] += entry * own[p] * inverse
                    sums[p] += entry
        for p in td.static_range(columns_of_thread):
            if p * threads + t < columns:
                at = td.block_idx.x * 2 * columns + p * threads + t
                out[at] = products[p]
                out[at + columns] = sums[p]

    return reduce_rows


@functools.cache
def row_reducer_cpu(what: Reducing) -> Kernel:
    """The same for the CPU: the sums of a block are in its cache, and vectors are along columns."""
    partial, centered, threads, _ = what
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

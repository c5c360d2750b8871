"""The gradients of a norm's factors: columns of a gradient added up, beside those of it times the
standardized input, which is made again row by row.

A block has some rows, and threads have columns. What each block found is added up afterwards.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.combining import side_of, summer
from treadle.lang.kernel import Kernel


class Gathering(NamedTuple):
    """What a kernel is made for."""

    partial: DType  # that is computed in
    centered: bool  # whether rows have mean 0 then
    threads: int
    pieces: int  # columns of a thread in registers; 0 if sums are in memory


@functools.cache
def row_gatherer(what: Gathering) -> Kernel:
    """The kernel: `out` has of each block a row for the products and a row for the gradients. A
    block has `each` rows."""
    partial, centered, threads, pieces = what
    summed, side = summer(partial, threads), side_of(threads)

    @td.kernel(checked=False)
    def gather_rows(
        x, g, out, rows: td.i32, columns: td.i32, each: td.i32, share: partial, eps: partial
    ):
        t = td.thread_idx.x
        board = td.shared(threads, partial)
        few = td.shared(side, partial)
        own = td.local(pieces, partial)
        products = td.local(pieces, partial)
        sums = td.local(pieces, partial)
        for p in td.static_range(pieces):
            products[p] = partial(0.0)
            sums[p] = partial(0.0)
        first = td.block_idx.x * each
        for r in range(first, td.minimum(first + each, rows)):
            total = partial(0.0)
            for p in td.static_range(pieces):
                entry = partial(0.0)
                if p * threads + t < columns:
                    entry = partial(x[r * columns + p * threads + t])
                own[p] = entry
                total += entry
            middle = partial(0.0)
            if centered:
                middle = summed(total, board, few) * share
            square = partial(0.0)
            for p in td.static_range(pieces):
                apart = own[p] - middle if p * threads + t < columns else partial(0.0)
                own[p] = apart
                square += apart * apart
            steep = partial(1.0) / td.sqrt(summed(square, board, few) * share + eps)
            for p in td.static_range(pieces):
                if p * threads + t < columns:
                    entry = partial(g[r * columns + p * threads + t])
                    products[p] += entry * own[p] * steep
                    sums[p] += entry
        for p in td.static_range(pieces):
            if p * threads + t < columns:
                at = td.block_idx.x * 2 * columns + p * threads + t
                out[at] = products[p]
                out[at + columns] = sums[p]

    return gather_rows


@functools.cache
def lone_row_gatherer(what: Gathering) -> Kernel:
    """The same for the CPU: the sums of a block are in its cache, and vectors are along columns."""
    partial, centered, threads, _ = what
    summed, side = summer(partial, threads), side_of(threads)

    @td.kernel(checked=False)
    def gather_rows_alone(
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
                middle = summed(total, board, few) * share
            square = partial(0.0)
            for c in range(0, columns, threads):
                if c + t < columns:
                    apart = partial(x[at + c + t]) - middle
                    square += apart * apart
            steep = partial(1.0) / td.sqrt(summed(square, board, few) * share + eps)
            for c in range(0, columns, threads):
                if c + t < columns:
                    entry = partial(g[at + c + t])
                    out[base + c + t] += entry * (partial(x[at + c + t]) - middle) * steep
                    out[base + columns + c + t] += entry

    return gather_rows_alone

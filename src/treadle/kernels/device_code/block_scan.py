"""Exclusive scans of counts within blocks; the blocks' totals are scanned by another launch."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.lang.decorators import Kernel


@functools.cache
def block_scanner(threads: int, items: int) -> Kernel:
    """A kernel whose blocks write the exclusive scan of their elements, and their totals. Where a
    block has several threads, these hold their elements in registers."""
    held = threads > 1

    @td.kernel(checked=False)
    def scan_blocks(x, out, totals, n: td.i32):
        t = td.thread_idx.x
        begin = (td.block_idx.x * threads + t) * items
        end = td.minimum(begin + items, n)
        elements = td.local(items if held else 1, td.i32)
        own = 0
        if held:
            for k in td.static_range(items):
                elements[k] = x[begin + k] if begin + k < n else 0
            for k in td.static_range(items):
                own += elements[k]
        else:
            for i in range(begin, end):
                own += x[i]
        sums = td.shared(threads, td.i32)
        sums[t] = own
        step = 1
        while step < threads:
            td.sync_threads()
            earlier = sums[t - step] if t >= step else 0
            td.sync_threads()
            sums[t] += earlier
            step *= 2
        td.sync_threads()
        before = sums[t] - own
        if held:
            for k in td.static_range(items):
                if begin + k < n:
                    out[begin + k] = before
                before += elements[k]
        else:
            for i in range(begin, end):
                element = x[i]
                out[i] = before
                before += element
        if t == threads - 1:
            totals[td.block_idx.x] = sums[t]

    return scan_blocks


@td.kernel
def add_totals(sums: td.Array[td.i32], before: td.Array[td.i32], size: td.i32):
    """Adds to each element the total of all blocks before its own."""
    i = td.grid(1)
    sums[i] += before[i // size]

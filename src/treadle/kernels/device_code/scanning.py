"""Running sums of counts: within blocks here, over blocks by scanning the blocks' totals."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.lang.kernel import Kernel


@functools.cache
def block_scanner(threads: int, items: int) -> Kernel:
    """A kernel whose blocks write the sums of the elements before each, and their totals."""

    @td.kernel(checked=False)
    def scan_blocks(x, out, totals, n: td.i32):
        t = td.thread_idx.x
        begin = (td.block_idx.x * threads + t) * items
        end = td.minimum(begin + items, n)
        own = 0
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
        for i in range(begin, end):
            element = x[i]
            out[i] = before
            before += element
        if t == threads - 1:
            totals[td.block_idx.x] = sums[t]

    return scan_blocks


@td.kernel
def add_totals(sums: td.Array[td.i32], before: td.Array[td.i32], size: td.i32):
    """Adds to each element what its block has before it."""
    i = td.grid(1)
    sums[i] += before[i // size]

"""Stream compaction: a thread counts the true elements of a run, and later writes their places."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel


@td.kernel(checked=False)
def count_runs(mask: td.Array[td.bool], counts: td.Array[td.i32], run: td.i32):
    """The true elements of each run."""
    t = td.grid(1)
    begin = t * run
    count = 0
    for i in range(begin, td.minimum(begin + run, mask.size)):
        if mask[i]:
            count += 1
    counts[t] = count


@functools.cache
def position_writer(place: DType) -> Kernel:
    """A kernel that writes the places of true elements; `before` counts those of earlier runs."""

    @td.kernel(checked=False)
    def write_positions(mask: td.Array[td.bool], before: td.Array[td.i32], out, run: td.i32):
        t = td.grid(1)
        begin = t * run
        at = before[t]
        for i in range(begin, td.minimum(begin + run, mask.size)):
            if mask[i]:
                out[at] = place(i)
                at += 1

    return write_positions

"""Reductions over the threads of a block, whose result every thread gets.

There are two steps: a few threads reduce the values that all threads stored in shared memory, and
then each thread reduces the results of those few. That takes two barriers in place of one for each
halving. A reduction takes the thread's value, shared memory of as many elements as threads, and
more of `side_of(threads)` elements. Threads may write to neither before the next barrier.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function

_SIDE = 16  # threads that reduce the values of all others


def side_of(threads: int) -> int:
    """How many threads of a block take the first step."""
    return min(threads, _SIDE)


@functools.cache
def sum_of_block(dtype: DType, threads: int) -> Function:
    """A function that sums a value over the threads of a block."""
    side = side_of(threads)

    @td.func
    def summed(value, board, few):
        t = td.thread_idx.x
        board[t] = value
        td.sync_threads()
        if t < side:
            total = dtype(0.0)
            for k in range(threads // side):
                total += board[t * (threads // side) + k]
            few[t] = total
        td.sync_threads()
        total = dtype(0.0)
        for k in range(side):
            total += few[k]
        return total

    return summed


@functools.cache
def maximum_of_block(threads: int) -> Function:
    """A function that takes the maximum of a value over the threads of a block. NaN is skipped
    unless it is the thread's own."""
    side = side_of(threads)

    @td.func
    def greatest(value, board, few):
        t = td.thread_idx.x
        top = value
        board[t] = top
        td.sync_threads()
        if t < side:
            for k in range(threads // side):
                other = board[t * (threads // side) + k]
                top = other if other > top else top
            few[t] = top
        td.sync_threads()
        for k in range(side):
            other = few[k]
            top = other if other > top else top
        return top

    return greatest

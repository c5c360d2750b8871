"""One value of what all threads of a block have, which all of them then know.

In two steps: a few threads combine what the others left in shared memory, and each thread combines
what those few found. A combiner takes the thread's value, shared memory of as many elements as
threads, and more of `side_of(threads)` elements. Threads may write to neither before the next
barrier.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.kernel import Function

_SIDE = 16  # threads that combine what all others have


def side_of(threads: int) -> int:
    """How many threads of a block combine what the others have."""
    return min(threads, _SIDE)


@functools.cache
def summer(dtype: DType, threads: int) -> Function:
    """A function that adds up what the threads of a block have."""
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
def finder_of_greatest(threads: int) -> Function:
    """A function that finds the greatest of what the threads of a block have. NaN is passed over
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

"""Selecting the k first elements of chunks of rows, for top-k."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import key_of, key_type, wide
from treadle.lang.decorators import Kernel


@functools.cache
def tile_end_selector(largest: bool, placed: bool) -> Kernel:
    """A kernel that takes the ends of sorted tiles, in ascending order: the last k of each, the
    greatest first, or the first k. With `placed` the places are those that earlier places say."""

    @td.kernel(checked=False)
    def select_ends(
        values, order, places, best, found, n: td.i32, size: td.i32, k: td.i32, kept: td.i32
    ):
        i = td.grid(1)
        row = i // kept
        at = i - row * kept
        chunk = at // k
        j = at - chunk * k
        if largest:
            j = td.minimum(n - chunk * size, size) - 1 - j
        source = row * n + chunk * size + j
        best[i] = values[source]
        if placed:
            found[i] = places[row * n + order[source]]
        else:
            found[i] = order[source]

    return select_ends


@functools.cache
def best_of_tiles(dtype: DType, largest: bool, threads: int, items: int) -> Kernel:
    """A kernel that writes the greatest (or least) key of each tile of rows; a block has a tile of
    `threads * items` elements. What is left of a row behind `tiles` whole ones is not looked at."""
    wide_of, key, keys = wide(dtype), key_of(dtype), key_type(dtype)
    halvings = threads.bit_length() - 1

    @td.func
    def better(a, b):
        if largest:
            return td.maximum(a, b)
        else:
            return td.minimum(a, b)

    @td.kernel(checked=False)
    def find_best(values, best, n: td.i32, tiles: td.i32):
        t = td.thread_idx.x
        row = td.block_idx.x // tiles
        first = row * n + (td.block_idx.x - row * tiles) * (threads * items) + t
        own = td.local(items, wide_of)
        for k in td.static_range(items):
            own[k] = wide_of(values[first + k * threads])
        found = key(own[0])
        for k in td.static_range(1, items):
            found = better(found, key(own[k]))
        kept = td.shared(threads, keys)
        kept[t] = found
        for k in td.static_range(halvings):
            td.sync_threads()
            if t < threads >> (k + 1):
                kept[t] = better(kept[t], kept[t + (threads >> (k + 1))])
        if t == 0:
            best[td.block_idx.x] = kept[0]

    return find_best


@functools.cache
def tile_taker(placed: bool) -> Kernel:
    """A kernel that copies the k chosen tiles of each row, and what is left of it behind all whole
    tiles, with their places."""

    @td.kernel(checked=False)
    def take_tiles(
        values, places, chosen: td.Array[td.i32], taken, found,
        n: td.i32, size: td.i32, tiles: td.i32, k: td.i32, kept: td.i32,
    ):  # fmt: skip
        i = td.grid(1)
        row = i // kept
        at = i - row * kept
        j = at // size
        if j < k:
            at += (chosen[row * k + td.minimum(j, k - 1)] - j) * size
        else:
            at += (tiles - k) * size
        taken[i] = values[row * n + at]
        if placed:
            found[i] = places[row * n + at]
        else:
            found[i] = at

    return take_tiles


@functools.cache
def ends_writer(dtype: DType, place: DType, largest: bool, placed: bool) -> Kernel:
    """A kernel that writes the ends of sorted rows."""

    @td.kernel(checked=False)
    def write_ends(values, order, places, best, found, n: td.i32, k: td.i32):
        i = td.grid(1)
        row = i // k
        j = i - row * k
        if largest:
            j = n - 1 - j
        source = row * n + j
        best[i] = values[source]
        if placed:
            found[i] = place(places[row * n + order[source]])
        else:
            found[i] = place(order[source])

    return write_ends


@functools.cache
def chunk_selector(dtype: DType, largest: bool, placed: bool) -> Kernel:
    """A kernel for the CPU whose threads go through a chunk of a row each, and keep the k best so
    far in order by insertion. That is cheap, since most elements are worse than the last of
    them."""
    wide_of = wide(dtype)
    key = key_of(dtype)

    @td.func
    def better(a, b):
        if largest:
            return a > b
        else:
            return a < b

    @td.kernel(checked=False)
    def select_best(
        values, places, best, found, n: td.i32, size: td.i32, chunks: td.i32, k: td.i32,
        kept: td.i32,
    ):  # fmt: skip
        t = td.grid(1)
        row = t // chunks
        chunk = t - row * chunks
        first = chunk * size
        end = td.minimum(first + size, n)
        out = row * kept + chunk * k
        count = 0
        worst = key(wide_of(values[row * n + first]))
        for i in range(first, end):
            value = values[row * n + i]
            mine = key(wide_of(value))
            if count < k or better(mine, worst):
                j = td.minimum(count, k - 1)
                while j > 0 and better(mine, key(wide_of(best[out + td.maximum(j - 1, 0)]))):
                    best[out + j] = best[out + j - 1]
                    found[out + j] = found[out + j - 1]
                    j -= 1
                best[out + j] = value
                if placed:
                    found[out + j] = places[row * n + i]
                else:
                    found[out + j] = i
                count = td.minimum(count + 1, k)
                worst = key(wide_of(best[out + count - 1]))

    return select_best

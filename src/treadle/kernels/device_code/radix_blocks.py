"""Stable radix sort of long rows on GPUs with subgroups of 32, where a block moves a tile of a row.

A pass orders by eight bits of the keys, the lowest first, in three steps: blocks count the digits
of their tiles; the prefix sums of the counts (by row, then digit, then tile) are where each tile's
elements of a digit go; blocks order their tiles by the digit in shared memory and write them, so
that elements of a digit are written side by side. No block waits for another one.

In a tile, an element's rank is the number of elements before it by digit and place. The lanes of a
subgroup find their equals with one ballot a bit (D. Merrill and A. Grimshaw, "Onesweep", 2022, has
this and passes with one step less, for which blocks wait for those before them).
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.merge_sort import Sorting, Tile
from treadle.kernels.device_code.radix_sort import DIGITS, digit_of
from treadle.lang.decorators import Function, Kernel

LANES = 32


def bytes_of_counts(threads: int) -> int:
    """Shared memory that a block of `tile_mover` needs beside its elements and their places.

    >>> bytes_of_counts(256)
    9248
    """
    groups = threads // LANES
    return 4 * (groups * DIGITS + DIGITS + groups)


@functools.cache
def tile_counter(dtype: DType, descending: bool, tile: Tile) -> Kernel:
    """A kernel whose blocks count the digits of a tile each."""
    digit = digit_of(dtype, descending)
    wide_of = wide(dtype)
    threads, items = tile.threads, tile.items
    each = DIGITS // threads

    @td.kernel(checked=False)
    def count_tiles(x, counts: td.Array[td.i32], n: td.i32, tiles: td.i32, shift: td.i32):
        t = td.thread_idx.x
        row = td.block_idx.x // tiles
        part = td.block_idx.x - row * tiles
        start = part * (threads * items)
        base = row * n + start
        count = td.shared(DIGITS, td.i32)
        own = td.local(items, wide_of)
        for k in td.static_range(each):
            count[t + k * threads] = 0
        td.sync_threads()
        if n - start >= threads * items:
            for k in td.static_range(items):
                own[k] = wide_of(x[base + t + k * threads])
            for k in td.static_range(items):
                td.atomic_add(count, digit(own[k], shift), 1)
        else:
            for k in range(items):
                at = t + k * threads
                if start + at < n:
                    td.atomic_add(count, digit(wide_of(x[base + at]), shift), 1)
        td.sync_threads()
        for k in td.static_range(each):
            d = t + k * threads
            counts[(row * DIGITS + d) * tiles + part] = count[d]

    return count_tiles


@functools.cache
def tile_mover(what: Sorting, tile: Tile, first: bool, scanned: int) -> Kernel:
    """A kernel whose blocks move the elements of a tile each to their places by one digit. The sums
    of counts are those within stretches of `scanned`, and `before` are those of whole stretches. In
    the first pass, an element's original place is its index."""
    digit = digit_of(what.dtype, what.descending)
    placed = what.place is not None
    place_as = what.place or td.i32
    wide_of, stored_as = wide(what.dtype), what.stored
    threads, items = tile.threads, tile.items
    size = threads * items
    groups = threads // LANES
    each = DIGITS // threads
    own_rank = _ranker()

    @td.kernel(checked=False)
    def move_tiles(
        x, order, out, out_order, sums: td.Array[td.i32], before: td.Array[td.i32],
        n: td.i32, tiles: td.i32, shift: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        lane = td.lane()
        group = t // LANES
        # The last tiles first: they were counted last, and are the likeliest in a cache.
        block = td.grid_dim.x - 1 - td.block_idx.x
        row = block // tiles
        part = block - row * tiles
        start = part * size
        base = row * n + start
        count = td.minimum(n - start, size)
        counts = td.shared(groups * DIGITS, td.i32)  # of each subgroup, then where they begin
        offsets = td.shared(DIGITS, td.i32)  # from a place in the tile to one in the row
        totals = td.shared(groups, td.i32)
        values = td.shared(size, wide_of)
        places = td.shared(size, td.i32) if placed else values
        own = td.local(items, wide_of)
        digits = td.local(items, td.i32)
        ranks = td.local(items, td.i32)
        mine = group * (LANES * items) + lane
        for k in td.static_range(items):
            own[k] = wide_of(x[base + td.minimum(mine + k * LANES, count - 1)])
        for k in td.static_range(groups * each):
            counts[t + k * threads] = 0
        td.sync_threads()
        for k in td.static_range(items):
            # Those beyond the row come after all others.
            digits[k] = digit(own[k], shift) if mine + k * LANES < count else DIGITS - 1
            ranks[k] = own_rank(counts, digits[k], group * DIGITS, lane)
        td.sync_threads()
        # A thread has `each` neighbouring digits: their sums over subgroups, then over digits.
        sum_of_digits = 0
        for j in td.static_range(each):
            for g in td.static_range(groups):
                sum_of_digits += counts[g * DIGITS + t * each + j]
        earlier = td.subgroup_prefix_sum(sum_of_digits)
        if lane == LANES - 1:
            totals[group] = earlier + sum_of_digits
        td.sync_threads()
        for g in td.static_range(groups):
            if g < group:
                earlier += totals[g]
        for j in td.static_range(each):
            d = t * each + j
            at = (row * DIGITS + d) * tiles + part
            offsets[d] = sums[at] + before[at // scanned] - earlier
            for g in td.static_range(groups):
                number = counts[g * DIGITS + d]
                counts[g * DIGITS + d] = earlier
                earlier += number
        td.sync_threads()
        for k in td.static_range(items):
            ranks[k] += counts[group * DIGITS + digits[k]]
            values[ranks[k]] = own[k]
        if placed:
            for k in td.static_range(items):
                at = td.minimum(mine + k * LANES, count - 1)
                places[ranks[k]] = start + at if first else td.i32(order[base + at])
        td.sync_threads()
        for k in td.static_range(items):
            at = t + k * threads
            if at < count:
                value = values[at]
                to = offsets[digit(value, shift)] + at
                out[to] = stored_as(value)
                if placed:
                    out_order[to] = place_as(places[at])

    return move_tiles


@functools.cache
def _ranker() -> Function:
    """How many elements of this digit the subgroup had before, and how many lanes before this one
    have one now; which are counted. `counts` are the subgroup's from `first` on."""

    @td.func
    def own_rank(counts, digit, first, lane):
        same = td.u32(0xFFFFFFFF)
        for bit in td.static_range(8):
            set_here = (digit >> bit) & 1
            same = same & (td.ballot(set_here == 1) ^ (td.u32(set_here) - td.u32(1)))
        leader = LANES - 1 - td.clz(same)
        known = 0
        if lane == leader:
            known = td.atomic_add(counts, first + digit, td.popcount(same))
        below = same & ((td.u32(1) << td.u32(lane)) - td.u32(1))
        return td.shuffle(known, leader) + td.popcount(below)

    return own_rank

"""Stable merge sort of the rows of an array, with or without the elements' places.

On GPUs a block sorts a tile in shared memory; passes of merges follow, each over twice as long
runs. The first `p` merged elements of two runs are a prefix of each, whose
lengths a binary search along the diagonal finds (O. Green, R. McColl and D. A. Bader, "GPU Merge
Path", 2012). So every thread knows its own part of the result and no thread waits for another.

A thread sorts a short row by itself; on the CPU it does so for all rows up to the length from which
`radix_sort` is faster.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import key_of, wide
from treadle.lang.decorators import Function, Kernel


class Sorting(NamedTuple):
    """What a kernel sorts and writes. Without `place`, the elements' places are not wanted."""

    dtype: DType
    stored: DType  # what results are written as: dtype, or wide(dtype) between two passes
    place: DType | None
    descending: bool


class Tile(NamedTuple):
    """What a block sorts or merges in shared memory; both are powers of two."""

    threads: int
    items: int  # of a thread


@functools.cache
def tile_sorter(what: Sorting, tile: Tile) -> Kernel:
    """A kernel that sorts every tile of every row, one in a block."""
    wide_of, stored_as, placed, place_as = _casts(what)
    key = key_of(what.dtype, what.descending)
    items, threads = tile.items, tile.threads
    size = items * threads
    merge = _shared_merge(wide(what.dtype), what.descending, placed, tile)

    @td.kernel(checked=False)
    def sort_tiles(x, out, order, n: td.i32, tiles: td.i32):
        t = td.thread_idx.x
        row = td.block_idx.x // tiles
        start = (td.block_idx.x - row * tiles) * size
        count = td.minimum(n - start, size)
        base = row * n + start
        values = td.shared(size, wide_of)
        places = td.shared(size, td.i32) if placed else values
        own = td.local(items, wide_of)
        own_places = td.local(items, td.i32)
        for k in td.static_range(items):
            at = t + k * threads
            if at < count:
                values[at] = wide_of(x[base + at])
        td.sync_threads()
        first = t * items
        for k in td.static_range(items):
            own[k] = values[first + k]
            if placed:
                own_places[k] = start + first + k
        # Odd-even transposition sort: as many rounds as there are elements, all in registers.
        for _ in range(items // 2):
            for odd in td.static_range(2):
                for k in td.static_range(odd, items - 1, 2):
                    lower = own[k]
                    upper = own[k + 1]
                    if first + k + 1 < count and key(upper) < key(lower):
                        own[k] = upper
                        own[k + 1] = lower
                        if placed:
                            place = own_places[k]
                            own_places[k] = own_places[k + 1]
                            own_places[k + 1] = place
        td.sync_threads()
        for k in td.static_range(items):
            values[first + k] = own[k]
            if placed:
                places[first + k] = own_places[k]
        width = items
        while width < size:
            td.sync_threads()
            group = td.minimum(first & ~(2 * width - 1), count)
            middle = td.minimum(group + width, count)
            end = td.minimum(middle + width, count)
            merge(values, places, group, middle, end, first, own, own_places)
            td.sync_threads()
            for k in td.static_range(items):
                values[first + k] = own[k]
                if placed:
                    places[first + k] = own_places[k]
            width *= 2
        td.sync_threads()
        for k in td.static_range(items):
            at = t + k * threads
            if at < count:
                out[base + at] = stored_as(values[at])
                if placed:
                    order[base + at] = place_as(places[at])

    return sort_tiles


@functools.cache
def tile_merger(what: Sorting, tile: Tile) -> Kernel:
    """A kernel that merges runs of `width` elements in pairs; a block makes a tile of results."""
    wide_of, stored_as, placed, place_as = _casts(what)
    items, threads = tile.items, tile.threads
    size = items * threads
    merge = _shared_merge(wide(what.dtype), what.descending, placed, tile)
    split = _split(wide(what.dtype), what.descending)

    @td.kernel(checked=False)
    def merge_tiles(x, order, out, out_order, n: td.i32, width: td.i32, tiles: td.i32):
        t = td.thread_idx.x
        row = td.block_idx.x // tiles
        start = (td.block_idx.x - row * tiles) * size
        base = row * n
        group = start & ~((width - 1) | width)
        lefts = td.minimum(width, n - group)
        rights = td.minimum(width, n - group - lefts)
        taken = start - group
        count = td.minimum(lefts + rights - taken, size)
        values = td.shared(size, wide_of)
        places = td.shared(size, td.i32) if placed else values
        own = td.local(items, wide_of)
        own_places = td.local(items, td.i32)
        # The tile is made of these stretches of the two runs.
        left = base + group
        right = left + lefts
        begin = split(x, left, lefts, right, rights, taken)
        middle = split(x, left, lefts, right, rights, taken + count) - begin
        left += begin
        right += taken - begin - middle
        for k in td.static_range(items):
            at = t + k * threads
            if at < count:
                source = at + (left if at < middle else right)
                values[at] = wide_of(x[source])
                if placed:
                    places[at] = order[source]
        td.sync_threads()
        first = t * items
        merge(values, places, 0, middle, count, first, own, own_places)
        td.sync_threads()
        for k in td.static_range(items):
            values[first + k] = own[k]
            if placed:
                places[first + k] = own_places[k]
        td.sync_threads()
        for k in td.static_range(items):
            at = t + k * threads
            if at < count:
                out[base + start + at] = stored_as(values[at])
                if placed:
                    out_order[base + start + at] = place_as(places[at])

    return merge_tiles


@functools.cache
def row_sorter(what: Sorting, run: int, merged: bool) -> Kernel:
    """A kernel whose threads sort a row each: runs by insertion. If they are to be merged, that is
    done between `out` and `spare`, an even number of times."""
    wide_of, stored_as, placed, place_as = _casts(what)
    key = key_of(what.dtype, what.descending)
    merge = _merge(what)

    @td.kernel(checked=False)
    def sort_rows(x, out, order, spare, spare_order, n: td.i32):
        row = td.grid(1) * n
        end = row + n
        begin = row
        while begin < end:
            stop = td.minimum(begin + run, end)
            for i in range(begin, stop):
                value = wide_of(x[i])
                mine = key(value)
                j = i
                while j > begin and mine < key(wide_of(out[td.maximum(j - 1, 0)])):
                    out[j] = out[j - 1]
                    if placed:
                        order[j] = order[j - 1]
                    j -= 1
                out[j] = stored_as(value)
                if placed:
                    order[j] = place_as(i - row)
            begin = stop
        if merged:
            width = run
            while width < n:
                for back in td.static_range(2):
                    begin = row
                    while begin < end:
                        middle = td.minimum(begin + width, end)
                        stop = td.minimum(middle + width, end)
                        if back == 0:
                            merge(out, order, spare, spare_order, begin, middle, stop)
                        else:
                            merge(spare, spare_order, out, order, begin, middle, stop)
                        begin = stop
                    width *= 2

    return sort_rows


# --- functions of the kernels ---------------------------------------------------------------------


def _casts(what: Sorting) -> tuple[DType, DType, bool, DType]:
    """The dtypes to compute with and to store, whether places are wanted, and their dtype."""
    placed = what.place is not None
    return wide(what.dtype), what.stored, placed, what.place or td.i32


@functools.cache
def _split(form: DType, descending: bool) -> Function:
    """How many of the first `taken` merged elements come from the left run."""
    key = key_of(form, descending)

    @td.func
    def split(values, left, lefts, right, rights, taken):
        low = td.maximum(0, taken - rights)
        high = td.minimum(taken, lefts)
        while low < high:
            middle = (low + high) >> 1
            if key(form(values[right + taken - 1 - middle])) < key(form(values[left + middle])):
                high = middle
            else:
                low = middle + 1
        return low

    return split


@functools.cache
def _shared_merge(form: DType, descending: bool, placed: bool, tile: Tile) -> Function:
    """Puts a thread's items of two merged runs in shared memory into arrays of its own."""
    key = key_of(form, descending)
    split = _split(form, descending)
    items = tile.items
    last = tile.threads * tile.items - 1

    @td.func
    def merge(values, places, left, middle, end, first, own, own_places):
        taken = td.minimum(first, end) - left
        i = split(values, left, middle - left, middle, end - middle, taken)
        j = middle + taken - i
        i += left
        a = values[td.minimum(i, last)]
        b = values[td.minimum(j, last)]
        for k in td.static_range(items):
            from_right = j < end and (i >= middle or key(b) < key(a))
            own[k] = b if from_right else a
            if placed:
                own_places[k] = places[td.minimum(j if from_right else i, last)]
            if from_right:
                j += 1
                b = values[td.minimum(j, last)]
            else:
                i += 1
                a = values[td.minimum(i, last)]

    return merge


@functools.cache
def _merge(what: Sorting) -> Function:
    """Merges elements i … middle and middle … end of `x` into the same stretch of `out`."""
    wide_of, stored_as, placed, place_as = _casts(what)
    key = key_of(what.dtype, what.descending)

    @td.func
    def merge(x, order, out, out_order, i, middle, end):
        at = i
        j = middle
        if j < end:
            a = wide_of(x[i])
            b = wide_of(x[j])
            while i < middle and j < end:
                from_right = key(b) < key(a)
                out[at] = stored_as(b if from_right else a)
                if placed:
                    out_order[at] = place_as(order[j if from_right else i])
                at += 1
                if from_right:
                    j += 1
                    b = wide_of(x[td.minimum(j, end - 1)])
                else:
                    i += 1
                    a = wide_of(x[td.minimum(i, middle - 1)])
        remaining = i if i < middle else j
        for k in range(end - at):
            out[at + k] = stored_as(wide_of(x[remaining + k]))
            if placed:
                out_order[at + k] = place_as(order[remaining + k])

    return merge

"""Prefix sums and products along lines of elements, in two kernels: reduce, then scan.

A line's element k is `inner` elements after its element k - 1. On GPUs, where lines are rows
(`inner` is 1), a block scans a tile of a row; otherwise a thread scans a chunk of a line. No block
waits for another: one kernel reduces each chunk to its total, the totals are scanned as lines
themselves, and a second kernel scans the chunks.

The total before a chunk is added to each prefix within it, rather than being the chunk's first
value. So the rounding error of floats grows with the length and the number of chunks, not with
their product.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function, Kernel

RUN = 256  # elements that a thread sums before it adds them to the sum so far


class Accumulating(NamedTuple):
    """`kind` is "sum" or "prod"; `partial` is the dtype of the sums, `result` of the output."""

    kind: str
    partial: DType
    result: DType
    carried: bool  # whether there is a total of all before each chunk


class Tile(NamedTuple):
    """What a block does of a row; the threads are a power of two."""

    threads: int
    items: int  # of a thread


class _Parts(NamedTuple):
    """The functions and types that the kernels of an accumulation are made of."""

    load: Function
    store: Function
    nothing: Function
    join: Function
    kept: Any


@functools.cache
def chunk_totals(what: Accumulating) -> Kernel:
    """A kernel whose threads reduce a chunk of a line each."""
    load, _, nothing, join, _ = _parts(what)

    @td.kernel(checked=False)
    def total_chunks(x, totals, n: td.i32, inner: td.i32, length: td.i32, chunks: td.i32):
        g = td.grid(1)
        if g < totals.size:
            line = g // inner
            chunk = line % chunks
            at = (line // chunks * n + chunk * length) * inner + g % inner
            left = td.minimum(length, n - chunk * length)
            total = nothing()
            while left > 0:
                run = td.minimum(left, RUN)
                sums = nothing()
                for _ in range(run // 4):
                    first = join(load(x[at]), load(x[at + inner]))
                    second = join(load(x[at + 2 * inner]), load(x[at + 3 * inner]))
                    sums = join(sums, join(first, second))
                    at += 4 * inner
                for _ in range(run % 4):
                    sums = join(sums, load(x[at]))
                    at += inner
                total = join(total, sums)
                left -= run
            totals[g] = total

    return total_chunks


@functools.cache
def chunk_writer(what: Accumulating) -> Kernel:
    """A kernel whose threads scan a chunk of a line each; `lead` is 1 where a line begins with the
    identity."""
    load, store, nothing, join, _ = _parts(what)
    carried = what.carried
    # Integers do not round, and the product of a run can overflow where the whole one does not.
    separately = what.kind == "sum" and not what.partial.is_integer

    @td.kernel(checked=False)
    def write_chunks(
        x, totals, out, n: td.i32, inner: td.i32, length: td.i32, chunks: td.i32, lead: td.i32,
        threads: td.i32,
    ):  # fmt: skip
        g = td.grid(1)
        if g < threads:
            column = g % inner
            line = g // inner
            chunk = line % chunks
            row = line // chunks
            at = (row * n + chunk * length) * inner + column
            to = at + (row + 1) * lead * inner
            left = td.minimum(length, n - chunk * length)
            before = nothing()
            if chunk == 0:
                if lead > 0:
                    out[to - inner] = store(before)
            elif carried:
                before = totals[g - inner]
            while left > 0:
                run = td.minimum(left, RUN)
                sums = nothing()
                if separately:
                    for _ in range(
                        run // 4
                    ):  # a tree: four elements make the chain of additions one longer
                        a = load(x[at])
                        c = load(x[at + 2 * inner])
                        ab = join(a, load(x[at + inner]))
                        cd = join(c, load(x[at + 3 * inner]))
                        out[to] = store(join(before, join(sums, a)))
                        out[to + inner] = store(join(before, join(sums, ab)))
                        out[to + 2 * inner] = store(join(before, join(sums, join(ab, c))))
                        sums = join(sums, join(ab, cd))
                        out[to + 3 * inner] = store(join(before, sums))
                        at += 4 * inner
                        to += 4 * inner
                    for _ in range(run % 4):
                        sums = join(sums, load(x[at]))
                        out[to] = store(join(before, sums))
                        at += inner
                        to += inner
                    before = join(before, sums)
                else:
                    for _ in range(run):
                        before = join(before, load(x[at]))
                        out[to] = store(before)
                        at += inner
                        to += inner
                left -= run

    return write_chunks


@functools.cache
def tile_totals(what: Accumulating, tile: Tile) -> Kernel:
    """A kernel whose blocks reduce a tile of a row each."""
    load, _, nothing, join, kept = _parts(what)
    threads, items = tile.threads, tile.items
    halvings = threads.bit_length() - 1

    @td.kernel(checked=False)
    def total_tiles(x, totals, n: td.i32, tiles: td.i32):
        t = td.thread_idx.x
        row = td.block_idx.x // tiles
        start = (td.block_idx.x - row * tiles) * (threads * items)
        sums = td.shared(threads, kept)
        own = td.local(items, kept)
        total = nothing()
        if n - start >= threads * items:  # all are loaded before the first is needed
            for k in td.static_range(items):
                own[k] = load(x[row * n + start + t + k * threads])
            for k in td.static_range(items):
                total = join(total, own[k])
        else:
            for k in range(items):
                at = start + t + k * threads
                if at < n:
                    total = join(total, load(x[row * n + at]))
        sums[t] = total
        for k in td.static_range(halvings):
            td.sync_threads()
            if t < threads >> (k + 1):
                sums[t] = join(sums[t], sums[t + (threads >> (k + 1))])
        if t == 0:
            totals[td.block_idx.x] = sums[0]

    return total_tiles


@functools.cache
def tile_writer(what: Accumulating, tile: Tile) -> Kernel:
    """A kernel whose blocks scan a tile of a row each; `lead` as for `chunk_writer`."""
    load, store, nothing, join, kept = _parts(what)
    carried = what.carried
    threads, items = tile.threads, tile.items
    size = threads * items
    doublings = threads.bit_length() - 1

    @td.kernel(checked=False)
    def write_tiles(x, totals, out, n: td.i32, tiles: td.i32, lead: td.i32):
        t = td.thread_idx.x
        # The last tiles first: they were read last, and are the likeliest in a cache.
        block = td.grid_dim.x - 1 - td.block_idx.x
        row = block // tiles
        chunk = block - row * tiles
        start = chunk * size
        values = td.shared(size + size // 32, kept)  # padded after 32: no bank conflicts
        sums = td.shared(2 * threads, kept)
        own = td.local(items, kept)
        if n - start >= size:
            for k in td.static_range(items):
                own[k] = load(x[row * n + start + t + k * threads])
            for k in td.static_range(items):
                at = t + k * threads
                values[at + at // 32] = own[k]
        else:
            for k in range(items):
                at = t + k * threads
                value = nothing()
                if start + at < n:
                    value = load(x[row * n + start + at])
                values[at + at // 32] = value
        td.sync_threads()
        total = nothing()
        for k in td.static_range(items):
            at = t * items + k
            total = join(total, values[at + at // 32])
            own[k] = total
        sums[t] = total
        for k in td.static_range(doublings):
            td.sync_threads()
            if t >= 1 << k:
                total = join(sums[k % 2 * threads + t - (1 << k)], total)
            sums[(k + 1) % 2 * threads + t] = total
        td.sync_threads()
        before = nothing()
        if t > 0:
            before = sums[doublings % 2 * threads + t - 1]
        if carried and chunk > 0:
            before = join(totals[block - 1], before)
        for k in td.static_range(items):
            at = t * items + k
            values[at + at // 32] = join(before, own[k])
        td.sync_threads()
        to = row * (n + lead) + lead
        if lead > 0 and chunk == 0 and t == 0:
            out[to - 1] = store(nothing())
        for k in td.static_range(items):
            at = t + k * threads
            if start + at < n:
                out[to + start + at] = store(values[at + at // 32])

    return write_tiles


@functools.cache
def _parts(what: Accumulating) -> _Parts:
    """Elements are cast to the result's dtype before they are reduced."""
    partial, result = what.partial, what.result
    is_sum = what.kind == "sum"
    first = 0.0 if is_sum else 1.0
    if partial.kind == "complex":
        pair = td.vec2[partial.component]
        nothing = _pair_of(pair, first)
        return _Parts(_itself, _itself, nothing, _add if is_sum else _multiply_pairs, pair)

    @td.func
    def load(value):
        return partial(result(value))

    @td.func
    def store(value):
        return result(value)

    @td.func
    def identity():
        return partial(first)

    return _Parts(load, store, identity, _add if is_sum else _multiply, partial)


def _pair_of(pair: Any, real: float) -> Function:
    @td.func
    def identity():
        return pair(real, 0.0)

    return identity


@td.func
def _itself(value):
    return value


@td.func
def _add(a, b):
    return a + b


@td.func
def _multiply(a, b):
    return a * b


@td.func
def _multiply_pairs(a, b):
    out = a
    out.x = a.x * b.x - a.y * b.y
    out.y = a.x * b.y + a.y * b.x
    return out

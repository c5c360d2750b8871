"""What is done to heads of queries, keys and values before attention to pages.

`paged_attention` says how pages lie.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.block_reductions import side_of, sum_of_block
from treadle.lang.decorators import Function, Kernel

SCALED = 32  # elements that share a scale in a cache of 8 bits


class Storing(NamedTuple):
    """What a kernel that prepares queries and stores keys and values is made for."""

    cached: DType
    depth: int
    pairs: int  # of elements that are rotated, of each head
    adjacent: bool  # whether the elements of a pair are neighbours, or half the pairs apart
    fine: int  # positions that the table of angles has one after the other
    page: int
    normed: bool  # whether heads of queries and keys are divided by their root mean square
    threads: int


@functools.cache
def preparer(what: Storing) -> Function:
    """A function of a block that computes a head of a token in the shared array `held`: first the
    heads of the query, then of the key, then of the value. It takes what `storer` takes, the token,
    its position and the head, and shared memory of as many floats as threads, and a few."""
    depth, pairs, adjacent, fine = what.depth, what.pairs, what.adjacent, what.fine
    normed, threads = what.normed, what.threads
    summed = sum_of_block(dtypes.f32, threads)

    @td.func
    def prepare(
        query, key, value, norms, angles, starts, steps, heads, few, least, token, position, row,
        held, board, side_board,
    ):  # fmt: skip
        t = td.thread_idx.x
        squares = td.f32(0.0)
        for d in range(0, depth, threads):
            c = d + t
            if c < depth:
                x = td.f32(0.0)
                if row < heads:
                    x = query[starts.x + token * steps.x + row * depth + c]
                elif row < heads + few:
                    x = key[starts.y + token * steps.y + (row - heads) * depth + c]
                else:
                    x = value[starts.z + token * steps.z + (row - heads - few) * depth + c]
                squares += x * x
                held[c] = x
        if normed:
            total = summed(squares, board, side_board)
            if row < heads + few:
                factor = 1.0 / td.sqrt(total / td.f32(depth) + least)
                weights = td.i32(0)
                if row >= heads:
                    weights = depth
                for d in range(0, depth, threads):
                    c = d + t
                    if c < depth:
                        held[c] = held[c] * factor * norms[weights + c]
        td.sync_threads()
        if row < heads + few:
            place = td.maximum(position, 0)
            near = place % fine * pairs
            far = (fine + place // fine) * pairs
            for d in range(0, pairs, threads):
                p = d + t
                if p < pairs:
                    cosine = angles[2 * (near + p)]
                    sine = angles[2 * (near + p) + 1]
                    far_cosine = angles[2 * (far + p)]
                    far_sine = angles[2 * (far + p) + 1]
                    straight = far_cosine * cosine - far_sine * sine
                    turn = far_sine * cosine + far_cosine * sine
                    i = p
                    j = p + pairs
                    if adjacent:
                        i = 2 * p
                        j = 2 * p + 1
                    x = held[i]
                    y = held[j]
                    held[i] = x * straight - y * turn
                    held[j] = y * straight + x * turn
        td.sync_threads()

    return prepare


@functools.cache
def cache_writer(what: Storing, vectors: bool) -> Function:
    """A function of a block that writes a prepared head to a cache, from an element on; `vectors`:
    whether the cache is seen as vec4s."""
    depth, threads, cached = what.depth, what.threads, what.cached
    scaled = cached is dtypes.i8
    vec: Any = td.vec4[cached] if vectors else cached

    @td.func
    def keep(held, cache, scales, at):
        t = td.thread_idx.x
        if scaled:
            for d in range(0, depth // SCALED, threads):
                b = d + t
                if b < depth // SCALED:
                    most = td.f32(0.0)
                    for c in range(SCALED):
                        most = td.maximum(most, td.abs(held[b * SCALED + c]))
                    inverse = 127.0 / most if most > 0.0 else td.f32(0.0)
                    for c in range(SCALED):
                        cache[at + b * SCALED + c] = cached(
                            td.round(held[b * SCALED + c] * inverse)
                        )
                    scales[at // SCALED + b] = td.f16(most / 127.0)
        elif vectors:
            for d in range(0, depth // 4, threads):
                c = d + t
                if c < depth // 4:
                    cache[at // 4 + c] = vec(
                        cached(held[4 * c]), cached(held[4 * c + 1]), cached(held[4 * c + 2]),
                        cached(held[4 * c + 3]),
                    )  # fmt: skip
        else:
            for d in range(0, depth, threads):
                c = d + t
                if c < depth:
                    cache[at + c] = cached(held[c])

    return keep


@functools.cache
def storer(what: Storing) -> Kernel:
    """A kernel that rotates queries and keys by their positions, after the norm of each head if
    there is one, and stores keys and values. A block has one head of a token.

    `starts` are those of query, key and value in rows of `steps` elements; `norms` has the weights
    of the query's norm, then of the key's. The angle of a position is the sum of two in `angles`,
    which has `fine` positions from 0 on, then each fine-th position, with a cosine and a sine for
    each pair: so a small table is exact for long texts. `sizes` are tokens, heads of the query, of
    the key, and pages of a sequence; `keys` the elements of all keys."""
    depth, page, threads = what.depth, what.page, what.threads
    side, prepare, keep = side_of(threads), preparer(what), cache_writer(what, False)

    @td.kernel(checked=False)
    def store_paged(
        query, key, value, norms, angles, places, out, cache, scales, starts: td.vec4[td.i32],
        steps: td.vec4[td.i32], sizes: td.vec4[td.i32], keys: td.i32, least: td.f32,
    ):  # fmt: skip
        n = sizes.x
        heads = sizes.y
        few = sizes.z
        rows = heads + 2 * few
        token = td.block_idx.x // rows
        row = td.block_idx.x % rows
        position = places[token]
        held = td.shared(depth, td.f32)
        board = td.shared(threads, td.f32)
        side_board = td.shared(side, td.f32)
        prepare(
            query, key, value, norms, angles, starts, steps, heads, few, least, token, position,
            row, held, board, side_board,
        )  # fmt: skip
        if row < heads:
            for d in range(0, depth, threads):
                c = d + td.thread_idx.x
                if c < depth:
                    out[(token * heads + row) * depth + c] = held[c]
        elif position >= 0:
            slot = places[2 * n + places[n + token] * sizes.w + position // page]
            slot = slot * page + position % page
            at = (slot * few + (row - heads) % few) * depth
            if row >= heads + few:
                at += keys
            keep(held, cache, scales, at)

    return store_paged

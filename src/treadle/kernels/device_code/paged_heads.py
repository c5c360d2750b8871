"""What is done to heads of queries, keys and values before attention to pages.

`paged_attention` says how pages lie.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function, Kernel

SIDE = 8  # threads of a team that sum what all found
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
    compact: bool = False  # whether loops stay loops, for drivers that are slow to compile


def power_of_two(n: int) -> int:
    """The least that is not below n."""
    return 1 << (n - 1).bit_length()


@functools.cache
def preparer(what: Storing, count: int = 1) -> Function:
    """A function of a block that computes heads of a token in the shared array `held`. Among a
    token's heads are first those of the query, then of the key, then of the value; from `row` on
    come `count`, or all but two of those, then the key's and the value's head `place_of_key`. It
    takes what `storer` takes, the token, its position, these two, and shared memory: of two floats
    for each pair, of as many floats as threads, and `SIDE` more for each head."""
    depth, pairs, adjacent, fine = what.depth, what.pairs, what.adjacent, what.fine
    normed, threads = what.normed, what.threads
    rounds = -(-count * depth // threads)
    several = count > 1
    rotated = count - 1 if several else 1  # all but the value's
    team = threads // power_of_two(count)  # threads that sum the squares of a head
    side = min(team, SIDE)
    each: Any = range if what.compact else td.static_range

    @td.func
    def prepare(
        query, key, value, norms, angles, starts, steps, heads, few, least, token, position, row,
        place_of_key, held, rotations, board,
    ):  # fmt: skip
        t = td.thread_idx.x
        gains = td.local(rounds, td.f32)
        for k in each(rounds):
            i = k * threads + t
            if i < count * depth:
                r = row
                c = i
                if several:
                    r = row + i // depth
                    c = i % depth
                    if i >= (count - 2) * depth:
                        r = heads + (i // depth - (count - 2)) * few + place_of_key
                if r < heads:
                    held[i] = query[starts.x + token * steps.x + r * depth + c]
                elif r < heads + few:
                    held[i] = key[starts.y + token * steps.y + (r - heads) * depth + c]
                else:
                    held[i] = value[starts.z + token * steps.z + (r - heads - few) * depth + c]
                if normed:  # noqa: SIM102 (known as the kernel is compiled, what is in it is not)
                    if r < heads + few:
                        weights = td.i32(0)
                        if r >= heads:
                            weights = depth
                        gains[k] = norms[weights + c]
        place = td.maximum(position, 0)
        for d in range(0, pairs, threads):
            p = d + t
            if p < pairs:
                near = 2 * (place % fine * pairs + p)
                far = 2 * ((fine + place // fine) * pairs + p)
                cosine = angles[near]
                sine = angles[near + 1]
                far_cosine = angles[far]
                far_sine = angles[far + 1]
                rotations[2 * p] = far_cosine * cosine - far_sine * sine
                rotations[2 * p + 1] = far_sine * cosine + far_cosine * sine
        td.sync_threads()
        if normed:
            squares = td.f32(0.0)
            if t // team < count:
                for d in range(t % team, depth, team):
                    x = held[t // team * depth + d]
                    squares += x * x
            board[t] = squares
            td.sync_threads()
            if t < count * side:
                total = td.f32(0.0)
                for k in each(team // side):
                    total += board[t // side * team + t % side + k * side]
                board[threads + t] = total
            td.sync_threads()
            if t < count:
                total = td.f32(0.0)
                for k in each(side):
                    total += board[threads + t * side + k]
                board[t] = 1.0 / td.sqrt(total / td.f32(depth) + least)
            td.sync_threads()
            for k in each(rounds):
                i = k * threads + t
                if i < rotated * depth and row < heads + few:
                    held[i] = held[i] * board[i // depth] * gains[k]
            td.sync_threads()
        for d in range(0, rotated * pairs, threads):
            i = d + t
            if i < rotated * pairs and row < heads + few:
                p = i % pairs
                first = i // pairs * depth + p
                second = first + pairs
                if adjacent:
                    first += p
                    second = first + 1
                x = held[first]
                y = held[second]
                held[first] = x * rotations[2 * p] - y * rotations[2 * p + 1]
                held[second] = y * rotations[2 * p] + x * rotations[2 * p + 1]
        td.sync_threads()

    return prepare


@functools.cache
def cache_writer(what: Storing, vectors: bool) -> Function:
    """A function of a block that writes a prepared head, which begins at `first` in `held`, to a
    cache, from the element `at` on; `vectors`: whether the cache is seen as vec4s."""
    depth, threads, cached = what.depth, what.threads, what.cached
    scaled = cached is dtypes.i8
    vec: Any = td.vec4[cached] if vectors else cached

    @td.func
    def keep(held, first, cache, scales, at):
        t = td.thread_idx.x
        if scaled:
            for d in range(0, depth // SCALED, threads):
                b = d + t
                if b < depth // SCALED:
                    most = td.f32(0.0)
                    for c in range(SCALED):
                        most = td.maximum(most, td.abs(held[first + b * SCALED + c]))
                    inverse = 127.0 / most if most > 0.0 else td.f32(0.0)
                    for c in range(SCALED):
                        cache[at + b * SCALED + c] = cached(
                            td.round(held[first + b * SCALED + c] * inverse)
                        )
                    scales[at // SCALED + b] = td.f16(most / 127.0)
        elif vectors:
            for d in range(0, depth // 4, threads):
                c = d + t
                if c < depth // 4:
                    cache[at // 4 + c] = vec(
                        cached(held[first + 4 * c]), cached(held[first + 4 * c + 1]),
                        cached(held[first + 4 * c + 2]), cached(held[first + 4 * c + 3]),
                    )  # fmt: skip
        else:
            for d in range(0, depth, threads):
                c = d + t
                if c < depth:
                    cache[at + c] = cached(held[first + c])

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
    pairs = max(what.pairs, 1)
    prepare, keep = preparer(what), cache_writer(what, False)

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
        rotations = td.shared(2 * pairs, td.f32)
        board = td.shared(threads + SIDE, td.f32)
        prepare(
            query, key, value, norms, angles, starts, steps, heads, few, least, token, position,
            row, 0, held, rotations, board,
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
            keep(held, 0, cache, scales, at)

    return store_paged

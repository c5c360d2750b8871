"""Attention to keys and values that lie in pages, for inference on GPUs.

A sequence's keys and values are in pages of `page` places each; `places` says which. It has for n
tokens their n positions, then their n sequences, then for each sequence a row of page numbers, of
which place p of the sequence uses the one at p // page. A token with a negative position is
padding: nothing is stored for it, and its result is zeros.

The cache of a layer is one array: first all keys, of shape (places, heads, depth), then all values.
With 8 bits, another array has the scales of each 32 neighbouring elements.

A block has the queries of `tokens` neighbouring tokens of one sequence, and of all heads that share
keys; and a part of the keys that these see, where other blocks have the others. Threads are keys
while scores are computed, and columns of the value while weights are applied; the softmax is online
as in `attention`, and in powers of two.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention import LOG2_E
from treadle.kernels.device_code.block_reductions import side_of, sum_of_block
from treadle.lang.decorators import Function, Kernel

SCALED = 32  # elements that share a scale in a cache of 8 bits
_FEW_COLUMNS = 4  # of a vector
_MOST_SEGMENTS = 8


class Paged(NamedTuple):
    """What a kernel of attention to pages is made for."""

    cached: DType  # of the cache's elements: i8 has scales
    group: int  # heads of the query that share keys
    depth: int  # of a head
    page: int  # places of a page
    tokens: int  # of a block
    parts: int  # into which the keys are split
    threads: int
    capped: bool  # whether scores have a soft cap
    sinks: bool  # whether each head has a score that takes weight and gives nothing
    serial: bool  # whether the threads of a block are the lanes of vectors

    @property
    def queries(self) -> int:
        """Of a block."""
        return self.group * self.tokens

    @property
    def scaled(self) -> bool:
        """Whether the cache has scales."""
        return self.cached is dtypes.i8


@functools.cache
def attender(what: Paged) -> Kernel:
    """The kernel. Its blocks are parts of the keys, fastest, then heads of keys, then tokens.

    `sizes` are the tokens, the heads of keys, the pages of a sequence, and the elements of all
    keys; a query sees `window` keys up to its own. `sums` has the result, or with parts the sums
    of the parts, and `tops` their peaks and totals."""
    queries, group, depth, page = what.queries, what.group, what.depth, what.page
    tokens, parts, threads = what.tokens, what.parts, what.threads
    columns = depth // _FEW_COLUMNS
    teams = threads // columns  # of threads, which have a share of the keys each
    # Of the threads, whose greatest scores are found first; then, those of the segments.
    segments = max(min(threads // queries, _MOST_SEGMENTS), 1)
    segment = threads // segments
    side, summed = side_of(threads), sum_of_block(dtypes.f32, threads)
    load, power, capped = _loader(what), td.func(_exp2), what.capped
    sinks, scaled = what.sinks, what.scaled
    vec = td.vec4[td.f32]
    given: Any = td.Array[td.f32]
    cached: Any = td.Array[what.cached if scaled else td.vec4[what.cached]]

    @td.kernel(checked=False)
    def attend_paged(
        query: given, cache: cached, scales, places, sink, sums: given, tops,
        sizes: td.vec4[td.i32], window: td.i32, scale: td.f32, cap: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        n = sizes.x
        heads = sizes.y
        part = td.block_idx.x % parts
        head = td.block_idx.x // parts % heads
        token = td.block_idx.x // parts // heads * tokens
        own = td.shared(queries * columns, vec)
        scores = td.shared(queries * threads, td.f32)
        tops_of = td.shared(queries * segments, td.f32)
        rows = td.shared(threads, td.i32)
        board = td.shared(threads, vec)
        few = td.shared(side, td.f32)
        peaks = td.local(queries, td.f32)
        totals = td.local(queries, td.f32)
        dots = td.local(queries, td.f32)
        found = td.local(queries, vec)
        first = td.i32(1 << 30)
        last = td.i32(0)
        for r in td.static_range(tokens):
            position = td.i32(-1)
            if token + r < n:
                position = places[token + r]
            if position >= 0:
                first = td.minimum(first, td.maximum(position + 1 - window, 0))
                last = td.maximum(last, position + 1)
        first = td.minimum(first, last)
        table = 2 * n + places[n + token] * sizes.z
        # A part is a multiple of the threads, so that its tiles are whole but for the last.
        share = ((last - first + parts - 1) // parts + threads - 1) // threads * threads
        begin = first + part * share
        end = td.minimum(begin + share, last)
        for i in range(t, queries * columns, threads):
            q = i // columns
            row = td.minimum(token + q // group, n - 1) * heads * group + head * group + q % group
            at = row * depth + i % columns * 4
            own[i] = vec(query[at], query[at + 1], query[at + 2], query[at + 3]) * scale
        for q in td.static_range(queries):
            peaks[q] = td.f32(-td.inf)
            totals[q] = 0.0
            found[q] = vec(0.0)
            if sinks:  # noqa: SIM102 (known as the kernel is compiled, what is in it is not)
                if part == 0:
                    peaks[q] = sink[head * group + q % group] * td.f32(LOG2_E)
                    if t == 0:
                        totals[q] = 1.0
        team = t // columns
        column = t % columns
        for start in range(begin, end, threads):
            td.sync_threads()
            key = start + t
            for q in td.static_range(queries):
                dots[q] = 0.0
            row = td.i32(0)
            if key < end:
                row = (places[table + key // page] * page + key % page) * heads + head
                for c in range(columns):
                    near = load(cache, scales, row * columns + c)
                    for q in td.static_range(queries):
                        mine = own[q * columns + c]
                        dots[q] += mine.x * near.x
                        dots[q] += mine.y * near.y
                        dots[q] += mine.z * near.z
                        dots[q] += mine.w * near.w
            rows[t] = row
            for q in td.static_range(queries):
                position = td.i32(-1)
                if token + q // group < n:
                    position = places[token + q // group]
                score = dots[q]
                if capped:
                    score = cap * td.tanh(score / cap)
                seen = key < end and position - window < key <= position
                scores[q * threads + t] = score * td.f32(LOG2_E) if seen else td.f32(-td.inf)
            td.sync_threads()
            for i in range(t, queries * segments, threads):
                most = td.f32(-td.inf)
                for k in range(segment):
                    other = scores[i // segments * threads + i % segments * segment + k]
                    most = other if other > most else most
                tops_of[i] = most
            td.sync_threads()
            for q in td.static_range(queries):
                most = peaks[q]
                for s in td.static_range(segments):
                    other = tops_of[q * segments + s]
                    most = other if other > most else most
                base = most if most > td.f32(-td.inf) else td.f32(0.0)
                shrink = power(peaks[q] - base)
                peaks[q] = most
                found[q] *= shrink
                weight = power(scores[q * threads + t] - base)
                totals[q] = totals[q] * shrink + weight
                scores[q * threads + t] = weight
            td.sync_threads()
            if team < teams:
                for k in range(team, td.minimum(threads, end - start), teams):
                    near = load(cache, scales, sizes.w // 4 + rows[k] * columns + column)
                    for q in td.static_range(queries):
                        found[q] += near * scores[q * threads + k]
        for q in td.static_range(queries):
            td.sync_threads()
            board[t] = found[q]
            total = summed(totals[q], scores, few)
            if t < columns and token + q // group < n:
                for k in td.static_range(1, teams):
                    found[q] += board[k * columns + t]
                line = (token + q // group) * heads * group + head * group + q % group
                factor = td.f32(1.0)
                if parts > 1:
                    line = line * parts + part
                    if t == 0:
                        tops[2 * line] = peaks[q]
                        tops[2 * line + 1] = total
                else:
                    factor = td.f32(0.0) if total == 0.0 else 1.0 / total
                at = line * depth + t * 4
                sums[at] = found[q].x * factor
                sums[at + 1] = found[q].y * factor
                sums[at + 2] = found[q].z * factor
                sums[at + 3] = found[q].w * factor

    return attend_paged


def _exp2(x):  # type: ignore[no-untyped-def]
    """2 to the power of a number that is not positive."""
    return td.exp2(x)


def _loader(what: Paged) -> Function:
    """A function that reads four neighbouring elements of the cache."""
    vec = td.vec4[td.f32]
    if not what.scaled:

        @td.func
        def load(cache, scales, at):
            return vec(cache[at])

        return load

    @td.func
    def load_scaled(cache, scales, at):
        near = vec(cache[4 * at], cache[4 * at + 1], cache[4 * at + 2], cache[4 * at + 3])
        return near * td.f32(scales[at // (SCALED // 4)])

    return load_scaled


@functools.cache
def joiner(depth: int, parts: int, threads: int) -> Kernel:
    """A kernel that combines the sums of parts of the keys. A block has a line of the result."""

    @td.kernel(checked=False)
    def join_paged(sums, tops, out):
        line = td.block_idx.x
        peak = td.f32(-td.inf)
        for part in range(parts):
            top = tops[2 * (line * parts + part)]
            peak = top if top > peak else peak
        base = peak if peak > td.f32(-td.inf) else td.f32(0.0)
        total = td.f32(0.0)
        for part in range(parts):
            at = 2 * (line * parts + part)
            total += tops[at + 1] * td.exp2(tops[at] - base)
        factor = td.f32(0.0) if total == 0.0 else 1.0 / total
        for d in range(0, depth, threads):
            c = d + td.thread_idx.x
            if c < depth:
                found = td.f32(0.0)
                for part in range(parts):
                    at = line * parts + part
                    found += sums[at * depth + c] * td.exp2(tops[2 * at] - base)
                out[line * depth + c] = found * factor

    return join_paged


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
def storer(what: Storing) -> Kernel:
    """A kernel that rotates queries and keys by their positions, after the norm of each head if
    there is one, and stores keys and values. A block has one head of a token: first the heads of
    the query, then of the key, then of the value.

    `starts` are those of query, key and value in rows of `steps` elements; `norms` has the weights
    of the query's norm, then of the key's. The angle of a position is the sum of two in `angles`,
    which has `fine` positions from 0 on, then each fine-th position, with a cosine and a sine for
    each pair: so a small table is exact for long texts. `sizes` are tokens, heads of the query, of
    the key, and pages of a sequence; `keys` the elements of all keys."""
    depth, pairs, adjacent, fine = what.depth, what.pairs, what.adjacent, what.fine
    page, normed, threads, cached = what.page, what.normed, what.threads, what.cached
    scaled = cached is dtypes.i8
    side, summed = side_of(threads), sum_of_block(dtypes.f32, threads)

    @td.kernel(checked=False)
    def store_paged(
        query, key, value, norms, angles, places, out, cache, scales, starts: td.vec4[td.i32],
        steps: td.vec4[td.i32], sizes: td.vec4[td.i32], keys: td.i32, least: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
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
        if row < heads:
            for d in range(0, depth, threads):
                c = d + t
                if c < depth:
                    out[(token * heads + row) * depth + c] = held[c]
        elif position >= 0:
            slot = places[2 * n + places[n + token] * sizes.w + position // page]
            slot = slot * page + position % page
            at = (slot * few + (row - heads) % few) * depth
            if row >= heads + few:
                at += keys
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
            else:
                for d in range(0, depth, threads):
                    c = d + t
                    if c < depth:
                        cache[at + c] = cached(held[c])

    return store_paged

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
from treadle.kernels.device_code.paged_heads import SCALED, Storing, cache_writer, preparer
from treadle.lang.decorators import Function, Kernel

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
    def segments(self) -> int:
        """Of a block's threads: the greatest score of each is found first, then that of all."""
        return max(min(self.threads // self.queries, _MOST_SEGMENTS), 1)

    @property
    def scaled(self) -> bool:
        """Whether the cache has scales."""
        return self.cached is dtypes.i8


@functools.cache
def _part_of_keys(what: Paged) -> Function:
    """A function of a block that computes its part of the keys, from `begin` to `end`, for the
    queries in the shared array `own`. The other shared arrays are for scores (of queries and
    threads), their peaks (of queries and segments), rows of the cache and vec4s (of threads), and
    a few floats."""
    queries, group, depth, page = what.queries, what.group, what.depth, what.page
    parts, threads = what.parts, what.threads
    columns = depth // _FEW_COLUMNS
    teams = threads // columns  # of threads, which have a share of the keys each
    segments = what.segments
    segment = threads // segments
    summed = sum_of_block(dtypes.f32, threads)
    load, power, capped = _loader(what), td.func(_exp2), what.capped
    sinks, vec = what.sinks, td.vec4[td.f32]

    @td.func
    def attend_to_part(
        own, scores, tops_of, rows, board, few, cache, scales, places, sink, sums, tops, n, heads,
        keys, table, token, head, part, begin, end, window, cap,
    ):  # fmt: skip
        t = td.thread_idx.x
        peaks = td.local(queries, td.f32)
        totals = td.local(queries, td.f32)
        dots = td.local(queries, td.f32)
        found = td.local(queries, vec)
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
                    near = load(cache, scales, keys // 4 + rows[k] * columns + column)
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

    return attend_to_part


@functools.cache
def attender(what: Paged) -> Kernel:
    """The kernel. Its blocks are parts of the keys, fastest, then heads of keys, then tokens.

    `sizes` are the tokens, the heads of keys, the pages of a sequence, and the elements of all
    keys; a query sees `window` keys up to its own. `sums` has the result, or with parts the sums
    of the parts, and `tops` their peaks and totals."""
    queries, group, depth = what.queries, what.group, what.depth
    tokens, parts, threads, segments = what.tokens, what.parts, what.threads, what.segments
    columns, side = depth // _FEW_COLUMNS, side_of(threads)
    attend_to_part = _part_of_keys(what)
    vec = td.vec4[td.f32]
    given: Any = td.Array[td.f32]
    cached: Any = td.Array[what.cached if what.scaled else td.vec4[what.cached]]

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
        for i in range(t, queries * columns, threads):
            q = i // columns
            row = td.minimum(token + q // group, n - 1) * heads * group + head * group + q % group
            at = row * depth + i % columns * 4
            own[i] = vec(query[at], query[at + 1], query[at + 2], query[at + 3]) * scale
        attend_to_part(
            own, scores, tops_of, rows, board, few, cache, scales, places, sink, sums, tops, n,
            heads, sizes.w, table, token, head, part, begin, td.minimum(begin + share, last),
            window, cap,
        )  # fmt: skip

    return attend_paged


@functools.cache
def new_attender(what: Paged, storing: Storing) -> Kernel:
    """A kernel that does what `storer` does before it attends, for tokens of different sequences:
    each block prepares its queries, and the one whose part has the token's own key stores it with
    its value, before it reads. The arguments are those of both."""
    queries, depth, page = what.queries, what.depth, what.page
    parts, threads, segments = what.parts, what.threads, what.segments
    columns, side = depth // _FEW_COLUMNS, side_of(threads)
    attend_to_part = _part_of_keys(what)
    prepare, keep = preparer(storing), cache_writer(storing, not what.scaled)
    vec = td.vec4[td.f32]
    cached: Any = td.Array[what.cached if what.scaled else td.vec4[what.cached]]

    @td.kernel(checked=False)
    def attend_new(
        query, key, value, norms, angles, cache: cached, scales, places, sink,
        sums: td.Array[td.f32], tops, starts: td.vec4[td.i32], steps: td.vec4[td.i32],
        sizes: td.vec4[td.i32], window: td.i32, scale: td.f32, cap: td.f32, least: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        n = sizes.x
        heads = sizes.y
        part = td.block_idx.x % parts
        head = td.block_idx.x // parts % heads
        token = td.block_idx.x // parts // heads
        own = td.shared(queries * columns, vec)
        scores = td.shared(queries * threads, td.f32)
        tops_of = td.shared(queries * segments, td.f32)
        rows = td.shared(threads, td.i32)
        board = td.shared(threads, vec)
        few = td.shared(side, td.f32)
        held = td.shared(depth, td.f32)
        position = places[token]
        last = position + 1
        first = td.maximum(last - window, 0)
        table = 2 * n + places[n + token] * sizes.z
        share = ((last - first + parts - 1) // parts + threads - 1) // threads * threads
        begin = first + part * share
        end = td.minimum(begin + share, last)
        for q in range(queries):
            prepare(
                query, key, value, norms, angles, starts, steps, heads * queries, heads, least,
                token, position, head * queries + q, held, scores, few,
            )  # fmt: skip
            for c in range(t, columns, threads):
                own[q * columns + c] = (
                    vec(held[4 * c], held[4 * c + 1], held[4 * c + 2], held[4 * c + 3]) * scale
                )
            td.sync_threads()
        if begin <= position < end:
            slot = places[table + position // page] * page + position % page
            for kind in range(2):
                prepare(
                    query, key, value, norms, angles, starts, steps, heads * queries, heads, least,
                    token, position, heads * queries + kind * heads + head, held, scores, few,
                )  # fmt: skip
                keep(held, cache, scales, (slot * heads + head) * depth + kind * sizes.w)
                td.sync_threads()
        attend_to_part(
            own, scores, tops_of, rows, board, few, cache, scales, places, sink, sums, tops, n,
            heads, sizes.w, table, token, head, part, begin, end, window, cap,
        )  # fmt: skip

    return attend_new


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

"""Attention to keys and values that lie in pages, for inference on GPUs.

A sequence's keys and values are in pages of `page` places each; `places` says which. It has for n
tokens their n positions, then their n sequences, then for each sequence a row of page numbers, of
which place p of the sequence uses the one at p // page. A token with a negative position is
padding: nothing is stored for it, and its result is zeros.

The cache of a layer is one array: first all keys, of shape (places, heads, depth), then all values.
With 8 bits, another array has the scales of each 32 neighbouring elements.

A block has the queries of `tokens` neighbouring tokens of one sequence, and of all heads that share
keys; and a part of the keys that these see, where other blocks have the others. It takes a tile of
keys at a time: a few threads share a key while scores are computed, and threads are columns of the
value, in teams that share the tile's keys, while weights are applied. The softmax is online as in
`attention`, and in powers of two.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention import LOG2_E
from treadle.kernels.device_code.paged_heads import (
    SCALED,
    SIDE,
    Storing,
    cache_writer,
    power_of_two,
    preparer,
)
from treadle.lang.decorators import Function, Kernel

_FEW_COLUMNS = 4  # of a vector
_MOST_LOADS = 8  # vectors that a thread requests before it waits for the first
_MOST_SEGMENTS = 4
_BANKS = 32  # of shared memory


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
    compact: bool = False  # whether loops stay loops, for drivers that are slow to compile

    @property
    def queries(self) -> int:
        """Of a block."""
        return self.group * self.tokens

    @property
    def columns(self) -> int:
        """Vectors of a head."""
        return self.depth // _FEW_COLUMNS

    @property
    def lanes(self) -> int:
        """Threads that share a key: few enough that memory is read in whole lines, and so many
        that each has all its loads under way at once."""
        lanes = 1
        while self.columns % (2 * lanes) == 0 and self.columns // lanes > _MOST_LOADS:
            lanes *= 2
        return lanes

    @property
    def tile(self) -> int:
        """Keys whose scores are computed at once."""
        return self.threads // self.lanes

    @property
    def segments(self) -> int:
        """Of a tile's scores: the maximum and the sum of each are found first, then of all."""
        return max(min(_MOST_SEGMENTS, self.threads // power_of_two(self.queries)), 1)

    @property
    def scratch(self) -> int:
        """Floats of shared memory for what threads exchange: shares of scores, then of results."""
        return max(self.lanes * _pitch(self), _FEW_COLUMNS * self.threads)

    @property
    def shared_bytes(self) -> int:
        """Of shared memory that a block has, without what it needs to prepare its queries."""
        scores = self.queries * (self.tile + self.segments)
        return 4 * (self.queries * self.depth + self.scratch + scores)

    @property
    def scaled(self) -> bool:
        """Whether the cache has scales."""
        return self.cached is dtypes.i8


def _pitch(what: Paged) -> int:
    """How far apart the shares of a score are in shared memory: in different banks."""
    return what.queries * what.tile + max(_BANKS // what.lanes, 1)


@functools.cache
def _part_of_keys(what: Paged) -> Function:
    """A function of a block that computes its part of the keys, from `begin` to `end`, for the
    queries in the shared array `own`. The other shared arrays are scratch memory, scores (of
    queries and a tile's keys), and their peaks or sums (of queries and segments). What a thread
    needs of a tile's values is requested before the scores are computed."""
    queries, group, depth, page = what.queries, what.group, what.depth, what.page
    columns, lanes, tile, threads = what.columns, what.lanes, what.tile, what.threads
    parts, teams = what.parts, threads // columns
    pitch, segments = _pitch(what), what.segments
    segment = tile // segments
    rounds = -(-tile // teams)  # keys of a team
    load, power, capped = _loader(what), td.func(_exp2), what.capped
    sinks, vec = what.sinks, td.vec4[td.f32]
    each: Any = range if what.compact else td.static_range
    of_cache: Any = vec if what.scaled else td.vec4[what.cached]

    @td.func
    def attend_to_part(
        own, scratch, scores, tops_of, cache, scales, places, sink, sums, tops, n, heads,
        keys, table, token, head, part, begin, end, window, cap,
    ):  # fmt: skip
        t = td.thread_idx.x
        peaks = td.local(queries, td.f32)
        dots = td.local(queries, td.f32)
        found = td.local(queries, vec)
        near = td.local(rounds, of_cache)
        for q in td.static_range(queries):
            peaks[q] = td.f32(-td.inf)
            found[q] = vec(0.0)
        peak = td.f32(-td.inf)  # of the segment that this thread sums, and the sum of its weights
        total = td.f32(0.0)
        if sinks:  # noqa: SIM102 (known as the kernel is compiled, what is in it is not)
            if part == 0:
                for q in td.static_range(queries):
                    peaks[q] = sink[head * group + q % group] * td.f32(LOG2_E)
                if t < queries * segments:
                    peak = sink[head * group + t // segments % group] * td.f32(LOG2_E)
                    if t % segments == 0:
                        total = 1.0
        team = t // columns
        column = t % columns
        lane = t % lanes
        for start in range(begin, end, tile):
            key = td.minimum(start + t // lanes, end - 1)
            row = (places[table + key // page] * page + key % page) * heads + head
            for k in each(rounds):
                near_key = td.minimum(start + k * teams + team, end - 1)
                near_row = (
                    places[table + near_key // page] * page + near_key % page
                ) * heads + head
                near[k] = load(cache, scales, keys // 4 + near_row * columns + column)
            for q in td.static_range(queries):
                dots[q] = 0.0
            for c in each(columns // lanes):
                theirs = vec(load(cache, scales, row * columns + c * lanes + lane))
                for q in td.static_range(queries):
                    mine = own[q * columns + c * lanes + lane]
                    dots[q] += mine.x * theirs.x
                    dots[q] += mine.y * theirs.y
                    dots[q] += mine.z * theirs.z
                    dots[q] += mine.w * theirs.w
            for q in td.static_range(queries):
                scratch[lane * pitch + q * tile + t // lanes] = dots[q]
            td.sync_threads()
            for first in range(0, queries * tile, threads):
                i = first + t
                if i < queries * tile:
                    seer = token + i // tile // group
                    position = td.i32(-1)
                    if seer < n:
                        position = places[seer]
                    score = td.f32(0.0)
                    for k in td.static_range(lanes):
                        score += scratch[k * pitch + i]
                    if capped:
                        score = cap * td.tanh(score / cap)
                    place = start + i % tile
                    seen = place < end and position - window < place <= position
                    scores[i] = score * td.f32(LOG2_E) if seen else td.f32(-td.inf)
            td.sync_threads()
            for first in range(0, queries * segments, threads):
                i = first + t
                if i < queries * segments:
                    most = td.f32(-td.inf)
                    for k in each(segment):
                        other = scores[i * segment + k]
                        most = other if other > most else most
                    tops_of[i] = most
            td.sync_threads()
            for q in td.static_range(queries):
                most = peaks[q]
                for s in td.static_range(segments):
                    other = tops_of[q * segments + s]
                    most = other if other > most else most
                base = most if most > td.f32(-td.inf) else td.f32(0.0)
                found[q] *= power(peaks[q] - base)
                peaks[q] = most
                if t < tile:
                    scores[q * tile + t] = power(scores[q * tile + t] - base)
            td.sync_threads()
            if t < queries * segments:
                most = peak
                for s in td.static_range(segments):
                    other = tops_of[t // segments * segments + s]
                    most = other if other > most else most
                total *= power(peak - (most if most > td.f32(-td.inf) else td.f32(0.0)))
                peak = most
                for k in each(segment):
                    total += scores[t * segment + k]
            for k in each(rounds):
                i = k * teams + team
                if i < tile and team < teams:
                    theirs = vec(near[k])
                    for q in td.static_range(queries):
                        found[q] += theirs * scores[q * tile + i]
        td.sync_threads()
        if t < queries * segments:
            tops_of[t] = total
        for q in td.static_range(queries):
            scratch[t] = found[q].x
            scratch[threads + t] = found[q].y
            scratch[2 * threads + t] = found[q].z
            scratch[3 * threads + t] = found[q].w
            td.sync_threads()
            for first in range(0, depth, threads):
                d = first + t
                if d < depth and token + q // group < n:
                    whole = td.f32(0.0)
                    for s in td.static_range(segments):
                        whole += tops_of[q * segments + s]
                    value = td.f32(0.0)
                    for k in each(teams):
                        value += scratch[d % 4 * threads + k * columns + d // 4]
                    line = (token + q // group) * heads * group + head * group + q % group
                    if parts > 1:
                        line = line * parts + part
                        if d == 0:
                            tops[2 * line] = peaks[q]
                            tops[2 * line + 1] = whole
                    else:
                        value *= td.f32(0.0) if whole == 0.0 else 1.0 / whole
                    sums[line * depth + d] = value
            td.sync_threads()

    return attend_to_part


@functools.cache
def attender(what: Paged) -> Kernel:
    """The kernel. Its blocks are parts of the keys, fastest, then heads of keys, then tokens.

    `sizes` are the tokens, the heads of keys, the pages of a sequence, and the elements of all
    keys; a query sees `window` keys up to its own. `sums` has the result, or with parts the sums
    of the parts, and `tops` their peaks and totals."""
    queries, group, depth, columns = what.queries, what.group, what.depth, what.columns
    tokens, parts, threads, tile = what.tokens, what.parts, what.threads, what.tile
    scratch_size, segments = what.scratch, what.segments
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
        scratch = td.shared(scratch_size, td.f32)
        scores = td.shared(queries * tile, td.f32)
        tops_of = td.shared(queries * segments, td.f32)
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
        # A part is a multiple of the tile, so that its tiles are whole but for the last.
        share = ((last - first + parts - 1) // parts + tile - 1) // tile * tile
        begin = first + part * share
        for i in range(t, queries * columns, threads):
            q = i // columns
            row = td.minimum(token + q // group, n - 1) * heads * group + head * group + q % group
            at = row * depth + i % columns * 4
            own[i] = vec(query[at], query[at + 1], query[at + 2], query[at + 3]) * scale
        td.sync_threads()
        attend_to_part(
            own, scratch, scores, tops_of, cache, scales, places, sink, sums, tops, n, heads,
            sizes.w, table, token, head, part, begin, td.minimum(begin + share, last), window, cap,
        )  # fmt: skip

    return attend_paged


def bytes_to_prepare(what: Paged, storing: Storing) -> int:
    """Of shared memory that a block of `new_attender` has beside what `attender` needs."""
    return 4 * ((what.queries + 2) * what.depth + 2 * storing.pairs + 2 * SIDE * what.queries)


@functools.cache
def new_attender(what: Paged, storing: Storing) -> Kernel:
    """A kernel that does what `storer` does before it attends, for tokens of different sequences:
    each block prepares its queries, and the one whose part has the token's own key stores it with
    its value, before it reads. The arguments are those of both."""
    queries, depth, page, columns = what.queries, what.depth, what.page, what.columns
    parts, threads, tile = what.parts, what.threads, what.tile
    scratch_size, segments = max(what.scratch, threads + SIDE * (queries + 2)), what.segments
    attend_to_part = _part_of_keys(what)
    prepare, keep = preparer(storing, queries + 2), cache_writer(storing, not what.scaled)
    pairs = max(storing.pairs, 1)
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
        scratch = td.shared(scratch_size, td.f32)
        scores = td.shared(queries * tile, td.f32)
        tops_of = td.shared(queries * segments, td.f32)
        held = td.shared((queries + 2) * depth, td.f32)
        rotations = td.shared(2 * pairs, td.f32)
        position = places[token]
        last = position + 1
        first = td.maximum(last - window, 0)
        table = 2 * n + places[n + token] * sizes.z
        share = ((last - first + parts - 1) // parts + tile - 1) // tile * tile
        begin = first + part * share
        end = td.minimum(begin + share, last)
        prepare(
            query, key, value, norms, angles, starts, steps, heads * queries, heads, least, token,
            position, head * queries, head, held, rotations, scratch,
        )  # fmt: skip
        for c in range(t, queries * columns, threads):
            own[c] = vec(held[4 * c], held[4 * c + 1], held[4 * c + 2], held[4 * c + 3]) * scale
        if begin <= position < end:
            slot = places[table + position // page] * page + position % page
            for kind in td.static_range(2):
                keep(
                    held, (queries + kind) * depth, cache, scales,
                    (slot * heads + head) * depth + kind * sizes.w,
                )  # fmt: skip
        td.sync_threads()
        attend_to_part(
            own, scratch, scores, tops_of, cache, scales, places, sink, sums, tops, n, heads,
            sizes.w, table, token, head, part, begin, end, window, cap,
        )  # fmt: skip

    return attend_new


def _exp2(x):  # type: ignore[no-untyped-def]
    """2 to the power of a number that is not positive."""
    return td.exp2(x)


def _loader(what: Paged) -> Function:
    """A function that reads four neighbouring elements of the cache, as they are or with their
    scale."""
    vec = td.vec4[td.f32]
    if not what.scaled:

        @td.func
        def load(cache, scales, at):
            return cache[at]

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

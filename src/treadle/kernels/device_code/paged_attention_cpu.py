"""Attention to pages on the CPU, where the threads of a block are the lanes of vectors.

As in `attention_cpu`, lanes are columns while the scores of a stretch of keys are computed, and
sums over lanes are taken for as many keys as there are lanes at once, by a transposition in shared
memory. What a block computes, and the arguments, are those of `paged_attention`.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core import dtypes
from treadle.kernels.device_code.attention import LOG2_E, power_of
from treadle.kernels.device_code.paged_attention import Paged
from treadle.kernels.device_code.paged_heads import SCALED
from treadle.lang.decorators import Function, Kernel

STRETCH = 128  # keys whose weights are stored at a time


@functools.cache
def attender_cpu(what: Paged) -> Kernel:
    """The kernel. The columns are a multiple of the lanes."""
    queries, group, depth, page = what.queries, what.group, what.depth, what.page
    tokens, parts, lanes = what.tokens, what.parts, what.threads
    load, power, capped, sinks = _loader(what), power_of(dtypes.f32), what.capped, what.sinks
    pitch = lanes + 1
    most_vectors = max(16 // queries, 1)
    vectors = next(v for v in (4, 3, 2, 1) if v <= most_vectors and depth % (v * lanes) == 0)

    @td.func
    def row_of(places, table, key, heads, head):
        """The first element of a key, the same for all lanes: so these read a whole vector."""
        return ((places[table + key // page] * page + key % page) * heads + head) * depth

    @td.kernel(checked=False)
    def attend_paged_cpu(
        query, cache, scales, places, sink, sums, tops,
        sizes: td.vec4[td.i32], window: td.i32, scale: td.f32, cap: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        n = sizes.x
        heads = sizes.y
        part = td.block_idx.x % parts
        head = td.block_idx.x // parts % heads
        token = td.block_idx.x // parts // heads * tokens
        own = td.shared(queries * depth, td.f32)
        board = td.shared(queries * lanes * pitch, td.f32)
        scores = td.shared(queries * STRETCH, td.f32)
        exchange = td.shared(queries * lanes, td.f32)
        found = td.shared(queries * depth, td.f32)
        peaks = td.local(queries, td.f32)
        totals = td.local(queries, td.f32)
        shrinks = td.local(queries, td.f32)
        dots = td.local(queries, td.f32)
        partials = td.local(queries * vectors, td.f32)
        near = td.local(vectors, td.f32)
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
        share = ((last - first + parts - 1) // parts + lanes - 1) // lanes * lanes
        begin = first + part * share
        end = td.minimum(begin + share, last)
        for q in td.static_range(queries):
            row = td.minimum(token + q // group, n - 1) * heads * group + head * group + q % group
            for d in range(0, depth, lanes):
                own[q * depth + d + t] = query[row * depth + d + t] * scale
                found[q * depth + d + t] = 0.0
            peaks[q] = td.f32(-td.inf)
            totals[q] = 0.0
            if sinks:  # noqa: SIM102 (known as the kernel is compiled, what is in it is not)
                if part == 0:
                    peaks[q] = sink[head * group + q % group] * td.f32(LOG2_E)
                    if t == 0:
                        totals[q] = 1.0
        for start in range(begin, end, STRETCH):
            count = td.minimum(STRETCH, end - start)
            td.sync_threads()
            for j in range(0, count, lanes):
                for k in range(lanes):
                    at = row_of(places, table, td.minimum(start + j + k, end - 1), heads, head)
                    for q in td.static_range(queries):
                        dots[q] = 0.0
                    for d in range(0, depth, lanes):
                        entry = load(cache, scales, at, d, t)
                        for q in td.static_range(queries):
                            dots[q] += entry * own[q * depth + d + t]
                    for q in td.static_range(queries):
                        board[(q * lanes + k) * pitch + t] = dots[q]
                td.sync_threads()
                key = start + j + t
                for q in td.static_range(queries):
                    score = td.f32(0.0)
                    for k in td.static_range(lanes):
                        score += board[(q * lanes + t) * pitch + k]
                    position = td.i32(-1)
                    if token + q // group < n:
                        position = places[token + q // group]
                    if capped:
                        score = cap * td.tanh(score / cap)
                    seen = key < end and position - window < key <= position
                    score = score * td.f32(LOG2_E) if seen else td.f32(-td.inf)
                    scores[q * STRETCH + j + t] = score
                td.sync_threads()
            for q in td.static_range(queries):
                most = peaks[q]
                for j in range(0, count, lanes):
                    other = scores[q * STRETCH + j + t]
                    most = other if other > most else most
                exchange[q * lanes + t] = most
            td.sync_threads()
            for q in td.static_range(queries):
                most = exchange[q * lanes]
                for k in td.static_range(1, lanes):
                    other = exchange[q * lanes + k]
                    most = other if other > most else most
                base = most if most > td.f32(-td.inf) else td.f32(0.0)
                shrinks[q] = power(peaks[q] - base)
                peaks[q] = most
                total = totals[q] * shrinks[q]
                for j in range(0, count, lanes):
                    weight = power(scores[q * STRETCH + j + t] - base)
                    total += weight
                    scores[q * STRETCH + j + t] = weight
                totals[q] = total
            td.sync_threads()
            for d in range(0, depth, lanes * vectors):
                for q in td.static_range(queries):
                    for v in td.static_range(vectors):
                        before = found[q * depth + d + v * lanes + t]
                        partials[q * vectors + v] = before * shrinks[q]
                for k in range(count):
                    place = sizes.w + row_of(places, table, start + k, heads, head)
                    for v in td.static_range(vectors):
                        near[v] = load(cache, scales, place, d + v * lanes, t)
                    for q in td.static_range(queries):
                        weight = scores[q * STRETCH + k]
                        for v in td.static_range(vectors):
                            partials[q * vectors + v] += near[v] * weight
                for q in td.static_range(queries):
                    for v in td.static_range(vectors):
                        found[q * depth + d + v * lanes + t] = partials[q * vectors + v]
        td.sync_threads()
        for q in td.static_range(queries):
            exchange[q * lanes + t] = totals[q]
        td.sync_threads()
        for q in td.static_range(queries):
            if token + q // group < n:
                total = td.f32(0.0)
                for k in td.static_range(lanes):
                    total += exchange[q * lanes + k]
                line = (token + q // group) * heads * group + head * group + q % group
                factor = td.f32(1.0)
                if parts > 1:
                    line = line * parts + part
                    if t == 0:
                        tops[2 * line] = peaks[q]
                        tops[2 * line + 1] = total
                else:
                    factor = td.f32(0.0) if total == 0.0 else 1.0 / total
                for d in range(0, depth, lanes):
                    sums[line * depth + d + t] = found[q * depth + d + t] * factor

    return attend_paged_cpu


def _loader(what: Paged) -> Function:
    """A function that reads an element of the cache."""
    if not what.scaled:

        @td.func
        def load(cache, scales, at, d, t):
            return td.f32(cache[at + d + t])

        return load

    @td.func
    def load_scaled(cache, scales, at, d, t):
        return td.f32(cache[at + d + t]) * td.f32(scales[(at + d) // SCALED])

    return load_scaled

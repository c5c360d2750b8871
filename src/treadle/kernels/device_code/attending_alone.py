"""Attention where threads do best alone: a block's threads are the lanes of vectors.

A block has a few queries and goes over the keys, a stretch of some hundred after the other. Lanes
are keys while scores are made, columns of the value while weights are put to use; in between, a
stretch's weights wait in the cache. Keys come transposed, so that lanes that are neighbours read
neighbours; what a query needs is the same for all lanes.

All accumulators are in registers, queries by vectors: as many as the processor has room for.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.kernels.device_code.attending import LN_2, LOG2_E, Attending, kept, power_of, share_of
from treadle.lang.kernel import Kernel

STRETCH = 512  # keys whose weights wait at a time
COLUMNS = 256  # of the value, of a block


class Lanes(NamedTuple):
    """What a block does at once."""

    lanes: int
    rows: int  # queries
    keys: int  # vectors of keys
    vectors: int  # of columns of the value
    even: bool  # whether the value's columns are a multiple of these
    side_by_side: bool  # whether neighbours in a mask's row lie side by side


@functools.cache
def transposer(what: Attending, lanes: int) -> Kernel:
    """A kernel that turns the keys of each head, so that neighbours are of one column. Beyond the
    last key there is anything finite."""
    partial = what.partial

    @td.kernel(checked=False)
    def transpose(
        key, out, key_steps: td.vec4[td.i32], key_heads: td.vec4[td.i32], count: td.i32,
        depth: td.i32, pitch: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        stretches = pitch // lanes
        head = td.block_idx.x // stretches
        k = td.block_idx.x % stretches * lanes + t
        h1 = head // key_heads.z % key_heads.y
        h0 = head // key_heads.z // key_heads.y
        at = h0 * key_steps.x + h1 * key_steps.y + head % key_heads.z * key_steps.z
        at += td.minimum(k, count - 1) * key_steps.w
        for e in range(depth):
            out[(head * depth + e) * pitch + k] = partial(key[at + e])

    return transpose


@functools.cache
def lone_attender(what: Attending, block: Lanes) -> Kernel:
    """The kernel. Its arguments are those of `attending.attender`, but for `turned`, the transposed
    keys, whose columns are `pitch` apart; the steps of the keys count in columns of them."""
    partial = what.partial
    lanes, rows, keys, vectors = block.lanes, block.rows, block.keys, block.vectors
    even, side_by_side = block.even, block.side_by_side
    masked, dropout = what.mask is not None, what.dropout
    additive = masked and what.mask is not dtypes.bool_
    power, share = power_of(partial), share_of(partial, dropout)
    result = what.dtype

    @td.kernel(checked=False)
    def attend_alone(
        query, turned, value, mask, out, norms,
        query_steps: td.vec4[td.i32], key_steps: td.vec4[td.i32], value_steps: td.vec4[td.i32],
        mask_steps: td.vec4[td.i32], mask_step: td.i32, sizes: td.vec4[td.i32],
        heads: td.vec4[td.i32], reach: td.vec4[td.i32], scale: partial, draw: td.vec4[td.u32],
        keep: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        queries = sizes.x
        count = sizes.y
        depth = sizes.z
        width = sizes.w
        pitch = key_steps.w
        pieces = td.maximum((width + COLUMNS - 1) // COLUMNS, 1)
        tiles = (queries + rows - 1) // rows
        piece = td.block_idx.x % pieces * COLUMNS
        head = td.block_idx.x // pieces // tiles
        row = td.block_idx.x // pieces % tiles * rows
        h2 = head % heads.y
        h1 = head // heads.y % heads.x
        h0 = head // heads.y // heads.x
        query_at = h0 * query_steps.x + h1 * query_steps.y + h2 * query_steps.z
        key_at = (h0 * key_steps.x + h1 * key_steps.y + h2 * key_steps.z) * pitch
        value_at = h0 * value_steps.x + h1 * value_steps.y + h2 * value_steps.z + piece
        mask_at = h0 * mask_steps.x + h1 * mask_steps.y + h2 * mask_steps.z
        columns = td.minimum(width - piece, COLUMNS)
        first = td.maximum(row - reach.x, 0) // lanes * lanes
        last = td.minimum(count, td.minimum(row + rows, queries) + reach.y)

        scores = td.shared(rows * STRETCH, partial)
        sums = td.shared(rows * COLUMNS, partial)
        exchange = td.shared(rows * lanes, partial)
        peaks = td.shared(rows * lanes, partial)
        totals = td.shared(rows * lanes, partial)
        shrinks = td.shared(rows * lanes, partial)
        partials = td.local(rows * max(keys, vectors), partial)
        near = td.local(max(keys, vectors), partial)
        for r in range(rows):
            peaks[r * lanes + t] = partial(-td.inf)
            totals[r * lanes + t] = partial(0.0)
            for d in range(0, COLUMNS, lanes):
                sums[r * COLUMNS + d + t] = partial(0.0)
        for start in range(first, last, STRETCH):
            n = td.minimum(STRETCH, last - start)
            for j in range(0, n, lanes * keys):
                for s in td.static_range(rows * keys):
                    partials[s] = partial(0.0)
                for e in range(depth):
                    for c in td.static_range(keys):
                        near[c] = turned[key_at + e * pitch + start + j + c * lanes + t]
                    for r in td.static_range(rows):
                        own_row = td.minimum(row + r, queries - 1)
                        own = partial(query[query_at + own_row * query_steps.w + e])
                        for c in td.static_range(keys):
                            partials[r * keys + c] += own * near[c]
                for r in td.static_range(rows):
                    for c in td.static_range(keys):
                        scores[r * STRETCH + j + c * lanes + t] = partials[r * keys + c] * scale
            # What no query may see is -infinity.
            whole = (
                start + STRETCH <= last
                and row + rows - 1 - reach.x <= start
                and start + STRETCH - 1 - reach.y <= row
            )
            if masked or not whole:
                for r in range(rows):
                    mask_row = mask_at + td.minimum(row + r, queries - 1) * mask_steps.w
                    for j in range(0, n, lanes):
                        column = start + j + t
                        seen = column < last and row + r - reach.x <= column <= row + r + reach.y
                        score = scores[r * STRETCH + j + t]
                        if masked and seen:
                            if side_by_side:
                                entry = mask[mask_row + start + j + t]
                            else:
                                entry = mask[mask_row + column * mask_step]
                            if additive:
                                score += partial(entry) * partial(LOG2_E)
                            else:
                                seen = entry
                        scores[r * STRETCH + j + t] = score if seen else partial(-td.inf)
            # The largest score of each query.
            for r in range(rows):
                most = peaks[r * lanes + t]
                for j in range(0, n, lanes):
                    score = scores[r * STRETCH + j + t]
                    most = score if score > most else most
                exchange[r * lanes + t] = most
            td.sync_threads()
            for r in range(rows):
                most = exchange[r * lanes]
                for k in td.static_range(1, lanes):
                    other = exchange[r * lanes + k]
                    most = other if other > most else most
                # Before there is a score at all, anything finite will do.
                base = most if most > partial(-td.inf) else partial(0.0)
                shrink = power(peaks[r * lanes + t] - base)
                shrinks[r * lanes + t] = shrink
                peaks[r * lanes + t] = most
                total = totals[r * lanes + t] * shrink
                for j in range(0, n, lanes):
                    weight = power(scores[r * STRETCH + j + t] - base)
                    total += weight
                    if dropout:
                        drawn = td.u32((reach.z + head) * queries + row + r)
                        if not kept(drawn, count, start + j + t, draw, keep):
                            weight = partial(0.0)
                    scores[r * STRETCH + j + t] = weight
                totals[r * lanes + t] = total
            td.sync_threads()
            for d in range(0, columns, lanes * vectors):
                for r in td.static_range(rows):
                    for v in td.static_range(vectors):
                        before = sums[r * COLUMNS + d + v * lanes + t]
                        partials[r * vectors + v] = before * shrinks[r * lanes + t]
                for k in range(n):
                    for v in td.static_range(vectors):
                        if even:
                            near[v] = partial(
                                value[value_at + (start + k) * value_steps.w + d + v * lanes + t]
                            )
                        else:
                            near[v] = partial(0.0)
                            if d + v * lanes + t < columns:
                                near[v] = partial(
                                    value[
                                        value_at + (start + k) * value_steps.w + d + v * lanes + t
                                    ]
                                )
                    for r in td.static_range(rows):
                        weight = scores[r * STRETCH + k]
                        for v in td.static_range(vectors):
                            partials[r * vectors + v] += near[v] * weight
                for r in td.static_range(rows):
                    for v in td.static_range(vectors):
                        sums[r * COLUMNS + d + v * lanes + t] = partials[r * vectors + v]
            td.sync_threads()
        for r in range(td.minimum(rows, queries - row)):
            total = partial(0.0)
            for k in td.static_range(lanes):  # each lane has the total of its own keys
                total += totals[r * lanes + k]
            line = head * queries + row + r
            factor = share(total, keep)
            for d in range(0, columns, lanes):
                if d + t < columns:
                    out[line * width + piece + d + t] = result(sums[r * COLUMNS + d + t] * factor)
            if piece == 0 and t == 0:
                norms[line] = peaks[r * lanes] * partial(LN_2) + td.log(total)

    return attend_alone

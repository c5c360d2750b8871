"""Attention on the CPU: the threads of a block are the lanes of vectors.

A block has a few groups of a few queries and loops over the keys in stretches of some hundred. A
stretch is read from memory for the first group, and from the cache for all others. Lanes are keys
while scores are computed, and columns of the value while the weights are applied; in between, a
group's weights are in the cache. The keys are transposed first, so that a vector of keys is one
load, unless there are too few queries for that to pay. A query's elements are broadcast to all
lanes.

All accumulators are in registers, queries by vectors: as many as the processor has.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention import (
    LN_2,
    Attending,
    kept,
    mask_scaler,
    power_of,
    share_of,
)
from treadle.kernels.device_code.text_tiles import FIELDS, TABLE, tile_at
from treadle.lang.decorators import Function, Kernel

STRETCH = 512  # keys whose weights are stored at a time
COLUMNS = 256  # of the value, of a block
DEPTH = 256  # columns of the queries that are copied to shared memory at a time


class Lanes(NamedTuple):
    """What a block computes at once."""

    lanes: int
    rows: int  # queries
    keys: int  # vectors of keys
    vectors: int  # of columns of the value
    even: bool  # whether the value's columns are a multiple of these
    transposed: bool  # whether the keys are transposed
    groups: int  # of queries, at most


@functools.cache
def transposer(partial: DType, panel: int) -> Kernel:
    """A kernel that transposes the keys of each head, in packed panels of so many keys: in a panel,
    the elements of one column are adjacent. Keys past the last one repeat it, so that all elements
    are finite."""

    @td.kernel(checked=False)
    def transpose(
        key, out, starts: td.vec4[td.i32], key_steps: td.vec4[td.i32], heads: td.vec4[td.i32],
        count: td.i32, depth: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        panels = (count + panel - 1) // panel
        head = td.block_idx.x // panels
        k = td.minimum(td.block_idx.x % panels * panel + t, count - 1)
        h1 = head // heads.z % heads.y
        h0 = head // heads.z // heads.y
        at = starts.y + h0 * key_steps.x + h1 * key_steps.y + head % heads.z * key_steps.z
        at += k * key_steps.w
        for e in range(depth):
            out[(td.block_idx.x * depth + e) * panel + t] = partial(key[at + e])

    return transpose


@functools.cache
def attender_cpu(what: Attending, block: Lanes) -> Kernel:
    """The kernel. Its arguments are those of `attention.attender`, but for the keys, if they are
    turned, whose steps then count in heads; and for `heads.z`, the groups of a block."""
    partial, lanes, rows, groups = what.partial, block.lanes, block.rows, block.groups
    panel = lanes * block.keys
    score, hide = _scorer(what, block), _hider(what, block)
    weigh, accumulate = _weigher(what, block), _value_accumulator(what, block)
    share = share_of(partial, what.dropout)
    transposed, result = block.transposed, what.dtype
    dropout, texts = what.dropout, what.mask is TABLE
    masked = what.mask is not None and not texts

    @td.kernel(checked=False)
    def attend_cpu(
        query, key, value, mask, out, norms, starts: td.vec4[td.i32],
        query_steps: td.vec4[td.i32], key_steps: td.vec4[td.i32], value_steps: td.vec4[td.i32],
        mask_steps: td.vec4[td.i32], mask_step: td.i32, sizes: td.vec4[td.i32],
        heads: td.vec4[td.i32], reach: td.vec4[td.i32], scale: partial, draws, keep: partial,
    ):  # fmt: skip
        t = td.thread_idx.x
        draw = td.vec4[td.u32](td.u32(0))
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
        queries = sizes.x
        count = sizes.y
        depth = sizes.z
        width = sizes.w
        column_tiles = td.maximum((width + COLUMNS - 1) // COLUMNS, 1)
        tile = rows * heads.z
        tiles = (queries + tile - 1) // tile
        if texts:
            tiles = mask.size // FIELDS
        column_start = td.block_idx.x % column_tiles * COLUMNS
        head = td.block_idx.x // column_tiles // tiles
        number = td.block_idx.x // column_tiles % tiles
        top = number * tile
        h2 = head % heads.y
        h1 = head // heads.y % heads.x
        h0 = head // heads.y // heads.x
        query_at = starts.x + h0 * query_steps.x + h1 * query_steps.y + h2 * query_steps.z
        key_at = h0 * key_steps.x + h1 * key_steps.y + h2 * key_steps.z
        key_step = key_steps.w
        if transposed:
            key_at = key_at * ((count + panel - 1) // panel * panel * depth)
            key_step = depth
        else:
            key_at += starts.y
        value_at = (
            starts.z + h0 * value_steps.x + h1 * value_steps.y + h2 * value_steps.z + column_start
        )
        mask_at = starts.w + h0 * mask_steps.x + h1 * mask_steps.y + h2 * mask_steps.z
        columns = td.minimum(width - column_start, COLUMNS)
        # Of the block's text: where its queries end, its keys begin and end, and how far its keys
        # lie behind its queries.
        final = queries
        low = 0
        until = count
        apart = 0
        if texts:
            row, begin, many, first_key, keys = tile_at(mask, number)
            top = begin + row
            final = begin + many
            low = first_key
            until = first_key + keys
            apart = first_key - begin
        bottom = td.minimum(top + tile, final)
        first = td.maximum(top + apart - reach.x, low) // panel * panel
        last = td.minimum(until, bottom + apart + reach.y)

        own = td.shared(rows * DEPTH, partial)
        board = td.shared(1 if transposed else rows * lanes * (lanes + 1), partial)
        scores = td.shared(rows * STRETCH, partial)
        exchange = td.shared(rows * lanes, partial)
        shrinks = td.shared(rows * lanes, partial)
        sums = td.shared(groups * rows * COLUMNS, partial)
        peaks = td.shared(groups * rows * lanes, partial)
        totals = td.shared(groups * rows * lanes, partial)
        for r in range(tile):
            peaks[r * lanes + t] = partial(-td.inf)
            totals[r * lanes + t] = partial(0.0)
            for d in range(0, COLUMNS, lanes):
                sums[r * COLUMNS + d + t] = partial(0.0)
        for start in range(first, last, STRETCH):
            for state in range(0, bottom - top, rows):
                row = top + state
                place = row + apart  # among the keys
                end = td.minimum(until, td.minimum(row + rows, final) + apart + reach.y)
                n = td.minimum(STRETCH, end - start)
                if n > 0 and start + STRETCH > place - reach.x:
                    for e in range(0, td.maximum(depth, 1), DEPTH):
                        deep = td.minimum(depth - e, DEPTH)
                        for r in range(rows):
                            own_row = td.minimum(row + r, final - 1) * query_steps.w
                            for d in range(0, deep, lanes):
                                entry = partial(0.0)
                                if d + t < deep:
                                    entry = partial(query[query_at + own_row + e + d + t]) * scale
                                own[r * DEPTH + d + t] = entry
                        td.sync_threads()
                        left = count - 1 - start
                        stretch_at = key_at + start * key_step
                        score(key, own, scores, board, stretch_at, key_step, e, deep, n, left)
                        td.sync_threads()
                    # Scores of keys that a query must not see are -infinity.
                    whole = (
                        n % lanes == 0
                        and low <= start
                        and place + rows - 1 - reach.x <= start
                        and start + n - 1 - reach.y <= place
                    )
                    if masked or not whole:
                        hide(
                            mask, scores, mask_at, mask_steps.w, mask_step, row, place, start, n,
                            queries, low, end, reach.x, reach.y,
                        )  # fmt: skip
                    for r in range(rows):
                        most = peaks[(state + r) * lanes + t]
                        for j in range(0, n, lanes):
                            most = larger(scores[r * STRETCH + j + t], most)
                        exchange[r * lanes + t] = most
                    td.sync_threads()
                    drawn = td.u32((reach.z + head) * queries + row)
                    weigh(
                        scores, exchange, peaks, totals, shrinks, state, n, drawn, count, start,
                        draw, keep,
                    )  # fmt: skip
                    td.sync_threads()
                    rows_at = value_at + start * value_steps.w
                    # Values before those of the text may be anything, and nothing times NaN is NaN.
                    skipped = td.maximum(low - start, 0)
                    accumulate(
                        value, scores, shrinks, sums, rows_at, value_steps.w, state, skipped, n,
                        columns,
                    )  # fmt: skip
                    td.sync_threads()
        for r in range(bottom - top):
            total = partial(0.0)
            for k in td.static_range(lanes):  # each lane has the total of its own keys
                total += totals[r * lanes + k]
            line = (reach.w + head) * queries + top + r
            factor = share(total, keep)
            for d in range(0, columns, lanes):
                if d + t < columns:
                    out[line * width + column_start + d + t] = result(
                        sums[r * COLUMNS + d + t] * factor
                    )
            if column_start == 0 and t == 0:
                norms[line] = peaks[r * lanes] * partial(LN_2) + td.log(total)

    return attend_cpu


def _scorer(what: Attending, block: Lanes) -> Function:
    """A function that computes the scores of a group and a stretch of keys from the first columns
    of query and key, or adds the products of further columns."""
    partial = what.partial
    lanes, rows, keys = block.lanes, block.rows, block.keys
    panel = lanes * keys
    if not block.transposed:
        return _row_scorer(what, block)

    @td.func
    def score(key, own, scores, board, at, step, e, deep, n, left):
        t = td.thread_idx.x
        partials = td.local(rows * keys, partial)
        near = td.local(keys, partial)
        for j in range(0, n, panel):
            for r in td.static_range(rows):
                for c in td.static_range(keys):
                    partials[r * keys + c] = partial(0.0)
                    if e > 0:
                        partials[r * keys + c] = scores[r * STRETCH + j + c * lanes + t]
            for k in range(deep):
                for c in td.static_range(keys):
                    near[c] = key[at + j * step + (e + k) * panel + c * lanes + t]
                for r in td.static_range(rows):
                    mine = own[r * DEPTH + k]
                    for c in td.static_range(keys):
                        partials[r * keys + c] += mine * near[c]
            for r in td.static_range(rows):
                for c in td.static_range(keys):
                    scores[r * STRETCH + j + c * lanes + t] = partials[r * keys + c]

    return score


def _row_scorer(what: Attending, block: Lanes) -> Function:
    """The same for keys that are not transposed: lanes are columns. Their sums are reduced for as
    many keys as there are lanes at once, by a transposition in shared memory."""
    partial, lanes, rows = what.partial, block.lanes, block.rows
    pitch = lanes + 1

    @td.func
    def score_rows(key, own, scores, board, at, step, e, deep, n, left):
        t = td.thread_idx.x
        partials = td.local(rows, partial)
        for j in range(0, n, lanes):
            for k in range(lanes):
                place = at + td.minimum(j + k, left) * step + e
                for r in td.static_range(rows):
                    partials[r] = partial(0.0)
                for d in range(0, deep, lanes):
                    near = partial(0.0)
                    if d + t < deep:
                        near = partial(key[place + d + t])
                    for r in td.static_range(rows):
                        partials[r] += near * own[r * DEPTH + d + t]
                for r in td.static_range(rows):
                    board[(r * lanes + k) * pitch + t] = partials[r]
            td.sync_threads()
            for r in range(rows):
                total = partial(0.0)
                for k in td.static_range(lanes):
                    total += board[(r * lanes + t) * pitch + k]
                if e > 0:
                    total += scores[r * STRETCH + j + t]
                scores[r * STRETCH + j + t] = total
            td.sync_threads()

    return score_rows


def _hider(what: Attending, block: Lanes) -> Function:
    """A function that adds a mask to scores and sets those of hidden keys to -infinity. `place` is
    where the first row is among the keys."""
    partial, lanes, rows = what.partial, block.lanes, block.rows
    masked = what.mask is not None and what.mask is not TABLE
    additive = what.mask is not dtypes.bool_
    scaled_mask = mask_scaler(partial)

    @td.func
    def hide(
        mask, scores, at, row_step, step, row, place, start, n, queries, low, end, left, right
    ):  # fmt: skip
        t = td.thread_idx.x
        for r in range(rows):
            mask_row = at + td.minimum(row + r, queries - 1) * row_step
            for j in range(0, n, lanes):
                column = start + j + t
                seen = low <= column < end and place + r - left <= column <= place + r + right
                score = scores[r * STRETCH + j + t]
                if masked and seen:
                    if step == 1:
                        entry = mask[mask_row + start + j + t]
                    else:
                        entry = mask[mask_row + column * step]
                    if additive:
                        score += scaled_mask(entry)
                    else:
                        seen = entry
                scores[r * STRETCH + j + t] = score if seen else partial(-td.inf)

    return hide


def _weigher(what: Attending, block: Lanes) -> Function:
    """A function that turns scores into weights; `exchange` has the maximum of each lane."""
    partial, lanes, rows, dropout = what.partial, block.lanes, block.rows, what.dropout
    power = power_of(partial)

    @td.func
    def weigh(scores, exchange, peaks, totals, shrinks, state, n, drawn, count, start, draw, keep):
        t = td.thread_idx.x
        for r in range(rows):
            most = exchange[r * lanes]
            for k in td.static_range(1, lanes):
                most = larger(exchange[r * lanes + k], most)
            # Without any score so far the peak is -infinity; -inf - -inf would be NaN.
            base = most if most > partial(-td.inf) else partial(0.0)
            shrink = power(peaks[(state + r) * lanes + t] - base)
            shrinks[r * lanes + t] = shrink
            peaks[(state + r) * lanes + t] = most
            total = totals[(state + r) * lanes + t] * shrink
            for j in range(0, n, lanes):
                weight = power(scores[r * STRETCH + j + t] - base)
                total += weight
                if dropout and not kept(drawn + td.u32(r), count, start + j + t, draw, keep):
                    weight = partial(0.0)
                scores[r * STRETCH + j + t] = weight
            totals[(state + r) * lanes + t] = total

    return weigh


def _value_accumulator(what: Attending, block: Lanes) -> Function:
    """A function that accumulates the rows of the value, times the weights of a group, but for some
    that are skipped."""
    partial = what.partial
    lanes, rows, vectors, even = block.lanes, block.rows, block.vectors, block.even

    @td.func
    def accumulate(value, scores, shrinks, sums, at, step, state, skipped, n, columns):
        t = td.thread_idx.x
        partials = td.local(rows * vectors, partial)
        near = td.local(vectors, partial)
        for d in range(0, columns, lanes * vectors):
            for r in td.static_range(rows):
                for v in td.static_range(vectors):
                    before = sums[(state + r) * COLUMNS + d + v * lanes + t]
                    partials[r * vectors + v] = before * shrinks[r * lanes + t]
            for k in range(skipped, n):
                for v in td.static_range(vectors):
                    if even:
                        near[v] = partial(value[at + k * step + d + v * lanes + t])
                    else:
                        near[v] = partial(0.0)
                        if d + v * lanes + t < columns:
                            near[v] = partial(value[at + k * step + d + v * lanes + t])
                for r in td.static_range(rows):
                    weight = scores[r * STRETCH + k]
                    for v in td.static_range(vectors):
                        partials[r * vectors + v] += near[v] * weight
            for r in td.static_range(rows):
                for v in td.static_range(vectors):
                    sums[(state + r) * COLUMNS + d + v * lanes + t] = partials[r * vectors + v]

    return accumulate


@td.func
def larger(score, most):
    """The larger of two; `most` if the other is NaN, which its weight propagates."""
    return score if score > most else most

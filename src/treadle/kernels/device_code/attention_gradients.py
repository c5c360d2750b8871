"""The derivative of attention of 16-bit floats by fragments.

Two kernels, each with every sum in the registers of one block, so that repeated runs give the same
bits: one over tiles of queries, for the gradient of the query, and one over tiles of keys, for
those of key and value, which goes over the queries of all heads that share the keys. Both make
the weights again from the logarithms that the forward pass stored. Scores are computed with the
block's rows as their rows, so that weights and the slopes of scores are first factors of the next
products as they are.

With D as the sum along a row of the result times its gradient G, and S for scores:
    weights = exp(S - norm), slopes = weights * (G valueᵀ - D) * scale,
    of query: slopes key, of key: slopesᵀ query, of value: weightsᵀ G.
(T. Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023.)
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention import LOG2_E, kept
from treadle.kernels.device_code.attention_tiles import (
    LANES,
    Extents,
    Rows,
    fetcher,
    first_piece,
    row_reader,
    rows_by_rows,
    score_hider,
    second_piece,
    sum_storer,
    weight_packer,
    weights_by_rows,
)
from treadle.kernels.device_code.text_tiles import FIELDS, TABLE, tile_at
from treadle.lang import builtins
from treadle.lang.decorators import Function, Kernel


class GradientTile(NamedTuple):
    """What a block computes at once: `rows`, of which a warp has `warp_rows`, of the operand whose
    gradient it computes, and `others` of those that it goes over. The words of `held` rows stay in
    registers."""

    rows: int
    others: int
    warp_rows: int
    held: bool = False

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows // self.warp_rows * LANES

    def bytes(self, query: Rows, value: Rows) -> int:
        """Of shared memory."""
        return (self.rows + 2 * self.others) * (query.pitch + value.pitch) * 16 + self.others * 16


class Deriving(NamedTuple):
    """What a kernel is made for: how rows of query and key, of the value and of the gradient lie,
    the mask, whether there is dropout, the dtype of the results, and how many columns of query
    and value are written at once. `key_gradients` computes those of `keys`, of `values` or both:
    heads of many columns leave registers for one of them."""

    query: Rows
    value: Rows
    gradient: Rows
    mask: DType | None
    dropout: bool
    result: DType
    lanes: int
    value_lanes: int
    keys: bool = True
    values: bool = True


@td.struct
class Strides:
    """Of an operand: its first element, the distances of neighbours along three axes of heads, of
    rows, and of a mask's columns."""

    start: td.i32
    first: td.i32
    second: td.i32
    third: td.i32
    row: td.i32
    column: td.i32


@td.func
def _place(strides: Strides, h0, h1, h2):
    """The first element of a head."""
    return strides.start + h0 * strides.first + h1 * strides.second + h2 * strides.third


@functools.cache
def _slopes(what: Deriving, down: int, across: int, transposed: bool) -> Function:
    """A function that makes weights (with dropout) and slopes of scores and of the gradients of
    weights, in place. Norms are in powers of two, infinite for a query that sees nothing. Of
    queries they are those of the rows of a lane, or if scores are `transposed` of its columns.
    `line` is the number of the first query among all, `key` the first key."""
    dropout, four = what.dropout, td.vec4[td.f32]

    @td.func
    def derive(scores, slopes, norms, sums, grade, line, key, count, draw, keep, back):
        weights = td.local(4, td.f32)
        steep = td.local(4, td.f32)
        for i in td.static_range(down):
            for j in td.static_range(across):
                score = scores[i * across + j]
                slope = slopes[i * across + j]
                weights[0] = score.x
                weights[1] = score.y
                weights[2] = score.z
                weights[3] = score.w
                steep[0] = slope.x
                steep[1] = slope.y
                steep[2] = slope.z
                steep[3] = slope.w
                for e in td.static_range(4):
                    at = j * 2 + e % 2 if transposed else i * 2 + e // 2
                    weight = td.exp2(td.fma(weights[e], grade, -norms[at]))
                    if dropout:
                        through = back
                        below = i * 16 + e // 2 * 8
                        right = j * 8 + e % 2
                        if transposed:
                            below = j * 8 + e % 2
                            right = i * 16 + e // 2 * 8
                        if not kept(line + td.u32(below), count, key + right, draw, keep):
                            through = td.f32(0.0)
                        steep[e] = weight * (steep[e] * through - sums[at])
                        weights[e] = weight * through
                    else:
                        steep[e] = weight * (steep[e] - sums[at])
                        weights[e] = weight
                scores[i * across + j] = four(weights[0], weights[1], weights[2], weights[3])
                slopes[i * across + j] = four(steep[0], steep[1], steep[2], steep[3])

    return derive


@td.func
def _norm_of(norm):
    """A stored logarithm in powers of two; infinite where a query sees nothing, so that its weights
    are zeros."""
    return td.f32(td.inf) if norm == td.f32(-td.inf) else norm * td.f32(LOG2_E)


@functools.cache
def query_gradient(what: Deriving, tile: GradientTile) -> Kernel:
    """The kernel for the gradient of the query. Its blocks lie along x: tiles of queries from the
    last to the first, and the heads, of which `heads` has the last two extents.

    `norms` and `sums` are those of each query, `gradient` is contiguous. `sizes` are queries, keys,
    columns of query and of value; `reach` as in `attention.attender`, then the heads that were
    computed by other launches. `scale` is that of scores in powers of two, `factor` that of the
    results."""
    dtype, dropout = what.query.dtype, what.dropout
    texts = what.mask is TABLE
    masked = what.mask is not None and not texts
    additive = masked and what.mask is not dtypes.bool_
    rows, others, warp_rows, held = tile
    threads = tile.threads
    down, across = warp_rows // 16, others // 8
    deep, value_deep = what.query.columns // 16, what.value.columns // 16
    pitch, value_pitch = what.query.pitch, what.value.pitch
    fetch_queries = fetcher(what.query, rows, threads)
    fetch_gradients = fetcher(what.gradient, rows, threads)
    fetch_keys = fetcher(what.query, others, threads)
    fetch_values = fetcher(what.value, others, threads)
    read_queries = row_reader(down, deep, pitch)
    read_gradients = row_reader(down, value_deep, value_pitch)
    score = rows_by_rows(dtype, Extents(down, across, deep), pitch, held)
    derive_weights = rows_by_rows(dtype, Extents(down, across, value_deep), value_pitch, held)
    hide = score_hider(what.mask if masked else None, down, across, False)
    derive = _slopes(what, down, across, False)
    pack = weight_packer(dtype, down, across)
    add_keys = weights_by_rows(dtype, Extents(down, 2 * deep, across // 2), pitch)
    store = sum_storer(what.result, what.lanes)
    end_copies, wait_copies = builtins.end_copies, builtins.wait_copies
    words, four = td.vec4[td.u32], td.vec4[td.f32]
    stored: Any = td.vec4[what.result] if what.lanes == 4 else what.result
    seen_type: Any = td.Array[what.mask] if what.mask is not None else td.i32
    draws_type: Any = td.Array[td.u32] if dropout else td.i32
    key_size, value_size = others * pitch, others * value_pitch

    @td.kernel(checked=False, fastmath=True)
    def derive_query(
        query: td.Array[dtype], key: td.Array[dtype], value: td.Array[dtype],
        gradient: td.Array[dtype], norms: td.Array[td.f32], sums: td.Array[td.f32],
        mask: seen_type, draws: draws_type, out: td.Array[stored],
        query_steps: Strides, key_steps: Strides, value_steps: Strides, mask_steps: Strides,
        sizes: td.vec4[td.i32], heads: td.vec2[td.i32], reach: td.vec4[td.i32],
        scale: td.f32, factor: td.f32, keep: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        lane = t % LANES
        warp_row = t // LANES * warp_rows
        draw = td.vec4[td.u32](td.u32(0))
        back = td.f32(1.0)
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
            back = td.f32(1.0) / keep if keep > 0.0 else td.f32(0.0)
        queries = sizes.x
        count = sizes.y
        tiles = (queries + rows - 1) // rows
        if texts:
            tiles = mask.size // FIELDS
        head = td.block_idx.x // tiles
        number = tiles - 1 - td.block_idx.x % tiles
        row = number * rows
        h2 = head % heads.y
        h1 = head // heads.y % heads.x
        h0 = head // heads.y // heads.x
        query_at = _place(query_steps, h0, h1, h2)
        key_at = _place(key_steps, h0, h1, h2)
        value_at = _place(value_steps, h0, h1, h2)
        mask_at = _place(mask_steps, h0, h1, h2)
        lines = head * queries
        draw_line = reach.z * queries
        draw_key = 0
        if texts:
            row, begin, queries, draw_key, count = tile_at(mask, number)
            query_at += begin * query_steps.row
            key_at += draw_key * key_steps.row
            value_at += draw_key * value_steps.row
            lines += begin
        first = td.maximum(row - reach.x, 0) // others
        last = td.minimum(count, td.minimum(row + rows, queries) + reach.y)
        last = (last + others - 1) // others

        query_tile = td.shared(rows * pitch, words)
        gradient_tile = td.shared(rows * value_pitch, words)
        key_tile = td.shared(2 * key_size, words)
        value_tile = td.shared(2 * value_size, words)
        fetch_queries(query, query_tile, 0, t, query_at, query_steps.row, row, queries, sizes.z)
        fetch_gradients(
            gradient, gradient_tile, 0, t, lines * sizes.w, sizes.w, row, queries, sizes.w
        )
        if first < last:
            start = first * others
            fetch_keys(key, key_tile, 0, t, key_at, key_steps.row, start, count, sizes.z)
            fetch_values(value, value_tile, 0, t, value_at, value_steps.row, start, count, sizes.w)
        end_copies()
        query_from = warp_row * pitch + first_piece(lane, pitch)
        gradient_from = warp_row * value_pitch + first_piece(lane, value_pitch)
        key_from = second_piece(lane, pitch)
        value_from = second_piece(lane, value_pitch)
        weighed_from = first_piece(lane, pitch)
        own = td.local(down * deep, words)
        own_gradient = td.local(down * value_deep, words)
        if held:
            wait_copies(0)
            td.sync_threads()
            read_queries(query_tile, query_from, own)
            read_gradients(gradient_tile, gradient_from, own_gradient)
        scores = td.local(down * across, four)
        slopes = td.local(down * across, four)
        weights = td.local(down * across // 2, words)
        found = td.local(2 * down * deep, four)
        of_norms = td.local(2 * down, td.f32)
        of_sums = td.local(2 * down, td.f32)
        for each in td.static_range(2 * down * deep):
            found[each] = four(0)
        own_row = row + warp_row + lane // 4
        for h in td.static_range(2 * down):
            of_norms[h] = td.f32(td.inf)
            of_sums[h] = td.f32(0.0)
            if own_row + h * 8 < queries:
                of_norms[h] = _norm_of(norms[lines + own_row + h * 8])
                of_sums[h] = sums[lines + own_row + h * 8]
        grade = td.f32(1.0) if additive else scale
        line = td.u32(draw_line + lines + own_row)
        slot = 0

        for step in range(first, last):
            start = step * others
            # The tiles of this step are here, and no thread needs those of the last one.
            wait_copies(0)
            td.sync_threads()
            if step + 1 < last:
                fetch_keys(
                    key, key_tile, (1 - slot) * key_size, t, key_at, key_steps.row,
                    start + others, count, sizes.z,
                )  # fmt: skip
                fetch_values(
                    value, value_tile, (1 - slot) * value_size, t, value_at, value_steps.row,
                    start + others, count, sizes.w,
                )  # fmt: skip
            end_copies()
            score(own, query_tile, query_from, key_tile, slot * key_size + key_from, scores)
            derive_weights(
                own_gradient, gradient_tile, gradient_from, value_tile,
                slot * value_size + value_from, slopes,
            )  # fmt: skip
            whole = (
                start + others <= count
                and row + rows - 1 - reach.x <= start
                and start + others - 1 - reach.y <= row
            )
            if masked or not whole:
                hide(
                    scores, own_row, start + lane % 4 * 2, queries, count, reach.x, reach.y, mask,
                    mask_at, mask_steps.row, mask_steps.column, scale,
                )  # fmt: skip
            derive(
                scores, slopes, of_norms, of_sums, grade, line, draw_key + start + lane % 4 * 2,
                sizes.y, draw, keep, back,
            )  # fmt: skip
            pack(slopes, weights)
            add_keys(weights, key_tile, slot * key_size + weighed_from, found)
            slot = 1 - slot
        wait_copies(0)
        for i in td.static_range(down):
            r = own_row + i * 16 + lane % 2 * 8
            at = (lines + r) * sizes.z
            for v in td.static_range(2 * deep):
                store(
                    out, at, r < queries, v * 8 + lane % 4 // 2 * 4, sizes.z,
                    found[i * 2 * deep + v], factor, factor,
                )  # fmt: skip

    return derive_query


@functools.cache
def key_gradients(what: Deriving, tile: GradientTile) -> Kernel:
    """The kernel for the gradients of key and value. Its blocks lie along x: tiles of keys, and the
    heads that have keys of their own, of which `own` has the last two extents. A block goes over
    the queries of `shared.w` heads that share the keys; `shared.x` and `.y` are the last two
    extents of these. The other arguments are those of `query_gradient`."""
    dtype, dropout = what.query.dtype, what.dropout
    texts = what.mask is TABLE
    masked = what.mask is not None and not texts
    additive = masked and what.mask is not dtypes.bool_
    rows, others, warp_rows, held = tile
    threads = tile.threads
    down, across = warp_rows // 16, others // 8
    deep, value_deep = what.query.columns // 16, what.value.columns // 16
    pitch, value_pitch = what.query.pitch, what.value.pitch
    fetch_keys = fetcher(what.query, rows, threads)
    fetch_values = fetcher(what.value, rows, threads)
    fetch_queries = fetcher(what.query, others, threads)
    fetch_gradients = fetcher(what.gradient, others, threads)
    read_keys = row_reader(down, deep, pitch)
    read_values = row_reader(down, value_deep, value_pitch)
    score = rows_by_rows(dtype, Extents(down, across, deep), pitch, held)
    derive_weights = rows_by_rows(dtype, Extents(down, across, value_deep), value_pitch, held)
    hide = score_hider(what.mask if masked else None, down, across, True)
    derive = _slopes(what, down, across, True)
    pack = weight_packer(dtype, down, across)
    add_queries = weights_by_rows(dtype, Extents(down, 2 * deep, across // 2), pitch)
    add_gradients = weights_by_rows(dtype, Extents(down, 2 * value_deep, across // 2), value_pitch)
    store = sum_storer(what.result, what.lanes)
    store_value = sum_storer(what.result, what.value_lanes)
    end_copies, wait_copies = builtins.end_copies, builtins.wait_copies
    words, four = td.vec4[td.u32], td.vec4[td.f32]
    stored: Any = td.vec4[what.result] if what.lanes == 4 else what.result
    value_stored: Any = td.vec4[what.result] if what.value_lanes == 4 else what.result
    seen_type: Any = td.Array[what.mask] if what.mask is not None else td.i32
    draws_type: Any = td.Array[td.u32] if dropout else td.i32
    query_size, gradient_size = others * pitch, others * value_pitch
    line_loads = -(-others // threads)
    of_keys, of_values = what.keys, what.values

    @td.func
    def fetch_lines(norms, sums, tile_norms, tile_sums, slot, t, lines, row, queries):
        """The norms and the sums of a tile of queries."""
        for v in td.static_range(line_loads):
            i = t + v * threads
            if i < others:
                norm = td.f32(td.inf)
                total = td.f32(0.0)
                if row + i < queries:
                    norm = _norm_of(norms[lines + row + i])
                    total = sums[lines + row + i]
                tile_norms[slot * others + i] = norm
                tile_sums[slot * others + i] = total

    @td.kernel(checked=False, fastmath=True)
    def derive_keys(
        query: td.Array[dtype], key: td.Array[dtype], value: td.Array[dtype],
        gradient: td.Array[dtype], norms: td.Array[td.f32], sums: td.Array[td.f32],
        mask: seen_type, draws: draws_type,
        out: td.Array[stored], value_out: td.Array[value_stored],
        query_steps: Strides, key_steps: Strides, value_steps: Strides, mask_steps: Strides,
        sizes: td.vec4[td.i32], heads: td.vec2[td.i32], own: td.vec2[td.i32],
        shared: td.vec4[td.i32], reach: td.vec4[td.i32],
        scale: td.f32, factor: td.f32, keep: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        lane = t % LANES
        warp_row = t // LANES * warp_rows
        draw = td.vec4[td.u32](td.u32(0))
        back = td.f32(1.0)
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
            back = td.f32(1.0) / keep if keep > 0.0 else td.f32(0.0)
        queries = sizes.x
        count = sizes.y
        tiles = (count + rows - 1) // rows
        if texts:
            tiles = mask.size // FIELDS
        own_head = td.block_idx.x // tiles
        number = td.block_idx.x % tiles
        row = number * rows
        o2 = own_head % own.y
        o1 = own_head // own.y % own.x
        o0 = own_head // own.y // own.x
        key_at = _place(key_steps, o0, o1, o2)
        value_at = _place(value_steps, o0, o1, o2)
        # The first query and the first key of a text, or of all.
        begin = 0
        key_begin = 0
        if texts:
            row, key_begin, count, begin, queries = tile_at(mask, number)
            key_at += key_begin * key_steps.row
            value_at += key_begin * value_steps.row
        # The tiles of queries that see the block's keys, of each head that shares these.
        first = td.maximum(row - reach.y, 0) // others
        last = td.minimum(td.minimum(row + rows, count) + reach.x, queries)
        last = (last + others - 1) // others
        span = td.maximum(last - first, 0)
        iterations = span * shared.w

        key_tile = td.shared(rows * pitch, words)
        value_tile = td.shared(rows * value_pitch if of_keys else 1, words)
        query_tile = td.shared(2 * query_size, words)
        gradient_tile = td.shared(2 * gradient_size, words)
        tile_norms = td.shared(2 * others, td.f32)
        tile_sums = td.shared(2 * others, td.f32)
        fetch_keys(key, key_tile, 0, t, key_at, key_steps.row, row, count, sizes.z)
        if of_keys:
            fetch_values(value, value_tile, 0, t, value_at, value_steps.row, row, count, sizes.w)
        end_copies()
        key_from = warp_row * pitch + first_piece(lane, pitch)
        value_from = warp_row * value_pitch + first_piece(lane, value_pitch)
        query_from = second_piece(lane, pitch)
        gradient_from = second_piece(lane, value_pitch)
        weighed_from = first_piece(lane, pitch)
        spread_from = first_piece(lane, value_pitch)
        own_keys = td.local(down * deep, words)
        own_values = td.local(down * value_deep, words)
        if held:
            wait_copies(0)
            td.sync_threads()
            read_keys(key_tile, key_from, own_keys)
            if of_keys:
                read_values(value_tile, value_from, own_values)
        scores = td.local(down * across, four)
        slopes = td.local(down * across, four)
        weights = td.local(down * across // 2, words)
        of_key = td.local(2 * down * deep, four)
        of_value = td.local(2 * down * value_deep, four)
        of_norms = td.local(2 * across, td.f32)
        of_sums = td.local(2 * across, td.f32)
        for each in td.static_range(2 * down * deep):
            of_key[each] = four(0)
        for each in td.static_range(2 * down * value_deep):
            of_value[each] = four(0)
        own_row = row + warp_row + lane // 4
        grade = td.f32(1.0) if additive else scale
        slot = 0
        # The step whose tiles are fetched, one before the one that is computed: its head, its tile.
        next_share = 0
        next_step = first
        lines = 0
        mask_at = 0
        start = 0

        for iteration in range(iterations + 1):
            now_lines = lines
            now_mask = mask_at
            now = start
            wait_copies(0)
            td.sync_threads()
            if iteration < iterations:
                s2 = next_share % shared.y
                s1 = next_share // shared.y % shared.x
                s0 = next_share // shared.y // shared.x
                h0 = o0 + s0
                h1 = o1 + s1
                h2 = o2 + s2
                lines = ((h0 * heads.x + h1) * heads.y + h2) * sizes.x + begin
                query_at = _place(query_steps, h0, h1, h2) + begin * query_steps.row
                mask_at = _place(mask_steps, h0, h1, h2)
                start = next_step * others
                fetch_queries(
                    query, query_tile, slot * query_size, t, query_at, query_steps.row, start,
                    queries, sizes.z,
                )  # fmt: skip
                fetch_gradients(
                    gradient, gradient_tile, slot * gradient_size, t, lines * sizes.w, sizes.w,
                    start, queries, sizes.w,
                )  # fmt: skip
                fetch_lines(norms, sums, tile_norms, tile_sums, slot, t, lines, start, queries)
                next_step += 1
                if next_step == last:
                    next_step = first
                    next_share += 1
            end_copies()
            slot = 1 - slot
            if iteration > 0:
                score(
                    own_keys, key_tile, key_from, query_tile, slot * query_size + query_from, scores
                )
                for j in td.static_range(across):
                    for e in td.static_range(2):
                        column = slot * others + (j * 8 + e) + lane % 4 * 2
                        of_norms[2 * j + e] = tile_norms[column]
                        of_sums[2 * j + e] = tile_sums[column]
                if of_keys:
                    derive_weights(
                        own_values, value_tile, value_from, gradient_tile,
                        slot * gradient_size + gradient_from, slopes,
                    )  # fmt: skip
                whole = row + rows - 1 - reach.y <= now and now + others - 1 - reach.x <= row
                if masked or not whole:
                    hide(
                        scores, own_row, now + lane % 4 * 2, queries, count, reach.x, reach.y, mask,
                        now_mask, mask_steps.row, mask_steps.column, scale,
                    )  # fmt: skip
                line = td.u32(reach.z * sizes.x + now_lines + now + lane % 4 * 2)
                derive(
                    scores, slopes, of_norms, of_sums, grade, line, key_begin + own_row, sizes.y,
                    draw, keep, back,
                )  # fmt: skip
                if of_values:
                    pack(scores, weights)
                    add_gradients(
                        weights, gradient_tile, slot * gradient_size + spread_from, of_value
                    )
                if of_keys:
                    pack(slopes, weights)
                    add_queries(weights, query_tile, slot * query_size + weighed_from, of_key)
        wait_copies(0)
        one = td.f32(1.0)
        for i in td.static_range(down):
            r = own_row + i * 16 + lane % 2 * 8
            line_at = own_head * sizes.y + key_begin + r
            key_line = line_at * sizes.z
            value_line = line_at * sizes.w
            if of_keys:
                for v in td.static_range(2 * deep):
                    store(
                        out, key_line, r < count, v * 8 + lane % 4 // 2 * 4, sizes.z,
                        of_key[i * 2 * deep + v], factor, factor,
                    )  # fmt: skip
            if of_values:
                for v in td.static_range(2 * value_deep):
                    store_value(
                        value_out, value_line, r < count, v * 8 + lane % 4 // 2 * 4, sizes.w,
                        of_value[i * 2 * value_deep + v], one, one,
                    )  # fmt: skip

    return derive_keys

"""Attention of 16-bit floats by fragments: online softmax in registers.

A block has a tile of queries, of which each warp has 16 or 32, and goes over the keys, tile by
tile. Scores are sums of a product of fragments; a query's lie in four neighbouring lanes, and as
weights they are the first factor of the product with the values without leaving the registers.
While scores are computed the values of the same keys are on their way to shared memory, and while
these are multiplied the next keys.
(T. Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023.)

A score is a number of powers of two once it is multiplied by the scale: that happens with the
subtraction of the maximum, in one operation. So the scale has to be positive.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention import LN_2, kept, share_of
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
from treadle.lang.decorators import Kernel


class FragmentTile(NamedTuple):
    """What a block computes at once: `queries`, of which a warp has `warp_queries`, and `keys`.
    The words of `held` queries stay in registers."""

    queries: int
    keys: int
    warp_queries: int
    held: bool = False

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.queries // self.warp_queries * LANES

    def bytes(self, query: Rows, value: Rows) -> int:
        """Of shared memory."""
        return 16 * ((self.queries + self.keys) * query.pitch + self.keys * value.pitch)


class FragmentAttending(NamedTuple):
    """What a kernel is made for: how rows of query and key, and of the value, lie; and as in
    `attention.Attending`. `lanes` columns of the result are written at once."""

    query: Rows
    value: Rows
    mask: DType | None
    dropout: bool
    split: bool
    lanes: int


@functools.cache
def fragment_attender(what: FragmentAttending, tile: FragmentTile) -> Kernel:
    """The kernel, with the arguments of `attention.attender`, and elements as the unit of starts
    and steps. Its blocks lie along x: parts of the keys fastest, then tiles of queries from the
    last to the first, and the heads."""
    dtype, split, dropout = what.query.dtype, what.split, what.dropout
    texts = what.mask is TABLE
    masked = what.mask is not None and not texts
    additive = masked and what.mask is not dtypes.bool_
    a_tile, b_tile, warp_rows, held = tile
    threads = tile.threads
    down, across, deep, wide = (
        warp_rows // 16, b_tile // 8, what.query.columns // 16, what.value.columns // 8
    )  # fmt: skip
    pitch, value_pitch = what.query.pitch, what.value.pitch
    fetch_queries = fetcher(what.query, a_tile, threads)
    fetch_keys = fetcher(what.query, b_tile, threads)
    fetch_values = fetcher(what.value, b_tile, threads)
    hide = score_hider(what.mask if masked else None, down, across, False)
    read_rows = row_reader(down, deep, pitch)
    multiply_rows = rows_by_rows(dtype, Extents(down, across, deep), pitch, held)
    add_values = weights_by_rows(dtype, Extents(down, wide, across // 2), value_pitch)
    end_copies, wait_copies = builtins.end_copies, builtins.wait_copies
    pack, share = weight_packer(dtype, down, across), share_of(dtypes.f32, dropout)
    made = td.f32 if split else dtype
    stored: Any = td.vec4[made] if what.lanes == 4 else made
    store = sum_storer(made, what.lanes)
    words, four = td.vec4[td.u32], td.vec4[td.f32]
    seen_type: Any = td.Array[what.mask] if what.mask is not None else td.i32
    draws_type: Any = td.Array[td.u32] if dropout else td.i32

    @td.kernel(checked=False, fastmath=True)
    def attend_fragments(
        query: td.Array[dtype], key: td.Array[dtype], value: td.Array[dtype], mask: seen_type,
        out: td.Array[stored], norms: td.Array[td.f32], starts: td.vec4[td.i32],
        query_steps: td.vec4[td.i32], key_steps: td.vec4[td.i32], value_steps: td.vec4[td.i32],
        mask_steps: td.vec4[td.i32], mask_step: td.i32, sizes: td.vec4[td.i32],
        heads: td.vec4[td.i32], reach: td.vec4[td.i32], scale: td.f32, draws: draws_type,
        keep: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        lane = t % LANES
        warp_row = t // LANES * warp_rows
        draw = td.vec4[td.u32](td.u32(0))
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
        queries = sizes.x
        count = sizes.y
        tiles = (queries + a_tile - 1) // a_tile
        if texts:
            tiles = mask.size // FIELDS
        at = td.block_idx.x
        part = at % heads.z
        at = at // heads.z
        head = at // tiles
        number = tiles - 1 - at % tiles
        row = number * a_tile
        h2 = head % heads.y
        h1 = head // heads.y % heads.x
        h0 = head // heads.y // heads.x
        query_at = starts.x + h0 * query_steps.x + h1 * query_steps.y + h2 * query_steps.z
        key_at = starts.y + h0 * key_steps.x + h1 * key_steps.y + h2 * key_steps.z
        value_at = starts.z + h0 * value_steps.x + h1 * value_steps.y + h2 * value_steps.z
        mask_at = starts.w + h0 * mask_steps.x + h1 * mask_steps.y + h2 * mask_steps.z
        # The first lines in memory and of the draws, and the first key of these.
        line_at = (reach.w + head) * queries
        draw_line = (reach.z + head) * queries
        draw_key = 0
        if texts:
            row, begin, queries, draw_key, count = tile_at(mask, number)
            query_at += begin * query_steps.w
            key_at += draw_key * key_steps.w
            value_at += draw_key * value_steps.w
            line_at += begin
            draw_line += begin
        # The tiles of keys that the block's queries see.
        first = td.maximum(row - reach.x, 0) // b_tile
        last = td.minimum(count, td.minimum(row + a_tile, queries) + reach.y)
        last = (last + b_tile - 1) // b_tile
        if split:
            first = td.maximum(first, part * heads.w)
            last = td.minimum(last, (part + 1) * heads.w)

        query_tile = td.shared(a_tile * pitch, words)
        key_tile = td.shared(b_tile * pitch, words)
        value_tile = td.shared(b_tile * value_pitch, words)
        fetch_queries(query, query_tile, 0, t, query_at, query_steps.w, row, queries, sizes.z)
        if first < last:
            fetch_keys(key, key_tile, 0, t, key_at, key_steps.w, first * b_tile, count, sizes.z)
        end_copies()
        # The pieces that a thread reads for all: of 16 x 16 parts of queries, keys and values.
        query_from = warp_row * pitch + first_piece(lane, pitch)
        key_from = second_piece(lane, pitch)
        value_from = first_piece(lane, value_pitch)
        own = td.local(deep * down, words)
        if held:
            wait_copies(0)
            td.sync_threads()
            read_rows(query_tile, query_from, own)
        scores = td.local(down * across, four)
        weights = td.local(down * across // 2, words)
        sums = td.local(down * wide, four)
        peaks = td.local(down * 2, td.f32)
        totals = td.local(down * 2, td.f32)
        for i in td.static_range(down * 2):
            peaks[i] = td.f32(-td.inf)
            totals[i] = td.f32(0.0)
        for each in td.static_range(down * wide):
            sums[each] = four(0)
        # The first of the rows of a thread; columns of it are 2 (lane % 4) and the next.
        own_row = row + warp_row + lane // 4
        grade = td.f32(1.0) if additive else scale

        for step in range(first, last):
            start = step * b_tile
            # The keys are here, and no thread needs the values of the last step.
            wait_copies(0)
            td.sync_threads()
            fetch_values(value, value_tile, 0, t, value_at, value_steps.w, start, count, sizes.w)
            end_copies()
            multiply_rows(own, query_tile, query_from, key_tile, key_from, scores)
            # Scores of keys that a query must not see are -infinity.
            whole = (
                start + b_tile <= count
                and row + a_tile - 1 - reach.x <= start
                and start + b_tile - 1 - reach.y <= row
            )
            if masked or not whole:
                hide(
                    scores, own_row, start + lane % 4 * 2, queries, count, reach.x, reach.y, mask,
                    mask_at, mask_steps.w, mask_step, scale,
                )  # fmt: skip
            # The values are here, and no thread needs the keys.
            wait_copies(0)
            td.sync_threads()
            if step + 1 < last:
                fetch_keys(key, key_tile, 0, t, key_at, key_steps.w, start + b_tile, count, sizes.z)
            end_copies()
            for i in td.static_range(down):
                near_most = peaks[2 * i]
                far_most = peaks[2 * i + 1]
                for j in td.static_range(across):
                    found = scores[i * across + j]
                    near_most = td.maximum(near_most, td.maximum(found.x, found.y))
                    far_most = td.maximum(far_most, td.maximum(found.z, found.w))
                near_most = td.maximum(near_most, td.shuffle_xor(near_most, 1))
                far_most = td.maximum(far_most, td.shuffle_xor(far_most, 1))
                near_most = td.maximum(near_most, td.shuffle_xor(near_most, 2))
                far_most = td.maximum(far_most, td.shuffle_xor(far_most, 2))
                # Without any score so far the peak is -infinity; -inf - -inf would be NaN.
                near_base = near_most if near_most > td.f32(-td.inf) else td.f32(0.0)
                far_base = far_most if far_most > td.f32(-td.inf) else td.f32(0.0)
                near_base = near_base * grade
                far_base = far_base * grade
                near_shrink = td.exp2(td.fma(peaks[2 * i], grade, -near_base))
                far_shrink = td.exp2(td.fma(peaks[2 * i + 1], grade, -far_base))
                peaks[2 * i] = near_most
                peaks[2 * i + 1] = far_most
                for v in td.static_range(wide):
                    found = sums[i * wide + v]
                    sums[i * wide + v] = four(
                        found.x * near_shrink, found.y * near_shrink,
                        found.z * far_shrink, found.w * far_shrink,
                    )  # fmt: skip
                near_total = totals[2 * i] * near_shrink
                far_total = totals[2 * i + 1] * far_shrink
                for j in td.static_range(across):
                    found = scores[i * across + j]
                    weight = four(
                        td.exp2(td.fma(found.x, grade, -near_base)),
                        td.exp2(td.fma(found.y, grade, -near_base)),
                        td.exp2(td.fma(found.z, grade, -far_base)),
                        td.exp2(td.fma(found.w, grade, -far_base)),
                    )
                    near_total += weight.x + weight.y
                    far_total += weight.z + weight.w
                    scores[i * across + j] = weight
                totals[2 * i] = near_total
                totals[2 * i + 1] = far_total
                if dropout:
                    near_line = td.u32(draw_line + own_row + i * 16)
                    far_line = near_line + td.u32(8)
                    for j in td.static_range(across):
                        column = draw_key + start + j * 8 + lane % 4 * 2
                        weight = scores[i * across + j]
                        if not kept(near_line, sizes.y, column, draw, keep):
                            weight.x = td.f32(0.0)
                        if not kept(near_line, sizes.y, column + 1, draw, keep):
                            weight.y = td.f32(0.0)
                        if not kept(far_line, sizes.y, column, draw, keep):
                            weight.z = td.f32(0.0)
                        if not kept(far_line, sizes.y, column + 1, draw, keep):
                            weight.w = td.f32(0.0)
                        scores[i * across + j] = weight
            pack(scores, weights)
            add_values(weights, value_tile, value_from, sums)
        wait_copies(0)
        for i in td.static_range(down):
            factors = td.local(2, td.f32)
            for h in td.static_range(2):
                total = totals[2 * i + h]
                total += td.shuffle_xor(total, 1)
                total += td.shuffle_xor(total, 2)
                r = own_row + (i * 16 + h * 8)
                line = line_at + r
                factors[h] = td.f32(1.0)
                if not split:
                    factors[h] = share(total, keep)
                if r < queries and lane % 4 == 0:
                    if split:
                        norms[2 * (line * heads.z + part)] = peaks[2 * i + h] * grade
                        norms[2 * (line * heads.z + part) + 1] = total
                    else:
                        norms[line] = peaks[2 * i + h] * grade * td.f32(LN_2) + td.log(total)
            # Of a pair of lanes the second one writes the row 8 further.
            r = own_row + i * 16 + lane % 2 * 8
            line = line_at + r
            if split:
                line = line * heads.z + part
            for v in td.static_range(wide):
                store(
                    out, line * sizes.w, r < queries, v * 8 + lane % 4 // 2 * 4, sizes.w,
                    sums[i * wide + v], factors[0], factors[1],
                )  # fmt: skip

    return attend_fragments

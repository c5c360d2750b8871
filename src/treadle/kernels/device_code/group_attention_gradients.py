"""The derivative of attention of 16-bit floats by groups of 128 threads: Hopper's instructions.

As in `attention_gradients` two kernels, each with every sum in the registers of one block: one over
tiles of queries, for the gradient of the query, and one over tiles of keys, for those of key and
value. A group has 64 of the block's rows. It makes weights and slopes of scores from two products
of tiles (`ir.stages`); both are held factors of the products that follow. These go on while the
scores of the next tile are computed.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.ir.stages import GROUP, INNER, LINE, LINE_BYTES, ROWS
from treadle.kernels.device_code.attention import LOG2_E
from treadle.kernels.device_code.attention_tiles import sum_storer, weight_packer
from treadle.kernels.device_code.group_attention import (
    Heads,
    Placed,
    box_loader,
    lines_of,
    window_hider,
)
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

_LANES = 32
_PAIR = 16  # bytes of the norms and sums of two queries


class GroupGradientTile(NamedTuple):
    """What a block computes at once: `rows` of the operand whose gradient it computes, 64 of them a
    group, and `others` of those that it goes over, of which `stages` tiles are on their way.
    `copiers` are those of `prepare_stages`."""

    rows: int
    others: int
    stages: int
    copiers: int = 0

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows // ROWS * GROUP

    def bytes(self, depth: int, width: int) -> int:
        """Of shared memory, for so many columns of queries and values."""
        lines = (self.rows + self.stages * self.others) * (lines_of(depth) + lines_of(width))
        return lines * LINE_BYTES + 16 * (1 + self.stages)

    def key_bytes(self, depth: int, width: int) -> int:
        """The same of the kernel over keys."""
        pairs = self.threads // _LANES * self.others // 2
        return self.bytes(depth, width) + pairs * _PAIR


class GroupDeriving(NamedTuple):
    """What a kernel is made for: how many lines of 64 elements a row of query and key has, and one
    of value and gradient; the dtype of the results, of which so many columns are written at once.
    A kernel over keys computes the gradients of `keys`, of `values` or both, for which heads
    perhaps share keys (`shared`)."""

    dtype: DType
    depth: int
    width: int
    result: DType
    lanes: int
    value_lanes: int
    keys: bool = True
    values: bool = True
    shared: bool = True


@td.func
def _norm_of(norm):
    """A stored logarithm in powers of two; infinite where a query sees nothing, so that its weights
    are zeros."""
    return td.f32(td.inf) if norm == td.f32(-td.inf) else norm * td.f32(LOG2_E)


@td.func
def head_of(number, tiles, heads: Heads):
    """The head and the tile of a block: of those heads that go together first."""
    many = heads.first * heads.second * heads.third
    section = number // (heads.together * tiles)
    at = number - section * heads.together * tiles
    high = td.minimum(heads.together, many - section * heads.together)
    return section * heads.together + at % high, at // high


@functools.cache
def group_query_gradient(what: GroupDeriving, tile: GroupGradientTile) -> Kernel:
    """The kernel for the gradient of the query. Its blocks lie along x, one for each tile of
    queries of each head.

    The arguments say where query, key, value and gradient are, how many queries, keys, columns of
    query and of value there are, and the axes of heads. `norms` and `sums` are those of each query.
    A query sees keys from `left` places before its own to `right` places after it. `scale` is that
    of scores in powers of two, `factor` that of the results."""
    dtype, deep, wide, result, lanes = what[:5]
    rows, others, stages, copiers = tile
    across, along = others // 8, deep * LINE // 8
    own_part, part_size = rows * LINE, others * LINE
    key_size, value_size = deep * part_size, wide * part_size
    prepare, wait, release = builtins.prepare_stages, builtins.wait_stage, builtins.release_stage
    settle = builtins.settle_products
    begin, multiply, add_held = (
        builtins.begin_product, builtins.multiply_tiles, builtins.multiply_held
    )  # fmt: skip
    load_queries = box_loader(deep, rows, rows * (deep + wide))
    load_gradients = box_loader(wide, rows, 0)
    load_keys = box_loader(deep, others, others * (deep + wide))
    load_values = box_loader(wide, others, 0)
    hide = window_hider(across)
    pack = weight_packer(dtype, 1, across)
    store = sum_storer(result, lanes)
    stored: Any = td.vec4[result] if lanes == 4 else result
    words, four = td.vec4[td.u32], td.vec4[td.f32]

    @td.kernel(checked=False, fastmath=True)
    def derive_query_groups(
        query: td.Array[dtype], key: td.Array[dtype], value: td.Array[dtype],
        gradient: td.Array[dtype], norms: td.Array[td.f32], sums: td.Array[td.f32],
        out: td.Array[stored],
        query_at: Placed, key_at: Placed, value_at: Placed, gradient_at: Placed,
        queries: td.i32, count: td.i32, depth: td.i32, width: td.i32, heads: Heads,
        left: td.i32, right: td.i32, scale: td.f32, factor: td.f32,
    ):  # fmt: skip
        query_tile = td.shared(deep * own_part, dtype)
        gradient_tile = td.shared(wide * own_part, dtype)
        key_tiles = td.shared(stages * key_size, dtype)
        value_tiles = td.shared(stages * value_size, dtype)
        # The stage of the block's rows, then those of keys and values.
        barriers = td.shared(2 * (1 + stages), td.u64)
        t = td.thread_idx.x
        group = td.shuffle(t // GROUP, 0)  # uniform, as assemblers see
        lane = t % _LANES
        tiles = (queries + rows - 1) // rows
        head, row = head_of(td.block_idx.x, tiles, heads)
        row = (tiles - 1 - row) * rows
        h2 = head % heads.third
        h1 = head // heads.third % heads.second
        h0 = head // heads.third // heads.second
        lines = head * queries
        # The tiles of keys that the block's queries see.
        first = td.maximum(row - left, 0) // others
        last = td.minimum(count, td.minimum(row + rows, queries) + right)
        last = (last + others - 1) // others

        prepare(barriers, 1 + stages, 1, 1, copiers)
        load_queries(
            query_tile, 0, barriers, 0, 1, query, query_at, depth, queries, heads, row, h0, h1, h2,
        )  # fmt: skip
        load_gradients(
            gradient_tile, 0, barriers, 0, 1, gradient, gradient_at, width, queries, heads, row, h0,
            h1, h2,
        )  # fmt: skip
        coming = first
        coming_stage = 0
        coming_parity = 1
        for _ in range(stages):
            if coming < last:
                load_keys(
                    key_tiles, coming_stage * key_size, barriers, 1 + coming_stage, coming_parity,
                    key, key_at, depth, count, heads, coming * others, h0, h1, h2,
                )  # fmt: skip
                load_values(
                    value_tiles, coming_stage * value_size, barriers, 1 + coming_stage,
                    coming_parity, value, value_at, width, count, heads, coming * others, h0, h1,
                    h2,
                )  # fmt: skip
                coming += 1
                coming_stage += 1
                if coming_stage == stages:
                    coming_stage = 0
                    coming_parity = 0
        scores = td.local(across, four)
        slopes = td.local(across, four)
        held = td.local(others // INNER, words)
        found = td.local(along, four)
        of_norms = td.local(2, td.f32)
        of_sums = td.local(2, td.f32)
        for v in td.static_range(along):
            found[v] = four(0)
        own = group * (ROWS * LINE)
        # The first row of a group, and of a thread; columns of it are 2 (lane % 4) and the next.
        group_row = row + group * ROWS
        own_row = group_row + t % GROUP // _LANES * 16 + lane // 4
        for h in td.static_range(2):
            of_norms[h] = td.f32(td.inf)
            of_sums[h] = td.f32(0.0)
            if own_row + h * 8 < queries:
                of_norms[h] = _norm_of(norms[lines + own_row + h * 8])
                of_sums[h] = sums[lines + own_row + h * 8]

        wait(barriers, 0, 0)
        stage = 0
        parity = 0
        before = 0
        before_parity = 0
        for step in range(first, last):
            start = step * others
            wait(barriers, 1 + stage, parity)
            key_from = stage * key_size
            value_from = stage * value_size
            begin(scores, query_tile, own, key_tiles, key_from, True, True)
            for part in td.static_range(1, deep):
                multiply(
                    scores, query_tile, own + part * own_part, key_tiles,
                    key_from + part * part_size, True, True,
                )  # fmt: skip
            begin(slopes, gradient_tile, own, value_tiles, value_from, True, True)
            for part in td.static_range(1, wide):
                multiply(
                    slopes, gradient_tile, own + part * own_part, value_tiles,
                    value_from + part * part_size, True, True,
                )  # fmt: skip
            settle(wide)
            # The scores are there, and the last step's products are done.
            if step > first:
                release(barriers, 1 + before)
                if step - 1 + stages < last:
                    load_keys(
                        key_tiles, before * key_size, barriers, 1 + before, before_parity, key,
                        key_at, depth, count, heads, (step - 1 + stages) * others, h0, h1, h2,
                    )  # fmt: skip
                    load_values(
                        value_tiles, before * value_size, barriers, 1 + before, before_parity,
                        value, value_at, width, count, heads, (step - 1 + stages) * others, h0, h1,
                        h2,
                    )  # fmt: skip
            whole = (
                start + others <= count
                and group_row + ROWS - 1 - left <= start
                and start + others - 1 - right <= group_row
            )
            if not whole:
                hide(scores, start + lane % 4 * 2, own_row - left, own_row + right, count)
            for j in td.static_range(across):
                score = scores[j]
                scores[j] = four(
                    td.exp2(td.fma(score.x, scale, -of_norms[0])),
                    td.exp2(td.fma(score.y, scale, -of_norms[0])),
                    td.exp2(td.fma(score.z, scale, -of_norms[1])),
                    td.exp2(td.fma(score.w, scale, -of_norms[1])),
                )
            settle(0)
            for j in td.static_range(across):
                weight = scores[j]
                slope = slopes[j]
                slopes[j] = four(
                    weight.x * (slope.x - of_sums[0]), weight.y * (slope.y - of_sums[0]),
                    weight.z * (slope.z - of_sums[1]), weight.w * (slope.w - of_sums[1]),
                )  # fmt: skip
            pack(slopes, held)
            add_held(found, held, key_tiles, key_from, False, others)
            before = stage
            before_parity = parity
            stage += 1
            if stage == stages:
                stage = 0
                parity = 1 - parity
        settle(0)
        # Of a pair of lanes the second one writes the row 8 further.
        r = own_row + lane % 2 * 8
        for v in td.static_range(along):
            store(
                out, (lines + r) * depth, r < queries, v * 8 + lane % 4 // 2 * 4, depth, found[v],
                factor, factor,
            )  # fmt: skip

    return derive_query_groups


@functools.cache
def group_key_gradients(what: GroupDeriving, tile: GroupGradientTile) -> Kernel:
    """The kernel for the gradients of key and value. Its blocks lie along x, one for each tile of
    keys of each head that has keys of its own, which `own_heads` are. A block goes over the queries
    of the heads that share the keys, of which the axes are `sharers`. The other arguments are those
    of `group_query_gradient`."""
    dtype, deep, wide, result, lanes, value_lanes, of_keys, of_values, shared = what
    rows, others, stages, copiers = tile
    warps, pairs = tile.threads // _LANES, others // 2
    across, loads = others // 8, -(-pairs // _LANES)
    along, value_along = deep * LINE // 8, wide * LINE // 8
    own_part, part_size = rows * LINE, others * LINE
    query_size, gradient_size = deep * part_size, wide * part_size
    prepare, wait, release = builtins.prepare_stages, builtins.wait_stage, builtins.release_stage
    settle = builtins.settle_products
    begin, multiply, add_held = (
        builtins.begin_product, builtins.multiply_tiles, builtins.multiply_held
    )  # fmt: skip
    load_keys = box_loader(deep, rows, rows * (deep + (wide if of_keys else 0)))
    load_values = box_loader(wide, rows, 0)
    load_queries = box_loader(deep, others, others * (deep + wide))
    load_gradients = box_loader(wide, others, 0)
    hide = window_hider(across)
    pack = weight_packer(dtype, 1, across)
    store, store_value = sum_storer(result, lanes), sum_storer(result, value_lanes)
    stored: Any = td.vec4[result] if lanes == 4 else result
    value_stored: Any = td.vec4[result] if value_lanes == 4 else result
    words, four = td.vec4[td.u32], td.vec4[td.f32]
    later = wide if of_keys else 0  # multiplications behind those of the scores

    @td.func
    def sharing(share, sharers: Heads, o0, o1, o2):
        """The places of one of the heads that share keys."""
        if shared:
            o0 += share // sharers.third // sharers.second
            o1 += share // sharers.third % sharers.second
            o2 += share % sharers.third
        return o0, o1, o2

    @td.func
    def lines_of_pair(norms, sums, lines, at, queries):
        """Norms and sums of two neighbouring queries, as they are in memory."""
        near = td.f32(-td.inf)
        far = td.f32(-td.inf)
        near_sum = td.f32(0.0)
        far_sum = td.f32(0.0)
        if at < queries:
            near = norms[lines + at]
            near_sum = sums[lines + at]
        if at + 1 < queries:
            far = norms[lines + at + 1]
            far_sum = sums[lines + at + 1]
        return four(near, far, near_sum, far_sum)

    @td.kernel(checked=False, fastmath=True)
    def derive_keys_groups(
        query: td.Array[dtype], key: td.Array[dtype], value: td.Array[dtype],
        gradient: td.Array[dtype], norms: td.Array[td.f32], sums: td.Array[td.f32],
        out: td.Array[stored], value_out: td.Array[value_stored],
        query_at: Placed, key_at: Placed, value_at: Placed, gradient_at: Placed,
        queries: td.i32, count: td.i32, depth: td.i32, width: td.i32, heads: Heads,
        own_heads: Heads, sharers: Heads,
        left: td.i32, right: td.i32, scale: td.f32, factor: td.f32,
    ):  # fmt: skip
        key_tile = td.shared(deep * own_part, dtype)
        value_tile = td.shared(wide * own_part if of_keys else 64, dtype)
        query_tiles = td.shared(stages * query_size, dtype)
        gradient_tiles = td.shared(stages * gradient_size, dtype)
        of_pairs = td.shared(warps * pairs, four)
        # The stage of the block's rows, then those of queries and gradients.
        barriers = td.shared(2 * (1 + stages), td.u64)
        t = td.thread_idx.x
        group = td.shuffle(t // GROUP, 0)  # uniform, as assemblers see
        lane = t % _LANES
        tiles = (count + rows - 1) // rows
        own_head, row = head_of(td.block_idx.x, tiles, own_heads)
        row = row * rows
        o2 = own_head % own_heads.third
        o1 = own_head // own_heads.third % own_heads.second
        o0 = own_head // own_heads.third // own_heads.second
        # The tiles of queries that see the block's keys, of each head that shares these.
        first = td.maximum(row - right, 0) // others
        last = td.minimum(td.minimum(row + rows, count) + left, queries)
        last = (last + others - 1) // others
        span = td.maximum(last - first, 0)
        steps = span * sharers.first * sharers.second * sharers.third

        prepare(barriers, 1 + stages, 1, 1, copiers)
        load_keys(
            key_tile, 0, barriers, 0, 1, key, key_at, depth, count, heads, row, o0, o1, o2,
        )  # fmt: skip
        if of_keys:
            load_values(
                value_tile, 0, barriers, 0, 1, value, value_at, width, count, heads, row, o0, o1,
                o2,
            )  # fmt: skip
        # What comes next: the head among those that share the keys, and the tile of its queries.
        coming = 0
        coming_share = 0
        coming_tile = first
        coming_stage = 0
        coming_parity = 1
        for _ in range(stages):
            if coming < steps:
                c0, c1, c2 = sharing(coming_share, sharers, o0, o1, o2)
                load_queries(
                    query_tiles, coming_stage * query_size, barriers, 1 + coming_stage,
                    coming_parity, query, query_at, depth, queries, heads, coming_tile * others, c0,
                    c1, c2,
                )  # fmt: skip
                load_gradients(
                    gradient_tiles, coming_stage * gradient_size, barriers, 1 + coming_stage,
                    coming_parity, gradient, gradient_at, width, queries, heads, coming_tile *
                    others, c0, c1, c2,
                )  # fmt: skip
                coming += 1
                coming_tile += 1
                if shared and coming_tile == last:
                    coming_tile = first
                    coming_share += 1
                coming_stage += 1
                if coming_stage == stages:
                    coming_stage = 0
                    coming_parity = 0
        scores = td.local(across, four)
        slopes = td.local(across, four)
        weights = td.local(others // INNER, words)
        held = td.local(others // INNER, words)
        of_key = td.local(along, four)
        of_value = td.local(value_along, four)
        for v in td.static_range(along):
            of_key[v] = four(0)
        for v in td.static_range(value_along):
            of_value[v] = four(0)
        own = group * (ROWS * LINE)
        group_row = row + group * ROWS
        own_row = group_row + t % GROUP // _LANES * 16 + lane // 4
        pair_at = t // _LANES * pairs

        wait(barriers, 0, 0)
        stage = 0
        parity = 0
        before = 0
        before_parity = 0
        share = 0
        tile_at = first
        coming_pairs = td.local(loads, four)
        s0, s1, s2 = sharing(0, sharers, o0, o1, o2)
        lines = ((s0 * heads.second + s1) * heads.third + s2) * queries
        for v in td.static_range(loads):
            coming_pairs[v] = lines_of_pair(
                norms, sums, lines, first * others + (v * _LANES + lane) * 2, queries
            )
        for step in range(steps):
            start = tile_at * others
            wait(barriers, 1 + stage, parity)
            if of_keys and of_values:
                settle(1)  # the weights' registers are needed
            query_from = stage * query_size
            gradient_from = stage * gradient_size
            begin(scores, key_tile, own, query_tiles, query_from, True, True)
            for part in td.static_range(1, deep):
                multiply(
                    scores, key_tile, own + part * own_part, query_tiles,
                    query_from + part * part_size, True, True,
                )  # fmt: skip
            if of_keys:
                begin(slopes, value_tile, own, gradient_tiles, gradient_from, True, True)
                for part in td.static_range(1, wide):
                    multiply(
                        slopes, value_tile, own + part * own_part, gradient_tiles,
                        gradient_from + part * part_size, True, True,
                    )  # fmt: skip
            # Each warp has norms and sums of its own. Those of the next step are asked for here.
            td.sync_subgroup()
            for v in td.static_range(loads):
                if v * _LANES + lane < pairs:
                    pair = coming_pairs[v]
                    of_pairs[pair_at + v * _LANES + lane] = four(
                        _norm_of(pair.x), _norm_of(pair.y), pair.z, pair.w
                    )
            td.sync_subgroup()
            tile_at += 1
            if shared and tile_at == last:
                tile_at = first
                share += 1
            if step + 1 < steps:
                s0, s1, s2 = sharing(share, sharers, o0, o1, o2)
                lines = ((s0 * heads.second + s1) * heads.third + s2) * queries
                for v in td.static_range(loads):
                    coming_pairs[v] = lines_of_pair(
                        norms, sums, lines, tile_at * others + (v * _LANES + lane) * 2, queries
                    )
            settle(later)
            # The scores are there, and the last step's products are done.
            if step > 0:
                release(barriers, 1 + before)
                if coming < steps:
                    c0, c1, c2 = sharing(coming_share, sharers, o0, o1, o2)
                    load_queries(
                        query_tiles, before * query_size, barriers, 1 + before, before_parity,
                        query, query_at, depth, queries, heads, coming_tile * others, c0, c1, c2,
                    )  # fmt: skip
                    load_gradients(
                        gradient_tiles, before * gradient_size, barriers, 1 + before, before_parity,
                        gradient, gradient_at, width, queries, heads, coming_tile * others, c0, c1,
                        c2,
                    )  # fmt: skip
                    coming += 1
                    coming_tile += 1
                    if shared and coming_tile == last:
                        coming_tile = first
                        coming_share += 1
            whole = group_row + ROWS - 1 - right <= start and start + others - 1 - left <= group_row
            if not whole:
                hide(scores, start + lane % 4 * 2, own_row - right, own_row + left, queries)
            for j in td.static_range(across):
                score = scores[j]
                pair = of_pairs[pair_at + j * 4 + lane % 4]
                scores[j] = four(
                    td.exp2(td.fma(score.x, scale, -pair.x)),
                    td.exp2(td.fma(score.y, scale, -pair.y)),
                    td.exp2(td.fma(score.z, scale, -pair.x)),
                    td.exp2(td.fma(score.w, scale, -pair.y)),
                )
            if of_values:
                pack(scores, weights)
                add_held(of_value, weights, gradient_tiles, gradient_from, False, others)
            if of_keys:
                settle(1 if of_values else 0)
                for j in td.static_range(across):
                    weight = scores[j]
                    slope = slopes[j]
                    pair = of_pairs[pair_at + j * 4 + lane % 4]
                    slopes[j] = four(
                        weight.x * (slope.x - pair.z), weight.y * (slope.y - pair.w),
                        weight.z * (slope.z - pair.z), weight.w * (slope.w - pair.w),
                    )  # fmt: skip
                pack(slopes, held)
                add_held(of_key, held, query_tiles, query_from, False, others)
            before = stage
            before_parity = parity
            stage += 1
            if stage == stages:
                stage = 0
                parity = 1 - parity
        settle(0)
        one = td.f32(1.0)
        # Of a pair of lanes the second one writes the row 8 further.
        r = own_row + lane % 2 * 8
        line = own_head * count + r
        if of_keys:
            for v in td.static_range(along):
                store(
                    out, line * depth, r < count, v * 8 + lane % 4 // 2 * 4, depth, of_key[v],
                    factor, factor,
                )  # fmt: skip
        if of_values:
            for v in td.static_range(value_along):
                store_value(
                    value_out, line * width, r < count, v * 8 + lane % 4 // 2 * 4, width,
                    of_value[v], one, one,
                )  # fmt: skip

    return derive_keys_groups

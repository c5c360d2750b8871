"""Attention of 16-bit floats by groups of 128 threads: Hopper's instructions.

A block has a tile of queries, 64 of them a group, and goes over the keys, tile by tile. Boxes of
queries, keys and values come to shared memory in stages (`ir.stages` has what these steps are).
A group's scores are a product of two tiles; as weights they are the held factor of the product
with the values, without leaving the registers. While the weights of one tile of keys are computed,
the values of the tile before are multiplied: its scores were asked for first.
(J. Shah et al., "FlashAttention-3: fast and accurate attention with asynchrony and low-precision",
2024.)

A block stays for several tiles of queries. Keys and values of the next one are on their way while
it ends. First come the queries that see most keys, of some heads at a time, whose keys and values
fit the card's second cache together.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.ir.stages import GROUP, INNER, LINE, LINE_BYTES, ROWS
from treadle.kernels.device_code.attention import LN_2, share_of
from treadle.kernels.device_code.attention_tiles import sum_storer, weight_packer
from treadle.lang import builtins
from treadle.lang.decorators import Function, Kernel

_LANES = 32


class GroupAttentionTile(NamedTuple):
    """What a block computes at once: `queries`, 64 of them a group, and `keys`, of which `stages`
    tiles are on their way. Groups may begin their products one after the other (`ordered`): then
    one computes weights while the next one multiplies. `copiers` are those of `prepare_stages`."""

    queries: int
    keys: int
    stages: int
    ordered: bool = False
    copiers: int = 0

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.queries // ROWS * GROUP

    def bytes(self, depth: int, width: int) -> int:
        """Of shared memory, for so many columns of queries and values."""
        deep, wide = lines_of(depth), lines_of(width)
        rows = self.queries * deep + self.stages * self.keys * (deep + wide)
        return rows * LINE_BYTES + 16 * (1 + 2 * self.stages + self.threads // _LANES)


class GroupAttending(NamedTuple):
    """What a kernel is made for: how many lines of 64 elements a row of query and key has, and one
    of the value; `lanes` columns of the result are written at once."""

    dtype: DType
    depth: int
    width: int
    lanes: int


def lines_of(columns: int) -> int:
    """The lines of 64 elements of so many columns."""
    return -(-columns // LINE)


@td.struct
class Placed:
    """Where an operand is: its first element, and the distances of neighbours along three axes of
    heads, and of rows."""

    start: td.i32
    step0: td.i32
    step1: td.i32
    step2: td.i32
    row: td.i32


@td.struct
class Heads:
    """The extents of the axes of heads, and how many heads go together."""

    first: td.i32
    second: td.i32
    third: td.i32
    together: td.i32


@functools.cache
def box_loader(parts: int, lines: int, claimed: int | None = None) -> Function:
    """A function that fills a stage with `lines` rows of a head from `row` on, of `parts` lines of
    64 elements each, of an operand with so many `columns` and `rows`. It claims the stage for these
    or for `claimed` lines in all (0: not at all). Along an axis without a step all heads are the
    first."""
    claim, copy = builtins.claim_stage, builtins.copy_tile
    claimed = parts * lines if claimed is None else claimed

    @td.func
    def load(
        tiles, to, barriers, stage, parity, x, placed: Placed, columns, rows, heads: Heads, row,
        h0, h1, h2,
    ):  # fmt: skip
        if claimed:
            claim(barriers, stage, parity, claimed * LINE_BYTES)
        for part in td.static_range(parts):
            copy(
                tiles, to + part * (lines * LINE), barriers, stage, x, placed.start,
                (columns, rows, heads.third, heads.second, heads.first),
                (placed.row, placed.step2, placed.step1, placed.step0),
                (part * LINE, row, td.where(placed.step2 == 0, 0, h2),
                 td.where(placed.step1 == 0, 0, h1), td.where(placed.step0 == 0, 0, h0)), lines,
            )  # fmt: skip

    return load


@functools.cache
def window_hider(across: int) -> Function:
    """A function that makes scores -infinity outside of a window: those of a thread's first row
    whose columns are before `low`, after `high` or not below `count`, and those of its other row,
    whose window lies 8 columns further. `column` is the thread's first."""
    four = td.vec4[td.f32]

    @td.func
    def hide(scores, column, low, high, count):
        # Counted from `column` on, columns are known to the compiler.
        near_first = low - column
        far_first = near_first + 8
        near_end = td.minimum(high + 1, count) - column
        far_end = td.minimum(high + 9, count) - column
        hidden = td.f32(-td.inf)
        for j in td.static_range(across):
            found = scores[j]
            one = j * 8
            other = j * 8 + 1
            scores[j] = four(
                found.x if near_first <= one and one < near_end else hidden,
                found.y if near_first <= other and other < near_end else hidden,
                found.z if far_first <= one and one < far_end else hidden,
                found.w if far_first <= other and other < far_end else hidden,
            )

    return hide


@td.struct
class Order:
    """How a launch's tiles of queries are distributed to its blocks. Rounds of tiles that are
    `paired`, one that sees many keys and one that sees few, give all blocks the same; there are
    `units` of such pairs, or of single tiles where all see as many. What is left over, and the
    heads from `rest` on, are sorted: forth and back along these, first the longest."""

    paired: td.i32
    units: td.i32
    rest: td.i32
    heads: td.i32


@td.func
def item_of(iteration, block, blocks):
    """The number of a block's tile: forth and back, so that none has the longest of each
    iteration."""
    return iteration * blocks + (blocks - 1 - block if iteration % 2 == 1 else block)


@td.func
def rounds_of(order: Order, block, blocks):
    """How many units a block has."""
    whole = order.units // blocks
    return whole + (1 if whole * blocks + block < order.units else 0)


@td.func
def iterations_of(order: Order, tiles, block, blocks):
    """How many tiles a block has: units, and tiles of the sorted rest. The first places of the
    rest are the units of the last, incomplete round."""
    over = order.units % blocks
    items = over + (order.heads - order.rest) * tiles
    whole = items // blocks
    sorted_ones = whole + (1 if item_of(whole, block, blocks) < items else 0)
    return order.paired * rounds_of(order, block, blocks) + sorted_ones - (1 if block < over else 0)


@td.func
def place_of(iteration, order: Order, tiles, block, blocks):
    """The head and the number of the tile that a block computes in an iteration."""
    in_units = order.paired * rounds_of(order, block, blocks)
    unit = iteration // order.paired * blocks + block
    second = iteration % order.paired
    head = unit // tiles * order.paired + second
    at = unit % tiles
    tile = at if second == 1 else tiles - 1 - at
    if iteration >= in_units:
        over = order.units % blocks
        turn = iteration - in_units + (1 if block < over else 0)
        number = item_of(turn, block, blocks) - over
        many = order.heads - order.rest
        head = order.rest + number % many
        tile = tiles - 1 - number // many
    return head, tile


@functools.cache
def group_attender(what: GroupAttending, tile: GroupAttentionTile) -> Kernel:
    """The kernel. Its grid is along x, of any number of blocks.

    The arguments say where query, key and value are, how many queries, keys, columns of query and
    of value there are, and the axes of heads. A query sees keys from `left`
    places before its own to `right` places after it. `before` are the heads of the result that
    were computed by other launches, `scale` is that of scores in powers of two, and positive."""
    dtype, deep, wide, lanes = what
    a_tile, b_tile, stages, ordered, copiers = tile
    warps, first_turn = tile.threads // _LANES, 1 + 2 * stages
    across, along = b_tile // 8, wide * LINE // 8
    query_part, key_part = a_tile * LINE, b_tile * LINE
    key_size, value_size = deep * key_part, wide * key_part
    prepare, wait, release = builtins.prepare_stages, builtins.wait_stage, builtins.release_stage
    hand = builtins.hand_stage
    settle, begin, multiply, add_held = (
        builtins.settle_products, builtins.begin_product, builtins.multiply_tiles,
        builtins.multiply_held,
    )  # fmt: skip
    load_queries = box_loader(deep, a_tile)
    load_keys, load_values = box_loader(deep, b_tile), box_loader(wide, b_tile)
    hide = window_hider(across)
    pack = weight_packer(dtype, 1, across)
    store = sum_storer(dtype, lanes)
    share = share_of(td.f32, False)
    stored: Any = td.vec4[dtype] if lanes == 4 else dtype
    words, four = td.vec4[td.u32], td.vec4[td.f32]

    @td.func
    def tile_of(iteration, order: Order, block, blocks, queries, count, left, right):
        """The head of a block's tile of queries, its first row, and the tiles of keys that it sees:
        one at least, of which all may be hidden."""
        head, tile = place_of(iteration, order, (queries + a_tile - 1) // a_tile, block, blocks)
        row = tile * a_tile
        first = td.maximum(row - left, 0) // b_tile
        last = td.minimum(count, td.minimum(row + a_tile, queries) + right)
        last = td.maximum((last + b_tile - 1) // b_tile, first + 1)
        return head, row, first, last

    @td.func
    def weigh(scores, peaks, totals, shrinks, scale):
        """Make weights of scores; by what sums so far are to be multiplied."""
        for h in td.static_range(2):
            most = peaks[h]
            for j in td.static_range(across):
                found = scores[j]
                one = found.x if h == 0 else found.z
                other = found.y if h == 0 else found.w
                most = td.maximum(most, td.maximum(one, other))
            most = td.maximum(most, td.shuffle_xor(most, 1))
            most = td.maximum(most, td.shuffle_xor(most, 2))
            # Without any score so far the peak is -infinity; -inf - -inf would be NaN.
            base = most if most > td.f32(-td.inf) else td.f32(0.0)
            base = base * scale
            shrinks[h] = td.exp2(td.fma(peaks[h], scale, -base))
            peaks[h] = most
            total = totals[h] * shrinks[h]
            for j in td.static_range(across):
                found = scores[j]
                if h == 0:
                    one = td.exp2(td.fma(found.x, scale, -base))
                    other = td.exp2(td.fma(found.y, scale, -base))
                    scores[j] = four(one, other, found.z, found.w)
                else:
                    one = td.exp2(td.fma(found.z, scale, -base))
                    other = td.exp2(td.fma(found.w, scale, -base))
                    scores[j] = four(found.x, found.y, one, other)
                total += one + other
            totals[h] = total

    # Steps are counted from `stages` on: those before are the fillings of stages that were free.
    @td.func
    def stage_of(step):
        return td.i32(td.u32(step) % td.u32(stages))

    @td.func
    def parity_of(step):
        return td.i32((td.u32(step) // td.u32(stages) + td.u32(1)) & td.u32(1))

    @td.func
    def load_next(
        key_tiles, value_tiles, barriers, key, value, done, key_at: Placed, value_at: Placed,
        queries, count, depth, width, heads: Heads, order: Order, left, right, block, blocks,
        iterations, iteration, step, last, h0, h1, h2, line, v0, v1, v2,
    ):  # fmt: skip
        """Fill the stage of values of two steps ago with those of the keys that were loaded before,
        if any (`line`), and that of keys of one step ago with the next ones. What is loaded after
        that."""
        if line >= 0:
            load_values(
                value_tiles, stage_of(done - 2) * value_size, barriers,
                1 + stages + stage_of(done - 2), parity_of(done - 2), value, value_at, width,
                count, heads, line, v0, v1, v2,
            )  # fmt: skip
            line = -1
        if iteration < iterations:
            line = step * b_tile
            v0 = h0
            v1 = h1
            v2 = h2
            load_keys(
                key_tiles, stage_of(done - 1) * key_size, barriers,
                1 + stage_of(done - 1), parity_of(done - 1), key, key_at,
                depth, count, heads, line, h0, h1, h2,
            )  # fmt: skip
            step += 1
            if step == last:
                iteration += 1
                if iteration < iterations:
                    head, _, step, last = tile_of(
                        iteration, order, block, blocks, queries, count, left, right
                    )
                    h2 = head % heads.third
                    h1 = head // heads.third % heads.second
                    h0 = head // heads.third // heads.second
        return iteration, step, last, h0, h1, h2, line, v0, v1, v2

    @td.kernel(checked=False, fastmath=True)
    def attend_groups(
        query: td.Array[dtype], key: td.Array[dtype], value: td.Array[dtype],
        out: td.Array[stored], norms: td.Array[td.f32],
        query_at: Placed, key_at: Placed, value_at: Placed,
        queries: td.i32, count: td.i32, depth: td.i32, width: td.i32, heads: Heads, order: Order,
        left: td.i32, right: td.i32, before: td.i32, scale: td.f32,
    ):  # fmt: skip
        query_tile = td.shared(deep * query_part, dtype)
        key_tiles = td.shared(stages * key_size, dtype)
        value_tiles = td.shared(stages * value_size, dtype)
        # The stage of the queries, those of keys, those of values, and one for the turn of
        # each warp: it comes after that of the same warp of the group before.
        barriers = td.shared(2 * (first_turn + warps), td.u64)
        t = td.thread_idx.x
        # The same for the threads of a warp, which assemblers see: its numbers are uniform.
        group = td.shuffle(t // GROUP, 0)
        lane = t % _LANES
        block = td.block_idx.x
        blocks = td.grid_dim.x
        iterations = iterations_of(order, (queries + a_tile - 1) // a_tile, block, blocks)
        own = group * (ROWS * LINE)
        own_line = t % GROUP // _LANES * 16 + lane // 4

        prepare(barriers, first_turn + warps, 1, 1, copiers)
        # The tile of queries that is computed, and what is loaded next: keys of a step,
        # and the values of the keys that were loaded last, from `line` on.
        now, top, first, last = tile_of(0, order, block, blocks, queries, count, left, right)
        next_iteration = 0
        next_step = first
        next_last = last
        h2 = now % heads.third
        h1 = now // heads.third % heads.second
        h0 = now // heads.third // heads.second
        line = -1
        v0 = 0
        v1 = 0
        v2 = 0
        load_queries(
            query_tile, 0, barriers, 0, 1, query, query_at, depth, queries, heads, top,
            h0, h1, h2,
        )  # fmt: skip
        for each in range(stages):
            (next_iteration, next_step, next_last, h0, h1, h2, line, v0, v1, v2) = load_next(
                key_tiles, value_tiles, barriers, key, value, each + 1, key_at, value_at,
                queries, count, depth, width, heads, order, left, right, block, blocks,
                iterations, next_iteration, next_step, next_last, h0, h1, h2, line, v0, v1, v2,
            )  # fmt: skip
        # The steps so far, counted from `stages` on; the stage of the present step and of the one
        # before it.
        done = stages - 1
        stage = 0
        parity = 0
        before_stage = 0
        before_parity = 0
        warp = td.shuffle(t // _LANES, 0)
        own_turn = first_turn + warp
        turn_after = first_turn + (warp + GROUP // _LANES) % warps
        turn_parity = 1 if group == 0 else 0
        scores = td.local(across, four)
        weights = td.local(b_tile // INNER, words)
        sums = td.local(along, four)
        peaks = td.local(2, td.f32)
        totals = td.local(2, td.f32)
        shrinks = td.local(2, td.f32)
        for iteration in range(iterations):
            for h in td.static_range(2):
                peaks[h] = td.f32(-td.inf)
                totals[h] = td.f32(0.0)
            for v in td.static_range(along):
                sums[v] = four(0)
            # The first row of a group, and of a thread; its columns are 2 (lane % 4) and the next.
            group_row = top + group * ROWS
            own_row = group_row + own_line
            wait(barriers, 0, iteration % 2)
            done += 1
            wait(barriers, 1 + stage, parity)
            if ordered:
                wait(barriers, own_turn, turn_parity)

                turn_parity = 1 - turn_parity

            begin(scores, query_tile, own, key_tiles, stage * key_size, True, True)
            for part in td.static_range(1, deep):
                multiply(
                    scores, query_tile, own + part * query_part, key_tiles,
                    stage * key_size + part * key_part, True, True,
                )  # fmt: skip
            if ordered:
                hand(barriers, turn_after)
            # Meanwhile: all groups have read the keys of the step before, and the values of that
            # before it, or soon will have.
            if iteration > 0:
                (next_iteration, next_step, next_last, h0, h1, h2, line, v0, v1, v2) = load_next(
                    key_tiles, value_tiles, barriers, key, value, done, key_at, value_at,
                    queries, count, depth, width, heads, order, left, right, block, blocks,
                    iterations, next_iteration, next_step, next_last, h0, h1, h2, line, v0, v1, v2,
                )  # fmt: skip
            settle(0)
            release(barriers, 1 + stage)
            start = first * b_tile
            whole = (
                start + b_tile <= count
                and group_row + ROWS - 1 - left <= start
                and start + b_tile - 1 - right <= group_row
            )
            if not whole:
                hide(scores, start + lane % 4 * 2, own_row - left, own_row + right, count)
            weigh(scores, peaks, totals, shrinks, scale)
            pack(scores, weights)
            for step in range(first + 1, last):
                done += 1
                before_stage = stage
                before_parity = parity
                stage += 1
                if stage == stages:
                    stage = 0
                    parity = 1 - parity
                wait(barriers, 1 + stage, parity)
                if ordered:
                    wait(barriers, own_turn, turn_parity)

                    turn_parity = 1 - turn_parity

                begin(scores, query_tile, own, key_tiles, stage * key_size, True, True)
                for part in td.static_range(1, deep):
                    multiply(
                        scores, query_tile, own + part * query_part, key_tiles,
                        stage * key_size + part * key_part, True, True,
                    )  # fmt: skip
                wait(barriers, 1 + stages + before_stage, before_parity)
                add_held(sums, weights, value_tiles, before_stage * value_size, False, b_tile)
                if ordered:
                    hand(barriers, turn_after)
                (next_iteration, next_step, next_last, h0, h1, h2, line, v0, v1, v2) = load_next(
                    key_tiles, value_tiles, barriers, key, value, done, key_at, value_at,
                    queries, count, depth, width, heads, order, left, right, block, blocks,
                    iterations, next_iteration, next_step, next_last, h0, h1, h2, line, v0, v1, v2,
                )  # fmt: skip
                settle(1)
                release(barriers, 1 + stage)
                start = step * b_tile
                whole = (
                    start + b_tile <= count
                    and group_row + ROWS - 1 - left <= start
                    and start + b_tile - 1 - right <= group_row
                )
                if not whole:
                    hide(scores, start + lane % 4 * 2, own_row - left, own_row + right, count)
                weigh(scores, peaks, totals, shrinks, scale)
                settle(0, totals[0], totals[1])
                release(barriers, 1 + stages + before_stage)
                for v in td.static_range(along):
                    found = sums[v]
                    sums[v] = four(
                        found.x * shrinks[0], found.y * shrinks[0],
                        found.z * shrinks[1], found.w * shrinks[1],
                    )  # fmt: skip
                pack(scores, weights)
            release(barriers, 0)
            wait(barriers, 1 + stages + stage, parity)
            add_held(sums, weights, value_tiles, stage * value_size, False, b_tile)
            # The next queries, once all groups have read these.
            head = now
            r = own_row + lane % 2 * 8
            if iteration + 1 < iterations:
                now, top, first, last = tile_of(
                    iteration + 1, order, block, blocks, queries, count, left, right
                )
                load_queries(
                    query_tile, 0, barriers, 0, iteration % 2, query, query_at, depth, queries,
                    heads, top, now // heads.third // heads.second,
                    now // heads.third % heads.second, now % heads.third,
                )  # fmt: skip
            settle(0)
            release(barriers, 1 + stages + stage)
            stage += 1
            if stage == stages:
                stage = 0
                parity = 1 - parity
            factors = td.local(2, td.f32)
            for h in td.static_range(2):
                total = totals[h]
                total += td.shuffle_xor(total, 1)
                total += td.shuffle_xor(total, 2)
                factors[h] = share(total, td.f32(1.0))
                if own_row + h * 8 < queries and lane % 4 == 0:
                    norms[(before + head) * queries + own_row + h * 8] = peaks[h] * scale * td.f32(
                        LN_2
                    ) + td.log(total)
            # Of a pair of lanes the second one writes the row 8 further.
            for v in td.static_range(along):
                store(
                    out, ((before + head) * queries + r) * width, r < queries,
                    v * 8 + lane % 4 // 2 * 4, width, sums[v], factors[0], factors[1],
                )  # fmt: skip

    return attend_groups

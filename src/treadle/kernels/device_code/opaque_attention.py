"""Attention of float16 by fragments whose layout is the device's own.

Such matrices are loaded from shared memory and stored there, and nothing else. So scores go through
shared memory to threads that know their places, and come back from there as weights. The sums stay
in the matrices, although nothing can multiply their rows there: the exponents of a query are
counted from a base, which follows the largest score only where that is larger by `GROWTH` powers of
two. Weights are no more than 2 ** GROWTH then, which float16 has with the precision that it has of
smaller ones, and the sums go through shared memory to be scaled in few steps: for most inputs in
none. (T. Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
2023.)

A subgroup has 16 queries. Two lanes have the scores of a query, one half of the keys of a step
each. The next keys and values wait in registers, since there are no copies that happen later.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.attention import LN_2
from treadle.kernels.device_code.attention_tiles import LANES, PIECE, Rows
from treadle.lang import builtins
from treadle.lang.decorators import Function, Kernel

GROWTH = 8.0  # powers of two that a query's scores may be above its base
_SIDE = 16  # of the matrices that are multiplied; queries of a subgroup
_FOUR = 4  # float32 in 16 bytes, and float16 in an element of the operands


class OpaqueAttentionTile(NamedTuple):
    """What a block computes at once: `queries`, of which a subgroup has 16, and `keys`."""

    queries: int
    keys: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.queries // _SIDE * LANES

    @property
    def score_pitch(self) -> int:
        """From a row of scores to the next one, in pieces of 16 bytes: odd, as of other tiles, so
        that rows below each other are in other banks."""
        return self.keys // _FOUR + 1

    @property
    def weight_pitch(self) -> int:
        """The same of weights."""
        return self.keys // PIECE | 1

    def bytes(self, query: Rows, value: Rows) -> int:
        """Of shared memory."""
        operands = self.keys * (query.pitch + value.pitch)
        return 16 * (operands + self.queries * (self.score_pitch + self.weight_pitch) + 1)


class OpaqueAttending(NamedTuple):
    """What a kernel is made for, as in `attention_fragments.FragmentAttending`, of aligned rows."""

    query: Rows
    value: Rows
    split: bool


@functools.cache
def opaque_attender(what: OpaqueAttending, tile: OpaqueAttentionTile) -> Kernel:
    """The kernel, with the arguments of `attention.attender`, of which a mask and dropout are not
    used. The unit of starts and steps are four elements. Its blocks lie along x: parts of the keys
    fastest, then tiles of queries from the last to the first, and the heads."""
    split = what.split
    a_tile, b_tile = tile
    threads = tile.threads
    half = b_tile // 2  # keys of a lane
    deep, wide = what.query.columns // _SIDE, what.value.columns // _SIDE
    pitch, value_pitch = what.query.pitch, what.value.pitch
    score_pitch, weight_pitch = tile.score_pitch, tile.weight_pitch
    # Queries come through the place of weights, which has as many columns as there are keys.
    columns = b_tile // _SIDE  # of matrices
    staged = what.query._replace(columns=b_tile, exact=False)
    query_loads, fetch_queries, put_queries = _carrier(staged, weight_pitch, a_tile, threads)
    key_loads, fetch_keys, put_keys = _carrier(what.query, pitch, b_tile, threads)
    value_loads, fetch_values, put_values = _carrier(what.value, value_pitch, b_tile, threads)
    words, four = td.vec4[td.u32], td.vec4[td.f32]
    read: Any = td.vec4[td.f16]
    made = td.f32 if split else td.f16
    stored: Any = td.vec4[made]

    @td.kernel(checked=False, fastmath=True)
    def attend_opaque(
        query: td.Array[read], key: td.Array[read], value: td.Array[read], mask: td.i32,
        out: td.Array[stored], norms: td.Array[td.f32], starts: td.vec4[td.i32],
        query_steps: td.vec4[td.i32], key_steps: td.vec4[td.i32], value_steps: td.vec4[td.i32],
        mask_steps: td.vec4[td.i32], mask_step: td.i32, sizes: td.vec4[td.i32],
        heads: td.vec4[td.i32], reach: td.vec4[td.i32], scale: td.f32, draws: td.i32, keep: td.f32,
    ):  # fmt: skip
        t = td.thread_idx.x
        warp_row = t // LANES * _SIDE
        queries = sizes.x
        count = sizes.y
        tiles = (queries + a_tile - 1) // a_tile
        at = td.block_idx.x
        part = at % heads.z
        at = at // heads.z
        head = at // tiles
        row = (tiles - 1 - at % tiles) * a_tile
        h2 = head % heads.y
        h1 = head // heads.y % heads.x
        h0 = head // heads.y // heads.x
        query_at = starts.x + h0 * query_steps.x + h1 * query_steps.y + h2 * query_steps.z
        key_at = starts.y + h0 * key_steps.x + h1 * key_steps.y + h2 * key_steps.z
        value_at = starts.z + h0 * value_steps.x + h1 * value_steps.y + h2 * value_steps.z
        # The tiles of keys that the block's queries see.
        first = td.maximum(row - reach.x, 0) // b_tile
        last = td.minimum(count, td.minimum(row + a_tile, queries) + reach.y)
        last = (last + b_tile - 1) // b_tile
        if split:
            first = td.maximum(first, part * heads.w)
            last = td.minimum(last, (part + 1) * heads.w)

        key_tile = td.shared(b_tile * pitch, words)
        value_tile = td.shared(b_tile * value_pitch, words)
        through = td.shared(a_tile * score_pitch, four)
        weights = td.shared(a_tile * weight_pitch, words)
        grown = td.shared(1, td.i32)  # the last step in which a base has changed
        keys_held = td.local(key_loads, words)
        values_held = td.local(value_loads, words)
        queries_held = td.local(query_loads, words)
        own = td.fragment(_SIDE, deep * _SIDE, td.f16, use="a", indexed=False)
        ours = td.fragment(_SIDE, _SIDE, td.f16, use="a", indexed=False)
        theirs = td.fragment(_SIDE, _SIDE, td.f16, use="b", indexed=False)
        scores = td.fragment(_SIDE, b_tile, td.f32, use="accumulator", indexed=False)
        sums = td.fragment(_SIDE, wide * _SIDE, td.f32, use="accumulator", indexed=False)
        sums.fill(0.0)
        if t == 0:
            grown[0] = -1
        fetch_keys(key, keys_held, t, key_at, key_steps.w, first * b_tile, count, 0, sizes.z)
        for c in td.static_range(0, deep, columns):
            fetch_queries(
                query, queries_held, t, query_at, query_steps.w, row, queries, c * _SIDE, sizes.z
            )
            put_queries(queries_held, weights, t, row, queries, c * _SIDE, sizes.z)
            td.sync_threads()
            for i in td.static_range(min(columns, deep - c)):
                at = warp_row * weight_pitch + i * 2
                own.part(0, c + i).load(weights, at, weight_pitch, layout="row")
            td.sync_threads()
        put_keys(keys_held, key_tile, t, first * b_tile, count, 0, sizes.z)
        fetch_keys(key, keys_held, t, key_at, key_steps.w, (first + 1) * b_tile, count, 0, sizes.z)
        fetch_values(
            value, values_held, t, value_at, value_steps.w, first * b_tile, count, 0, sizes.w
        )
        td.sync_threads()

        # A lane has a query, and the first or the second half of the keys of a step.
        side = t % LANES // _SIDE
        line = warp_row + t % _SIDE
        r = row + line
        score_at = line * score_pitch + side * (half // _FOUR)
        weight_at = line * weight_pitch + side * (half // PIECE)
        mine = warp_row * score_pitch
        found = td.local(half, td.f32)
        base = td.f32(-td.inf)  # from which the exponents of weights are counted
        total = td.f32(0.0)  # of the lane's own weights
        for step in range(first, last):
            start = step * b_tile
            scores.fill(0.0)
            for j in td.static_range(columns):
                for d in td.static_range(deep):
                    theirs.load(key_tile, j * _SIDE * pitch + d * 2, pitch, layout="column")
                    scores.part(0, j).multiply_add(own.part(0, d), theirs)
                scores.part(0, j).store(through, mine + j * 4, score_pitch)
            # The scores are here, and no thread needs the keys, nor the values of the last step.
            td.sync_threads()
            put_keys(keys_held, key_tile, t, start + b_tile, count, 0, sizes.z)
            put_values(values_held, value_tile, t, start, count, 0, sizes.w)
            fetch_keys(
                key, keys_held, t, key_at, key_steps.w, start + 2 * b_tile, count, 0, sizes.z
            )
            fetch_values(
                value, values_held, t, value_at, value_steps.w, start + b_tile, count, 0, sizes.w
            )
            for v in td.static_range(half // _FOUR):
                score = through[score_at + v] * scale
                found[v * _FOUR] = score.x
                found[v * _FOUR + 1] = score.y
                found[v * _FOUR + 2] = score.z
                found[v * _FOUR + 3] = score.w
            # Scores of keys that a query must not see are -infinity.
            whole = (
                start + b_tile <= count
                and row + a_tile - 1 - reach.x <= start
                and start + b_tile - 1 - reach.y <= row
            )
            if not whole:
                for e in td.static_range(half):
                    column = start + side * half + e
                    seen = column < count and r - reach.x <= column <= r + reach.y
                    found[e] = found[e] if seen else td.f32(-td.inf)
            most = found[0]
            for e in td.static_range(1, half):
                most = found[e] if found[e] > most else most
            other = td.shuffle_xor(most, _SIDE)
            most = other if other > most else most
            shrink = td.f32(1.0)
            # Without any score so far the base is -infinity, and there is nothing to scale.
            if base == td.f32(-td.inf):
                base = most
            elif most > base + td.f32(GROWTH):
                shrink = _power(base - most)
                base = most
                grown[0] = step
            from_here = base if base > td.f32(-td.inf) else td.f32(0.0)
            total = total * shrink
            for e in td.static_range(half):
                weight = _power(found[e] - from_here)
                total += weight
                found[e] = weight
            for v in td.static_range(half // PIECE):
                weights[weight_at + v] = words(
                    _packed(found[v * PIECE], found[v * PIECE + 1]),
                    _packed(found[v * PIECE + 2], found[v * PIECE + 3]),
                    _packed(found[v * PIECE + 4], found[v * PIECE + 5]),
                    _packed(found[v * PIECE + 6], found[v * PIECE + 7]),
                )
            # The weights, the values and the next keys are here.
            td.sync_threads()
            changed = grown[0]
            if changed == step:
                for j in td.static_range(0, wide, columns):
                    for i in td.static_range(min(columns, wide - j)):
                        sums.part(0, j + i).store(through, mine + i * 4, score_pitch)
                    td.sync_threads()
                    for v in td.static_range(half // _FOUR):
                        through[score_at + v] = through[score_at + v] * shrink
                    td.sync_threads()
                    for i in td.static_range(min(columns, wide - j)):
                        sums.part(0, j + i).load(through, mine + i * 4, score_pitch)
                    td.sync_threads()
            for k in td.static_range(columns):
                ours.load(weights, warp_row * weight_pitch + k * 2, weight_pitch, layout="row")
                for j in td.static_range(wide):
                    theirs.load(
                        value_tile, k * _SIDE * value_pitch + j * 2, value_pitch, layout="row"
                    )
                    sums.part(0, j).multiply_add(ours, theirs)
        total += td.shuffle_xor(total, _SIDE)
        place = (reach.w + head) * queries + r
        factor = td.f32(1.0)
        if split:
            place = place * heads.z + part
        else:
            factor = td.f32(0.0) if total == td.f32(0.0) else td.f32(1.0) / total
        if r < queries and side == 0:
            if split:
                norms[2 * place] = base
                norms[2 * place + 1] = total
            else:
                norms[place] = base * td.f32(LN_2) + td.log(total)
        for j in td.static_range(0, wide, columns):
            for i in td.static_range(min(columns, wide - j)):
                sums.part(0, j + i).store(through, mine + i * 4, score_pitch)
            td.sync_threads()
            for v in td.static_range(half // _FOUR):
                column = j * _SIDE + side * half + v * _FOUR
                if r < queries and column < sizes.w:
                    out[(place * sizes.w + column) // _FOUR] = stored(
                        through[score_at + v] * factor
                    )
            td.sync_threads()

    return attend_opaque


@td.func
def _power(x):
    """2 to the power of a number of at most GROWTH, by the device's own function: never of an
    infinity or NaN, of which WGSL says nothing."""
    inside = td.where(x < -126.0, -126.0, x)
    return td.where(td.isnan(x), x, td.where(x < -126.0, 0.0, td.exp2(inside)))


@td.func
def _half(weight):
    """The bits of a weight as float16. Weights are neither negative nor large, so that takes fewer
    operations than the cast, which WGSL's drivers may leave out."""
    bits = td.bitcast(weight, td.u32)
    # Below the normal numbers the distance of neighbours is that of float32 behind 0.5.
    small = td.bitcast(weight + 0.5, td.u32) - td.u32(0x3F000000)
    normal = (bits + (td.u32(0x0FFF) + (bits >> td.u32(13) & td.u32(1))) - td.u32(0x38000000)) >> (
        td.u32(13)
    )
    # Of NaN more than 16 bits are left: those of a NaN of float16 instead.
    return td.where(weight < 2.0**-14, small, td.minimum(normal, td.u32(0x7E00)))


@td.func
def _packed(low, high):
    return _half(low) | (_half(high) << td.u32(16))


def _carrier(rows: Rows, pitch: int, many: int, threads: int) -> tuple[int, Function, Function]:
    """How `many` rows are brought to a tile: the pieces of a thread, a function that loads them,
    those of the columns from `begin` on of rows from `row` on of `count`, and one that stores them.
    What is beyond the last row or column becomes zeros when it is stored, so that nothing waits for
    a load before."""
    exact, pieces = rows.exact, rows.pieces
    size = many * pieces
    loads = -(-size // threads)
    full = size % threads == 0
    words = td.vec4[td.u32]
    sixteen = builtins.sixteen_bytes

    @td.func
    def is_inside(item, row, count, begin, width):
        inside = row + item // pieces < count
        if not exact:
            inside = inside and begin + item % pieces * PIECE < width
        return inside

    @td.func
    def fetch(x, held, t, at, step, row, count, begin, width):
        for v in td.static_range(loads):
            item = t + v * threads
            start = at + (row + item // pieces) * step + (begin + item % pieces * PIECE) // _FOUR
            held[v] = sixteen(x, td.where(is_inside(item, row, count, begin, width), start, 0))

    @td.func
    def put(held, tile, t, row, count, begin, width):
        for v in td.static_range(loads):
            item = t + v * threads
            if full or item < size:
                inside = is_inside(item, row, count, begin, width)
                tile[item // pieces * pitch + item % pieces] = td.where(inside, held[v], words(0))

    return loads, fetch, put

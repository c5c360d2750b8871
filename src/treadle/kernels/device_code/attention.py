"""Attention with online softmax: no matrix of queries by keys is ever in memory.

A block has a tile of queries and loops over the keys, tile by tile. A thread holds in registers the
scores of some queries and some keys, and the sums for the same queries and some columns of the
value. Both products read their operands from shared memory as vec4s. The weights go from the first
product to the second through shared memory, some keys at a time: the buffer stays small.
(T. Dao, D. Y. Fu, S. Ermon, A. Rudra and C. Ré, "FlashAttention: fast and memory-efficient exact
attention with IO-awareness", 2022; M. Milakov and N. Gimelshein, "Online normalizer calculation for
softmax", 2018.)

Scores are counted in powers of two: they are multiplied by log2(e) with the scale. `peak` is the
largest of a query so far, -infinity before there is one.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.text_tiles import FIELDS, TABLE, tile_at
from treadle.lang.decorators import Function, Kernel
from treadle.lang.math import bits, draws
from treadle.lang.math.polynomials import exp2_tail

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


_LARGEST = 3.4028234663852886e38  # of float32
_MASK_LARGEST = 2.3e38  # of which there are float32 numbers of log2(e) times as much


@functools.cache
def mask_scaler(partial: DType) -> Function:
    """A function for a number of a mask that is added to scores, counted as these are. Those that
    would become infinite, as the smallest float32 that many masks have, become nearly as large
    ones that do not: a query whose keys all have such a number sees them alike."""
    narrow = partial is dtypes.float32

    @td.func
    def scaled(entry):
        number = partial(entry)
        if narrow:
            near = td.minimum(td.maximum(number, partial(-_MASK_LARGEST)), partial(_MASK_LARGEST))
            number = near if td.abs(number) <= partial(_LARGEST) else number
        return number * partial(LOG2_E)

    return scaled


class Tile(NamedTuple):
    """What a block computes at once. Its threads are `across` keys or columns by `down` queries."""

    across: int
    down: int
    rows: int  # queries of a thread
    keys: int  # of a thread
    vectors: int  # of four columns of the value, of a thread
    deep: int  # vectors of four columns of query and key that are in shared memory at a time
    passes: int  # in which the weights of all keys go through shared memory

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.across * self.down

    @property
    def queries(self) -> int:
        """Of a block."""
        return self.down * self.rows

    @property
    def columns(self) -> int:
        """Of the value, of a block."""
        return self.across * self.vectors * 4

    @property
    def keys_of_block(self) -> int:
        """The keys that a block scores in one iteration."""
        return self.across * self.keys

    def bytes(self, partial: DType) -> int:
        """Of shared memory."""
        slots = self.keys_of_block // self.passes
        left = self.queries * (self.deep + 1) * 4
        right = max(self.keys_of_block * (self.deep + 1) * 4, slots * self.columns)
        return (left + right + self.queries * (slots + 4)) * partial.itemsize


class Attending(NamedTuple):
    """What a kernel of attention is made for."""

    dtype: DType  # of query, key and value
    partial: DType  # that is computed in
    vectors: bool  # whether query, key and value are read in vectors of four
    mask: DType | None  # bool, that of numbers to be added, or TABLE
    dropout: bool
    split: bool  # whether a block has a part of the keys only, and writes sums for `joiner`
    fast: bool = False  # whether the device's own powers of two are to be trusted


@functools.cache
def attender(what: Attending, tile: Tile) -> Kernel:
    """The kernel. Its blocks lie along x: columns of the value fastest, then parts of the keys,
    tiles of queries from the last to the first (which have the most to do if the mask is causal),
    and the heads.

    `steps` of an operand are the distances of neighbours along the three axes of heads, and of
    rows. In `sizes` are queries, keys, columns of query and key, columns of the value; in `heads`
    the extents of the last two axes of heads, then parts of the keys and tiles of keys in each;
    `reach` is how far a query sees to the
    left and to the right, then how many heads were computed by other launches, and how many of
    them are before these in `out`. Of packed texts `mask` is the table of tiles, and positions are
    counted from the beginning of a text.
    """
    partial, split = what.partial, what.split
    vec = td.vec4[partial]
    load, store = _loader(what, vec), _storer(what)
    power, share = power_of(partial, what.fast), share_of(partial, what.dropout)
    given = td.vec4[what.dtype] if what.vectors else what.dtype
    written = partial if split else what.dtype
    elements: Any = td.Array[given]
    results: Any = td.Array[td.vec4[written] if what.vectors else written]
    across, down, rows, keys = tile.across, tile.down, tile.rows, tile.keys
    vectors, deep = tile.vectors, tile.deep
    threads = across * down
    a_tile = down * rows
    b_tile = across * keys
    wide = across * vectors
    pass_keys = keys // tile.passes  # keys of a thread that go through shared memory at a time
    slots = across * pass_keys
    pitch = deep + 1  # odd: threads that read neighbouring rows have no bank conflicts
    weight_pitch = slots + 4
    left_size = a_tile * pitch
    right_size = max(b_tile * pitch, slots * wide)
    left_vectors, right_vectors = -(-a_tile * deep // threads), -(-b_tile * deep // threads)
    value_vectors = -(-slots * wide // threads)
    texts, dropout = what.mask is TABLE, what.dropout
    masked = what.mask is not None and not texts
    additive = masked and what.mask is not dtypes.bool_
    scaled_mask = mask_scaler(partial)

    @td.kernel(checked=False, fastmath=what.fast)
    def attend(
        query: elements, key: elements, value: elements, mask, out: results, norms,
        starts: td.vec4[td.i32],
        query_steps: td.vec4[td.i32], key_steps: td.vec4[td.i32], value_steps: td.vec4[td.i32],
        mask_steps: td.vec4[td.i32], mask_step: td.i32, sizes: td.vec4[td.i32],
        heads: td.vec4[td.i32], reach: td.vec4[td.i32], scale: partial, draws, keep: partial,
    ):  # fmt: skip
        t = td.thread_idx.x
        tx = t % across
        ty = t // across
        draw = td.vec4[td.u32](td.u32(0))
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
        queries = sizes.x
        count = sizes.y
        depth = sizes.z
        width = sizes.w
        # Where the block is.
        column_tiles = td.maximum((width + wide * 4 - 1) // (wide * 4), 1)
        tiles = (queries + a_tile - 1) // a_tile
        if texts:
            tiles = mask.size // FIELDS
        at = td.block_idx.x
        column_tile = at % column_tiles
        at = at // column_tiles
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

        left = td.shared(left_size, vec)
        right = td.shared(right_size, vec)
        weights = td.shared(a_tile * weight_pitch, partial)
        scores = td.local(rows * keys, partial)
        sums = td.local(rows * vectors, vec)
        peaks = td.local(rows, partial)
        totals = td.local(rows, partial)
        of_right = td.local(max(keys, vectors), vec)
        of_left = td.local(rows, vec)
        for i in td.static_range(rows):
            peaks[i] = partial(-td.inf)
            totals[i] = partial(0.0)
            for v in td.static_range(vectors):
                sums[i * vectors + v] = vec(0.0)
        chunks = td.maximum((depth + deep * 4 - 1) // (deep * 4), 1)

        for step in range(first, last):
            start = step * b_tile
            for s in td.static_range(rows * keys):
                scores[s] = partial(0.0)
            for chunk in range(chunks):
                td.sync_threads()
                for p in td.static_range(left_vectors):
                    i = t + p * threads
                    r = i // deep
                    if r < a_tile:
                        left[r * pitch + i % deep] = load(
                            query, query_at, query_steps.w, row + r, queries,
                            chunk * deep + i % deep, depth,
                        )  # fmt: skip
                for p in td.static_range(right_vectors):
                    i = t + p * threads
                    r = i // deep
                    if r < b_tile:
                        right[r * pitch + i % deep] = load(
                            key, key_at, key_steps.w, start + r, count,
                            chunk * deep + i % deep, depth,
                        )  # fmt: skip
                td.sync_threads()
                for e in range(deep):
                    for j in td.static_range(keys):
                        of_right[j] = right[(j * across + tx) * pitch + e]
                    for i in td.static_range(rows):
                        own = left[(i * down + ty) * pitch + e]
                        for j in td.static_range(keys):
                            s = i * keys + j
                            scores[s] += own.x * of_right[j].x
                            scores[s] += own.y * of_right[j].y
                            scores[s] += own.z * of_right[j].z
                            scores[s] += own.w * of_right[j].w
            # Scores of keys that a query must not see are -infinity.
            for s in td.static_range(rows * keys):
                scores[s] *= scale
            whole = (
                start + b_tile <= count
                and row + a_tile - 1 - reach.x <= start
                and start + b_tile - 1 - reach.y <= row
            )
            if masked or not whole:
                for i in td.static_range(rows):
                    r = row + i * down + ty
                    for j in td.static_range(keys):
                        column = start + j * across + tx
                        s = i * keys + j
                        seen = column < count and r - reach.x <= column <= r + reach.y
                        if masked and seen and r < queries:
                            entry = mask[mask_at + r * mask_steps.w + column * mask_step]
                            if additive:
                                scores[s] += scaled_mask(entry)
                            else:
                                seen = entry
                        scores[s] = scores[s] if seen else partial(-td.inf)
            # The maximum of each query's scores, over all threads that hold some of them.
            for i in td.static_range(rows):
                most = scores[i * keys]
                for j in td.static_range(1, keys):
                    most = scores[i * keys + j] if scores[i * keys + j] > most else most
                weights[(i * down + ty) * weight_pitch + tx] = most
            td.sync_threads()
            for i in td.static_range(rows):
                most = peaks[i]
                for k in td.static_range(across):
                    other = weights[(i * down + ty) * weight_pitch + k]
                    most = other if other > most else most
                # Without any score so far the peak is -infinity; -inf - -inf would be NaN.
                base = most if most > partial(-td.inf) else partial(0.0)
                shrink = power(peaks[i] - base)
                peaks[i] = most
                total = totals[i] * shrink
                for v in td.static_range(vectors):
                    sums[i * vectors + v] *= shrink
                for j in td.static_range(keys):
                    weight = power(scores[i * keys + j] - base)
                    total += weight
                    scores[i * keys + j] = weight
                totals[i] = total
            if dropout:
                for i in td.static_range(rows):
                    drawn = td.u32(draw_line + row + i * down + ty)
                    for j in td.static_range(keys):
                        column = draw_key + start + j * across + tx
                        if not kept(drawn, sizes.y, column, draw, keep):
                            scores[i * keys + j] = partial(0.0)
            for turn in td.static_range(keys // pass_keys):
                td.sync_threads()
                for i in td.static_range(rows):
                    for j in td.static_range(pass_keys):
                        to = (i * down + ty) * weight_pitch + j * across + tx
                        weights[to] = scores[i * keys + turn * pass_keys + j]
                for p in td.static_range(value_vectors):
                    i = t + p * threads
                    r = i // wide
                    if r < slots:
                        right[i] = load(
                            value, value_at, value_steps.w, start + turn * slots + r, count,
                            column_tile * wide + i % wide, width,
                        )  # fmt: skip
                td.sync_threads()
                for k in range(slots // 4):
                    for i in td.static_range(rows):
                        own_at = ((i * down + ty) * (weight_pitch // 4) + k) * 4
                        of_left[i] = vec(
                            weights[own_at], weights[own_at + 1], weights[own_at + 2],
                            weights[own_at + 3],
                        )  # fmt: skip
                    for v in td.static_range(vectors):
                        near = k * 4 * wide + v * across + tx
                        v0 = right[near]
                        v1 = right[near + wide]
                        v2 = right[near + 2 * wide]
                        v3 = right[near + 3 * wide]
                        for i in td.static_range(rows):
                            sums[i * vectors + v] += v0 * of_left[i].x
                            sums[i * vectors + v] += v1 * of_left[i].y
                            sums[i * vectors + v] += v2 * of_left[i].z
                            sums[i * vectors + v] += v3 * of_left[i].w
        # Each thread has the total of its own keys only.
        td.sync_threads()
        for i in td.static_range(rows):
            weights[(i * down + ty) * weight_pitch + tx] = totals[i]
        td.sync_threads()
        for i in td.static_range(rows):
            total = partial(0.0)
            for k in td.static_range(across):
                total += weights[(i * down + ty) * weight_pitch + k]
            r = row + i * down + ty
            if r < queries:
                line = line_at + r
                factor = partial(1.0)
                if split:
                    line = line * heads.z + part
                    if column_tile == 0 and tx == 0:
                        norms[2 * line] = peaks[i]
                        norms[2 * line + 1] = total
                else:
                    factor = share(total, keep)
                    if column_tile == 0 and tx == 0:
                        norms[line] = peaks[i] * partial(LN_2) + td.log(total)
                for v in td.static_range(vectors):
                    store(out, line, width, column_tile * wide + v * across + tx,
                          sums[i * vectors + v] * factor)  # fmt: skip

    return attend


@functools.cache
def joiner(what: Attending) -> Kernel:
    """A kernel that combines the sums of blocks that had parts of the keys. A thread computes one
    vec4 of a line of the result, or one column."""
    partial, power = what.partial, power_of(what.partial)
    share = share_of(partial, what.dropout)
    count = 4 if what.vectors else 1
    written = td.vec4[what.dtype] if what.vectors else what.dtype
    summed = td.vec4[partial] if what.vectors else partial
    parts_of_sums: Any = td.Array[summed]
    results: Any = td.Array[written]

    @td.kernel(checked=False)
    def join_parts(
        sums: parts_of_sums, tops, out: results, norms, width: td.i32, parts: td.i32, keep: partial
    ):
        g = td.grid(1)
        columns = width // count
        line = g // columns
        if line < norms.size:
            column = g - line * columns
            peak = partial(-td.inf)
            for part in range(parts):
                top = tops[2 * (line * parts + part)]
                peak = top if top > peak else peak
            base = peak if peak > partial(-td.inf) else partial(0.0)
            total = partial(0.0)
            found = summed(0.0)
            for part in range(parts):
                at = line * parts + part
                weight = power(tops[2 * at] - base)
                total += tops[2 * at + 1] * weight
                found += sums[at * columns + column] * weight
            out[g] = written(found * share(total, keep))
            if column == 0:
                norms[line] = peak * partial(LN_2) + td.log(total)

    return join_parts


def power_of(partial: DType, fast: bool = False) -> Function:
    """2 to the power of a number that is not positive, or is NaN."""
    return _power if partial is dtypes.f32 and not fast else _own_power


@td.func
def _power(x: td.f32):
    inside = td.where(x < -126.0, -126.0, x)
    q = _nearest_integer(inside)
    r = inside - td.f32(q)
    y = (1.0 + r * _exp2_tail(r)) * _power_of_two(q)
    # Graphics drivers compile `inside` as a maximum, which drops NaN.
    return td.where(td.isnan(x), x, td.where(x < -126.0, 0.0, y))


@td.func
def _own_power(x):
    return td.exp2(x)


@td.func
def kept(line, count, column, draw, keep):
    """Whether dropout keeps a weight: the bits of `td.random.bernoulli(…, keep)` for a matrix of
    all heads and queries by keys."""
    low = line * td.u32(count)
    element = low + td.u32(column)
    above = td.mul_high(line, td.u32(count)) + td.where(element < low, td.u32(1), td.u32(0))
    return _chance(element, above, draw.x, draw.y, draw.z, draw.w, td.f32(keep))


_nearest_integer = td.func(bits.nearest_integer)
_power_of_two = td.func(bits.power_of_two.f32)
_exp2_tail = td.func(exp2_tail.f32)
_chance = td.func(draws.random_chance)


@functools.cache
def share_of(partial: DType, dropout: bool) -> Function:
    """The factor of a query's sums: 0 for a query that sees no key."""

    @td.func
    def share(total, keep):
        factor = partial(0.0) if total == partial(0.0) else partial(1.0) / total
        if dropout:
            factor = factor / partial(keep) if keep > 0.0 else partial(0.0)
        return factor

    return share


def _loader(what: Attending, vec: Any) -> Function:
    """A function that reads four columns of a row, 0 beyond the last row and column. Rows that are
    read in vectors have their places counted in vectors."""
    partial = what.partial
    if what.vectors:

        @td.func
        def load(x, at, step, row, count, column, width):
            found = vec(0.0)
            if row < count and column * 4 < width:
                found = vec(x[at + row * step + column])
            return found

        return load

    @td.func
    def load_each(x, at, step, row, count, column, width):
        found = vec(0.0)
        if row < count:
            start = at + row * step + column * 4
            if column * 4 < width:
                found.x = partial(x[start])
            if column * 4 + 1 < width:
                found.y = partial(x[start + 1])
            if column * 4 + 2 < width:
                found.z = partial(x[start + 2])
            if column * 4 + 3 < width:
                found.w = partial(x[start + 3])
        return found

    return load_each


def _storer(what: Attending) -> Function:
    """A function that writes four columns of a line."""
    result = what.partial if what.split else what.dtype
    stored = td.vec4[result]
    if what.vectors:

        @td.func
        def store(out, line, width, column, values):
            if column * 4 < width:
                out[line * (width // 4) + column] = stored(values)

        return store

    @td.func
    def store_each(out, line, width, column, values):
        start = line * width + column * 4
        if column * 4 < width:
            out[start] = result(values.x)
        if column * 4 + 1 < width:
            out[start + 1] = result(values.y)
        if column * 4 + 2 < width:
            out[start + 2] = result(values.z)
        if column * 4 + 3 < width:
            out[start + 3] = result(values.w)

    return store_each

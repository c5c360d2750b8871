"""Products of matrices by fragments: the cards' instructions for small matrices. Of 16-bit floats,
of 8-bit integers, signed or not, whose sums have 32 bits, and of float32 numbers that are rounded
to TF32.

A block computes a tile of the result, each of its warps a part. Tiles of both factors go to shared
memory, 16 bytes at a time, some `stages` ahead of the step that is multiplied, by copies that
happen while the warps multiply (`nodes.Copies`). What does not lie as 16 aligned bytes in memory,
or is not in memory, is loaded element by element at the same place. In shared memory the 16-byte
pieces of a line are permuted by the line's number, so that eight lines are read at once without two
of them in one bank.

Elements along the inner axis are neighbours in shared memory, as the instructions take them. Only
16-bit elements may lie across it there, since these are turned as they are read. Others are turned
on their way: a thread loads lines into registers before a step is multiplied, and stores them after
it.

The sums of a thread are pairs of neighbours, which two threads exchange to have four. The epilogue
and the prologues are called as in `matrix_product`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.carried_tiles import PIECE, carrier_of
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import (
    Form,
    batch_offset,
    finish,
    itself,
)
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

_LANES = 32
_TOGETHER = 8  # rows of tiles whose blocks follow each other, and share what they read


class FragmentTile(NamedTuple):
    """What a block computes of a product: `rows` and `columns` of the result, of which a warp has
    `warp_rows` and `warp_columns`, and `depth` of the inner axis at a time, in elements; `stages`
    of these are in shared memory."""

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    stages: int
    guarded: bool = True  # the end of the inner axis may be anywhere

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return (self.rows // self.warp_rows) * (self.columns // self.warp_columns) * _LANES

    def shared_bytes(self, item: int) -> int:
        """The shared memory of a block, for elements of so many bytes."""
        return self.stages * self.depth * (self.rows + self.columns) * item

    def of(self, dtype: DType) -> FragmentTile:
        """A tile that is as deep in bytes for a dtype as this one for 16-bit elements."""
        return self._replace(depth=self.depth * 2 // dtype.itemsize)


_MULTIPLIERS = {
    ("f16", "f16"): builtins.multiply_f16,
    ("bf16", "bf16"): builtins.multiply_bf16,
    ("f32", "f32"): builtins.multiply_tf32,
    ("i8", "i8"): builtins.multiply_i8,
    ("u8", "u8"): builtins.multiply_u8,
    ("i8", "u8"): builtins.multiply_i8u8,
    ("u8", "i8"): builtins.multiply_u8i8,
}


@functools.cache
def fragment_multiplier(form: Form, tile: FragmentTile) -> Kernel:
    """A kernel whose blocks compute a tile each, with the parameters of `tile_multiplier`."""
    dtype, store_lanes, parts = form.dtype, form.lanes, form.parts
    index = td.i64 if form.big else td.i32
    rows, columns, depth, warp_rows, warp_columns, stages, _ = tile
    first = carrier_of(form, form.first, tile, rows, False)
    own = form._replace(dtype=form.factors[1])
    second = carrier_of(own, form.second, tile, columns, True)
    a_type, a_loads, a_size, a_pieces, place_a, fetch_a, a_piece, _, turned_a = first
    b_type, b_loads, b_size, b_pieces, place_b, fetch_b, b_piece, _, turned_b = second
    a_inner, a_turned, put_a = turned_a.along, turned_a.held > 0, turned_a.put
    b_inner, b_turned, put_b = turned_b.along, turned_b.held > 0, turned_b.put
    a_held, b_held = max(turned_a.held, 1), max(turned_b.held, 1)
    a_computed, b_computed = form.first.computed, form.second.computed
    held_type = td.vec4[td.u32]
    a_many = form.first.lanes if form.first.inner else 1
    b_many = form.second.lanes if form.second.inner else 1
    # Applied to a load from shared memory, it is one instruction with that.
    a_spread = builtins.matrix_rows if a_inner else builtins.matrix_columns
    b_spread = builtins.matrix_rows if b_inner else builtins.matrix_columns
    ready = _rounded_to_tf32 if dtype is td.f32 else _as_they_are
    multiply_add = _MULTIPLIERS[dtype.short, own.dtype.short]
    end_copies, wait_copies = builtins.end_copies, builtins.wait_copies
    # Pieces from a part to the adjacent one, of other rows or columns, and to the next one along
    # the inner axis.
    a_adjacent, a_behind = (16 * a_pieces, 0) if a_inner else (0, 16 * a_pieces)
    b_adjacent, b_behind = (16 * b_pieces, 0) if b_inner else (0, 16 * b_pieces)
    across_warps = columns // warp_columns
    per = PIECE // dtype.itemsize
    down, across, deep = warp_rows // 16, warp_columns // 8, depth // (2 * per)
    summed = wide(dtype)
    made = summed if parts else form.made
    stored: Any = td.vec4[made] if store_lanes == 4 else made
    words, pair = td.vec4[td.u32], td.vec2[td.u32]
    sums_type = td.vec4[td.i32 if dtype.itemsize == 1 else td.f32]
    offset_of = batch_offset(form.batches, index)
    ended = itself if parts else finish

    @td.kernel(checked=False)
    def multiply_fragments(
        a: td.Array[a_type], b: td.Array[b_type], c: td.Array[stored],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: index, a1: index, a2: index, a_line: index, a_step: index, a_offset: index,
        b0: index, b1: index, b2: index, b_line: index, b_step: index, b_offset: index,
        matrices: td.i32, chunk: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, words)
        right = td.shared(stages * b_size, words)
        t = td.thread_idx.x
        lane = t % _LANES
        warp = t // _LANES
        # Blocks go down a few rows of tiles before they go to the next column.
        number = td.block_idx.y * td.grid_dim.x + td.block_idx.x
        many = _TOGETHER * td.grid_dim.x
        top = number // many * _TOGETHER
        high = td.minimum(td.grid_dim.y - top, _TOGETHER)
        row = (top + number % many % high) * rows
        column = number % many // high * columns
        z = td.block_idx.z
        batch = z % matrices if parts else z
        begin = z // matrices * chunk if parts else 0
        total_deep = td.minimum(chunk, k - begin) if parts else k
        a_at = td.local(a_loads, index)
        a_to = td.local(a_loads, td.i32)
        a_deep = td.local(a_loads, td.i32)
        a_more = td.local(a_loads, td.i32)
        of_a = td.local(a_held, held_type)
        base = index(0) if a_computed else a_offset + offset_of(batch, extent1, extent2, a0, a1, a2)
        if parts and not a_computed:
            base += index(begin // a_many) * a_step
        place_a(t, base, row, m, a_line, a_step, a_at, a_to, a_deep, a_more)
        b_at = td.local(b_loads, index)
        b_to = td.local(b_loads, td.i32)
        b_deep = td.local(b_loads, td.i32)
        b_more = td.local(b_loads, td.i32)
        of_b = td.local(b_held, held_type)
        base = index(0) if b_computed else b_offset + offset_of(batch, extent1, extent2, b0, b1, b2)
        if parts and not b_computed:
            base += index(begin // b_many) * b_step
        place_b(t, base, column, n, b_line, b_step, b_at, b_to, b_deep, b_more)
        sums = td.local(down * across, sums_type)
        for each in td.static_range(down * across):
            sums[each] = sums_type(0)
        steps = (total_deep + depth - 1) // depth
        for s in td.static_range(stages - 1):
            if s < steps:
                remaining = total_deep - s * depth
                if a_computed:
                    fetch_a(left, s * a_size, t, remaining, batch, begin + s * depth,
                            a_at, a_to, a_deep, a_more)  # fmt: skip
                elif a_turned:
                    fetch_a(a, of_a, 0, t, remaining, a_line, a_step,
                            a_at, a_to, a_deep, a_more)  # fmt: skip
                    put_a(of_a, left, s * a_size, t)
                else:
                    fetch_a(a, left, s * a_size, t, remaining, a_line, a_step,
                            a_at, a_to, a_deep, a_more)  # fmt: skip
                if b_computed:
                    fetch_b(right, s * b_size, t, remaining, batch, begin + s * depth,
                            b_at, b_to, b_deep, b_more)  # fmt: skip
                elif b_turned:
                    fetch_b(b, of_b, 0, t, remaining, b_line, b_step,
                            b_at, b_to, b_deep, b_more)  # fmt: skip
                    put_b(of_b, right, s * b_size, t)
                else:
                    fetch_b(b, right, s * b_size, t, remaining, b_line, b_step,
                            b_at, b_to, b_deep, b_more)  # fmt: skip
            end_copies()
        warp_row = warp // across_warps * warp_rows
        warp_column = warp % across_warps * warp_columns
        # The line and the place along the inner axis that a thread reads for all, of 16 x 16 parts.
        a_far = lane % 8 + lane // 8 % 2 * 8 if a_inner else lane // 8 % 2 * 8
        a_near = lane // 16 * per if a_inner else lane % 8 + lane // 16 * 8
        b_far = lane % 8 + lane // 16 * 8 if b_inner else lane // 16 * 8
        b_near = lane // 8 % 2 * per if b_inner else lane % 8 + lane // 8 % 2 * 8
        a_from = a_piece(warp_row + a_far, a_near)
        b_from = b_piece(warp_column + b_far, b_near)
        # A thread has its words of two parts of the inner axis: those that are multiplied, and the
        # next, which are on their way. Parts are 16 lines, or two pieces of a line, from each
        # other: that changes bits of the permuted place which the first part has as zeros.
        ours = td.local(2 * down, words)
        theirs = td.local(across, words)
        left_at = 0
        right_at = 0
        filled = stages - 1
        put_at = stages - 1
        wait_copies(stages - 2)
        td.sync_threads()
        for i in td.static_range(down):
            ours[i] = ready(a_spread(left[(a_from ^ (0 if a_inner else i * 2)) + a_adjacent * i]))
        for j in td.static_range(across // 2):
            theirs[j] = ready(
                b_spread(right[(b_from ^ (0 if b_inner else j * 2)) + b_adjacent * j])
            )
        for step in range(steps):
            for d in td.static_range(deep):
                if d == deep - 1:
                    # The next stage is here, and no thread needs the one that is filled next.
                    # What was loaded last goes to the stage before the present one.
                    if a_turned:
                        put_a(of_a, left, put_at * a_size, t)
                    if b_turned:
                        put_b(of_b, right, put_at * b_size, t)
                    wait_copies(stages - 2)
                    td.sync_threads()
                    left_at = left_at + a_size if left_at + a_size < stages * a_size else 0
                    right_at = right_at + b_size if right_at + b_size < stages * b_size else 0
                for i in td.static_range(down):
                    ours[(d + 1) % 2 * down + i] = ready(
                        a_spread(
                            left[
                                left_at
                                + (a_from ^ ((d + 1) % deep * 2 if a_inner else i * 2))
                                + (a_adjacent * i + a_behind * ((d + 1) % deep))
                            ]
                        )
                    )
                for j in td.static_range(across // 2):
                    theirs[(d + 1) % 2 * (across // 2) + j] = ready(
                        b_spread(
                            right[
                                right_at
                                + (b_from ^ ((d + 1) % deep * 2 if b_inner else j * 2))
                                + (b_adjacent * j + b_behind * ((d + 1) % deep))
                            ]
                        )
                    )
                if d == 0:
                    if step + stages - 1 < steps:
                        at = (step + stages - 1) * depth
                        remaining = total_deep - at
                        if a_computed:
                            fetch_a(left, filled * a_size, t, remaining, batch, begin + at,
                                    a_at, a_to, a_deep, a_more)  # fmt: skip
                        elif a_turned:
                            fetch_a(a, of_a, 0, t, remaining, a_line, a_step,
                                    a_at, a_to, a_deep, a_more)  # fmt: skip
                        else:
                            fetch_a(a, left, filled * a_size, t, remaining, a_line, a_step,
                                    a_at, a_to, a_deep, a_more)  # fmt: skip
                        if b_computed:
                            fetch_b(right, filled * b_size, t, remaining, batch, begin + at,
                                    b_at, b_to, b_deep, b_more)  # fmt: skip
                        elif b_turned:
                            fetch_b(b, of_b, 0, t, remaining, b_line, b_step,
                                    b_at, b_to, b_deep, b_more)  # fmt: skip
                        else:
                            fetch_b(b, right, filled * b_size, t, remaining, b_line, b_step,
                                    b_at, b_to, b_deep, b_more)  # fmt: skip
                    end_copies()
                    put_at = filled
                    filled = filled + 1 if filled + 1 < stages else 0
                for i in td.static_range(down):
                    for j in td.static_range(across // 2):
                        sums[i * across + 2 * j] = multiply_add(
                            ours[d % 2 * down + i],
                            pair(
                                theirs[d % 2 * (across // 2) + j].x,
                                theirs[d % 2 * (across // 2) + j].y,
                            ),
                            sums[i * across + 2 * j],
                        )
                        sums[i * across + 2 * j + 1] = multiply_add(
                            ours[d % 2 * down + i],
                            pair(
                                theirs[d % 2 * (across // 2) + j].z,
                                theirs[d % 2 * (across // 2) + j].w,
                            ),
                            sums[i * across + 2 * j + 1],
                        )
        wait_copies(0)
        odd = lane % 2
        for i in td.static_range(down):
            for j in td.static_range(across):
                found = sums[i * across + j]
                # A thread has two neighbours of a row and of the row 8 further; the other of a pair
                # has the next two. Each takes four of one row.
                sent_x = td.shuffle_xor(td.where(odd == 1, found.x, found.z), 1)
                sent_y = td.shuffle_xor(td.where(odd == 1, found.y, found.w), 1)
                near_x = td.where(odd == 1, sent_x, found.x)
                near_y = td.where(odd == 1, sent_y, found.y)
                far_x = td.where(odd == 1, found.z, sent_x)
                far_y = td.where(odd == 1, found.w, sent_y)
                total = td.vec4[made](sums_type(near_x, near_y, far_x, far_y))
                line = row + warp_row + i * 16 + lane // 4 + odd * 8
                at = column + warp_column + j * 8 + lane % 4 // 2 * 4
                if line < m:
                    start = (index(z) * index(m) + index(line)) * index(n)
                    if store_lanes == 4:
                        if at < n:
                            c[(start + index(at)) // 4] = ended(total, batch, line, at)
                    else:
                        if at < n:
                            c[start + index(at)] = ended(total.x, batch, line, at)
                        if at + 1 < n:
                            c[start + index(at + 1)] = ended(total.y, batch, line, at + 1)
                        if at + 2 < n:
                            c[start + index(at + 2)] = ended(total.z, batch, line, at + 2)
                        if at + 3 < n:
                            c[start + index(at + 3)] = ended(total.w, batch, line, at + 3)

    return multiply_fragments


@td.func
def _as_they_are(parts):
    return parts


@td.func
def _rounded(word):
    """The nearest number whose lowest 13 bits, which are ignored, are zeros. NaN, which an addition
    could make a number of, stays as it is: two instructions."""
    is_nan = td.isnan(td.bitcast(word, td.f32))
    return td.where(is_nan, word, word + td.u32(0x1000))


@td.func
def _rounded_to_tf32(parts):
    return td.vec4[td.u32](
        _rounded(parts.x), _rounded(parts.y), _rounded(parts.z), _rounded(parts.w)
    )

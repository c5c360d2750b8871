"""Products of float16 matrices by fragments whose layout is the device's own.

The matrices of WebGPU's subgroups are loaded from shared memory and stored there, and nothing else.
So a tile's lines are not permuted there but padded, and the sums go through shared memory to the
threads that store them. There are no copies that happen later: the next tiles wait in registers
while the present ones are multiplied. The epilogue and the prologues are called as in
`matrix_product`, and a factor is carried as in `fragment_product`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.carried_tiles import carrier_of
from treadle.kernels.device_code.matrix_product import Form, batch_offset, finish, itself
from treadle.lang.decorators import Kernel

_LANES = 32
_SIDE = 16  # of the matrices that are multiplied
_PIECE = 8  # elements of a factor in 16 bytes
_FOUR = 4  # sums in 16 bytes
_TOGETHER = 8  # rows of tiles whose blocks follow each other, and share what they read


class OpaqueTile(NamedTuple):
    """What a block computes of a product: `rows` and `columns` of the result, of which a subgroup
    has `warp_rows` and `warp_columns`, and `depth` of the inner axis at a time."""

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    guarded: bool = False  # the end of the inner axis may be anywhere, even if it need not

    @property
    def warps(self) -> int:
        """The subgroups of a block."""
        return (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.warps * _LANES

    @property
    def stored(self) -> int:
        """The columns of sums that are stored at a time."""
        return min(self.warp_columns, 2 * _SIDE)

    def shared_bytes(self, item: int) -> int:
        """The shared memory of a block at most, whatever sums take: both factors, whose lines have
        a piece of 16 bytes more, and what sums go through."""
        del item
        factors = sum(
            max((self.depth // _PIECE + 1) * lines, (lines // _PIECE + 1) * self.depth)
            for lines in (self.rows, self.columns)
        )
        return 16 * (factors + self.warps * _SIDE * (self.stored // _FOUR + 1))


@functools.cache
def opaque_multiplier(form: Form, tile: OpaqueTile) -> Kernel:
    """A kernel whose blocks compute a tile each, with the parameters of `tile_multiplier`."""
    dtype, store_lanes, parts, whole = form.dtype, form.lanes, form.parts, form.whole
    index = td.i64 if form.big else td.i32
    rows, columns, depth, warp_rows, warp_columns, _ = tile
    first = carrier_of(form, form.first, tile, rows, False, held=True)
    second = carrier_of(form, form.second, tile, columns, True, held=True)
    a_type, a_loads, a_size, a_pitch, place_a, fetch_a, a_piece, put_a, _ = first
    b_type, b_loads, b_size, b_pitch, place_b, fetch_b, b_piece, put_b, _ = second
    a_computed, b_computed = form.first.computed, form.second.computed
    a_many = form.first.lanes if form.first.inner else 1
    b_many = form.second.lanes if form.second.inner else 1
    a_layout = "row" if form.first.inner else "column"
    b_layout = "column" if form.second.inner else "row"
    warps, across_warps = tile.warps, columns // warp_columns
    across = tile.stored // _SIDE  # parts that are stored at a time
    pitch = tile.stored // _FOUR + 1
    own = tile.stored // 2 // _FOUR  # a thread stores as many times four sums: half of a row
    made = td.f32 if parts else dtype
    stored: Any = td.vec4[made] if store_lanes == _FOUR else made
    words, four = td.vec4[td.u32], td.vec4[td.f32]
    offset_of = batch_offset(form.batches, index)
    ended = itself if parts else finish

    @td.kernel(checked=False)
    def multiply_opaque(
        a: td.Array[a_type], b: td.Array[b_type], c: td.Array[stored],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: index, a1: index, a2: index, a_line: index, a_step: index, a_offset: index,
        b0: index, b1: index, b2: index, b_line: index, b_step: index, b_offset: index,
        matrices: td.i32, chunk: td.i32,
    ):  # fmt: skip
        left = td.shared(a_size, words)
        right = td.shared(b_size, words)
        through = td.shared(warps * _SIDE * pitch, four)
        t = td.thread_idx.x
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
        a_held = td.local(a_loads, words)
        base = index(0) if a_computed else a_offset + offset_of(batch, extent1, extent2, a0, a1, a2)
        if parts and not a_computed:
            base += index(begin // a_many) * a_step
        place_a(t, base, row, m, a_line, a_step, a_at, a_to, a_deep, a_more)
        b_at = td.local(b_loads, index)
        b_to = td.local(b_loads, td.i32)
        b_deep = td.local(b_loads, td.i32)
        b_more = td.local(b_loads, td.i32)
        b_held = td.local(b_loads, words)
        base = index(0) if b_computed else b_offset + offset_of(batch, extent1, extent2, b0, b1, b2)
        if parts and not b_computed:
            base += index(begin // b_many) * b_step
        place_b(t, base, column, n, b_line, b_step, b_at, b_to, b_deep, b_more)
        ours = td.fragment(warp_rows, _SIDE, td.f16, use="a", indexed=False)
        theirs = td.fragment(_SIDE, _SIDE, td.f16, use="b", indexed=False)
        sums = td.fragment(warp_rows, warp_columns, td.f32, use="accumulator", indexed=False)
        warp_row = warp // across_warps * warp_rows
        warp_column = warp % across_warps * warp_columns
        if a_computed:
            fetch_a(a_held, 0, t, total_deep, batch, begin, a_at, a_to, a_deep, a_more)
        else:
            fetch_a(a, a_held, 0, t, total_deep, a_line, a_step, a_at, a_to, a_deep, a_more)
        if b_computed:
            fetch_b(b_held, 0, t, total_deep, batch, begin, b_at, b_to, b_deep, b_more)
        else:
            fetch_b(b, b_held, 0, t, total_deep, b_line, b_step, b_at, b_to, b_deep, b_more)
        for step in range((total_deep + depth - 1) // depth):
            present = total_deep - step * depth
            put_a(a_held, left, t, present, a_to, a_deep)
            put_b(b_held, right, t, present, b_to, b_deep)
            td.sync_threads()
            following = (step + 1) * depth
            remaining = total_deep - following
            if remaining > 0:
                if a_computed:
                    fetch_a(a_held, 0, t, remaining, batch, begin + following,
                            a_at, a_to, a_deep, a_more)  # fmt: skip
                else:
                    fetch_a(a, a_held, 0, t, remaining, a_line, a_step, a_at, a_to, a_deep, a_more)
                if b_computed:
                    fetch_b(b_held, 0, t, remaining, batch, begin + following,
                            b_at, b_to, b_deep, b_more)  # fmt: skip
                else:
                    fetch_b(b, b_held, 0, t, remaining, b_line, b_step, b_at, b_to, b_deep, b_more)
            for d in td.static_range(0, depth, _SIDE):
                ours.load(left, a_piece(warp_row, d), a_pitch, layout=a_layout)
                # One part of the second factor after the other: few registers hold them.
                for j in td.static_range(warp_columns // _SIDE):
                    at = b_piece(warp_column + j * _SIDE, d)
                    theirs.load(right, at, b_pitch, layout=b_layout)
                    for i in td.static_range(warp_rows // _SIDE):
                        sums.part(i, j).multiply_add(ours.part(i, 0), theirs)
            td.sync_threads()
        # A thread takes half of a row of what is stored at a time.
        lane = t % _LANES
        mine = warp * (_SIDE * pitch)
        for i in td.static_range(warp_rows // _SIDE):
            for j in td.static_range(0, warp_columns // _SIDE, across):
                for p in td.static_range(across):
                    sums.part(i, j + p).store(through, mine + p * 4, pitch)
                td.sync_threads()
                line = row + warp_row + i * _SIDE + lane // 2
                start = (index(z) * index(m) + index(line)) * index(n)
                for v in td.static_range(own):
                    place = lane % 2 * own + v
                    total = td.vec4[made](through[mine + lane // 2 * pitch + place])
                    at = column + warp_column + j * _SIDE + place * _FOUR
                    if whole or line < m:
                        if store_lanes == _FOUR:
                            if whole or at < n:
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
                td.sync_threads()

    return multiply_opaque

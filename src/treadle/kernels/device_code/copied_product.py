"""Products of matrices by tiles, whose next tiles are copied to shared memory meanwhile.

`matrix_product` loads the next tiles into registers first, and stores them when the present ones
are multiplied. A compiler that wants few registers loads them only then, so that the block waits
for memory. Copies from memory to shared memory (`nodes.Copies`) need no registers: a block begins
those of a step several steps before, and only waits for them. So what is copied lies in shared
memory as in memory: dtypes that are summed in themselves, and factors that are not computed.

The tile, the parameters and the epilogue are those of `matrix_product`. A factor that lies along
the inner axis is turned on its way, number by number; neighbouring threads copy neighbours.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.matrix_product import (
    Form,
    Loading,
    Tile,
    batch_offset,
    placing,
    storing,
)
from treadle.lang import builtins
from treadle.lang.decorators import Function, Kernel

_GAP = 4  # numbers behind a line of a tile, of which copies of turned lines need other banks


@functools.cache
def copied_multiplier(form: Form, tile: Tile) -> Kernel:
    """A kernel whose blocks compute a tile each, with the parameters of `tile_multiplier`."""
    dtype, parts = form.dtype, form.parts
    index = td.i64 if form.big else td.i32
    rows, columns, depth, down, across, stages, _, _, _ = tile
    first = _carrier(form, form.first, tile, rows)
    second = _carrier(form, form.second, tile, columns)
    a_type, a_loads, a_pitch, place_a, fetch_a = first
    b_type, b_loads, b_pitch, place_b, fetch_b = second
    a_size, b_size = depth * a_pitch, depth * b_pitch  # in vec4s
    row_step, column_step = rows // (4 * down), columns // (4 * across)  # between groups, in vec4s
    groups = 4 * down * across
    vec = td.vec4[dtype]
    stored: Any = td.vec4[form.made] if form.lanes == 4 else form.made
    if parts:
        stored = vec if form.lanes == 4 else dtype
    a_many = form.first.lanes if form.first.inner else 1
    b_many = form.second.lanes if form.second.inner else 1
    offset_of = batch_offset(form.batches, index)
    place_in_tile, store = placing(tile), storing(form, tile)
    end_copies, wait_copies = builtins.end_copies, builtins.wait_copies

    @td.kernel(checked=False)
    def multiply_copied(
        a: td.Array[a_type], b: td.Array[b_type], c: td.Array[stored],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: index, a1: index, a2: index, a_line: index, a_step: index, a_offset: index,
        b0: index, b1: index, b2: index, b_line: index, b_step: index, b_offset: index,
        matrices: td.i32, chunk: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, vec)
        right = td.shared(stages * b_size, vec)
        t = td.thread_idx.x
        tx, ty = place_in_tile(t)
        row = td.block_idx.y * rows
        column = td.block_idx.x * columns
        z = td.block_idx.z
        batch = z % matrices if parts else z
        begin = z // matrices * chunk if parts else 0
        deep = td.minimum(chunk, k - begin) if parts else k
        a_at = td.local(a_loads, index)
        base = a_offset + offset_of(batch, extent1, extent2, a0, a1, a2)
        if parts:
            base += index(begin // a_many) * a_step
        place_a(t, base, row, m, a_line, a_step, a_at)
        b_at = td.local(b_loads, index)
        base = b_offset + offset_of(batch, extent1, extent2, b0, b1, b2)
        if parts:
            base += index(begin // b_many) * b_step
        place_b(t, base, column, n, b_line, b_step, b_at)
        sums = td.local(groups, vec)
        for s in td.static_range(groups):
            sums[s] = vec(0)
        steps = (deep + depth - 1) // depth
        for s in td.static_range(stages - 1):
            if s < steps:
                fetch_a(a, left, s * a_size, t, deep - s * depth, a_step, a_at)
                fetch_b(b, right, s * b_size, t, deep - s * depth, b_step, b_at)
            end_copies()
        left_at = 0  # of the present stage, in vec4s
        right_at = 0
        left_next = (stages - 1) * a_size  # of the one that is filled
        right_next = (stages - 1) * b_size
        beneath = td.local(across, vec)
        for step in range(steps):
            # The present stage is here, and no thread needs the one that is filled next.
            wait_copies(stages - 2)
            td.sync_threads()
            if step + stages - 1 < steps:
                remaining = deep - (step + stages - 1) * depth
                fetch_a(a, left, left_next, t, remaining, a_step, a_at)
                fetch_b(b, right, right_next, t, remaining, b_step, b_at)
            end_copies()
            for d in td.static_range(depth):
                for group in td.static_range(across):
                    beneath[group] = right[right_at + tx + (d * b_pitch + group * column_step)]
                for g in td.static_range(down):
                    four = left[left_at + ty + (d * a_pitch + g * row_step)]
                    for group in td.static_range(across):
                        sums[(g * across + group) * 4] += beneath[group] * four.x
                        sums[(g * across + group) * 4 + 1] += beneath[group] * four.y
                        sums[(g * across + group) * 4 + 2] += beneath[group] * four.z
                        sums[(g * across + group) * 4 + 3] += beneath[group] * four.w
            left_next = left_at
            right_next = right_at
            left_at = left_at + a_size if left_at + a_size < stages * a_size else 0
            right_at = right_at + b_size if right_at + b_size < stages * b_size else 0
        wait_copies(0)
        store(c, sums, z, batch, row + ty * 4, column + tx * 4, m, n)

    return multiply_copied


class _Carrier(NamedTuple):
    """How a block's threads copy a factor's tile: its type in memory, the copies of a thread, and
    the vec4s from a line of shared memory to the next. `place` computes where a thread reads,
    `fetch` begins its copies and goes on to the next step."""

    read: Any
    loads: int
    pitch: int
    place: Function
    fetch: Function


def _carrier(form: Form, loading: Loading, tile: Tile, lines: int) -> _Carrier:
    """`lines` is the tile's rows or columns."""
    inner, lanes, _, _ = loading
    dtype, exact, depth, threads = form.dtype, form.exact, tile.depth, tile.threads
    index = td.i64 if form.big else td.i32
    # Vectors across the inner axis are copied as they are, everything else number by number.
    whole = lanes == 4 and not inner
    together = 4 if whole else 1
    pitch = lines // 4 if whole else (lines + _GAP) // 4
    items = lines * depth // together
    loads = -(-items // threads)
    full = items % threads == 0
    nothing: Any = td.vec4[dtype] if whole else dtype
    many = lanes if inner else 1  # numbers of a step of a stride
    copy_later, number_at = builtins.copy_later, builtins.number_at

    @td.func
    def places(item):
        """The line and the place along the inner axis of one of a tile's copies."""
        if inner:
            return item // depth, item % depth
        else:
            return item % (lines // together) * together, item // (lines // together)

    @td.func
    def place(t, base, start, end, line_step, inner_step, at):
        for v in td.static_range(loads):
            line, deep = places(t + v * threads)
            # Past the end, the last line is read again; its results are not stored.
            line = td.minimum(start + line, (end - 1) // together * together)
            if inner:
                at[v] = (base + index(line) * line_step) * many
                at[v] += index(deep) if lanes == 4 else index(deep) * inner_step
            else:
                at[v] = base + index(line // lanes) * line_step + index(deep) * inner_step

    @td.func
    def fetch(x, tile_here, start, t, remaining, inner_step, at):
        for v in td.static_range(loads):
            if full or t + v * threads < items:
                line, deep = places(t + v * threads)
                to = (start + deep * pitch) * 4 + line
                here = at[v]
                inside = exact or deep < remaining
                if not exact:
                    here = td.where(inside, here, index(0))
                if whole:
                    if exact:
                        copy_later(tile_here, to // 4, x[here])
                    else:
                        copy_later(tile_here, to // 4, td.where(inside, x[here], nothing(0)))
                else:
                    if exact:
                        copy_later(tile_here, to, number_at(x, here))
                    else:
                        copy_later(tile_here, to, td.where(inside, number_at(x, here), nothing(0)))
                if inner and lanes == 4:
                    at[v] += index(depth)
                else:
                    at[v] += index(depth) * inner_step

    read: Any = td.vec4[dtype] if lanes == 4 else dtype
    return _Carrier(read, loads, pitch, place, fetch)

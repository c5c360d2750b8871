"""Products of matrices of 16-bit floats by groups of 128 threads: Hopper's instructions.

A block stays for several tiles of the result. One of its threads keeps `stages` tiles of both
factors on their way to shared memory, across the ends of tiles, and each group multiplies 64 rows
of the block's tile by all of its columns (`ir.stages` has what these steps are). While a group
stores its results the first stages of the next tile arrive.

All threads do the same, the one that starts copies too. Warps that do nothing else, with registers
moved from them to the groups, gain nothing where two groups multiply: what a block needs is 128
sums and some tens of other registers a thread, and there are 255.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.ir.stages import DEPTH, ELEMENT_BYTES, GROUP, LINE, ROWS
from treadle.kernels.device_code.matrix_product import Form, finish
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

_LANES = 32
_PITCH = 36  # pairs from a row of a warp's sums in shared memory to the next: in other banks
_PARKED = 16 * _PITCH  # pairs of a warp


class GroupTile(NamedTuple):
    """What a block computes of a product at a time: `rows` and `columns` of the result, each 64
    rows by a group of 128 threads; tiles of `DEPTH` of the inner axis lie in `stages`. Blocks that
    follow each other go down `together` rows of tiles before they go to the next column."""

    rows: int
    columns: int
    stages: int
    together: int = 8
    guarded: bool = True

    @property
    def depth(self) -> int:
        """Of the inner axis, in a stage."""
        return DEPTH

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.rows // ROWS * GROUP

    @property
    def stage_bytes(self) -> int:
        """The tiles of a stage."""
        return DEPTH * (self.rows + self.columns) * ELEMENT_BYTES

    def shared_bytes(self, item: int) -> int:
        """The shared memory of a block: of two bytes an element, whatever sums take."""
        del item
        parked = self.threads // _LANES * _PARKED * 2 * ELEMENT_BYTES
        return self.stages * (self.stage_bytes + 16) + parked


def takes(form: Form) -> bool:
    """Whether the kernel reads such factors: both in memory, aligned to 16 bytes, with one stack at
    most, and the inner axis not divided."""
    both = (form.first, form.second)
    return (
        all(each.aligned and not each.computed for each in both)
        and form.batches <= 1
        and not form.parts
        and not form.big
    )


@functools.cache
def group_multiplier(form: Form, tile: GroupTile) -> Kernel:
    """A kernel whose blocks compute tiles, with the parameters of `tile_multiplier`. Its grid is
    along x, of any number of blocks. The form is one that it `takes`."""
    dtype, store_lanes = form.dtype, form.lanes
    rows, columns, stages, together, _ = tile
    stored: Any = td.vec4[dtype] if store_lanes == 4 else dtype
    sums_type, pair, threads = td.vec4[td.f32], td.vec2[dtype], tile.threads
    across = columns // 8
    a_near, b_near = form.first.inner, form.second.inner
    a_size, b_size = rows * DEPTH, columns * DEPTH
    a_boxes = 1 if a_near else rows // LINE
    b_boxes = 1 if b_near else columns // LINE
    stage_bytes = tile.stage_bytes
    group_size, box_size = ROWS * DEPTH, LINE * DEPTH
    prepare, claim, copy = builtins.prepare_stages, builtins.claim_stage, builtins.copy_tile
    wait, release = builtins.wait_stage, builtins.release_stage
    multiply, settle = builtins.multiply_tiles, builtins.settle_products

    @td.func
    def place_of(tile, down, side):
        """The matrix of the stack, the row and the column of a tile, counted in tiles."""
        # Unsigned, since that division is short.
        each = td.u32(down * side)
        z = td.u32(tile) // each
        number = td.u32(tile) - z * each
        many = td.u32(together * side)
        top = number // many
        within = number - top * many
        high = td.u32(td.minimum(down - td.i32(top) * together, together))
        across_at = within // high
        row = td.i32(top) * together + td.i32(within - across_at * high)
        return td.i32(z), row, td.i32(across_at)

    @td.func
    def load_next(
        left, right, barriers, a, b, m, n, k, matrices, down, side, blocks,
        a_offset, a_far, a_stack, b_offset, b_far, b_stack,
        tile, step, stage, parity, z, row, column,
    ):  # fmt: skip
        """Fill the next stage; what is filled after it."""
        claim(barriers, stage, parity, stage_bytes)
        deep = step * DEPTH
        for box in td.static_range(a_boxes):
            copy(
                left, stage * a_size + box * box_size, barriers, stage, a, a_offset,
                (k if a_near else m, m if a_near else k, matrices), (a_far, a_stack),
                (deep if a_near else row + box * LINE, row if a_near else deep,
                 td.where(a_stack == 0, 0, z)),
                rows if a_near else LINE,
            )  # fmt: skip
        for box in td.static_range(b_boxes):
            copy(
                right, stage * b_size + box * box_size, barriers, stage, b, b_offset,
                (k if b_near else n, n if b_near else k, matrices), (b_far, b_stack),
                (deep if b_near else column + box * LINE, column if b_near else deep,
                 td.where(b_stack == 0, 0, z)),
                columns if b_near else LINE,
            )  # fmt: skip
        stage += 1
        if stage == stages:
            stage = 0
            parity = 1 - parity
        step += 1
        if step * DEPTH >= k:
            step = 0
            tile += blocks
            z, down_at, side_at = place_of(tile, down, side)
            row = down_at * rows
            column = side_at * columns
        return tile, step, stage, parity, z, row, column

    @td.kernel(checked=False)
    def multiply_groups(
        a: td.Array[dtype], b: td.Array[dtype], c: td.Array[stored],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: td.i32, a1: td.i32, a2: td.i32, a_line: td.i32, a_step: td.i32, a_offset: td.i32,
        b0: td.i32, b1: td.i32, b2: td.i32, b_line: td.i32, b_step: td.i32, b_offset: td.i32,
        matrices: td.i32, chunk: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, dtype)
        right = td.shared(stages * b_size, dtype)
        parked = td.shared(threads // _LANES * _PARKED, pair)
        barriers = td.shared(2 * stages, td.u64)
        t = td.thread_idx.x
        group = t // GROUP
        warp = t // _LANES % 4
        lane = t % _LANES
        down = (m + rows - 1) // rows
        side = (n + columns - 1) // columns
        steps = (k + DEPTH - 1) // DEPTH
        tiles = down * side * matrices
        blocks = td.grid_dim.x
        # Steps and offsets are counted in vectors of four.
        a_start, b_start = a_offset * 4, b_offset * 4
        a_stack, b_stack = a0 * 4, b0 * 4
        a_far = (a_line if a_near else a_step) * 4
        b_far = (b_line if b_near else b_step) * 4
        prepare(barriers, stages)
        # What is filled next: the tile and its place, the step of it, the stage and its parity.
        coming = td.block_idx.x
        coming_step = 0
        coming_stage = 0
        coming_parity = 1
        coming_z, down_at, side_at = place_of(coming, down, side)
        coming_row = down_at * rows
        coming_column = side_at * columns
        for _ in range(stages):
            if coming < tiles:
                (coming, coming_step, coming_stage, coming_parity, coming_z, coming_row,
                 coming_column) = load_next(
                    left, right, barriers, a, b, m, n, k, matrices, down, side, blocks,
                    a_start, a_far, a_stack, b_start, b_far, b_stack,
                    coming, coming_step, coming_stage, coming_parity, coming_z,
                    coming_row, coming_column,
                )  # fmt: skip
        # What is multiplied next, and what was before.
        stage = 0
        parity = 0
        before = 0
        sums = td.local(across, sums_type)
        for tile in range(td.block_idx.x, tiles, blocks):
            for j in td.static_range(across):
                sums[j] = sums_type(0)
            for step in range(steps):
                wait(barriers, stage, parity)
                multiply(
                    sums, left, stage * a_size + group * group_size, right, stage * b_size,
                    a_near, b_near,
                )  # fmt: skip
                if step > 0:
                    settle(1)
                    release(barriers, before)
                    if coming < tiles:
                        (coming, coming_step, coming_stage, coming_parity, coming_z, coming_row,
                         coming_column) = load_next(
                            left, right, barriers, a, b, m, n, k, matrices, down, side, blocks,
                            a_start, a_far, a_stack, b_start, b_far, b_stack,
                            coming, coming_step, coming_stage, coming_parity, coming_z,
                            coming_row, coming_column,
                        )  # fmt: skip
                before = stage
                stage += 1
                if stage == stages:
                    stage = 0
                    parity = 1 - parity
            settle(0)
            release(barriers, before)
            if coming < tiles:
                (coming, coming_step, coming_stage, coming_parity, coming_z, coming_row,
                 coming_column) = load_next(
                    left, right, barriers, a, b, m, n, k, matrices, down, side, blocks,
                    a_start, a_far, a_stack, b_start, b_far, b_stack,
                    coming, coming_step, coming_stage, coming_parity, coming_z,
                    coming_row, coming_column,
                )  # fmt: skip
            z, down_at, side_at = place_of(tile, down, side)
            row = down_at * rows + group * ROWS + warp * 16
            column = side_at * columns
            # A warp's sums go through shared memory, 64 columns at a time, so that it stores whole
            # lines of them.
            for part in td.static_range(columns // LINE):
                for j in td.static_range(LINE // 8):
                    found = sums[part * (LINE // 8) + j]
                    spot = t // _LANES * _PARKED + lane // 4 * _PITCH + j * 4 + lane % 4
                    parked[spot] = pair(td.vec2[td.f32](found.x, found.y))
                    parked[spot + 8 * _PITCH] = pair(td.vec2[td.f32](found.z, found.w))
                td.sync_subgroup()
                for i in td.static_range(8):
                    line = row + i * 2 + lane // 16
                    at = column + part * LINE + lane % 16 * 4
                    spot = t // _LANES * _PARKED + (i * 2 + lane // 16) * _PITCH + lane % 16 * 2
                    low = parked[spot]
                    high = parked[spot + 1]
                    total = td.vec4[dtype](low.x, low.y, high.x, high.y)
                    if line < m:
                        start = (z * m + line) * n
                        if store_lanes == 4:
                            if at < n:
                                c[(start + at) // 4] = finish(total, z, line, at)
                        else:
                            if at < n:
                                c[start + at] = finish(total.x, z, line, at)
                            if at + 1 < n:
                                c[start + at + 1] = finish(total.y, z, line, at + 1)
                            if at + 2 < n:
                                c[start + at + 2] = finish(total.z, z, line, at + 2)
                            if at + 3 < n:
                                c[start + at + 3] = finish(total.w, z, line, at + 3)
                td.sync_subgroup()

    return multiply_groups

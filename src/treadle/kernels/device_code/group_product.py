"""Products of matrices of 16-bit floats, 8-bit integers and TF32 by groups of 128 threads: Hopper's
instructions.

A block stays for several tiles of the result. One of its threads keeps `stages` tiles of both
factors on their way to shared memory, across the ends of tiles, and each group multiplies 64 rows
of the block's tile by all of its columns (`ir.stages` has what these steps are). While a group
stores its results the first stages of the next tile arrive.

Copies are begun by threads of their own (`ir.passes.roles`). Blocks of a cluster may share the
boxes of a factor, or the inner axis: then each adds up some rows of the sums of all.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.ir.stages import GROUP, LINE_BYTES, ROWS
from treadle.kernels.device_code.matrix_product import Form, finish
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

_LANES = 32
_HALF = 2  # bytes
_PAIR_BYTES = 8  # of sums
_MANY_SUMS = 128  # of a thread
_MOST_OF_TWO = 240  # registers that threads of two groups can have, beside a group that copies


class GroupTile(NamedTuple):
    """What a block computes of a product at a time: `rows` and `columns` of the result, each 64
    rows by a group of 128 threads; tiles of 128 bytes of the inner axis lie in `stages`. The blocks
    of a cluster have `tall` rows and `wide` columns of tiles; those in a column share the boxes of
    the second factor, those in a row the first one's. Clusters that follow each other go down
    `together` rows of clusters before they go to the next column. With `split`, so many such sets
    of blocks have a part of the inner axis each, and add up each other's sums. With `registers`, a
    thread of the groups has so many, which a whole group that copies gives up. If `streamed`,
    blocks have equal shares of the steps of all tiles (stream-K), and what they have of a tile is a
    part that another kernel adds up."""

    rows: int
    columns: int
    stages: int
    together: int = 8
    guarded: bool = True
    tall: int = 1
    wide: int = 1
    split: int = 1
    registers: int = 0
    streamed: bool = False

    def depth_of(self, item: int) -> int:
        """Of the inner axis in a stage, in elements of so many bytes."""
        return LINE_BYTES // item

    @property
    def cluster(self) -> int:
        """The blocks of a cluster."""
        return self.tall * self.wide * self.split

    def divides(self, inner: int, item: int) -> bool:
        """Whether each of the blocks that split an inner axis has a part of it."""
        steps = -(-inner // self.depth_of(item))
        return -(-steps // -(-steps // self.split)) == self.split

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.rows // ROWS * GROUP

    def for_operands(self, size: int) -> GroupTile:
        """The tile for an epilogue that loads so many bytes for each element. Beside 128 sums a
        thread has registers for those of one 16-bit operand; for more, the groups take registers
        from a whole group that copies."""
        few = size <= _HALF or self.columns // 2 < _MANY_SUMS
        if few or self.registers or self.streamed or self.split > 1 or self.threads != 2 * GROUP:
            return self
        return self._replace(registers=_MOST_OF_TWO)

    @property
    def stage_bytes(self) -> int:
        """The tiles of a stage."""
        return LINE_BYTES * (self.rows + self.columns)

    def shared_bytes(self, item: int) -> int:
        """The shared memory of a block, for elements of so many bytes."""
        parked = self.threads // _LANES * parking_of(4 if item != _HALF else item).bytes
        if self.split > 1:
            parked = self.rows * _pitch_of(self.columns) * _PAIR_BYTES
        return self.stages * (self.stage_bytes + 16) + parked


class Parking(NamedTuple):
    """Where a warp's sums lie before they are stored: lines of `columns`, in pairs, from each of
    which it is `pitch` pairs to the next, so that eight lines are in all banks."""

    columns: int
    pitch: int
    item: int  # bytes of a number

    @property
    def size(self) -> int:
        """Pairs of 16 lines."""
        return 16 * self.pitch

    @property
    def bytes(self) -> int:
        """Of these."""
        return self.size * 2 * self.item


def parking_of(item: int) -> Parking:
    """For numbers of so many bytes: 128 bytes of a line at a time."""
    columns = LINE_BYTES // item
    return Parking(columns, columns // 2 + 8 // item, item)


def _pitch_of(columns: int) -> int:
    """Pairs from a row of a tile's sums to the next, where the tile is added up by a cluster."""
    return columns // 2 + 2


MOST_STREAMED = 1 << 26  # numbers of all parts of a result


def takes(form: Form) -> bool:
    """Whether the kernel reads such factors: both in memory, aligned to 16 bytes, with one stack at
    most, and near unless elements have 16 bits."""
    both = (form.first, form.second)
    either = form.dtype.itemsize == _HALF
    return (
        all(each.aligned and not each.computed and (each.inner or either) for each in both)
        and form.batches <= 1
        and not form.big
    )


@functools.cache
def group_multiplier(form: Form, tile: GroupTile) -> Kernel:
    """A kernel whose blocks compute tiles, with the parameters of `tile_multiplier`. Its grid is
    along x, of any number of blocks. The form is one that it `takes`."""
    (dtype, other), store_lanes, made = form.factors, form.lanes, form.made
    rows, columns, stages, together, _, tall, wide, split, registers, streamed = tile
    copiers, parts = registers or 1, form.parts and streamed
    cluster, sharing, stacked = tile.cluster, tall * wide, form.batches > 0
    stored: Any = td.vec4[made] if store_lanes == 4 else made
    summed = td.i32 if dtype.itemsize == 1 else td.f32
    # Sums are parked as 16-bit results, if they become these.
    held = made if made.itemsize == _HALF else summed
    sums_type, pair, threads = td.vec4[summed], td.vec2[held], tile.threads
    two, four = td.vec2[summed], td.vec4[held]
    parking = parking_of(held.itemsize)
    pitch, warp_parked = parking.pitch, parking.size
    part_columns, part_lanes = parking.columns, parking.columns // 4
    part_rows = _LANES // part_lanes
    whole_pitch, row_threads = _pitch_of(columns), columns // 4
    iterations = rows // split * row_threads // threads
    at_once = 4 if iterations % 4 == 0 else 1
    pairs = parts and store_lanes == 4
    if parts:
        stored = two if pairs else summed
    depth = line = tile.depth_of(dtype.itemsize)
    across = columns // 8
    a_near, b_near = form.first.inner, form.second.inner
    a_size, b_size = rows * depth, columns * depth
    a_boxes = 1 if a_near else rows // line
    b_boxes = 1 if b_near else columns // line
    stage_bytes = tile.stage_bytes
    group_size, box_size = ROWS * depth, line * depth
    prepare, claim, copy = builtins.prepare_stages, builtins.claim_stage, builtins.copy_tile
    wait, release = builtins.wait_stage, builtins.release_stage
    multiply, settle = builtins.multiply_tiles, builtins.settle_products
    meet, take, leave = builtins.meet_cluster, builtins.take_elements, builtins.leave_stages
    unit_rows, unit_columns = rows * tall, columns * wide

    @td.func
    def place_of(tile, down, side):
        """The matrix of the stack, the row and the column of a tile, counted in tiles."""
        # Unsigned, since that division is short.
        each = td.u32(down * side)
        z = td.u32(tile) // each if stacked else td.u32(0)
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
        left, right, barriers, a, b, m, n, k, matrices, chunk, down, side, blocks, rank, share,
        a_offset, a_far, a_stack, b_offset, b_far, b_stack,
        tile, step, stage, parity, z, row, column,
    ):  # fmt: skip
        """Fill the next stage; what is filled after it."""
        claim(barriers, stage, parity, stage_bytes)
        deep = step * depth
        if split > 1:
            deep += share * chunk
        for box in td.static_range(a_boxes):
            copy(
                left, stage * a_size + box * box_size, barriers, stage, a, a_offset,
                (k if a_near else m, m if a_near else k, matrices), (a_far, a_stack),
                (deep if a_near else row + box * line, row if a_near else deep,
                 td.where(a_stack == 0, 0, z)),
                rows if a_near else line, wide, tall,
            )  # fmt: skip
        for box in td.static_range(b_boxes):
            copy(
                right, stage * b_size + box * box_size, barriers, stage, b, b_offset,
                (k if b_near else n, n if b_near else k, matrices), (b_far, b_stack),
                (deep if b_near else column + box * line, column if b_near else deep,
                 td.where(b_stack == 0, 0, z)),
                columns if b_near else line, tall, 1,
            )  # fmt: skip
        stage += 1
        if stage == stages:
            stage = 0
            parity = 1 - parity
        step += 1
        if step * depth >= (chunk if split > 1 else k):
            step = 0
            tile += 1 if parts else blocks
            z, down_at, side_at = place_of(tile, down, side)
            row = down_at * unit_rows + rank % tall * rows
            column = side_at * unit_columns + rank // tall * columns
        return tile, step, stage, parity, z, row, column

    @td.func
    def is_left(tile, step, steps, tiles, end):
        """Whether a step of a tile is still this block's to copy."""
        return tile * steps + step < end if parts else tile < tiles

    @td.func
    def keep_part(c, value, other, m, n, plane, line, at):
        """Store two neighbours of a part of the result."""
        if line < m:
            start = (plane * m + line) * n + at
            if pairs:
                if at < n:
                    c[start // 2] = stored(value, other)
            else:
                if at < n:
                    c[start] = value
                if at + 1 < n:
                    c[start + 1] = other

    @td.func
    def keep(c, total, m, n, z, line, at):
        """Store four neighbours of the result, as far as they are in it."""
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

    @td.kernel(checked=False)
    def multiply_groups(
        a: td.Array[dtype], b: td.Array[other], c: td.Array[stored],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: td.i32, a1: td.i32, a2: td.i32, a_line: td.i32, a_step: td.i32, a_offset: td.i32,
        b0: td.i32, b1: td.i32, b2: td.i32, b_line: td.i32, b_step: td.i32, b_offset: td.i32,
        matrices: td.i32, chunk: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, dtype)
        right = td.shared(stages * b_size, other)
        if split > 1:
            whole = td.shared(rows * whole_pitch, two)
        else:
            parked = td.shared(threads // _LANES * warp_parked, pair)
        barriers = td.shared(2 * stages, td.u64)
        t = td.thread_idx.x
        group = t // GROUP
        warp = t // _LANES % 4
        lane = t % _LANES
        down = (m + unit_rows - 1) // unit_rows
        side = (n + unit_columns - 1) // unit_columns
        steps = ((chunk if split > 1 else k) + depth - 1) // depth
        tiles = down * side * matrices
        # Sets of blocks that share the inner axis: one where there are no clusters.
        shares = (k + chunk - 1) // chunk if split > 1 else 1
        share = td.block_idx.x // sharing % shares
        blocks = td.grid_dim.x // sharing // shares
        first = td.block_idx.x // sharing // shares
        rank = td.block_idx.x % sharing
        # In parts, a block has an equal share of all steps: those from `begin` on to `end`.
        begin = 0
        end = 0
        if parts:
            each = tiles * steps // blocks
            more = tiles * steps - each * blocks
            begin = first * each + td.minimum(first, more)
            end = begin + each + td.where(first < more, 1, 0)
        tile_of_first = begin // steps if parts else first
        stop = (end + steps - 1) // steps if parts else tiles
        stride = 1 if parts else blocks
        # Steps and offsets are counted in vectors of four.
        a_start, b_start = a_offset * 4, b_offset * 4
        a_stack, b_stack = a0 * 4, b0 * 4
        a_far = (a_line if a_near else a_step) * 4
        b_far = (b_line if b_near else b_step) * 4
        prepare(barriers, stages, cluster, sharing, copiers)
        # What is filled next: the tile and its place, the step of it, the stage and its parity.
        coming = tile_of_first
        coming_step = begin - coming * steps if parts else 0
        coming_stage = 0
        coming_parity = 1
        coming_z, down_at, side_at = place_of(coming, down, side)
        coming_row = down_at * unit_rows + rank % tall * rows
        coming_column = side_at * unit_columns + rank // tall * columns
        for _ in range(stages):
            if is_left(coming, coming_step, steps, tiles, end):
                (coming, coming_step, coming_stage, coming_parity, coming_z, coming_row,
                 coming_column) = load_next(
                    left, right, barriers, a, b, m, n, k, matrices, chunk, down, side,
                    blocks, rank, share, a_start, a_far, a_stack, b_start, b_far, b_stack,
                    coming, coming_step, coming_stage, coming_parity, coming_z,
                    coming_row, coming_column,
                )  # fmt: skip
        # What is multiplied next, and what was before.
        stage = 0
        parity = 0
        before = 0
        sums = td.local(across, sums_type)
        taken = td.local(2, two)
        totals = td.local(at_once, sums_type)
        for tile in range(tile_of_first, stop, stride):
            for j in td.static_range(across):
                sums[j] = sums_type(0)
            from_step = td.maximum(begin - tile * steps, 0) if parts else 0
            to_step = td.minimum(end - tile * steps, steps) if parts else steps
            for step in range(to_step - from_step):
                wait(barriers, stage, parity)
                multiply(
                    sums, left, stage * a_size + group * group_size, right, stage * b_size,
                    a_near, b_near,
                )  # fmt: skip
                if step > 0:
                    settle(1)
                    release(barriers, before)
                    if is_left(coming, coming_step, steps, tiles, end):
                        (coming, coming_step, coming_stage, coming_parity, coming_z, coming_row,
                         coming_column) = load_next(
                            left, right, barriers, a, b, m, n, k, matrices, chunk, down, side,
                            blocks, rank, share, a_start, a_far, a_stack, b_start, b_far, b_stack,
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
            if is_left(coming, coming_step, steps, tiles, end):
                (coming, coming_step, coming_stage, coming_parity, coming_z, coming_row,
                 coming_column) = load_next(
                    left, right, barriers, a, b, m, n, k, matrices, chunk, down, side,
                    blocks, rank, share, a_start, a_far, a_stack, b_start, b_far, b_stack,
                    coming, coming_step, coming_stage, coming_parity, coming_z,
                    coming_row, coming_column,
                )  # fmt: skip
            z, down_at, side_at = place_of(tile, down, side)
            row = down_at * unit_rows + rank % tall * rows
            column = side_at * unit_columns + rank // tall * columns
            if split > 1:
                # Each block adds up some rows of the sums of all that share the inner axis.
                if tile != first:
                    meet()
                spot = (group * ROWS + warp * 16 + lane // 4) * whole_pitch + lane % 4
                for j in td.static_range(across):
                    found = sums[j]
                    whole[spot + j * 4] = two(found.x, found.y)
                    whole[spot + j * 4 + 8 * whole_pitch] = two(found.z, found.w)
                meet()
                top = rows // shares * share
                for i in range(iterations * split // shares // at_once):
                    for item in td.static_range(at_once):
                        number = (i * at_once + item) * threads + t
                        spot = (top + number // row_threads) * whole_pitch
                        spot += number % row_threads * 2
                        totals[item] = sums_type(0)
                        for source in td.static_range(split):
                            if source < shares:
                                take(taken, whole, spot, source * sharing + rank)
                                low, high = taken[0], taken[1]
                                totals[item] += sums_type(low.x, low.y, high.x, high.y)
                    for item in td.static_range(at_once):
                        number = (i * at_once + item) * threads + t
                        to = row + top + number // row_threads
                        at = column + number % row_threads * 4
                        keep(c, td.vec4[made](totals[item]), m, n, z, to, at)
                continue
            row += group * ROWS + warp * 16
            if parts:
                # The number of this part of the tile. Where other tiles have more parts, the block
                # of the last one fills these with zeros.
                before_tile, longer = tile * steps, more * (each + 1)
                number = first - td.where(
                    before_tile < longer,
                    before_tile // (each + 1),
                    more + (before_tile - longer) // each,
                )
                for part in range(number, td.where(to_step == steps, chunk, number + 1)):
                    plane = part * matrices + z
                    mine = part == number
                    for j in td.static_range(across):
                        found = sums[j]
                        at = column + j * 8 + lane % 4 * 2
                        to = row + lane // 4
                        nothing = summed(0)
                        keep_part(
                            c, td.where(mine, found.x, nothing), td.where(mine, found.y, nothing),
                            m, n, plane, to, at,
                        )  # fmt: skip
                        keep_part(
                            c, td.where(mine, found.z, nothing), td.where(mine, found.w, nothing),
                            m, n, plane, to + 8, at,
                        )  # fmt: skip
                continue
            # A warp's sums go through shared memory, 128 bytes of lines at a time, so that it
            # stores whole lines of them. The places are a register and constants: with one of their
            # own each, there would be too few registers for what the epilogue loads.
            far = lane // part_lanes
            near = lane % part_lanes
            into = t // _LANES * warp_parked + lane // 4 * pitch + lane % 4
            out_of = t // _LANES * warp_parked + far * pitch + near * 2
            for part in td.static_range(columns // part_columns):
                for j in td.static_range(part_columns // 8):
                    found = sums[part * (part_columns // 8) + j]
                    parked[into + j * 4] = pair(two(found.x, found.y))
                    parked[into + (j * 4 + 8 * pitch)] = pair(two(found.z, found.w))
                td.sync_subgroup()
                for i in td.static_range(16 // part_rows):
                    to = row + far + i * part_rows
                    at = column + near * 4 + part * part_columns
                    low = parked[out_of + i * part_rows * pitch]
                    high = parked[out_of + (i * part_rows * pitch + 1)]
                    total = td.vec4[made](four(low.x, low.y, high.x, high.y))
                    keep(c, total, m, n, z, to, at)
                td.sync_subgroup()
        leave()

    return multiply_groups

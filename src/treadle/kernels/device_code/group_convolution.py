"""Convolutions of 16-bit floats, and of TF32, by groups of 128 threads: products of packed weights
and a padded image (`convolution_packing`).

Rows are output channels, columns places of the padded image, and the inner axis are the taps, with
the channels of a group within each tap, 128 bytes at a time. In a padded image a tap is the same
distance from each window's beginning. So the tile of a step is a box of lines that follow each
other, as of a matrix, and everything else is as in `group_product`: a block stays for several
tiles, and one of its threads keeps boxes on their way, across the ends of tiles. Columns whose
windows do not exist, which begin in the padding behind a line, are computed and not stored.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.ir.stages import GROUP, LINE_BYTES, ROWS
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.convolution_packing import Paddings, distance_of
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

MOST_SHIFTS = 512  # taps whose distances lie in shared memory
_LANES = 32
_HALF = 2  # bytes
_PITCH = 36  # words from a row of a warp's sums in shared memory to the next: in other banks
_PARKED = 16 * _PITCH  # words of a warp
_MOST_LINES = 256  # of a copy, and columns of a group


class ConvolutionTile(NamedTuple):
    """What a block computes at a time: `rows` output channels at `columns` places. Groups of 128
    threads have 64 rows each, and `across` of them share the columns. Tiles of 128 bytes of the
    inner axis lie in `stages`."""

    rows: int
    columns: int
    across: int
    stages: int

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.rows // ROWS * self.across * GROUP

    @property
    def stage_bytes(self) -> int:
        """The tiles of a stage."""
        return LINE_BYTES * (self.rows + self.columns)

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        parked = self.threads // _LANES * _PARKED * 4
        return self.stages * (self.stage_bytes + 16) + parked + 4 * MOST_SHIFTS


@td.func
def _stored(axes, paddings, batch, column, channels, channel):
    """Where the result for a place of the padded image is, of one of the channels; negative if it
    is none."""
    # Unsigned, since that division is short.
    lines = td.u32(column) // td.u32(paddings.x.length)
    ox = column - td.i32(lines) * paddings.x.length
    planes = lines // td.u32(paddings.y.length)
    oy = td.i32(lines - planes * td.u32(paddings.y.length))
    image = planes // td.u32(paddings.z.length)
    oz = td.i32(planes - image * td.u32(paddings.z.length))
    place = td.i32(image) * channels + channel
    place = place * axes.z.out_size + oz * axes.z.out_step + axes.z.out_start
    place = place * axes.y.out_size + oy * axes.y.out_step + axes.y.out_start
    place = place * axes.x.out_size + ox * axes.x.out_step + axes.x.out_start
    there = td.i32(image) < batch and oz < axes.z.count
    there = there and oy < axes.y.count and ox < axes.x.count
    return place if there else -1


@functools.cache
def group_convolver(
    dtype: DType, tile: ConvolutionTile, biased: bool, pairs: bool, parts: bool = False
) -> Kernel:
    """A kernel whose blocks compute tiles of a convolution of a padded image and packed weights.
    Its grid is along x, of any number of blocks. With `pairs` two neighbouring elements of a result
    of 16 bits are stored at once: lines of the padded image and of the result have an even length.

    `deep` are the elements of an output channel's weights, `padded` the channels of a group in the
    image, whose places, each of `far` elements, are `places` for each of the remainders. With
    `parts` the inner axis is divided into parts of `chunk` steps, and float32 sums, without the
    bias, are stored to parts of the result of `size` elements."""
    rows, columns, across, stages = tile
    depth = LINE_BYTES // dtype.itemsize
    own = columns // across  # of a group
    count = own // 8
    made: Any = td.f32 if parts else dtype
    narrow = made.itemsize == _HALF
    # A word of a row of the result: two elements of 16 bits, or one.
    word: Any = td.vec2[made] if narrow else made
    per_word = 2 if narrow else 1
    line = _LANES * per_word  # columns that a warp stores at once
    stored: Any = word if pairs and narrow else made
    threads = tile.threads
    groups_down = rows // ROWS
    a_size, b_size = rows * depth, columns * depth
    boxes = -(-columns // _MOST_LINES)
    box_lines = columns // boxes
    stage_bytes = tile.stage_bytes
    sums_type = td.vec4[td.f32]
    prepare, claim, copy = builtins.prepare_stages, builtins.claim_stage, builtins.copy_tile
    wait, release = builtins.wait_stage, builtins.release_stage
    multiply, settle = builtins.multiply_tiles, builtins.settle_products

    @td.func
    def load_next(
        left, right, barriers, shifts, w, x, deep, outs, groups, padded, far, channels, total,
        chunk, steps, down, side, blocks,
        tile, step, tap, channel, stage, parity,
    ):  # fmt: skip
        """Fill the next stage; what is filled after it."""
        claim(barriers, stage, parity, stage_bytes)
        across_tile = tile // down
        row = (tile - across_tile * down) * rows
        number = across_tile // side
        position = (across_tile - number * side) * columns
        part = number // groups if parts else 0
        group = number - part * groups if parts else number
        end = td.minimum((part + 1) * chunk, steps) if parts else steps
        copy(
            left, stage * a_size, barriers, stage, w, 0,
            (deep, outs, groups), (deep, channels),
            (step * depth, row, group), rows,
        )  # fmt: skip
        place = position + shifts[tap]
        for box in td.static_range(boxes):
            copy(
                right, stage * b_size + box * box_lines * depth, barriers, stage, x, 0,
                (padded, total, groups), (far, padded),
                (channel, place + box * box_lines, group), box_lines,
            )  # fmt: skip
        stage += 1
        if stage == stages:
            stage = 0
            parity = 1 - parity
        step += 1
        channel += depth
        if channel >= padded:
            channel = 0
            tap += 1
        if step == end:
            tile += blocks
            step = 0
            tap = 0
            channel = 0
            if parts:
                step = tile // (down * side * groups) * chunk
                deep_steps = (padded + depth - 1) // depth
                tap = step // deep_steps
                channel = (step - tap * deep_steps) * depth
        return tile, step, tap, channel, stage, parity

    @td.kernel(checked=False)
    def convolve_groups(
        w: td.Array[dtype], x: td.Array[dtype], bias: td.Array[dtype], out: td.Array[stored],
        axes: Axes, paddings: Paddings,
        batch: td.i32, groups: td.i32, outs: td.i32, padded: td.i32, deep: td.i32, far: td.i32,
        channels: td.i32, places: td.i32, total: td.i32, chunk: td.i32, count_parts: td.i32,
        size: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, dtype)
        right = td.shared(stages * b_size, dtype)
        parked = td.shared(threads // _LANES * _PARKED, word)
        shifts = td.shared(MOST_SHIFTS, td.i32)
        barriers = td.shared(2 * stages, td.u64)
        t = td.thread_idx.x
        warp = t // _LANES % 4
        lane = t % _LANES
        group_down = t // GROUP % groups_down
        group_across = t // GROUP // groups_down
        taps = axes.z.taps * axes.y.taps * axes.x.taps
        for first in range(0, taps, threads):
            # Threads without a tap do the last one's work: all stay together.
            tap = td.minimum(first + t, taps - 1)
            shifts[tap] = distance_of(axes, paddings, places, tap)
        td.sync_threads()
        down = (outs + rows - 1) // rows
        side = (places + columns - 1) // columns
        deep_steps = (padded + depth - 1) // depth
        steps = taps * deep_steps
        tiles = down * side * groups * (count_parts if parts else 1)
        blocks = td.grid_dim.x
        out_plane = axes.z.out_size * axes.y.out_size * axes.x.out_size
        prepare(barriers, stages)
        # What is filled next: the tile, the step of it, its tap and channel, the stage and its
        # parity.
        coming = td.block_idx.x
        coming_step = 0
        coming_tap = 0
        coming_channel = 0
        if parts:
            coming_step = coming // (down * side * groups) * chunk
            coming_tap = coming_step // deep_steps
            coming_channel = (coming_step - coming_tap * deep_steps) * depth
        coming_stage = 0
        coming_parity = 1
        for _ in range(stages):
            if coming < tiles:
                (coming, coming_step, coming_tap, coming_channel, coming_stage,
                 coming_parity) = load_next(
                    left, right, barriers, shifts, w, x, deep, outs, groups, padded, far, channels,
                    total, chunk, steps, down, side, blocks,
                    coming, coming_step, coming_tap, coming_channel, coming_stage, coming_parity,
                )  # fmt: skip
        stage = 0
        parity = 0
        before = 0
        sums = td.local(count, sums_type)
        for tile in range(td.block_idx.x, tiles, blocks):
            across_tile = tile // down
            row = (tile - across_tile * down) * rows + group_down * ROWS + warp * 16
            number = across_tile // side
            position = (across_tile - number * side) * columns + group_across * own
            part = number // groups if parts else 0
            group = number - part * groups if parts else number
            begin = part * chunk
            end = td.minimum(begin + chunk, steps) if parts else steps
            for j in td.static_range(count):
                sums[j] = sums_type(0)
            for step in range(begin, end):
                wait(barriers, stage, parity)
                multiply(
                    sums, left, stage * a_size + group_down * (ROWS * depth),
                    right, stage * b_size + group_across * (own * depth), True, True,
                )  # fmt: skip
                if step > begin:
                    settle(1)
                    release(barriers, before)
                    if coming < tiles:
                        (coming, coming_step, coming_tap, coming_channel, coming_stage,
                         coming_parity) = load_next(
                            left, right, barriers, shifts, w, x, deep, outs, groups, padded, far,
                            channels, total, chunk, steps, down, side, blocks,
                            coming, coming_step, coming_tap, coming_channel, coming_stage,
                            coming_parity,
                        )  # fmt: skip
                before = stage
                stage += 1
                if stage == stages:
                    stage = 0
                    parity = 1 - parity
            settle(0)
            release(barriers, before)
            if coming < tiles:
                (coming, coming_step, coming_tap, coming_channel, coming_stage,
                 coming_parity) = load_next(
                    left, right, barriers, shifts, w, x, deep, outs, groups, padded, far, channels,
                    total, chunk, steps, down, side, blocks,
                    coming, coming_step, coming_tap, coming_channel, coming_stage, coming_parity,
                )  # fmt: skip
            high = td.f32(0)
            low = td.f32(0)
            if biased:
                if row + lane // 4 < outs:
                    high = td.f32(bias[group * outs + row + lane // 4])
                if row + lane // 4 + 8 < outs:
                    low = td.f32(bias[group * outs + row + lane // 4 + 8])
            # A warp's sums go through shared memory, so that it stores whole lines of them.
            mine = t // _LANES * _PARKED
            for turn in td.static_range(own // line):
                for j in td.static_range(line // 8):
                    found = sums[turn * (line // 8) + j]
                    spot = mine + lane // 4 * _PITCH + (j * 4 + lane % 4) * (2 // per_word)
                    if narrow:
                        parked[spot] = word(td.vec2[td.f32](found.x + high, found.y + high))
                        spot += 8 * _PITCH
                        parked[spot] = word(td.vec2[td.f32](found.z + low, found.w + low))
                    else:
                        parked[spot] = made(found.x + high)
                        parked[spot + 1] = made(found.y + high)
                        spot += 8 * _PITCH
                        parked[spot] = made(found.z + low)
                        parked[spot + 1] = made(found.w + low)
                td.sync_subgroup()
                # Of the lane's places in the padded image, those in the result.
                spots = td.local(per_word, td.i32)
                for e in td.static_range(per_word):
                    column = position + turn * line + lane * per_word + e
                    place = _stored(
                        axes, paddings, batch, column, groups * outs, group * outs + row
                    )
                    if parts and place >= 0:
                        place += part * size
                    spots[e] = place
                for r in td.static_range(16):
                    held = parked[mine + r * _PITCH + lane]
                    if row + r < outs:
                        if narrow and not pairs:
                            if spots[0] >= 0:
                                out[spots[0] + r * out_plane] = held.x
                            if spots[1] >= 0:
                                out[spots[1] + r * out_plane] = held.y
                        else:
                            if spots[0] >= 0:
                                out[(spots[0] + r * out_plane) // per_word] = held
                td.sync_subgroup()

    return convolve_groups

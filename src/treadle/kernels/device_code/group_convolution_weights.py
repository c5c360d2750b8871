"""Gradients of convolutions with respect to their weights, by groups of 128 threads.

Rows are output channels, columns the weights of an output channel, and the inner axis are the
places of a padded image, of which each block sums one split. The gradient of the result is padded
as the image is, with a zero wherever no window begins: so the tile of a step is a box of places
that follow each other, of either one. A place has its channels behind each other. Instructions turn
such tiles of 16-bit floats alone. TF32 would need boxes of channels whose places are behind each
other, and these would begin at any place, where the card copies from multiples of 16 bytes.

Such a zero meets elements of the image, and infinity times zero is NaN. Therefore a weight whose
sum is NaN is summed again, over windows that exist alone (`padded_weight_adder`).
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.ir.stages import DEPTH, GROUP, LINE, ROWS
from treadle.kernels.device_code.convolution import Axes
from treadle.kernels.device_code.convolution_packing import Paddings, start_of
from treadle.kernels.device_code.group_convolution import ConvolutionTile
from treadle.lang import builtins
from treadle.lang.decorators import Kernel

_LANES = 32


@functools.cache
def group_weight_summer(dtype: DType, tile: ConvolutionTile) -> Kernel:
    """A kernel of 16-bit floats whose blocks each sum a split of `length` steps for a tile of the
    weights, of a padded gradient and a padded image. `padded` and `out_padded` are the channels of
    a group in these, `deep` the weights of an output channel, with a multiple of 64 channels for
    each tap; a split's sums are (groups, outs, deep). `far` and `out_far` are the elements from a
    place to the next."""
    rows, columns, across, stages = tile
    depth = DEPTH
    own = columns // across
    count = own // 8
    groups_down = rows // ROWS
    a_boxes, b_boxes = rows // LINE, columns // LINE
    a_size, b_size, box_size = rows * depth, columns * depth, LINE * depth
    stage_bytes = tile.stage_bytes
    sums_type = td.vec4[td.f32]
    prepare, claim, copy = builtins.prepare_stages, builtins.claim_stage, builtins.copy_tile
    wait, release = builtins.wait_stage, builtins.release_stage
    multiply, settle = builtins.multiply_tiles, builtins.settle_products

    @td.func
    def load_next(
        left, right, barriers, gradient, x, padded, out_padded, far, out_far, groups, places,
        total, row, group, starts, channels, step, stage, parity,
    ):  # fmt: skip
        """Fill the next stage; what is filled after it."""
        claim(barriers, stage, parity, stage_bytes)
        place = step * depth
        for box in td.static_range(a_boxes):
            line = row + box * LINE
            copy(
                left, stage * a_size + box * box_size, barriers, stage, gradient, 0,
                (out_padded, places, groups), (out_far, out_padded), (line, place, group), LINE,
            )  # fmt: skip
        for box in td.static_range(b_boxes):
            copy(
                right, stage * b_size + box * box_size, barriers, stage, x, 0,
                (padded, total, groups), (far, padded),
                (channels[box], place + starts[box], group), LINE,
            )  # fmt: skip
        stage += 1
        if stage == stages:
            stage = 0
            parity = 1 - parity
        return step + 1, stage, parity

    @td.kernel(checked=False)
    def sum_weights_in_groups(
        gradient: td.Array[dtype], x: td.Array[dtype], out: td.Array[td.vec2[td.f32]],
        axes: Axes, paddings: Paddings, groups: td.i32, outs: td.i32, padded: td.i32,
        out_padded: td.i32, far: td.i32, out_far: td.i32, deep: td.i32, places: td.i32,
        total: td.i32, length: td.i32,
    ):  # fmt: skip
        left = td.shared(stages * a_size, dtype)
        right = td.shared(stages * b_size, dtype)
        barriers = td.shared(2 * stages, td.u64)
        t = td.thread_idx.x
        warp = t // _LANES % 4
        lane = t % _LANES
        group_down = t // GROUP % groups_down
        group_across = t // GROUP // groups_down
        # Blocks of the same places follow each other, and share what they read.
        down = (outs + rows - 1) // rows
        column_tile = td.block_idx.x // down
        row = (td.block_idx.x - column_tile * down) * rows
        group = td.block_idx.y
        step = td.block_idx.z * length
        end = td.minimum(step + length, (places + depth - 1) // depth)
        of_tap = (padded + LINE - 1) // LINE
        # Of each 64 columns: their tap and first channel.
        starts = td.local(b_boxes, td.i32)
        channels = td.local(b_boxes, td.i32)
        for box in td.static_range(b_boxes):
            # Past the last ones these are read again; the results are not stored.
            lines = td.minimum(column_tile * b_boxes + box, deep // LINE - 1)
            tap = lines // of_tap
            channels[box] = (lines - tap * of_tap) * LINE
            remainders, start = start_of(axes, paddings, tap)
            starts[box] = remainders * places + start
        prepare(barriers, stages)
        coming = step
        coming_stage = 0
        coming_parity = 1
        for _ in range(stages):
            if coming < end:
                coming, coming_stage, coming_parity = load_next(
                    left, right, barriers, gradient, x, padded, out_padded, far, out_far, groups,
                    places, total, row, group, starts, channels, coming, coming_stage,
                    coming_parity,
                )  # fmt: skip
        stage = 0
        parity = 0
        before = 0
        sums = td.local(count, sums_type)
        for j in td.static_range(count):
            sums[j] = sums_type(0)
        for number in range(step, end):
            wait(barriers, stage, parity)
            multiply(
                sums, left, stage * a_size + group_down * box_size,
                right, stage * b_size + group_across * (own * depth), False, False,
            )  # fmt: skip
            if number > step:
                settle(1)
                release(barriers, before)
                if coming < end:
                    coming, coming_stage, coming_parity = load_next(
                        left, right, barriers, gradient, x, padded, out_padded, far, out_far,
                        groups, places, total, row, group, starts, channels, coming, coming_stage,
                        coming_parity,
                    )  # fmt: skip
            before = stage
            stage += 1
            if stage == stages:
                stage = 0
                parity = 1 - parity
        settle(0)
        o = row + group_down * ROWS + warp * 16 + lane // 4
        start = (td.block_idx.z * groups + group) * outs + o
        for j in td.static_range(count):
            column = column_tile * columns + group_across * own + j * 8 + lane % 4 * 2
            if column < deep:
                found = sums[j]
                if o < outs:
                    out[(start * deep + column) // 2] = td.vec2[td.f32](found.x, found.y)
                if o + 8 < outs:
                    out[((start + 8) * deep + column) // 2] = td.vec2[td.f32](found.z, found.w)

    return sum_weights_in_groups

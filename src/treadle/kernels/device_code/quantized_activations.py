"""The packing of rows of activations for products with quantized matrices.

Activations are packed once for all matrices that multiply them. As bytes, 32 of them have a scale,
and bytes of weights are multiplied by bytes of activations, four at a time; as floats they stay as
they are. With them lie their sums over groups and halves of groups: what is taken from bytes of
weights, or is a group's minimum, is multiplied by a sum.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.lang.decorators import Kernel

LANES = 8  # threads for the words of a group
PACKED = 12  # words of a group of bytes: 8 of elements, the scale, the sum, two sums of halves
PACKED_FLOATS = 36  # 32 elements, three sums, nothing
LARGEST = 127.0
SMALLEST = 1e-30  # below which activations count as zeros


class Packing(NamedTuple):
    """How activations lie in memory. `serial` is for the CPU: of all groups of a row first the
    elements, then the scales, the sums, the sums of halves. Otherwise, they alternate by groups.
    `paired`, if serial: in the order in which formats that are paired have their elements."""

    floats: bool
    serial: bool
    paired: bool


@functools.cache
def packer(packing: Packing, together: int) -> Kernel:
    """A kernel that packs groups, so many in a block; its grid is (blocks of a row, rows)."""
    floats, serial, paired = packing
    kind: Any = td.f32 if floats else td.i32
    per_group = PACKED_FLOATS if floats else PACKED
    elements = 32 if floats else 8

    @td.func
    def as_bits(value):
        return value if floats else td.bitcast(value, td.i32)

    @td.kernel(checked=False)
    def pack(x: td.Array[td.vec4[td.f32]], out: td.Array[kind], groups: td.i32):
        t = td.thread_idx.x
        lane = t if together == 1 else t % LANES
        first = 0 if together == 1 else t // LANES * LANES
        group = td.block_idx.x if together == 1 else td.block_idx.x * together + t // LANES
        row = td.block_idx.y
        tops = td.shared(LANES * together, td.f32)
        sums = td.shared(LANES * together, td.f32)
        value = td.vec4[td.f32](0.0)
        if group < groups:
            value = x[(row * groups + group) * LANES + lane]
        scale = td.f32(1.0)
        total = value.x + value.y + value.z + value.w
        if not floats:
            low = td.maximum(td.abs(value.x), td.abs(value.y))
            tops[t] = td.maximum(low, td.maximum(td.abs(value.z), td.abs(value.w)))
            td.sync_threads()
            top = tops[first]
            for k in td.static_range(1, LANES):
                top = td.maximum(top, tops[first + k])
            scale = top / LARGEST
            inverse = LARGEST / top if top > SMALLEST else td.f32(0.0)
            b0 = td.i32(td.round(value.x * inverse))
            b1 = td.i32(td.round(value.y * inverse))
            b2 = td.i32(td.round(value.z * inverse))
            b3 = td.i32(td.round(value.w * inverse))
            word = (b0 & 255) | ((b1 & 255) << 8) | ((b2 & 255) << 16) | (b3 << 24)
            total = td.f32(b0 + b1 + b2 + b3) * scale
        sums[t] = total
        td.sync_threads()
        if group < groups:
            start = row * groups * per_group
            place = lane
            if paired:
                place = group // 2 * 16 + lane // 4 * 8 + group % 2 * 4 + lane % 4
            elif serial:
                place = group * LANES + lane
            else:
                start += group * per_group
            if not floats:
                out[start + place] = word
            elif serial:
                at = start + place // LANES * 32 + place % LANES
                out[at] = value.x
                out[at + 8] = value.y
                out[at + 16] = value.z
                out[at + 24] = value.w
            else:
                out[start + place * 4] = value.x
                out[start + place * 4 + 1] = value.y
                out[start + place * 4 + 2] = value.z
                out[start + place * 4 + 3] = value.w
            if lane == 0:
                half = (sums[first] + sums[first + 1]) + (sums[first + 2] + sums[first + 3])
                other = (sums[first + 4] + sums[first + 5]) + (sums[first + 6] + sums[first + 7])
                if serial:
                    start += groups * elements
                    out[start + group] = as_bits(scale)
                    out[start + groups + group] = as_bits(half + other)
                    out[start + 2 * groups + 2 * group] = as_bits(half)
                    out[start + 2 * groups + 2 * group + 1] = as_bits(other)
                else:
                    start += elements
                    out[start] = as_bits(scale)
                    out[start + 1] = as_bits(half + other)
                    out[start + 2] = as_bits(half)
                    out[start + 3] = as_bits(other)

    return pack

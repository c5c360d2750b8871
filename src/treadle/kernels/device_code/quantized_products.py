"""Products of a few rows of activations with quantized matrices, and the packing of these rows.

Activations are packed once for all matrices that multiply them. As bytes, 32 of them have a scale,
and bytes of weights are multiplied by bytes of activations, four at a time; as floats they stay as
they are. With them lie their sums over groups and halves of groups: what is taken from bytes of
weights, or is a group's minimum, is multiplied by a sum.

On GPUs a warp computes a few rows of the result, and a thread reads vec4s. On the CPU the eight
threads of a block are the lanes of a vector, and a block computes one row, so that memory is read
from one end to the other: processors fetch ahead along few streams. Scales are computed for
eight groups at once, a lane each.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.quantized_formats import BLOCK, FORMS
from treadle.lang.decorators import Function, Kernel

LANES = 8  # threads for the words of a group
PACKED = 12  # words of a group of bytes: 8 of elements, the scale, the sum, two sums of halves
PACKED_FLOATS = 36  # 32 elements, three sums, nothing
_LARGEST = 127.0
_SMALLEST = 1e-30  # below which activations count as zeros


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
            scale = top / _LARGEST
            inverse = _LARGEST / top if top > _SMALLEST else td.f32(0.0)
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


class Work(NamedTuple):
    """What a kernel computes: a format, whether activations are floats, and their rows."""

    format: str
    floats: bool
    rows: int


# --- the CPU -------------------------------------------------------------------------------------


@functools.cache
def multiplier_cpu(work: Work) -> Kernel:
    """A kernel whose blocks, of `LANES` threads, compute a row of the matrix each."""
    form, floats, many = FORMS[work.format], work.floats, work.rows
    step, paired, halves = form.step, form.paired, form.halves
    unpack, scale = form.unpack(1), form.scale
    least = form.least or _nothing
    # Unsigned bytes by signed ones are one instruction: signed ones are moved by 128.
    moved = form.signed and not floats
    center = td.f32(128 if moved else form.center)
    signed = form.signed
    shifted = form.least is not None or moved or form.center > 0
    parts = 2 if halves else 1
    factors_of = many if not halves else 1
    kind: Any = td.f32 if floats else td.i32
    per_group, elements = (PACKED_FLOATS, 32) if floats else (PACKED, 8)

    @td.func
    def number(bits):
        return bits if floats else td.bitcast(bits, td.f32)

    @td.func
    def product(word, act, at):
        """The products of a word of bytes with a word's elements, in a lane."""
        total = td.f32(0.0)
        if floats:
            for k in td.static_range(4):
                if signed:
                    byte = (td.i32(word) << (24 - 8 * k)) >> 24
                else:
                    byte = td.i32((word >> (8 * k)) & 255)
                total += td.f32(byte) * act[at + k * LANES]
        elif moved:
            total = td.f32(td.dot4_u8i8(word ^ 0x80808080, act[at], 0))
        else:
            total = td.f32(td.dot4_u8i8(word, act[at], 0))
        return total

    @td.kernel(checked=False)
    def multiply(
        values: td.Array[td.u32], high: td.Array[td.u32], of_blocks, mins_of_blocks, scales, mins,
        act: td.Array[kind], out: td.Array[td.f32], rows: td.i32, groups: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        row = td.block_idx.x
        factors = td.shared(LANES * parts * factors_of, td.f32)
        board = td.shared(many, td.f32)
        words = td.local(step, td.u32)
        sums = td.local(many, td.f32)
        pitch = groups * per_group
        for m in td.static_range(many):
            sums[m] = 0.0
            board[m] = 0.0
        for start in range(0, groups, BLOCK):
            count = td.minimum(groups - start, BLOCK)
            group = row * groups + start
            for j in td.static_range(parts):
                i = j * LANES + t
                if halves or t < count:
                    factor = scale(of_blocks, scales, group, i)
                    shift = -center * factor
                    if least is not _nothing:
                        shift += least(mins_of_blocks, scales, mins, group, i)
                    for m in td.static_range(many):
                        behind = m * pitch + groups * elements
                        if shifted:
                            offset = 2 * groups + 2 * start if halves else groups + start
                            sums[m] += shift * number(act[behind + offset + i])
                        if not halves:
                            scaled = factor
                            if not floats:
                                scaled = factor * number(act[behind + start + i])
                            factors[m * LANES + i] = scaled
                    if halves:
                        factors[i] = factor
            td.sync_threads()
            for s in range(count // step):
                unpack(values, high, group, s, t, words, 0)
                for k in td.static_range(step):
                    for m in td.static_range(many):
                        own = s * step + k
                        at = m * pitch + (start + own) * elements + t
                        if halves:
                            factor = td.where(t < 4, factors[2 * own], factors[2 * own + 1])
                            if not floats:
                                factor *= number(act[m * pitch + groups * elements + start + own])
                        elif paired:
                            here = m * LANES + 2 * s
                            factor = td.where(t < 4, factors[here], factors[here + 1])
                        else:
                            factor = factors[m * LANES + own]
                        sums[m] += product(words[k], act, at) * factor
            td.sync_threads()
        for m in td.static_range(many):
            td.atomic_add(board, m, sums[m])
        td.sync_threads()
        if t == 0:
            for m in td.static_range(many):
                out[m * rows + row] = board[m]

    return multiply


@td.func
def _nothing(min, scales, mins, group, i):
    return td.f32(0.0)

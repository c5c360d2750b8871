"""Products of rows of activations with quantized matrices on the CPU.

For a few rows, the eight threads of a block are the lanes of a vector, which has the words of a
group. A block computes rows of the matrix one after the other, so that memory is read from one end
to the other: processors fetch ahead along few streams. Scales are computed for eight groups at
once, a lane each. For many rows, lanes are rows of the matrix.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.quantized_activations import LANES, PACKED, PACKED_FLOATS
from treadle.kernels.device_code.quantized_formats import BLOCK, FORMS, no_minimum
from treadle.lang.decorators import Kernel

LINES = 16  # rows of a block
CHUNK = 64  # groups whose factors are computed at a time


class CpuWork(NamedTuple):
    """What a kernel computes: a format, whether activations are floats, and their rows."""

    format: str
    floats: bool
    rows: int


@functools.cache
def multiplier_cpu(work: CpuWork) -> Kernel:
    """A kernel whose blocks, of `LANES` threads, compute `LINES` rows of the matrix each,
    one after the other."""
    form, floats, many = FORMS[work.format], work.floats, work.rows
    step, paired, halves = form.step, form.paired, form.halves
    unpack, scale = form.unpack(1), form.scale
    least, has_minima = form.least or no_minimum, form.least is not None
    single, steps, large = step == 1, BLOCK // step, form.large
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

    @td.func
    def prepare(
        of_blocks, mins_of_blocks, scales, mins, act, group, i, start, groups, sums, factors
    ):
        """The factors of eight groups or halves, a lane each, from number `i` of a chunk on; what
        centers and minima add to the sums."""
        t = td.thread_idx.x
        own = i + t
        near = group + i // parts
        factor = scale(of_blocks, scales, near, t)
        shift = -center * factor
        if has_minima:
            shift += least(mins_of_blocks, scales, mins, near, t)
        for m in td.static_range(many):
            behind = m * groups * per_group + groups * elements
            if shifted:
                offset = 2 * groups + 2 * start if halves else groups + start
                sums[2 * m] += shift * number(act[behind + offset + own])
            if not halves:
                scaled = factor
                if not floats:
                    scaled = factor * number(act[behind + start + own])
                factors[m * CHUNK + own] = scaled
        if halves:
            factors[own] = factor

    @td.func
    def accumulate(act, word, factors, start, first, k, groups, sums):
        """Add what a word of a group has to the sums."""
        t = td.thread_idx.x
        own = first + k
        for m in td.static_range(many):
            at = m * groups * per_group + (start + own) * elements + t
            if halves:
                factor = td.where(t < 4, factors[2 * own], factors[2 * own + 1])
                if not floats:
                    scales_at = m * groups * per_group + groups * elements
                    factor *= number(act[scales_at + start + own])
            elif paired:
                here = m * CHUNK + first
                factor = td.where(t < 4, factors[here], factors[here + 1])
            else:
                factor = factors[m * CHUNK + own]
            sums[2 * m + k % 2] += product(word, act, at) * factor

    @td.func
    def multiply_row(
        values, high, of_blocks, mins_of_blocks, scales, mins, act, row, line, groups, words,
        factors, board, sums,
    ):  # fmt: skip
        t = td.thread_idx.x
        for m in td.static_range(many):
            sums[2 * m] = 0.0
            sums[2 * m + 1] = 0.0
        for start in range(0, groups, CHUNK):
            count = td.minimum(groups - start, CHUNK)
            group = row * groups + start
            whole = count * parts // LANES * LANES
            for i in range(0, whole, LANES):
                prepare(
                    of_blocks, mins_of_blocks, scales, mins, act, group, i, start, groups, sums,
                    factors,
                )  # fmt: skip
            if whole + t < count * parts:
                prepare(
                    of_blocks, mins_of_blocks, scales, mins, act, group, whole, start, groups, sums,
                    factors,
                )  # fmt: skip
            td.sync_threads()
            if single:
                for s in range(0, count // 2 * 2, 2):
                    unpack(values, high, group, s, t, words, 0)
                    unpack(values, high, group, s + 1, t, words, 1)
                    for k in td.static_range(2):
                        accumulate(act, words[k], factors, start, s, k, groups, sums)
                if count % 2 > 0:
                    unpack(values, high, group, count - 1, t, words, 0)
                    accumulate(act, words[0], factors, start, count - 1, 0, groups, sums)
            elif large:
                for b in range(0, count, BLOCK):
                    for s in td.static_range(steps):
                        unpack(values, high, group + b, s, t, words, 0)
                        for k in td.static_range(step):
                            accumulate(act, words[k], factors, start, b + s * step, k, groups, sums)
            else:
                for s in range(0, count, step):
                    unpack(values, high, group + s, 0, t, words, 0)
                    for k in td.static_range(step):
                        accumulate(act, words[k], factors, start, s, k, groups, sums)
            td.sync_threads()
        for m in td.static_range(many):
            td.atomic_add(board, m * LINES + line, sums[2 * m] + sums[2 * m + 1])
        td.sync_threads()

    @td.kernel(checked=False)
    def multiply(
        values: td.Array[td.u32], high: td.Array[td.u32], of_blocks, mins_of_blocks, scales, mins,
        act: td.Array[kind], out: td.Array[td.f32], rows: td.i32, groups: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        factors = td.shared(CHUNK * parts * factors_of, td.f32)
        board = td.shared(many * LINES, td.f32)
        words = td.local(2 if single else step, td.u32)
        sums = td.local(2 * many, td.f32)
        first = td.block_idx.x * LINES
        lines = td.minimum(rows - first, LINES)
        for k in range(0, many * LINES, LANES):
            board[k + t] = 0.0
        for line in range(lines):
            multiply_row(
                values, high, of_blocks, mins_of_blocks, scales, mins, act, first + line, line,
                groups, words, factors, board, sums,
            )  # fmt: skip
        # Whole cache lines are written: with a power of two of rows, those of several activations
        # have the same place in the cache.
        for m in td.static_range(many):
            for k in range(0, lines, LANES):
                if k + t < lines:
                    out[m * rows + first + k + t] = board[m * LINES + k + t]

    return multiply


TILE = 4  # rows of activations that the CPU multiplies at once (`multiply_unpacked` names them)
TILE_LANES = 16  # rows of the matrix
TILE_GROUPS = 32  # whose bytes are in the cache


@functools.cache
def tile_multiplier_cpu(name: str) -> Kernel:
    """A kernel for many rows of activations, as bytes. Its blocks compute `TILE_LANES` rows of the
    matrix, a lane each: the bytes of these rows are unpacked, the words of a lane apart, and
    multiplied by all activations, whose words all lanes have in common. So no sum is over lanes,
    and scales are applied once for a group."""
    form = FORMS[name]
    step, paired, halves, signed = form.step, form.paired, form.halves, form.signed
    unpack, scale = form.unpack(1), form.scale
    least, has_minima = form.least or no_minimum, form.least is not None
    center = td.f32(128 if signed else form.center)
    shifted = has_minima or signed or form.center > 0
    steps, parts = BLOCK // step, 2 if halves else 1
    per_part = LANES // parts
    form_words, high_words = form.words, form.high_words
    pitch = TILE_GROUPS + 1  # groups; lanes then read from different sets of the cache

    @td.func
    def fetch(x, start, near, at, count):
        """Copy adjacent words: processors fetch these ahead, and not what lanes gather."""
        t = td.thread_idx.x
        whole = count // TILE_LANES * TILE_LANES
        for w in range(0, whole, TILE_LANES):
            near[at + w + t] = x[start + w + t]
        if whole + t < count:
            near[at + whole + t] = x[start + whole + t]

    @td.func
    def unpack_lanes(near, near_high, board, deep):
        """The bytes of the groups of each lane's row."""
        t = td.thread_idx.x
        words = td.local(step, td.u32)
        for s in range(deep // step):
            for w in td.static_range(LANES):
                own_group = t * pitch + s // steps * BLOCK
                unpack(near, near_high, own_group, s % steps, w, words, 0)
                for k in td.static_range(step):
                    at = (s * step + k) * LANES + w
                    if paired:
                        at = (2 * s + w // 4) * LANES + w % 4 + 4 * k
                    word = words[k]
                    if signed:
                        word = word ^ 0x80808080
                    board[at * TILE_LANES + t] = word

    @td.func
    def finished(sum, dot, act, place, groups, at, part, factor, shift):
        """A sum, and what a group or a half has to add."""
        behind = place + groups * LANES
        result = sum + td.f32(dot) * (factor * td.bitcast(act[behind + at], td.f32))
        if shifted:
            own = behind + groups + at
            if halves:
                own = behind + 2 * groups + 2 * at + part
            result += shift * td.bitcast(act[own], td.f32)
        return result

    @td.func
    def multiply_unpacked(act, out, board, factors, shifts, row, rows, groups, count, start, deep):
        """Add the products of all activations with the groups that are unpacked to the result.
        Four rows of activations have variables: elements of an array would be a lane's own."""
        t = td.thread_idx.x
        for top in range(0, count, TILE):
            second = td.minimum(top + 1, count - 1)
            third = td.minimum(top + 2, count - 1)
            fourth = td.minimum(top + 3, count - 1)
            p0 = top * groups * PACKED
            p1 = second * groups * PACKED
            p2 = third * groups * PACKED
            p3 = fourth * groups * PACKED
            s0 = td.f32(0.0)
            s1 = td.f32(0.0)
            s2 = td.f32(0.0)
            s3 = td.f32(0.0)
            if start > 0 and row < rows:
                s0 = out[top * rows + row]
                s1 = out[second * rows + row]
                s2 = out[third * rows + row]
                s3 = out[fourth * rows + row]
            for g in range(deep):
                for part in td.static_range(parts):
                    d0 = 0
                    d1 = 0
                    d2 = 0
                    d3 = 0
                    for w in td.static_range(per_part):
                        at = g * LANES + part * per_part + w
                        word = board[at * TILE_LANES + t]
                        own = start * LANES + at
                        d0 = td.dot4_u8i8(word, act[p0 + own], d0)
                        d1 = td.dot4_u8i8(word, act[p1 + own], d1)
                        d2 = td.dot4_u8i8(word, act[p2 + own], d2)
                        d3 = td.dot4_u8i8(word, act[p3 + own], d3)
                    factor = factors[(g * parts + part) * TILE_LANES + t]
                    shift = shifts[(g * parts + part) * TILE_LANES + t]
                    s0 = finished(s0, d0, act, p0, groups, start + g, part, factor, shift)
                    s1 = finished(s1, d1, act, p1, groups, start + g, part, factor, shift)
                    s2 = finished(s2, d2, act, p2, groups, start + g, part, factor, shift)
                    s3 = finished(s3, d3, act, p3, groups, start + g, part, factor, shift)
            if row < rows:
                out[top * rows + row] = s0
                if top + 1 < count:
                    out[second * rows + row] = s1
                if top + 2 < count:
                    out[third * rows + row] = s2
                if top + 3 < count:
                    out[fourth * rows + row] = s3

    @td.kernel(checked=False)
    def multiply_tile(
        values: td.Array[td.u32], high: td.Array[td.u32], of_blocks, mins_of_blocks, scales, mins,
        act: td.Array[td.i32], out: td.Array[td.f32], rows: td.i32, groups: td.i32, count: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        row = td.block_idx.x * TILE_LANES + t
        near = td.shared(TILE_LANES * pitch * form_words, td.u32)
        near_high = td.shared(TILE_LANES * pitch * high_words + 1, td.u32)
        board = td.shared(TILE_GROUPS * LANES * TILE_LANES, td.u32)
        factors = td.shared(TILE_GROUPS * parts * TILE_LANES, td.f32)
        shifts = td.shared(TILE_GROUPS * parts * TILE_LANES, td.f32)
        for start in range(0, groups, TILE_GROUPS):
            deep = td.minimum(groups - start, TILE_GROUPS)
            for r in range(TILE_LANES):
                own_row = td.minimum(td.block_idx.x * TILE_LANES + r, rows - 1) * groups + start
                fetch(values, own_row * form_words, near, r * pitch * form_words, deep * form_words)
                if high_words > 0:
                    fetch(
                        high, own_row * high_words, near_high, r * pitch * high_words,
                        deep * high_words,
                    )  # fmt: skip
            td.sync_threads()
            first = td.minimum(row, rows - 1) * groups + start
            unpack_lanes(near, near_high, board, deep)
            for i in range(deep * parts):
                block = first + i // (BLOCK * parts) * BLOCK
                own = i % (BLOCK * parts)
                factor = scale(of_blocks, scales, block, own)
                shift = -center * factor
                if has_minima:
                    shift += least(mins_of_blocks, scales, mins, block, own)
                factors[i * TILE_LANES + t] = factor
                shifts[i * TILE_LANES + t] = shift
            td.sync_threads()
            multiply_unpacked(
                act, out, board, factors, shifts, row, rows, groups, count, start, deep
            )
            td.sync_threads()

    return multiply_tile

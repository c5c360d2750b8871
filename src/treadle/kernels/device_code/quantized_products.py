"""Products of a few rows of activations with quantized matrices on GPUs.

Some threads of a warp share a few rows of the matrix, and each reads vec4s of words.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.quantized_activations import PACKED, PACKED_FLOATS
from treadle.kernels.device_code.quantized_formats import BLOCK, FORMS, no_minimum
from treadle.lang.decorators import Kernel

_SUBGROUP = 32


class Work(NamedTuple):
    """What a kernel computes: a format, whether activations are floats, and their rows."""

    format: str
    floats: bool
    rows: int


class Spread(NamedTuple):
    """How a GPU's threads share the work: a block of `threads`, of which `span` compute `lines`
    rows of the matrix. `subgroups`: whether there are subgroups of 32, which add up sums.
    `unrolled`: by rows of activations, whose sums are then in registers."""

    threads: int
    span: int
    lines: int
    subgroups: bool
    unrolled: bool = True


@functools.cache
def multiplier(work: Work, spread: Spread) -> Kernel:
    """A kernel whose threads read vec4s of words. Of each 32 bytes two threads read a half."""
    form, floats, many = FORMS[work.format], work.floats, work.rows
    threads, span, lines, subgroups, unrolled = spread
    step, paired, halves = form.step, form.paired, form.halves
    unpack, scale = form.unpack(4), form.scale
    least, has_minima = form.least or no_minimum, form.least is not None
    shifted = has_minima or form.center > 0
    center = td.f32(form.center)
    signed = form.signed
    steps, teams = BLOCK // step, threads // span
    of_step = 1 if paired else step  # scales of a step in a thread
    bits = span.bit_length() - 1
    kind: Any = td.vec4[td.f32] if floats else td.vec4[td.i32]
    vectors, elements = (PACKED_FLOATS // 4, 8) if floats else (PACKED // 4, 2)
    exact = td.f32(1.0)
    high_kind: Any = td.u32 if paired else td.vec4[td.u32]

    @td.func
    def number(bits):
        return bits if floats else td.bitcast(bits, td.f32)

    @td.func
    def of_word(word, x):
        """The products of the bytes of a word with four floats."""
        total = td.f32(0.0)
        if signed:
            total += td.f32((td.i32(word) << 24) >> 24) * x.x
            total += td.f32((td.i32(word) << 16) >> 24) * x.y
            total += td.f32((td.i32(word) << 8) >> 24) * x.z
            total += td.f32(td.i32(word) >> 24) * x.w
        else:
            total += td.f32(word & 255) * x.x
            total += td.f32((word >> 8) & 255) * x.y
            total += td.f32((word >> 16) & 255) * x.z
            total += td.f32(word >> 24) * x.w
        return total

    @td.func
    def product(words, act, group, half):
        """The products of a vec4 of words with half a group of activations."""
        total = td.f32(0.0)
        if floats:
            at = group * vectors + half * 4
            total += of_word(words.x, act[at]) + of_word(words.y, act[at + 1])
            total += of_word(words.z, act[at + 2]) + of_word(words.w, act[at + 3])
        else:
            x = act[group * vectors + half]
            low = td.dot4_i8(words.x, x.x, td.dot4_i8(words.y, x.y, 0))
            total = td.f32(td.dot4_i8(words.z, x.z, td.dot4_i8(words.w, x.w, low)))
        return total

    @td.func
    def accumulate(act, m, k, groups, start, own, half, words, factors, shifts, sums):
        """Add the products of a row of activations with a group of each line to the sums."""
        group = m * groups + start + own * step + (half if paired else k)
        facts = act[group * vectors + elements]
        total = number(facts.y)
        if not paired:
            total = number(facts.z) if half == 0 else number(facts.w)
        to_float = exact if floats else number(facts.x)
        for r in td.static_range(lines):
            if paired:
                sum = product(words[2 * r], act, group, 0)
                sum += product(words[2 * r + 1], act, group, 1)
            else:
                sum = product(words[r * step + k], act, group, half)
            sums[r * many + m] += sum * (factors[r * of_step + k] * to_float)
            if shifted:
                sums[r * many + m] += shifts[r * of_step + k] * total

    @td.kernel(checked=False)
    def multiply(
        values: td.Array[td.vec4[td.u32]], high: td.Array[high_kind], of_blocks, mins_of_blocks,
        scales, mins, act: td.Array[kind], out: td.Array[td.f32], rows: td.i32, groups: td.i32,
        extent: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x % span
        team = td.thread_idx.x // span
        half = t % 2
        row = (td.block_idx.x * teams + team) * lines
        sums = td.local(lines * many, td.f32)
        words = td.local(lines * step, td.vec4[td.u32])
        factors = td.local(lines * of_step, td.f32)
        shifts = td.local(lines * of_step, td.f32)
        for k in td.static_range(lines * many):
            sums[k] = 0.0
        for s in range(t // 2, groups // step, span // 2):
            start = s // steps * BLOCK
            own = s % steps
            for r in td.static_range(lines):
                group = td.minimum(row + r, rows - 1) * groups + start
                unpack(values, high, group, own, half, words, r * step)
                for k in td.static_range(of_step):
                    i = 2 * own + half if paired else own * step + k
                    if halves:
                        i = 2 * i + half
                    factor = scale(of_blocks, scales, group, i)
                    factors[r * of_step + k] = factor
                    shift = -center * factor
                    if has_minima:
                        shift += least(mins_of_blocks, scales, mins, group, i)
                    shifts[r * of_step + k] = shift
            if unrolled:
                for m in td.static_range(many):
                    for k in td.static_range(of_step):
                        accumulate(
                            act, m, k, groups, start, own, half, words, factors, shifts, sums
                        )
            else:
                # The driver unrolls loops whose trip counts it knows.
                for m in range(extent):
                    for k in range(of_step):
                        accumulate(
                            act, m, k, groups, start, own, half, words, factors, shifts, sums
                        )
        if subgroups:
            for r in td.static_range(lines):
                for m in td.static_range(many):
                    total = sums[r * many + m]
                    if span == _SUBGROUP:
                        total = td.subgroup_sum(total)
                    else:
                        for bit in td.static_range(bits):
                            total += td.shuffle_xor(total, span >> (bit + 1))
                    if t == 0 and row + r < rows:
                        out[m * rows + row + r] = total
        else:
            board = td.shared(threads, td.f32)
            for r in td.static_range(lines):
                for m in td.static_range(many):
                    board[td.thread_idx.x] = sums[r * many + m]
                    td.sync_threads()
                    if t == 0 and row + r < rows:
                        total = td.f32(0.0)
                        for k in range(span):
                            total += board[team * span + k]
                        out[m * rows + row + r] = total
                    td.sync_threads()

    return multiply

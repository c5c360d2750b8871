"""Products of a few rows of activations with quantized matrices on GPUs.

Some threads of a warp share a few rows of the matrix, and each reads vec4s of words.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.kernels.device_code.activation_prologues import (
    Prologue,
    array_kinds,
    filler,
    vectors_of,
)
from treadle.kernels.device_code.block_reductions import side_of
from treadle.kernels.device_code.quantized_formats import BLOCK, FORMS, GROUP, Form, no_minimum
from treadle.lang.decorators import Function, Kernel

_SUBGROUP = 32


MOST_FORMATS = 2
"""Of matrices that a kernel multiplies."""


class Work(NamedTuple):
    """What a kernel computes: rows of activations, as floats or not, after a prologue, times
    matrices of these formats. `split`: there may be more rows than `rows`, so many of which a block
    has."""

    formats: tuple[str, ...]
    floats: bool
    rows: int
    prologue: Prologue
    split: bool = False


class Spread(NamedTuple):
    """How a GPU's threads share the work: a block of `threads`, of which `span` compute `lines`
    rows of the matrix. `subgroups`: whether there are subgroups of 32, which add up sums.
    `unrolled`: by rows of activations, whose sums are then in registers. `repeated`: whether a
    block goes on to more rows of its matrix, after a prologue for all of them."""

    threads: int
    span: int
    lines: int
    subgroups: bool
    unrolled: bool = True
    repeated: bool = False


@functools.cache
def _line_sums(form: Form, floats: bool, many: int, split: bool, spread: Spread) -> Function:
    """A function of a block that computes its rows of a matrix, for `many` rows of activations from
    `lead` on. Of each 32 bytes two threads read a half."""
    span, lines, subgroups, unrolled = spread[1:5]
    step, paired, halves = form.step * form.wide, form.paired, form.halves
    wide, together, has_together = form.wide, form.together, form.together is not None
    each = form.step
    unpack, scale = form.unpack(4), form.scale
    least, has_minima = form.least or no_minimum, form.least is not None
    shifted = has_minima or form.center > 0
    center, centered = td.f32(form.center), form.center > 0
    signed = form.signed
    steps = BLOCK // step
    of_step = 1 if paired else step  # scales of a step in a thread
    bits = span.bit_length() - 1
    vectors, elements = vectors_of(floats), 8 if floats else 2
    exact = td.f32(1.0)

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
    def accumulate(
        act, lead, last, m, k, groups, start, own, half, words, factors, shifts, sums
    ):  # fmt: skip
        """Add the products of a row of activations with a group of each line to the sums."""
        row = td.minimum(lead + m, last) if split else m
        group = row * groups + start + own * step + (half if paired else k)
        facts = act[group * vectors + elements]
        total = number(facts.y)
        if not paired:
            total = number(td.where(half == 0, facts.z, facts.w))
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

    @td.func
    def line_sums(
        values, high, of_blocks, mins_of_blocks, scales, mins, act, out, first, rows, groups, into,
        pitch, lead, extent, board,
    ):  # fmt: skip
        extent_here = td.minimum(extent - lead, many) if split else extent
        t = td.thread_idx.x % span
        team = td.thread_idx.x // span
        half = t % 2
        row = (first + team) * lines
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
                for j in td.static_range(wide):
                    unpack(values, high, group, own * wide + j, half, words, r * step + j * each)
                if has_together:
                    together(
                        of_blocks, mins_of_blocks, scales, mins, group, own, half, factors, shifts,
                        r * of_step,
                    )  # fmt: skip
                else:
                    for k in td.static_range(of_step):
                        i = 2 * own + half if paired else own * step + k
                        if halves:
                            i = 2 * i + half
                        factors[r * of_step + k] = scale(of_blocks, scales, group, i)
                        shifts[r * of_step + k] = 0.0
                        if has_minima:
                            shifts[r * of_step + k] = least(mins_of_blocks, scales, mins, group, i)
                if centered:
                    for k in td.static_range(of_step):
                        shifts[r * of_step + k] -= center * factors[r * of_step + k]
            if unrolled:
                for m in td.static_range(many):
                    for k in td.static_range(of_step):
                        accumulate(
                            act, lead, extent - 1, m, k, groups, start, own, half, words, factors,
                            shifts, sums,
                        )  # fmt: skip
            else:
                # The driver unrolls loops whose trip counts it knows.
                for m in range(extent_here):
                    for k in range(of_step):
                        accumulate(
                            act, lead, extent - 1, m, k, groups, start, own, half, words, factors,
                            shifts, sums,
                        )  # fmt: skip
        if subgroups:
            for r in td.static_range(lines):
                for m in td.static_range(many):
                    total = sums[r * many + m]
                    if span == _SUBGROUP:
                        total = td.subgroup_sum(total)
                    else:
                        for bit in td.static_range(bits):
                            total += td.shuffle_xor(total, span >> (bit + 1))
                    if t == 0 and row + r < rows and m < extent_here:
                        out[(lead + m) * pitch + into + row + r] = total
        else:
            for r in td.static_range(lines):
                for m in td.static_range(many):
                    board[td.thread_idx.x] = sums[r * many + m]
                    td.sync_threads()
                    if t == 0 and row + r < rows and m < extent_here:
                        total = td.f32(0.0)
                        for k in range(span):
                            total += board[team * span + k]
                        out[(lead + m) * pitch + into + row + r] = total
                    td.sync_threads()

    return line_sums


def _scales_kind(form: Form) -> Any:
    """What a kernel sees of scales of groups."""
    return td.Array[td.vec2[td.u32]] if form.together is not None and form.halves else Any


@functools.cache
def multiplier(work: Work, spread: Spread) -> Kernel:
    """A kernel for one matrix or two, whose blocks are those of the first, then of the second.

    A matrix has the planes of `quantized_formats`. `sizes` are the rows of the first matrix, the
    elements of a row of the result, the blocks of the first matrix, and for how many rows of its
    matrix a group of threads is there; `extent` is the number of rows of activations."""
    prologue, floats, many = work.prologue, work.floats, work.rows
    threads, teams = spread.threads, spread.threads // spread.span
    subgroups, repeated = spread.subgroups, spread.repeated
    forms = [FORMS[name] for name in work.formats]
    split = work.split
    multiply_first = _line_sums(forms[0], floats, many, split, spread)
    several = len(forms) > 1
    multiply_second = _line_sums(forms[-1], floats, many, split, spread)
    packed = prologue.kind == "packed"
    fill = None if packed else filler(prologue, floats, threads, subgroups)
    kind: Any = td.vec4[td.f32] if floats else td.vec4[td.i32]
    given: Any = kind if packed else td.vec4[td.f32]
    of_second, of_weights, of_others, of_stream = array_kinds(prologue)
    values_kind: Any = td.Array[td.vec4[td.u32]]
    high_kind, other_high = (
        td.Array[td.u32 if form.paired else td.vec4[td.u32]] for form in (forms[0], forms[-1])
    )
    scales_kind, other_scales_kind = _scales_kind(forms[0]), _scales_kind(forms[-1])
    other_kind: Any = values_kind
    if not several:
        other_kind, other_high, other_scales_kind = td.i32, td.i32, td.i32
    groups_of = prologue.columns // GROUP
    vectors = groups_of * vectors_of(floats)
    side = side_of(threads)

    @td.func
    def products(
        act, values, high, of_blocks, mins_of_blocks, scales, mins, other_values, others_high,
        of_other_blocks, mins_of_other_blocks, other_scales, other_mins, out, sizes, other_rows,
        groups, extent, board,
    ):  # fmt: skip
        repeats = sizes.w
        block = td.block_idx.x
        lead = td.i32(0)
        if split:  # neighbours have the same rows of the matrix
            parts = (extent + (many - 1)) // many
            lead = block % parts * many
            block = block // parts
        if several:  # noqa: SIM102 (known as the kernel is compiled, what is in it is not)
            if block >= sizes.z:
                begin = (block - sizes.z) * sizes.w * teams
                for repeat in range(sizes.w):
                    multiply_second(
                        other_values, others_high, of_other_blocks, mins_of_other_blocks,
                        other_scales, other_mins, act, out, begin + repeat * teams, other_rows,
                        groups, sizes.x, sizes.y, lead, extent, board,
                    )  # fmt: skip
                repeats = td.i32(0)
        begin = block * sizes.w * teams
        if repeated:
            for repeat in range(repeats):
                multiply_first(
                    values, high, of_blocks, mins_of_blocks, scales, mins, act, out,
                    begin + repeat * teams, sizes.x, groups, 0, sizes.y, lead, extent, board,
                )  # fmt: skip
        else:
            multiply_first(
                values, high, of_blocks, mins_of_blocks, scales, mins, act, out,
                block * teams, sizes.x, groups, 0, sizes.y, lead, extent, board,
            )  # fmt: skip

    @td.kernel(checked=False)
    def multiply(
        first: td.Array[given], second: of_second, weights: of_weights, others: of_others,
        stream: of_stream, values: values_kind, high: high_kind, of_blocks, mins_of_blocks,
        scales: scales_kind, mins, other_values: other_kind, others_high: other_high,
        of_other_blocks, mins_of_other_blocks, other_scales: other_scales_kind, other_mins,
        out: td.Array[td.f32], sizes: td.vec4[td.i32], other_rows: td.i32, groups: td.i32,
        extent: td.i32, least: td.f32,
    ):  # fmt: skip
        board = td.shared(threads, td.f32)
        if packed:
            products(
                first, values, high, of_blocks, mins_of_blocks, scales, mins, other_values,
                others_high, of_other_blocks, mins_of_other_blocks, other_scales, other_mins, out,
                sizes, other_rows, groups, extent, board,
            )  # fmt: skip
        else:
            words = td.shared(threads, td.i32)
            few = td.shared(side, td.f32)
            act = td.shared(many * vectors, kind)
            writes = td.block_idx.x == 0
            for m in range(extent):
                fill(
                    first, second, weights, others, stream, act, m * vectors, m, 0, threads, least,
                    writes, board, words, few,
                )  # fmt: skip
            td.sync_threads()
            products(
                act, values, high, of_blocks, mins_of_blocks, scales, mins, other_values,
                others_high, of_other_blocks, mins_of_other_blocks, other_scales, other_mins, out,
                sizes, other_rows, groups, extent, board,
            )  # fmt: skip

    return multiply

"""What comes before a product with quantized matrices: rows of activations, computed and packed.

A block computes a row from what lies in memory, and packs it as `quantized_activations` describes:
into its own shared memory, so that the product needs no other launch before it, or into memory,
where that would be too much work for each block. A thread has four of a group's 32 elements.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import float32
from treadle.kernels.device_code.block_reductions import side_of, sum_of_block
from treadle.kernels.device_code.quantized_activations import (
    LANES,
    LARGEST,
    PACKED,
    PACKED_FLOATS,
    SMALLEST,
)
from treadle.lang.decorators import Function, Kernel

_SUBGROUP = 32
_GELU = (2 / 3.141592653589793) ** 0.5


class Prologue(NamedTuple):
    """What rows of `columns` activations are computed from: the arrays `first`, `second`,
    `weights` and `others`.

    "packed": they are packed already, as `first`. "rows": they are `first`.
    "normed": `first`, plus `second` if `added`, is written to `stream`, and then divided by its
    root mean square and multiplied by `weights`. Before it is added, `second` is so divided, too,
    if it is `scaled`; its weights are `others`.
    "gated": rows of `first` have twice as many elements, and the first half, through the function
    `gate`, is multiplied by the second half.
    "joined": `first` has the sums of `parts` parts of the keys, and `second` their peaks and
    totals, as `paged_attention` has them, for heads of `depth` elements."""

    kind: Literal["packed", "rows", "normed", "gated", "joined"]
    columns: int
    added: bool = False
    scaled: bool = False
    gate: Literal["", "silu", "gelu_tanh"] = ""
    parts: int = 1
    depth: int = 4

    @property
    def writes(self) -> bool:
        """Whether there is a stream to write."""
        return self.added

    @property
    def arrays(self) -> int:
        """How many arrays it reads."""
        if self.kind == "normed":
            return 2 + self.added + self.scaled
        return 2 if self.kind == "joined" else 1


def vectors_of(floats: bool) -> int:
    """The vec4s of a packed group."""
    return (PACKED_FLOATS if floats else PACKED) // 4


@functools.cache
def filler(prologue: Prologue, floats: bool, threads: int, subgroups: bool) -> Function:
    """A function with which a block of `threads` computes and packs a row.

    It takes the arrays, the packed row's vec4s and where they begin in them, the row, the first
    vec4 that this block packs and how far apart those of a thread are, what is added to mean
    squares, whether this block writes the stream, and shared memory: a float and an integer for
    each thread, and a few floats. Threads wait for each other before what is packed is read."""
    kind, n4 = prologue.kind, prologue.columns // 4
    added, scaled, gate = prologue.added, prologue.scaled, prologue.gate
    parts, depth4 = prologue.parts, prologue.depth // 4
    vectors = vectors_of(floats)
    mean = 1.0 / prologue.columns
    vec: Any = td.vec4[td.f32]
    warps = threads // _SUBGROUP
    slowly = sum_of_block(float32, threads)

    @td.func
    def summed(value, board, few):
        total = td.f32(0.0)
        if subgroups:
            own = td.subgroup_sum(value)
            if td.thread_idx.x % _SUBGROUP == 0:
                few[td.thread_idx.x // _SUBGROUP] = own
            td.sync_threads()
            for k in td.static_range(warps):
                total += few[k]
        else:
            total = slowly(value, board, few)
        td.sync_threads()
        return total

    @td.func
    def of_neighbour(value, bit, board):
        """The value of the thread whose number differs by a bit."""
        other = value
        if subgroups:
            other = td.shuffle_xor(value, bit)
        else:
            board[td.thread_idx.x] = value
            td.sync_threads()
            other = board[td.thread_idx.x ^ bit]
            td.sync_threads()
        return other

    @td.func
    def gated(x):
        y = td.f32(0.0)
        if gate == "silu":
            y = x * td.sigmoid(x)
        else:
            y = x * 0.5 * (td.tanh((x + x * x * x * 0.044715) * td.f32(_GELU)) + 1.0)
        return y

    @td.func
    def streamed(first, second, others, at, i, factor):
        value = first[at]
        if added:
            other = second[at]
            if scaled:
                other = other * factor * others[i]
            value += other
        return value

    @td.func
    def joined(first, second, line, column):
        """A vec4 of a head's result: the sums of parts by what their peaks say. Parts that have
        seen no key are not read."""
        peak = td.f32(-td.inf)
        for part in range(parts):
            top = second[line * parts + part].x
            peak = top if top > peak else peak
        base = peak if peak > td.f32(-td.inf) else td.f32(0.0)
        total = td.f32(0.0)
        found = vec(0.0)
        for part in range(parts):
            tops = second[line * parts + part]
            if tops.y != 0.0:
                weight = td.exp2(tops.x - base)
                total += tops.y * weight
                found += first[(line * parts + part) * depth4 + column] * weight
        return found * (td.f32(0.0) if total == 0.0 else 1.0 / total)

    @td.func
    def value_of(first, second, weights, others, row, i, factor, own_factor):
        value = vec(0.0)
        if kind == "normed":
            value = streamed(first, second, others, row * n4 + i, i, factor)
            value = value * own_factor * weights[i]
        elif kind == "gated":
            x = first[2 * row * n4 + i]
            value = vec(gated(x.x), gated(x.y), gated(x.z), gated(x.w))
            value *= first[(2 * row + 1) * n4 + i]
        elif kind == "joined":
            value = joined(first, second, row * (n4 // depth4) + i // depth4, i % depth4)
        else:
            value = first[row * n4 + i]
        return value

    @td.func
    def largest(value):
        low = td.maximum(td.abs(value.x), td.abs(value.y))
        return td.maximum(low, td.maximum(td.abs(value.z), td.abs(value.w)))

    @td.func
    def fill(
        first, second, weights, others, stream, act, base, row, begin, step, least, writes, board,
        words, few,
    ):  # fmt: skip
        t = td.thread_idx.x
        factor = td.f32(1.0)
        own_factor = td.f32(1.0)
        if kind == "normed":
            if scaled:
                squares = td.f32(0.0)
                for i in range(t, n4, threads):
                    x = second[row * n4 + i]
                    squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w
                factor = 1.0 / td.sqrt(summed(squares, board, few) * td.f32(mean) + least)
            squares = td.f32(0.0)
            for i in range(t, n4, threads):
                x = streamed(first, second, others, row * n4 + i, i, factor)
                squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w
                if added:  # noqa: SIM102 (known as the kernel is compiled, what is in it is not)
                    if writes:
                        stream[row * n4 + i] = x
            own_factor = 1.0 / td.sqrt(summed(squares, board, few) * td.f32(mean) + least)
        for s in range(begin, n4, step):
            i = s + t
            value = vec(0.0)
            if i < n4:
                value = value_of(first, second, weights, others, row, i, factor, own_factor)
            start = base + i // LANES * vectors
            scale = td.f32(1.0)
            total = value.x + value.y + value.z + value.w
            if floats:
                if i < n4:
                    act[start + i % LANES] = value
            else:
                top = largest(value)
                for bit in td.static_range(3):
                    top = td.maximum(top, of_neighbour(top, 1 << bit, board))
                scale = top / LARGEST
                inverse = LARGEST / top if top > SMALLEST else td.f32(0.0)
                b0 = td.i32(td.round(value.x * inverse))
                b1 = td.i32(td.round(value.y * inverse))
                b2 = td.i32(td.round(value.z * inverse))
                b3 = td.i32(td.round(value.w * inverse))
                total = td.f32(b0 + b1 + b2 + b3) * scale
                word = (b0 & 255) | ((b1 & 255) << 8) | ((b2 & 255) << 16) | (b3 << 24)
                w1 = of_neighbour(word, 1, words)
                w2 = of_neighbour(word, 2, words)
                w3 = of_neighbour(word, 3, words)
                if i < n4 and i % 4 == 0:
                    act[start + i % LANES // 4] = td.vec4[td.i32](word, w1, w2, w3)
            total += of_neighbour(total, 1, board)
            total += of_neighbour(total, 2, board)
            other = of_neighbour(total, 4, board)
            if i < n4 and i % LANES == 0:
                if floats:
                    act[start + LANES] = vec(scale, total + other, total, other)
                else:
                    act[start + 2] = td.vec4[td.i32](
                        td.bitcast(scale, td.i32), td.bitcast(total + other, td.i32),
                        td.bitcast(total, td.i32), td.bitcast(other, td.i32),
                    )  # fmt: skip

    return fill


def array_kinds(prologue: Prologue) -> tuple[Any, Any, Any, Any]:
    """The types of `second`, `weights`, `others` and `stream`; what there is not, is a 0."""
    vectors: Any = td.Array[td.vec4[td.f32]]
    second = vectors if prologue.added else td.i32
    if prologue.kind == "joined":
        second = td.Array[td.vec2[td.f32]]
    weights = vectors if prologue.kind == "normed" else td.i32
    others, stream = (vectors if has else td.i32 for has in (prologue.scaled, prologue.writes))
    return second, weights, others, stream


@functools.cache
def row_packer(prologue: Prologue, floats: bool, threads: int, subgroups: bool) -> Kernel:
    """A kernel that computes and packs rows, which blocks share; its grid is (blocks, rows)."""
    fill = filler(prologue, floats, threads, subgroups)
    kind: Any = td.vec4[td.f32] if floats else td.vec4[td.i32]
    vectors = prologue.columns // 32 * vectors_of(floats)
    side = side_of(threads)
    of_second, of_weights, of_others, of_stream = array_kinds(prologue)

    @td.kernel(checked=False)
    def pack_rows(
        first: td.Array[td.vec4[td.f32]], second: of_second, weights: of_weights,
        others: of_others, stream: of_stream, out: td.Array[kind], least: td.f32,
    ):  # fmt: skip
        board = td.shared(threads, td.f32)
        words = td.shared(threads, td.i32)
        few = td.shared(side, td.f32)
        row = td.block_idx.y
        fill(
            first, second, weights, others, stream, out, row * vectors, row,
            td.block_idx.x * threads, td.grid_dim.x * threads, least, td.block_idx.x == 0, board,
            words, few,
        )  # fmt: skip

    return pack_rows

"""What comes before a product with quantized matrices: rows of activations, computed and packed.

A block computes a row from what lies in memory, and packs it as `quantized_activations` describes:
into its own shared memory, so that the product needs no other launch before it, or into memory,
where that would be too much work for each block. A thread has half a group of 32 elements.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import float32
from treadle.kernels.device_code.block_reductions import side_of, sum_of_block
from treadle.kernels.device_code.quantized_activations import (
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
    totals, as `paged_attention` has them, for heads of `depth` elements, a multiple of 16."""

    kind: Literal["packed", "rows", "normed", "gated", "joined"]
    columns: int
    added: bool = False
    scaled: bool = False
    gate: Literal["", "silu", "gelu_tanh"] = ""
    parts: int = 1
    depth: int = 16

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

    It takes the arrays, the packed row's vec4s and where they begin in them, the row, what is added
    to mean squares, whether this block writes the stream, and shared memory: `threads` floats, and
    a few. Threads wait for each other before what is packed may be read."""
    kind, n4 = prologue.kind, prologue.columns // 4
    added, scaled, gate = prologue.added, prologue.scaled, prologue.gate
    parts, depth4 = prologue.parts, prologue.depth // 4
    halves, vectors = prologue.columns // 16, vectors_of(floats)
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
    def of_neighbour(value, board):
        """The value of the thread that has the other half of the group."""
        other = td.f32(0.0)
        if subgroups:
            other = td.shuffle_xor(value, 1)
        else:
            board[td.thread_idx.x] = value
            td.sync_threads()
            other = board[td.thread_idx.x ^ 1]
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
    def join(first, second, line, column, values):
        """Four vec4s of a head's result: the sums of parts by what their peaks say. Parts that have
        seen no key are not read."""
        peak = td.f32(-td.inf)
        for part in range(parts):
            top = second[line * parts + part].x
            peak = top if top > peak else peak
        base = peak if peak > td.f32(-td.inf) else td.f32(0.0)
        total = td.f32(0.0)
        for part in range(parts):
            tops = second[line * parts + part]
            if tops.y != 0.0:
                weight = td.exp2(tops.x - base)
                total += tops.y * weight
                at = (line * parts + part) * depth4 + column
                for k in td.static_range(4):
                    values[k] += first[at + k] * weight
        factor = td.f32(0.0) if total == 0.0 else 1.0 / total
        for k in td.static_range(4):
            values[k] *= factor

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
        else:
            value = first[row * n4 + i]
        return value

    @td.func
    def largest(value):
        low = td.maximum(td.abs(value.x), td.abs(value.y))
        return td.maximum(low, td.maximum(td.abs(value.z), td.abs(value.w)))

    @td.func
    def fill(first, second, weights, others, stream, act, base, row, least, writes, board, few):
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
        values = td.local(4, vec)
        for s in range(0, halves, threads):
            h = s + t
            for k in td.static_range(4):
                values[k] = vec(0.0)
            if h < halves:
                if kind == "joined":
                    line = row * (n4 // depth4) + 4 * h // depth4
                    join(first, second, line, 4 * h % depth4, values)
                else:
                    for k in td.static_range(4):
                        values[k] = value_of(
                            first, second, weights, others, row, 4 * h + k, factor, own_factor
                        )
            start = base + h // 2 * vectors
            scale = td.f32(1.0)
            total = td.f32(0.0)
            if floats:
                for k in td.static_range(4):
                    total += values[k].x + values[k].y + values[k].z + values[k].w
                    if h < halves:
                        act[start + h % 2 * 4 + k] = values[k]
            else:
                top = td.f32(0.0)
                for k in td.static_range(4):
                    top = td.maximum(top, largest(values[k]))
                top = td.maximum(top, of_neighbour(top, board))
                scale = top / LARGEST
                inverse = LARGEST / top if top > SMALLEST else td.f32(0.0)
                words = td.local(4, td.i32)
                sum = td.i32(0)
                for k in td.static_range(4):
                    b0 = td.i32(td.round(values[k].x * inverse))
                    b1 = td.i32(td.round(values[k].y * inverse))
                    b2 = td.i32(td.round(values[k].z * inverse))
                    b3 = td.i32(td.round(values[k].w * inverse))
                    sum += b0 + b1 + b2 + b3
                    words[k] = (b0 & 255) | ((b1 & 255) << 8) | ((b2 & 255) << 16) | (b3 << 24)
                total = td.f32(sum) * scale
                if h < halves:
                    act[start + h % 2] = td.vec4[td.i32](words[0], words[1], words[2], words[3])
            other = of_neighbour(total, board)
            if h < halves and h % 2 == 0:
                if floats:
                    act[start + 8] = vec(scale, total + other, total, other)
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
    """A kernel that computes and packs rows, one in a block."""
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
        few = td.shared(side, td.f32)
        row = td.block_idx.x
        fill(
            first,
            second,
            weights,
            others,
            stream,
            out,
            row * vectors,
            row,
            least,
            row >= 0,
            board,
            few,
        )

    return pack_rows

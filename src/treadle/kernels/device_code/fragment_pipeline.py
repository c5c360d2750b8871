"""Sums of products by fragments of what a block brings to shared memory, in stages.

How a step's tiles come to shared memory is up to two functions, so factors need not be matrices in
memory: those of a convolution are windows of an image. The order of a step is that of
`fragment_product`: the parts that the next products need are read from shared memory while the
present ones are multiplied, and the copies of a later step begin between these.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.lang import builtins
from treadle.lang.decorators import Function
from treadle.lang.fragments import OPERATIONS

LANES = 32
PIECE_BYTES = 16
_PIECES_OF_BANKS = 8  # pieces that are in all banks
_WORD = 4  # bytes


def piece_of(dtype: DType) -> int:
    """The elements of a piece, which is copied at once."""
    return PIECE_BYTES // dtype.itemsize


def depth_of(tile: FragmentTile, dtype: DType) -> int:
    """How many elements of the inner axis a step has; tiles are stated in elements of two bytes."""
    return tile.depth * 2 // dtype.itemsize


@functools.cache
def placer(pieces: int, step: int = 1) -> Function:
    """A function that finds a piece of a line in shared memory, whose lines have so many. Pieces
    are permuted by the line's number, so that the same piece of eight lines is in eight banks; with
    a step of two, so that two neighbouring pieces of four lines are."""
    lines_of_banks = max(_PIECES_OF_BANKS // pieces, 1)
    permutations = min(pieces, _PIECES_OF_BANKS)

    @td.func
    def place(line, piece):
        return line * pieces + (piece ^ (line // lines_of_banks * step % permutations))

    return place


def across_step(dtype: DType) -> int:
    """The step of `placer` for lines across the inner axis. Those of 32 bits are read as words of
    two pieces of four lines; others by instructions that turn eight lines."""
    return 2 if dtype.itemsize == _WORD else 1


@functools.cache
def _readers(dtype: DType, a_pieces: int, b_pieces: int, inner: bool) -> tuple[Function, Function]:
    """Functions that read the words of a 16-row part of the first factor, and of two 8-column parts
    of the second: of shared memory from a piece on, where the thread begins, and the part's numbers
    along its own axis and along the inner one."""
    spread = builtins.matrix_rows if inner else builtins.matrix_columns
    adjacent_a, behind_a = (16 * a_pieces, 0) if inner else (0, 16 * a_pieces)
    adjacent_b, behind_b = (16 * b_pieces, 0) if inner else (0, 16 * b_pieces)
    word = builtins.number_at
    words = td.vec4[td.u32]

    # Parts are 16 lines, or two pieces of a line, from each other: that changes bits of the
    # permuted place which the first part has as zeros.

    @td.func
    def read_a(left, start, begin, i, d):
        at = begin ^ (d * 2 if inner else i * 2)
        return spread(left[start + at + (adjacent_a * i + behind_a * d)])

    @td.func
    def read_b(right, start, begin, j, d):
        at = begin ^ (d * 2 if inner else j * 2)
        return spread(right[start + at + (adjacent_b * j + behind_b * d)])

    if inner or dtype.itemsize != _WORD:
        return read_a, read_b

    @td.func
    def words_of_a(left, start, begin, i, d):
        near = (start + (begin ^ (i * 4)) + d * 8 * a_pieces) * 4 + td.lane() // 4 % 4
        far = (start + (begin ^ (i * 4 + 2)) + d * 8 * a_pieces) * 4 + td.lane() // 4 % 4
        behind = 4 * a_pieces * 4
        return words(word(left, near), word(left, far), word(left, near + behind),
                     word(left, far + behind))  # fmt: skip

    @td.func
    def words_of_b(right, start, begin, j, d):
        near = (start + (begin ^ (j * 4)) + d * 8 * b_pieces) * 4 + td.lane() // 4 % 4
        far = (start + (begin ^ (j * 4 + 2)) + d * 8 * b_pieces) * 4 + td.lane() // 4 % 4
        behind = 4 * b_pieces * 4
        return words(word(right, near), word(right, near + behind), word(right, far),
                     word(right, far + behind))  # fmt: skip

    return words_of_a, words_of_b


def same_permutation(pieces: int, threads: int) -> bool:
    """Whether the pieces of a thread, which are `threads` from each other, lie in lines that
    permute them alike: then one place, and multiples of `threads`, are those of all."""
    lines_of_banks = max(_PIECES_OF_BANKS // pieces, 1)
    return threads % (pieces * lines_of_banks * _PIECES_OF_BANKS) == 0


@functools.cache
def summer(
    dtype: DType, tile: FragmentTile, fetch_a: Function, fetch_b: Function, inner: bool
) -> Function:
    """A function that adds a block's products to `sums`, which a warp has of its part of the tile.

    `fetch_a` and `fetch_b` begin to copy one step's tile of their factor: of (array, shared memory,
    first piece there, thread, where it reads, where it writes, what it knows of each piece, what it
    knows of the step, and `other`). They move on what they know. Lines of shared memory go along
    the inner axis if `inner`, else across it.
    """
    rows, columns, _, warp_rows, warp_columns, stages, _ = tile
    piece, depth = piece_of(dtype), depth_of(tile, dtype)
    a_pieces, b_pieces = (depth // piece,) * 2 if inner else (rows // piece, columns // piece)
    a_size, b_size = rows * depth // piece, columns * depth // piece
    across_warps = columns // warp_columns
    # An operation takes two pieces of the inner axis.
    down, across, deep = warp_rows // 16, warp_columns // 8, depth // (2 * piece)
    step_of_lines = 1 if inner else across_step(dtype)
    place_a, place_b = placer(a_pieces, step_of_lines), placer(b_pieces, step_of_lines)
    read_a, read_b = _readers(dtype, a_pieces, b_pieces, inner)
    by_words = not inner and dtype.itemsize == _WORD
    multiply_add = getattr(builtins, OPERATIONS[dtype.short, dtype.short])
    end_copies, wait_copies = builtins.end_copies, builtins.wait_copies
    words, pair = td.vec4[td.u32], td.vec2[td.u32]

    @td.func
    def sum_products(
        a, b, left, right, sums, steps, other,
        a_at, a_to, a_of_piece, a_of_step, b_at, b_to, b_of_piece, b_of_step,
    ):  # fmt: skip
        t = td.thread_idx.x
        lane = t % LANES
        warp = t // LANES
        for s in td.static_range(stages - 1):
            if s < steps:
                fetch_a(a, left, s * a_size, t, a_at, a_to, a_of_piece, a_of_step, other)
                fetch_b(b, right, s * b_size, t, b_at, b_to, b_of_piece, b_of_step, other)
            end_copies()
        warp_row = warp // across_warps * warp_rows
        warp_column = warp % across_warps * warp_columns
        a_from = 0
        b_from = 0
        if inner:
            a_from = place_a(warp_row + lane % 8 + lane // 8 % 2 * 8, lane // 16)
            b_from = place_b(warp_column + lane % 8 + lane // 16 * 8, lane // 8 % 2)
        elif by_words:
            a_from = place_a(lane % 4, warp_row // 4 + lane // 16)
            b_from = place_b(lane % 4, warp_column // 4 + lane // 16)
        else:
            a_from = place_a(lane % 8 + lane // 16 * 8, warp_row // 8 + lane // 8 % 2)
            b_from = place_b(lane % 8 + lane // 8 % 2 * 8, warp_column // 8 + lane // 16)
        # A thread has its words of two parts of the inner axis: those that are multiplied, and the
        # next, which are on their way.
        ours = td.local(2 * down, words)
        theirs = td.local(across, words)
        left_at = 0
        right_at = 0
        filled = stages - 1
        wait_copies(stages - 2)
        td.sync_threads()
        for i in td.static_range(down):
            ours[i] = read_a(left, 0, a_from, i, 0)
        for j in td.static_range(across // 2):
            theirs[j] = read_b(right, 0, b_from, j, 0)
        for step in range(steps):
            for d in td.static_range(deep):
                if d == deep - 1:
                    # The next stage is here, and no thread needs the one that is filled next.
                    wait_copies(stages - 2)
                    td.sync_threads()
                    left_at = left_at + a_size if left_at + a_size < stages * a_size else 0
                    right_at = right_at + b_size if right_at + b_size < stages * b_size else 0
                following = (d + 1) % 2
                for i in td.static_range(down):
                    ours[following * down + i] = read_a(left, left_at, a_from, i, (d + 1) % deep)
                for j in td.static_range(across // 2):
                    theirs[following * (across // 2) + j] = read_b(
                        right, right_at, b_from, j, (d + 1) % deep
                    )
                if d == 0:
                    if step + stages - 1 < steps:
                        fetch_a(
                            a, left, filled * a_size, t, a_at, a_to, a_of_piece, a_of_step, other
                        )
                        fetch_b(
                            b, right, filled * b_size, t, b_at, b_to, b_of_piece, b_of_step, other
                        )
                    end_copies()
                    filled = filled + 1 if filled + 1 < stages else 0
                for i in td.static_range(down):
                    for j in td.static_range(across // 2):
                        both = theirs[d % 2 * (across // 2) + j]
                        sums[i * across + 2 * j] = multiply_add(
                            ours[d % 2 * down + i],
                            pair(both.x, both.y),
                            sums[i * across + 2 * j],
                        )
                        sums[i * across + 2 * j + 1] = multiply_add(
                            ours[d % 2 * down + i],
                            pair(both.z, both.w),
                            sums[i * across + 2 * j + 1],
                        )
        wait_copies(0)

    return sum_products


@td.func
def four_neighbours(found, odd):
    """Four neighbours of a row, of sums of which a thread has two of a row and two of the row 8
    further; the other thread of a pair, which is `odd`, has the next two, and takes the further
    row."""
    sent_x = td.shuffle_xor(td.where(odd == 1, found.x, found.z), 1)
    sent_y = td.shuffle_xor(td.where(odd == 1, found.y, found.w), 1)
    near_x = td.where(odd == 1, sent_x, found.x)
    near_y = td.where(odd == 1, sent_y, found.y)
    far_x = td.where(odd == 1, found.z, sent_x)
    far_y = td.where(odd == 1, found.w, sent_y)
    return td.vec4[td.f32](near_x, near_y, far_x, far_y)

"""Softmax of attention's scores in memory, and its derivative, between products of matrices.

A block has a line of scores, those of one query of one head. The lines are those of a slice: some
heads, and of each some queries and keys.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention import LN_2, LOG2_E, kept, mask_scaler, power_of
from treadle.kernels.device_code.block_reductions import maximum_of_block, side_of, sum_of_block
from treadle.lang.decorators import Function, Kernel


@td.struct
class Slice:
    """Scores that are in memory at a time: of some heads `rows` queries from `row` on, and `keys`
    keys from `first_key` on, of `all_keys`.

    `lines` queries see the same keys, those of several heads that are taken for one, and after each
    `queries` of them positions begin anew. `first` is the first head's first line in norms. A query
    sees keys from `left` places before its own to `right` places after it. A mask starts at
    `mask`; the other fields are its steps to the next head of the slice, to the next of those that
    are taken for one, to the next query and to the next key.
    """

    rows: td.i32
    row: td.i32
    lines: td.i32
    queries: td.i32
    first: td.i32
    keys: td.i32
    first_key: td.i32
    all_keys: td.i32
    left: td.i32
    right: td.i32
    mask: td.i32
    mask_head: td.i32
    mask_fold: td.i32
    mask_query: td.i32
    mask_key: td.i32


@td.struct
class Place:
    """Where a block's line of scores is: in norms and sums, in scores, among the queries of its
    head, and in a mask."""

    line: td.i32
    at: td.i32
    row: td.i32
    mask: td.i32


@td.func
def place_of(part: Slice):
    """Where the line of the calling block is."""
    head = td.block_idx.x // part.rows
    line = part.row + td.block_idx.x - head * part.rows
    row = line % part.queries
    mask = part.mask + head * part.mask_head + line // part.queries * part.mask_fold
    mask += row * part.mask_query
    return Place(part.first + head * part.lines + line, td.block_idx.x * part.keys, row, mask)


class Scoring(NamedTuple):
    """What a kernel is made for."""

    dtype: DType  # of the weights that are multiplied
    partial: DType  # of the scores
    mask: DType | None
    dropout: bool
    threads: int  # of a block


@functools.cache
def softmax(what: Scoring) -> Kernel:
    """A kernel that turns scores into weights, whose sum is 1 in each line (before dropout), and
    stores the logarithm of the sum of exponentials."""
    partial, dtype, threads = what.partial, what.dtype, what.threads
    power, score_of = power_of(partial), _score_of(what)
    dropout, side = what.dropout, side_of(threads)
    summed, greatest = sum_of_block(partial, threads), maximum_of_block(threads)

    @td.kernel(checked=False)
    def softmax_lines(
        scores, weights, norms, mask, draws, part: Slice, scale: partial, keep: partial
    ):
        t = td.thread_idx.x
        where = place_of(part)
        place, at, row, mask_row = where.line, where.at, where.row, where.mask
        board = td.shared(threads, partial)
        few = td.shared(side, partial)
        top = partial(-td.inf)
        for j in range(0, part.keys, threads):
            if j + t < part.keys:
                score = score_of(
                    scores[at + j + t], mask, mask_row, row, part.first_key + j + t, part, scale
                )
                top = score if score > top else top
        top = greatest(top, board, few)
        td.sync_threads()
        base = top if top > partial(-td.inf) else partial(0.0)
        total = partial(0.0)
        for j in range(0, part.keys, threads):
            if j + t < part.keys:
                score = score_of(
                    scores[at + j + t], mask, mask_row, row, part.first_key + j + t, part, scale
                )
                total += power(score - base)
        total = summed(total, board, few)
        share = partial(0.0) if total == partial(0.0) else partial(1.0) / total
        if dropout:
            share = share / partial(keep) if keep > 0.0 else partial(0.0)
        draw = td.vec4[td.u32](td.u32(0))
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
        for j in range(0, part.keys, threads):
            if j + t < part.keys:
                score = score_of(
                    scores[at + j + t], mask, mask_row, row, part.first_key + j + t, part, scale
                )
                weight = power(score - base) * share
                if dropout and not kept(
                    td.u32(place), part.all_keys, part.first_key + j + t, draw, keep
                ):
                    weight = partial(0.0)
                weights[at + j + t] = dtype(weight)
        if t == 0:
            norms[place] = top * partial(LN_2) + td.log(total)

    return softmax_lines


@functools.cache
def softmax_gradient(what: Scoring) -> Kernel:
    """A kernel that recomputes weights from scores and from what `softmax` stored, and turns
    gradients of weights into gradients of scores. They are written to `weights` and `slopes`; the
    other arguments are those of `softmax`. `sums` has for each query the sum of its result times
    the gradient of that.
    """
    partial, dtype, threads = what.partial, what.dtype, what.threads
    power, score_of = power_of(partial), _score_of(what)
    dropout = what.dropout

    @td.kernel(checked=False)
    def softmax_gradient_lines(
        scores, gradients, weights, slopes, norms, sums, mask, draws, part: Slice, scale: partial,
        factor: partial, keep: partial,
    ):  # fmt: skip
        t = td.thread_idx.x
        where = place_of(part)
        place, at, row, mask_row = where.line, where.at, where.row, where.mask
        norm = norms[place] * partial(LOG2_E)
        # A query that sees nothing has no weights: every score is -infinity, too.
        base = partial(0.0) if norm == partial(-td.inf) else norm
        own = sums[place]
        draw = td.vec4[td.u32](td.u32(0))
        back = partial(1.0)
        if dropout:
            draw = td.vec4[td.u32](draws[0], draws[1], draws[2], draws[3])
            back = partial(1.0) / partial(keep) if keep > 0.0 else partial(0.0)
        for j in range(0, part.keys, threads):
            if j + t < part.keys:
                score = score_of(
                    scores[at + j + t], mask, mask_row, row, part.first_key + j + t, part, scale
                )
                weight = power(score - base)
                through = back
                if dropout and not kept(
                    td.u32(place), part.all_keys, part.first_key + j + t, draw, keep
                ):
                    through = partial(0.0)
                steep = weight * (gradients[at + j + t] * through - own) * factor
                weights[at + j + t] = dtype(weight * through)
                slopes[at + j + t] = dtype(steep)

    return softmax_gradient_lines


def _score_of(what: Scoring) -> Function:
    """A function that scales a product and adds a mask; -infinity where a query sees nothing."""
    partial = what.partial
    masked, additive = what.mask is not None, what.mask is not dtypes.bool_
    scaled_mask = mask_scaler(partial)

    @td.func
    def score_of(product, mask, mask_row, row, column, part, scale):
        score = product * scale
        seen = row - part.left <= column <= row + part.right
        if masked:
            entry = mask[mask_row + column * part.mask_key]
            if additive:
                score += scaled_mask(entry)
            else:
                seen = seen and entry
        return score if seen else partial(-td.inf)

    return score_of


@functools.cache
def adder(dtype: DType) -> Kernel:
    """A kernel that adds the elements of one array to those of another."""

    @td.kernel(checked=False)
    def add_to(x, y, start: td.i32):
        g = td.grid(1)
        if g < y.size:
            x[start + g] += y[g]

    return add_to

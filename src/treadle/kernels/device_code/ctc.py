"""Forward and backward variables of connectionist temporal classification (CTC), in logarithms
(Graves et al., 2006).

A target of L labels has 2 L + 1 states: a blank before, between and after its labels. A block
computes all states of one sequence, one time step after the other. Impossible states have a
logarithm so low that adding to it changes nothing. It is not -infinity, since the difference of two
of these would be NaN.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel

IMPOSSIBLE = -1e30


@functools.cache
def forward(form: DType, threads: int) -> Kernel:
    """A kernel that makes the logarithms of the probabilities that an alignment is in a state at a
    time, with all that comes before, and of each sequence -log of its probability."""
    parallel = threads > 1

    @td.kernel(checked=False)
    def align_forward(
        scores, targets: td.Array[td.i32], starts: td.Array[td.i32], lengths: td.Array[td.i32],
        sizes: td.Array[td.i32], alpha, losses, times: td.i32, batch: td.i32, classes: td.i32,
        states: td.i32, blank: td.i32,
    ):  # fmt: skip
        n = td.block_idx.x
        length, count = lengths[n], 2 * sizes[n] + 1
        first = starts[n]
        for t in range(times):
            here = (t * batch + n) * states
            before = here - batch * states
            row = (t * batch + n) * classes
            for s in range(td.thread_idx.x, states, threads):
                value = form(IMPOSSIBLE)
                if t < length and s < count:
                    label = _label(targets, first, s, blank)
                    if t == 0:
                        value = form(0) if s < 2 else value
                    else:
                        one = form(alpha[before + s])
                        two, three = form(IMPOSSIBLE), form(IMPOSSIBLE)
                        if s > 0:
                            two = form(alpha[before + s - 1])
                        if s % 2 == 1 and s > 1 and label != targets[first + s // 2 - 1]:
                            three = form(alpha[before + s - 2])
                        value = _sum(one, two, three)
                    value += _score(scores, row, label, classes, form(IMPOSSIBLE))
                alpha[here + s] = value
            if parallel:
                td.sync_threads()
        if td.thread_idx.x == 0:
            # Without time steps, an empty target has probability 1 and any other one 0.
            total = form(0) if count == 1 else form(IMPOSSIBLE)
            if length > 0:
                last = ((length - 1) * batch + n) * states + count - 1
                total = form(alpha[last])
                if count > 1:
                    total = _sum(total, form(alpha[last - 1]), form(IMPOSSIBLE))
            losses[n] = -total

    return align_forward


@functools.cache
def backward(form: DType, threads: int) -> Kernel:
    """A kernel that makes the logarithms of the probabilities of all that comes after a state at a
    time."""
    parallel = threads > 1

    @td.kernel(checked=False)
    def align_backward(
        scores, targets: td.Array[td.i32], starts: td.Array[td.i32], lengths: td.Array[td.i32],
        sizes: td.Array[td.i32], beta, times: td.i32, batch: td.i32, classes: td.i32,
        states: td.i32, blank: td.i32,
    ):  # fmt: skip
        n = td.block_idx.x
        length, count = lengths[n], 2 * sizes[n] + 1
        first = starts[n]
        for step in range(times):
            t = times - 1 - step
            here = (t * batch + n) * states
            after = here + batch * states
            row = ((t + 1) * batch + n) * classes
            for s in range(td.thread_idx.x, states, threads):
                value = form(IMPOSSIBLE)
                if t < length and s < count:
                    if t == length - 1:
                        value = form(0) if s >= count - 2 else value
                    else:
                        low = form(IMPOSSIBLE)
                        label = _label(targets, first, s, blank)
                        one = form(beta[after + s]) + _score(scores, row, label, classes, low)
                        two, three = low, low
                        if s + 1 < count:
                            near = _label(targets, first, s + 1, blank)
                            two = form(beta[after + s + 1])
                            two += _score(scores, row, near, classes, low)
                        if s % 2 == 1 and s + 2 < count:
                            far = targets[first + s // 2 + 1]
                            if label != far:
                                three = form(beta[after + s + 2])
                                three += _score(scores, row, far, classes, low)
                        value = _sum(one, two, three)
                beta[here + s] = value
            if parallel:
                td.sync_threads()

    return align_backward


@td.func
def _label(targets: td.Array[td.i32], first: td.i32, s: td.i32, blank: td.i32):
    label = blank
    if s % 2 == 1:
        label = targets[first + s // 2]
    return label


@td.func
def _score(scores, row: td.i32, label: td.i32, classes: td.i32, low):
    """A label's log-probability, at least IMPOSSIBLE; IMPOSSIBLE for a label out of range."""
    value = low
    if label >= 0 and label < classes:
        given = scores[row + label]
        value = low if given < low else given
    return value


@td.func
def _sum(one, two, three):
    """log(exp(one) + exp(two) + exp(three))."""
    most = one if one > two else two
    most = most if most > three else three
    return most + td.log(td.exp(one - most) + td.exp(two - most) + td.exp(three - most))

"""Panels that are too long for registers, factored in memory; and what is made of pivots.

Each matrix is followed by the layout of its rows and columns, counted from the panel.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import MOST_SCALED, arithmetic_of
from treadle.kernels.device_code.matrix_blocks import Layout, place
from treadle.lang.decorators import Kernel
from treadle.lang.math import complex_arithmetic


@functools.cache
def lu_panel(dtype: DType, width: int, groups: int) -> Kernel:
    """A kernel that factors a panel of up to `width` columns in place. It writes for each column
    the row with which its own was exchanged, the panel's first being `first`, and notes the first
    pivot (counted from 1) that is 0."""
    ops = arithmetic_of(dtype)
    real, mul, div, size = ops.real, ops.mul, ops.div, ops.size
    threads = width * groups

    @td.kernel(checked=False)
    def factor_panel(
        a, a_layout: Layout, pivots: td.Array[td.i32, 2], status: td.Array[td.i32], first
    ):
        m = td.block_idx.x
        a_first = a_layout.at + m * a_layout.step
        t = td.thread_idx.x
        group = t // width
        column = t - group * width
        sizes = td.shared(threads, real)
        places = td.shared(threads, td.i32)
        bad = 0
        for k in range(a_layout.columns):
            most = real(-1)
            row = k
            for i in range(k + t, a_layout.rows, threads):
                here = size(a[place(a_layout, a_first, i, k)])
                if here > most:
                    most = here
                    row = i
            sizes[t] = most
            places[t] = row
            step = threads // 2
            while step > 0:
                td.sync_threads()
                if t < step:
                    other = sizes[t + step]
                    where = places[t + step]
                    if other > sizes[t] or (other == sizes[t] and where < places[t]):
                        sizes[t] = other
                        places[t] = where
                step = step // 2
            td.sync_threads()
            found = places[0]
            most = sizes[0]
            if group == 0 and column < a_layout.columns:
                upper = place(a_layout, a_first, k, column)
                lower = place(a_layout, a_first, found, column)
                one = a[upper]
                a[upper] = a[lower]
                a[lower] = one
            if t == 0:
                pivots[m, first + k] = first + found
            if most == real(0) and bad == 0:
                bad = first + k + 1
            td.sync_threads()
            if most != real(0):
                pivot = a[place(a_layout, a_first, k, k)]
                for i in range(k + 1 + t, a_layout.rows, threads):
                    at = place(a_layout, a_first, i, k)
                    a[at] = div(a[at], pivot)
            td.sync_threads()
            if column > k and column < a_layout.columns:
                above = a[place(a_layout, a_first, k, column)]
                for i in range(k + 1 + group, a_layout.rows, groups):
                    at = place(a_layout, a_first, i, column)
                    a[at] = a[at] - mul(a[place(a_layout, a_first, i, k)], above)
            td.sync_threads()
        if t == 0 and bad != 0 and status[m] == 0:
            status[m] = bad

    return factor_panel


@td.kernel(checked=False)
def exchange_rows(a, a_layout: Layout, pivots: td.Array[td.i32, 2], first, count, gap, gap_columns):
    """Exchange so many rows, from `first` on, with those that their pivots were found in, but in
    the columns of a gap. A thread does one column."""
    thread = td.grid(1)
    columns = a_layout.columns - gap_columns
    m = thread // columns
    column = thread - m * columns
    if column >= gap:
        column += gap_columns
    top = a_layout.at + m * a_layout.step + column * a_layout.along
    for k in range(first, first + count):
        upper = top + k * a_layout.down
        lower = top + pivots[m, k] * a_layout.down
        one = a[upper]
        a[upper] = a[lower]
        a[lower] = one


@td.kernel(checked=False)
def write_order(pivots: td.Array[td.i32, 2], order: td.Array[td.i32, 2]):
    """Write where each row was before all exchanges. A thread does one matrix."""
    m = td.grid(1)
    for k in range(order.shape[1]):
        order[m, k] = k
    for k in range(pivots.shape[1]):
        at = pivots[m, k]
        row = order[m, k]
        order[m, k] = order[m, at]
        order[m, at] = row


@td.kernel(checked=False)
def permute_rows(b, order: td.Array[td.i32, 2], x):
    """Write the rows of matrices in another order. A thread does one element."""
    m, i, j = td.grid(3)
    x[m, i, j] = b[m, order[m, i], j]


@functools.cache
def qr_panel(dtype: DType, width: int, groups: int) -> Kernel:
    """A kernel that makes a panel of up to `width` columns triangular by Householder's reflections,
    I - tau v v^H with v[0] = 1, with LAPACK's signs. It writes the vectors to `v` and to `w` the
    triangle of which their product is I - v w v^H (R. Schreiber and C. van Loan, "A
    storage-efficient WY representation for products of Householder transformations", 1989)."""
    ops = arithmetic_of(dtype)
    element, real, number = ops.element, ops.real, ops.number
    mul, div, times, square = ops.mul, ops.div, ops.times, ops.square
    conj, part, size = ops.conj, ops.part, ops.size
    threads = width * groups

    @td.kernel(checked=False)
    def reflect_panel(a, a_layout: Layout, v, v_layout: Layout, w, w_layout: Layout):
        m = td.block_idx.x
        a_first = a_layout.at + m * a_layout.step
        v_first = v_layout.at + m * v_layout.step
        w_first = w_layout.at + m * w_layout.step
        t = td.thread_idx.x
        group = t // width
        column = t - group * width
        reals = td.shared(threads, real)
        sums = td.shared(threads, element)
        triangle = td.shared(width * width, element)
        if group == 0:
            for j in range(width):
                triangle[column * width + j] = number(real(0))
        for k in range(a_layout.columns):
            alpha = a[place(a_layout, a_first, k, k)]
            # Squares are summed relative to the largest magnitude, so that none overflows.
            most = real(0)
            for i in range(k + 1 + t, a_layout.rows, threads):
                most = td.maximum(most, size(a[place(a_layout, a_first, i, k)]))
            if t == 0:
                most = td.maximum(most, size(alpha - number(part(alpha))))
            reals[t] = most
            step = threads // 2
            while step > 0:
                td.sync_threads()
                if t < step:
                    reals[t] = td.maximum(reals[t], reals[t + step])
                step = step // 2
            td.sync_threads()
            below = reals[0]
            td.sync_threads()
            most = td.maximum(td.maximum(below, size(alpha)), real(1.0 / MOST_SCALED))
            inverse = real(1) / most
            total = real(0)
            for i in range(k + t, a_layout.rows, threads):
                total += square(times(a[place(a_layout, a_first, i, k)], inverse))
            reals[t] = total
            step = threads // 2
            while step > 0:
                td.sync_threads()
                if t < step:
                    reals[t] = reals[t] + reals[t + step]
                step = step // 2
            td.sync_threads()
            beta = td.sqrt(reals[0])
            if part(alpha) >= real(0):
                beta = -beta
            tau = number(real(0))
            shifted = number(real(1))
            reflects = td.isnan(below) or below > real(0)
            if reflects:
                alpha = times(alpha, inverse)
                tau = times(number(beta) - alpha, real(1) / beta)
                shifted = alpha - number(beta)
            for i in range(k + t, a_layout.rows, threads):
                value = number(real(1))
                at = place(a_layout, a_first, i, k)
                if i > k:
                    value = number(real(0))
                    if reflects:
                        value = div(times(a[at], inverse), shifted)
                    a[at] = number(real(0))
                elif reflects:
                    a[at] = number(beta * most)
                v[place(v_layout, v_first, i, k)] = value
            for i in range(t, k, threads):
                v[place(v_layout, v_first, i, k)] = number(real(0))
            td.sync_threads()
            # Columns after this one: v^H a. Columns before it: products of their vectors with v.
            own = number(real(0))
            if column < a_layout.columns and column != k:
                for i in range(k + group, a_layout.rows, groups):
                    mine = v[place(v_layout, v_first, i, k)]
                    if column > k:
                        own += mul(conj(mine), a[place(a_layout, a_first, i, column)])
                    else:
                        own += mul(conj(v[place(v_layout, v_first, i, column)]), mine)
            sums[t] = own
            step = groups // 2
            while step > 0:
                td.sync_threads()
                if group < step:
                    sums[t] = sums[t] + sums[t + step * width]
                step = step // 2
            td.sync_threads()
            if column > k and column < a_layout.columns:
                by = mul(conj(tau), sums[column])
                for i in range(k + group, a_layout.rows, groups):
                    at = place(a_layout, a_first, i, column)
                    a[at] = a[at] - mul(v[place(v_layout, v_first, i, k)], by)
            if group == 0 and column < k:
                total_of = number(real(0))
                for j in range(column, k):
                    total_of += mul(triangle[column * width + j], sums[j])
                triangle[column * width + k] = number(real(0)) - mul(tau, total_of)
            if t == k:
                triangle[k * width + k] = tau
            td.sync_threads()
        for e in range(t, a_layout.columns * a_layout.columns, threads):
            i = e // a_layout.columns
            j = e - i * a_layout.columns
            w[place(w_layout, w_first, i, j)] = triangle[i * width + j]

    return reflect_panel


# Powers of two that are factored out, so that intermediate products do not overflow.
_UP, _DOWN = 2.0**60, 2.0**-60
_LARGE, _TINY = 2.0**30, 2.0**-30


@functools.cache
def determinants(dtype: DType, threads: int) -> Kernel:
    """A kernel that multiplies the pivots of each matrix. A block has one matrix, or with one
    thread each thread has one. Powers of two are taken out and counted, so that only the product
    itself overflows."""
    ops = arithmetic_of(dtype)
    element, real, number, mul = ops.element, ops.real, ops.number, ops.mul
    size, times = ops.size, ops.times
    iterations = 3 if real.itemsize == 4 else 18  # the most powers that a number has

    @td.func
    def reduced(value, powers):
        """A number between the limits, and the powers that were counted."""
        for _ in range(iterations):
            if size(value) > real(_LARGE):
                value = times(value, real(_DOWN))
                powers += 1
            elif size(value) < real(_TINY) and size(value) > real(0):
                value = times(value, real(_UP))
                powers -= 1
        return value, powers

    @td.kernel(checked=False)
    def multiply_pivots(a, a_layout: Layout, pivots: td.Array[td.i32, 2], product):
        m = td.grid(1) if threads == 1 else td.block_idx.x
        t = 0 if threads == 1 else td.thread_idx.x
        first = a_layout.at + m * a_layout.step
        products = td.shared(threads, element)
        counts = td.shared(threads, td.i32)
        total = number(real(1))
        powers = 0
        for k in range(t, a_layout.rows, threads):
            value, powers = reduced(a[first + k * (a_layout.down + a_layout.along)], powers)
            total, powers = reduced(mul(total, value), powers)
            if pivots[m, k] != k:
                total = number(real(0)) - total
        if threads > 1:
            products[t] = total
            counts[t] = powers
            td.sync_threads()
        if t == 0:
            for other in range(1, threads):
                total, powers = reduced(mul(total, products[other]), powers + counts[other])
            back = real(_UP) if powers > 0 else real(_DOWN)
            for _ in range(td.minimum(td.abs(powers), 2 * iterations)):
                total = times(total, back)
            product[m] = total

    return multiply_pivots


@functools.cache
def log_determinants(dtype: DType, threads: int) -> Kernel:
    """A kernel that makes of the pivots of each matrix a product of magnitude 1 (0 for a singular
    matrix) and the logarithm of their magnitudes' product. A block has one
    matrix, or with one thread each thread has one."""
    ops = arithmetic_of(dtype)
    element, real, number, mul, div = ops.element, ops.real, ops.number, ops.mul, ops.div
    magnitude = td.func(complex_arithmetic.abs) if dtype.is_complex else ops.size

    @td.kernel(checked=False)
    def add_logarithms(a, a_layout: Layout, pivots: td.Array[td.i32, 2], signs, logs):
        m = td.grid(1) if threads == 1 else td.block_idx.x
        t = 0 if threads == 1 else td.thread_idx.x
        first = a_layout.at + m * a_layout.step
        products = td.shared(threads, element)
        sums = td.shared(threads, real)
        total = number(real(1))
        log = real(0)
        for k in range(t, a_layout.rows, threads):
            pivot = a[first + k * (a_layout.down + a_layout.along)]
            size = magnitude(pivot)
            log += td.log(size)
            total = mul(total, div(pivot, number(size if size != real(0) else real(1))))
            if pivots[m, k] != k:
                total = number(real(0)) - total
        if threads > 1:
            products[t] = total
            sums[t] = log
            td.sync_threads()
        if t == 0:
            for other in range(1, threads):
                total = mul(total, products[other])
                log += sums[other]
            signs[m] = total
            logs[m] = log

    return add_logarithms

"""Symmetric matrices made tridiagonal, and others bidiagonal, by Householder's reflections.

A step has two parts: one block of threads for each matrix finds the next reflection, and many
blocks apply the previous ones to what remains of the matrix and multiply it with the new vector, in
one pass over memory. Vectors are kept as rows, so that later ones can be applied together.

Elements are scaled first, so that the largest is from 1 to 2 in magnitude: then squares neither
overflow nor lose what matters.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.block_reductions import maximum_of_block, side_of, sum_of_block
from treadle.kernels.device_code.matrix_blocks import Layout, place
from treadle.lang.decorators import Function, Kernel

LANES = 32  # threads that multiply a row, or adjacent columns
_TINY = {4: 1e-32, 8: 1e-290}  # squares (of numbers beside 1) that are taken for 0
_LEAST = {4: 2.0**-126, 8: 2.0**-1022}


@functools.cache
def row_measurer(dtype: DType, threads: int) -> Kernel:
    """A kernel that writes the largest magnitude of each row, or with `lower` of its part up to the
    diagonal; `infinity` if one is not finite. A block measures a row."""
    greatest = maximum_of_block(threads)
    side = side_of(threads)

    @td.kernel(checked=False)
    def measure_rows(a, a_layout: Layout, sizes, lower, infinity):
        row = td.block_idx.x
        m = row // a_layout.rows
        i = row - m * a_layout.rows
        t = td.thread_idx.x
        end = i + 1 if lower == 1 else a_layout.columns
        most = dtype(0.0)
        for j in range(t, end, threads):
            value = td.abs(a[place(a_layout, a_layout.at + m * a_layout.step, i, j)])
            most = td.maximum(most, value) if td.isfinite(value) else dtype(infinity)
        most = greatest(most, td.shared(threads, dtype), td.shared(side, dtype))
        if t == 0:
            sizes[row] = most

    return measure_rows


@functools.cache
def _power_below(dtype: DType) -> Function:
    """A function that gives the power of two that is not greater than a finite number; 1 for 0."""
    least = _LEAST[dtype.itemsize]

    @td.func
    def power(most):
        found = dtype(1.0)
        if most > dtype(0.0):
            for factor in (2.0**32, 2.0**6, 2.0):
                while most / found >= dtype(factor):
                    found *= dtype(factor)
                while found > most and found > dtype(least * factor):
                    found /= dtype(factor)
                while most / found >= dtype(factor):
                    found *= dtype(factor)
        return found

    return power


@functools.cache
def scale_finder(dtype: DType, threads: int) -> Kernel:
    """A kernel that writes by what the elements of each matrix are divided, a power of two; or `nan`
    for a matrix that is not finite. A block does one matrix."""
    greatest, power = maximum_of_block(threads), _power_below(dtype)
    side = side_of(threads)

    @td.kernel(checked=False)
    def find_scale(sizes, scales, rows, nan):
        m = td.block_idx.x
        t = td.thread_idx.x
        most = dtype(0.0)
        for i in range(t, rows, threads):
            most = td.maximum(most, sizes[m * rows + i])
        most = greatest(most, td.shared(threads, dtype), td.shared(side, dtype))
        if t == 0:
            scales[m] = power(most) if td.isfinite(most) else dtype(nan)

    return find_scale


@functools.cache
def scaled_copier(dtype: DType) -> Kernel:
    """A kernel that copies matrices, divided by their scales; those that are not finite as zeros,
    and zeros into further rows. With `lower` the upper triangle is the mirrored lower one. A thread
    writes one element."""

    @td.kernel(checked=False)
    def copy_scaled(a, a_layout: Layout, scales, out, rows, lower):
        e = td.grid(1)
        row = e // a_layout.columns
        j = e - row * a_layout.columns
        m = row // rows
        i = row - m * rows
        value = dtype(0.0)
        scale = scales[m]
        if i < a_layout.rows and not td.isnan(scale):
            y = td.maximum(i, j) if lower == 1 else i
            x = td.minimum(i, j) if lower == 1 else j
            value = a[place(a_layout, a_layout.at + m * a_layout.step, y, x)] / scale
        out[e] = value

    return copy_scaled


@functools.cache
def _reflection_of(dtype: DType) -> Function:
    """A function of alpha and the square of the norm of what follows it: beta, tau, and by what the
    elements that follow are multiplied, with which I - tau v v^T makes (beta, 0, …) of them."""
    tiny = _TINY[dtype.itemsize]

    @td.func
    def reflection(alpha, square):
        beta = alpha
        tau = dtype(0.0)
        by = dtype(0.0)
        if square > dtype(tiny):
            size = td.sqrt(alpha * alpha + square)
            beta = -size if alpha > dtype(0.0) else size
            tau = (beta - alpha) / beta
            by = dtype(1.0) / (alpha - beta)
        return beta, tau, by

    return reflection


# --- tridiagonal ---------------------------------------------------------------------------------


@functools.cache
def row_reflector(dtype: DType, threads: int) -> Kernel:
    """A kernel that takes row k of symmetric matrices, brings it up to date and makes it
    tridiagonal: the vector replaces the row. What remains of a matrix lacks v w^T + w v^T, where v
    is the previous vector (the row before) and w is made from the matrix times v."""
    summed, reflection = sum_of_block(dtype, threads), _reflection_of(dtype)
    side = side_of(threads)

    @td.kernel(checked=False)
    def reflect_row(a, product, w, taus, diagonal, beside, n, rows, steps, k):
        m = td.block_idx.x
        t = td.thread_idx.x
        row = (m * rows + k) * n
        last = (m * rows + td.maximum(k - 1, 0)) * n
        vector = m * n
        board = td.shared(threads, dtype)
        few = td.shared(side, dtype)
        tau = dtype(0.0)
        if k > 0:
            tau = taus[m * steps + k - 1]
        one = td.minimum(k + 1, n - 1)
        v_k = a[last + k]
        v_one = a[last + one]
        alpha = a[row + one]
        own = dtype(0.0)
        for j in range(t, n, threads):
            if j >= k:
                own += product[vector + j] * a[last + j]
        half = tau * tau * summed(own, board, few) / dtype(2.0)
        w_k = tau * product[vector + k] - half * v_k
        alpha -= v_k * (tau * product[vector + one] - half * v_one) + w_k * v_one
        own = dtype(0.0)
        for j in range(t, n, threads):
            if j >= k:
                v = a[last + j]
                here = tau * product[vector + j] - half * v
                x = a[row + j] - v_k * here - w_k * v
                w[vector + j] = here
                a[row + j] = x
                if j == k:
                    diagonal[vector + k] = x
                if j > k + 1:
                    own += x * x
        beta, tau, by = reflection(alpha, summed(own, board, few))
        for j in range(t, n, threads):
            value = dtype(0.0)
            if j == k + 1:
                value = dtype(1.0)
            if j > k + 1:
                value = a[row + j] * by
            a[row + j] = value
            if j <= k:
                w[vector + j] = dtype(0.0)
        if t == 0 and k + 1 < n:
            taus[m * steps + k] = tau
            beside[vector + k] = beta

    return reflect_row


@functools.cache
def symmetric_multiplier(dtype: DType, threads: int) -> Kernel:
    """A kernel that subtracts v w^T + w v^T from what remains of matrices after row k, and writes
    its product with the vector in row k. A row has `LANES` threads."""
    groups = threads // LANES

    @td.kernel(checked=False)
    def multiply_symmetric(a, w, product, n, rows, k):
        blocks = (n - k - 1 + groups - 1) // groups
        m = td.block_idx.x // blocks
        t = td.thread_idx.x
        group = t // LANES
        lane = t - group * LANES
        i = k + 1 + (td.block_idx.x - m * blocks) * groups + group
        board = td.shared(threads, dtype)
        own = dtype(0.0)
        if i < n:
            line = (m * rows + i) * n
            last = (m * rows + td.maximum(k - 1, 0)) * n
            now = (m * rows + k) * n
            v_i = a[last + i]
            w_i = w[m * n + i]
            for j in range((k + 1) // LANES * LANES + lane, n, LANES):
                x = a[line + j] - v_i * w[m * n + j] - w_i * a[last + j]
                a[line + j] = x
                own += x * a[now + j]
        board[t] = own
        for s in td.static_range(5):
            td.sync_threads()
            if lane < (LANES >> (s + 1)):
                board[t] = board[t] + board[t + (LANES >> (s + 1))]
        if lane == 0 and i < n:
            product[m * n + i] = board[t]

    return multiply_symmetric


# --- bidiagonal ----------------------------------------------------------------------------------


@functools.cache
def column_reflector(dtype: DType, threads: int) -> Kernel:
    """A kernel that takes column k of matrices, brings it up to date (what remains lacks
    u y^T + x v^T of the step before) and finds the reflection that leaves its first element. The
    vector u goes to row k of `left`."""
    summed, reflection = sum_of_block(dtype, threads), _reflection_of(dtype)
    side = side_of(threads)

    @td.kernel(checked=False)
    def reflect_column(
        a, left, y, x, right, taus, diagonal, rows, columns, left_steps, right_steps, k
    ):
        m = td.block_idx.x
        t = td.thread_idx.x
        before = td.maximum(k - 1, 0)
        u_last = (m * left_steps + before) * rows
        u_now = (m * left_steps + k) * rows
        top = m * rows * columns + k
        y_k = dtype(0.0)
        v_k = dtype(0.0)
        if k > 0:
            y_k = y[m * columns + k]
            v_k = right[(m * right_steps + before) * columns + k]
        alpha = a[top + k * columns]
        if k > 0:
            alpha -= left[u_last + k] * y_k + x[m * rows + k] * v_k
        own = dtype(0.0)
        for i in range(t, rows, threads):
            if i > k:
                value = a[top + i * columns]
                if k > 0:
                    value -= left[u_last + i] * y_k + x[m * rows + i] * v_k
                left[u_now + i] = value
                own += value * value
        square = summed(own, td.shared(threads, dtype), td.shared(side, dtype))
        beta, tau, by = reflection(alpha, square)
        for i in range(t, rows, threads):
            value = dtype(0.0)
            if i == k:
                value = dtype(1.0)
            if i > k:
                value = left[u_now + i] * by
            left[u_now + i] = value
        if t == 0:
            taus[m * left_steps + k] = tau
            diagonal[m * columns + k] = beta

    return reflect_column


@functools.cache
def column_multiplier(dtype: DType, threads: int) -> Kernel:
    """A kernel that subtracts u y^T + x v^T of step k - 1 from what remains of matrices, and sums
    the columns times the vector u of step k over stretches of `length` rows. A block has `LANES`
    columns of a stretch."""
    groups = threads // LANES

    @td.kernel(checked=False)
    def multiply_columns(
        a, left, y, x, right, sums, rows, columns, left_steps, right_steps, length, k
    ):
        blocks = (columns - k - 1 + LANES - 1) // LANES
        parts = (rows + length - 1) // length
        m = td.block_idx.x // (blocks * parts)
        rest = td.block_idx.x - m * blocks * parts
        part = rest // blocks
        t = td.thread_idx.x
        group = t // LANES
        lane = t - group * LANES
        j = k + 1 + (rest - part * blocks) * LANES + lane
        before = td.maximum(k - 1, 0)
        u_last = (m * left_steps + before) * rows
        u_now = (m * left_steps + k) * rows
        board = td.shared(threads, dtype)
        own = dtype(0.0)
        if j < columns:
            y_j = dtype(0.0)
            v_j = dtype(0.0)
            if k > 0:
                y_j = y[m * columns + j]
                v_j = right[(m * right_steps + before) * columns + j]
            end = td.minimum((part + 1) * length, rows)
            for i in range(part * length + group, end, groups):
                if i >= k:
                    at = (m * rows + i) * columns + j
                    value = a[at]
                    if k > 0:
                        value -= left[u_last + i] * y_j + x[m * rows + i] * v_j
                        a[at] = value
                    own += value * left[u_now + i]
        board[t] = own
        td.sync_threads()
        if group == 0 and j < columns:
            total = dtype(0.0)
            for g in range(groups):
                total += board[g * LANES + lane]
            sums[(m * parts + part) * columns + j] = total

    return multiply_columns


@functools.cache
def remaining_row_reflector(dtype: DType, threads: int) -> Kernel:
    """A kernel that takes row k of matrices behind the diagonal, from which the reflection of
    column k is subtracted (by y, made from the sums of columns), and finds the reflection that
    leaves its first element. The vector v goes to row k of `right`."""
    summed, reflection = sum_of_block(dtype, threads), _reflection_of(dtype)
    side = side_of(threads)

    @td.kernel(checked=False)
    def reflect_remaining_row(
        a, sums, y, right, left_taus, right_taus, beside, rows, columns, left_steps, right_steps,
        parts, k,
    ):  # fmt: skip
        m = td.block_idx.x
        t = td.thread_idx.x
        row = (m * rows + k) * columns
        v_now = (m * right_steps + k) * columns
        tau = left_taus[m * left_steps + k]
        first = dtype(0.0)
        for p in range(parts):
            first += sums[(m * parts + p) * columns + k + 1]
        alpha = a[row + k + 1] - tau * first
        own = dtype(0.0)
        for j in range(t, columns, threads):
            if j > k:
                total = dtype(0.0)
                for p in range(parts):
                    total += sums[(m * parts + p) * columns + j]
                y[m * columns + j] = tau * total
                value = a[row + j] - tau * total
                right[v_now + j] = value
                if j > k + 1:
                    own += value * value
        square = summed(own, td.shared(threads, dtype), td.shared(side, dtype))
        beta, tau, by = reflection(alpha, square)
        for j in range(t, columns, threads):
            value = dtype(0.0)
            if j == k + 1:
                value = dtype(1.0)
            if j > k + 1:
                value = right[v_now + j] * by
            right[v_now + j] = value
        if t == 0:
            right_taus[m * right_steps + k] = tau
            beside[m * columns + k] = beta

    return reflect_remaining_row


@functools.cache
def row_multiplier(dtype: DType, threads: int) -> Kernel:
    """A kernel that multiplies the rows after row k, from which u y^T is subtracted, with the
    vector v of step k and its tau. A row has `LANES` threads."""
    groups = threads // LANES

    @td.kernel(checked=False)
    def multiply_rows(a, left, y, right, right_taus, x, rows, columns, left_steps, right_steps, k):
        blocks = (rows - k - 1 + groups - 1) // groups
        m = td.block_idx.x // blocks
        t = td.thread_idx.x
        group = t // LANES
        lane = t - group * LANES
        i = k + 1 + (td.block_idx.x - m * blocks) * groups + group
        board = td.shared(threads, dtype)
        own = dtype(0.0)
        if i < rows:
            line = (m * rows + i) * columns
            now = (m * right_steps + k) * columns
            u_i = left[(m * left_steps + k) * rows + i]
            for j in range((k + 1) // LANES * LANES + lane, columns, LANES):
                if j > k:
                    own += (a[line + j] - u_i * y[m * columns + j]) * right[now + j]
        board[t] = own
        for s in td.static_range(5):
            td.sync_threads()
            if lane < (LANES >> (s + 1)):
                board[t] = board[t] + board[t + (LANES >> (s + 1))]
        if lane == 0 and i < rows:
            x[m * rows + i] = right_taus[m * right_steps + k] * board[t]

    return multiply_rows


# --- several reflections together ----------------------------------------------------------------


@functools.cache
def triangle_maker(dtype: DType, width: int) -> Kernel:
    """A kernel that replaces the products v_i^T v_j of `width` reflections by the triangle t of
    which their product is I - v t v^T. A block does one triangle."""

    @td.kernel(checked=False)
    def make_triangle(gram, taus):
        b = td.block_idx.x
        i = td.thread_idx.x
        given = td.shared(width * width, dtype)
        made = td.shared(width * width, dtype)
        for j in range(width):
            given[j * width + i] = gram[(b * width + j) * width + i]
            made[i * width + j] = dtype(0.0)
        td.sync_threads()
        # Thread i has row i; column j needs the columns before it in the same row alone.
        for j in range(i, width):
            tau = taus[b * width + j]
            value = tau
            if j > i:
                total = dtype(0.0)
                for k in range(i, j):
                    total += made[i * width + k] * given[k * width + j]
                value = -tau * total
            made[i * width + j] = value
        td.sync_threads()
        for j in range(width):
            gram[(b * width + j) * width + i] = made[j * width + i]

    return make_triangle


# --- results -------------------------------------------------------------------------------------


@functools.cache
def value_finisher(dtype: DType) -> Kernel:
    """A kernel that multiplies the first `kept` values of each matrix by its scale, and with `both`
    by its bound."""

    @td.kernel(checked=False)
    def finish_values(values, bounds, scales, out, pitch, kept, both):
        at = td.grid(1)
        m = at // kept
        value = values[m * pitch + at - m * kept]
        if both == 1:
            value *= bounds[m]
        out[at] = value * scales[m]

    return finish_values


@functools.cache
def vector_finisher(dtype: DType) -> Kernel:
    """A kernel that copies matrices, or writes the scale (NaN) of those that are not finite. A
    thread writes one element."""

    @td.kernel(checked=False)
    def finish_vectors(a, a_layout: Layout, scales, out):
        at = td.grid(1)
        row = at // a_layout.columns
        j = at - row * a_layout.columns
        m = row // a_layout.rows
        value = a[place(a_layout, a_layout.at + m * a_layout.step, row - m * a_layout.rows, j)]
        scale = scales[m]
        out[at] = scale if td.isnan(scale) else value

    return finish_vectors

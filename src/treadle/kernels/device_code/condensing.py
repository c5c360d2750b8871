"""Symmetric matrices made tridiagonal, and others bidiagonal, by Householder's reflections.

A reflection of a column depends on all before it, so each is a launch (two for bidiagonal matrices,
which have reflections of rows, too). In one pass over what remains of a matrix it applies the
reflections of the step before, and multiplies with the new vector, which each block finds for
itself: that is quicker than a launch for it. Vectors are kept as rows, and applied to others later,
some at once.

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

LANES = 32  # threads that multiply a row
AT_ONCE = 4  # elements that a thread loads before it uses them: memory takes long to answer
COLUMNS = 8  # adjacent columns that a block multiplies: 32 bytes, which memory reads at once
_TINY = {4: 1e-32, 8: 1e-290}  # squares that are taken for 0, where numbers are about 1
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
    """A kernel that writes by what the elements of each matrix are divided, a power of two; or
    `nan` for a matrix that is not finite. A block does one matrix."""
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
def symmetric_step(dtype: DType, threads: int, rows: int) -> Kernel:
    """A kernel that takes step k of making n × n matrices tridiagonal: it finds the reflection that
    leaves one element of row k behind the diagonal, and writes the product of what follows the row
    with its vector.

    What follows the row lacks v w^T + w v^T of the step before, which is subtracted on the way,
    where w is made from the product with v that the step before wrote. Row k of `vectors` gets the
    new vector; row n - 1 has zeros. Each of the `blocks` of a matrix finds the vector for itself;
    then `LANES` of its threads multiply some rows.
    """
    summed, reflection = sum_of_block(dtype, threads), _reflection_of(dtype)
    side = side_of(threads)

    @td.kernel(checked=False)
    def take_symmetric_step(
        a, vectors, product, following, taus, diagonal, off_diagonal, n, steps, blocks, k
    ):
        m = td.block_idx.x // blocks
        part = td.block_idx.x - m * blocks
        t = td.thread_idx.x
        group = t // LANES
        lane = t - group * LANES
        board = td.shared(threads, dtype)
        few = td.shared(side, dtype)
        matrix = m * n * n
        row = matrix + k * n
        last = (m * steps + (k - 1 if k > 0 else n - 1)) * n
        now = (m * steps + k) * n
        known = m * n
        tau = dtype(0.0)
        if k > 0:
            tau = taus[m * steps + k - 1]
        own = dtype(0.0)
        for start in range(t, n, threads * AT_ONCE):
            for q in td.static_range(AT_ONCE):
                j = start + q * threads
                at = td.minimum(j, n - 1)
                term = product[known + at] * vectors[last + at]
                own += term if j >= k and j < n else dtype(0.0)
        half = tau * tau * summed(own, board, few) / dtype(2.0)
        v_k = vectors[last + k]
        w_k = tau * product[known + k] - half * v_k
        own = dtype(0.0)
        for start in range(t, n, threads * AT_ONCE):
            for q in td.static_range(AT_ONCE):
                j = start + q * threads
                at = td.minimum(j, n - 1)
                v_at = vectors[last + at]
                here = tau * product[known + at] - half * v_at
                value = a[row + at] - v_k * here - w_k * v_at
                own += value * value if j > k + 1 and j < n else dtype(0.0)
        square = summed(own, board, few)
        one = td.minimum(k + 1, n - 1)
        v_one = vectors[last + one]
        w_one = tau * product[known + one] - half * v_one
        beta, next_tau, by = reflection(a[row + one] - v_k * w_one - w_k * v_one, square)
        first = k + 1 + (part * (threads // LANES) + group) * rows
        v_of = td.local(rows, dtype)
        w_of = td.local(rows, dtype)
        sums = td.local(rows, dtype)
        for r in td.static_range(rows):
            i = td.minimum(first + r, n - 1)
            v_of[r] = vectors[last + i]
            w_of[r] = tau * product[known + i] - half * v_of[r]
            sums[r] = dtype(0.0)
        v = td.local(AT_ONCE, dtype)
        w = td.local(AT_ONCE, dtype)
        u = td.local(AT_ONCE, dtype)
        x = td.local(AT_ONCE * rows, dtype)
        for start in range((k + 1) // LANES * LANES + lane, n, LANES * AT_ONCE):
            # Loads do not pass stores, which may be to the same memory: some are done first.
            for q in td.static_range(AT_ONCE):
                at = td.minimum(start + q * LANES, n - 1)
                v[q] = vectors[last + at]
                w[q] = product[known + at]
                u[q] = a[row + at]
                for r in td.static_range(rows):
                    x[q * rows + r] = a[matrix + td.minimum(first + r, n - 1) * n + at]
            for q in td.static_range(AT_ONCE):
                j = start + q * LANES
                here = tau * w[q] - half * v[q]
                factor = (u[q] - v_k * here - w_k * v[q]) * by
                if j == k + 1:
                    factor = dtype(1.0)
                if j > k and j < n:
                    for r in td.static_range(rows):
                        if first + r < n:
                            value = x[q * rows + r] - v_of[r] * here - w_of[r] * v[q]
                            a[matrix + (first + r) * n + j] = value
                            sums[r] = sums[r] + value * factor
        for r in td.static_range(rows):
            total = line_sum(sums[r], board)
            if lane == 0 and first + r < n:
                following[known + first + r] = total
        if part == 0 and k + 1 < n:
            for j in range(t, n, threads):
                value = dtype(0.0)
                if j == k + 1:
                    value = dtype(1.0)
                if j > k + 1:
                    v_at = vectors[last + j]
                    here = tau * product[known + j] - half * v_at
                    value = (a[row + j] - v_k * here - w_k * v_at) * by
                vectors[now + j] = value
            if t == 0:
                taus[m * steps + k] = next_tau
                off_diagonal[known + k] = beta
        if part == 0 and t == 0:
            diagonal[known + k] = a[row + k] - dtype(2.0) * v_k * w_k

    return take_symmetric_step


@td.func
def line_sum(value, board):
    """The sum of a value over each `LANES` threads, for all of these. `board` has an element for
    each thread of the block."""
    t = td.thread_idx.x
    lane = t % LANES
    td.sync_threads()
    board[t] = value
    for s in td.static_range(5):
        td.sync_threads()
        if lane < (LANES >> (s + 1)):
            board[t] = board[t] + board[t + (LANES >> (s + 1))]
    td.sync_threads()
    return board[t - lane]


# --- bidiagonal ----------------------------------------------------------------------------------


@functools.cache
def column_step(dtype: DType, threads: int) -> Kernel:
    """A kernel that finds the reflection that leaves the first element of column k of what remains
    of matrices, and with it y, tau times the products of the columns after it with its vector.

    What remains lacks u y^T + x v^T of the step before, which is subtracted on the way; `column` is
    up to date. The vector goes to row k of `left`. A block has `COLUMNS` columns.
    """
    summed, reflection = sum_of_block(dtype, threads), _reflection_of(dtype)
    side, groups = side_of(threads), threads // COLUMNS
    halvings = groups.bit_length() - 1

    @td.kernel(checked=False)
    def take_column_step(
        a, column, left, y, x, right, taus, diagonal, rows, columns, steps, blocks, k
    ):
        m = td.block_idx.x // blocks
        part = td.block_idx.x - m * blocks
        t = td.thread_idx.x
        group = t // COLUMNS
        j = k + 1 + part * COLUMNS + t - group * COLUMNS
        board = td.shared(threads, dtype)
        few = td.shared(side, dtype)
        matrix = m * rows * columns
        known = m * rows
        before = td.maximum(k - 1, 0)
        u_last = (m * steps + before) * rows
        u_now = (m * steps + k) * rows
        own = dtype(0.0)
        for start in range(t, rows, threads * AT_ONCE):
            for q in td.static_range(AT_ONCE):
                i = start + q * threads
                value = column[known + td.minimum(i, rows - 1)]
                own += value * value if i > k and i < rows else dtype(0.0)
        beta, tau, by = reflection(column[known + k], summed(own, board, few))
        own = dtype(0.0)
        if j < columns:
            y_j = dtype(0.0)
            v_j = dtype(0.0)
            if k > 0:
                y_j = y[m * columns + j]
                v_j = right[(m * steps + before) * columns + j]
            given = td.local(AT_ONCE, dtype)
            by_row = td.local(AT_ONCE, dtype)
            by_last = td.local(AT_ONCE, dtype)
            of_x = td.local(AT_ONCE, dtype)
            for start in range(k + group, rows, groups * AT_ONCE):
                # Loads do not pass stores, which may be to the same memory: some are done first.
                for q in td.static_range(AT_ONCE):
                    i = td.minimum(start + q * groups, rows - 1)
                    given[q] = a[matrix + i * columns + j]
                    by_row[q] = column[known + i]
                    by_last[q] = left[u_last + i]
                    of_x[q] = x[known + i]
                for q in td.static_range(AT_ONCE):
                    i = start + q * groups
                    if i < rows:
                        value = given[q]
                        u = by_row[q] * by
                        if i == k:
                            u = dtype(1.0)
                        if k > 0:
                            value -= by_last[q] * y_j + of_x[q] * v_j
                            a[matrix + i * columns + j] = value
                        own += value * u
        td.sync_threads()
        board[t] = own
        for s in td.static_range(halvings):
            td.sync_threads()
            if group < (groups >> (s + 1)):
                board[t] = board[t] + board[t + (groups >> (s + 1)) * COLUMNS]
        if group == 0 and j < columns:
            y[m * columns + j] = tau * board[t]
        if part == 0:
            for i in range(t, rows, threads):
                u = dtype(0.0)
                if i == k:
                    u = dtype(1.0)
                if i > k:
                    u = column[known + i] * by
                left[u_now + i] = u
            if t == 0:
                taus[m * steps + k] = tau
                diagonal[m * columns + k] = beta

    return take_column_step


@functools.cache
def row_step(dtype: DType, threads: int, rows_of: int) -> Kernel:
    """A kernel that finds the reflection that leaves the first element of row k behind the
    diagonal, from which that of column k is subtracted, and x, tau times the products of the rows
    after it with its vector. The vector goes to row k of `right`, and column k + 1, up to date, to
    `column`. `LANES` threads multiply some rows."""
    summed, reflection = sum_of_block(dtype, threads), _reflection_of(dtype)
    side = side_of(threads)

    @td.kernel(checked=False)
    def take_row_step(
        a, column, left, y, x, right, taus, off_diagonal, rows, columns, steps, blocks, k
    ):
        m = td.block_idx.x // blocks
        part = td.block_idx.x - m * blocks
        t = td.thread_idx.x
        group = t // LANES
        lane = t - group * LANES
        board = td.shared(threads, dtype)
        few = td.shared(side, dtype)
        matrix = m * rows * columns
        row = matrix + k * columns
        known = m * columns
        own = dtype(0.0)
        for start in range(t, columns, threads * AT_ONCE):
            for q in td.static_range(AT_ONCE):
                j = start + q * threads
                at = td.minimum(j, columns - 1)
                value = a[row + at] - y[known + at]
                own += value * value if j > k + 1 and j < columns else dtype(0.0)
        alpha = a[row + k + 1] - y[known + k + 1]
        beta, tau, by = reflection(alpha, summed(own, board, few))
        first = k + 1 + (part * (threads // LANES) + group) * rows_of
        u_of = td.local(rows_of, dtype)
        sums = td.local(rows_of, dtype)
        for r in td.static_range(rows_of):
            u_of[r] = left[(m * steps + k) * rows + td.minimum(first + r, rows - 1)]
            sums[r] = dtype(0.0)
        for start in range((k + 1) // LANES * LANES + lane, columns, LANES * AT_ONCE):
            for q in td.static_range(AT_ONCE):
                j = start + q * LANES
                at = td.minimum(j, columns - 1)
                y_j = y[known + at]
                v = (a[row + at] - y_j) * by
                if j == k + 1:
                    v = dtype(1.0)
                for r in td.static_range(rows_of):
                    value = a[matrix + td.minimum(first + r, rows - 1) * columns + at]
                    term = (value - u_of[r] * y_j) * v
                    sums[r] = sums[r] + (term if j > k and j < columns else dtype(0.0))
        for r in td.static_range(rows_of):
            total = tau * line_sum(sums[r], board)
            if lane == 0 and first + r < rows:
                value = a[matrix + (first + r) * columns + k + 1]
                x[m * rows + first + r] = total
                column[m * rows + first + r] = value - u_of[r] * y[known + k + 1] - total
        if part == 0:
            for j in range(t, columns, threads):
                v = dtype(0.0)
                if j == k + 1:
                    v = dtype(1.0)
                if j > k + 1:
                    v = (a[row + j] - y[known + j]) * by
                right[(m * steps + k) * columns + j] = v
            if t == 0:
                taus[m * steps + k] = tau
                off_diagonal[known + k] = beta

    return take_row_step


@functools.cache
def first_column_copier() -> Kernel:
    """A kernel that copies the first column of matrices. A thread copies one element."""

    @td.kernel(checked=False)
    def copy_first_columns(a, column, columns):
        i = td.grid(1)
        column[i] = a[i * columns]

    return copy_first_columns


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
    def finish_vectors(a, a_layout: Layout, scales, out, out_layout: Layout):
        at = td.grid(1)
        row = at // a_layout.columns
        j = at - row * a_layout.columns
        m = row // a_layout.rows
        i = row - m * a_layout.rows
        value = a[place(a_layout, a_layout.at + m * a_layout.step, i, j)]
        scale = scales[m]
        where = place(out_layout, out_layout.at + m * out_layout.step, i, j)
        out[where] = scale if td.isnan(scale) else value

    return finish_vectors

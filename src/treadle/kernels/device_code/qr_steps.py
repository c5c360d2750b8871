"""Householder's QR by panels of columns: a panel's rows are in the registers of one block.

A step reduces over the rows once: from the products of the present column with all others come the
length of its vector, its products with the columns behind, and those with the vectors before, of
which the triangle of the panel is made. The products of all reflections I - tau v v^H, v[0] = 1,
are I - V T V^H (R. Schreiber and C. van Loan, "A storage-efficient WY representation for products
of Householder transformations", 1989). Signs are LAPACK's.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import arithmetic_of
from treadle.lang.decorators import Kernel

WIDEST = 32  # columns of a panel at most
# Columns whose largest magnitude is in this range are not scaled: squares do not overflow, and
# those that vanish do not matter.
_LEAST, _MOST, _LARGEST = 2.0**-30, 2.0**30, 2.0**120


class Panel(NamedTuple):
    """What a launch is compiled for: panels of up to `width` columns, a block of `threads` (a
    multiple of `width`) for each matrix, `rows` rows a thread."""

    dtype: DType
    threads: int
    rows: int
    width: int

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        elements = self.threads * (self.width + 2) + self.width * (self.width + 4) + 4
        return elements * self.dtype.itemsize + 3 * self.width * self.dtype.component.itemsize


@functools.cache
def qr_panel(what: Panel) -> Kernel:
    """A kernel that makes the columns `at` to `at + columns` of matrices triangular, in `a`
    (matrices, height, wide), from row `at` on. It writes their vectors to `v` (matrices, height,
    steps), zeros above them included, and T to the rows from `at` on of `triangles` (matrices,
    steps, WIDEST)."""
    dtype, threads, rows_each, width = what
    ops = arithmetic_of(dtype)
    element, real, number = ops.element, ops.real, ops.number
    mul, div, times, square = ops.mul, ops.div, ops.times, ops.square
    conj, part, size = ops.conj, ops.part, ops.size
    pitch = width + 1
    groups = threads // width

    @td.func
    def total_of(column, few):
        total = few[column]
        for g in td.static_range(1, groups):
            total += few[g * width + column]
        return total

    @td.kernel(checked=False)
    def reflect(a, v, triangles, height: td.i32, wide: td.i32, steps: td.i32, at, columns):
        t = td.thread_idx.x
        group = t // width
        own = t % width
        a_first = td.block_idx.x * height * wide + at * wide + at
        v_first = td.block_idx.x * height * steps + at * steps + at
        t_first = (td.block_idx.x * steps + at) * WIDEST
        rows = height - at
        board = td.shared(threads * pitch, element)
        few = td.shared(threads, element)
        gram = td.shared(width * width, element)
        head = td.shared(width, element)
        pushed = td.shared(width, element)
        taus = td.shared(width, element)
        shifts = td.shared(4, element)  # what the vector is scaled by, and the new diagonal
        scales = td.shared(width, real)
        backs = td.shared(width, real)
        r = td.local(rows_each * width, element)
        for s in td.static_range(rows_each):
            for e in td.static_range(width):
                one = e * threads + t
                i = s * threads + one // width
                column = one % width
                value = number(real(0))
                if i < rows and column < columns:
                    value = a[a_first + i * wide + column]
                r[s * width + e] = value
        for s in td.static_range(rows_each):
            td.sync_threads()
            for e in td.static_range(width):
                one = e * threads + t
                board[one // width * pitch + one % width] = r[s * width + e]
            td.sync_threads()
            for j in td.static_range(width):
                r[s * width + j] = board[t * pitch + j]
        # Each column is scaled by its largest magnitude, if that is unusual.
        td.sync_threads()
        for j in td.static_range(width):
            most = real(0)
            for s in td.static_range(rows_each):
                most = td.maximum(most, size(r[s * width + j]))
            board[t * pitch + j] = number(most)
        td.sync_threads()
        most = real(0)
        for q in range(width):
            most = td.maximum(most, part(board[(group * width + q) * pitch + own]))
        few[t] = number(most)
        for e in range(t, width * width, threads):
            gram[e] = number(real(0))
        td.sync_threads()
        if t < width:
            for g in range(groups):
                most = td.maximum(most, part(few[g * width + t]))
            scale = real(1)
            back = real(1)
            if (most > real(0) and most < real(_LEAST)) or most > real(_MOST):
                scale = td.minimum(real(1) / most, real(_LARGEST))
                back = td.maximum(most, real(1.0 / _LARGEST))
                if scale == real(0):  # of infinity
                    scale = real(1)
                    back = real(1)
            scales[t] = scale
            backs[t] = back
        td.sync_threads()
        for j in td.static_range(width):
            for s in td.static_range(rows_each):
                r[s * width + j] = times(r[s * width + j], scales[j])
        # The present column is always the first of the registers: after each step they move on.
        for k in range(width):
            for j in td.static_range(width):
                total = number(real(0))
                for s in td.static_range(rows_each):
                    if s * threads + t > k:
                        total += mul(conj(r[s * width]), r[s * width + j])
                board[t * pitch + j] = total
            if t == k:
                for j in td.static_range(width):
                    head[j] = r[j]
            td.sync_threads()
            total = number(real(0))
            for q in td.static_range(width):
                total += board[(group * width + q) * pitch + own]
            few[t] = total
            td.sync_threads()
            if t < width:
                below = part(total_of(0, few))
                product = total_of(t, few)
                alpha = head[0]
                tau = number(real(0))
                inverse = number(real(0))
                beta = alpha
                by = number(real(0))
                side = size(alpha - number(part(alpha)))
                if k < columns and (td.isnan(below) or below > real(0) or side > real(0)):
                    length = td.sqrt(square(alpha) + below)
                    if part(alpha) >= real(0):
                        length = -length
                    beta = number(length)
                    tau = times(beta - alpha, real(1) / length)
                    inverse = div(number(real(1)), alpha - beta)
                    if t + k < width:  # a column behind
                        by = mul(conj(tau), head[t] + mul(product, conj(inverse)))
                    else:  # a vector before
                        gram[(t + k - width) * width + width - 1 - t] = conj(head[t]) + mul(
                            conj(product), inverse
                        )
                pushed[t] = by
                if t == 0:
                    taus[k] = tau
                    shifts[0] = inverse
                    shifts[1] = beta
            td.sync_threads()
            inverse = shifts[0]
            for s in td.static_range(rows_each):
                i = s * threads + t
                last = r[s * width]
                vector = number(real(0))
                if i > k:
                    vector = mul(last, inverse)
                    last = vector
                elif i == k:
                    vector = number(real(1))
                    last = shifts[1]
                for j in td.static_range(width - 1):
                    z = r[s * width + j + 1]
                    r[s * width + j] = z - mul(vector, pushed[j + 1])
                r[s * width + width - 1] = last
        td.sync_threads()
        # A row of T, times the products of vectors with the inverses of tau on the diagonal, is
        # one of I.
        if t < columns:
            ahead = td.local(width, element)
            for k in td.static_range(width):
                ahead[k] = number(real(1) if k == t else real(0))
            for k in range(columns):
                found = mul(taus[k], ahead[0])
                triangles[t_first + t * WIDEST + k] = found
                for j in td.static_range(width - 1):
                    ahead[j] = ahead[j + 1] - mul(found, gram[k * width + j])
                ahead[width - 1] = number(real(0))
        for s in td.static_range(rows_each):
            td.sync_threads()
            for j in td.static_range(width):
                board[t * pitch + j] = r[s * width + j]
            td.sync_threads()
            for e in td.static_range(width):
                one = e * threads + t
                row = one // width
                column = one % width
                i = s * threads + row
                if i < rows and column < columns:
                    value = board[row * pitch + column]
                    if i <= column:
                        a[a_first + i * wide + column] = times(value, backs[column])
                        value = number(real(1) if i == column else real(0))
                    v[v_first + i * steps + column] = value

    return reflect


class Reflection(NamedTuple):
    """What a launch is compiled for: reflections of panels of `width` columns, applied to strips of
    `strip` columns, `chunk` rows at a time. All are multiples of 4, and `threads` of `strip`."""

    dtype: DType
    threads: int
    width: int
    strip: int
    chunk: int

    @property
    def per_group(self) -> int:
        """Threads that compute all products with the vectors, of a part of the rows."""
        return self.width * self.strip // 16

    @property
    def shared_elements(self) -> int:
        """Of the arrays that rows are loaded to; sums of all groups go there later."""
        rows = self.chunk * (self.width + self.strip)
        return max(rows, self.threads // self.per_group * self.width * self.strip)

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        elements = self.shared_elements + self.width * (self.width + 2 * self.strip)
        return elements * self.dtype.itemsize


@functools.cache
def reflector(what: Reflection) -> Kernel:
    """A kernel that replaces columns `left` to `wide` of matrices c (matrices, height, wide), from
    row `at` on, by (I - V T V^H) c, or with `back` by (I - V T^H V^H) c, of the panel of `columns`
    columns that begins at column `at`. A block has some of the columns, all of their rows."""
    dtype, threads, width, strip, chunk = what
    ops = arithmetic_of(dtype)
    element, real, number = ops.element, ops.real, ops.number
    mul, conj = ops.mul, ops.conj
    per_group, shared_elements = what.per_group, what.shared_elements
    groups = threads // per_group
    quads = strip // 4
    v_rounds, c_rounds = -(-chunk * width // threads), -(-chunk * strip // threads)
    triangle_rounds = -(-width * width // threads)
    result_rounds = -(-width * strip // threads)

    @td.func
    def fetch_vectors(v, v_first, start, height, steps, columns, vectors):
        """The next rows of the vectors, to registers."""
        for each in td.static_range(v_rounds):
            e = each * threads + td.thread_idx.x
            row = start + e // width
            k = e % width
            value = number(real(0))
            if row < height and k < columns:
                value = v[v_first + row * steps + k]
            vectors[each] = value

    @td.func
    def put_vectors(vectors, board):
        for each in td.static_range(v_rounds):
            e = each * threads + td.thread_idx.x
            if e < chunk * width:
                board[e] = vectors[each]

    @td.func
    def fetch_columns(c, c_first, start, height, wide, remaining, entries):
        """The next rows of the strip, to registers."""
        for each in td.static_range(c_rounds):
            e = each * threads + td.thread_idx.x
            row = start + e // strip
            value = number(real(0))
            if row < height and e % strip < remaining:
                value = c[c_first + row * wide + e % strip]
            entries[each] = value

    @td.kernel(checked=False)
    def apply(
        v, triangles, c, height: td.i32, wide: td.i32, steps: td.i32, at, columns, left, back
    ):
        t = td.thread_idx.x
        strips = (wide - left + strip - 1) // strip
        m = td.block_idx.x // strips
        first = left + (td.block_idx.x - m * strips) * strip
        remaining = wide - first
        c_first = m * height * wide + first
        v_first = m * height * steps + at
        t_first = (m * steps + at) * WIDEST
        board = td.shared(shared_elements, element)
        triangle = td.shared(width * width, element)
        sums = td.shared(width * strip, element)
        turned = td.shared(width * strip, element)
        vectors = td.local(v_rounds, element)
        entries = td.local(c_rounds, element)
        fetch_vectors(v, v_first, at, height, steps, columns, vectors)
        fetch_columns(c, c_first, at, height, wide, remaining, entries)
        for each in td.static_range(triangle_rounds):
            e = each * threads + t
            k = e // width
            j = e % width
            value = number(real(0))
            if k < columns and j < columns and k <= j:
                value = triangles[t_first + k * WIDEST + j]
            if e < width * width:
                triangle[e] = value
        group = t // per_group
        own_k = t % per_group // quads * 4
        own_c = t % per_group % quads * 4
        found = td.local(16, element)
        for e in td.static_range(16):
            found[e] = number(real(0))
        for start in range(at, height, chunk):
            put_vectors(vectors, board)
            for each in td.static_range(c_rounds):
                e = each * threads + t
                if e < chunk * strip:
                    board[chunk * width + e] = entries[each]
            td.sync_threads()
            fetch_vectors(v, v_first, start + chunk, height, steps, columns, vectors)
            fetch_columns(c, c_first, start + chunk, height, wide, remaining, entries)
            if group < groups:
                for row in range(group, chunk, groups):
                    for p in td.static_range(4):
                        one = conj(board[row * width + own_k + p])
                        for q in td.static_range(4):
                            other = board[chunk * width + row * strip + own_c + q]
                            found[p * 4 + q] = found[p * 4 + q] + mul(one, other)
            td.sync_threads()
        fetch_vectors(v, v_first, at, height, steps, columns, vectors)
        fetch_columns(c, c_first, at, height, wide, remaining, entries)
        if group < groups:
            for p in td.static_range(4):
                for q in td.static_range(4):
                    place = (group * width + own_k + p) * strip + own_c + q
                    board[place] = found[p * 4 + q]
        td.sync_threads()
        for each in td.static_range(result_rounds):
            e = each * threads + t
            if e < width * strip:
                total = board[e]
                for g in td.static_range(1, groups):
                    total += board[g * width * strip + e]
                sums[e] = total
        td.sync_threads()
        for each in td.static_range(result_rounds):
            e = each * threads + t
            if e < width * strip:
                k = e // strip
                j = e % strip
                total = number(real(0))
                for q in td.static_range(width):
                    if back == 1:
                        total += mul(conj(triangle[q * width + k]), sums[q * strip + j])
                    else:
                        total += mul(triangle[k * width + q], sums[q * strip + j])
                turned[e] = total
        td.sync_threads()
        # A thread has one column: that of all the elements that it loads.
        column = t % strip
        by = td.local(width, element)
        for k in td.static_range(width):
            by[k] = turned[k * strip + column]
        for start in range(at, height, chunk):
            put_vectors(vectors, board)
            td.sync_threads()
            fetch_vectors(v, v_first, start + chunk, height, steps, columns, vectors)
            for each in td.static_range(c_rounds):
                row = (each * threads + t) // strip
                value = entries[each]
                if row < chunk:
                    for k in td.static_range(width):
                        value = value - mul(board[row * width + k], by[k])
                    if start + row < height and column < remaining:
                        c[c_first + (start + row) * wide + column] = value
            fetch_columns(c, c_first, start + chunk, height, wide, remaining, entries)
            td.sync_threads()

    return apply

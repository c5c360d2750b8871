"""Factorizations of many small matrices: a thread factors one by itself.

In work arrays, element (i, j) of all matrices is adjacent, so that neighbouring threads read
neighbouring numbers: one coalesced access on GPUs, one vector load on the CPU. Arguments and
results are stored matrix by matrix; they are passed as views with axes in the same order, and each
of their elements is read or written once.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import MOST_SCALED, arithmetic_of
from treadle.lang.decorators import Kernel


@functools.cache
def cholesky_of_each(dtype: DType) -> Kernel:
    """A kernel that writes the lower factor of each matrix, row by row, and where it is not
    positive definite (counted from 1)."""
    ops = arithmetic_of(dtype)
    real, number, mul, conj = ops.real, ops.number, ops.mul, ops.conj
    part, times, square = ops.part, ops.times, ops.square

    @td.kernel(checked=False)
    def cholesky_each(a, work, out, status: td.Array[td.i32], n: td.i32):
        m = td.grid(1)
        bad = 0
        for i in range(n):
            below = part(a[i, i, m])
            for j in range(i):
                total = a[i, j, m]
                for k in range(j):
                    total -= mul(work[i, k, m], conj(work[j, k, m]))
                total = times(total, real(1) / part(work[j, j, m]))
                below -= square(total)
                work[i, j, m] = total
                out[i, j, m] = total
            if (td.isnan(below) or below <= real(0)) and bad == 0:
                bad = i + 1
            root = number(td.sqrt(below))
            work[i, i, m] = root
            out[i, i, m] = root
            for j in range(i + 1, n):
                out[i, j, m] = number(real(0))
        status[m] = bad

    return cholesky_each


@functools.cache
def lu_of_each(dtype: DType) -> Kernel:
    """A kernel that writes both factors of each matrix into one, the rows that were exchanged, and
    the first pivot that is 0 (counted from 1)."""
    ops = arithmetic_of(dtype)
    real, mul, div, size = ops.real, ops.mul, ops.div, ops.size

    @td.kernel(checked=False)
    def lu_each(a, work, pivots: td.Array[td.i32, 2], status: td.Array[td.i32], n: td.i32):
        m = td.grid(1)
        bad = 0
        for i in range(n):
            for j in range(n):
                work[i, j, m] = a[i, j, m]
        for k in range(n):
            most = size(work[k, k, m])
            at = k
            for i in range(k + 1, n):
                here = size(work[i, k, m])
                if here > most:
                    most = here
                    at = i
            pivots[k, m] = at
            for j in range(n):
                one = work[k, j, m]
                work[k, j, m] = work[at, j, m]
                work[at, j, m] = one
            if most == real(0) and bad == 0:
                bad = k + 1
            pivot = work[k, k, m]
            for i in range(k + 1, n):
                left = work[i, k, m]
                if most != real(0):
                    left = div(left, pivot)
                work[i, k, m] = left
                for j in range(k + 1, n):
                    work[i, j, m] = work[i, j, m] - mul(left, work[k, j, m])
        status[m] = bad

    return lu_each


@functools.cache
def solve_each(dtype: DType) -> Kernel:
    """A kernel that solves for all columns, given both factors of each matrix."""
    ops = arithmetic_of(dtype)
    mul, div = ops.mul, ops.div

    @td.kernel(checked=False)
    def substitute_each(
        factors, pivots: td.Array[td.i32, 2], b, work, x, n: td.i32, columns: td.i32
    ):
        m = td.grid(1)
        for i in range(n):
            for c in range(columns):
                work[i, c, m] = b[i, c, m]
        for i in range(n):
            at = pivots[i, m]
            for c in range(columns):
                total = work[at, c, m]
                work[at, c, m] = work[i, c, m]
                for k in range(i):
                    total -= mul(factors[i, k, m], work[k, c, m])
                work[i, c, m] = total
        for back in range(n):
            i = n - 1 - back
            pivot = factors[i, i, m]
            for c in range(columns):
                total = work[i, c, m]
                for k in range(i + 1, n):
                    total -= mul(factors[i, k, m], work[k, c, m])
                total = div(total, pivot)
                work[i, c, m] = total
                x[i, c, m] = total

    return substitute_each


@functools.cache
def qr_of_each(dtype: DType) -> Kernel:
    """A kernel that writes the triangle of each matrix, and its orthogonal factor, which has as
    many columns as `q` has.

    Householder's reflections, with the signs of LAPACK: I - tau v v^H with v[0] = 1, which makes
    the first column real.
    """
    ops = arithmetic_of(dtype)
    real, number, mul, div, conj = ops.real, ops.number, ops.mul, ops.div, ops.conj
    part, size, times, square = ops.part, ops.size, ops.times, ops.square

    @td.kernel(checked=False)
    def qr_each(
        a, work, taus, q, q_work, r,
        rows: td.i32, columns: td.i32, steps: td.i32, q_columns: td.i32, r_rows: td.i32,
    ):  # fmt: skip
        m = td.grid(1)
        for i in range(rows):
            for j in range(columns):
                work[i, j, m] = a[i, j, m]
        for k in range(steps):
            alpha = work[k, k, m]
            below = size(alpha - number(part(alpha)))
            for i in range(k + 1, rows):
                below = td.maximum(below, size(work[i, k, m]))
            tau = number(real(0))
            if td.isnan(below) or below > real(0):
                # All of it relative to the largest magnitude: no square overflows or vanishes.
                most = td.maximum(td.maximum(below, size(alpha)), real(1.0 / MOST_SCALED))
                inverse = real(1) / most
                alpha = times(alpha, inverse)
                total = square(alpha)
                for i in range(k + 1, rows):
                    total += square(times(work[i, k, m], inverse))
                beta = td.sqrt(total)
                if part(alpha) >= real(0):
                    beta = -beta
                tau = times(number(beta) - alpha, real(1) / beta)
                shifted = alpha - number(beta)
                for i in range(k + 1, rows):
                    work[i, k, m] = div(times(work[i, k, m], inverse), shifted)
                work[k, k, m] = number(beta * most)
            taus[k, m] = tau
            for j in range(k + 1, columns):
                along = work[k, j, m]
                for i in range(k + 1, rows):
                    along += mul(conj(work[i, k, m]), work[i, j, m])
                along = mul(conj(tau), along)
                work[k, j, m] = work[k, j, m] - along
                for i in range(k + 1, rows):
                    work[i, j, m] = work[i, j, m] - mul(work[i, k, m], along)
        for i in range(r_rows):
            for j in range(columns):
                value = number(real(0))
                if j >= i:
                    value = work[i, j, m]
                r[i, j, m] = value
        for i in range(rows):
            for j in range(q_columns):
                q_work[i, j, m] = number(real(1) if i == j else real(0))
        for back in range(steps):
            k = steps - 1 - back
            tau = taus[k, m]
            for j in range(k, q_columns):
                along = q_work[k, j, m]
                for i in range(k + 1, rows):
                    along += mul(conj(work[i, k, m]), q_work[i, j, m])
                along = mul(tau, along)
                q_work[k, j, m] = q_work[k, j, m] - along
                for i in range(k + 1, rows):
                    q_work[i, j, m] = q_work[i, j, m] - mul(work[i, k, m], along)
        for i in range(rows):
            for j in range(q_columns):
                q[i, j, m] = q_work[i, j, m]

    return qr_each

"""Singular vectors and values from the eigenvectors of a symmetric matrix of twice the size."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel


@functools.cache
def vector_splitter(dtype: DType) -> Kernel:
    """A kernel that writes the left vectors of each matrix (the odd elements of eigenvectors) and
    then its right ones (the even elements), n × n each, in the order of descending values.
    Eigenvectors are the columns of matrices of `padded` rows. A thread writes one element."""

    @td.kernel(checked=False)
    def split_vectors(vectors, out, n, padded):
        at = td.grid(1)
        row = at // n
        j = at - row * n
        which = row // n
        i = row - which * n
        m = which // 2
        is_right = which - 2 * m
        place = 2 * i + 1 - is_right
        found = vectors[(m * padded + place) * padded + 2 * n - 1 - j]
        out[at] = found * dtype(2.0**0.5)

    return split_vectors


@functools.cache
def vector_taker(dtype: DType) -> Kernel:
    """A kernel that copies the first or the second of each two matrices q, with the signs that the
    vectors had before q and r were made of them, into the corner of matrices of so many rows and
    columns that are else those of the identity. A thread writes one element."""

    @td.kernel(checked=False)
    def take_vectors(q, r, out, n, rows, columns, side):
        at = td.grid(1)
        row = at // columns
        j = at - row * columns
        m = row // rows
        i = row - m * rows
        value = dtype(1.0) if i == j else dtype(0.0)
        if j < n:
            value = dtype(0.0)
            if i < n:
                first = (2 * m + side) * n * n
                value = q[first + i * n + j]
                if r[first + j * n + j] < dtype(0.0):
                    value = -value
        out[at] = value

    return take_vectors


@functools.cache
def value_finisher(dtype: DType) -> Kernel:
    """A kernel that takes the n greatest of 2 n eigenvalues in descending order, times the bounds
    and scales."""

    @td.kernel(checked=False)
    def finish_singular_values(values, bounds, scales, out, n, padded):
        at = td.grid(1)
        m = at // n
        value = values[m * padded + 2 * n - 1 - (at - m * n)]
        out[at] = td.maximum(value, dtype(0.0)) * bounds[m] * scales[m]

    return finish_singular_values

"""Eigenvalues of small symmetric matrices, each by a block of threads (Jacobi's method), and of
tridiagonal ones by bisection."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.block_reductions import maximum_of_block, side_of
from treadle.lang.decorators import Kernel

SIDES = {4: 32, 8: 24}  # rows of the largest matrix that a block has in 16 KiB of shared memory
PAIRS = 16  # that rotate at once, at most
THREADS = PAIRS * PAIRS
PAD = 2.0  # eigenvalues of added rows; others are 1 or less in magnitude
_SWEEPS = {4: 9, 8: 11}
_EPSILON = {4: 2.0**-23, 8: 2.0**-52}


@functools.cache
def jacobi_diagonalizer(dtype: DType) -> Kernel:
    """A kernel that replaces n × n matrices by their eigenvectors, the
    columns, and writes the eigenvalues in ascending order. n is at most that of `SIDES`.

    In a round, n / 2 rotations in planes that share no axis each make two elements 0; n - 1 rounds
    (or n) are a sweep, in which each pair of axes has a turn.
    """
    sweeps, least = _SWEEPS[dtype.itemsize], _EPSILON[dtype.itemsize] / 4
    side = SIDES[dtype.itemsize]
    pitch = side + 1

    @td.func
    def rotated(one, other, sine, ratio):
        # The cosine as 1 - sine * ratio: small rotations err little.
        return one - sine * (other + ratio * one), other + sine * (one - ratio * other)

    @td.kernel(checked=False)
    def diagonalize(a, values, n):
        m = td.block_idx.x
        t = td.thread_idx.x
        s = td.shared(side * pitch, dtype)
        v = td.shared(side * pitch, dtype)
        firsts = td.shared(side // 2, td.i32)
        seconds = td.shared(side // 2, td.i32)
        tangents = td.shared(side // 2, dtype)
        ratios = td.shared(side // 2, dtype)
        sines = td.shared(side // 2, dtype)
        first = m * n * n
        even = n + n % 2  # with an axis that stays where it is, if n is odd
        half = even // 2
        for e in range(t, even * even, THREADS):
            i = e // even
            j = e - i * even
            value = dtype(0.0)
            if i < n and j < n:
                value = a[first + i * n + j]
            s[i * pitch + j] = value
            v[i * pitch + j] = dtype(1.0) if i == j else dtype(0.0)
        row = t // PAIRS
        r = t - row * PAIRS
        for turn in range(sweeps * (even - 1)):
            shift = turn % (even - 1)
            td.sync_threads()
            if t < half:
                p = (shift + t) % (even - 1)
                q = even - 1 if t == 0 else (shift + even - 1 - t) % (even - 1)
                across = s[p * pitch + q]
                one = s[p * pitch + p]
                other = s[q * pitch + q]
                tangent = dtype(0.0)
                sine = dtype(0.0)
                ratio = dtype(0.0)
                if td.abs(across) > dtype(least):
                    half_gap = (other - one) / (dtype(2.0) * across)
                    size = td.abs(half_gap)
                    tangent = dtype(1.0) / (size + td.sqrt(size * size + dtype(1.0)))
                    tangent = -tangent if half_gap < dtype(0.0) else tangent
                    c = dtype(1.0) / td.sqrt(tangent * tangent + dtype(1.0))
                    sine = tangent * c
                    ratio = sine / (dtype(1.0) + c)
                firsts[t] = p
                seconds[t] = q
                tangents[t] = tangent
                sines[t] = sine
                ratios[t] = ratio
            td.sync_threads()
            if r < half:
                x = firsts[r]
                y = seconds[r]
                sine = sines[r]
                ratio = ratios[r]
                if row < half:
                    p = firsts[row]
                    q = seconds[row]
                    up = sines[row]
                    if row == r:
                        if sine != dtype(0.0):
                            change = tangents[r] * s[p * pitch + q]
                            s[p * pitch + p] = s[p * pitch + p] - change
                            s[q * pitch + q] = s[q * pitch + q] + change
                            s[p * pitch + q] = dtype(0.0)
                            s[q * pitch + p] = dtype(0.0)
                    elif up != dtype(0.0) or sine != dtype(0.0):
                        up_ratio = ratios[row]
                        px, qx = rotated(s[p * pitch + x], s[q * pitch + x], up, up_ratio)
                        py, qy = rotated(s[p * pitch + y], s[q * pitch + y], up, up_ratio)
                        px, py = rotated(px, py, sine, ratio)
                        qx, qy = rotated(qx, qy, sine, ratio)
                        s[p * pitch + x] = px
                        s[p * pitch + y] = py
                        s[q * pitch + x] = qx
                        s[q * pitch + y] = qy
                if sine != dtype(0.0):
                    for i in range(row, even, THREADS // PAIRS):
                        one, other = rotated(v[i * pitch + x], v[i * pitch + y], sine, ratio)
                        v[i * pitch + x] = one
                        v[i * pitch + y] = other
        td.sync_threads()
        for e in range(t, n * n, THREADS):
            i = e // n
            j = e - i * n
            own = s[j * pitch + j]
            rank = 0
            for k in range(n):
                other = s[k * pitch + k]
                if other < own or (other == own and k < j):
                    rank += 1
            a[first + i * n + rank] = v[i * pitch + j]
            if i == 0:
                values[m * n + rank] = own

    return diagonalize


@functools.cache
def tridiagonal_normalizer(dtype: DType, threads: int) -> Kernel:
    """A kernel that divides tridiagonal matrices by a bound of their eigenvalues and writes it.
    Rows behind the `n` given ones (of `pitch` in memory) are padded. With `leaf` rows of its
    parts, those before and after a part's end lose the element between them, as
    `eigen_halves.halves_sorter` expects. With `doubled` they are bidiagonal ones as symmetric ones
    whose diagonal is 0: `diagonal` and `off_diagonal` take turns in the next ones."""
    greatest = maximum_of_block(threads)
    side = side_of(threads)

    @td.func
    def between(diagonal, off_diagonal, first, n, i, doubled):
        value = dtype(0.0)
        if i >= 0 and i < n - 1:
            if doubled == 1:
                if i % 2 == 0:
                    value = diagonal[first + i // 2]
                else:
                    value = off_diagonal[first + i // 2]
            else:
                value = off_diagonal[first + i]
        return value

    @td.kernel(checked=False)
    def normalize(diagonal, off_diagonal, d, e, bounds, n, pitch, padded, leaf, doubled):
        m = td.block_idx.x
        t = td.thread_idx.x
        first = m * pitch
        most = dtype(0.0)
        for i in range(t, n, threads):
            size = td.abs(between(diagonal, off_diagonal, first, n, i - 1, doubled))
            size += td.abs(between(diagonal, off_diagonal, first, n, i, doubled))
            if doubled == 0:
                size += td.abs(diagonal[first + i])
            most = td.maximum(most, size)
        most = greatest(most, td.shared(threads, dtype), td.shared(side, dtype))
        if t == 0:
            bounds[m] = most  # 0 of zeros, whose eigenvalues bisection finds nearly
        if most == dtype(0.0):
            most = dtype(1.0)
        for i in range(t, padded, threads):
            after = between(diagonal, off_diagonal, first, n, i, doubled) / most
            value = dtype(PAD)
            if i < n:
                value = dtype(0.0) if doubled == 1 else diagonal[first + i] / most
            if leaf > 0:
                if (i + 1) % leaf == 0:
                    value -= td.abs(after)
                if i % leaf == 0:
                    value -= td.abs(
                        between(diagonal, off_diagonal, first, n, i - 1, doubled) / most
                    )
            d[m * padded + i] = value
            e[m * padded + i] = after

    return normalize


@functools.cache
def leaf_maker(dtype: DType) -> Kernel:
    """A kernel that writes the parts of tridiagonal matrices as matrices of `leaf` rows."""

    @td.kernel(checked=False)
    def make_leaves(d, e, out, leaf):
        at = td.grid(1)
        row = at // leaf
        j = at - row * leaf
        i = row % leaf
        value = dtype(0.0)
        if i == j:
            value = d[row]
        if j == i + 1:
            value = e[row]
        if j == i - 1:
            value = e[row - 1]
        out[at] = value

    return make_leaves


@functools.cache
def bisector(dtype: DType) -> Kernel:
    """A kernel that finds `count` eigenvalues of tridiagonal matrices from `bounds`: the least in
    ascending order, or with `largest` the greatest in descending order, each by a thread that
    halves an interval by the number of eigenvalues below its middle (W. Givens, 1954)."""
    epsilon = _EPSILON[dtype.itemsize]
    steps = {4: 28, 8: 57}[dtype.itemsize]
    least = {4: 2.0**-100, 8: 2.0**-900}[dtype.itemsize]

    @td.kernel(checked=False)
    def bisect(d, e, bounds, scales, out, n, count, largest):
        at = td.grid(1)
        if at >= out.shape[0]:
            return
        m = at // count
        j = at - m * count
        place = n - 1 - j if largest == 1 else j
        first = m * n
        low = dtype(-1.0 - 4 * epsilon)
        high = dtype(1.0 + 4 * epsilon)
        for _ in range(steps):
            middle = (low + high) / dtype(2.0)
            below = 0
            pivot = d[first] - middle
            for i in range(1, n):
                if td.abs(pivot) < dtype(least):
                    pivot = dtype(-least)
                if pivot < dtype(0.0):
                    below += 1
                off_diagonal = e[first + i - 1]
                pivot = d[first + i] - middle - off_diagonal / pivot * off_diagonal
            if pivot < dtype(0.0):
                below += 1
            if below > place:
                high = middle
            else:
                low = middle
        value = (low + high) / dtype(2.0)
        if largest == 1:
            value = td.maximum(value, dtype(0.0))
        out[at] = value * bounds[m] * scales[m]

    return bisect

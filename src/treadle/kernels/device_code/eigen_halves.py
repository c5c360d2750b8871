"""Eigenvalues of tridiagonal matrices from those of their halves (divide and conquer).

A tridiagonal matrix is two smaller ones and a matrix of rank one. In the eigenvectors of the
halves it is D + rho z z^T, whose eigenvalues are the roots of the secular equation
1 + rho sum(z_i^2 / (d_i - x)) = 0, one between any two of D's. The roots are found as differences
from the nearest d_i, and z is computed anew from them, so that the vectors are orthogonal however
near roots are (M. Gu and S. C. Eisenstat, "A divide-and-conquer algorithm for the symmetric
tridiagonal eigenproblem", 1995). Where z_i is 0, or two of D's are equal up to rounding (after a
rotation that makes a z_i 0), an eigenvalue of the half stays: it is deflated.

All matrices of a level are merged at once. How many eigenvalues are deflated is known on the device
alone: all launches are for the whole size, so nothing waits for the host.

What is known of a merge of `s` eigenvalues lies in two arrays. Integers: the places in the halves
of those that are left, in ascending order, followed by the deflated ones (s); the axes of rotations
(s, s); the pole nearest to each root (s); the rank of each eigenvalue (s); the numbers of those
left and of rotations. Real numbers: d (s), z (s), cosines (s), sines (s), roots as differences from
their poles (s); rho.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel

INTEGERS, REALS = 5, 5  # stretches of s in each array
CHUNK = 256  # eigenvalues that a block has in shared memory while one thread looks at them
LANES = 32  # columns of vectors that a block writes
GROUPS = 8
_EPSILON = {4: 2.0**-23, 8: 2.0**-52}
_MOST_STEPS = {4: 40, 8: 80}


@functools.cache
def halves_sorter(dtype: DType, threads: int) -> Kernel:
    """A kernel that sorts the eigenvalues of two halves and deflates. `q` has the eigenvectors of
    the halves, h × h each, and `e` the element between them. A block does one merge."""
    tolerance = 4 * _EPSILON[dtype.itemsize]
    root_of_half = 0.5**0.5

    @td.kernel(checked=False)
    def sort_halves(d, q, e, ints, reals, h):
        b = td.block_idx.x
        t = td.thread_idx.x
        s = 2 * h
        base = b * s
        vectors = b * s * h
        at = b * (5 * s + 2)
        real_at = b * (5 * s + 1)
        values = td.shared(CHUNK, dtype)
        weights = td.shared(CHUNK, dtype)
        places = td.shared(CHUNK, td.i32)
        between = e[base + h - 1]
        rho = dtype(2.0) * td.abs(between)
        for i in range(t, s, threads):
            value = d[base + i]
            is_second = i >= h
            low = 0
            high = h
            other = base if is_second else base + h
            while low < high:
                middle = (low + high) // 2
                found = d[other + middle]
                if found < value or (is_second and found == value):
                    low = middle + 1
                else:
                    high = middle
            rank = low + (i - h if is_second else i)
            z = dtype(root_of_half)
            if is_second:
                z = z * q[vectors + h * h + i - h]
                z = -z if between < dtype(0.0) else z
            else:
                z = z * q[vectors + (h - 1) * h + i]
            # These lie where rotations will, of which there are never more than were looked at.
            ints[at + s + rank] = i
            reals[real_at + 2 * s + rank] = value
            reals[real_at + 3 * s + rank] = z
        left = 0
        deflated = 0
        rotations = 0
        pending = -1
        d_pending = dtype(0.0)
        z_pending = dtype(0.0)
        for start in range(0, s, CHUNK):
            td.sync_threads()
            for k in range(t, CHUNK, threads):
                if start + k < s:
                    places[k] = ints[at + s + start + k]
                    values[k] = reals[real_at + 2 * s + start + k]
                    weights[k] = reals[real_at + 3 * s + start + k]
            td.sync_threads()
            if t == 0:
                for k in range(td.minimum(CHUNK, s - start)):
                    here = places[k]
                    value = values[k]
                    z = weights[k]
                    if rho * td.abs(z) <= dtype(tolerance):
                        ints[at + s - 1 - deflated] = here
                        reals[real_at + s - 1 - deflated] = value
                        deflated += 1
                    else:
                        if pending >= 0:
                            size = td.sqrt(z_pending * z_pending + z * z)
                            c = z / size
                            sine = -z_pending / size
                            if td.abs((value - d_pending) * c * sine) <= dtype(tolerance):
                                ints[at + s + rotations] = pending
                                ints[at + 2 * s + rotations] = here
                                reals[real_at + 2 * s + rotations] = c
                                reals[real_at + 3 * s + rotations] = sine
                                rotations += 1
                                step = value - d_pending
                                ints[at + s - 1 - deflated] = pending
                                reals[real_at + s - 1 - deflated] = d_pending + step * sine * sine
                                deflated += 1
                                value = d_pending + step * c * c
                                z = size
                            else:
                                ints[at + left] = pending
                                reals[real_at + left] = d_pending
                                reals[real_at + s + left] = z_pending
                                left += 1
                        pending = here
                        d_pending = value
                        z_pending = z
        if t == 0:
            if pending >= 0:
                ints[at + left] = pending
                reals[real_at + left] = d_pending
                reals[real_at + s + left] = z_pending
                left += 1
            ints[at + 5 * s] = left
            ints[at + 5 * s + 1] = rotations
            reals[real_at + 5 * s] = rho

    return sort_halves


@functools.cache
def secular_solver(dtype: DType) -> Kernel:
    """A kernel that finds the roots of secular equations, a thread each. A step fits a function
    with the poles on either side of the root (of the last one, the two before it) to the sums over
    the poles of either side and their derivatives (R.-C. Li, "Solving secular equations stably and
    efficiently", 1993), and halves the interval known to have the root where that leaves it or is
    slow."""
    epsilon, most_steps = _EPSILON[dtype.itemsize], _MOST_STEPS[dtype.itemsize]

    @td.kernel(checked=False)
    def solve_secular(ints, reals, size, s):
        at = td.grid(1)
        if at >= size:
            return
        b = at // s
        j = at - b * s
        first = b * (5 * s + 2)
        poles = b * (5 * s + 1)
        count = ints[first + 5 * s]
        if j < count:
            rho = reals[poles + 5 * s]
            is_last = j == count - 1
            pole = reals[poles + j]
            width = dtype(0.0)
            if is_last:
                for i in range(count):
                    z = reals[poles + s + i]
                    width += rho * z * z
            else:
                width = reals[poles + j + 1] - pole
            mu = width / dtype(2.0)
            # The sign in the middle says which pole is nearer.
            f = dtype(1.0)
            for i in range(count):
                z = reals[poles + s + i]
                f += rho * z * z / ((reals[poles + i] - pole) - mu)
            # Rounding may leave a root a little beyond where these signs say.
            slack = dtype(1.0 + 2.0**-10)
            low = dtype(0.0)
            high = width * slack
            near = j
            if is_last:
                if f < dtype(0.0):
                    low = mu / slack
                else:
                    high = mu * slack
            elif f < dtype(0.0):
                near = j + 1
                pole = reals[poles + j + 1]
                mu -= width
                low = mu * slack
                high = dtype(0.0)
            else:
                high = mu * slack
            # The poles that are fitted: on either side, or the last two.
            split = j if is_last else j + 1
            above = reals[poles + split] - pole
            below = reals[poles + td.maximum(split - 1, 0)] - pole
            z = reals[poles + s + near]
            weight = rho * z * z
            way = 1
            before = dtype(0.0)
            if count == 1:
                mu = width
            for step in range(most_steps if count > 1 else 0):
                psi = dtype(0.0)
                psi_slope = dtype(0.0)
                for i in range(split):
                    z = reals[poles + s + i]
                    inverse = dtype(1.0) / ((reals[poles + i] - pole) - mu)
                    term = rho * z * z * inverse
                    psi += term
                    psi_slope += term * inverse
                phi = dtype(0.0)
                phi_slope = dtype(0.0)
                for i in range(split, count):
                    z = reals[poles + s + i]
                    inverse = dtype(1.0) / ((reals[poles + i] - pole) - mu)
                    term = rho * z * z * inverse
                    phi += term
                    phi_slope += term * inverse
                f = dtype(1.0) + psi + phi
                slope = psi_slope + phi_slope
                if td.abs(f) <= dtype(2 * epsilon) * (dtype(1.0) + td.abs(psi) + td.abs(phi)):
                    break
                if f < dtype(0.0):
                    low = mu
                else:
                    high = mu
                left = below - mu
                right = above - mu
                move = dtype(0.0)
                # The nearest pole has its own weight, or both match the sums of their sides, or
                # Newton's step for f without the nearest pole: if one is slow, the next is tried.
                if step > 0 and td.abs(f) * dtype(10.0) > before:
                    way = (way + 1) % 3
                before = td.abs(f)
                c = f - left * psi_slope - right * phi_slope
                if way == 0 and not is_last:
                    if near == j:
                        c = f - right * slope - (below - above) * weight / (left * left)
                    else:
                        c = f - left * slope - (above - below) * weight / (right * right)
                both = (left + right) * f - left * right * slope
                product = left * right * f
                if is_last:
                    c = td.abs(c)
                root = td.sqrt(td.abs(both * both - dtype(4.0) * product * c))
                if is_last:
                    root = -root
                if (both < dtype(0.0)) if is_last else (both > dtype(0.0)):
                    move = dtype(2.0) * product / (both + root)
                elif c != dtype(0.0):
                    move = (both - root) / (dtype(2.0) * c)
                else:
                    move = -f / slope
                if way == 2:
                    move = -mu * f / (f + mu * slope)
                following = mu + move
                if not (following > low and following < high) or (step > 8 and step % 2 == 1):
                    following = (low + high) / dtype(2.0)
                    if low >= dtype(0.0) and low * dtype(16.0) < high:
                        following = td.sqrt(low) * td.sqrt(high)
                        if low == dtype(0.0):
                            following = high / dtype(1024.0)
                    if high <= dtype(0.0) and high * dtype(16.0) > low:
                        following = -td.sqrt(-low) * td.sqrt(-high)
                        if high == dtype(0.0):
                            following = low / dtype(1024.0)
                change = td.abs(following - mu)
                mu = following
                if change <= dtype(epsilon) * td.abs(mu):
                    break
            ints[first + 3 * s + j] = near
            reals[poles + 4 * s + j] = mu

    return solve_secular


@functools.cache
def weight_maker(dtype: DType) -> Kernel:
    """A kernel that computes z anew, of which the roots found are the exact ones, and the rank of
    each eigenvalue, and writes the eigenvalues in ascending order. A thread does one."""

    @td.kernel(checked=False)
    def make_weights(ints, reals, d, s):
        at = td.grid(1)
        if at >= d.shape[0]:
            return
        b = at // s
        i = at - b * s
        first = b * (5 * s + 2)
        poles = b * (5 * s + 1)
        count = ints[first + 5 * s]
        value = reals[poles + i]
        if i < count:
            pole = value
            value = reals[poles + ints[first + 3 * s + i]] + reals[poles + 4 * s + i]
            total = dtype(1.0)
            for j in range(count):
                root = (pole - reals[poles + ints[first + 3 * s + j]]) - reals[poles + 4 * s + j]
                if j == i:
                    total = total * root
                else:
                    total = total * (root / (pole - reals[poles + j]))
            size = td.sqrt(td.abs(total))
            z = reals[poles + s + i]
            reals[poles + s + i] = -size if z < dtype(0.0) else size
        rank = 0
        for j in range(s):
            other = reals[poles + j]
            if j < count:
                other = reals[poles + ints[first + 3 * s + j]] + reals[poles + 4 * s + j]
            if other < value or (other == value and j < i):
                rank += 1
        ints[first + 4 * s + i] = rank
        d[b * s + rank] = value

    return make_weights


@functools.cache
def vector_maker(dtype: DType) -> Kernel:
    """A kernel that writes the eigenvectors of merged matrices, in those of the halves: the columns
    of s × s matrices, in ascending order of their eigenvalues. A block writes `LANES` columns."""
    threads = LANES * GROUPS

    @td.kernel(checked=False)
    def make_vectors(ints, reals, out, s):
        blocks = (s + LANES - 1) // LANES
        b = td.block_idx.x // blocks
        t = td.thread_idx.x
        group = t // LANES
        lane = t - group * LANES
        j = (td.block_idx.x - b * blocks) * LANES + lane
        first = b * (5 * s + 2)
        poles = b * (5 * s + 1)
        count = ints[first + 5 * s]
        board = td.shared(threads, dtype)
        pole = dtype(0.0)
        root = dtype(0.0)
        own = dtype(0.0)
        if j < count:
            pole = reals[poles + ints[first + 3 * s + j]]
            root = reals[poles + 4 * s + j]
            for i in range(group, count, GROUPS):
                value = reals[poles + s + i] / ((reals[poles + i] - pole) - root)
                own += value * value
        board[t] = own
        td.sync_threads()
        total = dtype(0.0)
        for k in range(GROUPS):
            total += board[k * LANES + lane]
        if j < s:
            norm = td.sqrt(total)
            rank = ints[first + 4 * s + j]
            for i in range(group, s, GROUPS):
                value = dtype(1.0) if i == j else dtype(0.0)
                if j < count:
                    value = dtype(0.0)
                    if i < count:
                        value = reals[poles + s + i] / ((reals[poles + i] - pole) - root) / norm
                out[(b * s + ints[first + i]) * s + rank] = value

    return make_vectors


@functools.cache
def rotation_applier(dtype: DType) -> Kernel:
    """A kernel that applies the rotations of deflations to the rows of eigenvectors. A thread does
    one column."""

    @td.kernel(checked=False)
    def apply_rotations(ints, reals, out, s):
        at = td.grid(1)
        b = at // s
        j = at - b * s
        first = b * (5 * s + 2)
        angles = b * (5 * s + 1) + 2 * s
        count = ints[first + 5 * s + 1]
        for k in range(count):
            r = count - 1 - k
            upper = (b * s + ints[first + s + r]) * s + j
            lower = (b * s + ints[first + 2 * s + r]) * s + j
            c = reals[angles + r]
            sine = reals[angles + s + r]
            one = out[upper]
            other = out[lower]
            out[upper] = c * one - sine * other
            out[lower] = sine * one + c * other

    return apply_rotations

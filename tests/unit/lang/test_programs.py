"""Functions, methods, shapes and structs: the interpreter and the IR must agree."""

from __future__ import annotations

import numpy as np

import treadle.lang as td
from tests.support.kernels import agree


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


@td.func
def total(a, n: td.i32):
    s = a[0] * 0
    for k in range(n):
        if k == a.size:
            break
        if a[k] > 100:
            return s
        s += a[k]
    return s


@td.func
def swap(a, i, j):
    a[i], a[j] = a[j], a[i]


@td.func
def norm(p):
    x, y = p
    return td.sqrt(x * x + y * y)


@td.func
def fill(a, value=2.5):
    for k in range(len(a)):
        a[k] = value + k


@td.func
def reassign(x, n):
    while n > 0:
        x *= 0.5
        n -= 1
    return x


@td.func
def outer(x):
    return reassign(x, 2) + norm((x, 1.0))


@td.func
def apply(f, x, y):
    return f(x) + y


@td.func
def make(dtype, x):
    return dtype(x) + 1


@td.kernel
def calls(x: td.Array[td.f32], y: td.Array[td.i32]):
    i = td.grid(1)
    mine = td.local(5, td.f32)
    tile = td.shared((2, 4), td.f32)
    fill(mine)
    fill(mine, value=i)
    tile[i % 2, i // 2 % 4] = mine[i % 5]
    td.sync_threads()
    if i == 3:
        swap(mine, 0, 4)
    x[i] += (
        total(mine, 4) + total(x, 0) + outer(x[i]) + apply(norm, (x[i], 2.0), 1) + tile[1, i % 4]
    )
    y[i] += make(td.i32, 2.7) + total(y, 0)


def test_functions() -> None:
    agree(calls, 1, 8, f32(8), np.arange(8, dtype=np.int32))


class Holder:
    N = 3

    @staticmethod
    @td.kernel
    def method(x: td.Array[td.f32]):
        x[td.grid(1)] = Holder.N


def test_a_static_method() -> None:
    assert agree(Holder.method, 1, 3, f32(3))[0].tolist() == [3, 3, 3]


def test_many_dimensions_and_wide_integers() -> None:
    @td.kernel
    def k(a: td.Array[td.i64, 3], b: td.Array[td.u16, 2], s: td.Array[td.f64]):
        i, j, m = td.grid(3)
        n0, n1, n2 = a.shape
        a[i, j, m] += n0 * 100 + n1 * 10 + n2 + a.ndim
        if a.size > 3 and b.ndim == 2:
            b[j, m] -= td.u16(i) + 1
        td.atomic_max(s, m, td.f64(a[i, j, m]))
        z = td.vec2[td.f64](1.5) * 2
        s[0] += z.x

    agree(
        k,
        (2, 2, 2),
        (2, 2, 1),
        np.arange(24).reshape(2, 3, 4),
        np.zeros((3, 4), np.uint16),
        np.zeros(5),
    )


def test_unrolled_loops_and_assignments() -> None:
    M = 3

    @td.kernel
    def k(out: td.Array[td.f32]):
        acc = td.local((M, M), td.f32)
        for i in td.static_range(M):
            for j in td.static_range(M):
                if i > j:
                    v = i * 10.0
                else:
                    v = j * 1.0
                acc[i, j] = v
        t = 0.0
        for i in td.static_range(M):
            for j in range(M):
                w = acc[i, j]
                t += w
                if w > 19:
                    break
        q: td.f32 = 3
        out[0] = t + q
        r: td.i32
        for k in range(4, -1, -2):
            r = k
        out[1] = r
        a = b = t
        a += 1
        out[2] = a - b
        out[3] = 1 if (t > 5 and not q < 3) or r == 9 else 0
        pair = 1.0, 2
        pair = pair[0] + 1, pair[1] * 2
        out[4] = pair[0] * pair[1]
        u = td.u32(5)
        for c in range(u):
            out[5] += c
        for c in range(td.i64(3)):
            out[6] += td.f32(c)

    agree(k, 1, 1, np.zeros(7, np.float32))


def test_structs_in_shared_memory() -> None:
    @td.struct
    class S:
        a: td.f32
        n: td.u32[2]
        v: td.vec4[td.f32]

    @td.kernel
    def k(s: td.Array[S], v: td.Array[td.vec3[td.f32]], out: td.Array[td.u32]):
        t = td.thread_idx.x
        tile = td.shared(4, S)
        vs = td.shared(4, td.vec3[td.f32])
        tile[t] = s[t]
        vs[t] = v[t]
        td.sync_threads()
        td.atomic_add(tile[0].n, 1, td.u32(t))
        td.sync_threads()
        out[t] = tile[0].n[1] * 1000 + td.u32(vs[3 - t].z > 0)
        s[t].v = tile[3 - t].v + vs[t].xyzz
        s[t].v[1] = 7.0

    s = np.zeros(4, S.dtype)
    s["v"] = f32(4, 4)
    s["n"] = np.arange(8).reshape(4, 2)
    agree(k, 1, 4, s, f32(4, 3), np.zeros(4, np.uint32))


def test_extremes_and_remainders_of_special_values() -> None:
    @td.kernel
    def k(x, y):
        i = td.grid(1)
        y[i] = max(min(x[i], 1.0), -1.0) + abs(x[i]) // 0.3 % 0.7

    agree(k, 1, 5, np.array([np.nan, np.inf, -np.inf, -0.0, 2.5], np.float32), f32(5))

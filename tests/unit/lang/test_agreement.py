"""Kernels run as plain Python and as IR: both must leave the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import treadle.lang as td
from tests.support.kernels import agree


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


@td.func
def clamped(a, i):
    if i < 0:
        return a[0]
    if i >= a.size:
        return a[a.size - 1]
    return a[i]


@td.func
def divided(a, b=3):
    return a // b, a % b


@td.struct
class Particle:
    place: td.vec2[td.f32]
    speed: td.vec2[td.f32]
    age: td.i32
    trail: td.f32[4]


@td.struct
class Plain:
    kind: td.u8
    place: td.vec3[td.f32]
    scale: td.f64


def test_stencil_with_a_function() -> None:
    @td.kernel
    def blur(x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        s = 0.0
        for k in range(-2, 3):
            s += clamped(x, i + k)
        y[i] = s / 5

    agree(blur, 3, 8, f32(21), f32(21))


def test_tiled_matmul() -> None:
    @td.kernel
    def matmul(a: td.Array[td.f32, 2], b: td.Array[td.f32, 2], c: td.Array[td.f32, 2]):
        ta = td.shared((4, 4), td.f32)
        tb = td.shared((4, 4), td.f32)
        i, j = td.grid(2)
        ti, tj = td.thread_idx.y, td.thread_idx.x
        total = 0.0
        for k0 in range(0, a.shape[1], 4):
            ta[ti, tj] = a[i, k0 + tj]
            tb[ti, tj] = b[k0 + ti, j]
            td.sync_threads()
            for k in td.static_range(4):
                total += ta[ti, k] * tb[k, tj]
            td.sync_threads()
        c[i, j] = total

    a, b = f32(6, 5), f32(5, 7)
    *_, c = agree(matmul, (2, 2), (4, 4), a, b, np.zeros((6, 7), np.float32))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


def test_reduction_with_dynamic_shared_memory_and_subgroups() -> None:
    @td.kernel
    def reduce(x: td.Array[td.f32], out: td.Array[td.f32]):
        t = td.thread_idx.x
        sums = td.shared(8, td.f32)
        s = td.subgroup_sum(x[td.grid(1)])
        if td.lane() == 0:
            sums[t // 32] = s
        td.sync_threads()
        if t == 0:
            total = 0.0
            for w in range((td.block_dim.x + 31) // 32):
                total += sums[w]
            td.atomic_add(out, 0, total)

    x = f32(150)
    *_, out = agree(reduce, 2, 80, x, np.zeros(1, np.float32))
    np.testing.assert_allclose(out[0], x.astype(np.float64).sum(), rtol=1e-4)


def test_histogram_with_atomics() -> None:
    @td.kernel
    def histogram(x: td.Array[td.u8], bins: td.Array[td.u32]):
        mine = td.shared(16, td.u32)
        t = td.thread_idx.x
        if t < 16:
            mine[t] = 0
        td.sync_threads()
        i = td.grid(1)
        if i < x.size:
            td.atomic_add(mine, x[i] // 16, 1)
        td.sync_threads()
        if t < 16:
            td.atomic_add(bins, t, mine[t])

    x = np.random.default_rng(1).integers(0, 256, 100).astype(np.uint8)
    *_, bins = agree(histogram, 4, 32, x, np.zeros(16, np.uint32))
    np.testing.assert_array_equal(bins, np.bincount(x // 16, minlength=16))


def test_integers_wrap_and_floor() -> None:
    @td.kernel
    def integers(x: td.Array[td.i32], u: td.Array[td.u32], out: td.Array[td.i32, 2]):
        i = td.grid(1)
        q, r = divided(x[i])
        out[0, i], out[1, i] = q, r
        q, r = divided(x[i], -4)
        out[2, i] = q * 10 + r
        out[3, i] = x[i] * 1000003 + td.i32(u[i] << 3)
        out[4, i] = (x[i] >> 2) ^ td.i32(u[i] >> 2) | 1
        out[5, i] = td.i32(u[i] - 1) // (x[i] + 7)
        u[i] //= 3
        u[i] ^= 0xFF

    x = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31)], np.int32)
    u = np.array([0, 1, 2, 3, 2**31, 2**32 - 1, 77], np.uint32)
    agree(integers, 1, 7, x, u, np.zeros((6, 7), np.int32))


def test_control_flow() -> None:
    @td.kernel
    def flow(out: td.Array[td.i32], n: td.i32, step: td.i32):
        i = td.grid(1)
        if i == 5:
            return
        count = 0
        for k in range(n, -n, step):
            if k == i:
                continue
            if (k % 4 == 3 and not k < 0) or count > 9:
                break
            count += k if k > 0 else 1
        else_count = count
        while True:
            else_count -= 3
            if else_count < -5:
                break
        for k in range(i, 0, -2):
            last = k
            count += k
        if i > 2:
            count += last
        a, b = count, else_count
        a, b = b, a
        out[i] = a * 1000 + b if i < 6 else (b, a)[1]

    for n, step in ((4, -1), (-4, 2), (9, -3), (3, 0), (8, 1)):
        agree(flow, 1, 8, np.zeros(8, np.int32), n, step)


def test_structs() -> None:
    @td.kernel
    def move(p: td.Array[Particle], q: Plain, dt, out: td.Array[td.f32]):
        i = td.grid(1)
        one = p[i]
        one.place += one.speed * dt
        one.age += 1
        one.trail[one.age % 4] = one.place.x + q.place.z
        p[i] = one
        p[i].speed = p[i].speed.yx * -0.5
        p[i].trail[9] = 1.0
        other = q
        other.kind += 200
        made = Plain(3, td.vec3[td.f32](one.place, dt), scale=0.5)
        out[i] = made.place.z + td.f32(other.kind) + td.f32(made.scale * q.scale)

    particles = np.zeros(5, Particle.dtype)
    particles["place"], particles["speed"], particles["age"] = f32(5, 2), f32(5, 2), np.arange(5)
    value = Plain(100, td.vec3[td.f32](1, 2, 3), 0.1)
    moved, *_ = agree(move, 1, 6, particles, value, 0.25, np.zeros(5, np.float32))
    assert moved["age"].tolist() == [1, 2, 3, 4, 5]


def test_effects_happen_in_pythons_order() -> None:
    @td.kernel
    def order(x: td.Array[td.i32], out: td.Array[td.i32]):
        out[0] = x[0] * 10 + td.atomic_add(x, 0, 1) * 100 + x[0]
        out[1] = x[1] + (td.atomic_exchange(x, 1, 7) if x[2] > 0 else 5) + x[1]
        if x[3] > 0 or td.atomic_add(x, 4, 1) == 4:
            out[2] = x[4]
        x[td.atomic_add(x, 5, 1)] += td.atomic_add(x, 5, 2)
        out[3] = x[5] < td.atomic_sub(x, 5, 3) < 9

    x = np.array([3, 4, 1, 0, 4, 6, 0, 0, 0], np.int32)
    _, out = agree(order, 1, 1, x, np.zeros(4, np.int32))
    assert out[:2].tolist() == [3 * 10 + 3 * 100 + 4, 4 + 4 + 7]


@pytest.mark.parametrize("dtype", [td.f16, td.bf16, td.f32, td.f64], ids=str)
def test_narrow_and_wide_floats(dtype) -> None:
    @td.kernel
    def floats(x: td.Array[dtype], y: td.Array[dtype]):
        i = td.grid(1)
        a = x[i]
        y[i] = td.sqrt(abs(a)) * 0.1 + a**3 / (a + 2) - td.round(a) % 1.5
        y[i] = td.maximum(y[i], td.copysign(0.25, a))

    x = np.array([0.1, -0.7, 3.3, 100, -5, np.inf, np.nan, -0.0], np.float32).astype(dtype.numpy)
    _, other = agree(floats, 1, 8, x, np.zeros(8, dtype.numpy))
    assert other.dtype == dtype


def test_local_arrays_and_tuples() -> None:
    taps = (0.25, 0.5, 0.25)

    @td.kernel
    def filtered(x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        window = td.local(3, td.f32)
        for k in range(len(taps)):
            window[k] = x[i + k]
        s = 0.0
        for k, w in ((0, taps[0]), (1, taps[1]), (2, taps[2])):
            s += w * window[k]
        for w in taps:
            s = td.fma(w, 2.0, s)
        pair = (s, i)
        y[i] = pair[0] + pair[1] + x.shape[0]

    agree(filtered, 1, 6, f32(6), f32(6))


def test_vectors() -> None:
    @td.kernel
    def turn(v: td.Array[td.vec4[td.f32]], m: td.vec2[td.i32], out: td.Array[td.f32]):
        i = td.grid(1)
        a = v[i]
        b = td.vec4[td.f32](a.wzy, td.f32(m.x))
        a.x, a.y = a.y, a.x
        v[i] = (a + b) * 2.0 - 1 / b
        v[i].w = td.dot(a.xy, b.zw)
        x, y = m
        out[i] = -a.z + x * y + b[3]

    v = f32(3, 4)
    agree(turn, 1, 3, v, td.vec2[td.i32](3, 5), f32(3))


@pytest.mark.parametrize("name", ["exp", "log1p", "sin", "tanh", "rsqrt", "nextafter", "pow"])
def test_the_library_is_the_same_in_the_interpreter(name: str) -> None:
    arguments = "x[i], y[i]" if name in ("nextafter", "pow") else "x[i]"
    text = f"def k(x, y):\n    i = td.grid(1)\n    y[i] = td.{name}({arguments})\n"
    x = np.array([0.1, -2.5, 30, np.nan, np.inf, -0.0, 1e10], np.float32)
    agree(td.kernel(source=text), 1, 7, x, x[::-1].copy())


def test_integers_and_narrow_floats_go_through_the_library_in_float32() -> None:
    @td.kernel
    def k(h: td.Array[td.f16], n: td.Array[td.i32], out: td.Array[td.f32]):
        i = td.grid(1)
        out[i] = td.exp(n[i]) + td.rand_uniform(7, i)
        h[i] = td.log(h[i])

    agree(k, 1, 3, np.array([1, 2, 3], np.float16), np.arange(3, dtype=np.int32), f32(3))


def test_names_in_a_branch_that_is_always_taken_end_with_it() -> None:
    @td.kernel
    def run(out: td.Array[td.i32]):
        i = td.grid(1)
        for k in td.static_range(2):
            while out[i] < 5 * k + 3:
                if True:
                    v = out[i] + 1 if i > 2 else 50
                    out[i] = v

    (out,) = agree(run, 1, 8, np.zeros(8, np.int32))
    assert out.tolist() == [50, 50, 50, 8, 8, 8, 8, 8]


@td.struct
class Kept:
    count: td.i32
    parts: td.f32[2]


@td.func
def found_first(a, wanted):
    for i in range(a.size):
        if a[i] == wanted:
            place = i
            break
    return place


def test_variables_that_some_paths_assign_are_zero_on_the_others() -> None:
    @td.kernel
    def k(c: td.Array[td.i32], o: td.Array[td.f32, 2]):
        t = td.grid(1)
        n = c[t]
        if n > 1:
            x = 2.5
            v = td.vec2[td.f32](1, n)
            pair = (n, 0.5 * n, 7)
            s = Kept(3, (1, 2))
        for j in range(n):
            last = 10 * j
            if j == 2:
                kept = j
        o[t, 0] = x
        o[t, 1] = v.y
        o[t, 2] = pair[0] + pair[1] + pair[2]
        o[t, 3] = last + j
        o[t, 4] = kept
        o[t, 5] = found_first(c, 3 * t)
        o[t, 6] = s.count + s.parts[1]

    counts = np.array([0, 1, 3, 2], np.int32)
    (_, o) = agree(k, 1, 4, counts, np.full((4, 7), -1, np.float32))
    assert o.tolist() == [
        [0, 0, 7, 0, 0, 0, 0],
        [0, 0, 7, 0, 0, 2, 0],
        [2.5, 3, 11.5, 22, 2, 0, 5],
        [2.5, 2, 10, 11, 0, 0, 5],
    ]

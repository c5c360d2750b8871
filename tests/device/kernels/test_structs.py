"""Structs that hold fixed arrays, and structs of one name: made, passed, returned, chosen."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


@td.struct
class Filter:
    weights: td.f32[3]
    bias: td.f32
    origin: td.vec2[td.f32]


@td.struct
class Stack:
    filters: Filter[2]
    depth: td.i32 = 7
    counts: td.i16[2] = (3, 4)


@td.func
def scaled(f: Filter, by):
    for k in range(3):
        f.weights[k] = f.weights[k] * by  # its own copy
    f.bias *= by
    return f


@td.func
def apply(f, x):
    return (f.weights[0] * x + f.weights[1]) * x + f.weights[2] + f.bias


@td.func
def ramp(start, step) -> Filter:
    if step == 0.0:
        return Filter((start, start, start), 0.0)
    return Filter((start, start + step, start + 2.0 * step), bias=1.0, origin=td.vec2[td.f32](step))


def run(device, kernel, threads, *arguments):
    """The kernel's results (its last argument) on the device; the interpreter must agree."""
    *before, out = arguments
    found = td.asarray(out)
    kernel.launch(threads, *(each.copy() for each in before), found)
    again = out.copy()
    with td.interpret():
        kernel.launch(threads, *(each.copy() for each in before), again)
    np.testing.assert_array_equal(found.numpy(), again)
    return found.numpy()


def test_made_in_an_expression(device):
    @td.kernel
    def make(out: td.Array[Filter]):
        i = td.grid(1)
        x = td.f32(i)
        out[i] = Filter((x, 2 * x, 3.0), x + 0.5, td.vec2[td.f32](x, -x))

    found = run(device, make, 5, np.zeros(5, Filter.dtype))
    i = np.arange(5)
    np.testing.assert_array_equal(found["weights"], np.stack([i, 2 * i, 3 + 0 * i], 1))
    np.testing.assert_array_equal(found["bias"], i + 0.5)
    np.testing.assert_array_equal(found["origin"], np.stack([i, -i], 1))


def test_defaults_zeros_and_one_number_for_all(device):
    @td.kernel
    def make(out: td.Array[Stack]):
        i = td.grid(1)
        out[i] = Stack()
        s = Stack(depth=i)
        s.filters[1] = Filter(td.f32(i))
        s.filters[0].weights = 2.0
        s.counts = (i, i + 1)
        s.counts = (s.counts[1], s.counts[0])
        if i > 0:
            out[i] = s

    start = np.full(3, 9).astype(np.uint8).repeat(Stack.dtype.itemsize).view(Stack.dtype)
    found = run(device, make, 3, start)
    assert found["depth"].tolist() == [7, 1, 2]
    assert found["counts"].tolist() == [[3, 4], [2, 1], [3, 2]]
    weights = found["filters"]["weights"].tolist()
    assert weights[0] == [[0, 0, 0], [0, 0, 0]]
    assert weights[2] == [[2, 2, 2], [2, 2, 2]]
    assert weights[1] == [[2, 2, 2], [1, 1, 1]]
    assert found["filters"]["bias"].tolist() == [[0, 0]] * 3


def test_passed_by_value_and_returned(device, rng):
    @td.kernel
    def use(filters: td.Array[Filter], x: td.Array[td.f32], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        f = filters[i]
        g = scaled(f, 2.0)
        out[0, i] = apply(f, x[i])
        out[1, i] = apply(g, x[i])
        out[2, i] = apply(scaled(filters[i], -1.0), x[i])
        out[3, i] = apply(ramp(x[i], td.f32(i)), 1.0)
        out[4, i] = scaled(ramp(1.0, 1.0), 3.0).weights[i % 3]

    filters = np.zeros(4, Filter.dtype)
    filters["weights"] = rng.integers(-4, 5, (4, 3))
    filters["bias"] = [1, 2, 3, 4]
    x = np.arange(4, dtype=np.float32)
    found = run(device, use, 4, filters, x, np.zeros((5, 4), np.float32))
    w = filters["weights"]
    value = (w[:, 0] * x + w[:, 1]) * x + w[:, 2] + filters["bias"]
    np.testing.assert_array_equal(found[:3], [value, 2 * value, -value])
    np.testing.assert_array_equal(found[3], [0, 7, 13, 19])
    np.testing.assert_array_equal(found[4], [3, 6, 9, 3])


def test_chosen(device):
    @td.kernel
    def choose(filters: td.Array[Filter], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        f = filters[i] if i % 2 == 0 else ramp(10.0, 1.0)
        out[0, i] = apply(f, 1.0)
        g = td.where(i < 2, f, filters[0])
        f.bias = 100.0
        out[1, i] = g.bias
        out[2, i] = apply(scaled(f, 2.0) if i == 0 else g if i == 1 else Filter(1.0), 0.0)

    filters = np.zeros(4, Filter.dtype)
    filters["weights"] = np.arange(12).reshape(4, 3)
    filters["bias"] = 0.5
    found = run(device, choose, 4, filters, np.zeros((3, 4), np.float32))
    np.testing.assert_array_equal(found[0], [3.5, 34, 21.5, 34])
    np.testing.assert_array_equal(found[1], [0.5, 1, 0.5, 0.5])
    np.testing.assert_array_equal(found[2], [204, 13, 1, 1])


def test_swapped_and_in_loops(device):
    @td.kernel
    def loop(out: td.Array[Filter]):
        i = td.grid(1)
        a, b = ramp(1.0, 1.0), Filter(0.0)
        for k in range(i):
            a, b = b, a
            b = scaled(b, 2.0)
            if k == 3:
                break
        out[i] = a

    def expected(i):
        a, b = np.array([1.0, 2, 3]), np.zeros(3)
        for _ in range(i):
            a, b = b, a * 2
        return a

    found = run(device, loop, 4, np.zeros(4, Filter.dtype))
    np.testing.assert_array_equal(found["weights"], [expected(i) for i in range(4)])


@td.func
def split(s: Stack):
    return s.filters[0], s.filters[1], s.depth


def test_in_a_returned_tuple(device):
    @td.kernel
    def use(out: td.Array[td.f32]):
        i = td.grid(1)
        s = Stack((ramp(1.0, 1.0), ramp(5.0, 0.0)), 4)
        first, second, depth = split(s)
        out[i] = apply(first, 1.0) + 100.0 * second.weights[2] + 1000.0 * depth

    assert run(device, use, 1, np.zeros(1, np.float32)).tolist() == [4507]


def test_in_shared_memory(device):
    @td.kernel
    def turn(out: td.Array[Filter]):
        cells = td.shared(8, Filter)
        i = td.thread_idx.x
        cells[i] = ramp(td.f32(i), 1.0)
        td.sync_threads()
        out[i] = scaled(cells[7 - i], 1.0)

    found = td.zeros(8, dtype=Filter)
    turn[1, 8](found)
    np.testing.assert_array_equal(found.numpy()["weights"][:, 0], np.arange(8)[::-1])


def test_elementwise_over_structs_with_arrays(device):
    @td.elementwise
    def twice(f):
        return scaled(f, 2.0)

    data = np.zeros((2, 3), Filter.dtype)
    data["weights"] = np.arange(18).reshape(2, 3, 3)
    found = twice(td.asarray(data))
    np.testing.assert_array_equal(found.numpy()["weights"], 2 * data["weights"])


def test_what_does_not_fit(device):
    @td.kernel
    def wrong(out: td.Array[Filter]):
        out[0] = Filter((1.0, 2.0))

    with pytest.raises(td.errors.CompileError, match="a tuple of 2"):
        wrong[1, 1](td.zeros(1, dtype=Filter))


def _pair(first, second):
    @td.struct
    class Pair:
        x: first
        y: second

    return Pair


One, Other = _pair(td.f32, td.i32), _pair(td.i32, td.f32[2])


def test_two_structs_of_one_name(device):
    @td.func
    def sum_one(p: One):
        return p.x + td.f32(p.y)

    @td.func
    def swapped(p: One):
        return Other(p.y, (p.x, p.x))

    @td.kernel
    def use(a: td.Array[One], b: td.Array[Other], p: One, out: td.Array[td.f32]):
        i = td.grid(1)
        other = swapped(a[i])
        b[i] = other
        local = One(td.f32(other.x), i)
        out[i] = sum_one(a[i]) + sum_one(local) + sum_one(p) + other.y[1]

    a = np.zeros(3, One.dtype)
    a["x"], a["y"] = [0.5, 1.5, 2.5], [1, 2, 3]
    b, out = td.zeros(3, dtype=Other), td.zeros(3)
    use.launch(3, td.asarray(a), b, One(100.0, 5), out)
    i = np.arange(3)
    np.testing.assert_array_equal(out.numpy(), a["x"] + a["y"] + a["y"] + i + 105 + a["x"])
    np.testing.assert_array_equal(b.numpy()["x"], a["y"])
    np.testing.assert_array_equal(b.numpy()["y"], np.stack([a["x"], a["x"]], 1))
    for target in ("wgsl", "llvm", "ir"):
        assert use.source(target)


@td.func
def raise_bias(filters, i):
    filters[i].bias += 10.0
    return filters[i].bias


@td.func
def difference(f, later):
    return later - f.bias


def test_taken_before_what_comes_after(device):
    @td.kernel
    def use(filters: td.Array[Filter], out: td.Array[td.f32]):
        i = td.grid(1)
        out[i] = difference(filters[i], raise_bias(filters, i))
        whole = Stack((filters[i], filters[i]), i32(raise_bias(filters, i)))
        out[i] += 100.0 * whole.filters[1].bias + td.f32(whole.depth)

    i32 = td.i32
    data = np.zeros(2, Filter.dtype)
    data["bias"] = [1, 2]
    found = run(device, use, 2, data, np.zeros(2, np.float32))
    np.testing.assert_array_equal(found, [10 + 1100 + 21, 10 + 1200 + 22])


def test_zero_where_it_is_not_assigned(device):
    """A variable that some paths assign is zero on the others, also one that holds arrays."""

    @td.kernel
    def use(filters: td.Array[Filter], out: td.Array[td.f32]):
        i = td.grid(1)
        if i == 1:
            f = filters[i]
            x, pair = 0.5, (filters[i].bias, 7)
        out[i] = f.weights[2] + f.bias + x + pair[0] + pair[1]

    data = np.zeros(3, Filter.dtype)
    data["bias"], data["weights"] = 2, 3
    np.testing.assert_array_equal(run(device, use, 3, data, np.zeros(3, np.float32)), [7, 14.5, 7])


def test_every_field_of_an_argument(device):
    @td.struct
    class Small:
        half: td.f16
        short: td.bf16
        pair: td.vec2[td.f16]
        several: td.bf16[2]
        flag: td.bool

    @td.struct
    class Large:
        one: Small
        two: Small[2]

    @td.kernel
    def write_fields(out: td.Array[td.f32], large: Large, small: Small, pair: td.vec2[td.bf16]):
        out[0] = td.f32(large.one.half)
        out[1] = td.f32(large.one.pair.y)
        out[2] = td.f32(large.two[1].several[1])
        out[3] = td.f32(large.two[0].short)
        out[4] = td.f32(small.several[0])
        out[5] = td.f32(small.flag)
        out[6] = td.f32(pair.y)

    one = Small(1.5, 2.5, (3.0, 4.0), [5.0, 6.0], True)
    other = Small(7.5, 8.5, (9.0, 10.0), [11.0, 12.0], False)
    out = td.zeros(7, device=device)
    write_fields[1, 1](out, Large(one, [other, one]), other, td.vec2[td.bf16](13.0, 14.0))
    assert out.tolist() == [1.5, 4.0, 6.0, 8.5, 11.0, 0.0, 14.0]

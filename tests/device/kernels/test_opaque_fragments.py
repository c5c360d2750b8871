"""Fragments whose elements kernels do not see: loads, products and stores of every layout, parts,
what is outside, warps that left, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

CASES = [("row", "row", "row"), ("column", "row", "column"), ("row", "column", "row")]


def _multiplier(a_layout, b_layout, sums_layout):
    """A kernel of one warp: 16 x 16 sums over 16, from shared memory of one and of two axes."""

    @td.kernel
    def multiply(x: td.Array[td.f16, 2], y: td.Array[td.f16, 2], z: td.Array[td.f32, 2]):
        left = td.shared(8 + 16 * 24, td.f16)
        right = td.shared((16, 24), td.f16)
        out = td.shared(16 * 20, td.f32)
        for i in range(td.lane(), 256, 32):
            left[8 + i // 16 * 24 + i % 16] = x[i // 16, i % 16]
            right[i // 16, i % 16 + 8] = y[i // 16, i % 16]
            out[i // 16 * 20 + i % 16] = z[i // 16, i % 16]
        td.sync_threads()
        a = td.fragment(16, 16, td.f16, use="a", indexed=False)
        b = td.fragment(16, 16, td.f16, use="b", indexed=False)
        sums = td.fragment(16, 16, td.f32, use="accumulator", indexed=False)
        a.load(left, 8, 24, layout=a_layout)
        b.load(right, (0, 8), layout=b_layout)
        sums.load(out, 0, 20, layout=sums_layout)
        sums.multiply_add(a, b)
        td.sync_threads()
        sums.store(out, 0, 20, layout=sums_layout)
        td.sync_threads()
        for i in range(td.lane(), 256, 32):
            z[i // 16, i % 16] = out[i // 16 * 20 + i % 16]

    return multiply


def _drawn(rng, *shape):
    return rng.standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("layouts", CASES, ids="-".join)
def test_layouts(device, rng, layouts):
    x, y = _drawn(rng, 16, 16), _drawn(rng, 16, 16)
    start = rng.standard_normal((16, 16)).astype(np.float32)
    out = td.asarray(start, device=device)
    _multiplier(*layouts)[1, 32](td.asarray(x, device=device), td.asarray(y, device=device), out)
    turned = [each == "column" for each in layouts]
    left, right = (v.T if t else v for v, t in zip((x, y), turned, strict=False))
    wanted = (start.T if turned[2] else start) + left.astype("f8") @ right.astype("f8")
    found = out.numpy().T if turned[2] else out.numpy()
    bound = 2e-6 * (np.abs(left).astype("f8") @ np.abs(right).astype("f8") + np.abs(start) + 1)
    assert np.all(np.abs(found - wanted) <= bound)


@td.kernel
def _parts(z: td.Array[td.f32], first: td.i32, at: td.i32):
    """Of two warps: numbers of 32 x 16 sums, of which the second warp stores one part."""
    out = td.shared(2 * 256, td.f32)
    for i in range(td.thread_idx.x, 512, 64):
        out[i] = 9.0
    td.sync_threads()
    sums = td.fragment(32, 16, td.f32, use="accumulator", indexed=False)
    sums.fill(first)
    sums.part(1, 0).fill(first + 1)
    td.sync_threads()
    if td.thread_idx.x < 32:
        sums.part(0, 0).store(out, 0, 16)
    else:
        sums.part(1, 0).store(out, at, 16)
    td.sync_threads()
    for i in range(td.thread_idx.x, 512, 64):
        z[i] = out[i]


@pytest.mark.parametrize("at", [256, 257, 260, -4, 2**31 - 20])
def test_parts_and_what_is_outside(device, at):
    out = td.zeros(512, device=device)
    _parts[1, 64](out, 5, at)
    second = 6.0 if at == 256 else 9.0
    np.testing.assert_array_equal(out.numpy(), np.repeat(np.float32([5, second]), 256))


@td.kernel
def _outside(x: td.Array[td.f16], z: td.Array[td.f32], at: td.i32, stride: td.i32):
    tile = td.shared(320, td.f16)
    out = td.shared(256, td.f32)
    for i in range(td.lane(), 320, 32):
        tile[i] = x[i]
    td.sync_threads()
    a = td.fragment(16, 16, td.f16, use="a", indexed=False)
    b = td.fragment(16, 16, td.f16, use="b", indexed=False)
    sums = td.fragment(16, 16, td.f32, use="accumulator", indexed=False)
    a.fill(2)
    b.fill(1)
    a.load(tile, at, stride)
    sums.multiply_add(a, b)
    sums.store(out, 0, 16)
    td.sync_threads()
    for i in range(td.lane(), 256, 32):
        z[i] = out[i]


@pytest.mark.parametrize(
    ("at", "stride"), [(64, 16), (0, 0), (72, 16), (0, 24), (-8, 16), (0, -8), (1, 16), (0, 17)]
)
def test_a_load_that_would_leave_the_array_or_is_not_aligned(device, at, stride):
    """Gives zeros in the whole fragment."""
    out = td.zeros(256, device=device)
    _outside[1, 32](td.ones(320, dtype=td.float16, device=device), out, at, stride)
    inside = at >= 0 and stride >= 0 and at + 15 * stride + 16 <= 320
    inside &= at % 8 == stride % 8 == 0
    np.testing.assert_array_equal(out.numpy(), np.full(256, 16.0 * inside, np.float32))


def _constant_place(row, column):
    @td.kernel
    def stored(z: td.Array[td.f32, 2]):
        out = td.shared((32, 32), td.f32)
        for i in range(td.lane(), 1024, 32):
            out[i // 32, i % 32] = 9.0
        td.sync_threads()
        sums = td.fragment(16, 16, td.f32, use="accumulator", indexed=False)
        sums.fill(5)
        sums.load(out, (row, column))
        sums.store(out, (16 - row, column))
        td.sync_threads()
        for i in range(td.lane(), 1024, 32):
            z[i // 32, i % 32] = out[i // 32, i % 32]

    return stored


@pytest.mark.parametrize(("row", "column"), [(32, 16), (-1, 0), (0, 20)])
def test_constant_places_outside(device, row, column):
    """A load gives zeros and a store is dropped; compilers refuse the places that are left."""
    out = td.zeros((32, 32), device=device)
    _constant_place(row, column)[1, 32](out)
    wanted = np.full((32, 32), 9.0)
    loaded = 9.0 if 0 <= row <= 16 and column <= 16 else 0.0
    if 0 <= 16 - row <= 16 and column <= 16:
        wanted[16 - row : 32 - row, column : column + 16] = loaded
    np.testing.assert_array_equal(out.numpy(), wanted)


@td.kernel
def _some_left(z: td.Array[td.f32], n: td.i32):
    """Warps of which one has ended, before a barrier that all the others reach."""
    out = td.shared(2 * 256, td.f32)
    warp = td.thread_idx.x // 32
    if warp >= n:
        return
    sums = td.fragment(16, 16, td.f32, use="accumulator", indexed=False)
    sums.fill(warp + 1)
    sums.store(out, warp * 256, 16)
    td.sync_subgroup()
    for i in range(td.lane(), 256, 32):
        z[warp * 256 + i] = out[warp * 256 + i]


def test_warps_that_have_ended_store_nothing(device):
    out = td.zeros(512, device=device)
    _some_left[1, 64](out, 1)
    np.testing.assert_array_equal(out.numpy(), np.repeat(np.float32([1, 0]), 256))


def test_in_the_interpreter(rng):
    x, y = _drawn(rng, 16, 16), _drawn(rng, 16, 16)
    out = np.zeros((16, 16), np.float32)
    found = np.zeros(512, np.float32)
    with td.interpret():
        _multiplier("row", "column", "row")[1, 32](x, y, out)
        _parts[1, 64](found, 5, 260)
    np.testing.assert_allclose(out, x.astype("f8") @ y.T.astype("f8"), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found, np.repeat(np.float32([5, 9]), 256))

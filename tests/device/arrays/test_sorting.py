"""Sorting the rows of arrays: order, stability and special values, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import drawn, has, on
from treadle.core import dtypes
from treadle.kernels import sort
from treadle.kernels.device_code import radix_blocks


def stable_order(x, descending):
    """NumPy's order, downwards with NaN last and equal elements as they were."""
    if x.dtype.kind in "iub":
        rank = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    else:
        rank = x.astype(np.float64)
    return np.argsort(-rank if descending else rank, axis=-1, kind="stable")


def check_equal(found, expected):
    """The same numbers, and zeros of the same sign."""
    if found.dtype.kind not in "iub":
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))
    np.testing.assert_array_equal(found, expected)


# Downwards there is a rule for each dtype that is computed with: f32 stands for narrower floats.
ORDERS = [(dtype, False) for dtype in dtypes.DTYPES]
ORDERS += [(dtype, True) for dtype in (td.bool, td.u8, td.i32, td.f32, td.i64, td.u64, td.f64)]


@pytest.mark.parametrize(("dtype", "descending"), ORDERS, ids=str)
def test_order_of_every_dtype(device, rng, dtype, descending):
    if not has(device, dtype):
        return
    narrow = dtype in (td.i8, td.i16, td.u16, td.bf16)  # merged as bool, u8 and f16 are
    for shape in [(5, 7), (3, 71) if narrow else (1, 2311)]:
        x = drawn(rng, dtype, shape)
        order = stable_order(x, descending)
        values, places = sort.sort_with_order(on(device, x), descending)
        np.testing.assert_array_equal(places.to_host(), order)
        check_equal(values.to_host(), np.take_along_axis(x, order, -1))


SHAPES = [(0,), (3, 0), (1,), (2, 1), (3, 32), (2, 61), (2, 1021), (3, 2048), (1, 9001)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sizes_of_rows(device, rng, shape):
    """Rows of a thread, smaller than a tile, one tile, and several passes of merges or digits."""
    x = drawn(rng, td.f32, shape)
    given = on(device, x)
    check_equal(sort.sort(given).to_host(), np.sort(x, axis=-1, kind="stable"))
    np.testing.assert_array_equal(sort.argsort(given).to_host(), stable_order(x, False))


BY_DIGITS = [(td.bool, False), (td.bf16, False), (td.f16, True), (td.i16, True), (td.u32, False)]
BY_DIGITS += [(td.f32, False), (td.f32, True), (td.f64, True), (td.i64, False)]


@pytest.fixture
def by_digits(device, monkeypatch):
    """Whether rows of any length are now ordered by small tiles and digits, as long ones are on
    GPUs with subgroups."""
    monkeypatch.setattr(sort, "serial_threads", lambda _: False)
    monkeypatch.setattr(sort, "_SHORT_ROW", 0)
    monkeypatch.setattr(sort, "_DIGITS_ROW", 1)
    monkeypatch.setattr(sort, "_DIGITS_SIZE", 1)
    monkeypatch.setattr(sort, "_DIGIT_ITEMS", 3)  # which are few to compile: tiles have 768
    return device.limits.subgroup_size == radix_blocks.LANES


@pytest.mark.parametrize(("dtype", "descending"), BY_DIGITS, ids=str)
def test_every_dtype_by_tiles_of_digits(by_digits, device, rng, dtype, descending):
    if not (by_digits and has(device, dtype)):
        return
    x = drawn(rng, dtype, (2, 1801))
    order = stable_order(x, descending)
    values, places = sort.sort_with_order(on(device, x), descending)
    np.testing.assert_array_equal(places.to_host(), order)
    check_equal(values.to_host(), np.take_along_axis(x, order, -1))


def test_sizes_of_rows_by_tiles_of_digits(by_digits, device, rng):
    for shape in [(1,), (3, 2), (2, 61), (2, 768), (1, 769), (1, 6007)] if by_digits else []:
        x = drawn(rng, td.f32, shape)
        check_equal(sort.sort(on(device, x)).to_host(), np.sort(x, axis=-1, kind="stable"))


def test_ordered_and_equal_elements_by_tiles_of_digits(by_digits, device, rng):
    n = 2311
    rising = np.arange(n, dtype=np.int32) - 77
    few = rng.integers(-1, 2, n).astype(np.int32)
    for x in (rising * 0 - 5, rising, rising[::-1].copy(), few) if by_digits else ():
        places = sort.argsort(on(device, x)).to_host()
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


def test_places_in_64_bits(device, rng):
    if has(device, td.i64):
        x = drawn(rng, td.f32, (2, 5000))
        places = sort.argsort(on(device, x), dtype=td.i64).to_host()
        assert places.dtype == np.int64
        np.testing.assert_array_equal(places, stable_order(x, False))


@pytest.mark.slow
def test_one_long_row(device, rng):
    n = 10_000_019
    if device.kind == "software":  # a driver, or an evaluator of PTX
        n = 300_007 if device.backend == "webgpu" else 30_011
    x = drawn(rng, td.f32, (n,))
    values, places = sort.sort_with_order(on(device, x))
    order = stable_order(x, False)
    np.testing.assert_array_equal(places.to_host(), order)
    check_equal(values.to_host(), x[order])

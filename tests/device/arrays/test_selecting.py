"""Searching, selecting, scattering and grouping elements, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import drawn, has, on
from treadle.kernels import scan, scatter, search, select, unique

# A dtype for each way to compute, and one that is stored in less than a word.
COMPUTED = [td.bool, td.u8, td.i32, td.u32, td.i64, td.u64, td.f16, td.f32, td.f64]


@pytest.mark.parametrize("n", [0, 1, 31, 2048, 2049, 9973])
def test_sums_before_each_element(device, rng, n):
    x = rng.integers(-5, 9, n).astype(np.int32)
    sums, total = scan.exclusive_sum(on(device, x))
    np.testing.assert_array_equal(sums.to_host(), np.cumsum(x) - x)
    assert total.to_host().tolist() == [x.sum()]


@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_searchsorted(device, rng, dtype):
    if not has(device, dtype):
        return
    x = drawn(rng, dtype, (97,))
    values = np.concatenate([x[::3], drawn(rng, dtype, (31,))]).reshape(-1, 2)
    order = np.argsort(x, kind="stable")
    for side in ("left", "right"):
        expected = np.searchsorted(x[order], values, side)
        plain = search.searchsorted(on(device, x[order]), on(device, values), side)
        np.testing.assert_array_equal(plain.to_host(), expected)
        sorter = on(device, order.astype(np.int32))
        by_sorter = search.searchsorted(on(device, x), on(device, values), side, sorter)
        np.testing.assert_array_equal(by_sorter.to_host(), expected)


def test_searchsorted_in_nothing_and_for_nothing(device):
    none, two = np.zeros(0, np.float32), np.zeros(2, np.float32)
    assert search.searchsorted(on(device, none), on(device, two)).to_host().tolist() == [0, 0]
    assert search.searchsorted(on(device, two), on(device, none)).shape == (0,)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (17,), (20011,)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_positions(device, rng, shape, share):
    mask = rng.random(shape) < share
    given = on(device, mask)
    np.testing.assert_array_equal(select.positions(given).to_host(), np.flatnonzero(mask))


def test_positions_in_64_bits(device):
    if has(device, td.i64):
        found = select.positions(on(device, np.array([False, True])), td.i64).to_host()
        assert found.dtype == np.int64
        assert found.tolist() == [1]


PUT = [td.bool, td.i8, td.f16, td.i32, td.f32, td.complex64, td.f64, td.i64]


@pytest.mark.parametrize("dtype", PUT, ids=str)
def test_the_last_of_several_values_stays(device, rng, dtype):
    if not has(device, dtype):
        return
    target = rng.integers(0, 2, (7, 11)).astype(dtype.numpy)
    index = rng.integers(0, target.size, 500).astype(np.int64 if has(device, td.i64) else np.int32)
    values = rng.integers(0, 2 if dtype == td.bool else 100, index.size).astype(dtype.numpy)
    given = on(device, target)
    scatter.put(given, on(device, index), on(device, values))
    np.put(target, index, values)
    np.testing.assert_array_equal(given.to_host(), target)
    scatter.put(given, on(device, index[:9]), on(device, values[:1]))
    np.put(target, index[:9], values[:1])
    np.testing.assert_array_equal(given.to_host(), target)


def test_put_at_distinct_places(device, rng):
    target = np.zeros(1000, np.float32)
    index = rng.permutation(1000)[:700].astype(np.int32)
    values = rng.standard_normal(700).astype(np.float32)
    given = on(device, target)
    scatter.put(given, on(device, index), on(device, values), distinct=True)
    scatter.put(given, on(device, index[:0]), on(device, values[:0]))
    target[index] = values
    np.testing.assert_array_equal(given.to_host(), target)


ADDED = [td.u8, td.f16, td.i32, td.u32, td.f32, td.complex64, td.complex128, td.f64, td.i64, td.u64]


@pytest.mark.parametrize("dtype", ADDED, ids=str)
def test_everything_is_added(device, rng, dtype):
    if not has(device, dtype):
        return
    target = rng.integers(0, 9, 13).astype(dtype.numpy)
    index = rng.integers(0, target.size, 500).astype(np.int32)
    values = rng.integers(0, 9, index.size).astype(dtype.numpy)
    if dtype.is_complex:
        values = values * (1 + 2j)  # small integers: every order of adding gives the same
    given = on(device, target)
    scatter.add(given, on(device, index), on(device, values.astype(dtype.numpy)))
    scatter.add(given, on(device, index), on(device, values[:1].astype(dtype.numpy)))
    np.add.at(target, index, values.astype(dtype.numpy))
    np.add.at(target, index, values[:1].astype(dtype.numpy))
    np.testing.assert_array_equal(given.to_host(), target)


@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_distinct_elements(device, rng, dtype):
    if not has(device, dtype):
        return
    x = drawn(rng, dtype, (2311,))
    found = [part.to_host() for part in unique.unique(on(device, x))]
    expected = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_distinct_elements_of_nothing(device):
    found = unique.unique(on(device, np.zeros(0, np.float32)))
    assert [part.shape for part in found] == [(0,)] * 4

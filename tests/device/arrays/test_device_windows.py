"""Slices between `n` and `n` plus a number, for an `n` on the device: windows of known extent."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import treadle as td
from treadle.core.dtypes import as_dtype
from treadle.runtime.counters import counts
from treadle.tensor.dtypes import supports


@pytest.fixture(autouse=True)
def used(device):
    with td.use_device(device):
        yield


class Unread:
    """Fails a test in which the device is waited for. The host reads its own memory."""

    def __init__(self, monkeypatch):
        def refused(*_):
            raise AssertionError("an integer on the device is read")

        monkeypatch.setattr(td.Tensor, "__index__", refused)
        if not td.default_device().traits.host_memory:
            monkeypatch.setattr(td.Tensor, "item", refused)


def numbered(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def picked(x, axis, start, count, step=1):
    """The elements of a window, zeros outside of the axis."""
    places = (start + x.shape[axis] if start < 0 else start) + np.arange(count) * step
    found = np.take(x, np.clip(places, 0, x.shape[axis] - 1), axis)
    shape = [1] * x.ndim
    shape[axis] = count
    return found * ((places >= 0) & (places < x.shape[axis])).reshape(shape)


@pytest.mark.parametrize("start", [0, 4, 6, 9, -3, -9, 7, 2**31 - 1])
def test_windows_are_read_and_written_without_reading_where_they_begin(monkeypatch, start):
    x = numbered(2, 7, 3)
    device, n = td.asarray(x), td.asarray(start, dtype=td.int32)
    Unread(monkeypatch)
    np.testing.assert_array_equal(device[:, n : n + 2].numpy(), picked(x, 1, start, 2))
    np.testing.assert_array_equal(
        device[1, n : n + 5 : 2, 1:].numpy(), picked(x[1, :, 1:], 0, start, 3, 2)
    )
    device[:, n : n + 2] = td.full((2, 2, 3), -1.0)
    device[0, n : n + 1] += 10.0
    first = start + 7 if start < 0 else start
    places = [p for p in (first, first + 1) if 0 <= p < 7]
    x[:, places] = -1.0
    if 0 <= first < 7:
        x[0, first] += 10.0
    np.testing.assert_array_equal(device.numpy(), x)


def test_bounds_of_one_value(monkeypatch):
    x = numbered(12)
    device, n = td.asarray(x), td.asarray(3)
    Unread(monkeypatch)
    end = n + 4
    assert device[n:end].tolist() == [3, 4, 5, 6]
    end.realize()  # which drops what it was made of
    assert device[n:end].tolist() == [3, 4, 5, 6]
    assert device[end : end + 1].tolist() == [7]
    assert device[n - 1 : end - 2 : 3].tolist() == [2]
    assert device[2 + n : end].tolist() == [5, 6]
    assert device[n.copied() : n + 1].tolist() == [3]
    assert device[n:n].shape == device[end:n].shape == (0,)
    for step in range(5):  # a position that counts up
        assert device[n : n + 1].tolist() == [3 + step]
        n += 1
        if step % 2:
            n.realize()
    places = td.asarray([4, 9])
    assert device[places[1] : places[1] + 3].tolist() == [9, 10, 11]
    if supports(device.device, td.int64):
        wide = n.astype(td.int64)
        assert device[n : wide + 1].tolist() == [8]


def test_other_bounds_are_read():
    """Of which the extent depends on values."""
    x = td.asarray(numbered(12))
    n, m = td.asarray(3), td.asarray(5)
    assert (x[:n].shape, x[n:].shape, x[n:7].shape) == ((3,), (9,), (4,))
    assert x[n:m].tolist() == [3, 4]
    assert x[n : 2 * n].tolist() == [3, 4, 5]
    assert x[n + 2 : n : -1].tolist() == [5, 4]
    places = td.asarray([4, 9])
    assert x[places[0] : places[1]].tolist() == [4, 5, 6, 7, 8]


def test_windows_with_other_indices(rng):
    x = rng.integers(-99, 99, (4, 5, 6)).astype(np.float32)
    n, m = td.asarray(1), td.asarray(-3)
    indices = [
        ((slice(n, n + 2), slice(m, m + 3)), (slice(1, 3), slice(2, 5))),
        ((..., slice(m, m + 2), None), (..., slice(3, 5), None)),
        ((slice(n, n + 2), td.asarray([0, 4, 4])), (slice(1, 3), [0, 4, 4])),
        (([3, 0], slice(n, n + 3), [1, 2]), ([3, 0], slice(1, 4), [1, 2])),
        ((x[:, 0, 0] > 0, slice(m, m + 2)), (x[:, 0, 0] > 0, slice(2, 4))),
        ((-1, slice(n, n + 4, 3), [5, 1]), (-1, slice(1, 5, 3), [5, 1])),
    ]
    for mine, wanted in indices:
        device, expected = td.asarray(x), x.copy()
        np.testing.assert_array_equal(device[mine].numpy(), x[wanted])
        for value in (5.0, rng.standard_normal(x[wanted].shape).astype(np.float32)):
            device[mine] = value
            expected[wanted] = value
            np.testing.assert_array_equal(device.numpy(), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int64", "uint64"])
def test_dtypes_of_positions(device, dtype):
    if not supports(device, as_dtype(dtype)):
        with pytest.raises(td.errors.DtypeError, match="has no"):
            td.zeros((), dtype=dtype)
        return
    x = td.arange(300, dtype=td.int32)
    most = int(np.iinfo(dtype).max)
    for start in (0, 100, most - 2, most - 1):
        n = td.asarray(start, dtype=as_dtype(dtype))
        wanted = [p if p < 300 else 0 for p in range(start, start + 4)]
        assert x[n : n + 4].tolist() == wanted, start


def test_empty_arrays_and_windows_longer_than_their_axis():
    n = td.asarray(1)
    x = td.zeros((0, 3))
    assert x[n : n + 2].tolist() == [[0.0] * 3] * 2
    x[n : n + 2] = 1.0
    assert x[:, n : n + 2].shape == (0, 2)
    y = td.ones((2, 3))
    assert y[:, n : n + 5].tolist() == [[1, 1, 0, 0, 0]] * 2
    y[:, n : n + 5] = td.arange(5, dtype=td.float32)
    assert y.tolist() == [[1, 0, 1]] * 2


def test_a_window_is_a_copy():
    x = td.asarray(numbered(6))
    n = td.asarray(2)
    window = x[n : n + 2]
    window += 100.0
    assert x.tolist() == list(range(6))
    assert window.tolist() == [102, 103]
    pending = x[n : n + 2]
    x[n : n + 2] = -1.0
    assert pending.tolist() == [2, 3]
    assert copy.copy(x)[n : n + 1].tolist() == [-1]


def test_gradients_of_windows():
    x, k = td.asarray(numbered(2, 6)), td.ones((2, 2))
    x.requires_grad_(True)
    k.requires_grad_(True)
    n = td.asarray(3)
    cache = x * 1.0
    cache[:, n : n + 2] = k * 2.0
    (cache[:, n - 1 : n + 2] * td.asarray([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[0, 0, 1, 0, 0, 0]] * 2
    assert k.grad.tolist() == [[20, 200]] * 2


def test_windows_that_differ_from_example_to_example():
    x = numbered(3, 8)
    starts = np.array([0, 5, -2], np.int32)
    found = td.vmap(lambda row, n: row[n : n + 3])(td.asarray(x), td.asarray(starts))
    wanted = [picked(row, 0, int(n), 3) for row, n in zip(x, starts, strict=True)]
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_structs():
    whole = np.zeros(5, [("a", np.float32), ("b", np.int32)])
    whole["a"], whole["b"] = np.arange(5), np.arange(5) * 10
    x, n = td.asarray(whole), td.asarray(2)
    np.testing.assert_array_equal(x[n : n + 2].numpy(), whole[2:4])
    x[n : n + 2] = whole[:2]
    assert x.numpy()["b"].tolist() == [0, 10, 0, 10, 40]


def test_checked_windows_raise(monkeypatch):
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    x, n = td.zeros((2, 6)), td.asarray(5)
    assert x[:, n : n + 1].shape == (2, 1)
    with pytest.raises(IndexError, match="a window of 2 elements that begins at 5 reaches outside"):
        x[:, n : n + 2]


def test_a_position_that_counts_up_is_planned_once(monkeypatch):
    cache, n = td.zeros((2, 64, 4)), td.asarray(0)
    Unread(monkeypatch)
    for step in range(40):
        before = counts()
        cache[:, n : n + 1] = td.full((2, 1, 4), float(step))
        seen = cache[:, n : n + 1].realize()
        n += 1
        n.realize()
        added = counts() - before
        assert step < 4 or (added.kernels, added.plans) == (0, 0), step
    assert seen.tolist() == [[[39.0] * 4]] * 2
    assert cache[0, :, 0].tolist() == [*range(40)] + [0] * 24

"""Calls of library functions that come up again repeat their launches: with other arrays, right."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import treadle as td
from treadle.core.recent_cache import RecentCache
from treadle.kernels import decompose
from treadle.runtime import recorded_calls


@pytest.fixture(autouse=True)
def repeats(monkeypatch):
    """One entry for each call that is repeated."""
    found = []
    repeated = recorded_calls._repeated

    def noted(recording, arrays, stream):
        found.append(recording)
        return repeated(recording, arrays, stream)

    monkeypatch.setattr(recorded_calls, "_repeated", noted)
    return found


def _drawn(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def _attention(q, k, v):
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    weights = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights / weights.sum(-1, keepdims=True) @ v


def _convolution(x, w):
    rows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), w.shape[2:], (2, 3))
    return np.einsum("bcijkl,ockl->boij", rows, w)


F = td.nn.functional
CASES = {
    "attention": (
        F.scaled_dot_product_attention, _attention, [(2, 3, 5, 8), (2, 3, 9, 8), (2, 3, 9, 8)],
    ),
    "convolution": (F.conv2d, _convolution, [(2, 3, 9, 9), (4, 3, 3, 3)]),
    "sort": (lambda x: td.sort(x, axis=0), lambda x: np.sort(x, 0), [(37, 5)]),
    "scan": (lambda x: td.cumulative_sum(x), lambda x: np.cumsum(x, dtype=np.float64), [(701,)]),
    "transform of a prime length": (td.fft.rfft, np.fft.rfft, [(3, 61)]),
    "pooling": (
        lambda x: F.max_pool2d(x, 2),
        lambda x: x.reshape(2, 3, 4, 2, 5, 2).max((3, 5)), [(2, 3, 8, 10)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_repeated_calls_compute_with_their_own_arrays(device, rng, repeats, name):
    function, right, shapes = CASES[name]
    kept = []
    for _ in range(5):
        arrays = [_drawn(rng, *shape) for shape in shapes]
        found = function(*[td.asarray(each, device=device) for each in arrays])
        np.testing.assert_allclose(found.numpy(), right(*arrays), rtol=2e-4, atol=2e-4)
        kept.append((found, found.numpy()))
    for found, before in kept:  # results have memory of their own
        np.testing.assert_array_equal(found.numpy(), before)
    if name != "convolution" or device.id != "cpu":  # whose product is NumPy's
        assert repeats


def test_numbers_that_are_equal_are_told_apart():
    def key(*options):
        facts = [options]
        recorded_calls._add_exact(options, facts)
        return tuple(facts)

    options = [(0.0,), (-0.0,), (0,), (False,), ((1,),), ((1.0,),), ((True,),)]
    assert len({key(*each) for each in options}) == len(options)


def test_the_same_array_twice_is_another_call(device, rng, repeats):
    x, y = _drawn(rng, 1, 2, 6, 8), _drawn(rng, 1, 2, 6, 8)
    for _ in range(4):
        t, u = (td.asarray(each, device=device) for each in (x, y))
        for one, other, a, b in ((t, t, x, x), (t, u, x, y), (u, t, y, x)):
            found = F.scaled_dot_product_attention(one, other, other).numpy()
            np.testing.assert_allclose(found, _attention(a, b, b), rtol=2e-4, atol=2e-5)
    assert repeats


def test_memory_is_taken_and_given_back(device, rng, repeats):
    x = td.asarray(_drawn(rng, 1 << 12), device=device).realize()

    def peak():
        pool = device.pool
        pool._peak_bytes = before = pool.used
        td.sort(x).realize()
        assert pool.used == before
        return pool._peak_bytes - before

    first = peak()
    peak()
    assert peak() <= first
    assert repeats


def test_long_calls_are_repeated_and_few_of_them_kept(device, rng, repeats, monkeypatch):
    monkeypatch.setattr(recorded_calls, "_MOST_LAUNCHES", 2)  # all of these are long
    for cache in ("_known", "_long"):  # without what other tests called
        half = getattr(recorded_calls, cache)._half
        monkeypatch.setattr(recorded_calls, cache, RecentCache(half))
    monkeypatch.setattr(decompose, "forced", "panels")
    sizes = range(3, 24)
    for n in (*sizes, 3):  # the first one has been dropped, and is noted again
        for _ in range(4):
            a = _drawn(rng, n, n)
            q, r = td.linalg.qr(td.asarray(a, device=device))
            np.testing.assert_allclose(q.numpy() @ r.numpy(), a, atol=2e-5)
    assert len(repeats) == 2 * len(sizes) + 2
    assert len(recorded_calls._long) <= 2 * recorded_calls._RECENT_LONG


def test_a_function_that_reads_is_not_repeated(device, rng, repeats):
    for _ in range(4):
        x = np.round(_drawn(rng, 40))
        found = td.unique_values(td.asarray(x, device=device))
        np.testing.assert_array_equal(np.sort(found.numpy()), np.unique(x))


def test_another_threads_launches_are_not_recorded(device, rng, repeats):
    stop, failed = threading.Event(), []

    def work():
        x = _drawn(np.random.default_rng(1), 33, 3)
        while not stop.is_set():
            found = td.sort(td.asarray(x, device=device), axis=0).numpy()
            if not np.array_equal(found, np.sort(x, 0)):
                failed.append(found)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for size in (20, 21, 22, 23):
            for _ in range(4):
                x = _drawn(rng, size, 3)
                found = td.sort(td.asarray(x, device=device), axis=0).numpy()
                np.testing.assert_array_equal(found, np.sort(x, 0))
    finally:
        stop.set()
        thread.join()
    assert not failed


def test_tables_that_are_gone_are_computed_again(device, rng, repeats):
    """A repeated transform reads its table of factors only as long as that is in the cache."""
    for turn in range(9):
        x = _drawn(rng, 4, 59)
        if turn == 4:
            device.tables.clear()
        if turn == 5:  # what was freed is used by others
            others = [td.full((size,), np.nan, device=device).realize() for size in range(1, 400)]
        found = td.fft.rfft(td.asarray(x, device=device)).numpy()
        np.testing.assert_allclose(found, np.fft.rfft(x), rtol=2e-4, atol=2e-4)
    assert len(others) == 399
    assert len(repeats) >= 4

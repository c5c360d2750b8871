"""Loops over arrays whose sizes change: right, and planned once for each class of sizes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import treadle as td
from treadle.core.recent_cache import RecentCache
from treadle.graph import recipes
from treadle.runtime.counters import counts


@pytest.fixture
def plans():
    """A function that says how many plans were made since the test began."""
    before = counts()
    return lambda: (counts() - before).plans


def softmax(x):
    e = td.exp(x - td.max(x, axis=-1, keepdims=True))
    return e / td.sum(e, axis=-1, keepdims=True)


def softmax_of(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


PROGRAMS = {
    "map": (lambda x: td.exp(x) * 2 + 1, lambda x: np.exp(x.astype(np.float64)) * 2 + 1),
    "sum": (lambda x: td.sum(x, axis=0), lambda x: x.astype(np.float64).sum(axis=0)),
    "rows": (softmax, softmax_of),
    "columns": (lambda x: softmax(x.T), lambda x: softmax_of(x.T)),
    "flat": (lambda x: td.reshape(x, (-1,)) + 1, lambda x: x.reshape(-1) + 1),
    "product": (lambda x: x @ x.T, lambda x: x.astype(np.float64) @ x.T),
    "joined": (
        lambda x: td.concat([x, x[:1]], axis=0) * 2,
        lambda x: np.concatenate([x, x[:1]]) * 2,
    ),
    "rolled": (lambda x: x + td.roll(x, 1, axis=1), lambda x: x + np.roll(x, 1, 1)),
    "flipped": (lambda x: td.flip(x, axis=0) + x, lambda x: x[::-1] + x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_sizes_share_plans(device, rng, plans, name):
    program, expected = PROGRAMS[name]

    def run(rows, columns):
        x = rng.standard_normal((rows, columns)).astype(np.float32)
        found = program(td.asarray(x, device=device)).numpy()
        np.testing.assert_allclose(found, expected(x), rtol=1e-4, atol=1e-5)

    for _ in range(12):
        run(*rng.integers(1, 40, 2))
    before = plans()
    for _ in range(12):
        run(*rng.integers(8, 33, 2))
    for _ in range(5):
        run(*rng.integers(33, 60, 2))
    assert plans() - before <= 6
    assert plans() <= 30


def test_extents_that_equal_others_by_chance(device, rng, plans):
    """A text as long as the model is wide, or as it has heads, is planned as any other, and so is
    one of a few words, along which a bias is broadcast a few times."""
    weight, bias = rng.standard_normal((2, 16)).astype(np.float32)
    ours = [td.asarray(each, device=device) for each in (weight, bias)]

    def program(x, weight, bias):
        y = x * weight + bias
        heads = y.reshape(1, -1, 4, 4).transpose(0, 2, 1, 3)
        return heads * 2 + 1, (y + y * bias)[:, -1] * 3

    for length in (30, 21, 37, 25, 16, 4, 5, 3, 8, 7, 6):
        if length == 16:
            before = plans()
        x = rng.standard_normal((1, length, 16)).astype(np.float32)
        found = program(td.asarray(x, device=device), *ours)
        for one, other in zip(found, program(x, weight, bias), strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-5)
    assert plans() == before


def test_a_cache_that_grows(device, rng, plans):
    keys = rng.standard_normal((48, 1, 3, 1, 8)).astype(np.float32)
    queries = rng.standard_normal((48, 1, 3, 1, 8)).astype(np.float32)
    cache, counts = None, []
    for n, (key, query) in enumerate(zip(keys, queries, strict=True), 1):
        new = td.asarray(key, device=device)
        cache = new if cache is None else td.concat([cache, new], axis=2)
        scores = softmax(td.asarray(query, device=device) @ td.permute_dims(cache, (0, 1, 3, 2)))
        found = (scores @ cache).numpy()
        all_keys = np.concatenate(keys[:n], axis=2).astype(np.float64)
        expected = softmax_of(query @ all_keys.swapaxes(2, 3)) @ all_keys
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        counts.append(plans())
    assert counts[-1] - counts[24] <= 3, counts


def test_a_cache_of_fixed_room(device, rng, plans):
    cache = td.zeros((2, 32, 8), device=device)
    expected = np.zeros((2, 32, 8), np.float32)
    counts = []
    for n in range(32):
        new = rng.standard_normal((2, 1, 8)).astype(np.float32)
        cache[:, n : n + 1] = td.asarray(new, device=device)
        expected[:, n : n + 1] = new
        read = td.sum(cache[:, : n + 1] ** 2, axis=1)
        np.testing.assert_allclose(read.numpy(), (expected[:, : n + 1] ** 2).sum(1), rtol=1e-4)
        counts.append(plans())
    assert counts[-1] - counts[16] <= 3, counts


def test_writes_with_pending_readers_share_plans(device, plans):
    x = td.asarray(np.arange(12, dtype=np.float32), device=device)
    expected = np.arange(12, dtype=np.float32)
    for n in range(1, 9):
        old = x[:n] * 2  # pending, and reads what is written next
        x[:n] = td.asarray(np.full(n, 100 + n, np.float32), device=device)
        first, second = expected[:n] * 2, expected.copy()
        second[:n] = 100 + n
        np.testing.assert_array_equal(x.numpy(), second)
        np.testing.assert_array_equal(old.numpy(), first)
        expected = second
    assert plans() <= 8


@pytest.mark.parametrize(
    "sizes", [(0, 5, 1, 7, 0, 3), (1, 1, 2, 1, 9), (16, 17, 15, 16, 1024, 1023)]
)
def test_edges_switch_plans(device, rng, sizes):
    for n in sizes:
        x = rng.standard_normal((n, 4)).astype(np.float32)
        y = td.asarray(x, device=device)
        views = [
            (y + y[:, :1], x + x[:, :1]),
            (td.broadcast_to(y[:1], (n, 4)) + y if n else y, x[:1] + x if n else x),
            (y[::2].T * 3, x[::2].T * 3),
            (y[::-1, 1:] - y[:, :3], x[::-1, 1:] - x[:, :3]),
            (td.sum(y, axis=0), x.astype(np.float64).sum(0)),
        ]
        for found, expected in views:
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_overlapping_views_of_changing_sizes(device):
    for n in (6, 9, 5, 30, 2, 1, 64):
        x = np.arange(n, dtype=np.float32)
        y = td.asarray(x, device=device)
        y[1:] = y[:-1] * 2
        x[1:] = x[:-1].copy() * 2
        np.testing.assert_array_equal(y.numpy(), x)
        y[: n // 2] += y[n - n // 2 :]
        x[: n // 2] += x[n - n // 2 :].copy()
        np.testing.assert_array_equal(y.numpy(), x)


def test_threads_that_plan_at_once(device, rng, monkeypatch):
    """From plans that are not known yet, whose facts hold for the sizes of some threads only."""
    monkeypatch.setattr(recipes, "_recipes", RecentCache(64))
    inputs = [rng.standard_normal((int(n), 6)).astype(np.float32) for n in rng.integers(1, 50, 40)]
    inputs[::8] = [each[:1] for each in inputs[::8]]
    start, wrong = threading.Barrier(4), []

    def work(part):
        start.wait(60)
        for x in part:
            y = td.asarray(x, device=device)
            found = softmax(y * 3).numpy()
            y[: len(x) // 2] = td.concat([y, y])[len(x) : len(x) + len(x) // 2] - 1
            written = np.concatenate([x[: len(x) // 2] - 1, x[len(x) // 2 :]])
            if not np.allclose(found, softmax_of(x * 3), rtol=1e-4, atol=1e-5):
                wrong.append(x.shape)
            if not np.array_equal(y.numpy(), written):
                wrong.append(x.shape)

    threads = [threading.Thread(target=work, args=(inputs[k::4],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Operations of two arrays, and the arrays' shapes by the sizes: stack, rows, inner, columns.
OF_TWO = {
    "product": (lambda m, x, y: x @ y, lambda s, r, i, c: ((r, i), (i, c))),
    "right transposed": (lambda m, x, y: x @ y.T, lambda s, r, i, c: ((r, i), (c, i))),
    "left transposed": (lambda m, x, y: x.T @ y, lambda s, r, i, c: ((i, r), (i, c))),
    "stack": (lambda m, x, y: x @ y, lambda s, r, i, c: ((s, r, i), (s, i, c))),
    "stack and matrix": (lambda m, x, y: x @ y, lambda s, r, i, c: ((s, r, i), (i, c))),
    "matrix and vector": (lambda m, x, y: x @ y, lambda s, r, i, c: ((r, i), (i,))),
    "vector and matrix": (lambda m, x, y: x @ y, lambda s, r, i, c: ((i,), (i, c))),
    "inner": (lambda m, x, y: x @ y, lambda s, r, i, c: ((i,), (i,))),
    "einsum": (lambda m, x, y: m.einsum("ri,ci->rc", x, y), lambda s, r, i, c: ((r, i), (c, i))),
    "then more": (lambda m, x, y: (x @ y + 1).sum(0), lambda s, r, i, c: ((r, i), (i, c))),
    "before it more": (lambda m, x, y: (x * 2 + 1) @ y, lambda s, r, i, c: ((r, i), (i, c))),
    "of parts": (lambda m, x, y: x[:, 1:] @ y[1:], lambda s, r, i, c: ((r, i), (i, c))),
    "sums": (lambda m, x, y: x.sum(1) + y.sum(0), lambda s, r, i, c: ((c, i), (r, c))),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["eager", "compiled"])
@pytest.mark.parametrize("name", OF_TWO)
def test_one_size_changes_and_the_others_stay(device, rng, monkeypatch, name, kind):
    """Where the size is not the result's, and so not one of its kernel's extents, too."""
    program, shapes = OF_TWO[name]
    # On GPUs two of the four for one program, the others for the next: plans are the same.
    half = [*OF_TWO].index(name) % 2
    for at in range(4) if device.backend == "cpu" else range(half, 4, 2):
        monkeypatch.setattr(recipes, "_recipes", RecentCache(64))  # no other size has changed yet
        function = td.compile(program) if kind == "compiled" else program
        for size in (80, 40, 80, 90, 40, 1, 80):
            sizes = [2, 50, 70, 60]  # enough for a library's product
            sizes[at] = size if at else size // 10
            x, y = (rng.standard_normal(shape) for shape in shapes(*sizes))
            ours = [td.asarray(each, dtype=td.float32, device=device) for each in (x, y)]
            found = function(td, *ours).numpy()
            np.testing.assert_allclose(found, program(np, x, y), rtol=1e-4, atol=1e-3)

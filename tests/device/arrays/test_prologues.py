"""Factors of a product of matrices that are computed where the product loads them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned


@pytest.fixture(autouse=True)
def _fresh(device):
    with poisoned(device):
        yield


def integers(rng, *shape):
    return rng.integers(-8, 8, shape).astype(np.float32)


def assert_one(tensor: td.Tensor, *names: str) -> None:
    """One kernel, with these operations; where a library multiplies, one more for each factor."""
    told = td.explain(tensor)
    plain = td.ones((64, 64)) @ td.ones((64, 64)) + 1
    if td.explain(plain).startswith("1 kernel\n"):
        assert told.startswith("1 kernel\n"), told
    for name in names:
        assert name in told


SIZES = [(5, 7, 9), (64, 64, 64), (33, 100, 70), (130, 257, 36), (1, 64, 40), (128, 32, 8)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_cast_a_scale_and_a_mask(device, rng, sizes):
    m, k, n = sizes
    x, w, s = integers(rng, m, k), integers(rng, k, n), integers(rng, k)
    mask = rng.random((n, k)) < 0.5
    a, half, b, t, q = map(td.asarray, (x, w.astype(np.float16), w, s, mask))
    found = a @ half.astype(td.float32)
    assert_one(found, "f32(")
    np.testing.assert_array_equal(found.numpy(), x @ w)
    found = (a * t) @ b
    assert_one(found, "multiply")
    np.testing.assert_array_equal(found.numpy(), (x * s) @ w)
    v = td.asarray(np.ascontiguousarray(w.T))
    found = a @ td.where(q, v, 0.0).T
    assert_one(found, "where")
    np.testing.assert_array_equal(found.numpy(), x @ np.where(mask, w.T, 0).T)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_both_factors_and_what_follows(device, rng, sizes):
    m, k, n = sizes
    x, w, s = integers(rng, m, k), integers(rng, k, n), integers(rng, k)
    a, b, t = map(td.asarray, (x, w, s))
    found = td.maximum((a - 1) @ (b + t[:, None]), 0) + b[0]
    assert_one(found, "subtract", "maximum")
    np.testing.assert_array_equal(found.numpy(), np.maximum((x - 1) @ (w + s[:, None]), 0) + w[0])


@pytest.mark.parametrize(
    ("rows", "blocks", "lines"), [(5, 3, 33), (64, 4, 16), (70, 2, 40), (3, 1, 1)]
)
def test_blocks_of_packed_numbers(device, rng, rows, blocks, lines):
    """The inner axis of the product is three axes of what the factor is made of: blocks of 32
    numbers with a scale each, of which byte j has number j and number j + 16."""
    packed = rng.integers(0, 256, (rows, blocks, 16), dtype=np.uint8)
    scale = rng.integers(1, 5, (rows, blocks)).astype(np.float16)
    x = integers(rng, lines, blocks * 32)
    p, s, a = map(td.asarray, (packed, scale, x))
    shifts = td.arange(2, dtype=td.int32).reshape(1, 1, 2, 1) * 4
    numbers = ((p.reshape(rows, blocks, 1, 16).astype(td.int32) >> shifts) & 15) - 8
    matrix = numbers.astype(td.float32) * s.astype(td.float32).reshape(rows, blocks, 1, 1)
    found = a @ matrix.reshape(rows, blocks * 32).T
    assert_one(found)
    unpacked = np.stack([packed & 15, packed >> 4], 2).astype(np.float32) - 8
    expected = x @ (unpacked * scale[:, :, None, None]).reshape(rows, -1).T
    np.testing.assert_array_equal(found.numpy(), expected)


def test_axes_in_three_that_are_no_powers_of_two(device, rng):
    x, w, s = integers(rng, 6, 30), integers(rng, 5, 2, 3, 5), integers(rng, 5, 3)
    a, b, t = map(td.asarray, (x, w, s))
    matrix = (b * t.reshape(5, 1, 3, 1)).reshape(5, 30)
    found = a @ matrix.T
    assert_one(found)
    np.testing.assert_array_equal(found.numpy(), x @ (w * s.reshape(5, 1, 3, 1)).reshape(5, 30).T)


def test_stacks_views_and_a_long_inner_axis(device, rng):
    x, w, v = integers(rng, 3, 17, 9), integers(rng, 3, 9, 20), integers(rng, 9, 20)
    a, b, c = map(td.asarray, (x, w, v))
    np.testing.assert_array_equal(((a * 2) @ (b + 1)).numpy(), (x * 2) @ (w + 1))
    np.testing.assert_array_equal(((a * 2) @ (c + 1)).numpy(), (x * 2) @ (v + 1))
    found = (a * 2)[:, 2:7, 1:] @ (c + 1)[1:]
    np.testing.assert_array_equal(found.numpy(), (x * 2)[:, 2:7, 1:] @ (v + 1)[1:])
    x, w = integers(rng, 2, 3, 1100), integers(rng, 2, 1100, 8)
    found = (td.asarray(x) + 1) @ (td.asarray(w) - 1)
    np.testing.assert_array_equal(found.numpy(), (x + 1) @ (w - 1))


def test_rows_by_their_indices(device, rng):
    table, x = integers(rng, 50, 12), integers(rng, 9, 12)
    rows = rng.integers(-50, 50, 14).astype(np.int32)
    found = td.asarray(x) @ td.take(td.asarray(table), td.asarray(rows), axis=0).T
    np.testing.assert_array_equal(found.numpy(), x @ table[rows].T)


def test_what_is_expensive_or_made_of_reductions_is_stored_first(device, rng):
    x, w = integers(rng, 21, 40), integers(rng, 40, 24)
    a, b = td.asarray(x), td.asarray(w)
    for factor, right in (
        (td.sin(td.exp(td.cos(a * 0.1))), np.sin(np.exp(np.cos(x.astype(np.float64) * 0.1)))),
        (a / (a * a).sum(axis=1, keepdims=True), x / (x * x).sum(1, keepdims=True)),
        (td.concat([a, a], axis=0), np.concatenate([x, x])),
        (td.cumulative_sum(a, axis=1), np.cumsum(x, 1)),
    ):
        found = factor @ b
        assert not td.explain(found).startswith("1 kernel\n")
        np.testing.assert_allclose(found.numpy(), right @ w, rtol=1e-4, atol=1e-4)


def test_a_product_that_is_written_over_its_factor(device, rng):
    x, w = integers(rng, 24, 24), integers(rng, 24, 24)
    a, b = td.asarray(x), td.asarray(w)
    a[:] = (a * 2 + 1) @ b
    np.testing.assert_array_equal(a.numpy(), (x * 2 + 1) @ w)
    a[:12] = (b + a)[:12] @ b
    np.testing.assert_array_equal(a.numpy()[:12], (w + (x * 2 + 1) @ w)[:12] @ w)


def test_lines_that_come_with_other_sizes(device, rng):
    """What is planned once holds for the sizes that follow, and for special values."""
    for m, k, n in [
        (3, 8, 5),
        (4, 8, 5),
        (9, 16, 12),
        (0, 8, 5),
        (3, 0, 5),
        (17, 33, 1),
        (65, 2, 70),
    ]:
        x, w = integers(rng, m, k), integers(rng, n, k)
        if m > 3 and k:
            x[1, 0], w[0, 1 % k] = np.inf, np.nan
        with np.errstate(invalid="ignore"):
            right = (x + 1) @ (w.astype(np.float16).astype(np.float32) * 3).T
        found = (td.asarray(x) + 1) @ (td.asarray(w.astype(np.float16)).astype(td.float32) * 3).T
        np.testing.assert_array_equal(found.numpy(), right)


def test_gradients_through_computed_factors(device, rng):
    x, w, g = integers(rng, 7, 12), integers(rng, 9, 12), integers(rng, 7, 9)

    def loss(a, b):
        return (((a * 2) @ (b * b).T) * td.asarray(g)).sum()

    da, db = td.grad(loss, argnums=(0, 1))(td.asarray(x), td.asarray(w))
    np.testing.assert_array_equal(da.numpy(), 2 * g @ (w * w))
    np.testing.assert_array_equal(db.numpy(), (g.T @ (x * 2)) * 2 * w)
